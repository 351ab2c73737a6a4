/* DDP/RDMAP stream; see stream.h. */
#include "iwarp/stream.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/pages.h"

/* Codes by layer and type (RFC 5040 4.8, RFC 5041 7). */
enum {
	DDP_TAGGED = 1,
	DDP_BAD_STAG = 0,
	DDP_BOUNDS = 1,
	DDP_STAG_STREAM = 2,
	DDP_TO_WRAP = 3,
	DDP_TAGGED_VERSION = 4,

	DDP_UNTAGGED = 2,
	DDP_BAD_QN = 1,
	DDP_NO_BUFFER = 2,
	DDP_BAD_MSN = 3,
	DDP_BAD_MO = 4,
	DDP_TOO_LONG = 5,
	DDP_UNTAGGED_VERSION = 6,

	RDMA_PROTECTION = 1,
	RDMA_BAD_STAG = 0,
	RDMA_BOUNDS = 1,
	RDMA_ACCESS = 2,
	RDMA_STAG_STREAM = 3,
	RDMA_TO_WRAP = 4,
	RDMA_CANNOT_INVALIDATE = 9,

	RDMA_OPERATION = 2,
	RDMA_VERSION = 5,
	RDMA_OPCODE = 6,
	RDMA_UNSPECIFIED = 0xff,

	LLP_MPA = 0,
	MPA_BAD_LENGTH = 3,
};

/* A segment on its way through the checks. */
struct seg {
	struct ddp_hdr h;
	const uint8_t *payload;
	uint32_t len; /* of the payload */
	uint16_t ulpdu_len;
};

/* Rings are powers of two, so that their counters may wrap. */
static uint32_t
ring_mask(uint32_t need)
{
	uint32_t cap = 1;

	while (cap < need)
		cap *= 2;
	return cap - 1;
}

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
	if (s->rq == NULL || s->in_reads == NULL || s->out_reads == NULL) {
		stream_fini(s);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < RDMAP_QN_CNT; i++)
		s->rx_msn[i] = s->tx_msn[i] = 1; /* RFC 5041 4 */
	return 0;
}

