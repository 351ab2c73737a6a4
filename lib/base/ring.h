/* Rings of a power of two, so that their counters may wrap: place = counter & mask. */
#pragma once

#include <stdint.h>

/* The mask of the smallest ring that takes n. */
static inline uint32_t
ring_mask(uint32_t n)
{
	uint32_t cap = 1;

	while (cap < n)
		cap *= 2;
	return cap - 1;
}
