/* The targets of a service at run time: their addresses and which of them work. One object per service, shared by main,
 * which sets the addresses (daemon/names), and all workers. So failures and the order of policy "spread" hold for all
 * workers. Under a lock that each connection takes while it connects; data takes none. A reload that changes the
 * targets of a service creates a new object; any other one keeps it with its state. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "daemon/target/endpoints.h"

struct targets;

/* Owned by the workers' owner, which frees it after the workers. */
struct targets_all {
	pthread_mutex_t lock; /* of the list and its members' references */
	struct list_node list;
	atomic_uint changes; /* of addresses by names: for the prober */
	/* From any thread: a service with when_down lost its last working target, or has one again. Or NULL. */
	void (*changed)(void *arg);
	void *arg;
};

void targets_all_init(struct targets_all *);
void targets_all_fini(struct targets_all *);

/* Finds or creates the object of this service with these targets. NULL: out of memory. */
struct targets *targets_get(struct targets_all *, const struct config_service *);
/* Takes the addresses that a reload has found for the same targets. */
void targets_load(struct targets *, const struct config_service *);
void targets_put(struct targets_all *, struct targets *);

/* -- names -- */

/* Sets the addresses of target nr, in the order of attempts. True when the service had no address before. */
bool targets_set(struct targets *, unsigned nr, bool by_weight, const struct target_addr *addrs, unsigned cnt);
/* The name of target nr has no address; earlier ones stay. True when the service has no address. */
bool targets_unresolved(struct targets *, unsigned nr, const char *why);

/* For a service without an address: "waiting for the name X: why"; else "". Returns buf. */
#define TARGETS_WAIT_MAX (CONFIG_TARGET_STR_MAX + 160)
const char *targets_waiting(struct targets *, char buf[TARGETS_WAIT_MAX]);

/* The service has no address yet, and the first answer is still due. */
bool targets_pending(struct targets *);

/* -- connections -- */

/* Locks the endpoints for calls of endpoints.h, all but endpoints_set. targets_unlock() follows. */
struct endpoints *targets_lock(struct targets *);
/* Reports a change of targets_down(). */
void targets_unlock(struct targets *);
/* With when_down = "close_listener": no target works. */
bool targets_down(const struct targets *);

/* -- look-ups -- */

/* The first target with this address (port 0: this host; addr_matches); false: none. */
bool targets_find(struct targets *, const struct sockaddr_storage *there, unsigned *target);

/* The health of an address, for another process. */
struct targets_known {
	struct sockaddr_storage addr;
	struct health health;
};

struct targets_known_list {
	struct targets_known *at; /* the owner's; NULL: empty */
	unsigned cnt;
};

/* Adds all addresses that are probed, each once, up to cap of the list. */
void targets_known(struct targets_all *, struct targets_known_list *, unsigned cap);

/* As the probes of all its addresses say, for a peer that asks; CLC_SERVER_UNSAID: not known. */
enum clc_server targets_server(struct targets *);

/* Copies address i, counted from 0 by target and order; false: there are no more. */
bool targets_address(struct targets *, unsigned i, struct endpoint *out);
/* The reason why the name of target nr has no address, or "". Returns buf. */
const char *targets_name_error(struct targets *, unsigned nr, char buf[ENDPOINT_WHY_MAX]);
