/* Tickets of an egress for many destinations: each stands for a service and one of its destinations, in all workers, so
 * that an OPEN needs no address (doc/open.md). The one used least recently gives way to a new one; a number is never used
 * again, so no connection reaches another destination than that of its ticket. */
#pragma once

#include <pthread.h>

#include "wire/clc_tlvs.h"

#define DEST_TICKETS_MAX 1024
#define DEST_TICKET_BIT 0x80000000 /* of these alone: see admission_ticket() */

struct dest_ticket {
	uint32_t nr;      /* 0: free */
	uint32_t service; /* admission_ticket() */
	struct clc_dest dest;
	uint64_t used; /* count of uses */
};

struct dest_tickets {
	pthread_mutex_t lock; /* of the members below */
	uint32_t last;        /* number */
	uint64_t uses;
	struct dest_ticket at[DEST_TICKETS_MAX];
};

void dest_tickets_init(struct dest_tickets *);
void dest_tickets_fini(struct dest_tickets *);

/* The ticket of this destination of a service. 0: none, as the service has none. */
uint32_t dest_tickets_get(struct dest_tickets *, uint32_t service, const struct clc_dest *);
/* What the ticket stands for; false: nothing any longer. */
bool dest_tickets_find(struct dest_tickets *, uint32_t nr, uint32_t *service, struct clc_dest *);
