/* Soft iWARP: work requests: posting, credits, completions; see siw_int.h. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "rnic/siw/siw_int.h"
#include "rnic/wr.h"

/* -- completions -- */

void
siw_complete(struct siw_qp *qp, uint64_t wr_id, enum rnic_wc_op op, enum rnic_wc_status status, uint32_t len)
{
	assert(qp->cq_head - qp->cq_tail <= qp->cq_mask);
	qp->cq[qp->cq_head++ & qp->cq_mask] = (struct rnic_wc){
		.wr_id = wr_id,
		.qp = &qp->qp,
		.op = op,
		.status = status,
		.len = len,
	};
	if (op == RNIC_WC_RECV)
		qp->cq_recvs++;
	else
		qp->cq_sends++;
	if (list_empty(&qp->cq_node))
		list_push(&qp->dev->cq_list, &qp->cq_node);
}

unsigned
siw_poll(struct rnic_dev *rdev, struct rnic_wc *wc, unsigned max)
{
	struct siw_dev *dev = siw_dev(rdev);
	unsigned n = 0;

	while (n < max && !list_empty(&dev->cq_list)) {
		struct siw_qp *qp = CONTAINER_OF(list_pop(&dev->cq_list), struct siw_qp, cq_node);

		while (n < max && qp->cq_tail != qp->cq_head) {
			wc[n] = qp->cq[qp->cq_tail++ & qp->cq_mask];
			if (wc[n++].op == RNIC_WC_RECV)
				qp->cq_recvs--;
			else
				qp->cq_sends--;
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

void
siw_flush_all(struct siw_qp *qp, enum rnic_wc_status first)
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
	const struct siw_qp *qp = CONTAINER_OF((struct rnic_qp *)(uintptr_t)rqp, struct siw_qp, qp);

	*out = (struct rnic_credits){ 0 };
	if (qp->state == SIW_RTS && qp->connected)
		sendq_credits(&qp->sq, qp->sq.head - qp->sq.done + qp->cq_sends, qp->sq.bytes + qp->txq.bytes, out);
}

void
siw_credits_changed(struct siw_qp *qp)
{
	struct rnic_credits now;

	if (qp->state != SIW_RTS || qp->sq.starved == 0)
		return;
	siw_credits(&qp->qp, &now);
	if (sendq_has_more(&qp->sq, &now))
		siw_event(qp, RNIC_EV_CREDITS);
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

void
siw_fence_delayed(struct timer *t)
{
	siw_fence(&CONTAINER_OF(t, struct siw_qp, fence.delay_timer)->qp);
}

void
siw_fence_silence(struct timer *t)
{
	siw_qp_break(
	    CONTAINER_OF(t, struct siw_qp, fence.answer_timer), "the peer does not answer", RNIC_WC_RETRY_EXC, NULL);
}

/* -- posting -- */

static void
wr_take(struct siw_wr *to, const struct rnic_send_wr *wr, size_t len)
{
	uint8_t *at = to->u.bytes;

	to->wr_id = wr->wr_id;
	to->raddr = wr->raddr;
	to->rkey = wr->rkey;
	to->len = (uint32_t)len;
	to->op = wr->op;
	to->flags = (uint16_t)wr->flags;
	to->sge_cnt = (uint16_t)wr->sge_cnt;
	for (unsigned i = 0; i < wr->sge_cnt; i++) {
		const struct rnic_sge *s = &wr->sge[i];

		if (wr->flags & RNIC_INLINE) {
			if (s->len > 0)
				memcpy(at, s->ptr, s->len);
			at += s->len;
		} else {
			to->u.sge[i].iov_base = (void *)(uintptr_t)s->ptr;
			to->u.sge[i].iov_len = s->len;
		}
	}
}

int
siw_post_send(struct rnic_qp *rqp, const struct rnic_send_wr *wr)
{
	struct siw_qp *qp = siw_qp(rqp);
	struct siw_wr *to = &qp->wrs[qp->sq.head & qp->wr_mask];
	struct rnic_credits credits;
	size_t len;
	int rc;

	if (qp->state != SIW_RTS || !qp->connected)
		return -ENOTCONN;
	rc = rnic_wr_check(wr, &qp->pd->pd, RNIC_SGE_MAX, SIW_MAX_INLINE, &len);
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
	if (n > 0 && qp->rx_stalled)
		siw_rx_schedule(qp);
	return 0;
}
