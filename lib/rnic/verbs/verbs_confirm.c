/*
 * The verbs device: confirmation on iWARP; see verbs_int.h. A card's completion
 * says there that TCP has taken the bytes, and even TCP's acknowledgement does
 * not say that the peer's card has placed them. A Read does, as it is answered
 * in order behind them: of the few bytes that the peer has for that (mpa_pdata.h)
 * or none, one at a time, posted when a user waits for a completion, or half of
 * a queue, of the peer's receives or of the bytes worth queueing is used up.
 * Unanswered for too long, it is the end of the link.
 */
#include <errno.h>

#include "rnic/verbs/verbs_int.h"

/* Of zero bytes nobody looks at the STag (RFC 5040); 1, as soft iWARP does, because some dislike 0. */
#define READ_STAG 1

static int64_t
ms(uint32_t n)
{
	return (int64_t)n * 1000000;
}

static bool
is_open(const struct verbs_qp *qp)
{
	return verbs_is_iwarp(qp->dev) && (qp->state == VERBS_RTS || qp->lingers);
}

/* -- when -- */

static void
mark(struct verbs_qp *qp)
{
	if (list_empty(&qp->tx_node))
		list_push(&qp->dev->tx_list, &qp->tx_node);
}

static bool
is_due(const struct verbs_qp *qp)
{
	const struct verbs_confirm *c = &qp->confirm;

	if (c->read_out || qp->sq_ended == qp->sq_hw)
		return false;
	/* Positions only grow; the difference is right over the wrap. */
	if ((int32_t)(c->want_pos - qp->sq_ended) > 0 && (int32_t)(qp->sq_hw - c->want_pos) >= 0)
		return true;
	return (qp->sq_hw - qp->sq_ended) * 2 > qp->sq_depth || c->sends_out * 2 > c->peer_depth ||
	    qp->sq_bytes * 2 > VERBS_BYTES;
}

static void
arm(struct verbs_qp *qp)
{
	struct verbs_confirm *c = &qp->confirm;
	uint32_t covered = c->read_out ? c->read_pos : qp->sq_ended;

	if ((int32_t)(c->sig_pos - covered) <= 0 || (int32_t)(c->want_pos - c->sig_pos) >= 0 ||
	    timer_armed(&c->confirm_timer))
		return;
	timer_arm(&qp->dev->timers, &c->confirm_timer, qp->dev->dev.now_ns + ms(qp->dev->cfg.confirm_ms));
}

/*
 * There are responders that miss a first message which comes while they are about to wait for it: they look again when more
 * arrives. It is no Read, whose answer could be taken for that of a later one.
 */
static void
nudge(struct verbs_qp *qp)
{
	struct ibv_sge sge = { .addr = (uintptr_t)&qp->confirm.bytes[MPA_FENCE_LEN], .lkey = qp->confirm.mr->lkey };
	struct ibv_send_wr *bad,
	    wr = {
		    .wr_id = VERBS_ID_NUDGE,
		    .sg_list = &sge,
		    .num_sge = 1,
		    .opcode = IBV_WR_RDMA_WRITE,
		    .send_flags = IBV_SEND_SIGNALED,
		    .wr.rdma.rkey = READ_STAG,
	    };

	qp->confirm.nudge_out = ibv_post_send(qp->hw, &wr, &bad) == 0;
}

void
verbs_confirm_want(struct rnic_qp *rqp)
{
	struct verbs_qp *qp = verbs_qp(rqp);

	if (!is_open(qp) || qp->sq_head == qp->sq_ended)
		return;
	qp->confirm.want_pos = qp->sq_head;
	timer_cancel(&qp->dev->timers, &qp->confirm.confirm_timer);
	mark(qp);
}

static void
confirm_timeout(struct timer *t, int64_t now_ns)
{
	struct verbs_qp *qp = CONTAINER_OF(t, struct verbs_qp, confirm.confirm_timer);

	(void)now_ns;
	if (qp->state == VERBS_CONNECTING)
		nudge(qp);
	else
		verbs_confirm_want(&qp->qp);
}

void
verbs_confirm_posted(struct verbs_qp *qp, const struct verbs_wr *wr)
{
	if (!wr->signaled)
		return;
	qp->confirm.sig_pos = qp->sq_head;
	arm(qp);
}

/* -- the Read -- */

