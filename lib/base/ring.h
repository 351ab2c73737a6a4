/* Rings whose size is a power of two, so that counters may wrap: index = counter & mask. */
#pragma once

#include <stdint.h>

/* The mask of the smallest ring with n entries. */
static inline uint32_t
ring_mask(uint32_t n)
{
	uint32_t cap = 1;

	while (cap < n)
		cap *= 2;
	return cap - 1;
}
