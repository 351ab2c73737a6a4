/* Send rings: buffers of a group, registered on all its links, lent to connections with data in flight (tx.c). */
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
	uint32_t dirty;               /* bytes from its start used since its pages were returned */
	bool rests;                   /* not lent since the last sndbuf_give_back */
	const struct link *parked_on; /* NULL when it may be lent */
	uint64_t parked_until;        /* request */
};

/* Initializes the group without rings. */
void sndbuf_init(struct lgr *);
/* A send ring of this size, or of another one when none can be created; NULL: no memory, or conns_per_group in use. */
struct sndbuf *sndbuf_get(struct lgr *, uint32_t size);
/* One of up to this size, and larger than that, would be had now. */
bool sndbuf_has_larger(const struct lgr *, uint32_t than, uint32_t size);
/* Returns it. With a link the device may still read it: lent again when the request wr_id of the link is complete. */
void sndbuf_put(struct lgr *, struct sndbuf *, const struct link *, uint64_t wr_id);
/* Returns pages of rings to the kernel that were not lent since the last call. */
void sndbuf_give_back(struct lgr *);
/* A ring may be free again: raises SMCR_EV_WRITABLE on connections that found none. */
void sndbuf_wake(struct lgr *);
/* All rings of the group on a new or freed link: 0 or a negative errno. */
int sndbuf_register_all(struct lgr *, struct link *);
void sndbuf_deregister_all(struct lgr *, struct link *);
void sndbuf_free_all(struct lgr *);
