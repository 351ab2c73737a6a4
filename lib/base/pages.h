/* Page-aligned zeroed memory from the kernel, for buffers that are registered with an RNIC. */
#pragma once

#include <stddef.h>

/* len bytes of zeroes (rounded up to pages), touched only when used; NULL when memory is out. */
void *pages_alloc(size_t len);
void pages_free(void *p, size_t len);
/* Gives the whole pages behind the first one of [p, p + len), p at the start of a page, back to the kernel. What they hold is lost:
 * they read as zeroes when they are used again. */
void pages_give_back(void *p, size_t len);
/* Makes [p, p + len) read as zeroes; whole pages inside go back to the kernel when len is large. */
void pages_zero(void *p, size_t len);
