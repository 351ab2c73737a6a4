/* Page-aligned zeroed memory from the kernel, for buffers registered with an RNIC. */
#pragma once

#include <stddef.h>

/* len zeroed bytes, rounded up to pages, populated on first use; NULL if memory is exhausted. */
void *pages_alloc(size_t len);
void pages_free(void *p, size_t len);
/* Returns all pages of [p, p + len) to the kernel: they read as zeroes. p is page-aligned. */
void pages_give_back(void *p, size_t len);

/* High-water marks of a page buffer. Zeroed at first. */
struct pages_use {
	size_t dirty;  /* since the last return to the kernel */
	size_t recent; /* since the last pages_rest() */
};

static inline void
pages_touch(struct pages_use *u, size_t to)
{
	if (to > u->dirty)
		u->dirty = to;
	if (to > u->recent)
		u->recent = to;
}

/* Called periodically while the content of the buffer is unused. Returns all but the first page to the kernel if no
 * more was touched since the last call. */
void pages_rest(struct pages_use *, void *p);

/* Makes [p, p + len) read as zeroes; returns whole pages to the kernel if len is large. */
void pages_zero(void *p, size_t len);
