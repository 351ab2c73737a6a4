/* DDP/RDMAP stream; see stream.h. */
#include "iwarp/stream.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/pages.h"
#include "base/ring.h"

/* A segment during the checks. */
struct seg {
	struct ddp_hdr h;
	const uint8_t *payload;
	uint32_t len; /* of the payload */
	uint16_t ulpdu_len;
};

int
stream_init(struct stream *s, const struct stream_config *cfg)
{
	*s = (struct stream){ .cfg = *cfg };
	s->rq_mask = ring_mask(cfg->rq_depth);
	s->in_mask = ring_mask(cfg->ird_max);
	s->out_mask = ring_mask(cfg->ord_max);
	s->rq = pages_alloc(((size_t)s->rq_mask + 1) * sizeof(*s->rq));
	s->in_reads = calloc(s->in_mask + 1, sizeof(*s->in_reads));
	s->out_reads = calloc(s->out_mask + 1, sizeof(*s->out_reads));
	for (unsigned i = 0; i < RDMAP_QN_CNT; i++)
		s->rx_msn[i] = s->tx_msn[i] = 1; /* RFC 5041 4 */
	return s->rq == NULL || s->in_reads == NULL || s->out_reads == NULL ? -ENOMEM : 0;
}

void
stream_fini(struct stream *s)
{
	pages_free(s->rq, ((size_t)s->rq_mask + 1) * sizeof(*s->rq));
	free(s->in_reads);
	free(s->out_reads);
}

void
stream_start(struct stream *s, uint16_t ord, bool rtr_send)
{
	s->ord = ord < s->cfg.ord_max ? ord : s->cfg.ord_max;
	s->rtr_send = rtr_send;
}

void
stream_post_recv(struct stream *s, const struct stream_recv *r)
{
	assert(stream_recv_cnt(s) < s->cfg.rq_depth);
	s->rq[s->rq_head++ & s->rq_mask] = *r;
}

bool
stream_flush_recv(struct stream *s, struct stream_recv *out)
{
	if (s->rq_head == s->rq_tail)
		return false;
	*out = s->rq[s->rq_tail++ & s->rq_mask];
	s->rq_got = 0;
	return true;
}

/* -- errors -- */

/* The Terminate quotes the faulty segment; NULL: the error is in the layer below, which has no segments. */
static enum stream_rx
stream_fail(struct stream *s, const struct seg *g, unsigned error, struct rdmap_term *out)
{
	*out = (struct rdmap_term){
		.layer = (uint8_t)(error >> 12),
		.etype = (uint8_t)(error >> 8 & 0xf),
		.code = (uint8_t)error,
	};
	if (g != NULL) {
		out->has_len = out->has_ddp = true;
		out->seg_len = g->ulpdu_len;
		out->ddp = g->h;
	}
	s->dead = true;
	return STREAM_RX_ERROR;
}

/* Codes of DDP for a tagged segment, and of RDMAP for a Read. */
static const struct {
	uint16_t tagged, read;
} stag_errors[] = {
	[STAG_INVALID] = { .tagged = DDP_BAD_STAG, .read = RDMA_BAD_STAG },
	[STAG_WRONG_PD] = { .tagged = DDP_STAG_STREAM, .read = RDMA_STAG_STREAM },
	[STAG_NO_ACCESS] = { .tagged = DDP_BAD_STAG, .read = RDMA_ACCESS }, /* no DDP code for rights; as Linux */
	[STAG_WRAP] = { .tagged = DDP_TO_WRAP, .read = RDMA_TO_WRAP },
	[STAG_BOUNDS] = { .tagged = DDP_BOUNDS, .read = RDMA_BOUNDS },
	[STAG_REFUSED] = { .tagged = DDP_BOUNDS, .read = RDMA_ACCESS },
};

/* RFC 5040 4.8: the Read Request's own header goes with protection errors. */
static enum stream_rx
fail_read(
    struct stream *s, const struct seg *g, enum stag_verdict v, const struct rdmap_read *rd, struct rdmap_term *out)
{
	(void)stream_fail(s, g, stag_errors[v].read, out);
	out->has_read = true;
	out->read = *rd;
	return STREAM_RX_ERROR;
}

void
stream_fail_llp(struct stream *s, enum rdmap_error error, struct rdmap_term *out)
{
	(void)stream_fail(s, NULL, error, out);
}

