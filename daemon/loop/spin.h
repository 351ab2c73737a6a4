/* When the loop polls before it sleeps, as a wake-up takes the kernel longer than a short wait lasts. Polling takes
 * processor time from other tasks, possibly from the one that it waits for. So the time of polls without an event is
 * bounded, and polling pauses when other tasks needed the processor. Pure: the loop passes the time. */
#pragma once

#include <stdint.h>

#define SPIN_AUTO_NS 100000 /* about the cost of a sleep and a wake-up in a virtual machine */

struct spin_counters {
	uint64_t spins;   /* waits that began with a poll */
	uint64_t hits;    /* of these: ended by an event before the sleep */
	uint64_t wanted;  /* of these: given up because other tasks needed the processor */
	uint64_t spun_us; /* time spent polling */
};

struct spin {
	int64_t max_ns;    /* of one wait; 0: never */
	int64_t wait_ns;   /* average length of waits; each counts for at most a few times max_ns */
	int64_t budget_ns; /* time left for polls without an event */
	int64_t earned_ns; /* the budget was earned up to this time */
	int64_t off_ns;    /* no polling before this time */
	int64_t spun_ns;
	struct spin_counters ctr;
};

/* No wait is polled until some were short. Counters continue. */
void spin_init(struct spin *, int64_t max_ns, int64_t now_ns);

/* At the start of a wait: how long to poll before the sleep; 0: sleep at once. */
int64_t spin_begin(struct spin *, int64_t now_ns);

enum spin_end {
	SPIN_HIT,    /* an event came */
	SPIN_MISS,   /* no event came */
	SPIN_WANTED, /* another task ran between two polls; polling stopped */
};

/* At the end of the poll that began at from_ns. */
void spin_ended(struct spin *, int64_t from_ns, int64_t now_ns, enum spin_end);
/* At the end of the wait, polled or not. */
void spin_waited(struct spin *, int64_t from_ns, int64_t now_ns);
