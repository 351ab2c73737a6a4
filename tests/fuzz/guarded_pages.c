/* The product's pages (base/pages.h), in memory that sanitizers guard: the linker sends its calls here. */
#include <stdlib.h>

void *__wrap_pages_alloc(size_t len);
void __wrap_pages_free(void *p, size_t len);

void *
__wrap_pages_alloc(size_t len)
{
	return calloc(1, len);
}

void
__wrap_pages_free(void *p, size_t len)
{
	(void)len;
	free(p);
}