/* Maximum ULPDU of the layer below. */
static size_t
ulpdu_max(const struct stream *s)
{
	return s->cfg.llp == STREAM_MPA ? MPA_ULPDU_MAX : UINT16_MAX;
}

/* -- what arrives -- */

/* Places the payload of a tagged segment. */
static enum stream_rx
place(struct stream *s, const struct seg *g, unsigned access, struct stream_ev *ev)
{
	uint8_t *at;
	enum stag_verdict v = stag_check(s->cfg.stags, s->cfg.pd, access, g->h.stag, g->h.to, g->len, g->payload, &at);

	if (v != STAG_OK)
		return stream_fail(s, g, stag_errors[v].tagged, &ev->term);
	if (at != NULL)
		memcpy(at, g->payload, g->len);
	return STREAM_RX_NONE;
}

static enum stream_rx
rx_write(struct stream *s, const struct seg *g, struct stream_ev *ev)
{
	/* RFC 5041 5.3: STag and TO of an empty one are not checked. */
	return g->len > 0 ? place(s, g, STAG_WRITE, ev) : STREAM_RX_NONE;
}

static enum stream_rx
rx_read_resp(struct stream *s, const struct seg *g, struct stream_ev *ev)
{
	struct rdmap_read *rd = &s->out_reads[s->out_tail & s->out_mask];

	if (stream_reads_out(s) == 0)
		return stream_fail(s, g, RDMA_OPCODE, &ev->term);
	if (g->len > 0) {
		if (g->h.stag != rd->sink_stag)
			return stream_fail(s, g, DDP_BAD_STAG, &ev->term);
		if (g->h.to != rd->sink_to || g->len > rd->size)
			return stream_fail(s, g, DDP_BOUNDS, &ev->term);
		if (place(s, g, 0, ev) != STREAM_RX_NONE)
			return STREAM_RX_ERROR;
		rd->sink_to += g->len;
		rd->size -= g->len;
	}
	if (!g->h.last)
		return STREAM_RX_NONE;
	if (rd->size != 0)
		return stream_fail(s, g, RDMA_UNSPECIFIED, &ev->term);
	s->out_tail++;
	return STREAM_RX_READ_DONE;
}

static enum stream_rx
rx_send(struct stream *s, const struct seg *g, struct stream_ev *ev)
{
	const struct stream_recv *r = &s->rq[s->rq_tail & s->rq_mask];
	unsigned op = rdmap_ctrl_op(g->h.ulp_ctrl);

	/* The RTR (RFC 6581 5) */
	if (s->rtr_send && !s->started && g->len == 0 && g->h.last && g->h.mo == 0 && g->h.msn == 1) {
		s->rx_msn[RDMAP_QN_SEND]++;
		return STREAM_RX_NONE;
	}
	if (stream_recv_cnt(s) == 0)
		return STREAM_RX_NO_RECV;
	if (g->h.mo != s->rq_got)
		return stream_fail(s, g, DDP_BAD_MO, &ev->term);
	if (g->len > r->len - s->rq_got)
		return stream_fail(s, g, DDP_TOO_LONG, &ev->term);
	if (g->len > 0)
		memcpy(r->ptr + s->rq_got, g->payload, g->len);
	s->rq_got += g->len;
	if (!g->h.last)
		return STREAM_RX_NONE;
	/* Our regions serve several streams: a peer must not invalidate one (RFC 5040 8.1.1). */
	if (op == RDMAP_SEND_INV || op == RDMAP_SEND_SE_INV)
		return stream_fail(s, g, RDMA_CANNOT_INVALIDATE, &ev->term);
	ev->wr_id = r->wr_id;
	ev->len = s->rq_got;
	s->rq_tail++;
	s->rq_got = 0;
	s->rx_msn[RDMAP_QN_SEND]++;
	return STREAM_RX_RECV;
}

