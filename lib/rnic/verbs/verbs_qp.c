/* The verbs device: creation, phases and end of queue pairs; see verbs_int.h.
 * A broken or disconnected QP goes to the error state, in which the card drops input and flushes posted requests. Its
 * user is notified when all requests have ended: until then the card owns the buffers. If requests do not end, only the
 * QP is destroyed, and its CQ is polled afterwards. After the user's destroy, all hardware is freed, by a thread. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/pages.h"
#include "base/ring.h"
#include "rnic/verbs/verbs_int.h"

#define TIMERS (1 + FENCE_TIMERS) /* its own and the fence's */
#define BIT(phase) (1u << (phase))

/* -- phases -- */

/* Every phase before ENDED may lose the card; each one up to LINGER may break. */
#define ENDS (BIT(VERBS_FLUSH) | BIT(VERBS_DESTROY))

static const struct {
	const char *name;
	unsigned next; /* BIT(enum verbs_phase) */
} phases[VERBS_PHASE_CNT] = {
	[VERBS_INIT] = { "init", BIT(VERBS_EXPECTING) | BIT(VERBS_CONNECTING) | ENDS },
	[VERBS_EXPECTING] = { "expecting", BIT(VERBS_CONNECTING) | ENDS },
	[VERBS_CONNECTING] = { "connecting", BIT(VERBS_RTR) | BIT(VERBS_RTS) | BIT(VERBS_CANCEL) | ENDS },
	[VERBS_RTR] = { "rtr", BIT(VERBS_RTS) | ENDS },
	[VERBS_RTS] = { "rts", BIT(VERBS_LINGER) | ENDS },
	[VERBS_LINGER] = { "linger", ENDS },
	[VERBS_CANCEL] = { "cancel", ENDS },
	[VERBS_FLUSH] = { "flush", BIT(VERBS_DESTROY) | BIT(VERBS_ENDED) | BIT(VERBS_RELEASE) },
	[VERBS_DESTROY] = { "destroy", BIT(VERBS_ENDED) },
	[VERBS_ENDED] = { "ended", BIT(VERBS_RELEASE) },
	[VERBS_RELEASE] = { "release", 0 },
};

void
verbs_qp_set_phase(struct verbs_qp *qp, enum verbs_phase to, const char *why)
{
	assert((phases[qp->phase].next & BIT(to)) != 0);
	log_msg(LOG_LVL_DEBUG, "queue pair: device=%s qp=%06x from=%s to=%s reason=\"%s\"", qp->dev->cfg.name,
	    qp->qp.qpn, phases[qp->phase].name, phases[to].name, why);
	if (qp->phase <= VERBS_RTS)
		qp->ended_in = qp->phase;
	qp->phase = to;
}

static void
stop_posting(struct verbs_qp *qp)
{
	list_remove(&qp->tx_node);
	qp->chain_cnt = 0;
	fence_stop(&qp->fence);
}

/* All requests have ended: notifies the user, unless the user requested the end. */
static void
verbs_qp_end(struct verbs_qp *qp, const char *why)
{
	verbs_end_all(qp);
	verbs_qp_set_phase(qp, VERBS_ENDED, why);
	timer_cancel(&qp->dev->timers, &qp->timer);
	verbs_cq_schedule(qp);
	if (qp->user != VERBS_USED)
		return;
	if (qp->ended_in >= VERBS_RTR)
		verbs_event(qp, RNIC_EV_QP_ERROR);
	else if (qp->claimed)
		verbs_event(qp, RNIC_EV_CONNECT_FAILED);
}

/* To the error state: the card ends all requests. */
static void
flush(struct verbs_qp *qp, const char *why)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	verbs_qp_set_phase(qp, VERBS_FLUSH, why);
	bool drains = !qp->dev->gone && ibv_modify_qp(qp->hw, &attr, IBV_QP_STATE) == 0 && verbs_post_drain(qp);
	verbs_conn_left(qp);
	if (!drains) {
		verbs_qp_kill(qp, "not flushed by the card");
		return;
	}
	verbs_arm(qp->dev, &qp->timer, VERBS_FLUSH_MS);
	verbs_cq_schedule(qp);
	verbs_qp_check_end(qp);
}

static void
stop(struct verbs_qp *qp, const char *why)
{
	verbs_conn_leaving(qp);
	stop_posting(qp);
	if (verbs_qp_is_away(qp) && !verbs_cm_cancel(qp))
		verbs_qp_set_phase(qp, VERBS_CANCEL, why); /* continues when the thread returns it */
	else
		flush(qp, why);
}

