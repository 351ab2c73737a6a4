/* A byte ring for send queues: runs are copied in and released in the same order. A run never wraps. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/pages.h"

struct copyring {
	uint8_t *mem; /* of pages, owned by the user of the ring */
	uint32_t size;
	uint32_t head; /* end of the newest run */
	uint32_t tail; /* end of the newest released run, set by the user of the ring, which keeps the ends */
	struct pages_use used;
};

static inline bool
copyring_room(const struct copyring *r, size_t n)
{
	if (r->head >= r->tail)
		return r->size - r->head >= n || r->tail > n;
	return r->tail - r->head > n;
}

/* A run of n bytes, for which there must be room; it ends at head. Starts at offset 0 if it would wrap. */
static inline uint8_t *
copyring_take(struct copyring *r, size_t n)
{
	if (r->head >= r->tail && r->size - r->head < n)
		r->head = 0;
	uint8_t *at = r->mem + r->head;
	r->head += (uint32_t)n;
	pages_touch(&r->used, r->head);
	return at;
}

/* Releases all runs. */
static inline void
copyring_clear(struct copyring *r)
{
	r->head = r->tail = 0;
}