static enum stream_rx
rx_read_req(struct stream *s, const struct seg *g, struct stream_ev *ev)
{
	struct rdmap_read rd;
	uint8_t *at;

	if (s->in_head - s->in_tail >= s->cfg.ird_max)
		return stream_fail(s, g, DDP_NO_BUFFER, &ev->term);
	if (g->h.mo != 0)
		return stream_fail(s, g, DDP_BAD_MO, &ev->term);
	if (g->len > RDMAP_READ_LEN)
		return stream_fail(s, g, DDP_TOO_LONG, &ev->term);
	if (!g->h.last || rdmap_read_decode((struct span){ .ptr = g->payload, .len = g->len }, &rd) <= 0)
		return stream_fail(s, g, RDMA_UNSPECIFIED, &ev->term);
	if (rd.size > 0) {
		enum stag_verdict v = stag_check(
		    s->cfg.stags, s->cfg.pd, STAG_READ, rd.src_stag, rd.src_to, rd.size, NULL, &at);

		if (v != STAG_OK)
			return fail_read(s, g, v, &rd, &ev->term);
	}
	s->rx_msn[RDMAP_QN_READ]++;
	s->in_reads[s->in_head++ & s->in_mask] = rd;
	return STREAM_RX_READ_REQ;
}

static enum stream_rx
rx_terminate(struct stream *s, const struct seg *g, struct stream_ev *ev)
{
	if (rdmap_term_decode((struct span){ .ptr = g->payload, .len = g->len }, &ev->term) < 0)
		(void)stream_fail(s, NULL, RDMA_UNSPECIFIED, &ev->term); /* truncated, but ends the stream */
	s->dead = true;
	return STREAM_RX_TERMINATED;
}

/* Segment type and queue of each operation. */
static const struct op {
	bool tagged;
	uint8_t qn; /* untagged */
	enum stream_rx (*rx)(struct stream *, const struct seg *, struct stream_ev *);
} ops[RDMAP_OP_CNT] = {
	[RDMAP_WRITE] = { .tagged = true, .rx = rx_write },
	[RDMAP_READ_REQ] = { .qn = RDMAP_QN_READ, .rx = rx_read_req },
	[RDMAP_READ_RESP] = { .tagged = true, .rx = rx_read_resp },
	[RDMAP_SEND] = { .qn = RDMAP_QN_SEND, .rx = rx_send },
	[RDMAP_SEND_INV] = { .qn = RDMAP_QN_SEND, .rx = rx_send },
	[RDMAP_SEND_SE] = { .qn = RDMAP_QN_SEND, .rx = rx_send },
	[RDMAP_SEND_SE_INV] = { .qn = RDMAP_QN_SEND, .rx = rx_send },
	[RDMAP_TERMINATE] = { .qn = RDMAP_QN_TERM, .rx = rx_terminate },
};

/* RFC 5041 7 and RFC 5040 7: checks before those of the operation. 0 = valid. */
static unsigned
header_error(const struct stream *s, const struct ddp_hdr *h)
{
	unsigned op = rdmap_ctrl_op(h->ulp_ctrl);

	if (h->version != DDP_VERSION)
		return h->tagged ? DDP_TAGGED_VERSION : DDP_UNTAGGED_VERSION;
	if (!h->tagged && h->qn >= RDMAP_QN_CNT)
		return DDP_BAD_QN;
	if (rdmap_ctrl_version(h->ulp_ctrl) != RDMAP_VERSION)
		return RDMA_VERSION;
	if (op >= RDMAP_OP_CNT || h->tagged != ops[op].tagged || (!h->tagged && h->qn != ops[op].qn))
		return RDMA_OPCODE;
	return !h->tagged && h->msn != s->rx_msn[h->qn] ? DDP_BAD_MSN : 0;
}

enum stream_rx
stream_ulpdu(struct stream *s, struct span ulpdu, struct stream_ev *ev)
{
	struct seg g;
	int n = ddp_decode(ulpdu, &g.h);

	assert(!s->dead);
	*ev = (struct stream_ev){ 0 };
	/* Too short for a DDP header: for MPA the length field is wrong. */
	if (n <= 0 || ulpdu.len > ulpdu_max(s))
		return stream_fail(s, NULL, s->cfg.llp == STREAM_MPA ? MPA_BAD_LENGTH : RDMA_STREAM, &ev->term);
	g.payload = ulpdu.ptr + n;
	g.len = (uint32_t)(ulpdu.len - (size_t)n);
	g.ulpdu_len = (uint16_t)ulpdu.len;
	unsigned error = header_error(s, &g.h);
	if (error != 0)
		return stream_fail(s, &g, error, &ev->term);
	enum stream_rx rc = ops[rdmap_ctrl_op(g.h.ulp_ctrl)].rx(s, &g, ev);
	if (rc != STREAM_RX_NO_RECV)
		s->started = true;
	return rc;
}

