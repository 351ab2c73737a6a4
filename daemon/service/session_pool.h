/* The steps of a turn, and the end, of all that sessions of one worker share (pool_state.h). The worker calls them. */
#pragma once

#include "daemon/state/pool_state.h"

void session_pool_init(
    struct session_pool *, struct env *, const struct worker_place *, const struct config_keepalive *);
/* After session_pool_stop, or before anything was started. */
void session_pool_fini(struct session_pool *);

/* The steps of a turn. Accepts connections that wait: true when more are waiting. */
bool session_pool_accept(struct session_pool *);
/* Hands events of the engine to sessions and probes, then pumps those that are scheduled, each once. */
void session_pool_pump(struct session_pool *);
/* Another turn is wanted at once. */
bool session_pool_has_work(const struct session_pool *);
/* Frees what has ended. */
void session_pool_reap(struct session_pool *);

/* No service takes connections, nor makes link groups ahead; or, when that is taken back, each does again that is not disabled.
 * 0, or -errno when one cannot listen again, which is logged; the others do. */
int session_pool_drain(struct session_pool *, bool on);
/* Ends and frees all: services, probes (done is called for each) and sessions, after a word to their peers. */
void session_pool_stop(struct session_pool *);
