/* Page-aligned zeroed memory from the kernel, for buffers that are registered with an RNIC. */
#pragma once

#include <stddef.h>

/* len bytes of zeroes (rounded up to pages), touched only when used; NULL when memory is out. */
void *pages_alloc(size_t len);
void pages_free(void *p, size_t len);
/* Makes [p, p + len) read as zeroes; whole pages inside go back to the kernel when len is large. */
void pages_zero(void *p, size_t len);
