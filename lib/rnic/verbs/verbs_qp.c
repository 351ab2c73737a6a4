/*
 * The verbs device: queue pairs: birth, states, events, the end; see
 * verbs_int.h.
 *
 * A QP that breaks or is disconnected goes to the error state, in which the
 * card takes nothing that arrives and ends what is posted. Its user hears of
 * that when all of it has ended: a buffer is the card's until then.
 *
 * Destroying one may take the kernel seconds, with packets of it that wait for
 * an address: a thread does that. A QP killed for its user's sake is destroyed
 * alone, and its CQ polled when it comes back; an orphan with all it has.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/pages.h"
#include "rnic/verbs/verbs_int.h"

#define TIMERS (1 + FENCE_TIMERS) /* its own, too */

/* -- states -- */

void
verbs_qp_set_state(struct verbs_qp *qp, enum verbs_state to)
{
	assert(to > qp->state);
	qp->state = to;
}

static bool
is_held(const struct verbs_qp *qp)
{
	return qp->dev->connect->holds != NULL && qp->dev->connect->holds(qp);
}

static int
to_error_state(struct verbs_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	return ibv_modify_qp(qp->hw, &attr, IBV_QP_STATE);
}

/* The state is BROKEN or CLOSED: makes the card end all requests. */
static void
stop_hw(struct verbs_qp *qp)
{
	const struct verbs_connect_ops *connect = qp->dev->connect;
	bool stopped;

	list_remove(&qp->tx_node);
	qp->chain_cnt = 0;
	qp->flushing = true;
	if (connect->leaving != NULL)
		connect->leaving(qp);
	qp->lingers = false;
	fence_stop(&qp->fence);
	if (qp->job_state != VERBS_JOB_NONE)
		verbs_cm_cancel(qp);
	if (qp->job_state != VERBS_JOB_NONE)
		return; /* goes on when the thread hands it back */
	qp->stopped = qp->hw != NULL && !qp->dev->gone && to_error_state(qp) == 0;
	stopped = qp->stopped && verbs_post_drain(qp);
	if (connect->left != NULL)
		connect->left(qp);
	if (!stopped) {
		verbs_qp_kill(qp);
		return;
	}
	verbs_arm(qp->dev, &qp->timer, VERBS_FLUSH_MS);
	verbs_cq_schedule(qp);
	verbs_qp_check_end(qp);
}

void
verbs_qp_break(struct verbs_qp *qp, const char *why)
{
	if (qp->lingers) {
		stop_hw(qp);
		return;
	}
	if (qp->state >= VERBS_BROKEN)
		return;
	qp->events.why = why;
	verbs_qp_set_state(qp, VERBS_BROKEN);
	stop_hw(qp);
}

/* In the thread. */
static void
end_run(struct verbs_job *job)
{
	struct verbs_end *end = CONTAINER_OF(job, struct verbs_end, job);

	if (end->hw != NULL)
		(void)ibv_destroy_qp(end->hw);
	if (end->cq != NULL)
		(void)ibv_destroy_cq(end->cq);
	if (end->msg_mr != NULL)
		(void)ibv_dereg_mr(end->msg_mr);
	if (end->fence_mr != NULL)
		(void)ibv_dereg_mr(end->fence_mr);
	end->hw = NULL;
	end->cq = NULL;
	end->msg_mr = end->fence_mr = NULL;
}

static void
give_end(struct verbs_qp *qp, void (*done)(struct verbs_job *))
{
	qp->job_state = VERBS_JOB_ENDING;
	qp->end.job.run = end_run;
	qp->end.job.done = done;
	qp->end.dead = qp->stopped || qp->dev->gone;
	qp->pd->dead_cnt += qp->end.dead;
	verbs_cm_end(qp->dev, &qp->end.job);
}

static struct verbs_qp *
take_end(struct verbs_job *job)
{
	struct verbs_qp *qp = CONTAINER_OF(job, struct verbs_qp, end.job);

	qp->job_state = VERBS_JOB_NONE;
	qp->pd->dead_cnt -= qp->end.dead;
	qp->dev->end_cnt--;
	return qp;
}

/* The card is done with the buffers. */
static void
killed(struct verbs_job *job)
{
	struct verbs_qp *qp = take_end(job);

	verbs_cq_empty(qp);
	verbs_qp_check_end(qp);
	if (qp->orphan)
		verbs_qp_bury(qp);
}

