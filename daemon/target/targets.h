/*
 * The targets of a service at run time: what their names stand for at present, and which of them serve. One object for each
 * service, shared by main, which puts in what the names have (daemon/names), and all workers, which choose from it; so what one
 * worker has found out counts for all, and "in turn" is in turn over all of them. Under a lock, which each connection takes
 * when it is being connected, as with admission.h; carrying data takes none.
 *
 * A service whose targets a reload changes has another object; one whose other settings change keeps it, with all that is known.
 */
#pragma once

#include <pthread.h>

#include "base/list.h"
#include "daemon/target/endpoints.h"

struct targets;

/* All of them; owned by the workers' owner, which frees it when it has freed the workers. */
struct targets_all {
	pthread_mutex_t lock; /* of the list and its members' references */
	struct list_node list;
	/* A service whose listener depends on it (when_down) has no target that works, or has one again; from any thread. NULL:
	 * nobody asks. */
	void (*changed)(void *arg);
	void *arg;
};

void targets_all_init(struct targets_all *);
void targets_all_fini(struct targets_all *);

/* The one of this service and these targets, a new one with the addresses of the configuration when there is none. NULL when memory
 * is out. */
struct targets *targets_get(struct targets_all *, const struct config_service *);
/* The addresses that a reload has found for the same targets. */
void targets_load(struct targets *, const struct config_service *);
void targets_put(struct targets_all *, struct targets *);

/* -- names -- */

/* Of target nr, in the order that they are to be tried in: true when the service had no address before. */
bool targets_set(struct targets *, unsigned nr, bool by_weight, const struct target_addr *addrs, unsigned cnt);
/* Its name has no address, for this reason; addresses that it had before stay. True when the service has none at all. */
bool targets_unresolved(struct targets *, unsigned nr, const char *why);

/* What a service without an address waits for, "waiting for the name X: why"; "" when it has one. Returns buf. */
#define TARGETS_WAIT_MAX (CONFIG_TARGET_STR_MAX + 160)
const char *targets_waiting(struct targets *, char buf[TARGETS_WAIT_MAX]);

/* It has no address so far, and an answer is still to come. */
bool targets_pending(struct targets *);

/* -- connections: see endpoints.h -- */

bool targets_pick(struct targets *, int64_t now_ns, struct rng *, uint64_t *tried, struct endpoint_pick *out);
bool targets_have_other(struct targets *, uint64_t tried);
bool targets_good(struct targets *, const struct endpoint_pick *, bool served);
bool targets_bad(struct targets *, const struct endpoint_pick *, enum endpoint_fault, const char *why, int64_t now_ns,
    int64_t due_ns, unsigned prober);
bool targets_due(struct targets *, unsigned prober, int64_t now_ns, struct endpoint_pick *out, int64_t *at_ns);
unsigned targets_retry_now(struct targets *, unsigned prober, const struct sockaddr_storage *peer, int64_t now_ns);
bool targets_looked(struct targets *, const struct endpoint_pick *, bool connected, int64_t due_ns);
/* With when_down = "close_listener": no target works. */
bool targets_down(const struct targets *);
/* More than one address. */
bool targets_are_several(struct targets *);

/* -- who is there -- */

/* The first target that leads to this place, with port 0: to this host (addr_matches); false: none does. */
bool targets_find(struct targets *, const struct sockaddr_storage *there, unsigned *target);

/* -- what smcrctl shows -- */

/* A copy of address i of 0..ENDPOINTS_MAX - 1, by target and order; false: there are no more. */
bool targets_address(struct targets *, unsigned i, struct endpoint *out);
/* Of target nr: "" or why its name is not found. Returns buf. */
const char *targets_name_error(struct targets *, unsigned nr, char buf[ENDPOINT_WHY_MAX]);
