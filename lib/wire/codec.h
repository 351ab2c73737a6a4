/* A cursor for both directions. A layout is written once, `m->x = codec_be32(c, m->x)`, and reads or writes, so that
 * the two cannot differ. A value out of range or a false condition sets `bad`. */
#pragma once

#include "base/span.h"

struct codec {
	bool writes;
	bool bad;
	uint8_t flags; /* of the message header: input of a reader, output of a writer */
	struct rcur r;
	struct wcur w;
};

static inline struct codec
codec_reader(struct rcur r, uint8_t flags)
{
	return (struct codec){ .r = r, .flags = flags };
}

static inline struct codec
codec_writer(void *buf, size_t len)
{
	return (struct codec){ .writes = true, .w = wcur_make(buf, len) };
}

/* Requires a condition on the fields, in either direction. */
static inline void
codec_need(struct codec *c, bool holds)
{
	c->bad = c->bad || !holds;
}

static inline uint64_t
codec_be(struct codec *c, uint64_t v, unsigned n)
{
	if (!c->writes)
		return rcur_be(&c->r, n);
	codec_need(c, n == 8 || v >> 8 * n == 0);
	wcur_be(&c->w, v, n);
	return v;
}

/* codec_u8(c, v) and so on: as in span.h. */
#define CODEC_INTEGER(name, type, n)                             \
	static inline type codec_##name(struct codec *c, type v) \
	{                                                        \
		return (type)codec_be(c, v, n);                  \
	}

SPAN_INTEGERS(CODEC_INTEGER)

#undef CODEC_INTEGER

static inline void
codec_bytes(struct codec *c, void *p, size_t n)
{
	if (c->writes)
		wcur_bytes(&c->w, p, n);
	else
		rcur_bytes(&c->r, p, n);
}

/* Reserved: zero when sent, ignored when received. */
static inline void
codec_reserved(struct codec *c, size_t n)
{
	if (c->writes)
		wcur_zero(&c->w, n);
	else
		rcur_skip(&c->r, n);
}

/* Bits of the header's flags. */
static inline bool
codec_flag(struct codec *c, uint8_t mask, bool on)
{
	if (c->writes && on)
		c->flags |= mask;
	return (c->flags & mask) != 0;
}
