/*
 * A worker: one event loop, one engine (one SMC-R peer instance), its devices,
 * listeners and proxied connections ("sessions"). Everything hangs off this
 * context; there is no global mutable state, so that several workers can run.
 * Created by main; used by main (signals, reload) and by the control socket.
 */
#ifndef SMCRD_WORKER_H
#define SMCRD_WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/tally.h"
#include "daemon/config/config.h"
#include "daemon/loop.h"
#include "rnic/verbs/verbs.h"
#include "smcr/smcr.h"

struct worker;

/* Opens devices and listeners (or takes listeners that systemd passed in fds) and starts prewarm. On failure
 * nothing is left behind and err says what and where. cfg stays the caller's and must outlive the worker or the
 * next worker_reload. */
int worker_new(struct loop *, const struct config *cfg, const int *fds, unsigned fd_cnt, FILE *err, struct worker **);
/* Adds, removes and changes services; live connections keep going. On error all is as before, err says why. */
int worker_reload(struct worker *, const struct config *next, FILE *err);
/* Stops accepting; ends groups as connections end; calls done(arg) when all are gone or deadline_ms has passed. */
void worker_drain(struct worker *, uint32_t deadline_ms, void (*done)(void *arg), void *arg);
/* Ends everything at once. */
void worker_free(struct worker *);

struct smcr *worker_engine(struct worker *);
struct rnic_dev *worker_device(struct worker *, unsigned i); /* NULL behind the last */
int64_t worker_now_ns(const struct worker *);

/* -- what smcrctl shows of devices, sessions and services -- */

struct device_info {
	struct rnic_info rnic;
	const char *interface; /* of its address or GID; "" when there is none or it is not known */
	/* verbs only; otherwise NULL, unset and 0 */
	const struct verbs_port *card;
	struct verbs_gid gid; /* in use: type, index */
	/* of all kinds of devices */
	struct rnic_stat stats[RNIC_STATS_MAX];
	unsigned stat_cnt;
};

/* False behind the last. */
bool worker_device_info(const struct worker *, unsigned i, struct device_info *);
/* "" when there is none. */
const char *worker_interface(const struct worker *, unsigned index);

enum session_mode {
	SESSION_SETUP,
	SESSION_SMCR,
	SESSION_TCP,
};

struct session_info {
	uint32_t id;
	const char *service;
	enum config_kind kind;
	enum session_mode mode;
	const char *state;                   /* words */
	struct sockaddr_storage app_peer;    /* client of an ingress, server of an egress */
	struct sockaddr_storage middle_peer; /* the other daemon */
	struct smcr_diag diag;               /* when mode is TCP: why */
	struct smcr_conn *conn;              /* NULL when on TCP */
	uint64_t bytes_to_app, bytes_from_app;
	int64_t age_ns;
	int64_t idle_ns;
};

struct service_info {
	const struct config_service *cfg;
	uint32_t connections;
	uint64_t accepted, refused_allow, refused_max, refused_per_peer, refused_connect, refused_fallback;
	uint64_t fallbacks, resets;
};

struct worker_stats {
	uint64_t accept_pauses; /* EMFILE */
	uint64_t sessions_opened, sessions_closed, sessions_reset;
	uint64_t tcp_bytes; /* carried on fallen-back connections */
	uint64_t turns;     /* of the loop */
	bool draining;
	int64_t started_ns;
};

/* Walks as in smcr.h: *pos starts at 0. */
bool worker_session_next(const struct worker *, uint32_t *pos, struct session_info *);
bool worker_service_next(const struct worker *, uint32_t *pos, struct service_info *);
void worker_stats(const struct worker *, struct worker_stats *);

/* Why sessions went to TCP, or were refused instead: struct smcr_diag's codes, each counted when it is not 0. */
struct worker_fallbacks {
	struct tally local;
	struct tally peer;
};
const struct worker_fallbacks *worker_fallbacks(const struct worker *);

/* Is SMC-R possible to this peer? Runs a rendezvous of its own and calls done once with the verdict, never before
 * this returned; worker_free calls it for those still running. 0 or -errno (then done is not called). */
struct check_result {
	bool possible;
	char text[256]; /* in words: what was done, or what failed and whose reason */
	struct smcr_diag diag;
};

int worker_check(struct worker *, const struct sockaddr_storage *peer, uint32_t timeout_ms,
    void (*done)(void *arg, const struct check_result *), void *arg);

#endif
