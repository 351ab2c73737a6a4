/*
 * Memory that runs out, everywhere in turn: a sweep runs the same thing again
 * and again, and lets the first allocation fail, then the second, until a run
 * has none left to fail. The test program is linked with $(SWEEP) and $(OOM_WRAP).
 */
#pragma once

#include "checks.h"
#include "tests/scenario/oom.h"

#define SWEEP_MAX 2000

struct sweep {
	uint64_t nth;
	uint64_t failed; /* before this run */
};

/* for (struct sweep s = { 0 }; sweep_next(&s);) { prepare; sweep_arm(&s); what may fail; sweep_over(&s); look } */
static inline bool
sweep_next(struct sweep *s)
{
	oom_disarm();
	if (s->nth > 0 && oom_failed() == s->failed)
		return false;
	ck_assert_uint_lt(++s->nth, SWEEP_MAX);
	s->failed = oom_failed();
	return true;
}

static inline void
sweep_arm(const struct sweep *s)
{
	oom_arm(s->nth, 1);
}

/* True when something has failed in this run. */
static inline bool
sweep_over(const struct sweep *s)
{
	oom_disarm();
	return oom_failed() != s->failed;
}
