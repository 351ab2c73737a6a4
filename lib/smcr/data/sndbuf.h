/* Send rings: buffers of one group, registered on all its links, lent to a connection while bytes of it are in flight (tx.c). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct lgr;
struct link;
struct rnic_mr;

struct sndbuf {
	struct list_node node; /* lgr->sndbuf_free while not lent */
	struct rnic_mr **mr;   /* by link slot: of its slab */
	uint8_t *buf;
	uint32_t size;
	uint32_t dirty;               /* bytes from its start that were used since its pages were given back */
	bool rests;                   /* not lent since sndbuf_give_back looked last */
	const struct link *parked_on; /* NULL when it may be lent */
	uint64_t parked_until;        /* request */
};

/* The group has no rings. */
void sndbuf_init(struct lgr *);
/* A send ring of this size, or of another one when there is no such and none can be made, registered on all links; NULL when
 * memory is out or conns_per_group of them are in use. */
struct sndbuf *sndbuf_get(struct lgr *, uint32_t size);
void sndbuf_put(struct lgr *, struct sndbuf *);
/* The same, but the device may still read from it: lent again when the request wr_id of the link is complete. */
void sndbuf_park(struct lgr *, struct sndbuf *, const struct link *, uint64_t wr_id);
/* Gives the kernel the pages back of rings that nobody has borrowed since the last call, but the first of each. */
void sndbuf_give_back(struct lgr *);
/* A ring may be free again: connections that found none get SMCR_EV_WRITABLE. */
void sndbuf_wake(struct lgr *);
/* All rings of the group on a link that is made or freed: 0 or a negative errno. */
int sndbuf_register_all(struct lgr *, struct link *);
void sndbuf_deregister_all(struct lgr *, struct link *);
void sndbuf_free_all(struct lgr *);
