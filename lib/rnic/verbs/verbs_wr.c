/* The verbs device: posting; see verbs_int.h. Sends and writes are chained, and posted in one call at the end of the
 * turn; receives are posted at once. A request that the card rejects breaks the QP, and ends like any other. */
#include <errno.h>

#include "rnic/verbs/verbs_int.h"
#include "rnic/wr.h"

#define RECV_CHAIN 32

/* -- credits -- */

void
verbs_credits(const struct rnic_qp *rqp, struct rnic_credits *out)
{
	const struct verbs_qp *qp = verbs_qp(rqp);

	*out = (struct rnic_credits){ 0 };
	if (qp->phase == VERBS_RTS)
		sendq_credits(&qp->sq, qp->sq.head - qp->sq_given, qp->sq.bytes, out);
}

/* -- sends and writes -- */

static void
chain_add(struct verbs_qp *qp, const struct rnic_send_wr *wr, size_t len, uint32_t pos, bool signaled)
{
	struct ibv_send_wr *to = &qp->chain->wr[qp->chain_cnt];
	struct ibv_sge *sge = qp->chain->sge[qp->chain_cnt];
	/* Short writes as well, although their bytes stay valid: saves the card a fetch. And Linux's siw (6.1) sends
	 * wrong bytes if up to 32 of them cross a page boundary, and reads them after the post call. */
	bool copied = (wr->flags & RNIC_INLINE) != 0 || (wr->op == RNIC_WR_WRITE && len <= VERBS_INLINE);

	*to = (struct ibv_send_wr){
		.wr_id = pos,
		.sg_list = sge,
		.num_sge = (int)wr->sge_cnt,
		.opcode = wr->op == RNIC_WR_SEND ? IBV_WR_SEND : IBV_WR_RDMA_WRITE,
		.wr.rdma = { .remote_addr = wr->raddr, .rkey = wr->rkey },
	};
	if (copied) {
		/* One piece in our own memory until posted; for a card without inline data, until complete. */
		sge->length = rnic_wr_copy(wr, qp->msg[pos & qp->wr_mask]);
		sge->addr = (uintptr_t)qp->msg[pos & qp->wr_mask];
		sge->lkey = qp->msg_mr != NULL ? qp->msg_mr->lkey : 0;
		to->num_sge = len > 0 ? 1 : 0;
	} else {
		for (unsigned i = 0; i < wr->sge_cnt; i++)
			sge[i] = (struct ibv_sge){
				.addr = (uintptr_t)wr->sge[i].ptr, .length = wr->sge[i].len, .lkey = wr->sge[i].mr->lkey
			};
	}
	to->send_flags = (copied && qp->msg_mr == NULL ? IBV_SEND_INLINE : 0u) | (signaled ? IBV_SEND_SIGNALED : 0u) |
	    (wr->flags & RNIC_SOLICITED && wr->op == RNIC_WR_SEND ? IBV_SEND_SOLICITED : 0u);
	if (qp->chain_cnt > 0)
		qp->chain->wr[qp->chain_cnt - 1].next = to;
	qp->chain_cnt++;
}

void
verbs_chain_post(struct verbs_qp *qp)
{
	struct ibv_send_wr *bad = NULL;
	unsigned cnt = qp->chain_cnt;
	int err = 0;

	list_remove(&qp->tx_node);
	qp->chain_cnt = 0;
	if (cnt > 0) {
		err = ibv_post_send(qp->hw, qp->chain->wr, &bad);
		qp->dev->stats.doorbells++;
	}
	if (err == 0) {
		qp->sq.sent += cnt;
		verbs_fence_flush(qp);
		return;
	}
	/* The card has the requests before `bad`. */
	if (bad >= qp->chain->wr && bad < qp->chain->wr + cnt)
		qp->sq.sent += (uint32_t)(bad - qp->chain->wr);
	qp->refused = true;
	verbs_qp_break(qp, "the RDMA device rejected a work request");
}

