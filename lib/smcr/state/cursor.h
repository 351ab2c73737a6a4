/* RMBE cursors (RFC 7609 4.3, A.4): a 64-bit byte position in a connection's stream, which never wraps, against the
 * wire's wrap count and offset. Linux counts offsets from 0; the RFC from 4, as it skips an eye catcher. A writer that
 * starts over skips the rest of the element: the mapping adds the bytes skipped. Pure. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire/cdc.h"

/* How positions map into one RMB element. */
struct cursor_space {
	uint32_t base;   /* 0, or 4 with eye catchers */
	uint32_t usable; /* bytes of data in the element: size - base */
	uint64_t skipped;
};

static inline struct cursor_space
cursor_space(uint32_t elem_size, bool eye_catcher)
{
	uint32_t base = eye_catcher ? 4 : 0;

	return (struct cursor_space){ .base = base, .usable = elem_size - base };
}

/* Number of times that a writer at pos has passed the end of the element. */
static inline uint64_t
cursor_lap(struct cursor_space s, uint64_t pos)
{
	return (pos + s.skipped) / s.usable;
}

/* The writer at pos continues at the start of the element, unless it is there. */
static inline void
cursor_start_over(struct cursor_space *s, uint64_t pos)
{
	uint32_t in = (uint32_t)((pos + s->skipped) % s->usable);

	s->skipped += in > 0 ? s->usable - in : 0;
}

/* Offset in the element of stream position pos. */
static inline uint32_t
cursor_offset(struct cursor_space s, uint64_t pos)
{
	return s.base + (uint32_t)((pos + s.skipped) % s.usable);
}

/* Position -> wire form. */
static inline struct cdc_cursor
cursor_encode(struct cursor_space s, uint64_t pos)
{
	return (struct cdc_cursor){ .wrap = (uint16_t)cursor_lap(s, pos), .count = cursor_offset(s, pos) };
}

/* Wire form -> position, which must lie in [low, high] (high - low <= usable). 0 and *pos on success; -ESTALE when the
 * cursor is before low (an old message); -EPROTO when the offset is outside the element or the position above high. */
static inline int
cursor_decode(struct cursor_space s, struct cdc_cursor c, uint64_t low, uint64_t high, uint64_t *pos)
{
	if (c.count < s.base || c.count - s.base >= s.usable)
		return -EPROTO;
	/* The wire counts wraps modulo 65,536; a valid cursor is at most one wrap ahead of low. */
	uint64_t low_wraps = cursor_lap(s, low);
	int64_t wraps = (int64_t)low_wraps + (int16_t)(uint16_t)(c.wrap - low_wraps);
	int64_t at = wraps * (int64_t)s.usable + (int64_t)(c.count - s.base) - (int64_t)s.skipped;

	if (at < (int64_t)low)
		return -ESTALE;
	if (at > (int64_t)high)
		return -EPROTO;
	*pos = (uint64_t)at;
	return 0;
}
