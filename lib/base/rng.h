/* An injected source of random numbers: the kernel's, or in replayable tests a seeded one (tests/seeded_rng.h). */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct rng {
	void (*fill)(struct rng *, void *dst, size_t len);
	uint64_t state; /* of a seeded generator */
};

/* Unpredictable numbers from the kernel (getrandom). */
void rng_init_kernel(struct rng *r);

uint64_t rng_u64(struct rng *r);
/* Uniform in 0..n-1; n > 0. */
uint32_t rng_below(struct rng *r, uint32_t n);
