/* Bounded cursors over byte buffers. A cursor that would cross its end sets `failed`, returns zeroes or writes nothing,
 * and stays failed: a codec reads straight through and checks once. Wire integers are big-endian. */
#pragma once

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A view of bytes that it does not own. */
struct span {
	const uint8_t *ptr;
	size_t len;
};

struct rcur {
	const uint8_t *p;
	const uint8_t *end;
	bool failed;
};

struct wcur {
	uint8_t *p;
	uint8_t *end;
	bool failed;
};

static inline struct rcur
rcur_make(const void *buf, size_t len)
{
	return (struct rcur){ .p = buf, .end = (const uint8_t *)buf + len };
}

static inline size_t
rcur_left(const struct rcur *r)
{
	return r->failed ? 0 : (size_t)(r->end - r->p);
}

/* Consumes n bytes: their address, or NULL if fewer are left. */
static inline const uint8_t *
rcur_take(struct rcur *r, size_t n)
{
	const uint8_t *at = r->p;

	if (r->failed || (size_t)(r->end - r->p) < n) {
		r->failed = true;
		return NULL;
	}
	r->p += n;
	return at;
}

static inline void
rcur_skip(struct rcur *r, size_t n)
{
	(void)rcur_take(r, n);
}

/* A reader of the next n bytes only; the parent skips them. */
static inline struct rcur
rcur_sub(struct rcur *r, size_t n)
{
	const uint8_t *at = rcur_take(r, n);

	if (at == NULL)
		return (struct rcur){ .failed = true };
	return rcur_make(at, n);
}

static inline void
rcur_bytes(struct rcur *r, void *dst, size_t n)
{
	const uint8_t *at = rcur_take(r, n);

	if (at != NULL)
		memcpy(dst, at, n);
	else
		memset(dst, 0, n);
}

static inline uint64_t
rcur_be(struct rcur *r, unsigned n)
{
	const uint8_t *at = rcur_take(r, n);
	uint64_t v = 0;

	for (unsigned i = 0; at != NULL && i < n; i++)
		v = v << 8 | at[i];
	return v;
}

static inline struct wcur
wcur_make(void *buf, size_t len)
{
	return (struct wcur){ .p = buf, .end = (uint8_t *)buf + len };
}

static inline uint8_t *
wcur_take(struct wcur *w, size_t n)
{
	uint8_t *at = w->p;

	if (w->failed || (size_t)(w->end - w->p) < n) {
		w->failed = true;
		return NULL;
	}
	w->p += n;
	return at;
}

static inline void
wcur_bytes(struct wcur *w, const void *src, size_t n)
{
	uint8_t *at = wcur_take(w, n);

	if (at != NULL && n > 0)
		memcpy(at, src, n);
}

static inline void
wcur_zero(struct wcur *w, size_t n)
{
	uint8_t *at = wcur_take(w, n);

	if (at != NULL && n > 0)
		memset(at, 0, n);
}

static inline void
wcur_be(struct wcur *w, uint64_t v, unsigned n)
{
	uint8_t *at = wcur_take(w, n);

	for (unsigned i = 0; at != NULL && i < n; i++)
		at[i] = (uint8_t)(v >> (8 * (n - 1 - i)));
}

/* rcur_u8(r), wcur_u8(w, v) and so on: big-endian integers of 1, 2, 3 (in a uint32_t), 4 and 8 bytes. */
#define SPAN_INTEGER(name, type, n)                            \
	static inline type rcur_##name(struct rcur *r)         \
	{                                                      \
		return (type)rcur_be(r, n);                    \
	}                                                      \
	static inline void wcur_##name(struct wcur *w, type v) \
	{                                                      \
		wcur_be(w, v, n);                              \
	}

#define SPAN_INTEGERS(X) \
	X(u8, uint8_t, 1) X(be16, uint16_t, 2) X(be24, uint32_t, 3) X(be32, uint32_t, 4) X(be64, uint64_t, 8)

SPAN_INTEGERS(SPAN_INTEGER)

#undef SPAN_INTEGER

/* be16_get(p), be16_put(p, v) and so on: without bounds check, for data path codecs that check the length once and use
 * fixed offsets. Compilers turn each into one load or store and a byte swap. */
#define SPAN_FIXED(bits)                                                \
	static inline uint##bits##_t be##bits##_get(const uint8_t *p)   \
	{                                                               \
		uint##bits##_t v;                                       \
		memcpy(&v, p, sizeof(v));                               \
		return be##bits##toh(v);                                \
	}                                                               \
	static inline void be##bits##_put(uint8_t *p, uint##bits##_t v) \
	{                                                               \
		v = htobe##bits(v);                                     \
		memcpy(p, &v, sizeof(v));                               \
	}

SPAN_FIXED(16)
SPAN_FIXED(32)
SPAN_FIXED(64)

#undef SPAN_FIXED
