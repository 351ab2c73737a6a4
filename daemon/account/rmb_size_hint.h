/*
 * What the RMB elements of a service's connections have turned out to need, for those that come (smcr_open.rmb_size_hint). A connection
 * that was held up by its window makes it larger at once; a row of connections that did not need as much makes it smaller. Pure.
 */
#pragma once

#include <stdint.h>

#define RMB_SIZE_HINT_ROW 64

struct rmb_size_hint {
	uint32_t bytes; /* a power of two; 0: nothing is known */
	uint32_t row;   /* connections that needed less, since one that did not */
};

/* A connection has ended that says this of itself: smcr_elem_need. */
static inline void
rmb_size_hint_learn(struct rmb_size_hint *n, uint32_t said)
{
	if (said == 0)
		return;
	if (said >= n->bytes) {
		*n = (struct rmb_size_hint){ .bytes = said };
	} else if (++n->row == RMB_SIZE_HINT_ROW) {
		n->bytes /= 2;
		n->row = 0;
	}
}
