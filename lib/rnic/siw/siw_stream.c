/* Soft iWARP: the established stream: input, output, loss; see siw_int.h. */
#include "base/minmax.h"
#include "rnic/siw/siw_llp.h"
#include "wire/rdmap.h"

/* -- output -- */

void
siw_tx_schedule(struct siw_qp *qp)
{
	if (!qp->tx_blocked && qp->state == SIW_RTS && list_empty(&qp->tx_node))
		list_push(&qp->dev->tx_list, &qp->tx_node);
}

void
siw_tx_unblocked(struct siw_qp *qp)
{
	qp->tx_blocked = false;
	siw_tx_schedule(qp);
}

static void
siw_tx_put(struct siw_qp *qp, const struct ddp_hdr *h, const struct txq_payload *payload)
{
	qp->dev->llp->put(qp, h, payload);
	qp->dev->stats.fpdus_sent++;
}

/* Copies the bytes. */
static void
put_bytes(struct siw_qp *qp, struct ddp_hdr h, const void *bytes, size_t len)
{
	siw_tx_put(qp, &h,
	    &(struct txq_payload){
	        .cnt = 1, .len = len, .v = { { .iov_base = (void *)(uintptr_t)bytes, .iov_len = len } } });
}

/* A Read that proves all requests turned into segments so far. It reads the peer's fence bytes; none as an RTR, or if
 * the peer has none. */
static void
put_read(struct siw_qp *qp, bool rtr)
{
	struct rdmap_read rd = { .sink_stag = FENCE_EMPTY_STAG, .src_stag = FENCE_EMPTY_STAG };
	uint8_t body[RDMAP_READ_LEN];

	if (qp->fence.peer_stag != 0 && !rtr)
		rd = (struct rdmap_read){
			.sink_stag = qp->fence_region.stag,
			.sink_to = qp->fence_region.base + MPA_FENCE_LEN,
			.size = MPA_FENCE_LEN,
			.src_stag = qp->fence.peer_stag,
			.src_to = qp->fence.peer_to,
		};
	put_bytes(qp, stream_read_hdr(&qp->stream, &rd, body), body, sizeof(body));
	fence_sent(&qp->fence);
	qp->dev->stats.reads_sent++;
}

/* A Read goes between requests only, and within the peer's Read depth. */
static bool
may_fence(const struct siw_qp *qp)
{
	return qp->enc_off == 0 && stream_reads_out(&qp->stream) < qp->stream.ord;
}

/* The next segment of the oldest incomplete request. False: no room. */
static bool
put_request(struct siw_qp *qp)
{
	const struct siw_wr *wr = &qp->wrs[qp->sq.sent & qp->wr_mask];
	const struct iovec copy = { .iov_base = (void *)(uintptr_t)wr->u.bytes, .iov_len = wr->len };
	size_t max = qp->seg_max - (wr->op == RNIC_WR_WRITE ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN);
	size_t len = min_size(wr->len - qp->enc_off, max);
	bool last = qp->enc_off + len == wr->len;
	struct txq_payload p;
	struct ddp_hdr h;

	if (!qp->dev->llp->room(qp, len))
		return false;
	p.len = len;
	p.cnt = wr->flags & RNIC_INLINE ? txq_pieces(&copy, 1, qp->enc_off, len, p.v)
	                                : txq_pieces(wr->u.sge, wr->sge_cnt, qp->enc_off, len, p.v);
	if (wr->op == RNIC_WR_WRITE)
		h = stream_tagged_hdr(RDMAP_WRITE, wr->rkey, wr->raddr + qp->enc_off, last);
	else
		h = stream_untagged_hdr(
		    &qp->stream, wr->flags & RNIC_SOLICITED ? RDMAP_SEND_SE : RDMAP_SEND, qp->enc_off, last);
	siw_tx_put(qp, &h, &p);
	qp->sq.bytes -= len;
	qp->enc_off += (uint32_t)len;
	if (last) {
		qp->enc_off = 0;
		qp->sq.sent++;
	}
	return true;
}

/* A segment of the answer to the peer's Read. It is copied: the region may be deregistered before it is sent. False: no
 * room, or the QP is broken. */
static bool
put_response(struct siw_qp *qp)
{
	size_t max = min_size(qp->seg_max - DDP_TAGGED_LEN, TXQ_COPY_MAX); /* put copies no more */
	struct rdmap_term term;
	struct ddp_hdr h;
	struct span from;

	if (!qp->dev->llp->room(qp, max))
		return false;
	if (!stream_serve(&qp->stream, max, &h, &from, &term)) {
		siw_qp_break(qp, "the peer reads deregistered memory", RNIC_WC_LOCAL_ERR, &term);
		return false;
	}
	put_bytes(qp, h, from.ptr, from.len);
	if (h.last)
		qp->dev->stats.reads_served++;
	return true;
}

void
siw_tx_fill(struct siw_qp *qp)
{
	while (qp->state == SIW_RTS && qp->dev->llp->room(qp, RDMAP_READ_LEN)) {
		/* Tagged messages must not be interleaved: an answer goes between requests, as a whole. */
		if (qp->enc_off == 0 && stream_must_serve(&qp->stream)) {
			if (!put_response(qp))
				return;
		} else if (qp->enc_off == 0 && qp->nudge) {
			/* Some responders miss a first segment that arrives just before they wait for it. They check
			 * again on further input. */
			qp->nudge = false;
			put_bytes(qp, stream_tagged_hdr(RDMAP_WRITE, FENCE_EMPTY_STAG, 0, true), NULL, 0);
		} else if (may_fence(qp) && fence_wanted(&qp->fence)) {
			put_read(qp, false);
		} else if (qp->sq.sent == qp->sq.head || !put_request(qp)) {
			/* No request fits before the Read: one Read for as many as possible. */
			if (!may_fence(qp) || !fence_pressed(&qp->fence))
				return;
			put_read(qp, false);
		}
	}
}