void
verbs_qp_kill(struct verbs_qp *qp)
{
	struct ibv_qp *hw = qp->hw;

	assert(qp->job_state == VERBS_JOB_NONE);
	if (qp->state < VERBS_BROKEN) {
		qp->events.why = "the RDMA device is gone";
		verbs_qp_set_state(qp, VERBS_BROKEN);
	}
	list_remove(&qp->tx_node);
	qp->chain_cnt = 0;
	qp->lingers = false;
	qp->flushing = true;
	fence_stop(&qp->fence);
	if (hw != NULL) {
		/* What has ended, and how: there are cards that take it from the CQ together with the QP. */
		verbs_cq_empty(qp);
		qp->hw = NULL;
		if (!is_held(qp)) {
			timer_cancel(&qp->dev->timers, &qp->timer);
			qp->end.hw = hw;
			give_end(qp, killed);
			return;
		}
		qp->held_hw = hw; /* destroying it would wait for the connection's outcome; it is in the error state */
	}
	verbs_qp_check_end(qp);
}

void
verbs_qp_check_end(struct verbs_qp *qp)
{
	if (qp->lingers && qp->sq.done == qp->sq.head) {
		stop_hw(qp);
		return;
	}
	if (!qp->flushing || qp->job_state == VERBS_JOB_ENDING ||
	    (qp->hw != NULL && (!qp->drained || qp->rq_ended != qp->rq_hw)))
		return;
	verbs_end_all(qp);
	qp->flushing = false;
	timer_cancel(&qp->dev->timers, &qp->timer);
	verbs_cq_schedule(qp);
	if (qp->state != VERBS_BROKEN)
		return;
	if (qp->connected)
		verbs_event(qp, RNIC_EV_QP_ERROR);
	else if (qp->claimed)
		verbs_event(qp, RNIC_EV_CONNECT_FAILED);
}

/* The card does not flush, or the peer does not take the last words. */
static void
on_timer(struct timer *t, int64_t now_ns)
{
	struct verbs_qp *qp = CONTAINER_OF(t, struct verbs_qp, timer);

	(void)now_ns;
	if (qp->lingers)
		stop_hw(qp);
	else if (qp->state < VERBS_BROKEN && qp->dev->connect->timed_out != NULL)
		qp->dev->connect->timed_out(qp);
	else
		verbs_qp_kill(qp);
	if (qp->orphan)
		verbs_qp_bury(qp);
}

/* -- birth -- */

static size_t
sq_bytes(const struct verbs_qp *qp)
{
	return ((size_t)qp->wr_mask + 1) * sizeof(*qp->wrs);
}

static size_t
msg_bytes(const struct verbs_qp *qp)
{
	return ((size_t)qp->wr_mask + 1) * sizeof(*qp->msg);
}

static size_t
rq_bytes(const struct verbs_qp *qp)
{
	return ((size_t)qp->rq_mask + 1) * sizeof(*qp->rq);
}

static int
alloc_queues(struct verbs_qp *qp)
{
	/* In pages: touched when used, and given back whatever else lives on. */
	qp->wrs = pages_alloc(sq_bytes(qp));
	qp->msg = pages_alloc(msg_bytes(qp));
	qp->rq = pages_alloc(rq_bytes(qp));
	qp->chain = pages_alloc(sizeof(*qp->chain));
	return qp->wrs != NULL && qp->msg != NULL && qp->rq != NULL && qp->chain != NULL ? 0 : -ENOMEM;
}

/* What a verbs call left in errno when it gave NULL. */
static int
verbs_errno(void)
{
	return errno != 0 ? -errno : -ENOMEM;
}

static int
make_hw(struct verbs_qp *qp)
{
	struct verbs_dev *dev = qp->dev;
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = qp->sq.depth + 1, /* the last one of all; of iWARP, the Read */
		    .max_recv_wr = qp->rq_depth,
		    .max_send_sge = dev->max_sge,
		    .max_recv_sge = 1,
		    .max_inline_data = dev->has_inline ? VERBS_INLINE : 0 },
		.qp_type = IBV_QPT_RC,
	};
	int rc;

	errno = 0;
	/* A CQ of its own, that takes all that can be posted: it cannot overflow. */
	qp->cq = ibv_create_cq(
	    dev->ctx, (int)(qp->sq.depth + 1 + qp->rq_depth), (void *)(uintptr_t)qp->id, dev->channel, 0);
	if (qp->cq == NULL)
		return verbs_errno();
	init.send_cq = init.recv_cq = qp->cq;
	qp->hw = ibv_create_qp(qp->pd->hw, &init);
	if (qp->hw == NULL)
		return verbs_errno();
	if (!dev->has_inline) {
		qp->msg_mr = ibv_reg_mr(qp->pd->hw, qp->msg, msg_bytes(qp), IBV_ACCESS_LOCAL_WRITE);
		if (qp->msg_mr == NULL)
			return verbs_errno();
	}
	rc = verbs_fence_init(qp);
	return rc < 0 ? rc : verbs_cq_arm(qp);
}

