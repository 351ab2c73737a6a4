/* See mpa_rival.h. */
#include "mpa_rival.h"

#include <string.h>

#include "base/span.h"
#include "fuzz.h"
#include "sockets.h"

static const struct twist_field frame_fields[] = { { 0, 1 }, { 16, 1 }, { 17, 1 }, { 18, 2 }, { 20, 2 }, { 22, 2 },
	{ 24, 4 }, { 28, 1 }, { 29, 1 }, { 30, 2 }, { 32, 4 }, { 36, 4 }, { 40, 8 }, { 48, 4 }, { 52, 4 }, { 0, 0 } };
static const struct twist_field tagged_fields[] = { { 0, 1 }, { 1, 1 }, { 2, 4 }, { 6, 8 }, { 0, 0 } };
static const struct twist_field untagged_fields[] = { { 0, 1 }, { 1, 1 }, { 2, 4 }, { 6, 4 }, { 10, 4 }, { 14, 4 },
	{ 18, 4 }, { 22, 8 }, { 30, 4 }, { 34, 4 }, { 38, 8 }, { 0, 0 } };

/* -- what the device sends -- */

static void
take_ulpdu(struct mpa_rival *r, struct span ulpdu)
{
	struct ddp_hdr h;
	int n = ddp_decode(ulpdu, &h);

	FUZZ_CHECK(n > 0); /* what the device sends is always well formed */
	if (h.tagged)
		return;
	if (h.qn == RDMAP_QN_SEND)
		r->got_sends++;
	if (h.qn == RDMAP_QN_READ && r->read_cnt < MPA_RIVAL_READS)
		if (rdmap_read_decode((struct span){ ulpdu.ptr + n, ulpdu.len - (size_t)n }, &r->reads[r->read_cnt]) >
		    0)
			r->read_cnt++;
}

static void
take_fpdus(struct mpa_rival *r)
{
	size_t off = 0, need;
	struct span ulpdu;
	ssize_t n;

	while ((n = fpdu_rx_next(&r->rx, r->in + off, r->in_len - off, &ulpdu, &need)) > 0) {
		take_ulpdu(r, ulpdu);
		off += (size_t)n;
	}
	FUZZ_CHECK(n == 0);
	memmove(r->in, r->in + off, r->in_len - off);
	r->in_len -= off;
}

static void
begin(struct mpa_rival *r)
{
	if (r->started || !r->said || !r->heard)
		return;
	r->started = true;
	r->rx = (struct fpdu_rx){ .crc = r->crc, .markers = r->markers_rx };
}

static void
take_frame(struct mpa_rival *r)
{
	int n = mpa_frame_decode((struct span){ r->in, r->in_len }, r->active ? MPA_REPLY : MPA_REQUEST, &r->frame);

	FUZZ_CHECK(n >= 0);
	if (n == 0)
		return;
	(void)mpa_pdata_decode(r->frame.pd, &r->pdata);
	memmove(r->in, r->in + n, r->in_len - (size_t)n);
	r->in_len -= (size_t)n;
	r->heard = true;
	r->crc = r->crc || (r->frame.flags & MPA_CRC) != 0;
	r->markers_tx = (r->frame.flags & MPA_MARKERS) != 0;
	begin(r);
}

bool
mpa_rival_turn(struct mpa_rival *r)
{
	size_t n;
	bool news = false;

	if (r->fd < 0)
		return false;
	while ((n = sockets_recv(r->fd, r->in + r->in_len, sizeof(r->in) - r->in_len)) > 0) {
		r->in_len += n;
		news = true;
		if (!r->heard)
			take_frame(r);
		if (r->started)
			take_fpdus(r);
	}
	return news;
}

/* -- start-up -- */

void
mpa_rival_frame(struct mpa_rival *r, unsigned opts, unsigned rtr, struct twists *tw,
    void (*gather)(struct lore *, void *), void *ctx)
{
	struct mpa_pdata d = { .recv_depth = 16,
		.qpn = r->active ? r->qpn : r->pdata.from_qpn,
		.psn = r->psn,
		.token = r->token,
		.from_qpn = r->active ? 77 : r->pdata.qpn,
		.ulpdu_max = 16384 };
	struct mpa_frame f = { .kind = r->active ? MPA_REQUEST : MPA_REPLY,
		.rev = (opts & FRAME_REV_1) != 0 ? 1 : 2,
		.flags = ((opts & FRAME_NO_CRC) != 0 ? 0u : MPA_CRC) |
		    ((opts & FRAME_MARKERS) != 0 ? MPA_MARKERS : 0u) | ((opts & FRAME_REJECT) != 0 ? MPA_REJECT : 0u) |
		    ((opts & FRAME_REV_1) != 0 ? 0u : MPA_ENHANCED),
		.enh = { .model = (opts & FRAME_NO_P2P) != 0 ? 0u : ENHANCED_P2P | rtr, .ird = 4, .ord = 4 } };
	uint8_t pd[MPA_PDATA_LEN], out[MPA_FRAME_MAX + 8];

	if ((opts & FRAME_REV_1) != 0)
		f.enh = (struct enhanced){ 0 };
	mpa_pdata_encode(&d, pd);
	if ((opts & FRAME_NO_PDATA) == 0)
		f.pd = (struct span){ pd, sizeof(pd) };
	int n = mpa_frame_encode(&f, out, MPA_FRAME_MAX);
	if (n < 0)
		return;
	twist_apply(tw, frame_fields, 0, out, (size_t)n, gather, ctx);
	r->crc = r->crc || (out[MPA_KEY_LEN] & MPA_CRC) != 0;
	r->markers_rx = (out[MPA_KEY_LEN] & MPA_MARKERS) != 0;
	if ((opts & FRAME_MORE) != 0) {
		memset(out + n, 0, 8);
		n += 8;
	}
	(void)sockets_send(r->fd, out, (size_t)n - ((opts & FRAME_CUT) != 0 ? 3 : 0));
	r->said = true;
	begin(r);
}

