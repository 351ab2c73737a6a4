/* Health probes: one prober a process, in the first worker, while a service has `probe`. Services that probe an address
 * alike share a check, whose state the prober owns (target/health.h); their endpoints get copies. A check makes a probe
 * after each pause, PROBES_AT_ONCE run at a time. A reload, new addresses of a name and a drain are followed: an address
 * that stays keeps its state. Nothing blocks: a probe is a rendezvous (probe.h) or a leg. */
#pragma once

#include "daemon/target/targets.h"

struct prober;
struct session_pool;

#define PROBES_AT_ONCE 32

/* After a change of services, addresses or draining. No effect in other workers. */
void prober_follow(struct session_pool *);
/* Health from another process, for addresses that have none of their own yet. */
void prober_inherit(struct session_pool *, const struct targets_known_list *);
/* Ends all, before the services end. */
void prober_stop(struct session_pool *);
