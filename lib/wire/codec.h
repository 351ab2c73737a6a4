/*
 * A cursor for both directions: the layout of a message is written down once and reads or writes, so that the two cannot
 * differ. Each field is `m->x = codec_be32(c, m->x)`: a reader returns what it found, a writer what it was given. A value
 * that does not fit, or a condition that does not hold, sets `bad`. Used by the codecs of lib/wire.
 */
#ifndef SMCRD_WIRE_CODEC_H
#define SMCRD_WIRE_CODEC_H

#include "base/span.h"

struct codec {
	bool writes;
	bool bad;
	uint8_t flags; /* of the message's header: given to a reader, collected by a writer */
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

/* What has to hold, whatever the direction. */
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

static inline uint8_t
codec_u8(struct codec *c, uint8_t v)
{
	return (uint8_t)codec_be(c, v, 1);
}

static inline uint16_t
codec_be16(struct codec *c, uint16_t v)
{
	return (uint16_t)codec_be(c, v, 2);
}

static inline uint32_t
codec_be24(struct codec *c, uint32_t v)
{
	return (uint32_t)codec_be(c, v, 3);
}

static inline uint32_t
codec_be32(struct codec *c, uint32_t v)
{
	return (uint32_t)codec_be(c, v, 4);
}

static inline uint64_t
codec_be64(struct codec *c, uint64_t v)
{
	return codec_be(c, v, 8);
}

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

#endif
