/* An injected source of random numbers: the kernel's for the daemon, a seeded generator for replayable tests. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct rng {
	void (*fill)(struct rng *, void *dst, size_t len);
	uint64_t state; /* of the seeded generator */
};

/* Unpredictable numbers from the kernel (getrandom). */
void rng_init_kernel(struct rng *r);
/* The same sequence for the same seed; for tests only. */
void rng_init_seeded(struct rng *r, uint64_t seed);

uint64_t rng_u64(struct rng *r);
/* Uniform in 0..n-1; n > 0. */
uint32_t rng_below(struct rng *r, uint32_t n);
