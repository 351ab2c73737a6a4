/* Soft iWARP: work requests: posting, room, confirmation, completions; see siw_int.h. */
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
	qp->cq[qp->cq_head++ & qp->cq_mask] = (struct siw_cqe){
		.wr_id = wr_id,
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

static unsigned
poll_qp(struct siw_qp *qp, struct rnic_wc *wc, unsigned max)
{
	unsigned n = 0;

	while (n < max && qp->cq_tail != qp->cq_head) {
		const struct siw_cqe *e = &qp->cq[qp->cq_tail++ & qp->cq_mask];

		if (e->op == RNIC_WC_RECV)
			qp->cq_recvs--;
		else
			qp->cq_sends--;
		wc[n++] = (struct rnic_wc){
			.wr_id = e->wr_id,
			.qp = &qp->qp,
			.op = e->op,
			.status = e->status,
			.len = e->len,
		};
	}
	return n;
}

unsigned
siw_poll(struct rnic_dev *rdev, struct rnic_wc *wc, unsigned max)
{
	struct siw_dev *dev = siw_dev(rdev);
	unsigned n = 0;

	while (n < max && !list_empty(&dev->cq_list)) {
		struct siw_qp *qp = CONTAINER_OF(list_first(&dev->cq_list), struct siw_qp, cq_node);

		n += poll_qp(qp, wc + n, max - n);
		list_remove(&qp->cq_node);
		if (qp->cq_tail != qp->cq_head)
			list_push(&dev->cq_list, &qp->cq_node);
		siw_room_changed(qp);
	}
	return n;
}

static enum rnic_wc_op
wc_op(enum rnic_wr_op op)
{
	return op == RNIC_WR_SEND ? RNIC_WC_SEND : RNIC_WC_WRITE;
}

void
siw_complete_sends(struct siw_qp *qp, uint32_t pos)
{
	for (; qp->sq_done != pos; qp->sq_done++) {
		const struct siw_wr *wr = &qp->sq[qp->sq_done & qp->sq_mask];

		if (wr->op == RNIC_WR_SEND)
			qp->sends_out--;
		if (wr->flags & RNIC_SIGNALED)
			siw_complete(qp, wr->wr_id, wc_op(wr->op), RNIC_WC_OK, 0);
	}
}

void
siw_flush_all(struct siw_qp *qp, enum rnic_wc_status first)
{
	struct stream_recv r;

	for (; qp->sq_done != qp->sq_head; qp->sq_done++, first = RNIC_WC_FLUSHED) {
		const struct siw_wr *wr = &qp->sq[qp->sq_done & qp->sq_mask];

		siw_complete(qp, wr->wr_id, wc_op(wr->op), first, 0);
	}
	while (stream_flush_recv(&qp->stream, &r))
		siw_complete(qp, r.wr_id, RNIC_WC_RECV, RNIC_WC_FLUSHED, 0);
	qp->sends_out = 0;
	qp->sq_bytes = 0;
}

/* -- room and confirmation -- */

void
siw_room(const struct rnic_qp *rqp, struct rnic_room *out)
{
	const struct siw_qp *qp = CONTAINER_OF((struct rnic_qp *)(uintptr_t)rqp, struct siw_qp, qp);
	size_t queued = qp->sq_bytes + qp->txq.bytes;

	*out = (struct rnic_room){ 0 };
	if (qp->state != SIW_RTS || !qp->connected)
		return;
	out->wrs = qp->sq_depth - (qp->sq_head - qp->sq_done) - qp->cq_sends;
	out->sends = qp->peer_depth - qp->sends_out;
	if (out->sends > out->wrs)
		out->sends = out->wrs;
	out->bytes = queued < SIW_TX_QUEUED ? SIW_TX_QUEUED - queued : 0;
}

static unsigned
starved_by(const struct siw_qp *qp, const struct rnic_room *room)
{
	return (room->wrs == 0 ? SIW_NO_WRS : 0u) | (room->sends == 0 ? SIW_NO_SENDS : 0u) |
	    /* Half of it has to be free again, or the user would be woken for crumbs. */
	    (room->bytes == 0 || (qp->starved & SIW_NO_BYTES && room->bytes < SIW_TX_QUEUED / 2) ? SIW_NO_BYTES : 0u);
}

void
siw_room_changed(struct siw_qp *qp)
{
	struct rnic_room room;
	unsigned now;

	if (qp->state != SIW_RTS || qp->starved == 0)
		return;
	siw_room(&qp->qp, &room);
	now = starved_by(qp, &room);
	if (qp->starved & ~now)
		siw_event(qp, RNIC_EV_ROOM);
	qp->starved = now;
}

void
siw_confirm_arm(struct siw_qp *qp)
{
	uint32_t covered = qp->read_out ? qp->read_pos : qp->sq_done;

	/* Positions only grow; the difference is right over the wrap. */
	if ((int32_t)(qp->sq_sig - covered) <= 0 || (int32_t)(qp->want_pos - qp->sq_sig) >= 0 ||
	    timer_armed(&qp->confirm_timer))
		return;
	siw_arm(qp->dev, &qp->confirm_timer, qp->dev->cfg.confirm_ms);
}

static void
want_confirm(struct siw_qp *qp)
{
	qp->want_pos = qp->sq_head;
	timer_cancel(&qp->dev->timers, &qp->confirm_timer);
	siw_tx_mark(qp);
}

void
siw_confirm_timeout(struct timer *t, int64_t now_ns)
{
	(void)now_ns;
	want_confirm(CONTAINER_OF(t, struct siw_qp, confirm_timer));
}

void
siw_answer_timeout(struct timer *t, int64_t now_ns)
{
	(void)now_ns;
	siw_qp_break(CONTAINER_OF(t, struct siw_qp, answer_timer), "the peer does not answer", RNIC_WC_RETRY_EXC, NULL);
}

void
siw_confirm(struct rnic_qp *rqp)
{
	struct siw_qp *qp = siw_qp(rqp);

	if (qp->state == SIW_RTS && qp->sq_head != qp->sq_done)
		want_confirm(qp);
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

/* One request of this kind has been posted. */
static void
room_less(struct rnic_room *room, enum rnic_wr_op op, size_t len)
{
	room->wrs--;
	if (op == RNIC_WR_SEND)
		room->sends--;
	if (room->sends > room->wrs)
		room->sends = room->wrs;
	room->bytes -= len < room->bytes ? len : room->bytes;
}

int
siw_post_send(struct rnic_qp *rqp, const struct rnic_send_wr *wr)
{
	struct siw_qp *qp = siw_qp(rqp);
	struct rnic_room room;
	size_t len;
	int rc;

	if (qp->state != SIW_RTS || !qp->connected)
		return -ENOTCONN;
	rc = rnic_wr_check(wr, &qp->pd->pd, RNIC_SGE_MAX, SIW_MAX_INLINE, &len);
	if (rc < 0)
		return rc;
	siw_room(rqp, &room);
	if (room.wrs == 0 || (wr->op == RNIC_WR_SEND && room.sends == 0)) {
		qp->starved |= starved_by(qp, &room);
		return -ENOBUFS;
	}
	wr_take(&qp->sq[qp->sq_head++ & qp->sq_mask], wr, len);
	qp->sq_bytes += len;
	if (wr->op == RNIC_WR_SEND)
		qp->sends_out++;
	if (wr->flags & RNIC_SIGNALED) {
		qp->sq_sig = qp->sq_head;
		siw_confirm_arm(qp);
	}
	room_less(&room, wr->op, len);
	qp->starved |= starved_by(qp, &room);
	siw_tx_mark(qp);
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
		siw_rx_mark(qp);
	return 0;
}
