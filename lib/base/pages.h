/* Page-aligned zeroed memory from the kernel, for buffers that are registered with an RNIC. */
#pragma once

#include <stddef.h>

/* len bytes of zeroes (rounded up to pages), touched only when used; NULL when memory is out. */
void *pages_alloc(size_t len);
void pages_free(void *p, size_t len);
/* Gives the whole pages behind the first one of [p, p + len), p at the start of a page, back to the kernel. What they hold is lost:
 * they read as zeroes when they are used again. */
void pages_give_back(void *p, size_t len);

/* How much of a buffer of pages has been touched. Zeroed at first. */
struct pages_use {
	size_t dirty;  /* since it was given back last */
	size_t recent; /* since pages_rest was called last */
};

static inline void
pages_touch(struct pages_use *u, size_t to)
{
	if (to > u->dirty)
		u->dirty = to;
	if (to > u->recent)
		u->recent = to;
}

/* Called now and then while nothing in the buffer matters: gives it back but for its first page, when no more than that was
 * touched since the last call. */
void pages_rest(struct pages_use *, void *p);

/* Makes [p, p + len) read as zeroes; whole pages inside go back to the kernel when len is large. */
void pages_zero(void *p, size_t len);