void
verbs_qp_break(struct verbs_qp *qp, const char *why)
{
	if (qp->phase > VERBS_LINGER)
		return;
	if (qp->phase < VERBS_LINGER)
		qp->events.why = why;
	stop(qp, why);
}

/* Runs in the thread. */
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
	*end = (struct verbs_end){ .job = end->job };
}

static void
give_end(struct verbs_qp *qp, void (*done)(struct verbs_job *))
{
	qp->end.job.run = end_run;
	qp->end.job.done = done;
	verbs_cm_give(&qp->dev->cm.ends, &qp->end.job);
}

/* The card is done with the buffers. */
static void
killed(struct verbs_job *job)
{
	struct verbs_qp *qp = CONTAINER_OF(job, struct verbs_qp, end.job);

	verbs_cq_empty(qp);
	verbs_qp_end(qp, "destroyed");
	verbs_qp_reap(qp);
}

void
verbs_qp_kill(struct verbs_qp *qp, const char *why)
{
	if (qp->phase < VERBS_LINGER)
		qp->events.why = why;
	stop_posting(qp);
	verbs_qp_set_phase(qp, VERBS_DESTROY, why);
	/* Completions first: some cards remove them from the CQ together with the QP. */
	verbs_cq_empty(qp);
	if (verbs_qp_is_held(qp)) {
		verbs_qp_end(qp, "still being connected"); /* it is in the error state */
		return;
	}
	timer_cancel(&qp->dev->timers, &qp->timer);
	qp->end.hw = qp->hw;
	qp->hw = NULL;
	give_end(qp, killed);
}

void
verbs_qp_check_end(struct verbs_qp *qp)
{
	if (qp->phase == VERBS_LINGER && qp->sq.done == qp->sq.head)
		stop(qp, "all data sent");
	else if (qp->phase == VERBS_FLUSH && qp->drained && qp->rq_ended == qp->rq_hw)
		verbs_qp_end(qp, "flushed");
}

/* The card does not flush, or the peer does not accept the rest in time. */
static void
on_timer(struct timer *t)
{
	struct verbs_qp *qp = CONTAINER_OF(t, struct verbs_qp, timer);

	if (qp->phase == VERBS_LINGER)
		stop(qp, "unsent data at the time limit");
	else if (qp->phase == VERBS_FLUSH)
		verbs_qp_kill(qp, "not flushed by the card");
	else
		verbs_iwarp_timed_out(qp);
	verbs_qp_reap(qp);
}

/* -- creation -- */

/* The errno of a verbs call that returned NULL. */
static int
verbs_errno(void)
{
	return errno != 0 ? -errno : -ENOMEM;
}

static int
make_queues(struct verbs_qp *qp)
{
	struct verbs_dev *dev = qp->dev;
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = qp->sq.depth + 1, /* for the last request; on iWARP, the Read */
		    .max_recv_wr = qp->rq_depth,
		    .max_send_sge = dev->info.max_sge,
		    .max_recv_sge = 1,
		    .max_inline_data = dev->has_inline ? VERBS_INLINE : 0 },
		.qp_type = IBV_QPT_RC,
	};

	/* Separate pages: populated on use, and freed independently. */
	qp->wrs = pages_alloc(((size_t)qp->wr_mask + 1) * sizeof(*qp->wrs));
	qp->msg = pages_alloc(((size_t)qp->wr_mask + 1) * sizeof(*qp->msg));
	qp->rq = pages_alloc(((size_t)qp->rq_mask + 1) * sizeof(*qp->rq));
	qp->chain = pages_alloc(sizeof(*qp->chain));
	if (qp->wrs == NULL || qp->msg == NULL || qp->rq == NULL || qp->chain == NULL)
		return -ENOMEM;
	errno = 0;
	/* A CQ with room for everything that can be posted cannot overflow. */
	qp->cq = ibv_create_cq(
	    dev->ctx, (int)(qp->sq.depth + 1 + qp->rq_depth), (void *)(uintptr_t)qp->id, dev->channel, 0);
	if (qp->cq == NULL)
		return verbs_errno();
	init.send_cq = init.recv_cq = qp->cq;
	qp->hw = ibv_create_qp(qp->pd->hw, &init);
	if (qp->hw == NULL)
		return verbs_errno();
	if (!dev->has_inline) {
		qp->msg_mr = ibv_reg_mr(
		    qp->pd->hw, qp->msg, ((size_t)qp->wr_mask + 1) * sizeof(*qp->msg), IBV_ACCESS_LOCAL_WRITE);
		if (qp->msg_mr == NULL)
			return verbs_errno();
	}
	int rc = verbs_fence_init(qp);
	return rc < 0 ? rc : verbs_cq_arm(qp);
}

