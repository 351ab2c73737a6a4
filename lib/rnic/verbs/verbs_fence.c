/* The verbs device: the fence on iWARP cards (rnic/fence.h); see verbs_int.h. An iWARP card's completion means that TCP
 * took the bytes. Only the answer to a Read after them means that the peer's card placed them. */
#include <errno.h>

#include "rnic/verbs/verbs_int.h"

static bool
is_open(const struct verbs_qp *qp)
{
	return verbs_is_iwarp(qp->dev) && (qp->phase == VERBS_RTS || qp->phase == VERBS_LINGER);
}

/* -- timing -- */

static bool
is_due(const struct verbs_qp *qp)
{
	const struct sendq *sq = &qp->sq;

	return fence_wanted(&qp->fence) || fence_pressed(&qp->fence) ||
	    (!qp->fence.out && sq->sent != sq->done && sq->bytes * 2 > sq->bytes_max);
}

/* Posts a Read or Write of our fence bytes: 0 or a positive errno. */
static int
post_small(struct verbs_qp *qp, uint64_t id, enum ibv_wr_opcode op, uint32_t len, uint32_t stag, uint64_t to)
{
	/* One piece of valid memory, even if empty: some drivers assume num_sge to be 1. */
	struct ibv_sge sge = {
		.addr = (uintptr_t)&qp->fence.bytes[MPA_FENCE_LEN], .length = len, .lkey = qp->fence_mr->lkey
	};
	struct ibv_send_wr *bad, wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = op };

	wr.send_flags = IBV_SEND_SIGNALED;
	wr.wr.rdma.rkey = stag;
	wr.wr.rdma.remote_addr = to;
	return ibv_post_send(qp->hw, &wr, &bad);
}

void
verbs_fence(struct rnic_qp *rqp)
{
	struct verbs_qp *qp = verbs_qp(rqp);

	if (!is_open(qp) || qp->sq.head == qp->sq.done)
		return;
	fence_want(&qp->fence);
	verbs_tx_schedule(qp);
}

static void
on_delay(struct timer *t)
{
	struct verbs_qp *qp = CONTAINER_OF(t, struct verbs_qp, fence.delay_timer);

	/* Some responders miss a first message that arrives just before they wait for it. They check again on further
	 * input. Not a Read, whose answer could be mistaken for that of a later one. */
	if (qp->phase == VERBS_CONNECTING)
		qp->nudge_out = post_small(qp, VERBS_ID_NUDGE, IBV_WR_RDMA_WRITE, 0, FENCE_EMPTY_STAG, 0) == 0;
	else
		verbs_fence(&qp->qp);
}

/* -- the Read -- */

static void
on_silence(struct timer *t)
{
	struct verbs_qp *qp = CONTAINER_OF(t, struct verbs_qp, fence.answer_timer);

	if (qp->phase == VERBS_RTS) {
		events_add(&qp->dev->events, &qp->events, RNIC_EV_SILENT);
		fence_expect_answer(&qp->fence);
		return;
	}
	verbs_fail_oldest(qp, RNIC_WC_RETRY_EXC);
	verbs_qp_note_silence(qp);
	verbs_qp_break(qp, "the peer does not answer");
	verbs_qp_reap(qp);
}

/* Posts the Read after all requests passed to the card: 0 or a positive errno. */
static int
post_read(struct verbs_qp *qp)
{
	const struct fence *f = &qp->fence;
	int err = f->peer_stag != 0
	    ? post_small(qp, VERBS_ID_READ, IBV_WR_RDMA_READ, MPA_FENCE_LEN, f->peer_stag, f->peer_to)
	    : post_small(qp, VERBS_ID_READ, IBV_WR_RDMA_READ, 0, FENCE_EMPTY_STAG, 0);

	if (err != 0)
		return err;
	fence_sent(&qp->fence);
	qp->dev->stats.reads_sent++;
	return 0;
}

int
verbs_fence_first(struct verbs_qp *qp)
{
	verbs_arm(qp->dev, &qp->fence.delay_timer, VERBS_NUDGE_MS);
	return post_read(qp);
}

void
verbs_fence_flush(struct verbs_qp *qp)
{
	if (is_open(qp) && is_due(qp) && post_read(qp) != 0)
		verbs_qp_break(qp, "the RDMA device rejected a work request");
}

/* The nudge occupies the entry of a later request until the card is done with it. */
static void
first_ended(struct verbs_qp *qp)
{
	timer_cancel(&qp->dev->timers, &qp->fence.delay_timer);
	if (!qp->nudge_out && qp->side == RNIC_ACTIVE && qp->phase == VERBS_CONNECTING)
		verbs_qp_connected(qp, VERBS_RTS);
}

void
verbs_fence_nudge_ended(struct verbs_qp *qp)
{
	qp->nudge_out = false;
	if (qp->phase == VERBS_CONNECTING && !qp->fence.out && !qp->failed)
		first_ended(qp);
}

void
verbs_fence_read_ended(struct verbs_qp *qp, bool ok)
{
	if (!qp->fence.out)
		return; /* a faulty card */
	uint32_t pos = fence_answered(&qp->fence);
	if (!ok || qp->failed)
		return;
	verbs_end_sends(qp, pos);
	if (qp->phase == VERBS_CONNECTING) {
		first_ended(qp);
		return;
	}
	fence_arm(&qp->fence);
	if (is_open(qp) && is_due(qp))
		verbs_tx_schedule(qp);
}

int
verbs_fence_init(struct verbs_qp *qp)
{
	struct verbs_dev *dev = qp->dev;

	qp->fence = (struct fence){
		.sq = &qp->sq,
		.dev = &dev->dev,
		.timers = &dev->timers,
		.delay_ms = dev->cfg.fence_ms,
		.answer_ms = dev->cfg.answer_ms,
	};
	fence_init(&qp->fence, on_delay, on_silence);
	if (!verbs_is_iwarp(dev))
		return 0;
	errno = 0;
	/* On iWARP the sink of a Read needs remote write: the answer is a tagged message like a Write. */
	qp->fence_mr = ibv_reg_mr(qp->pd->hw, qp->fence.bytes, sizeof(qp->fence.bytes),
	    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	return qp->fence_mr != NULL ? 0 : errno != 0 ? -errno : -ENOMEM;
}
