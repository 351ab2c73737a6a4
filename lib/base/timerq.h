/* Timers ordered by deadline: a binary heap of embedded timers. Reads no clock: the caller passes the time. Arming
 * needs heap space, which each owner reserves at creation; only the reservation can fail. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TIMERQ_NEVER INT64_MAX

struct timer {
	int64_t at_ns;
	size_t pos; /* heap index + 1; 0 = not armed */
	void (*fire)(struct timer *);
};

struct timerq {
	struct timer **heap;
	size_t len;
	size_t cap;
	size_t reserved; /* existing timers, armed or not */
};

void timerq_init(struct timerq *q);
void timerq_fini(struct timerq *q);

/* Reserves space for n more timers: 0 or -ENOMEM. Released with timerq_unreserve(). */
int timerq_reserve(struct timerq *q, size_t n);
void timerq_unreserve(struct timerq *q, size_t n);

/* fire is called once at the deadline; it may arm the timer again. */
void timer_init(struct timer *t, void (*fire)(struct timer *));
/* Arms, or moves an armed timer. Cannot fail: the space is reserved. */
void timer_arm(struct timerq *q, struct timer *t, int64_t at_ns);
void timer_cancel(struct timerq *q, struct timer *t);

static inline bool
timer_armed(const struct timer *t)
{
	return t->pos != 0;
}

/* Earliest deadline, or TIMERQ_NEVER. */
int64_t timerq_next(const struct timerq *q);
/* Fires all expired timers, earliest first. Timers armed meanwhile for now or earlier wait for the next call. */
void timerq_run(struct timerq *q, int64_t now_ns);
