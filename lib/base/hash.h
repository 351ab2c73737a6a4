/* FNV-1a, the same in all daemons. No defence against inputs chosen to collide, unless the start is secret. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HASH_START 2166136261u

static inline uint32_t
hash_mix(uint32_t hash, const void *bytes, size_t len)
{
	for (const uint8_t *p = bytes; len > 0; p++, len--)
		hash = (hash ^ *p) * 16777619u;
	return hash;
}
