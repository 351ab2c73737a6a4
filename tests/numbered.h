/* Bytes that say where in their stream they are, in the two pieces that the engine gives: written, and checked where they come out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

static inline uint8_t
numbered_byte(uint64_t pos)
{
	return (uint8_t)(pos * 31 + (pos >> 8) * 7 + (pos >> 16));
}

static inline uint8_t *
numbered_at(const struct iovec iov[2], size_t i)
{
	return i < iov[0].iov_len ? (uint8_t *)iov[0].iov_base + i : (uint8_t *)iov[1].iov_base + (i - iov[0].iov_len);
}

/* The first len bytes of both pieces, which are those from pos on in the stream. */
static inline void
numbered_fill(const struct iovec iov[2], size_t len, uint64_t pos)
{
	for (size_t i = 0; i < len; i++)
		*numbered_at(iov, i) = numbered_byte(pos + i);
}

static inline bool
numbered_holds(const struct iovec iov[2], size_t len, uint64_t pos)
{
	for (size_t i = 0; i < len; i++)
		if (*numbered_at(iov, i) != numbered_byte(pos + i))
			return false;
	return true;
}