int
verbs_qp_create(struct rnic_pd *pd, const struct rnic_qp_attr *attr, struct rnic_qp **out)
{
	struct verbs_dev *dev = verbs_dev(pd->dev);
	struct verbs_qp *qp;
	int rc;

	if (attr->sq_depth == 0 || attr->sq_depth > dev->max_sq || attr->rq_depth == 0 || attr->rq_depth > dev->max_rq)
		return -EINVAL;
	if (dev->gone)
		return -ENODEV;
	if (dev->qp_cnt + dev->orphan_cnt >= dev->max_qp)
		return -ENOSPC;
	if (timerq_reserve(&dev->timers, TIMERS) < 0)
		return -ENOMEM;
	qp = calloc(1, sizeof(*qp));
	if (qp == NULL || (qp->id = idtable_add(&dev->ids, qp)) == 0) {
		timerq_unreserve(&dev->timers, TIMERS);
		free(qp);
		return -ENOMEM;
	}
	qp->dev = dev;
	qp->pd = verbs_pd(pd);
	qp->pd->refs++;
	qp->pd->qp_cnt++;
	qp->sq = (struct sendq){
		.depth = attr->sq_depth,
		.peer_depth = verbs_is_iwarp(dev) ? 0 : UINT32_MAX,
		.bytes_max = VERBS_BYTES,
	};
	qp->rq_depth = attr->rq_depth;
	qp->token = attr->token;
	qp->wr_mask = ring_size(attr->sq_depth) - 1;
	qp->rq_mask = ring_size(attr->rq_depth) - 1;
	timer_init(&qp->timer, on_timer);
	list_init(&qp->hot_node);
	list_init(&qp->tx_node);
	qp_events_init(&qp->events, &qp->qp);
	list_init(&qp->job.node);
	list_init(&qp->end.job.node);
	list_push(&dev->qps, &qp->node);
	dev->qp_cnt++;
	rc = alloc_queues(qp);
	if (rc == 0)
		rc = make_hw(qp);
	if (rc == 0)
		rc = dev->connect->init(qp);
	if (rc < 0) {
		verbs_qp_release(qp);
		verbs_trouble(dev, -rc, "the RDMA device makes no more queue pairs");
		return rc;
	}
	qp->qp = (struct rnic_qp){
		.dev = &dev->dev,
		.ctx = attr->ctx,
		.qpn = qp->hw->qp_num,
		.psn = rng_below(dev->rng, 1u << 24),
	};
	*out = &qp->qp;
	return 0;
}

/* -- connecting -- */

int
verbs_qp_expect(struct rnic_qp *rqp)
{
	struct verbs_qp *qp = verbs_qp(rqp);

	return qp->dev->connect->expect(qp);
}

int
verbs_qp_connect(struct rnic_qp *rqp, enum rnic_side side, const struct rnic_remote *remote)
{
	struct verbs_qp *qp = verbs_qp(rqp);
	int rc;

	if (qp->dev->gone)
		return -ENODEV;
	/* A peer that we expect may be here before we hear of it, and gone, too. */
	if (qp->claimed || qp->state == VERBS_CLOSED || (qp->state != VERBS_INIT && !qp->expecting))
		return -EINVAL;
	qp->side = side;
	qp->remote = *remote;
	qp->claimed = true;
	if (qp->state == VERBS_BROKEN) {
		if (!qp->flushing)
			verbs_event(qp, RNIC_EV_CONNECT_FAILED);
		return 0;
	}
	rc = qp->dev->connect->connect(qp);
	qp->claimed = rc == 0;
	return rc;
}

int
verbs_qp_rts(struct rnic_qp *rqp)
{
	struct verbs_qp *qp = verbs_qp(rqp);

	return qp->dev->connect->rts(qp);
}

void
verbs_qp_connected(struct verbs_qp *qp)
{
	qp->connected = true;
	verbs_event(qp, RNIC_EV_CONNECTED);
}

static const char *
connect_why(int err)
{
	switch (err) {
	case ETIMEDOUT:
	case EHOSTUNREACH:
	case ENETUNREACH:
	case EHOSTDOWN:
		return "the peer's address does not answer";
	case EINVAL:
		return "the RDMA device does not take the connection's attributes";
	default:
		return "the RDMA device could not connect the queue pair";
	}
}

void
verbs_qp_job_done(struct verbs_qp *qp)
{
	qp->job_state = VERBS_JOB_NONE;
	if (qp->dev->gone)
		verbs_qp_kill(qp);
	else if (qp->state >= VERBS_BROKEN)
		stop_hw(qp);
	else if (qp->job.err != 0)
		verbs_qp_break(qp, connect_why(qp->job.err));
	else {
		verbs_qp_set_state(qp, qp->job.to_rts ? VERBS_RTS : VERBS_RTR);
		verbs_qp_connected(qp);
	}
	if (qp->orphan)
		verbs_qp_bury(qp);
}

