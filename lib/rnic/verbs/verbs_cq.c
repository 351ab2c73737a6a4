/* The verbs device: completions; see verbs_int.h.
 * Each QP has its own CQ. An event starts polling: poll until empty, arm, poll again. The card reports a request by its
 * queue position; earlier unsignaled requests are complete as well. From the first failure on, completions are held
 * until all requests have ended: they are reported together with the event and its reason. */
#include <errno.h>
#include <stddef.h>

#include "rnic/verbs/verbs_int.h"

/* -- status of the card -- */

struct meaning {
	enum rnic_wc_status status;
	size_t counter; /* place in struct verbs_stats */
	const char *why;
};

#define AT(field) offsetof(struct verbs_stats, field)

static const struct meaning local_error = { RNIC_WC_LOCAL_ERR, AT(other_errs),
	"the RDMA device reports a local error" };
static const struct meaning too_long = { RNIC_WC_LOCAL_ERR, AT(other_errs),
	"the peer sent a message that is too long" };
/* Without text: a local error. */
static const struct meaning meanings[] = {
	[IBV_WC_WR_FLUSH_ERR] = { RNIC_WC_FLUSHED, AT(flushed), "the queue pair went to the error state" },
	[IBV_WC_RETRY_EXC_ERR] = { RNIC_WC_RETRY_EXC, AT(retry_exc), "the peer does not answer" },
	[IBV_WC_RESP_TIMEOUT_ERR] = { RNIC_WC_RETRY_EXC, AT(retry_exc), "the peer does not answer" },
	[IBV_WC_RNR_RETRY_EXC_ERR] = { RNIC_WC_REMOTE_ERR, AT(rnr_retry_exc), "the peer has no receive posted" },
	[IBV_WC_REM_ACCESS_ERR] = { RNIC_WC_REMOTE_ERR, AT(remote_access_errs),
	    "the peer refused a write: no access to its memory" },
	[IBV_WC_REM_INV_REQ_ERR] = { RNIC_WC_REMOTE_ERR, AT(other_errs), "the peer refused a request" },
	[IBV_WC_REM_OP_ERR] = { RNIC_WC_REMOTE_ERR, AT(other_errs), "the peer refused a request" },
	[IBV_WC_REM_ABORT_ERR] = { RNIC_WC_REMOTE_ERR, AT(other_errs), "the peer refused a request" },
	[IBV_WC_REM_INV_RD_REQ_ERR] = { RNIC_WC_REMOTE_ERR, AT(other_errs), "the RDMA device reports a local error" },
	[IBV_WC_LOC_PROT_ERR] = { RNIC_WC_LOCAL_ERR, AT(other_errs), "the RDMA device has no access to our memory" },
	[IBV_WC_LOC_ACCESS_ERR] = { RNIC_WC_LOCAL_ERR, AT(other_errs), "the RDMA device has no access to our memory" },
};

/* -- ended requests -- */

static void
end_send(struct verbs_qp *qp, enum rnic_wc_status status)
{
	struct verbs_wr *wr = &qp->wrs[qp->sq.done++ & qp->wr_mask];

	if (status != RNIC_WC_OK && qp->failed)
		status = RNIC_WC_FLUSHED;
	qp->failed = qp->failed || status != RNIC_WC_OK;
	wr->status = (uint8_t)status;
	qp->sq.bytes -= wr->len;
	qp->sq.sends_out -= wr->op == RNIC_WR_SEND;
}

void
verbs_fail_oldest(struct verbs_qp *qp, enum rnic_wc_status status)
{
	if (!qp->failed && qp->sq.done != qp->sq.sent)
		end_send(qp, status);
}

void
verbs_end_sends(struct verbs_qp *qp, uint32_t pos)
{
	while (qp->sq.done != pos)
		end_send(qp, qp->failed ? RNIC_WC_FLUSHED : RNIC_WC_OK);
}

static void
end_recv(struct verbs_qp *qp, enum rnic_wc_status status, uint32_t len)
{
	struct verbs_recv *r = &qp->rq[qp->rq_ended++ & qp->rq_mask];

	if (status != RNIC_WC_OK && qp->failed)
		status = RNIC_WC_FLUSHED;
	qp->failed = qp->failed || status != RNIC_WC_OK;
	r->status = status;
	r->len = len;
}

/* Earlier requests were unsignaled. */
static void
send_ended(struct verbs_qp *qp, uint32_t pos, enum rnic_wc_status status)
{
	if (pos - qp->sq.done >= qp->sq.sent - qp->sq.done)
		return; /* unknown request: a faulty card */
	verbs_end_sends(qp, pos);
	end_send(qp, status);
}

static void
recv_ended(struct verbs_qp *qp, uint32_t pos, enum rnic_wc_status status, uint32_t len)
{
	if (pos - qp->rq_ended >= qp->rq_hw - qp->rq_ended)
		return;
	while (qp->rq_ended != pos)
		end_recv(qp, RNIC_WC_FLUSHED, 0);
	end_recv(qp, status, len);
}

