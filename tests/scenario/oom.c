/* The linker sends the engine's allocations here (--wrap); see oom.h. What is simulated uses aligned_alloc. */
#include "tests/scenario/oom.h"

#include <stddef.h>
#include <sys/mman.h>
#include <sys/types.h>

static struct {
	uint64_t wait, left, failed;
} oom;

static _Thread_local bool suspended;

void *__real_malloc(size_t);
void *__real_calloc(size_t, size_t);
void *__real_realloc(void *, size_t);
void *__real_mmap(void *, size_t, int, int, int, off_t);
void *__wrap_malloc(size_t);
void *__wrap_calloc(size_t, size_t);
void *__wrap_realloc(void *, size_t);
void *__wrap_mmap(void *, size_t, int, int, int, off_t);

void
oom_arm(uint64_t nth, uint64_t cnt)
{
	oom.wait = nth > 0 ? nth - 1 : 0;
	oom.left = cnt;
}

void
oom_disarm(void)
{
	oom.left = 0;
}

void
oom_suspend(bool on)
{
	suspended = on;
}

uint64_t
oom_failed(void)
{
	return oom.failed;
}

static bool
fails(void)
{
	if (oom.left == 0 || suspended)
		return false;
	if (oom.wait > 0) {
		oom.wait--;
		return false;
	}
	oom.left--;
	oom.failed++;
	return true;
}

void *
__wrap_malloc(size_t len)
{
	return fails() ? NULL : __real_malloc(len);
}

void *
__wrap_calloc(size_t n, size_t len)
{
	return fails() ? NULL : __real_calloc(n, len);
}

void *
__wrap_realloc(void *p, size_t len)
{
	return fails() ? NULL : __real_realloc(p, len);
}

void *
__wrap_mmap(void *at, size_t len, int prot, int flags, int fd, off_t off)
{
	return fails() ? MAP_FAILED : __real_mmap(at, len, prot, flags, fd, off);
}
