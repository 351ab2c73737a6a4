/* FPDU encoder and send queue; see txq.h. */
#include "iwarp/txq.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* Maximum FPDU overhead: length field, DDP header, padding, CRC. */
#define OVERHEAD (MPA_LEN_LEN + DDP_HDR_MAX + 3 + MPA_CRC_LEN)

int
txq_init(struct txq *q, uint32_t size)
{
	*q = (struct txq){ .ring = { .size = size } };
	q->ring.mem = pages_alloc(size);
	return q->ring.mem == NULL ? -ENOMEM : 0;
}

void
txq_fini(struct txq *q)
{
	pages_free(q->ring.mem, q->ring.size);
}

void
txq_start(struct txq *q, bool crc, bool markers)
{
	assert(txq_empty(q));
	q->crc = crc;
	q->markers = markers;
	q->apart = false;
	q->pos = 0;
}

void
txq_rest(struct txq *q)
{
	if (txq_empty(q))
		pages_rest(&q->ring.used, q->ring.mem);
}

size_t
txq_ulpdu_max(const struct txq *q)
{
	/* A quarter, so that an FPDU can be written while the next ones are built. */
	return q->markers && q->ring.size / 4 < MPA_ULPDU_MAX ? q->ring.size / 4 : MPA_ULPDU_MAX;
}

bool
txq_room(const struct txq *q, size_t payload_len)
{
	/* With markers all payload goes through the ring. */
	size_t need = OVERHEAD + (payload_len <= TXQ_COPY_MAX || q->markers ? payload_len : 0);

	if (q->markers)
		need += MPA_MARKER_LEN * (2 + need / (MPA_MARKER_STEP - MPA_MARKER_LEN));
	return q->seg_head - q->seg_tail <= TXQ_SEGS - (TXQ_PIECES_MAX + 2) && copyring_room(&q->ring, need);
}

unsigned
txq_pieces(const struct iovec *v, unsigned cnt, size_t off, size_t len, struct iovec *out)
{
	unsigned n = 0;

	for (unsigned i = 0; i < cnt && len > 0; i++) {
		if (off >= v[i].iov_len) {
			off -= v[i].iov_len;
			continue;
		}
		size_t take = v[i].iov_len - off < len ? v[i].iov_len - off : len;
		out[n++] = (struct iovec){ .iov_base = (uint8_t *)v[i].iov_base + off, .iov_len = take };
		len -= take;
		off = 0;
	}
	return n;
}

uint8_t *
txq_payload_copy(const struct txq_payload *p, uint8_t *at)
{
	for (unsigned i = 0; i < p->cnt; i++) {
		if (p->v[i].iov_len == 0)
			continue; /* its base may be NULL, which memcpy does not allow */
		memcpy(at, p->v[i].iov_base, p->v[i].iov_len);
		at += p->v[i].iov_len;
	}
	return at;
}

static void
seg_put(struct txq *q, const uint8_t *ptr, size_t len, bool in_ring)
{
	struct txq_seg *last = &q->segs[(q->seg_head - 1) % TXQ_SEGS];

	q->bytes += len;
	if (in_ring && !txq_empty(q) && last->in_ring && last->ptr + last->len == ptr && !(q->apart && last->last)) {
		last->len += (uint32_t)len;
		last->ring_end = q->ring.head;
		return;
	}
	q->segs[q->seg_head % TXQ_SEGS] = (struct txq_seg){
		.ptr = ptr,
		.len = (uint32_t)len,
		.in_ring = in_ring,
		.ring_end = q->ring.head,
	};
	q->seg_head++;
}

static size_t
txq_put_header(uint8_t *at, const struct ddp_hdr *h, size_t payload_len)
{
	size_t n = ddp_encode(h, at + MPA_LEN_LEN);

	be16_put(at, (uint16_t)(n + payload_len));
	return MPA_LEN_LEN + n;
}

static void
put_crc(const struct txq *q, uint8_t *at, uint32_t crc)
{
	if (q->crc)
		mpa_crc_put(at, mpa_crc_value(crc));
	else
		memset(at, 0, MPA_CRC_LEN);
}

/* The whole FPDU as one run. */
static void
put_packed(struct txq *q, const struct ddp_hdr *h, const struct txq_payload *p)
{
	size_t hdr_len = MPA_LEN_LEN + (h->tagged ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN);
	size_t pad = mpa_pad(hdr_len - MPA_LEN_LEN + p->len);
	size_t len = hdr_len + p->len + pad + MPA_CRC_LEN;
	uint8_t *fpdu = copyring_take(&q->ring, len), *at = fpdu + hdr_len;

	(void)txq_put_header(fpdu, h, p->len);
	at = txq_payload_copy(p, at);
	memset(at, 0, pad);
	at += pad;
	put_crc(q, at, q->crc ? mpa_crc_update(MPA_CRC_INIT, fpdu, len - MPA_CRC_LEN) : 0);
	q->pos += (uint32_t)len;
	seg_put(q, fpdu, len, true);
}

