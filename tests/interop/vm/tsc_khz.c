/*
 * Prints how fast this processor's time stamp counter runs, in kHz. An emulated machine has the host's counter, but measures it
 * while it boots, against a timer that stands still with it: on a busy host its clock would go up to 25 times too fast.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define TRIES 100
#define PAUSE_NS 200000000

static uint64_t
counter_now(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	return 0; /* the laboratory is for x86-64 */
#endif
}

/* The counter and the time at one moment, as near as can be: the shortest of some looks. */
static int64_t
look(uint64_t *counter)
{
	uint64_t shortest = UINT64_MAX;
	int64_t now = 0;

	for (int i = 0; i < TRIES; i++) {
		struct timespec ts;
		uint64_t before = counter_now(), after;

		(void)clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
		after = counter_now();
		if (after - before < shortest) {
			shortest = after - before;
			*counter = before + shortest / 2;
			now = (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
		}
	}
	return now;
}

int
main(void)
{
	struct timespec pause = { .tv_nsec = PAUSE_NS };
	uint64_t from = 0, to = 0;
	int64_t start = look(&from), end;

	(void)nanosleep(&pause, NULL);
	end = look(&to);
	printf("%llu\n", (unsigned long long)((double)(to - from) * 1e6 / (double)(end - start)));
	return 0;
}