static bool
may_place(struct stream *s, const struct ddp_hdr *h, size_t payload_len, unsigned access, uint8_t **at)
{
	return h->version == DDP_VERSION && h->tagged && h->ulp_ctrl == rdmap_ctrl(RDMAP_WRITE) && payload_len > 0 &&
	    DDP_TAGGED_LEN + payload_len <= ulpdu_max(s) &&
	    stag_check(s->cfg.stags, s->cfg.pd, access, h->stag, h->to, payload_len, NULL, at) == STAG_OK;
}

bool
stream_place_early(struct stream *s, const struct ddp_hdr *h, size_t payload_len, uint8_t **at)
{
	return may_place(s, h, payload_len, STAG_WRITE, at);
}

bool
stream_place_rest(struct stream *s, const struct ddp_hdr *h, size_t payload_len, uint8_t **at)
{
	return may_place(s, h, payload_len, STAG_WRITE | STAG_REST, at);
}

void
stream_fail_place(struct stream *s, const struct ddp_hdr *h, size_t payload_len, struct rdmap_term *out)
{
	const struct seg g = { .h = *h, .ulpdu_len = (uint16_t)(DDP_TAGGED_LEN + payload_len) };
	uint8_t *at;
	enum stag_verdict v = stag_check(
	    s->cfg.stags, s->cfg.pd, STAG_WRITE | STAG_REST, h->stag, h->to, payload_len, NULL, &at);

	(void)stream_fail(s, &g, stag_errors[v].tagged, out);
}

/* -- output -- */

struct ddp_hdr
stream_untagged_hdr(struct stream *s, enum rdmap_op op, uint32_t mo, bool last)
{
	uint32_t *msn = &s->tx_msn[ops[op].qn];

	return (struct ddp_hdr){
		.last = last,
		.ulp_ctrl = rdmap_ctrl(op),
		.qn = ops[op].qn,
		.msn = last ? (*msn)++ : *msn,
		.mo = mo,
	};
}

struct ddp_hdr
stream_tagged_hdr(enum rdmap_op op, uint32_t stag, uint64_t to, bool last)
{
	return (struct ddp_hdr){ .tagged = true, .last = last, .ulp_ctrl = rdmap_ctrl(op), .stag = stag, .to = to };
}

struct ddp_hdr
stream_read_hdr(struct stream *s, const struct rdmap_read *rd, uint8_t body[RDMAP_READ_LEN])
{
	assert(stream_reads_out(s) < s->ord);
	s->out_reads[s->out_head++ & s->out_mask] = *rd;
	rdmap_read_encode(rd, body);
	return stream_untagged_hdr(s, RDMAP_READ_REQ, 0, true);
}

bool
stream_serve(struct stream *s, size_t max, struct ddp_hdr *out, struct span *from, struct rdmap_term *term)
{
	struct rdmap_read *rd = &s->in_reads[s->in_tail & s->in_mask];
	size_t len = rd->size < max ? rd->size : max;
	uint8_t *at = NULL;

	assert(stream_must_serve(s));
	if (len > 0) {
		/* Checked for each segment: the region may have been removed. */
		enum stag_verdict v = stag_check(
		    s->cfg.stags, s->cfg.pd, STAG_READ, rd->src_stag, rd->src_to, rd->size, NULL, &at);

		if (v != STAG_OK) {
			const struct seg request = {
				.h = {
					.version = DDP_VERSION,
					.last = true,
					.ulp_ctrl = rdmap_ctrl(RDMAP_READ_REQ),
					.qn = RDMAP_QN_READ,
					.msn = s->rx_msn[RDMAP_QN_READ] - (s->in_head - s->in_tail),
				},
				.ulpdu_len = DDP_UNTAGGED_LEN + RDMAP_READ_LEN,
			};

			(void)fail_read(s, &request, v, rd, term); /* `to` and `size` move with the bytes sent */
			return false;
		}
	}
	*out = stream_tagged_hdr(RDMAP_READ_RESP, rd->sink_stag, rd->sink_to, len == rd->size);
	*from = (struct span){ .ptr = at, .len = len };
	rd->size -= (uint32_t)len;
	rd->sink_to += len;
	rd->src_to += len;
	if (out->last)
		s->in_tail++;
	return true;
}
