/* A small Write that is read where it arrived. A soft device may leave the bytes of a Write in its own buffer and note them in
 * the unit's record (struct rnic_mr.unplaced), so that the memory of a reader that is never behind stays untouched. The
 * device places them before it reuses the buffer; the region's user places or drops them whenever it likes. A record is the
 * last Write into its unit: an earlier one is placed before. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "base/list.h"

#define RNIC_UNPLACED_MAX 4096 /* longer ones are placed at once */

/* Zeroed: none. */
struct rnic_unplaced {
	struct list_node node; /* of the device's buffer; linked while len > 0 */
	uint8_t *to;           /* in the region */
	const uint8_t *from;
	uint32_t len;
	uint8_t *end; /* NULL, or the end of the highest one that was placed */
};

static inline void
rnic_unplaced_drop(struct rnic_unplaced *u)
{
	if (u->len > 0)
		list_remove(&u->node);
	u->len = 0;
}

static inline void
rnic_unplaced_place(struct rnic_unplaced *u)
{
	if (u->len == 0)
		return;
	memcpy(u->to, u->from, u->len);
	if (u->end == NULL || u->end < u->to + u->len)
		u->end = u->to + u->len;
	rnic_unplaced_drop(u);
}

/* All of a device's buffer that is about to be reused. */
static inline void
rnic_unplaced_place_all(struct list_node *buffer)
{
	struct rnic_unplaced *u;

	while ((u = LIST_FIRST(struct rnic_unplaced, buffer, node)) != NULL)
		rnic_unplaced_place(u);
}

/* The first len bytes were read where they arrived. */
static inline void
rnic_unplaced_consume(struct rnic_unplaced *u, uint32_t len)
{
	if (len == u->len) {
		rnic_unplaced_drop(u);
		return;
	}
	u->to += len;
	u->from += len;
	u->len -= len;
}
