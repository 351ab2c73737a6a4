/*
 * A worker: one event loop, one engine (one SMC-R peer instance), its devices,
 * listeners and proxied connections ("sessions"). Everything hangs off this
 * context; there is no global mutable state, so that several workers can run.
 * Created by main; used by main (signals, reload) and by the control socket.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#include "daemon/lsock.h"
#include "daemon/session/probe.h"
#include "daemon/session/session_pool.h"

struct worker;

/* Opens devices and listeners (or takes those among socks, of systemd or opened before) and starts prewarm. On failure
 * nothing is left behind but what is left in socks, and err says what and where. cfg stays the caller's and must outlive the worker or the
 * next worker_reload; the option must outlive the worker. */
int worker_new(struct loop *, const struct config *cfg, const struct smcopt *, struct lsock *socks, unsigned sock_cnt,
    FILE *err, struct worker **);
/* Adds, removes and changes services; live connections keep going. On error all is as before, err says why. */
int worker_reload(struct worker *, const struct config *next, FILE *err);
/* Stops accepting; ends groups as connections end; calls done(arg) when all are gone or deadline_ms has passed. */
void worker_drain(struct worker *, uint32_t deadline_ms, void (*done)(void *arg), void *arg);
/* Ends everything; runs the loop until cards have let go of their queue pairs, for 5 s at most. NULL is allowed. */
void worker_free(struct worker *);

/* reload.c: makes pool->services what cfg says; pool->keepalive holds the new settings already. Listening sockets among socks
 * are used where their address fits, and are none there then; the others are closed. starting: the process has the rights to give
 * a socket's file to another user. 0, or -errno: all is as before and err says what is wrong. */
int services_apply(
    struct session_pool *, const struct config *cfg, struct lsock *socks, unsigned sock_cnt, bool starting, FILE *err);

struct smcr *worker_engine(struct worker *);
const struct devices *worker_devices(const struct worker *);
struct session_pool *worker_sessions(struct worker *);

/* -- what smcrctl shows of sessions and services -- */

struct worker_stats {
	uint64_t accept_pauses; /* EMFILE */
	uint64_t sessions_opened, sessions_closed, sessions_reset;
	uint64_t tcp_bytes; /* carried on fallen-back connections */
	uint64_t option_agreed, option_missing, option_unknown, option_stray_clc;
	uint64_t turns;                                  /* of the loop */
	uint64_t spins, spin_hits, spin_wanted, spun_us; /* spin.h */
	bool draining;
	int64_t uptime_ns;
};

/* Walks as in smcr.h: *pos starts at 0. */
bool worker_session_next(const struct worker *, uint32_t *pos, struct session_info *);
bool worker_service_next(const struct worker *, uint32_t *pos, struct service_info *);
void worker_stats(const struct worker *, struct worker_stats *);

/* Is SMC-R possible to this peer? Runs a rendezvous of its own and calls done once with the verdict, never before
 * this returned; worker_free calls it for those still running. 0 or -errno (then done is not called). */
int worker_check(struct worker *, const struct sockaddr_storage *peer, uint32_t timeout_ms,
    void (*done)(void *arg, const struct check_result *), void *arg);
