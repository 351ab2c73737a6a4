/*
 * A probe: a rendezvous of the daemon's own, without an application behind it,
 * which makes a link group to a peer and closes again. For prewarming, and for
 * `smcrctl check`.
 */
#pragma once

#include "daemon/probe/check_result.h"

struct probe;
struct session_pool;

struct probe_target {
	const struct sockaddr_storage *addrs; /* tried in order; copied */
	unsigned addr_cnt;
	uint32_t elem_size;
	uint32_t timeout_ms; /* for everything together */
	enum smcr_peer_kind peer;
	/* An operator asks: it is tried though it is held off, and as an smcrd when the TCP option does not tell that it speaks
	 * SMC-R; and the link is tested. */
	bool insist;
	uint64_t
	    bulk; /* with insist: so many bytes are sent each way on both paths, if the peer serves that; 0: none */
};

/* done is called once, later, from the worker's turn or by probes_stop. NULL when memory is out. */
struct probe *probe_start(struct session_pool *, const struct probe_target *,
    void (*done)(void *arg, const struct check_result *), void *arg);
/* Ends it without calling done, before done was called. */
void probe_cancel(struct probe *);

/* One round for all probes. */
void probes_pump(struct session_pool *);
/* Ends all: done is called for each. */
void probes_stop(struct session_pool *);
/* Frees those that have ended. */
void probes_reap(struct session_pool *);
