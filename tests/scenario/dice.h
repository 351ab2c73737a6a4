/* The random draws that plans are made of. */
#pragma once

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

/* One of from..to, small ones as likely as large ones. */
static inline uint32_t
scale(struct rng *r, uint32_t from, uint32_t to)
{
	uint32_t span = to - from + 1, bits = 0;

	while (bits < 31 && span >> bits > 1)
		bits++;
	span = rng_below(r, (bits == 31 ? span : 1u << rng_below(r, bits + 1)));
	return from + (span > to - from ? to - from : span);
}