int
verbs_post_send(struct rnic_qp *rqp, const struct rnic_send_wr *wr)
{
	struct verbs_qp *qp = verbs_qp(rqp);
	struct verbs_dev *dev = qp->dev;
	uint32_t pos = qp->sq.head;
	struct rnic_credits credits;
	size_t len;

	if (qp->phase != VERBS_RTS)
		return -ENOTCONN;
	int rc = rnic_wr_check(wr, &qp->pd->pd, dev->info.max_sge, VERBS_INLINE, &len);
	if (rc < 0)
		return rc;
	verbs_credits(rqp, &credits);
	rc = sendq_take(&qp->sq, &credits, wr->op, len);
	if (rc < 0)
		return rc;
	/* The card reports more requests than the user wants, where nothing else would free the queue. On iWARP all:
	 * some cards reject a last request when the connection is broken. */
	bool signaled = verbs_is_iwarp(dev) || wr->flags & RNIC_SIGNALED || credits.wrs == 0 || credits.bytes == 0 ||
	    qp->sq.head - qp->sq_sig >= (qp->sq.depth + 1) / 2;
	if (signaled)
		qp->sq_sig = qp->sq.head;
	chain_add(qp, wr, len, pos, signaled);
	qp->wrs[pos & qp->wr_mask] = (struct verbs_wr){
		.wr_id = wr->wr_id,
		.len = (uint32_t)len,
		.op = (uint8_t)wr->op,
		.signaled = (wr->flags & RNIC_SIGNALED) != 0,
	};
	if (wr->op == RNIC_WR_SEND)
		dev->stats.sends_posted++;
	else
		dev->stats.writes_posted++;
	if (verbs_is_iwarp(dev))
		fence_posted(&qp->fence, (wr->flags & RNIC_SIGNALED) != 0);
	if (qp->chain_cnt == VERBS_CHAIN)
		verbs_chain_post(qp);
	else
		verbs_tx_schedule(qp);
	return 0;
}

void
verbs_flush(struct rnic_dev *rdev)
{
	struct verbs_qp *qp;

	while ((qp = LIST_FIRST(struct verbs_qp, &verbs_dev(rdev)->tx_list, tx_node)) != NULL)
		verbs_chain_post(qp);
}

bool
verbs_post_drain(struct verbs_qp *qp)
{
	struct ibv_send_wr wr = { .wr_id = VERBS_ID_DRAIN, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;

	if (verbs_is_iwarp(qp->dev)) {
		qp->drained = verbs_card_is_done(qp);
		return true; /* each request is reported */
	}
	/* Unsignaled successful requests are reported only by a later completion. */
	qp->drained = qp->sq.done == qp->sq.sent;
	return qp->drained || ibv_post_send(qp->hw, &wr, &bad) == 0;
}

/* -- receives -- */

/* At most RECV_CHAIN; returns the number posted. */
static unsigned
post_some(struct verbs_qp *qp, const struct rnic_recv_wr *wr, unsigned n, int *err)
{
	struct ibv_recv_wr chain[RECV_CHAIN], *bad = NULL;
	struct ibv_sge sge[RECV_CHAIN];

	for (unsigned i = 0; i < n; i++) {
		sge[i] = (struct ibv_sge){ .addr = (uintptr_t)wr[i].ptr, .length = wr[i].len, .lkey = wr[i].mr->lkey };
		chain[i] = (struct ibv_recv_wr){
			.wr_id = VERBS_ID_RECV | (uint32_t)(qp->rq_hw + i),
			.next = i + 1 < n ? &chain[i + 1] : NULL,
			.sg_list = &sge[i],
			.num_sge = 1,
		};
	}
	*err = ibv_post_recv(qp->hw, chain, &bad);
	if (*err == 0)
		return n;
	return bad >= chain && bad < chain + n ? (unsigned)(bad - chain) : 0;
}

int
verbs_post_recv(struct rnic_qp *rqp, const struct rnic_recv_wr *wr, unsigned n)
{
	struct verbs_qp *qp = verbs_qp(rqp);
	int err = 0;

	if (qp->phase > VERBS_RTS)
		return -ENOTCONN;
	if (n > qp->rq_depth - (qp->rq_head - qp->rq_done))
		return -ENOBUFS;
	for (unsigned i = 0; i < n; i++)
		if (!rnic_mr_holds(wr[i].mr, &qp->pd->pd, wr[i].ptr, wr[i].len))
			return -EINVAL;
	for (unsigned i = 0; i < n; i++)
		qp->rq[(qp->rq_head + i) & qp->rq_mask] = (struct verbs_recv){ .wr_id = wr[i].wr_id };
	qp->rq_head += n;
	while (err == 0 && qp->rq_hw != qp->rq_head) {
		uint32_t left = qp->rq_head - qp->rq_hw;

		qp->rq_hw += post_some(qp, wr + (n - left), left < RECV_CHAIN ? left : RECV_CHAIN, &err);
	}
	/* The receives count as posted: they end with the QP. */
	if (err != 0)
		verbs_qp_break(qp, "the RDMA device rejected a receive");
	return 0;
}
