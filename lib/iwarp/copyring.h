/* Bytes that are copied by runs and let go in the same order, for send queues. A run never passes the end of the memory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pages.h"

struct copyring {
	uint8_t *mem; /* of pages; the owner's */
	uint32_t size;
	uint32_t head; /* end of the newest run */
	uint32_t tail; /* end of the newest run that was let go; whoever lets go knows the ends of its runs */
	struct pages_use used;
};

static inline bool
copyring_room(const struct copyring *r, size_t n)
{
	if (r->head >= r->tail)
		return r->size - r->head >= n || r->tail > n;
	return r->tail - r->head > n;
}

/* A run of n bytes, for which there is room; it ends at head. Where the end is too near it goes to the beginning. */
static inline uint8_t *
copyring_take(struct copyring *r, size_t n)
{
	uint8_t *at;

	if (r->head >= r->tail && r->size - r->head < n)
		r->head = 0;
	at = r->mem + r->head;
	r->head += (uint32_t)n;
	pages_touch(&r->used, r->head);
	return at;
}

/* The runs up to this end are done with. */
static inline void
copyring_free(struct copyring *r, uint32_t end)
{
	r->tail = end;
}

/* All are. */
static inline void
copyring_clear(struct copyring *r)
{
	r->head = r->tail = 0;
}

/* pages_rest, while nothing is in it. */
static inline void
copyring_rest(struct copyring *r)
{
	pages_rest(&r->used, r->mem);
}
