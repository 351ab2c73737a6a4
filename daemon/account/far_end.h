/* The far ends of an ingress that goes where programs want (to = "original"): the gateways that lead there, by address,
 * each with its own outage. Bounded; the least recently used one without connections goes. Shared by the workers'
 * services of one name (admission.h), under a lock that each connection takes at its start and its end. */
#pragma once

#include <pthread.h>
#include <sys/socket.h>

#include "base/list.h"
#include "daemon/account/outage.h"

#define FAR_ENDS_MAX 1024
#define FAR_END_PLACES 256 /* of the hash table */

struct service;

struct far_end {
	struct list_node node;      /* far_ends.used */
	struct far_end *next;       /* of the same place */
	struct sockaddr_storage at; /* constant */
	unsigned refs;              /* connections */
	struct outage outage;
};

struct far_ends {
	pthread_mutex_t lock;
	struct list_node used; /* the least recently used first */
	unsigned cnt;
	struct far_end *place[FAR_END_PLACES];
};

void far_ends_init(struct far_ends *);
void far_ends_fini(struct far_ends *);

/* The one at this address, for a connection. NULL: all have connections, or out of memory. */
struct far_end *far_end_get(struct far_ends *, const struct sockaddr_storage *at);
void far_end_put(struct far_ends *, struct far_end *);
/* The settings have changed: drops those without connections, and the outages of the others without a report. */
void far_ends_forget(struct far_ends *);
/* An outage of one of them, and how many have one; 0: none, and *out is not written. */
unsigned far_ends_look(struct far_ends *, const struct service *, struct outage_info *out);
