/* Sizes of elements and send rings: the windows of a connection (RFC 7609 4.1, 4.5), unless configured. As RFC 7609
 * cannot resize an element in use, its size is chosen at the start; doc/engine.md describes how. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct lgr;
struct smcr_conn;
struct smcr_open;

#define WINDOW_SMALL (64u * 1024) /* an element or ring up to this size is small: not reduced for lack of memory */

/* Size of such an element, a power of two: as requested, else chosen. *less, which may be NULL: memory limited it. */
uint32_t window_elem_size(const struct lgr *, const struct smcr_open *want, bool *less);
/* Number of elements of the group's next RMB of this size: few at first, more later, as far as memory allows. */
uint32_t window_next_cnt(const struct lgr *, uint32_t elem_size);
/* Size of the connection's send ring, regardless of memory: a power of two, or as configured. */
uint32_t window_ring_size(const struct smcr_conn *);
/* Of a new one in the place of that size: as far as memory allows. */
uint32_t window_ring_fits(const struct lgr *, uint32_t size);
/* Memory left for elements by the limits of engine and group, small ones or others. */
uint64_t window_elem_room(const struct lgr *, bool small);
/* Likewise for rings that are not small: one per connection is always allowed, so others cannot starve it. */
uint64_t window_ring_room(const struct lgr *);
/* The path is long: a writer at the other end gains from an early cursor update of its own. */
bool window_is_far(const struct lgr *);
/* A device pins memory of the group: pages cannot be returned. */
bool window_is_pinned(const struct lgr *);
