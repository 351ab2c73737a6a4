/* RDMAP headers; see rdmap.h. */
#include "wire/rdmap.h"

#include <errno.h>

#include "wire/codec.h"

enum {
	TERM_M = 0x80,
	TERM_D = 0x40,
	TERM_R = 0x20,
	/* the same, in the order of siw's bit-field struct */
	SIW_M = 0x01,
	SIW_D = 0x02,
	SIW_R = 0x04,
};

static void
lay_read(struct codec *c, struct rdmap_read *v)
{
	v->sink_stag = codec_be32(c, v->sink_stag);
	v->sink_to = codec_be64(c, v->sink_to);
	v->size = codec_be32(c, v->size);
	v->src_stag = codec_be32(c, v->src_stag);
	v->src_to = codec_be64(c, v->src_to);
}

int
rdmap_read_decode(struct span in, struct rdmap_read *out)
{
	struct codec c = codec_reader(rcur_make(in.ptr, in.len), 0);

	if (in.len < RDMAP_READ_LEN)
		return 0;
	lay_read(&c, out);
	return RDMAP_READ_LEN;
}

void
rdmap_read_encode(const struct rdmap_read *v, uint8_t out[RDMAP_READ_LEN])
{
	struct codec c = codec_writer(out, RDMAP_READ_LEN);
	struct rdmap_read copy = *v;

	lay_read(&c, &copy);
}

struct term_name {
	uint8_t layer, etype, code;
	const char *str;
};

/* RFC 5040 4.8, RFC 5041 7, RFC 5044 8, RFC 6581 8. */
static const struct term_name term_names[] = {
	{ 0, 1, 0x00, "remote protection error: invalid STag" },
	{ 0, 1, 0x01, "remote protection error: base or bounds" },
	{ 0, 1, 0x02, "remote protection error: access rights" },
	{ 0, 1, 0x03, "remote protection error: STag not associated with the stream" },
	{ 0, 1, 0x04, "remote protection error: TO wrap" },
	{ 0, 1, 0x09, "remote protection error: STag cannot be invalidated" },
	{ 0, 1, 0xff, "remote protection error" },
	{ 0, 2, 0x05, "remote operation error: invalid RDMAP version" },
	{ 0, 2, 0x06, "remote operation error: unexpected opcode" },
	{ 0, 2, 0x07, "remote operation error: catastrophic for the stream" },
	{ 0, 2, 0x08, "remote operation error: catastrophic" },
	{ 0, 2, 0x09, "remote operation error: STag cannot be invalidated" },
	{ 0, 2, 0xff, "remote operation error" },
	{ 1, 0, 0x00, "DDP: local catastrophic error" },
	{ 1, 1, 0x00, "DDP tagged buffer: invalid STag" },
	{ 1, 1, 0x01, "DDP tagged buffer: base or bounds" },
	{ 1, 1, 0x02, "DDP tagged buffer: STag not associated with the stream" },
	{ 1, 1, 0x03, "DDP tagged buffer: TO wrap" },
	{ 1, 1, 0x04, "DDP tagged buffer: invalid DDP version" },
	{ 1, 2, 0x01, "DDP untagged buffer: invalid queue number" },
	{ 1, 2, 0x02, "DDP untagged buffer: no buffer available" },
	{ 1, 2, 0x03, "DDP untagged buffer: invalid MSN" },
	{ 1, 2, 0x04, "DDP untagged buffer: invalid MO" },
	{ 1, 2, 0x05, "DDP untagged buffer: message too long" },
	{ 1, 2, 0x06, "DDP untagged buffer: invalid DDP version" },
	{ 2, 0, 0x01, "MPA: TCP connection lost" },
	{ 2, 0, 0x02, "MPA: CRC error" },
	{ 2, 0, 0x03, "MPA: marker and length field disagree" },
	{ 2, 0, 0x04, "MPA: invalid start-up frame" },
	{ 2, 0, 0x05, "MPA: local catastrophic error" },
	{ 2, 0, 0x06, "MPA: insufficient IRD" },
	{ 2, 0, 0x07, "MPA: no matching RTR option" },
};

