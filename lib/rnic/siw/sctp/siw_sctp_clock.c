/* Time for libusrsctp. The library compares time that timers take with gettimeofday(), the wall clock: where that is
 * set back by some seconds, associations that retransmit die. So the program has its own, which goes on from the
 * wall clock's time at its first call as the monotonic clock does. Nothing else of smcrd calls it. */
#include <stdatomic.h>
#include <stdint.h>
#include <sys/time.h>
#include <time.h>

#define US 1000000
#define NS_PER_US 1000

static int64_t
clock_us(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * US + t.tv_nsec / NS_PER_US;
}

int
gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	static _Atomic int64_t ahead; /* of the monotonic clock; 0: not set yet */
	int64_t set = atomic_load(&ahead), us = clock_us(CLOCK_MONOTONIC);

	(void)zone;
	if (set == 0 && atomic_compare_exchange_strong(&ahead, &set, clock_us(CLOCK_REALTIME) - us))
		set = atomic_load(&ahead);
	us += set;
	*tv = (struct timeval){ .tv_sec = us / US, .tv_usec = us % US };
	return 0;
}