/* -- the end -- */

/* What is posted goes out, nothing comes in any more. */
static void
linger(struct verbs_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_access_flags = 0 };

	qp->lingers = true;
	/* A card that refuses: its user takes the memory away with the next calls. */
	if (!verbs_is_iwarp(qp->dev)) /* their cards know of no such change */
		(void)ibv_modify_qp(qp->hw, &attr, IBV_QP_ACCESS_FLAGS);
	verbs_fence(&qp->qp);
	verbs_fence_flush(qp);
	verbs_arm(qp->dev, &qp->timer, VERBS_LINGER_MS);
}

void
verbs_qp_disconnect(struct rnic_qp *rqp, bool graceful)
{
	struct verbs_qp *qp = verbs_qp(rqp);
	enum verbs_state from;

	if (graceful && qp->state == VERBS_RTS)
		verbs_chain_post(qp);
	from = qp->state;
	if (from != VERBS_CLOSED)
		verbs_qp_set_state(qp, VERBS_CLOSED);
	if (from == VERBS_RTS && graceful && qp->sq.done != qp->sq.head)
		linger(qp);
	else if (from < VERBS_BROKEN)
		stop_hw(qp);
	events_drop(&qp->events);
}

/* No list, timer or connection knows it any more, but that of all. */
static void
detach(struct verbs_qp *qp)
{
	struct verbs_dev *dev = qp->dev;

	list_remove(&qp->hot_node);
	list_remove(&qp->tx_node);
	events_drop(&qp->events);
	timer_cancel(&dev->timers, &qp->timer);
	fence_stop(&qp->fence);
	if (dev->connect->left != NULL)
		dev->connect->left(qp);
}

/* To what is to be taken from the card, which may have something in it already. */
static void
move_to_end(struct verbs_qp *qp)
{
	if (qp->hw != NULL || qp->held_hw != NULL)
		qp->end.hw = qp->hw != NULL ? qp->hw : qp->held_hw;
	qp->hw = qp->held_hw = NULL;
	if (qp->unacked > 0)
		ibv_ack_cq_events(qp->cq, qp->unacked);
	qp->unacked = 0;
	if (qp->cq == NULL)
		return;
	qp->end.cq = qp->cq;
	qp->end.msg_mr = qp->msg_mr;
	qp->end.fence_mr = qp->fence_mr;
	qp->cq = NULL;
}

static void
buried(struct verbs_job *job)
{
	struct verbs_qp *qp = take_end(job);

	qp->dev->buried_cnt--;
	verbs_qp_release(qp);
}

void
verbs_qp_bury(struct verbs_qp *qp)
{
	if (qp->lingers || qp->job_state != VERBS_JOB_NONE || is_held(qp))
		return;
	detach(qp);
	move_to_end(qp);
	qp->dev->buried_cnt++;
	give_end(qp, buried);
}

void
verbs_qp_destroy(struct rnic_qp *rqp)
{
	struct verbs_qp *qp;
	struct verbs_dev *dev;

	if (rqp == NULL)
		return;
	qp = verbs_qp(rqp);
	dev = qp->dev;
	verbs_qp_disconnect(rqp, false);
	if (qp->lingers && dev->orphan_cnt - dev->buried_cnt >= VERBS_LINGER_MAX)
		qp->lingers = false;
	qp->qp.ctx = NULL;
	qp->orphan = true;
	dev->qp_cnt--;
	dev->orphan_cnt++;
	verbs_qp_bury(qp);
}

void
verbs_qp_release(struct verbs_qp *qp)
{
	struct verbs_dev *dev = qp->dev;

	list_remove(&qp->node);
	detach(qp);
	timerq_unreserve(&dev->timers, TIMERS);
	move_to_end(qp);
	end_run(&qp->end.job);
	idtable_del(&dev->ids, qp->id);
	qp->pd->qp_cnt--;
	verbs_pd_put(qp->pd);
	if (qp->orphan)
		dev->orphan_cnt--;
	else
		dev->qp_cnt--;
	pages_free(qp->wrs, sq_bytes(qp));
	pages_free(qp->msg, msg_bytes(qp));
	pages_free(qp->rq, rq_bytes(qp));
	pages_free(qp->chain, sizeof(*qp->chain));
	free(qp);
}

/* -- events -- */

void
verbs_event(struct verbs_qp *qp, enum rnic_event_type type)
{
	assert(!qp->orphan); /* it is closed */
	events_add(&qp->dev->events, &qp->events, type);
}
