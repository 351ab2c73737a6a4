/* Soft iWARP: queue pairs: requests, credits, completions, creation and end; see siw_int.h. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/ring.h"
#include "rnic/siw/siw_llp.h"
#include "rnic/wr.h"

#define TIMERS (3 + FENCE_TIMERS) /* per QP */

/* -- completions -- */

void
siw_complete(struct siw_qp *qp, uint64_t wr_id, enum rnic_wc_op op, enum rnic_wc_status status, uint32_t len)
{
	assert(qp->cq_head - qp->cq_tail <= qp->cq_mask);
	qp->cq[qp->cq_head++ & qp->cq_mask] =
	    (struct rnic_wc){ .wr_id = wr_id, .qp = &qp->qp, .op = op, .status = status, .len = len };
	qp->cq_recvs += op == RNIC_WC_RECV;
	if (list_empty(&qp->cq_node))
		list_push(&qp->dev->cq_list, &qp->cq_node);
}

unsigned
siw_poll(struct rnic_dev *rdev, struct rnic_wc *wc, unsigned max)
{
	struct siw_dev *dev = siw_dev(rdev);
	unsigned n = 0;

	while (n < max && !list_empty(&dev->cq_list)) {
		struct siw_qp *qp = LIST_POP(struct siw_qp, &dev->cq_list, cq_node);

		while (n < max && qp->cq_tail != qp->cq_head) {
			wc[n] = qp->cq[qp->cq_tail++ & qp->cq_mask];
			qp->cq_recvs -= wc[n++].op == RNIC_WC_RECV;
		}
		if (qp->cq_tail != qp->cq_head)
			list_push(&dev->cq_list, &qp->cq_node);
		siw_credits_changed(qp);
	}
	return n;
}

static void
complete_send(struct siw_qp *qp, const struct siw_wr *wr, enum rnic_wc_status status)
{
	siw_complete(qp, wr->wr_id, wr->op == RNIC_WR_SEND ? RNIC_WC_SEND : RNIC_WC_WRITE, status, 0);
}

void
siw_complete_sends(struct siw_qp *qp, uint32_t pos)
{
	for (; qp->sq.done != pos; qp->sq.done++) {
		const struct siw_wr *wr = &qp->wrs[qp->sq.done & qp->wr_mask];

		qp->sq.sends_out -= wr->op == RNIC_WR_SEND;
		if (wr->flags & RNIC_SIGNALED)
			complete_send(qp, wr, RNIC_WC_OK);
	}
}

/* Ends all requests and receives: the oldest with this status, the others as flushed. */
static void
flush_all(struct siw_qp *qp, enum rnic_wc_status first)
{
	struct stream_recv r;

	for (; qp->sq.done != qp->sq.head; qp->sq.done++, first = RNIC_WC_FLUSHED)
		complete_send(qp, &qp->wrs[qp->sq.done & qp->wr_mask], first);
	while (stream_flush_recv(&qp->stream, &r))
		siw_complete(qp, r.wr_id, RNIC_WC_RECV, RNIC_WC_FLUSHED, 0);
	qp->sq.sends_out = 0;
	qp->sq.bytes = 0;
}

/* -- credits and fence -- */

void
siw_credits(const struct rnic_qp *rqp, struct rnic_credits *out)
{
	const struct siw_qp *qp = siw_qp(rqp);
	/* A request occupies its entry until its completion is polled. */
	uint32_t unpolled = qp->cq_head - qp->cq_tail - qp->cq_recvs;

	*out = (struct rnic_credits){ 0 };
	if (qp->state == SIW_RTS && qp->connected)
		sendq_credits(&qp->sq, qp->sq.head - qp->sq.done + unpolled, qp->sq.bytes + *qp->queued, out);
}

void
siw_credits_changed(struct siw_qp *qp)
{
	if (qp->state == SIW_RTS && sendq_has_more(&qp->sq, &qp->qp))
		events_add(&qp->dev->events, &qp->events, RNIC_EV_CREDITS);
}

void
siw_fence(struct rnic_qp *rqp)
{
	struct siw_qp *qp = siw_qp(rqp);

	if (qp->state != SIW_RTS || qp->sq.head == qp->sq.done)
		return;
	fence_want(&qp->fence);
	siw_tx_schedule(qp);
}

