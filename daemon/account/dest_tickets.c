/* Tickets of destinations; see dest_tickets.h. */
#include "daemon/account/dest_tickets.h"

#include "base/rng.h"

void
dest_tickets_init(struct dest_tickets *all)
{
	struct rng rng;

	*all = (struct dest_tickets){ .uses = 0 };
	(void)pthread_mutex_init(&all->lock, NULL);
	rng_init_kernel(&rng);
	all->last = (uint32_t)rng_u64(&rng); /* other processes have others */
}

void
dest_tickets_fini(struct dest_tickets *all)
{
	(void)pthread_mutex_destroy(&all->lock);
}

uint32_t
dest_tickets_get(struct dest_tickets *all, uint32_t service, const struct clc_dest *dest)
{
	struct dest_ticket *t = all->at, *end = all->at + DEST_TICKETS_MAX, *oldest = all->at;

	if (service == 0)
		return 0;
	(void)pthread_mutex_lock(&all->lock);
	for (; t < end && (t->service != service || !clc_dest_same(&t->dest, dest)); t++)
		if (t->used < oldest->used)
			oldest = t;
	if (t == end) {
		t = oldest;
		*t = (struct dest_ticket){ .nr = ++all->last | DEST_TICKET_BIT, .service = service, .dest = *dest };
	}
	t->used = ++all->uses;
	const uint32_t nr = t->nr;
	(void)pthread_mutex_unlock(&all->lock);
	return nr;
}

bool
dest_tickets_find(struct dest_tickets *all, uint32_t nr, uint32_t *service, struct clc_dest *dest)
{
	struct dest_ticket *t = all->at, *end = all->at + DEST_TICKETS_MAX;

	(void)pthread_mutex_lock(&all->lock);
	while (t < end && (t->nr != nr || nr == 0))
		t++;
	if (t < end) {
		*service = t->service;
		*dest = t->dest;
		t->used = ++all->uses;
	}
	(void)pthread_mutex_unlock(&all->lock);
	return t < end;
}