void
siw_tx_rtr(struct siw_qp *qp, unsigned rtr)
{
	siw_arm(qp->dev, &qp->nudge_timer, SIW_NUDGE_MS);
	if (rtr == RTR_READ)
		put_read(qp, true);
	else if (rtr == RTR_SEND)
		put_bytes(qp, stream_untagged_hdr(&qp->stream, RDMAP_SEND, 0, true), NULL, 0);
	else /* without RTR as well: the first segment must be ours */
		put_bytes(qp, stream_tagged_hdr(RDMAP_WRITE, 1, 0, true), NULL, 0);
}

void
siw_nudge_timeout(struct timer *t)
{
	struct siw_qp *qp = CONTAINER_OF(t, struct siw_qp, nudge_timer);

	if (qp->state != SIW_RTS || qp->stream.started)
		return;
	qp->nudge = true;
	siw_tx_schedule(qp);
}

bool
siw_tx_terminate(struct siw_qp *qp, const struct rdmap_term *term)
{
	uint8_t body[RDMAP_TERM_MAX];
	int len = rdmap_term_encode(term, body);

	/* No segment may be sent before the initiator's first one; then the Terminate is dropped. */
	if (len < 0 || !qp->dev->llp->room(qp, RDMAP_TERM_MAX) || (qp->state == SIW_RTR_WAIT && !qp->stream.started))
		return false;
	put_bytes(qp, stream_untagged_hdr(&qp->stream, RDMAP_TERMINATE, 0, true), body, (size_t)len);
	qp->dev->stats.terminates_sent++;
	return true;
}

static void
tx_turn(struct siw_qp *qp)
{
	const struct siw_llp *llp = qp->dev->llp;
	enum siw_push how = SIW_PUSH_SENT;
	size_t sent = 0;

	llp->push_begin(qp);
	while (sent < SIW_TX_BUDGET && how == SIW_PUSH_SENT) {
		siw_tx_fill(qp);
		how = qp->state == SIW_RTS ? llp->push(qp, &sent) : SIW_PUSH_OVER;
	}
	/* The peer accepts data again. With a fence outstanding only its answer proves that, whatever room an LLP
	 * reports. */
	if (sent > 0 && !qp->fence.out)
		timer_cancel(&qp->dev->timers, &qp->fence.answer_timer);
	if (how == SIW_PUSH_BLOCKED) {
		/* A peer that accepts no data is as silent as one that does not answer, and there may be no room for a
		 * Read. */
		qp->tx_blocked = true;
		if (!timer_armed(&qp->fence.answer_timer))
			fence_expect_answer(&qp->fence);
	}
	qp->dev->stats.bytes_sent += sent;
	if (qp->state != SIW_RTS)
		return;
	if (sent >= SIW_TX_BUDGET)
		siw_tx_schedule(qp);
	siw_credits_changed(qp);
}

void
siw_flush(struct rnic_dev *rdev)
{
	struct siw_dev *dev = siw_dev(rdev);
	struct list_node turn, *n;

	/* Unfinished QPs go on the list of the next turn. */
	list_move_all(&turn, &dev->tx_list);
	while ((n = list_pop(&turn)) != NULL)
		tx_turn(CONTAINER_OF(n, struct siw_qp, tx_node));
	if (dev->flush != NULL)
		dev->flush(dev);
}

/* -- input -- */

void
siw_rx_schedule(struct siw_qp *qp)
{
	if (list_empty(&qp->rx_node))
		list_push(&qp->dev->rx_list, &qp->rx_node);
}

bool
siw_rx_started(struct siw_qp *qp)
{
	if (qp->state != SIW_RTR_WAIT)
		return true;
	siw_qp_set_state(qp, SIW_RTS);
	/* The user gives up a QP that is not claimed yet. */
	timer_cancel(&qp->dev->timers, &qp->connect_timer);
	siw_cm_check_connected(qp);
	if (qp->state != SIW_RTS)
		return false;
	siw_tx_schedule(qp);
	return true;
}

enum siw_seg
siw_segment_in(struct siw_qp *qp, struct span segment)
{
	struct siw_dev *dev = qp->dev;
	struct stream_ev ev;

	switch (stream_ulpdu(&qp->stream, segment, &ev)) {
	case STREAM_RX_NONE:
		break;
	case STREAM_RX_RECV:
		siw_complete(qp, ev.wr_id, RNIC_WC_RECV, RNIC_WC_OK, ev.len);
		break;
	case STREAM_RX_READ_REQ:
		siw_tx_schedule(qp);
		break;
	case STREAM_RX_READ_DONE:
		siw_complete_sends(qp, fence_answered(&qp->fence));
		siw_credits_changed(qp);
		fence_arm(&qp->fence);
		siw_tx_schedule(qp);
		break;
	case STREAM_RX_NO_RECV:
		dev->stats.recv_stalls++;
		return SIW_SEG_HELD;
	case STREAM_RX_TERMINATED:
		dev->stats.terminates_received++;
		siw_qp_break(qp, rdmap_term_str(ev.term.layer, ev.term.etype, ev.term.code), RNIC_WC_REMOTE_ERR, NULL);
		return SIW_SEG_END;
	case STREAM_RX_ERROR:
		siw_qp_break(qp, "iWARP protocol violation by the peer", RNIC_WC_LOCAL_ERR, &ev.term);
		return SIW_SEG_END;
	}
	return siw_rx_started(qp) ? SIW_SEG_TAKEN : SIW_SEG_END;
}
