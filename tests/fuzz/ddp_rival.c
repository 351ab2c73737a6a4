/* See ddp_rival.h. */
#include "ddp_rival.h"

#include <string.h>

#include "fuzz.h"

static const struct twist_field tagged_fields[] = { { 0, 1 }, { 1, 1 }, { 2, 4 }, { 6, 8 }, { 0, 0 } };
static const struct twist_field untagged_fields[] = { { 0, 1 }, { 1, 1 }, { 2, 4 }, { 6, 4 }, { 10, 4 }, { 14, 4 },
	{ 18, 4 }, { 22, 8 }, { 30, 4 }, { 34, 4 }, { 38, 8 }, { 0, 0 } };

void
ddp_rival_meet(struct ddp_rival *r, const struct siw_arena *a, unsigned link)
{
	const struct siw_link *l = &a->link[link % SIW_ARENA_LINKS];

	r->token = SIW_ARENA_TOKEN + link % SIW_ARENA_LINKS;
	if (l->dev == NULL)
		return;
	r->qpn = l->qp->qpn;
	r->psn = l->qp->psn;
	if (l->open.mr == NULL)
		return;
	r->stag = l->open.mr->rkey;
	r->base = l->open.mr->addr;
}

void
ddp_rival_hear(struct ddp_rival *r, struct span segment)
{
	struct ddp_hdr h;
	int n = ddp_decode(segment, &h);

	FUZZ_CHECK(n > 0); /* what the device sends is always well formed */
	if (h.tagged || h.qn != RDMAP_QN_READ || r->read_cnt == DDP_RIVAL_READS)
		return;
	if (rdmap_read_decode((struct span){ segment.ptr + n, segment.len - (size_t)n }, &r->reads[r->read_cnt]) > 0)
		r->read_cnt++;
}

static size_t
read_request(const struct ddp_rival *r, uint8_t *at, size_t len, uint32_t off)
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
untagged(struct ddp_rival *r, struct ddp_hdr *h, uint32_t qn, uint32_t mo)
{
	h->qn = qn;
	h->msn = r->msn[qn] + 1;
	h->mo = mo;
	if (h->last)
		r->msn[qn]++;
}

size_t
ddp_rival_say(struct ddp_rival *r, unsigned kind, bool last, size_t len, uint32_t mo, struct twists *tw,
    void (*gather)(struct lore *, void *), void *ctx, uint8_t *out)
{
	static const enum rdmap_op op[SEGMENT_KIND_CNT] = { RDMAP_WRITE, RDMAP_SEND, RDMAP_READ_REQ, RDMAP_READ_RESP,
		RDMAP_TERMINATE, RDMAP_SEND_SE, RDMAP_SEND_INV, RDMAP_WRITE };
	struct ddp_hdr h = { .last = last, .version = DDP_VERSION, .ulp_ctrl = rdmap_ctrl(op[kind]) };
	uint8_t body[DDP_RIVAL_SEGMENT_MAX - DDP_HDR_MAX];
	size_t n;

	if (len > sizeof(body))
		len = sizeof(body);
	memset(body, 'r', len);
	switch (kind) {
	case SEGMENT_WRITE:
		h.tagged = true;
		h.stag = r->stag;
		h.to = r->base + mo;
		break;
	case SEGMENT_EMPTY_WRITE:
		h.tagged = true;
		h.stag = 1;
		len = 0;
		break;
	case SEGMENT_ANSWER:
		if (r->read_cnt == 0)
			return 0;
		h.tagged = true;
		h.stag = r->reads[0].sink_stag;
		h.to = r->reads[0].sink_to;
		len = r->reads[0].size < len ? r->reads[0].size : len;
		r->read_cnt--;
		memmove(&r->reads[0], &r->reads[1], r->read_cnt * sizeof(r->reads[0]));
		break;
	case SEGMENT_READ:
		len = read_request(r, body, len, mo);
		untagged(r, &h, RDMAP_QN_READ, 0);
		break;
	case SEGMENT_TERMINATE:
		len = terminate(body, len);
		untagged(r, &h, RDMAP_QN_TERM, 0);
		break;
	default:
		h.ulp_word = kind == SEGMENT_SEND_INV ? r->stag : 0;
		untagged(r, &h, RDMAP_QN_SEND, mo);
		break;
	}
	n = ddp_encode(&h, out);
	memcpy(out + n, body, len);
	twist_apply(tw, h.tagged ? tagged_fields : untagged_fields, 1 + kind % 7, out, n + len, gather, ctx);
	return n + len;
}