/* Allows posted receives. On iWARP the kernel's connection manager would set the same. */
static int
to_init(struct verbs_qp *qp)
{
	bool iwarp = verbs_is_iwarp(qp->dev);
	int mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | (iwarp ? 0 : IBV_QP_PKEY_INDEX | IBV_QP_PORT);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = 0, /* the default partition */
		.port_num = qp->dev->cfg.port,
		.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		    (iwarp ? IBV_ACCESS_REMOTE_READ : 0),
	};

	return -ibv_modify_qp(qp->hw, &attr, mask);
}

int
verbs_qp_create(struct rnic_pd *pd, const struct rnic_qp_attr *attr, struct rnic_qp **out)
{
	struct verbs_dev *dev = verbs_dev(pd->dev);

	if (attr->sq_depth == 0 || attr->sq_depth > dev->info.max_sq || attr->rq_depth == 0 ||
	    attr->rq_depth > dev->info.max_rq)
		return -EINVAL;
	if (dev->gone)
		return -ENODEV;
	if (dev->info.qp_cnt >= dev->info.max_qp)
		return -ENOSPC;
	if (timerq_reserve(&dev->timers, TIMERS) < 0)
		return -ENOMEM;
	struct verbs_qp *qp = calloc(1, sizeof(*qp));
	if (qp == NULL || (qp->id = idtable_add(&dev->ids, qp)) == 0) {
		timerq_unreserve(&dev->timers, TIMERS);
		free(qp);
		return -ENOMEM;
	}
	qp->dev = dev;
	qp->pd = verbs_pd(pd);
	qp->sq = (struct sendq){
		.depth = attr->sq_depth, .peer_depth = verbs_is_iwarp(dev) ? 0 : UINT32_MAX, .bytes_max = VERBS_BYTES
	};
	qp->rq_depth = attr->rq_depth;
	qp->token = attr->token;
	qp->wr_mask = ring_mask(attr->sq_depth);
	qp->rq_mask = ring_mask(attr->rq_depth);
	timer_init(&qp->timer, on_timer);
	list_init(&qp->cq_node);
	list_init(&qp->tx_node);
	qp_events_init(&qp->events, &qp->qp);
	list_init(&qp->job.node);
	list_init(&qp->end.job.node);
	list_push(&dev->qps, &qp->node);
	dev->info.qp_cnt++;
	int rc = make_queues(qp);
	if (rc == 0)
		rc = to_init(qp);
	if (rc < 0) {
		verbs_qp_free(qp);
		verbs_trouble(dev, -rc, "the RDMA device cannot create more queue pairs");
		return rc;
	}
	qp->qp = (struct rnic_qp){
		.dev = &dev->dev, .ctx = attr->ctx, .qpn = qp->hw->qp_num, .psn = rng_below(dev->rng, 1u << 24)
	};
	*out = &qp->qp;
	return 0;
}

/* -- connecting -- */

int
verbs_qp_connect(struct rnic_qp *rqp, enum rnic_side side, const struct rnic_remote *remote)
{
	struct verbs_qp *qp = verbs_qp(rqp);

	if (qp->dev->gone)
		return -ENODEV;
	/* An expected peer may connect, and disconnect, before qp_connect. */
	if (qp->claimed || qp->user != VERBS_USED || (qp->phase > VERBS_RTS && qp->ended_in == VERBS_INIT))
		return -EINVAL;
	qp->side = side;
	qp->remote = *remote;
	qp->claimed = true;
	if (qp->phase > VERBS_RTS) {
		if (qp->phase == VERBS_ENDED)
			verbs_event(qp, RNIC_EV_CONNECT_FAILED);
		return 0;
	}
	int rc = verbs_is_iwarp(qp->dev) ? verbs_iwarp_connect(qp) : verbs_roce_connect(qp);
	qp->claimed = rc == 0;
	return rc;
}

void
verbs_qp_connected(struct verbs_qp *qp, enum verbs_phase to)
{
	timer_cancel(&qp->dev->timers, &qp->timer);
	verbs_qp_set_phase(qp, to, "connected");
	verbs_event(qp, RNIC_EV_CONNECTED);
}

static const char *
connect_why(struct verbs_qp *qp, int err)
{
	switch (err) {
	case ETIMEDOUT:
	case EHOSTUNREACH:
	case ENETUNREACH:
	case EHOSTDOWN:
		verbs_qp_note_silence(qp);
		return "the peer's address does not answer";
	case EINVAL:
		return "the RDMA device rejected the connection's attributes";
	default:
		return "the RDMA device could not connect the queue pair";
	}
}

