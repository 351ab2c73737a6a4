/* Connection counts and limits of a service over all workers. The workers' services of one name share the object, under
 * a lock that each connection takes at its start and at its end, to count. It also holds what is reported once per
 * service, not per worker (outage.h, fallback_period.h). Workers share nothing else of a service. */
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "base/list.h"
#include "daemon/account/dest_tickets.h"
#include "daemon/account/fallback_period.h"
#include "daemon/account/far_end.h"
#include "daemon/account/outage.h"
#include "daemon/account/source_count.h"
#include "daemon/config/config.h"

struct admission {
	struct list_node node; /* struct admissions.list; alone once retired */
	unsigned refs;
	enum config_kind kind;
	char name[CONFIG_NAME_MAX];
	uint32_t ticket; /* random, so that no other process has it: see admission_ticket() */
	struct outage outage;
	struct far_ends far_ends;
	struct fallback_periods fallback_periods;
	pthread_mutex_t lock; /* of connections and sources */
	uint32_t connections;
	struct source_count sources; /* counted also without a limit, which a reload may set */
};

/* Owned by the workers' owner, which frees it after the workers. */
struct admissions {
	pthread_mutex_t lock; /* of the list and its members' references */
	struct list_node list;
	struct dest_tickets dest_tickets;
};

void admissions_init(struct admissions *);
void admissions_fini(struct admissions *);

/* Finds or creates the object of this service, and takes a reference. NULL: out of memory. */
struct admission *admission_get(struct admissions *, const struct config_service *);
/* A later service of this name gets a new object, which counts from 0. */
void admission_retire(struct admissions *, struct admission *);
void admission_put(struct admissions *, struct admission *);

/* The ticket of connections that open over a link to this egress, and its address as configured: a client with it has
 * reached this service there (doc/open.md). 0: none, as a client's connections get elements of any service, so only of
 * automatic size. Other processes and other addresses have other tickets; none has
 * DEST_TICKET_BIT. */
uint32_t admission_ticket(const struct admission *, const struct config_service *);

enum admission_verdict {
	ADMISSION_OK,
	ADMISSION_UNCOUNTED, /* admitted, but out of memory: not counted by source */
	ADMISSION_MAX,       /* max_connections reached */
	ADMISSION_PER_PEER,  /* max_connections_per_peer reached for this source */
};

enum admission_verdict admission_take(struct admission *, const struct config_service *, const union net_addr *source);
/* After the end of the connection. source: NULL when it was not counted. */
void admission_give(struct admission *, const union net_addr *source);