static void
fence_delayed(struct timer *t)
{
	siw_fence(&CONTAINER_OF(t, struct siw_qp, fence.delay_timer)->qp);
}

static void
fence_silence(struct timer *t)
{
	struct siw_qp *qp = CONTAINER_OF(t, struct siw_qp, fence.answer_timer);

	if (qp->state == SIW_RTS && qp->connected) {
		events_add(&qp->dev->events, &qp->events, RNIC_EV_SILENT);
		fence_expect_answer(&qp->fence);
		return;
	}
	qp->events.silent = true;
	siw_qp_break(qp, "the peer does not answer", RNIC_WC_RETRY_EXC, NULL);
}

/* -- posting -- */

static void
wr_take(struct siw_wr *to, const struct rnic_send_wr *wr, size_t len)
{
	to->wr_id = wr->wr_id;
	to->raddr = wr->raddr;
	to->rkey = wr->rkey;
	to->len = (uint32_t)len;
	to->op = wr->op;
	to->flags = (uint16_t)wr->flags;
	to->sge_cnt = (uint16_t)wr->sge_cnt;
	if (wr->flags & RNIC_INLINE) {
		(void)rnic_wr_copy(wr, to->u.bytes);
		return;
	}
	for (unsigned i = 0; i < wr->sge_cnt; i++) {
		to->u.sge[i].iov_base = (void *)(uintptr_t)wr->sge[i].ptr;
		to->u.sge[i].iov_len = wr->sge[i].len;
	}
}

int
siw_post_send(struct rnic_qp *rqp, const struct rnic_send_wr *wr)
{
	struct siw_qp *qp = siw_qp(rqp);
	struct siw_wr *to = &qp->wrs[qp->sq.head & qp->wr_mask];
	struct rnic_credits credits;
	size_t len;

	if (qp->state != SIW_RTS || !qp->connected)
		return -ENOTCONN;
	int rc = rnic_wr_check(wr, &qp->pd->pd, RNIC_SGE_MAX, SIW_MAX_INLINE, &len);
	if (rc < 0)
		return rc;
	siw_credits(rqp, &credits);
	rc = sendq_take(&qp->sq, &credits, wr->op, len);
	if (rc < 0)
		return rc;
	wr_take(to, wr, len);
	fence_posted(&qp->fence, (wr->flags & RNIC_SIGNALED) != 0);
	siw_tx_schedule(qp);
	return 0;
}

int
siw_post_recv(struct rnic_qp *rqp, const struct rnic_recv_wr *wr, unsigned n)
{
	struct siw_qp *qp = siw_qp(rqp);

	if (qp->state >= SIW_BROKEN)
		return -ENOTCONN;
	if (n > qp->rq_depth - stream_recv_cnt(&qp->stream) - qp->cq_recvs)
		return -ENOBUFS;
	for (unsigned i = 0; i < n; i++)
		if (!rnic_mr_holds(wr[i].mr, &qp->pd->pd, wr[i].ptr, wr[i].len))
			return -EINVAL;
	for (unsigned i = 0; i < n; i++)
		stream_post_recv(
		    &qp->stream, &(struct stream_recv){ .wr_id = wr[i].wr_id, .ptr = wr[i].ptr, .len = wr[i].len });
	if (n > 0 && qp->held)
		siw_rx_schedule(qp);
	return 0;
}

/* -- QPNs -- */

/* A free slot, least recently used first; 0 if all are used. Slots 0 and 1 stay free, and so do QPN 0 and 1. */
static uint32_t
slot_take(struct siw_dev *dev)
{
	for (uint32_t i = 0; i < SIW_MAX_QP; i++) {
		uint32_t slot = 2 + (dev->next_slot + i) % SIW_MAX_QP;

		if (dev->slots[slot] == NULL) {
			dev->next_slot = (dev->next_slot + i + 1) % SIW_MAX_QP;
			return slot;
		}
	}
	return 0;
}

/* -- creation and end -- */

