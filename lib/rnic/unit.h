/* Units of a memory region: what software devices do with a remote Write, and where its bytes are. A small Write may stay
 * in the buffer where it arrived, as its unit's record, so that the memory of a reader that keeps up stays untouched. A
 * record is the last Write into its unit. The device places it before other bytes of the unit or of the buffer are
 * written; the engine reads it there, and may place or drop it at any time. */
#pragma once

#include <string.h>

#include "rnic/rnic.h"

#define RNIC_UNPLACED_MAX 4096 /* longer Writes are placed at once */

/* Zeroed, except for mem, at first. */
struct rnic_unit {
	uint8_t *mem;
	uint64_t placed; /* counts bytes written into the unit, before they are placed */
	uint32_t dirty;  /* bytes of mem that may be nonzero: the engine's, and of placed records */
	/* The record: these bytes belong at off. len 0: none; otherwise linked in its buffer's list. */
	uint32_t off, len;
	const uint8_t *from;
	struct list_node node;
};

static inline void
rnic_unit_drop(struct rnic_unit *u)
{
	if (u->len > 0)
		list_remove(&u->node);
	u->len = 0;
}

static inline void
rnic_unit_place(struct rnic_unit *u)
{
	if (u->len == 0)
		return;
	memcpy(u->mem + u->off, u->from, u->len);
	if (u->dirty < u->off + u->len)
		u->dirty = u->off + u->len;
	rnic_unit_drop(u);
}

/* Before the buffer is reused. */
static inline void
rnic_unit_place_all(struct list_node *buffer)
{
	LIST_EACH(struct rnic_unit, u, buffer, node)
		rnic_unit_place(u);
}

/* The record is exactly these bytes. */
static inline bool
rnic_unit_keeps(const struct rnic_unit *u, uint32_t off, uint64_t len)
{
	return u->len > 0 && u->off == off && u->len == len;
}

/* A remote Write of len > 0 bytes. True: it is refused (rnic_mr.deny). False: it is counted, and older ones are placed,
 * whatever link they came over. rest: of a Write that was counted as a whole. *at becomes NULL if its bytes stay at `from`, in this buffer; NULL: they may not. */
static inline bool
rnic_mr_refuses(const struct rnic_mr *mr, size_t off, size_t len, bool rest, const uint8_t *from,
    struct list_node *buffer, uint8_t **at)
{
	if (mr->deny_unit == 0)
		return false;
	size_t first = off / mr->deny_unit, last = (off + len - 1) / mr->deny_unit;
	for (size_t i = first; i <= last && i < sizeof(mr->deny) * 8; i++)
		if ((mr->deny[i / 64] >> i % 64 & 1) != 0)
			return true;
	for (size_t i = first; mr->units != NULL && i <= last; i++) {
		rnic_unit_place(&mr->units[i]);
		mr->units[i].placed += rest ? 0 : len;
	}
	if (mr->units == NULL || from == NULL || buffer == NULL || first != last || len > RNIC_UNPLACED_MAX)
		return false;
	struct rnic_unit *u = &mr->units[first];
	u->off = (uint32_t)(off % mr->deny_unit);
	u->len = (uint32_t)len;
	u->from = from;
	list_push(buffer, &u->node);
	*at = NULL;
	return false;
}
