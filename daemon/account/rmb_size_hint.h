/* RMB element size needed by a service's connections, a hint for new ones (smcr_open.rmb_size_hint). A connection
 * limited by its window raises it at once; RMB_SIZE_HINT_ROW connections that needed less halve it. Pure. */
#pragma once

#include <stdint.h>

#define RMB_SIZE_HINT_ROW 64

struct rmb_size_hint {
	uint32_t bytes; /* a power of two; 0: unknown */
	uint32_t row;   /* consecutive connections that needed less */
};

/* At the end of a connection; need: its smcr_elem_need. */
static inline void
rmb_size_hint_learn(struct rmb_size_hint *n, uint32_t need)
{
	if (need == 0)
		return;
	if (need >= n->bytes) {
		*n = (struct rmb_size_hint){ .bytes = need };
	} else if (++n->row == RMB_SIZE_HINT_ROW) {
		n->bytes /= 2;
		n->row = 0;
	}
}