/* The card is done with the request; only the Read after it shows the result. */
static void
iwarp_send_ended(struct verbs_qp *qp, uint64_t id, enum rnic_wc_status status)
{
	if (id & VERBS_ID_READ)
		verbs_fence_read_ended(qp, status == RNIC_WC_OK);
	else if (id & VERBS_ID_NUDGE)
		verbs_fence_nudge_ended(qp);
	else if ((uint32_t)id - qp->card_pos < qp->sq.sent - qp->card_pos)
		qp->card_pos = (uint32_t)id + 1;
	if (status != RNIC_WC_OK)
		verbs_fail_oldest(qp, status);
	qp->drained = qp->phase == VERBS_FLUSH && verbs_card_is_done(qp);
}

/* NULL, or why the QP is broken. */
static const struct meaning *
take_wc(struct verbs_qp *qp, const struct ibv_wc *wc)
{
	bool recv = (wc->wr_id & VERBS_ID_RECV) != 0;
	enum rnic_wc_status status = RNIC_WC_OK;
	const struct meaning *m = NULL;

	if (wc->wr_id & VERBS_ID_DRAIN) {
		qp->drained = true;
		return NULL;
	}
	if (wc->status != IBV_WC_SUCCESS) {
		bool known = wc->status < sizeof(meanings) / sizeof(meanings[0]) && meanings[wc->status].why != NULL;

		m = wc->status == IBV_WC_LOC_LEN_ERR && recv ? &too_long : known ? &meanings[wc->status] : &local_error;
		(*(uint64_t *)(void *)((char *)&qp->dev->stats + m->counter))++;
		status = m->status;
	}
	if (recv)
		recv_ended(qp, (uint32_t)wc->wr_id, status, status == RNIC_WC_OK ? wc->byte_len : 0);
	else if (verbs_is_iwarp(qp->dev))
		iwarp_send_ended(qp, wc->wr_id, status);
	else
		send_ended(qp, (uint32_t)wc->wr_id, status);
	return m;
}

void
verbs_end_all(struct verbs_qp *qp)
{
	while (qp->sq.done != qp->sq.head) {
		bool culprit = qp->refused && qp->sq.done == qp->sq.sent;

		end_send(qp, culprit ? RNIC_WC_LOCAL_ERR : RNIC_WC_FLUSHED);
	}
	while (qp->rq_ended != qp->rq_head)
		end_recv(qp, RNIC_WC_FLUSHED, 0);
}

/* -- the completion queue -- */

void
verbs_cq_failed(struct verbs_qp *qp)
{
	verbs_qp_break(qp, "its completion queue failed");
	if (qp->phase == VERBS_FLUSH)
		verbs_qp_kill(qp, "its completion queue failed");
}

/* Number of completions polled; also 0 if that broke the QP. */
static unsigned
take_some(struct verbs_qp *qp)
{
	struct ibv_wc wc[VERBS_POLL];
	const struct meaning *broken = NULL;
	int n = ibv_poll_cq(qp->cq, VERBS_POLL, wc);

	qp->dev->stats.polls++;
	if (n < 0) {
		verbs_cq_failed(qp);
		return 0;
	}
	qp->dev->stats.completions += (unsigned)n;
	if (n > 0 && qp->dev->cfg.busy_poll_us != 0)
		qp->dev->busy_until_ns = qp->dev->dev.now_ns + (int64_t)qp->dev->cfg.busy_poll_us * 1000;
	for (int i = 0; i < n; i++) {
		const struct meaning *one = take_wc(qp, &wc[i]);

		broken = broken != NULL ? broken : one;
	}
	/* Last: it may poll later completions. The kernel flushes a QP that it connects before it reports the reason. */
	if (broken != NULL && !verbs_qp_is_held(qp)) {
		if (broken->status == RNIC_WC_RETRY_EXC)
			verbs_qp_note_silence(qp);
		verbs_qp_break(qp, broken->why);
	}
	if (n > 0)
		verbs_qp_check_end(qp);
	return (unsigned)n;
}

void
verbs_cq_empty(struct verbs_qp *qp)
{
	struct ibv_wc wc[VERBS_POLL];
	int n;

	while ((n = ibv_poll_cq(qp->cq, VERBS_POLL, wc)) > 0)
		for (int i = 0; i < n; i++)
			(void)take_wc(qp, &wc[i]);
}

int
verbs_cq_arm(struct verbs_qp *qp)
{
	int err = ibv_req_notify_cq(qp->cq, 0);

	qp->armed = err == 0;
	return -err;
}

void
verbs_cq_schedule(struct verbs_qp *qp)
{
	if (list_empty(&qp->cq_node))
		list_push(&qp->dev->cq_list, &qp->cq_node);
}

/* -- reporting -- */

static bool
withheld(const struct verbs_qp *qp, uint32_t status)
{
	return status != RNIC_WC_OK && qp->phase < VERBS_ENDED && (qp->phase > VERBS_LINGER || verbs_qp_is_held(qp));
}

