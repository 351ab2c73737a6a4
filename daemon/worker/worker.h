/*
 * A worker: one event loop, one engine (one SMC-R peer instance), its devices,
 * listeners and proxied connections ("sessions"). Everything hangs off this
 * context; there is no global mutable state, so that several workers can run,
 * each in a thread of its own. What is called here runs in that thread, or
 * while there is none: workers.h gets it there.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#include "daemon/net/listen_socket.h"
#include "daemon/account/service_stats.h"
#include "daemon/account/outage.h"
#include "daemon/probe/probe.h"
#include "daemon/service/session_pool.h"

struct worker;

/* Opens devices and listeners (or takes those among socks, of systemd or opened before) and starts prewarm. On failure
 * nothing is left behind but what is left in socks, and err says what and where. cfg stays the caller's and must outlive the
 * worker or the next worker_commit; the option must outlive the worker. */
int worker_new(struct loop *, const struct worker_place *, const struct config *cfg, const struct tcp_option *,
    struct listen_socket *socks, unsigned sock_cnt, FILE *err, struct worker **);
/* A reload, which adds, removes and changes services while live connections keep going: first all that can fail. Takes
 * listening sockets among socks, which are needed until it returns. 0, or -errno: all is as before, err says why. */
int worker_prepare(
    struct worker *, const struct config *next, struct listen_socket *socks, unsigned sock_cnt, FILE *err);
/* Copies of the UNIX sockets that were opened for it, for a worker that prepares the same; socks has room for one of each
 * service. Their number, or -errno and there are none. */
int worker_share(const struct worker *, struct listen_socket *socks);
/* Then either puts into force what was prepared; err gets warnings. */
void worker_commit(struct worker *, const struct config *next, FILE *err);
/* Or drops it: all is as before. */
void worker_abort(struct worker *);
/* The names of a service that waited for them have addresses: a link group may be made ahead. */
void worker_targets_changed(struct worker *, const char *service);
/* Stops accepting; ends groups as connections end; calls done(arg) when all are gone or deadline_ms has passed. */
void worker_drain(struct worker *, uint32_t deadline_ms, void (*done)(void *arg), void *arg);
/* Takes a drain back: nobody is told of its end any more. 0, or -errno when a service cannot listen again, which is logged. */
int worker_undrain(struct worker *);
/* Ends everything; runs the loop until cards have let go of their queue pairs, for 5 s at most. NULL is allowed. */
void worker_free(struct worker *);

/* worker_sockets.c: adds other descriptors of its services' listening sockets. 0 or -errno. */
int worker_add_sockets(struct worker *, struct listen_socket_list *out);
/* And of the ports of its soft devices on TCP. */
int worker_add_ports(struct worker *, struct listen_socket_list *out);
/* In worker.c: another process accepts on this one of them. */
void worker_drop_port(struct worker *, const struct sockaddr_storage *port);
/* Files of these stay when they are closed, or not. */
void worker_lend_sockets(struct worker *, bool lent);
/* Stops accepting; the files stay. */
void worker_release_sockets(struct worker *);

/* reload.c: what is to be done to make pool->services what cfg says, which stays there until that is done or dropped. Listening
 * sockets among socks are used where their address fits, and are none there then. starting: the process has the rights to give
 * a socket's file to another user. 0, or -errno: all is as before and err says what is wrong. */
struct services_plan;
int services_prepare(struct session_pool *, const struct config *cfg, struct listen_socket *socks, unsigned sock_cnt,
    bool starting, FILE *err, struct services_plan **);
/* See worker_share. */
int services_share(const struct services_plan *, struct listen_socket *socks);
/* Does it; pool->keepalive holds the new settings already. Frees the plan. */
void services_commit(struct services_plan *, FILE *err);
void services_abort(struct services_plan *);

struct smcr *worker_engine(struct worker *);
const struct devices *worker_devices(const struct worker *);
struct session_pool *worker_sessions(struct worker *);

/* -- what smcrctl shows of sessions and services -- */

struct worker_stats {
	uint64_t accept_pauses; /* EMFILE */
	uint64_t sessions_opened, sessions_closed, sessions_reset, sessions_closed_operator;
	uint64_t tcp_bytes; /* carried on fallen-back connections */
	uint64_t option_agreed, option_missing, option_unknown, option_stray_clc;
	uint64_t turns;                                  /* of the loop */
	uint64_t spins, spin_hits, spin_wanted, spun_us; /* loop/spin.h */
	bool draining;
	int64_t uptime_ns;
	uint64_t setups; /* connections that are being set up now */
};

/* Walks as in smcr.h: *pos starts at 0. */
bool worker_session_next(const struct worker *, uint32_t *pos, struct session_info *);
bool worker_service_next(const struct worker *, uint32_t *pos, struct service_info *);
/* The service of this name, and whether its far end serves: false when there is none. */
bool worker_service_find(const struct worker *, const char *name, struct service_info *, struct outage_info *);
/* What its sessions come to; NULL: there is none of this name. The worker's, until its thread goes on; and as a walk. */
const struct service_stats *worker_service_stats(const struct worker *, const char *name);
bool worker_stats_next(
    const struct worker *, uint32_t *pos, const struct config_service **, const struct service_stats **);
void worker_stats(const struct worker *, struct worker_stats *);

/* Is SMC-R possible to this peer? Runs a rendezvous of its own and calls done once with the verdict, never before
 * this returned; worker_free calls it for those still running. bulk: bytes of a measurement, or 0 (probe.h). 0 or -errno (then done is not called). */
int worker_check(struct worker *, const struct sockaddr_storage *peer, uint32_t timeout_ms, uint64_t bulk,
    void (*done)(void *arg, const struct check_result *), void *arg);

/* -- orders of an operator -- */

/* One step of a walk as above: closes the next connection if it is meant, and says whether; false at the end. */
bool worker_close_next(struct worker *, uint32_t *pos, const struct close_filter *, bool *closed);
/* The service takes no connections until it is enabled; those that it has go on. 0, -ENOENT, or -errno: it cannot listen again. */
int worker_set_disabled(struct worker *, const char *name, bool disabled);
/* A service has no target that works, or has one again: listeners follow (when_down). */
void worker_follow_targets(struct worker *);

struct worker_retried {
	struct smcr_retried engine;
	unsigned prewarms; /* link groups to be made ahead, of services that waited for another try */
	unsigned targets;  /* that have failed, and are tried now */
	unsigned devices;  /* that are missing */
};

/* Ends waits that go on because something failed, of this peer (port 0: any) or, NULL, of all, and then of devices, too. */
struct worker_retried worker_retry(struct worker *, const struct sockaddr_storage *peer);
