/* A generator with the same sequence for the same seed. */
#pragma once

#include <string.h>

#include "base/rng.h"

/* splitmix64 (public domain algorithm by Sebastiano Vigna). */
static inline void
seeded_fill(struct rng *r, void *dst, size_t len)
{
	for (uint8_t *p = dst; len > 0;) {
		uint64_t z = r->state += 0x9e3779b97f4a7c15u;
		size_t n = len < sizeof(z) ? len : sizeof(z);

		z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
		z = (z ^ z >> 27) * 0x94d049bb133111ebu;
		z ^= z >> 31;
		memcpy(p, &z, n);
		p += n;
		len -= n;
	}
}

static inline void
rng_init_seeded(struct rng *r, uint64_t seed)
{
	*r = (struct rng){ .fill = seeded_fill, .state = seed };
}
