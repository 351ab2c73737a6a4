/* Minimum and maximum of two numbers of one type. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define MINMAX(name, type)                            \
	static inline type min_##name(type a, type b) \
	{                                             \
		return a < b ? a : b;                 \
	}                                             \
	static inline type max_##name(type a, type b) \
	{                                             \
		return a > b ? a : b;                 \
	}

MINMAX(u8, uint8_t)
MINMAX(u16, uint16_t)
MINMAX(u32, uint32_t)
MINMAX(u64, uint64_t)
MINMAX(i64, int64_t)
MINMAX(size, size_t)

#undef MINMAX