void
stream_fini(struct stream *s)
{
	pages_free(s->rq, ((size_t)s->rq_mask + 1) * sizeof(*s->rq));
	free(s->in_reads);
	free(s->out_reads);
	s->rq = NULL;
	s->in_reads = NULL;
	s->out_reads = NULL;
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

static enum stream_rx
fail(struct stream *s, const struct seg *g, uint8_t layer, uint8_t etype, uint8_t code, struct rdmap_term *out)
{
	struct rdmap_term t = { .layer = layer, .etype = etype, .code = code };

	if (layer != RDMAP_LAYER_LLP && g != NULL) {
		t.has_len = t.has_ddp = true;
		t.seg_len = g->ulpdu_len;
		t.ddp = g->h;
	}
	/* RFC 5040 4.8: the Read Request's own header goes with protection errors. */
	if (layer == RDMAP_LAYER_RDMA && etype == RDMA_PROTECTION && t.has_ddp && !g->h.tagged &&
	    g->h.qn == RDMAP_QN_READ)
		t.has_read = rdmap_read_decode((struct span){ g->payload, g->len }, &t.read) > 0;
	s->dead = true;
	*out = t;
	return STREAM_RX_ERROR;
}

static enum stream_rx
fail_tagged(struct stream *s, const struct seg *g, enum stag_verdict v, struct rdmap_term *out)
{
	static const uint8_t codes[] = {
		[STAG_INVALID] = DDP_BAD_STAG,
		[STAG_WRONG_PD] = DDP_STAG_STREAM,
		[STAG_NO_ACCESS] = DDP_BAD_STAG, /* DDP knows no rights; as Linux does */
		[STAG_WRAP] = DDP_TO_WRAP,
		[STAG_BOUNDS] = DDP_BOUNDS,
		[STAG_REFUSED] = DDP_BOUNDS,
	};

	return fail(s, g, RDMAP_LAYER_DDP, DDP_TAGGED, codes[v], out);
}

static enum stream_rx
fail_untagged(struct stream *s, const struct seg *g, uint8_t code, struct rdmap_term *out)
{
	return fail(s, g, RDMAP_LAYER_DDP, DDP_UNTAGGED, code, out);
}

static enum stream_rx
fail_rdma(struct stream *s, const struct seg *g, uint8_t etype, uint8_t code, struct rdmap_term *out)
{
	return fail(s, g, RDMAP_LAYER_RDMA, etype, code, out);
}

void
stream_fail_llp(struct stream *s, uint8_t code, struct rdmap_term *out)
{
	(void)fail(s, NULL, RDMAP_LAYER_LLP, LLP_MPA, code, out);
}

/* -- what arrives -- */

static enum stream_rx
rx_write(struct stream *s, const struct seg *g, struct stream_ev *ev)
{
	uint8_t *at;
	enum stag_verdict v;

	if (g->len == 0)
		return STREAM_RX_NONE; /* RFC 5041 5.3: STag and TO are not looked at */
	v = stag_check(s->cfg.stags, s->cfg.pd, STAG_WRITE, g->h.stag, g->h.to, g->len, &at);
	if (v != STAG_OK)
		return fail_tagged(s, g, v, &ev->term);
	memcpy(at, g->payload, g->len);
	return STREAM_RX_NONE;
}

static enum stream_rx
rx_read_resp(struct stream *s, const struct seg *g, struct stream_ev *ev)
{
	struct stream_read *r = &s->out_reads[s->out_tail & s->out_mask];
	enum stag_verdict v;
	uint8_t *at;

	if (stream_reads_out(s) == 0)
		return fail_rdma(s, g, RDMA_OPERATION, RDMA_OPCODE, &ev->term);
	if (g->len > 0) {
		if (g->h.stag != r->stag)
			return fail_tagged(s, g, STAG_INVALID, &ev->term);
		if (g->h.to != r->to + r->got || g->len > r->size - r->got)
			return fail_tagged(s, g, STAG_BOUNDS, &ev->term);
		v = stag_check(s->cfg.stags, s->cfg.pd, 0, g->h.stag, g->h.to, g->len, &at);
		if (v != STAG_OK)
			return fail_tagged(s, g, v, &ev->term);
		memcpy(at, g->payload, g->len);
		r->got += g->len;
	}
	if (!g->h.last)
		return STREAM_RX_NONE;
	if (r->got != r->size)
		return fail_rdma(s, g, RDMA_OPERATION, RDMA_UNSPECIFIED, &ev->term);
	ev->wr_id = r->cookie;
	ev->len = r->size;
	s->out_tail++;
	return STREAM_RX_READ_DONE;
}

/* Our regions serve several streams, so most of them no peer may invalidate (RFC 5040 8.1.1). */
static bool
invalidate(struct stream *s, uint32_t stag)
{
	struct stag_region *r = stag_find(s->cfg.stags, stag);

	if (r == NULL || r->pd != s->cfg.pd || !(r->access & STAG_INVALIDATE))
		return false;
	r->access = 0;
	return true;
}

static enum stream_rx
send_complete(struct stream *s, const struct seg *g, struct stream_ev *ev)
{
	unsigned op = rdmap_ctrl_op(g->h.ulp_ctrl);
	const struct stream_recv *r = &s->rq[s->rq_tail & s->rq_mask];

	if (op == RDMAP_SEND_INV || op == RDMAP_SEND_SE_INV) {
		if (!invalidate(s, g->h.ulp_word))
			return fail_rdma(s, g, RDMA_PROTECTION, RDMA_CANNOT_INVALIDATE, &ev->term);
		ev->invalidated = g->h.ulp_word;
	}
	ev->solicited = op == RDMAP_SEND_SE || op == RDMAP_SEND_SE_INV;
	ev->wr_id = r->wr_id;
	ev->len = s->rq_got;
	s->rq_tail++;
	s->rq_got = 0;
	s->rx_msn[RDMAP_QN_SEND]++;
	return STREAM_RX_RECV;
}

static enum stream_rx
rx_send(struct stream *s, const struct seg *g, struct stream_ev *ev)
{
	const struct stream_recv *r;

	/* The RTR (RFC 6581 5) */
	if (s->rtr_send && !s->started && g->len == 0 && g->h.last && g->h.mo == 0 && g->h.msn == 1) {
		s->rx_msn[RDMAP_QN_SEND]++;
		return STREAM_RX_NONE;
	}
	if (stream_recv_cnt(s) == 0)
		return STREAM_RX_NO_RECV;
	r = &s->rq[s->rq_tail & s->rq_mask];
	if (g->h.mo != s->rq_got)
		return fail_untagged(s, g, DDP_BAD_MO, &ev->term);
	if (g->len > r->len - s->rq_got)
		return fail_untagged(s, g, DDP_TOO_LONG, &ev->term);
	if (g->len > 0)
		memcpy(r->ptr + s->rq_got, g->payload, g->len);
	s->rq_got += g->len;
	return g->h.last ? send_complete(s, g, ev) : STREAM_RX_NONE;
}

static uint8_t
read_code(enum stag_verdict v)
{
	static const uint8_t codes[] = {
		[STAG_INVALID] = RDMA_BAD_STAG,
		[STAG_WRONG_PD] = RDMA_STAG_STREAM,
		[STAG_NO_ACCESS] = RDMA_ACCESS,
		[STAG_WRAP] = RDMA_TO_WRAP,
		[STAG_BOUNDS] = RDMA_BOUNDS,
		[STAG_REFUSED] = RDMA_ACCESS,
	};

	return codes[v];
}

static enum stream_rx
rx_read_req(struct stream *s, const struct seg *g, struct stream_ev *ev)
{
	struct rdmap_read rd;
	enum stag_verdict v;
	uint8_t *at;

	if (s->in_head - s->in_tail >= s->cfg.ird_max)
		return fail_untagged(s, g, DDP_NO_BUFFER, &ev->term);
	if (g->h.mo != 0)
		return fail_untagged(s, g, DDP_BAD_MO, &ev->term);
	if (g->len > RDMAP_READ_LEN)
		return fail_untagged(s, g, DDP_TOO_LONG, &ev->term);
	if (!g->h.last || rdmap_read_decode((struct span){ .ptr = g->payload, .len = g->len }, &rd) <= 0)
		return fail_rdma(s, g, RDMA_OPERATION, RDMA_UNSPECIFIED, &ev->term);
	if (rd.size > 0) {
		v = stag_check(s->cfg.stags, s->cfg.pd, STAG_READ, rd.src_stag, rd.src_to, rd.size, &at);
		if (v != STAG_OK)
			return fail_rdma(s, g, RDMA_PROTECTION, read_code(v), &ev->term);
	}
	s->rx_msn[RDMAP_QN_READ]++;
	s->in_reads[s->in_head++ & s->in_mask] = rd;
	return STREAM_RX_READ_REQ;
}

static enum stream_rx
rx_terminate(struct stream *s, const struct seg *g, struct stream_ev *ev)
{
	if (rdmap_term_decode((struct span){ .ptr = g->payload, .len = g->len }, &ev->term) < 0)
		ev->term = (struct rdmap_term){
			.layer = RDMAP_LAYER_RDMA,
			.etype = RDMA_OPERATION,
			.code = RDMA_UNSPECIFIED,
		};
	s->dead = true;
	return STREAM_RX_TERMINATED;
}

/* RFC 5041 7 and RFC 5040 7: what can be said before the opcode's own rules. True = fine. */
static bool
check_header(struct stream *s, const struct seg *g, struct rdmap_term *out)
{
	static const uint8_t queue[RDMAP_OP_CNT] = {
		[RDMAP_READ_REQ] = RDMAP_QN_READ,
		[RDMAP_TERMINATE] = RDMAP_QN_TERM,
	};
	const struct ddp_hdr *h = &g->h;
	unsigned op = rdmap_ctrl_op(h->ulp_ctrl);
	bool tagged_op = op == RDMAP_WRITE || op == RDMAP_READ_RESP;

	if (h->version != DDP_VERSION) {
		(void)fail(s, g, RDMAP_LAYER_DDP, h->tagged ? DDP_TAGGED : DDP_UNTAGGED,
		    h->tagged ? DDP_TAGGED_VERSION : DDP_UNTAGGED_VERSION, out);
		return false;
	}
	if (!h->tagged && h->qn >= RDMAP_QN_CNT) {
		(void)fail_untagged(s, g, DDP_BAD_QN, out);
		return false;
	}
	if (rdmap_ctrl_version(h->ulp_ctrl) != RDMAP_VERSION) {
		(void)fail_rdma(s, g, RDMA_OPERATION, RDMA_VERSION, out);
		return false;
	}
	if (op >= RDMAP_OP_CNT || h->tagged != tagged_op || (!h->tagged && h->qn != queue[op])) {
		(void)fail_rdma(s, g, RDMA_OPERATION, RDMA_OPCODE, out);
		return false;
	}
	if (!h->tagged && h->msn != s->rx_msn[h->qn]) {
		(void)fail_untagged(s, g, DDP_BAD_MSN, out);
		return false;
	}
	return true;
}

static enum stream_rx
dispatch(struct stream *s, const struct seg *g, struct stream_ev *ev)
{
	switch ((enum rdmap_op)rdmap_ctrl_op(g->h.ulp_ctrl)) {
	case RDMAP_WRITE:
		return rx_write(s, g, ev);
	case RDMAP_READ_RESP:
		return rx_read_resp(s, g, ev);
	case RDMAP_READ_REQ:
		return rx_read_req(s, g, ev);
	case RDMAP_SEND:
	case RDMAP_SEND_INV:
	case RDMAP_SEND_SE:
	case RDMAP_SEND_SE_INV:
		return rx_send(s, g, ev);
	case RDMAP_TERMINATE:
		return rx_terminate(s, g, ev);
	case RDMAP_OP_CNT:
		break;
	}
	return fail_rdma(s, g, RDMA_OPERATION, RDMA_OPCODE, &ev->term);
}

static bool
seg_decode(struct span ulpdu, struct seg *g)
{
	int n = ddp_decode(ulpdu, &g->h);

	if (n <= 0 || ulpdu.len > MPA_ULPDU_MAX)
		return false;
	g->payload = ulpdu.ptr + n;
	g->len = (uint32_t)(ulpdu.len - (size_t)n);
	g->ulpdu_len = (uint16_t)ulpdu.len;
	return true;
}

enum stream_rx
stream_ulpdu(struct stream *s, struct span ulpdu, struct stream_ev *ev)
{
	struct seg g;
	enum stream_rx rc;

	assert(!s->dead);
	*ev = (struct stream_ev){ 0 };
	if (!seg_decode(ulpdu, &g))
		/* No DDP header fits: the length field lies, as far as MPA goes. */
		return fail(s, NULL, RDMAP_LAYER_LLP, LLP_MPA, MPA_BAD_LENGTH, &ev->term);
	if (!check_header(s, &g, &ev->term))
		return STREAM_RX_ERROR;
	rc = dispatch(s, &g, ev);
	if (rc != STREAM_RX_NO_RECV)
		s->started = true;
	return rc;
}

void
stream_fail_no_recv(struct stream *s, struct span ulpdu, struct rdmap_term *out)
{
	struct seg g;

	if (seg_decode(ulpdu, &g))
		(void)fail_untagged(s, &g, DDP_NO_BUFFER, out);
	else
		stream_fail_llp(s, MPA_BAD_LENGTH, out);
}

bool
stream_place_early(struct stream *s, const struct ddp_hdr *h, size_t payload_len, uint8_t **at)
{
	return h->version == DDP_VERSION && h->tagged && h->ulp_ctrl == rdmap_ctrl(RDMAP_WRITE) && payload_len > 0 &&
	    stag_check(s->cfg.stags, s->cfg.pd, STAG_WRITE, h->stag, h->to, payload_len, at) == STAG_OK;
}

void
stream_placed(struct stream *s)
{
	s->started = true;
}

void
stream_fail_place(struct stream *s, const struct ddp_hdr *h, size_t payload_len, struct rdmap_term *out)
{
	const struct seg g = {
		.h = *h, .len = (uint32_t)payload_len, .ulpdu_len = (uint16_t)(DDP_TAGGED_LEN + payload_len)
	};
	uint8_t *at;
	enum stag_verdict v = stag_check(s->cfg.stags, s->cfg.pd, STAG_WRITE, h->stag, h->to, payload_len, &at);

	(void)fail_tagged(s, &g, v, out);
}

/* -- what goes out -- */

void
stream_send_hdr(struct stream *s, enum rdmap_op op, uint32_t inv_stag, uint32_t mo, bool last, struct ddp_hdr *out)
{
	*out = (struct ddp_hdr){
		.last = last,
		.ulp_ctrl = rdmap_ctrl(op),
		.ulp_word = inv_stag,
		.qn = RDMAP_QN_SEND,
		.msn = s->tx_msn[RDMAP_QN_SEND],
		.mo = mo,
	};
	if (last)
		s->tx_msn[RDMAP_QN_SEND]++;
}

void
stream_write_hdr(uint32_t stag, uint64_t to, bool last, struct ddp_hdr *out)
{
	*out = (struct ddp_hdr){
		.tagged = true,
		.last = last,
		.ulp_ctrl = rdmap_ctrl(RDMAP_WRITE),
		.stag = stag,
		.to = to,
	};
}

void
stream_read_hdr(struct stream *s, const struct stream_read *r, uint32_t src_stag, uint64_t src_to, struct ddp_hdr *out,
    uint8_t body[RDMAP_READ_LEN])
{
	const struct rdmap_read rd = {
		.sink_stag = r->stag,
		.sink_to = r->to,
		.size = r->size,
		.src_stag = src_stag,
		.src_to = src_to,
	};

	assert(stream_reads_out(s) < s->ord);
	s->out_reads[s->out_head & s->out_mask] = *r;
	s->out_reads[s->out_head++ & s->out_mask].got = 0;
	*out = (struct ddp_hdr){
		.last = true,
		.ulp_ctrl = rdmap_ctrl(RDMAP_READ_REQ),
		.qn = RDMAP_QN_READ,
		.msn = s->tx_msn[RDMAP_QN_READ]++,
	};
	rdmap_read_encode(&rd, body);
}

void
stream_term_hdr(struct stream *s, struct ddp_hdr *out)
{
	*out = (struct ddp_hdr){
		.last = true,
		.ulp_ctrl = rdmap_ctrl(RDMAP_TERMINATE),
		.qn = RDMAP_QN_TERM,
		.msn = s->tx_msn[RDMAP_QN_TERM]++,
	};
}

static void
serve_failed(struct stream *s, const struct rdmap_read *rd, enum stag_verdict v, struct rdmap_term *out)
{
	*out = (struct rdmap_term){
		.layer = RDMAP_LAYER_RDMA, .etype = RDMA_PROTECTION, .code = read_code(v),
		.has_len = true, .has_ddp = true, .has_read = true,
		.seg_len = DDP_UNTAGGED_LEN + RDMAP_READ_LEN,
		.ddp = {
			.version = DDP_VERSION, .last = true, .ulp_ctrl = rdmap_ctrl(RDMAP_READ_REQ),
			.qn = RDMAP_QN_READ, .msn = s->rx_msn[RDMAP_QN_READ] - (s->in_head - s->in_tail),
		},
		.read = *rd,	/* moved on by what was sent, RFC 5040 4.8 */
	};
	s->dead = true;
}

bool
stream_serve(struct stream *s, size_t max, struct ddp_hdr *out, struct span *from, struct rdmap_term *term)
{
	struct rdmap_read *rd = &s->in_reads[s->in_tail & s->in_mask];
	size_t len = rd->size < max ? rd->size : max;
	uint8_t *at = NULL;

	assert(stream_must_serve(s));
	if (len > 0) {
		/* Again for each segment: the region may be gone meanwhile. */
		enum stag_verdict v = stag_check(
		    s->cfg.stags, s->cfg.pd, STAG_READ, rd->src_stag, rd->src_to, rd->size, &at);

		if (v != STAG_OK) {
			serve_failed(s, rd, v, term);
			return false;
		}
	}
	*out = (struct ddp_hdr){
		.tagged = true,
		.last = len == rd->size,
		.ulp_ctrl = rdmap_ctrl(RDMAP_READ_RESP),
		.stag = rd->sink_stag,
		.to = rd->sink_to,
	};
	*from = (struct span){ .ptr = at, .len = len };
	rd->size -= (uint32_t)len;
	rd->sink_to += len;
	rd->src_to += len;
	if (out->last)
		s->in_tail++;
	return true;
}