static void
answer_timeout(struct timer *t, int64_t now_ns)
{
	struct verbs_qp *qp = CONTAINER_OF(t, struct verbs_qp, confirm.answer_timer);

	(void)now_ns;
	verbs_fail_oldest(qp, RNIC_WC_RETRY_EXC);
	verbs_qp_break(qp, "the peer does not answer");
	if (qp->orphan)
		verbs_qp_bury(qp);
}

/* Posts the Read behind everything that the card has: 0 or a positive errno. */
static int
post_read(struct verbs_qp *qp)
{
	struct verbs_confirm *c = &qp->confirm;
	/* One piece of valid memory, if empty: there are drivers that take num_sge for 1 whatever it says. */
	struct ibv_sge sge = {
		.addr = (uintptr_t)&c->bytes[MPA_FENCE_LEN],
		.length = c->peer_stag != 0 ? MPA_FENCE_LEN : 0,
		.lkey = c->mr->lkey,
	};
	struct ibv_send_wr *bad,
	    wr = {
		    .wr_id = VERBS_ID_READ,
		    .sg_list = &sge,
		    .num_sge = 1,
		    .opcode = IBV_WR_RDMA_READ,
		    .send_flags = IBV_SEND_SIGNALED,
		    .wr.rdma.rkey = c->peer_stag != 0 ? c->peer_stag : READ_STAG,
		    .wr.rdma.remote_addr = c->peer_stag != 0 ? c->peer_to : 0,
	    };
	int err = ibv_post_send(qp->hw, &wr, &bad);

	if (err != 0)
		return err;
	c->read_out = true;
	c->read_pos = qp->sq_hw;
	qp->dev->stats.reads_sent++;
	timer_arm(&qp->dev->timers, &c->answer_timer, qp->dev->dev.now_ns + ms(qp->dev->cfg.answer_ms));
	return 0;
}

int
verbs_confirm_first(struct verbs_qp *qp)
{
	timer_arm(&qp->dev->timers, &qp->confirm.confirm_timer, qp->dev->dev.now_ns + ms(VERBS_NUDGE_MS));
	return post_read(qp);
}

void
verbs_confirm_flush(struct verbs_qp *qp)
{
	if (is_open(qp) && is_due(qp) && post_read(qp) != 0)
		verbs_qp_break(qp, "the RDMA device did not take a work request");
}

/* The nudge has the place of a later request as long as the card has it. */
static void
first_ended(struct verbs_qp *qp)
{
	timer_cancel(&qp->dev->timers, &qp->confirm.confirm_timer);
	if (!qp->confirm.nudge_out)
		verbs_iwarp_answered(qp);
}

void
verbs_confirm_nudge_ended(struct verbs_qp *qp)
{
	qp->confirm.nudge_out = false;
	if (qp->state == VERBS_CONNECTING && !qp->confirm.read_out && !qp->failed)
		first_ended(qp);
}

void
verbs_confirm_read_ended(struct verbs_qp *qp, bool ok)
{
	struct verbs_confirm *c = &qp->confirm;

	if (!c->read_out)
		return; /* a card that errs */
	c->read_out = false;
	timer_cancel(&qp->dev->timers, &c->answer_timer);
	if (!ok || qp->failed)
		return;
	verbs_end_sends(qp, c->read_pos);
	if (qp->state == VERBS_CONNECTING) {
		first_ended(qp);
		return;
	}
	arm(qp);
	if (is_open(qp) && is_due(qp))
		mark(qp);
}

/* -- birth and end -- */

int
verbs_confirm_init(struct verbs_qp *qp)
{
	struct verbs_confirm *c = &qp->confirm;

	timer_init(&c->confirm_timer, confirm_timeout);
	timer_init(&c->answer_timer, answer_timeout);
	errno = 0;
	/* On iWARP the target of a Read needs remote write: the answer is a tagged message like a Write. */
	c->mr = ibv_reg_mr(qp->pd->hw, c->bytes, sizeof(c->bytes),
	    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	if (c->mr == NULL)
		return errno != 0 ? -errno : -ENOMEM;
	return 0;
}

void
verbs_confirm_peer(struct verbs_qp *qp, const struct mpa_pdata *peer)
{
	qp->confirm.peer_depth = peer->recv_depth;
	qp->confirm.peer_stag = peer->read_stag;
	qp->confirm.peer_to = peer->read_to;
}

void
verbs_confirm_stop(struct verbs_qp *qp)
{
	timer_cancel(&qp->dev->timers, &qp->confirm.confirm_timer);
	timer_cancel(&qp->dev->timers, &qp->confirm.answer_timer);
}