void
siw_qp_free(struct siw_qp *qp)
{
	qp->dev->llp->qp_fini(qp);
	explicit_bzero(qp->secret, sizeof(qp->secret));
	stream_fini(&qp->stream);
	pages_free(qp->wrs, ((size_t)qp->wr_mask + 1) * sizeof(*qp->wrs));
	pages_free(qp->cq, ((size_t)qp->cq_mask + 1) * sizeof(*qp->cq));
	free(qp);
}

static int
qp_alloc_queues(struct siw_qp *qp)
{
	const struct stream_config cfg = {
		.stags = &qp->dev->stags,
		.pd = qp->pd,
		.llp = qp->dev->llp->stream,
		.rq_depth = qp->rq_depth,
		.ird_max = (uint16_t)(qp->dev->cfg.ird + 1), /* and an RTR Read that the peer does not count */
		.ord_max = qp->dev->cfg.ord,
	};

	qp->wr_mask = ring_mask(qp->sq.depth);
	qp->cq_mask = ring_mask(qp->sq.depth + qp->rq_depth);
	/* Large buffers are separate pages: populated on use, and freed independently. */
	qp->wrs = pages_alloc(((size_t)qp->wr_mask + 1) * sizeof(*qp->wrs));
	qp->cq = pages_alloc(((size_t)qp->cq_mask + 1) * sizeof(*qp->cq));
	if (qp->wrs == NULL || qp->cq == NULL || stream_init(&qp->stream, &cfg) < 0 || qp->dev->llp->qp_init(qp) < 0)
		return -ENOMEM;
	return 0;
}

int
siw_qp_create(struct rnic_pd *pd, const struct rnic_qp_attr *attr, struct rnic_qp **out)
{
	struct siw_dev *dev = siw_dev(pd->dev);
	struct siw_qp *qp;
	uint32_t slot;

	if (attr->sq_depth == 0 || attr->sq_depth > SIW_MAX_SQ || attr->rq_depth == 0 || attr->rq_depth > SIW_MAX_RQ)
		return -EINVAL;
	if (dev->qp_cnt >= dev->cfg.max_qp || (slot = slot_take(dev)) == 0)
		return -ENOSPC;
	qp = calloc(1, sizeof(*qp));
	if (qp == NULL)
		return -ENOMEM;
	qp->dev = dev;
	qp->pd = CONTAINER_OF(pd, struct siw_pd, pd);
	qp->peer_depths = (struct rnic_depths){ .ird = -1, .ord = -1 };
	qp->rtt_ns = -1;
	qp->token = attr->token;
	qp->secured = attr->secret != NULL && dev->cfg.transport == SIW_TCP;
	if (qp->secured)
		memcpy(qp->secret, attr->secret, sizeof(qp->secret));
	qp->sq = (struct sendq){ .depth = attr->sq_depth, .bytes_max = SIW_TX_QUEUED };
	qp->fence = (struct fence){
		.sq = &qp->sq,
		.dev = &dev->dev,
		.timers = &dev->timers,
		.delay_ms = dev->cfg.fence_ms,
		.answer_ms = dev->cfg.answer_ms,
	};
	qp->rq_depth = attr->rq_depth;
	if (qp_alloc_queues(qp) < 0 || timerq_reserve(&dev->timers, TIMERS) < 0) {
		siw_qp_free(qp);
		return -ENOMEM;
	}
	qp->qp = (struct rnic_qp){
		.dev = &dev->dev,
		.ctx = attr->ctx,
		.qpn = slot | rng_below(dev->rng, 1u << (24 - SIW_SLOT_BITS)) << SIW_SLOT_BITS,
		.psn = rng_below(dev->rng, 1u << 24),
	};
	timer_init(&qp->connect_timer, siw_cm_connect_timeout);
	timer_init(&qp->nudge_timer, siw_nudge_timeout);
	fence_init(&qp->fence, fence_delayed, fence_silence);
	qp_events_init(&qp->events, &qp->qp);
	list_init(&qp->rx_node);
	list_init(&qp->tx_node);
	list_init(&qp->cq_node);
	qp->fence_region = (struct stag_region){
		.buf = qp->fence.bytes, .len = sizeof(qp->fence.bytes), .pd = qp->pd, .access = STAG_READ
	};
	stag_add(&dev->stags, &qp->fence_region, dev->rng);
	dev->slots[slot] = qp;
	dev->qp_cnt++;
	dev->secured_cnt += qp->secured;
	qp->pd->refs++;
	*out = &qp->qp;
	return 0;
}

