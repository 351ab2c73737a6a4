/*
 * When the loop polls before it sleeps. A wake-up takes the kernel longer than a
 * short wait lasts, so a loop whose waits are short may look for events again
 * and again instead. That takes processor time from others, maybe from whom it
 * waits for: how much of it is in vain is bounded, and it stops for a while when
 * the processor was wanted by others meanwhile. Pure: the loop says the time.
 */
#pragma once

#include <stdint.h>

#define SPIN_AUTO_NS 100000 /* about what a sleep and a wake-up cost in a virtual machine */

struct spin_counters {
	uint64_t spins;   /* waits begun by polling */
	uint64_t hits;    /* of them: those that an event ended before the sleep */
	uint64_t wanted;  /* of them: those given up as others wanted the processor */
	uint64_t spun_us; /* time spent polling */
};

struct spin {
	int64_t max_ns;    /* of one wait; 0: never */
	int64_t wait_ns;   /* how long waits last, averaged; no wait counts for more than a few times max_ns */
	int64_t budget_ns; /* what may be spent in vain */
	int64_t earned_ns; /* until when the budget was earned */
	int64_t off_ns;    /* not before that time */
	int64_t spun_ns;
	struct spin_counters ctr;
};

/* No wait is polled until some were short. Counters go on. */
void spin_init(struct spin *, int64_t max_ns, int64_t now_ns);

/* A wait begins. How long to poll before it sleeps; 0: sleep at once. */
int64_t spin_begin(struct spin *, int64_t now_ns);

enum spin_end {
	SPIN_HIT,    /* an event came */
	SPIN_MISS,   /* none did */
	SPIN_WANTED, /* between two looks somebody else ran: no more looks were taken */
};

/* The poll that began at from_ns is over. */
void spin_ended(struct spin *, int64_t from_ns, int64_t now_ns, enum spin_end);
/* The wait, polled or not, is over. */
void spin_waited(struct spin *, int64_t from_ns, int64_t now_ns);
