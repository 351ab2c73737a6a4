/* Soft iWARP: connection setup common to both sides and all LLPs; see siw_int.h. */
#include <errno.h>

#include "rnic/siw/siw_llp.h"

static int
depth_named(uint16_t depth)
{
	return depth == DEPTH_NONE ? -1 : depth;
}

void
siw_set_peer_depths(struct siw_qp *qp, const struct depths *d)
{
	qp->peer_depths = (struct rnic_depths){ .ird = depth_named(d->peer_ird), .ord = depth_named(d->peer_ord) };
}

struct rnic_depths
siw_peer_depths(const struct rnic_qp *rqp)
{
	return siw_qp(rqp)->peer_depths;
}

struct mpa_pdata
siw_own_pdata(const struct siw_qp *qp, const struct rnic_remote *to)
{
	return (struct mpa_pdata){
		.recv_depth = (uint16_t)qp->rq_depth,
		.qpn = to != NULL ? to->qpn : qp->peer_qpn,
		.psn = to != NULL ? to->psn : 0,
		.token = to != NULL ? qp->token : 0,
		.from_qpn = qp->qp.qpn,
		.ulpdu_max = qp->dev->cfg.fpdu_max,
		.read_stag = qp->fence_region.stag,
		.read_to = qp->fence_region.base,
	};
}

bool
siw_is_answer(const struct siw_qp *qp, const struct mpa_pdata *peer)
{
	return peer->qpn == qp->qp.qpn && peer->from_qpn == qp->remote.qpn && peer->recv_depth > 0;
}

void
siw_stream_start(struct siw_qp *qp, const struct mpa_pdata *peer, uint16_t ord, bool rtr_send)
{
	qp->sq.peer_depth = peer->recv_depth;
	qp->peer_qpn = peer->from_qpn;
	fence_set_peer(&qp->fence, peer);
	stream_start(&qp->stream, ord, rtr_send);
}

void
siw_cm_check_connected(struct siw_qp *qp)
{
	if (qp->state != SIW_RTS || !qp->claimed || qp->connected)
		return;
	if (qp->peer_qpn != qp->remote.qpn) {
		const struct rdmap_term term = { .layer = RDMAP_LAYER_LLP, .code = ENHANCED_TERM_LOCAL };

		siw_qp_break(qp, "the link was taken over by another QP of the peer", RNIC_WC_LOCAL_ERR, &term);
		return;
	}
	timer_cancel(&qp->dev->timers, &qp->connect_timer);
	qp->connected = true;
	events_add(&qp->dev->events, &qp->events, RNIC_EV_CONNECTED);
}

void
siw_cm_connect_timeout(struct timer *t)
{
	struct siw_qp *qp = CONTAINER_OF(t, struct siw_qp, connect_timer);

	if (qp->state == SIW_CONNECTING)
		siw_qp_note_silence(qp);
	siw_qp_break(qp, qp->dev->llp->timeout_why[qp->state], RNIC_WC_FLUSHED, NULL);
}

int
siw_qp_expect(struct rnic_qp *rqp)
{
	struct siw_qp *qp = siw_qp(rqp);

	if (qp->state != SIW_IDLE)
		return -EINVAL;
	siw_qp_set_state(qp, SIW_EXPECTING);
	siw_pend_expected(qp);
	return 0;
}

static void
connect_active(struct siw_qp *qp)
{
	const struct siw_llp *llp = qp->dev->llp;

	siw_qp_set_state(qp, SIW_CONNECTING);
	siw_arm(qp->dev, &qp->connect_timer, qp->dev->cfg.connect_ms);
	int rc = llp->connect(qp);
	if (rc == -EAFNOSUPPORT)
		siw_qp_break(qp, "the peer's RNIC has an address of another family", RNIC_WC_FLUSHED, NULL);
	else if (rc < 0)
		siw_qp_break(qp, llp->connect_error(-rc), RNIC_WC_FLUSHED, NULL);
}

int
siw_qp_connect(struct rnic_qp *rqp, enum rnic_side side, const struct rnic_remote *remote)
{
	struct siw_qp *qp = siw_qp(rqp);

	if (qp->claimed || (side == RNIC_ACTIVE && (qp->state != SIW_IDLE || remote->mpa_port == 0)) ||
	    qp->state == SIW_CLOSED)
		return -EINVAL;
	qp->claimed = true;
	qp->remote = *remote;
	if (qp->state == SIW_BROKEN) {
		/* It connected, and broke before qp_connect. */
		events_add(&qp->dev->events, &qp->events, RNIC_EV_CONNECT_FAILED);
		return 0;
	}
	if (side == RNIC_ACTIVE) {
		connect_active(qp);
		return 0;
	}
	(void)siw_qp_expect(rqp); /* unless called before */
	if (qp->state < SIW_BROKEN)
		siw_arm(qp->dev, &qp->connect_timer, qp->dev->cfg.connect_ms);
	siw_cm_check_connected(qp);
	return 0;
}
