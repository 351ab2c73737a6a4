/* A probe: a rendezvous without an application, which makes a link group. For prewarming and `smcrctl check`. */
#pragma once

#include "daemon/probe/check_result.h"

struct probe;
struct session_pool;

struct settings;

struct probe_target {
	const struct sockaddr_storage *addrs; /* tried in order; copied */
	unsigned addr_cnt;
	uint32_t elem_size;
	uint32_t timeout_ms; /* total */
	enum smcr_peer_kind peer;
	bool insist;     /* a check: ignores hold-off, takes a peer without the TCP option for smcrd, tests the link */
	bool ask_server; /* of the server behind the peer; a check does in any case */
	struct settings *secure; /* TLS as this ingress has it; counted while the probe exists; NULL: in clear */
	uint64_t bulk; /* with insist: bytes to measure in each direction on both paths, if the peer does; 0: none */
};

/* done is called once, later, from the worker's turn or by probes_stop. NULL: out of memory. */
struct probe *probe_start(struct session_pool *, const struct probe_target *,
    void (*done)(void *arg, const struct check_result *), void *arg);
/* Ends a probe whose done was not called yet, without calling it. */
void probe_cancel(struct probe *);

void probes_pump(struct session_pool *);
/* Ends all probes: calls done for each. */
void probes_stop(struct session_pool *);
void probes_reap(struct session_pool *);
