/* The monotonic time of the system, for owners of a loop; protocol code is given the time. */
#pragma once

#include <stdint.h>
#include <time.h>

static inline int64_t
clock_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static inline int64_t
clock_ms(void)
{
	return clock_ns() / 1000000;
}