void
siw_qp_destroy(struct rnic_qp *rqp)
{
	if (rqp == NULL)
		return;
	struct siw_qp *qp = siw_qp(rqp);
	struct siw_dev *dev = qp->dev;
	siw_qp_disconnect(rqp, false);
	list_remove(&qp->cq_node);
	dev->slots[qp->qp.qpn & ((1u << SIW_SLOT_BITS) - 1)] = NULL;
	dev->qp_cnt--;
	dev->secured_cnt -= qp->secured;
	stag_remove(&dev->stags, &qp->fence_region);
	qp->pd->refs--;
	timerq_unreserve(&dev->timers, TIMERS);
	events_add(&dev->events, &qp->events, RNIC_EV_QP_FREED);
}

void
siw_qp_set_state(struct siw_qp *qp, enum siw_state to)
{
	assert(qp->state != SIW_CLOSED);
	assert(to > qp->state);
	qp->state = to;
}

/* -- idle memory -- */

/* The entries used since the last check may be anywhere in the ring. If they cover more than a page, the whole ring
 * counts as used. */
static void
ring_rest(struct siw_ring_use *use, void *ring, size_t entry_len, size_t entry_cnt, uint32_t head, uint32_t tail)
{
	size_t used = (head - use->head) * entry_len, page = (size_t)sysconf(_SC_PAGESIZE);

	use->head = head;
	pages_touch(&use->pages, used > page ? entry_len * entry_cnt : used);
	if (head == tail)
		pages_rest(&use->pages, ring);
}

void
siw_qp_rest(struct rnic_qp *rqp)
{
	struct siw_qp *qp = siw_qp(rqp);

	ring_rest(&qp->wrs_used, qp->wrs, sizeof(*qp->wrs), (size_t)qp->wr_mask + 1, qp->sq.head, qp->sq.done);
	ring_rest(&qp->cq_used, qp->cq, sizeof(*qp->cq), (size_t)qp->cq_mask + 1, qp->cq_head, qp->cq_tail);
	qp->dev->llp->rest(qp);
}

/* -- end of the connection -- */

/* Detaches from the connection and all lists except completions and events. */
static void
qp_detach(struct siw_qp *qp, bool last_word)
{
	struct siw_dev *dev = qp->dev;

	dev->llp->finish(qp, last_word);
	/* Last: the final fill of the send queue may have armed and linked it again. */
	timer_cancel(&dev->timers, &qp->connect_timer);
	timer_cancel(&dev->timers, &qp->nudge_timer);
	fence_stop(&qp->fence);
	list_remove(&qp->rx_node);
	list_remove(&qp->tx_node);
}

void
siw_qp_break(struct siw_qp *qp, const char *why, enum rnic_wc_status status, const struct rdmap_term *term)
{
	if (qp->state >= SIW_BROKEN)
		return;
	qp->events.why = why;
	bool last_word = term != NULL && siw_tx_terminate(qp, term);

	/* From here on siw_tx_fill() accepts no requests. */
	siw_qp_set_state(qp, SIW_BROKEN);
	qp_detach(qp, last_word);
	flush_all(qp, status);
	if (qp->connected)
		events_add(&qp->dev->events, &qp->events, RNIC_EV_QP_ERROR);
	else if (qp->claimed)
		events_add(&qp->dev->events, &qp->events, RNIC_EV_CONNECT_FAILED);
}

void
siw_qp_disconnect(struct rnic_qp *rqp, bool graceful)
{
	struct siw_qp *qp = siw_qp(rqp);

	if (qp->state < SIW_BROKEN) {
		/* May break the QP, if the peer reads a deregistered region. */
		qp_detach(qp, graceful && qp->state == SIW_RTS);
		flush_all(qp, RNIC_WC_FLUSHED);
	}
	if (qp->state != SIW_CLOSED)
		siw_qp_set_state(qp, SIW_CLOSED);
	events_drop(&qp->events);
}
