/*
 * How large elements and send rings are: the windows of a connection (RFC 7609 4.1, 4.5), where the operator leaves that to us.
 * RFC 7609 has no way to resize the element of a live connection, so it is chosen well at the start; doc/engine.md says how.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct lgr;
struct smcr_conn;

#define WINDOW_SMALL \
	(64u * 1024) /* up to this, an element or a ring is small: it is not made smaller for want of memory */

/* What the user of a connection says of its element: struct smcr_open. */
struct window_want {
	uint32_t elem_size, rmb_size_hint;
	int64_t rtt_ns;
};

/* Bytes of the element of such a connection in this group: as its user has set, else as path, devices, peer, history and memory
 * suggest. A power of two. *less, which may be NULL: there is too little memory for what the others suggest. */
uint32_t window_elem_size(const struct lgr *, struct window_want, bool *less);
/* How many elements the group's next RMB of this size should have: the first is small, later ones grow, as long as there is
 * memory. */
uint32_t window_next_cnt(const struct lgr *, uint32_t elem_size);
/* Bytes of the send ring that the connection borrows. A power of two, or as configured. */
uint32_t window_ring_size(const struct smcr_conn *);
/* What the limits of the engine and of the group leave for elements, small ones or others. */
uint64_t window_elem_room(const struct lgr *, bool small);
/* The same for rings that are not small: of those there may be one for each connection whatever the limits are, so that nobody goes
 * without because somebody else has many. */
uint64_t window_ring_room(const struct lgr *);
/* A writer of ours at the other end is so far away that the word of what was consumed should rather go early than with other
 * words. */
bool window_is_far(const struct lgr *);
/* Memory of the group is pinned by a device: its pages stay as they are. */
bool window_is_pinned(const struct lgr *);