/* Payload stays in place: header, payload pieces, trailer. */
static void
put_gathered(struct txq *q, const struct ddp_hdr *h, const struct txq_payload *p)
{
	size_t hdr_len = MPA_LEN_LEN + (h->tagged ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN);
	size_t pad = mpa_pad(hdr_len - MPA_LEN_LEN + p->len);
	uint32_t crc = MPA_CRC_INIT;
	uint8_t *at = copyring_take(&q->ring, hdr_len);

	(void)txq_put_header(at, h, p->len);
	seg_put(q, at, hdr_len, true);
	if (q->crc)
		crc = mpa_crc_update(crc, at, hdr_len);
	for (unsigned i = 0; i < p->cnt; i++) {
		if (q->crc)
			crc = mpa_crc_update(crc, p->v[i].iov_base, p->v[i].iov_len);
		seg_put(q, p->v[i].iov_base, p->v[i].iov_len, false);
	}
	at = copyring_take(&q->ring, pad + MPA_CRC_LEN);
	memset(at, 0, pad);
	if (q->crc)
		crc = mpa_crc_update(crc, at, pad);
	put_crc(q, at + pad, crc);
	seg_put(q, at, pad + MPA_CRC_LEN, true);
	q->pos += (uint32_t)(hdr_len + p->len + pad + MPA_CRC_LEN);
}

/* -- with markers -- */

struct marked {
	uint8_t *at;
	uint32_t pos;     /* in the stream, of *at */
	uint32_t len_pos; /* of the length field */
	bool started;     /* the length field is written */
};

static void
marked_marker(struct marked *m)
{
	uint32_t ptr = m->started ? m->pos - m->len_pos : 0;

	if (m->pos % MPA_MARKER_STEP != 0)
		return;
	be32_put(m->at, ptr & UINT16_MAX);
	m->at += MPA_MARKER_LEN;
	m->pos += MPA_MARKER_LEN;
}

static void
marked_bytes(struct marked *m, const uint8_t *src, size_t len)
{
	while (len > 0) {
		marked_marker(m);
		if (!m->started) {
			m->started = true;
			m->len_pos = m->pos;
		}
		size_t run = MPA_MARKER_STEP - m->pos % MPA_MARKER_STEP, n = run < len ? run : len;

		memcpy(m->at, src, n);
		m->at += n;
		m->pos += (uint32_t)n;
		src += n;
		len -= n;
	}
}

static void
put_marked(struct txq *q, const struct ddp_hdr *h, const struct txq_payload *p)
{
	static const uint8_t zeroes[4];
	uint8_t hdr[MPA_LEN_LEN + DDP_HDR_MAX];
	size_t hdr_len = txq_put_header(hdr, h, p->len);
	size_t len = mpa_fpdu_len(hdr_len - MPA_LEN_LEN + p->len);
	size_t total = len + MPA_MARKER_LEN * mpa_marker_cnt(q->pos, len);
	uint8_t *fpdu = copyring_take(&q->ring, total);
	struct marked m = { .at = fpdu, .pos = q->pos };

	marked_bytes(&m, hdr, hdr_len);
	for (unsigned i = 0; i < p->cnt; i++)
		marked_bytes(&m, p->v[i].iov_base, p->v[i].iov_len);
	marked_bytes(&m, zeroes, mpa_pad(hdr_len - MPA_LEN_LEN + p->len));
	marked_marker(&m); /* between padding and CRC: covered by the CRC */
	put_crc(q, m.at, q->crc ? mpa_crc_update(MPA_CRC_INIT, fpdu, total - MPA_CRC_LEN) : 0);
	q->pos += (uint32_t)total;
	seg_put(q, fpdu, total, true);
}

void
txq_put(struct txq *q, const struct ddp_hdr *h, const struct txq_payload *p)
{
	assert(p->cnt <= TXQ_PIECES_MAX);
	if (q->markers)
		put_marked(q, h, p);
	else if (p->len <= TXQ_COPY_MAX)
		put_packed(q, h, p);
	else
		put_gathered(q, h, p);
	q->segs[(q->seg_head - 1) % TXQ_SEGS].last = true;
}

unsigned
txq_gather(const struct txq *q, struct iovec *iov, unsigned max)
{
	unsigned n = 0;

	for (uint32_t i = q->seg_tail; i != q->seg_head && n < max; i++, n++) {
		const struct txq_seg *s = &q->segs[i % TXQ_SEGS];

		iov[n].iov_base = (void *)(uintptr_t)s->ptr;
		iov[n].iov_len = s->len;
		if (q->apart && s->last)
			return n + 1;
	}
	return n;
}

void
txq_sent(struct txq *q, size_t n)
{
	assert(n <= q->bytes);
	q->bytes -= n;
	while (n > 0) {
		struct txq_seg *s = &q->segs[q->seg_tail % TXQ_SEGS];

		if (n < s->len) {
			s->ptr += n;
			s->len -= (uint32_t)n;
			return;
		}
		n -= s->len;
		if (s->in_ring)
			q->ring.tail = s->ring_end;
		q->seg_tail++;
	}
	if (txq_empty(q))
		copyring_clear(&q->ring);
}
