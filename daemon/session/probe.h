/*
 * A probe: a rendezvous of the daemon's own, without an application behind it.
 * It makes a link group to a peer and closes again. Prewarm and check use it.
 */
#ifndef SMCRD_DAEMON_PROBE_H
#define SMCRD_DAEMON_PROBE_H

#include "daemon/worker/worker_priv.h"

struct probe;

struct probe_target {
	const struct sockaddr_storage *addrs; /* tried in order; copied */
	unsigned addr_cnt;
	uint32_t elem_size;
	uint32_t timeout_ms; /* for everything together */
};

/* done is called once, later, from the worker's turn; NULL when memory is out. */
struct probe *probe_start(
    struct worker *, const struct probe_target *, void (*done)(void *arg, const struct check_result *), void *arg);
/* Ends it without calling done. */
void probe_cancel(struct probe *);

/* One round for all probes. */
void probes_pump(struct worker *);
/* The worker ends: done is called for those that still run. */
void probes_stop(struct worker *);
/* Frees those that have ended. */
void probes_reap(struct worker *);

#endif