static unsigned
give_sends(struct verbs_qp *qp, struct rnic_wc *wc, unsigned max)
{
	unsigned n = 0;

	for (; n < max && qp->sq_given != qp->sq.done; qp->sq_given++) {
		const struct verbs_wr *wr = &qp->wrs[qp->sq_given & qp->wr_mask];

		if (withheld(qp, wr->status))
			break;
		if (wr->status == RNIC_WC_OK && !wr->signaled)
			continue;
		wc[n++] = (struct rnic_wc){
			.wr_id = wr->wr_id,
			.qp = &qp->qp,
			.op = wr->op == RNIC_WR_SEND ? RNIC_WC_SEND : RNIC_WC_WRITE,
			.status = (enum rnic_wc_status)wr->status,
		};
	}
	return n;
}

static unsigned
give_recvs(struct verbs_qp *qp, struct rnic_wc *wc, unsigned max)
{
	unsigned n = 0;

	for (; n < max && qp->rq_done != qp->rq_ended; qp->rq_done++) {
		const struct verbs_recv *r = &qp->rq[qp->rq_done & qp->rq_mask];

		if (withheld(qp, r->status))
			break;
		wc[n++] = (struct rnic_wc){
			.wr_id = r->wr_id,
			.qp = &qp->qp,
			.op = RNIC_WC_RECV,
			.status = (enum rnic_wc_status)r->status,
			.len = r->len,
		};
	}
	return n;
}

static bool
has_more(const struct verbs_qp *qp)
{
	return (qp->sq_given != qp->sq.done && !withheld(qp, qp->wrs[qp->sq_given & qp->wr_mask].status)) ||
	    (qp->rq_done != qp->rq_ended && !withheld(qp, qp->rq[qp->rq_done & qp->rq_mask].status));
}

/* The CQ may still hold completions. */
static bool
is_polled(const struct verbs_qp *qp)
{
	return qp->phase < VERBS_DESTROY;
}

/* Polls the CQ; arms it if empty. True if there were completions. */
static bool
take_or_arm(struct verbs_qp *qp)
{
	if (!is_polled(qp))
		return false;
	if (take_some(qp) > 0)
		return true;
	if (qp->armed || !is_polled(qp) || qp->dev->dev.now_ns < qp->dev->busy_until_ns)
		return false;
	if (verbs_cq_arm(qp) < 0) {
		verbs_qp_break(qp, "its completion queue failed");
		return false;
	}
	/* A completion may have arrived before the CQ was armed. */
	return take_some(qp) > 0;
}

/* One QP's share: the number written. The QP stays on the list while there may be more. */
static unsigned
poll_qp(struct verbs_qp *qp, struct rnic_wc *wc, unsigned max)
{
	unsigned n = 0;

	do {
		if (qp->user == VERBS_DESTROYED) {
			qp->sq_given = qp->sq.done;
			qp->rq_done = qp->rq_ended;
		} else {
			n += give_sends(qp, wc + n, max - n);
			n += give_recvs(qp, wc + n, max - n);
		}
	} while (n < max && (take_or_arm(qp) || has_more(qp)));
	if (n == max || (is_polled(qp) && !qp->armed))
		verbs_cq_schedule(qp);
	return n;
}

unsigned
verbs_poll(struct rnic_dev *rdev, struct rnic_wc *wc, unsigned max)
{
	struct verbs_dev *dev = verbs_dev(rdev);
	struct list_node turn;
	struct verbs_qp *qp;
	unsigned n = 0;

	list_move_all(&turn, &dev->cq_list);
	while (n < max && (qp = LIST_POP(struct verbs_qp, &turn, cq_node)) != NULL) {
		n += poll_qp(qp, wc + n, max - n);
		if (qp->phase == VERBS_RTS && sendq_has_more(&qp->sq, &qp->qp))
			verbs_event(qp, RNIC_EV_CREDITS);
		verbs_qp_reap(qp);
	}
	while ((qp = LIST_POP(struct verbs_qp, &turn, cq_node)) != NULL)
		list_push(&dev->cq_list, &qp->cq_node);
	return n;
}

/* -- the completion channel -- */

void
verbs_channel_io(void *arg, unsigned events)
{
	struct verbs_dev *dev = arg;
	struct ibv_cq *cq;
	void *id;

	dev->stats.wakeups += events != 0;
	for (unsigned i = 0; i < VERBS_EVENTS_TURN; i++) {
		if (ibv_get_cq_event(dev->channel, &cq, &id) != 0) {
			if (errno == EINTR)
				continue;
			if (errno != EAGAIN)
				verbs_set_gone(dev);
			return;
		}
		/* The CQ is destroyed: ignore its event, and any with an unknown id. */
		struct verbs_qp *qp = idtable_get(&dev->ids, (uint32_t)(uintptr_t)id);
		if (qp == NULL)
			continue;
		if (qp->cq == NULL) { /* destroying it waits for this */
			ibv_ack_cq_events(cq, 1);
			continue;
		}
		qp->armed = false;
		if (++qp->unacked >= VERBS_ACK_BATCH) {
			ibv_ack_cq_events(qp->cq, qp->unacked);
			qp->unacked = 0;
		}
		verbs_cq_schedule(qp);
	}
	dev->more = true;
}
