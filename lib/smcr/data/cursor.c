/* Stream positions <-> RMBE cursors; see cursor.h. */
#include "smcr/data/cursor.h"

#include <errno.h>

struct cdc_cursor
cursor_encode(struct cursor_space s, uint64_t pos)
{
	return (struct cdc_cursor){
		.wrap = (uint16_t)(pos / s.usable),
		.count = cursor_offset(s, pos),
	};
}

int
cursor_decode(struct cursor_space s, struct cdc_cursor c, uint64_t low, uint64_t high, uint64_t *pos)
{
	uint64_t low_wraps = low / s.usable;
	int64_t wraps, at;

	if (c.count < s.base || c.count - s.base >= s.usable)
		return -EPROTO;
	/* The wire has the wraps modulo 65,536; a valid cursor is at most one wrap ahead of low. */
	wraps = (int64_t)low_wraps + (int16_t)(uint16_t)(c.wrap - low_wraps);
	at = wraps * (int64_t)s.usable + (int64_t)(c.count - s.base);
	if (at < (int64_t)low)
		return -ESTALE;
	if (at > (int64_t)high)
		return -EPROTO;
	*pos = (uint64_t)at;
	return 0;
}
