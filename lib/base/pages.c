/* Anonymous memory maps; see pages.h. */
#include "base/pages.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096u
/* Below this size, zeroing costs less than a system call and a later page fault. */
#define GIVE_BACK_MIN (64u * 1024)

void *
pages_alloc(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	/* The first byte should use a small page, not a huge one. Fails on kernels without huge pages. */
	(void)madvise(p, len, MADV_NOHUGEPAGE);
	return p;
}

void
pages_give_back(void *p, size_t len)
{
	(void)madvise(p, (len + PAGE - 1) / PAGE * PAGE, MADV_DONTNEED);
}

void
pages_rest(struct pages_use *u, void *p)
{
	if (u->recent <= PAGE && u->dirty > PAGE) {
		pages_give_back((uint8_t *)p + PAGE, u->dirty - PAGE);
		u->dirty = PAGE;
	}
	u->recent = 0;
}

void
pages_free(void *p, size_t len)
{
	if (p != NULL)
		(void)munmap(p, len);
}

void
pages_zero(void *p, size_t len)
{
	uintptr_t from = ((uintptr_t)p + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
	uintptr_t to = ((uintptr_t)p + len) & ~(uintptr_t)(PAGE - 1);

	if (len < GIVE_BACK_MIN || to <= from || madvise((void *)from, to - from, MADV_DONTNEED) != 0) {
		memset(p, 0, len);
		return;
	}
	memset(p, 0, from - (uintptr_t)p);
	memset((void *)to, 0, (uintptr_t)p + len - to);
}