void
verbs_qp_job_done(struct verbs_job *job)
{
	struct verbs_qp *qp = CONTAINER_OF(job, struct verbs_qp, job);

	if (qp->dev->gone)
		verbs_qp_kill(qp, VERBS_GONE_WHY);
	else if (qp->phase == VERBS_CANCEL)
		flush(qp, "connecting was cancelled");
	else if (qp->job.err != 0)
		verbs_qp_break(qp, connect_why(qp, qp->job.err));
	else
		verbs_qp_connected(qp, qp->job.to_rts ? VERBS_RTS : VERBS_RTR);
	verbs_qp_reap(qp);
}

/* -- the end -- */

/* Posted requests are sent, input is dropped. */
static void
linger(struct verbs_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_access_flags = 0 };

	verbs_qp_set_phase(qp, VERBS_LINGER, "closed in order");
	/* The card refuses the change: the user revokes memory with the next calls. */
	if (!verbs_is_iwarp(qp->dev)) /* iWARP cards do not support this */
		(void)ibv_modify_qp(qp->hw, &attr, IBV_QP_ACCESS_FLAGS);
	verbs_arm(qp->dev, &qp->timer, VERBS_LINGER_MS);
	verbs_fence(&qp->qp);
	verbs_fence_flush(qp);
}

void
verbs_qp_disconnect(struct rnic_qp *rqp, bool graceful)
{
	struct verbs_qp *qp = verbs_qp(rqp);

	graceful = graceful && qp->phase == VERBS_RTS;
	if (graceful)
		verbs_chain_post(qp);
	qp->user = VERBS_CLOSED;
	if (graceful && qp->phase == VERBS_RTS && qp->sq.done != qp->sq.head)
		linger(qp);
	else if (qp->phase < VERBS_LINGER)
		stop(qp, "closed");
	events_drop(&qp->events);
}

/* Unlinks from all lists except that of all QPs, from timers and connection. */
static void
detach(struct verbs_qp *qp)
{
	struct verbs_dev *dev = qp->dev;

	list_remove(&qp->cq_node);
	events_drop(&qp->events);
	timer_cancel(&dev->timers, &qp->timer);
	stop_posting(qp);
	verbs_conn_left(qp);
}

/* Moves the hardware to be freed, which may have part of it already. */
static void
move_to_end(struct verbs_qp *qp)
{
	if (qp->hw != NULL)
		qp->end.hw = qp->hw;
	qp->hw = NULL;
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
released(struct verbs_job *job)
{
	struct verbs_qp *qp = CONTAINER_OF(job, struct verbs_qp, end.job);

	events_add(&qp->dev->events, &qp->events, RNIC_EV_QP_FREED);
}

void
verbs_qp_reap(struct verbs_qp *qp)
{
	if (qp->user != VERBS_DESTROYED || verbs_qp_is_held(qp) ||
	    (qp->phase != VERBS_FLUSH && qp->phase != VERBS_ENDED))
		return;
	detach(qp);
	move_to_end(qp);
	verbs_qp_set_phase(qp, VERBS_RELEASE, "destroyed by its user");
	give_end(qp, released);
}

void
verbs_qp_destroy(struct rnic_qp *rqp)
{
	unsigned lingering = 0;

	if (rqp == NULL)
		return;
	struct verbs_qp *qp = verbs_qp(rqp);
	verbs_qp_disconnect(rqp, false);
	qp->user = VERBS_DESTROYED;
	LIST_EACH(const struct verbs_qp, other, &qp->dev->qps, node)
		lingering += other->phase == VERBS_LINGER && other->user == VERBS_DESTROYED;
	if (qp->phase == VERBS_LINGER && lingering > VERBS_LINGER_MAX)
		stop(qp, "too many lingering queue pairs");
	verbs_qp_reap(qp);
}

void
verbs_qp_free(struct verbs_qp *qp)
{
	struct verbs_dev *dev = qp->dev;

	list_remove(&qp->node);
	detach(qp);
	timerq_unreserve(&dev->timers, TIMERS);
	move_to_end(qp);
	end_run(&qp->end.job);
	idtable_del(&dev->ids, qp->id);
	dev->info.qp_cnt--;
	pages_free(qp->wrs, ((size_t)qp->wr_mask + 1) * sizeof(*qp->wrs));
	pages_free(qp->msg, ((size_t)qp->wr_mask + 1) * sizeof(*qp->msg));
	pages_free(qp->rq, ((size_t)qp->rq_mask + 1) * sizeof(*qp->rq));
	pages_free(qp->chain, sizeof(*qp->chain));
	free(qp);
}

void
verbs_event(struct verbs_qp *qp, enum rnic_event_type type)
{
	assert(qp->user == VERBS_USED);
	events_add(&qp->dev->events, &qp->events, type);
}
