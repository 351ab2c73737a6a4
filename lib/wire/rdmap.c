/* RDMAP headers; see rdmap.h. */
#include "wire/rdmap.h"

#include <errno.h>

#include "base/str.h"
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

#define ERROR_ROW(name, number, words) { number, words },

/* The words of an error, or NULL. */
static const char *
find_words(unsigned error)
{
	static const struct str_word rows[] = { RDMAP_ERRORS(ERROR_ROW) };

	return str_word(rows, sizeof(rows) / sizeof(rows[0]), error, NULL);
}

/* A Terminate of siw without flags is recognized by its error code, which is unknown unless its nibbles are swapped. */
static void
term_flags(struct rdmap_term *t, uint8_t kind, uint8_t flags)
{
	const uint8_t swapped = (uint8_t)(kind << 4 | kind >> 4);

	if (flags == 0)
		t->swapped = find_words((unsigned)kind << 8 | t->code) == NULL &&
		    find_words((unsigned)swapped << 8 | t->code) != NULL;
	else
		t->swapped = (flags & 0xe0) == 0 && (flags & 0x07) != 0;
	if (t->swapped)
		kind = swapped;
	t->layer = kind >> 4;
	t->etype = kind & 0x0f;
	t->has_len = (flags & (t->swapped ? SIW_M : TERM_M)) != 0;
	t->has_ddp = (flags & (t->swapped ? SIW_D : TERM_D)) != 0;
	t->has_read = (flags & (t->swapped ? SIW_R : TERM_R)) != 0;
}

int
rdmap_term_decode(struct span in, struct rdmap_term *out)
{
	struct codec c = codec_reader(rcur_make(in.ptr, in.len), 0);
	struct rcur *r = &c.r;
	struct rdmap_term t = { 0 };
	uint8_t kind = rcur_u8(r);

	t.code = rcur_u8(r);
	term_flags(&t, kind, rcur_u8(r));
	rcur_skip(r, 1);
	if (t.has_len)
		t.seg_len = rcur_be16(r);
	if (t.has_ddp) {
		int n = ddp_decode((struct span){ .ptr = r->p, .len = rcur_left(r) }, &t.ddp);

		if (n <= 0)
			return -EPROTO;
		rcur_skip(r, (size_t)n);
	}
	if (t.has_read)
		lay_read(&c, &t.read);
	if (r->failed)
		return -EPROTO;
	*out = t;
	return (int)(r->p - in.ptr);
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
	if (t->has_read)
		rdmap_read_encode(&t->read, wcur_take(&w, RDMAP_READ_LEN));
	return (int)(w.p - out);
}

const char *
rdmap_term_str(uint8_t layer, uint8_t etype, uint8_t code)
{
	static const char *const layers[] = { "RDMAP error", "DDP error", "MPA error" };
	const char *words = find_words((unsigned)layer << 12 | (unsigned)etype << 8 | code);

	if (words != NULL)
		return words;
	return layer < sizeof(layers) / sizeof(layers[0]) ? layers[layer] : "unknown error";
}
