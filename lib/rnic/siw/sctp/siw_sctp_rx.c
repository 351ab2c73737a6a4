/* Soft iWARP, DDP over SCTP: messages that arrive; see siw_sctp.h. */
#include "rnic/siw/sctp/siw_sctp.h"

#define RX_BUDGET 256 /* messages a QP and turn */

/* The session has failed: its Terminate ends the stream, behind this one as the only segment where the peer takes segments. */
static void
break_by(struct siw_qp *qp, const struct rdmap_term *term)
{
	struct siw_sctp *s = siw_sctp(qp);
	bool open = s->session.state == DDP_SESSION_BROKEN;

	if (open)
		segq_clear(&s->out);
	siw_qp_break(qp, s->session.why, RNIC_WC_LOCAL_ERR, open ? term : NULL);
}

void
siw_sctp_broken(struct siw_qp *qp)
{
	/* Also those of an Accept that does not fit. */
	siw_set_peer_depths(qp, &siw_sctp(qp)->session.depths);
	break_by(qp, &(struct rdmap_term){ .layer = RDMAP_LAYER_LLP, .code = siw_sctp(qp)->session.term_code });
}

/* The DDP-SSNs of the peer make no order, or what they order cannot be kept. */
static void
out_of_order(struct siw_qp *qp, const char *why)
{
	struct rdmap_term term;

	stream_fail_order(&qp->stream, &term);
	(void)ddp_session_fail(&siw_sctp(qp)->session, why);
	break_by(qp, &term);
}

/* False: the queue pair is broken. */
static bool
control_in(struct siw_qp *qp, struct span body)
{
	struct siw_sctp *s = siw_sctp(qp);
	struct mpa_pdata peer;
	struct span pd;

	switch (ddp_session_control_in(&s->session, body, &pd)) {
	case DDP_SESSION_EV_NONE:
	case DDP_SESSION_EV_NEGOTIATE:
		return true;
	case DDP_SESSION_EV_ACCEPTED:
		return siw_sctp_accepted(qp, pd);
	case DDP_SESSION_EV_REJECTED:
		siw_set_peer_depths(qp, &s->session.depths);
		siw_qp_break(qp, mpa_verdict_str(mpa_pdata_decode(pd, &peer) == 0 ? peer.verdict : MPA_ACCEPTED),
		    RNIC_WC_FLUSHED, NULL);
		return false;
	case DDP_SESSION_EV_TERMINATED:
		siw_stream_lost(qp, s->session.why, NULL);
		return false;
	case DDP_SESSION_EV_FAILED:
	case DDP_SESSION_EV_SEGMENT: /* these two: not of a queue pair's session */
	case DDP_SESSION_EV_ASKED:
		break;
	}
	siw_sctp_broken(qp);
	return false;
}

static enum siw_seg
segment_in(struct siw_qp *qp, enum ssn_kind kind, struct span bytes)
{
	enum ddp_session_event ev = ddp_session_segment_in(&siw_sctp(qp)->session);
	enum siw_seg how = SIW_SEG_TAKEN;

	if (ev == DDP_SESSION_EV_NONE)
		return SIW_SEG_TAKEN;
	if (ev != DDP_SESSION_EV_SEGMENT) {
		siw_sctp_broken(qp);
		return SIW_SEG_END;
	}
	if (kind == SSN_PLACED)
		stream_placed(&qp->stream);
	else
		how = siw_segment_in(qp, bytes);
	qp->dev->stats.fpdus_received += how == SIW_SEG_TAKEN;
	return how;
}

/* What has its turn. False: the queue pair is broken. */
static bool
take_turns(struct siw_qp *qp)
{
	struct siw_sctp *s = siw_sctp(qp);
	enum siw_seg how = SIW_SEG_TAKEN;
	enum ssn_kind kind;
	struct span bytes;

	while (how == SIW_SEG_TAKEN && (kind = ssn_next(&s->order, &bytes)) != SSN_NONE) {
		if (kind != SSN_CONTROL)
			how = segment_in(qp, kind, bytes);
		else if (!control_in(qp, bytes))
			how = SIW_SEG_END;
		if (how == SIW_SEG_TAKEN)
			ssn_advance(&s->order);
	}
	s->held = how == SIW_SEG_HELD;
	return how != SIW_SEG_END;
}

/* False: the queue pair is broken. */
static bool
message_in(struct siw_qp *qp, const struct siw_assoc_msg *msg)
{
	struct siw_sctp *s = siw_sctp(qp);
	const struct sctp_ddp_values *v = &sctp_ddp_values[siw_sctp_profile(qp->dev)];
	bool segment = msg->ppid == v->ppid_segment;
	const char *why = NULL;
	struct span body;
	uint16_t number;

	qp->dev->stats.bytes_received += msg->bytes.len;
	if (msg->stream != 0)
		why = "a message on an SCTP stream that has no session";
	else if (!segment && msg->ppid != v->ppid_control)
		why = "a message whose payload protocol is not DDP's";
	else if (sctp_ddp_ssn_decode(msg->bytes, &number, &body) < 0)
		why = "a message without a DDP-SSN";
	if (why != NULL) {
		(void)ddp_session_fail(&s->session, why);
		siw_sctp_broken(qp);
		return false;
	}
	/* Nothing is placed before the session is accepted. */
	if (ssn_in(&s->order, qp->state >= SIW_RTR_WAIT ? &qp->stream : NULL, segment ? SSN_SEGMENT : SSN_CONTROL,
	        number, body, &why) < 0) {
		out_of_order(qp, why);
		return false;
	}
	if (!s->held && !take_turns(qp))
		return false;
	if (ssn_settle(&s->order, &why) < 0) {
		out_of_order(qp, why);
		return false;
	}
	return true;
}

/* False: nothing more to take now, or the queue pair is broken. */
static bool
take_one(struct siw_qp *qp)
{
	struct siw_assoc_msg msg;

	switch (siw_sctp_stack(qp->dev)->take(siw_sctp(qp)->assoc, &msg)) {
	case SIW_ASSOC_NOTHING:
		return false;
	case SIW_ASSOC_UP:
		siw_sctp_up(qp);
		return qp->state < SIW_BROKEN;
	case SIW_ASSOC_MESSAGE:
		return message_in(qp, &msg);
	case SIW_ASSOC_CLOSED:
		siw_sctp(qp)->closed = true;
		return false;
	case SIW_ASSOC_LOST:
		if (msg.silent)
			siw_qp_note_silence(qp);
		siw_stream_lost(qp, msg.why, NULL);
		return false;
	}
	return false;
}

/* False: nothing more to take now, or the queue pair is broken. */
static bool
take_some(struct siw_qp *qp)
{
	for (unsigned i = 0; i < RX_BUDGET; i++)
		if (!take_one(qp))
			return false;
	return true;
}

void
siw_sctp_rx_turn(struct siw_qp *qp)
{
	struct siw_sctp *s = siw_sctp(qp);

	if (s->assoc == NULL || qp->state >= SIW_BROKEN)
		return;
	if (s->held && stream_recv_cnt(&qp->stream) > 0 && !take_turns(qp))
		return;
	if (!s->closed && take_some(qp))
		siw_rx_schedule(qp);
	/* What came before that, and is held, has its turn first. */
	if (s->closed && !s->held && qp->state < SIW_BROKEN)
		siw_stream_lost(qp, "the peer closed the association", NULL);
}

void
siw_sctp_qp_ready(void *arg)
{
	struct siw_qp *qp = arg;

	if (qp->tx_blocked)
		siw_tx_unblocked(qp);
	siw_sctp_rx_turn(qp);
}
