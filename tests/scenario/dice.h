/* What plans are drawn with. */
#ifndef SMCRD_TESTS_SCENARIO_DICE_H
#define SMCRD_TESTS_SCENARIO_DICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"

/* One of from..to. */
static inline uint32_t
even(struct rng *r, uint32_t from, uint32_t to)
{
	return from + rng_below(r, to - from + 1);
}

static inline bool
chance(struct rng *r, unsigned percent)
{
	return rng_below(r, 100) < percent;
}

#endif