/* The name of an error, or NULL. */
static const char *
rdmap_find_name(unsigned layer, unsigned etype, unsigned code)
{
	for (size_t i = 0; i < sizeof(term_names) / sizeof(term_names[0]); i++) {
		const struct term_name *n = &term_names[i];

		if (n->layer == layer && n->etype == etype && n->code == code)
			return n->str;
	}
	return NULL;
}

/* A Terminate of siw without flags is recognized by its error code, which is unknown unless its nibbles are swapped. */
static void
term_flags(struct rdmap_term *t, uint8_t kind, uint8_t flags)
{
	t->layer = kind >> 4;
	t->etype = kind & 0x0f;
	if (flags == 0)
		t->swapped = rdmap_find_name(t->layer, t->etype, t->code) == NULL &&
		    rdmap_find_name(t->etype, t->layer, t->code) != NULL;
	else
		t->swapped = (flags & 0xe0) == 0 && (flags & 0x07) != 0;
	if (t->swapped) {
		t->layer = kind & 0x0f;
		t->etype = kind >> 4;
		flags = (uint8_t)((flags & SIW_M ? TERM_M : 0) | (flags & SIW_D ? TERM_D : 0) |
		    (flags & SIW_R ? TERM_R : 0));
	}
	t->has_len = (flags & TERM_M) != 0;
	t->has_ddp = (flags & TERM_D) != 0;
	t->has_read = (flags & TERM_R) != 0;
}

int
rdmap_term_decode(struct span in, struct rdmap_term *out)
{
	struct rcur r = rcur_make(in.ptr, in.len);
	struct rdmap_term t = { 0 };
	uint8_t kind = rcur_u8(&r);

	t.code = rcur_u8(&r);
	term_flags(&t, kind, rcur_u8(&r));
	rcur_skip(&r, 1);
	if (t.has_len)
		t.seg_len = rcur_be16(&r);
	if (t.has_ddp) {
		int n = ddp_decode((struct span){ .ptr = r.p, .len = rcur_left(&r) }, &t.ddp);

		if (n <= 0)
			return -EPROTO;
		rcur_skip(&r, (size_t)n);
	}
	if (t.has_read) {
		struct rcur h = rcur_sub(&r, RDMAP_READ_LEN);

		if (!h.failed)
			(void)rdmap_read_decode((struct span){ .ptr = h.p, .len = RDMAP_READ_LEN }, &t.read);
	}
	if (r.failed)
		return -EPROTO;
	*out = t;
	return (int)(r.p - in.ptr);
}

int
rdmap_term_encode(const struct rdmap_term *t, uint8_t out[RDMAP_TERM_MAX])
{
	struct wcur w = wcur_make(out, RDMAP_TERM_MAX);

	if (t->layer > 15 || t->etype > 15 || (t->has_ddp && !t->has_len) || (t->has_read && !t->has_ddp))
		return -EINVAL;
	wcur_u8(&w, (uint8_t)(t->layer << 4 | t->etype));
	wcur_u8(&w, t->code);
	wcur_u8(&w, (uint8_t)((t->has_len ? TERM_M : 0) | (t->has_ddp ? TERM_D : 0) | (t->has_read ? TERM_R : 0)));
	wcur_u8(&w, 0);
	if (t->has_len)
		wcur_be16(&w, t->seg_len);
	if (t->has_ddp) {
		uint8_t hdr[DDP_HDR_MAX];
		size_t n = ddp_encode(&t->ddp, hdr);

		/* A wrong version is quoted as received. */
		hdr[0] = (uint8_t)((hdr[0] & ~3u) | (t->ddp.version & 3u));
		wcur_bytes(&w, hdr, n);
	}
	if (t->has_read) {
		uint8_t read[RDMAP_READ_LEN];

		rdmap_read_encode(&t->read, read);
		wcur_bytes(&w, read, sizeof(read));
	}
	return (int)(w.p - out);
}

const char *
rdmap_term_str(uint8_t layer, uint8_t etype, uint8_t code)
{
	static const char *const layers[] = { "RDMAP error", "DDP error", "MPA error" };
	const char *name = rdmap_find_name(layer, etype, code);

	if (name == NULL)
		name = layer < sizeof(layers) / sizeof(layers[0]) ? layers[layer] : "unknown error";
	return name;
}