/* -- FPDUs -- */

/* With markers where the device wants them (RFC 5044 4.3), and the check value over all of it. */
static void
send_fpdu(struct mpa_rival *r, const uint8_t *ulpdu, size_t len, unsigned how)
{
	static uint8_t plain[MPA_FPDU_MAX + 16], out[MPA_FPDU_MAX + 16];
	size_t total = MPA_LEN_LEN + len + mpa_pad(len), n = 0, start = 0;
	bool first = true;

	memset(plain, 0, total);
	be16_put(plain, (uint16_t)(len + ((how & FPDU_BAD_LEN) != 0 ? 5 : 0)));
	memcpy(plain + MPA_LEN_LEN, ulpdu, len);
	for (size_t i = 0; i < total + MPA_CRC_LEN; i++) {
		if (r->markers_tx && (r->pos + n) % MPA_MARKER_STEP == 0 && (how & FPDU_NO_MARKER) == 0) {
			/* A marker in front of it belongs to the FPDU, too. */
			be32_put(out + n, first ? 0 : (uint32_t)(n - start));
			n += MPA_MARKER_LEN;
			if (first)
				start = n;
		}
		first = false;
		if (i == total) {
			uint32_t sum = mpa_crc_value(mpa_crc_update(MPA_CRC_INIT, out, n));

			mpa_crc_put(plain + total, r->crc ? sum + ((how & FPDU_BAD_SUM) != 0) : 0);
		}
		out[n++] = plain[i];
	}
	r->pos += (uint32_t)n;
	(void)sockets_send(r->fd, out, n - ((how & FPDU_CUT) != 0 ? n / 3 : 0));
}

static size_t
read_request(const struct mpa_rival *r, uint8_t *at, size_t len, uint32_t off)
{
	struct rdmap_read q = { .sink_stag = 0x1234,
		.sink_to = 0x99,
		.size = (uint32_t)len,
		.src_stag = r->stag,
		.src_to = r->base + off };

	rdmap_read_encode(&q, at);
	return RDMAP_READ_LEN;
}

static size_t
terminate(uint8_t *at, size_t len)
{
	struct rdmap_term t = { .layer = len % 3, .etype = len / 3 % 4, .code = (uint8_t)(len / 12 % 10) };
	int n = rdmap_term_encode(&t, at);

	return n > 0 ? (size_t)n : 0;
}

static void
untagged(struct mpa_rival *r, struct ddp_hdr *h, uint32_t qn, uint32_t mo)
{
	h->qn = qn;
	h->msn = r->msn[qn] + 1;
	h->mo = mo;
	if (h->last)
		r->msn[qn]++;
}

void
mpa_rival_fpdu(struct mpa_rival *r, unsigned kind, unsigned how, size_t len, uint32_t mo, struct twists *tw,
    void (*gather)(struct lore *, void *), void *ctx)
{
	static const enum rdmap_op op[FPDU_KIND_CNT] = { RDMAP_WRITE, RDMAP_SEND, RDMAP_READ_REQ, RDMAP_READ_RESP,
		RDMAP_TERMINATE, RDMAP_SEND_SE, RDMAP_SEND_INV, RDMAP_WRITE };
	static uint8_t ulpdu[MPA_ULPDU_MAX];
	struct ddp_hdr h = {
		.last = (how & FPDU_NOT_LAST) == 0, .version = DDP_VERSION, .ulp_ctrl = rdmap_ctrl(op[kind])
	};
	uint8_t body[MPA_ULPDU_MAX - DDP_HDR_MAX];
	size_t n;

	if (len > sizeof(body))
		len = sizeof(body);
	memset(body, 'r', len);
	switch (kind) {
	case FPDU_KIND_WRITE:
		h.tagged = true;
		h.stag = r->stag;
		h.to = r->base + mo;
		break;
	case FPDU_KIND_EMPTY_WRITE:
		h.tagged = true;
		h.stag = 1;
		len = 0;
		break;
	case FPDU_KIND_ANSWER:
		if (r->read_cnt == 0)
			return;
		h.tagged = true;
		h.stag = r->reads[0].sink_stag;
		h.to = r->reads[0].sink_to;
		len = r->reads[0].size < len ? r->reads[0].size : len;
		r->read_cnt--;
		memmove(&r->reads[0], &r->reads[1], r->read_cnt * sizeof(r->reads[0]));
		break;
	case FPDU_KIND_READ:
		len = read_request(r, body, len, mo);
		untagged(r, &h, RDMAP_QN_READ, 0);
		break;
	case FPDU_KIND_TERMINATE:
		len = terminate(body, len);
		untagged(r, &h, RDMAP_QN_TERM, 0);
		break;
	default:
		h.ulp_word = kind == FPDU_KIND_SEND_INV ? r->stag : 0;
		untagged(r, &h, RDMAP_QN_SEND, mo);
		break;
	}
	n = ddp_encode(&h, ulpdu);
	memcpy(ulpdu + n, body, len);
	twist_apply(tw, h.tagged ? tagged_fields : untagged_fields, 1 + kind % 7, ulpdu, n + len, gather, ctx);
	send_fpdu(r, ulpdu, n + len, how);
}
