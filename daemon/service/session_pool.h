/* Life of a session pool (pool_state.h) and the steps of its turn. Called by the worker. */
#pragma once

#include "daemon/state/pool_state.h"

void session_pool_init(
    struct session_pool *, struct env *, const struct worker_place *, const struct config *, const struct tcp_option *);
/* After session_pool_stop, or before anything was started. */
void session_pool_fini(struct session_pool *);

/* The steps of a turn. Accepts waiting connections: true when more wait. */
bool session_pool_accept(struct session_pool *);
/* Passes events of the engine to sessions and probes, then pumps each scheduled session once. */
void session_pool_pump(struct session_pool *);
/* Requests another turn at once. */
bool session_pool_has_work(const struct session_pool *);
void session_pool_reap(struct session_pool *);

/* Stops accepting and prewarming of all services, or resumes it. 0, or -errno of one that cannot listen, logged. */
int session_pool_drain(struct session_pool *, bool on);
/* Ends and frees all services, probes (calls done for each) and sessions, after notifying their peers. */
void session_pool_stop(struct session_pool *);
