/* Soft iWARP, DDP over SCTP: sessions: set-up in both roles, and messages of the peer; see siw_sctp.h. A peer that has
 * made an association waits, with its Initiate, for its queue pair as one that sent an MPA Request does (siw_cm.c). */
#include <stdlib.h>

#include "base/minmax.h"
#include "rnic/siw/sctp/siw_sctp.h"

#define HELD_SPARE 8  /* messages that no contract counts: of session control, Writes of nothing, a Terminate */
#define RX_BUDGET 256 /* messages a QP and turn */

static void
session_init(struct ddp_session *s, const struct siw_dev *dev, bool active)
{
	struct ddp_session_config cfg = {
		.profile = dev->cfg.sctp_profile, .enhanced = dev->neg.enhanced, .depths = dev->neg.depths
	};

	cfg.depths.p2p = false; /* either side may speak first (RFC 6581 7) */
	ddp_session_init(s, &cfg, active);
}

static struct span
own_pdata(const struct siw_qp *qp, const struct rnic_remote *to, uint8_t out[MPA_PDATA_LEN])
{
	struct mpa_pdata d = siw_own_pdata(qp, to);

	d.flags = qp->dev->sctp->stack->gather != NULL ? MPA_PACKETS_TOGETHER : 0;
	return mpa_pdata_encode(&d, out);
}

static void
siw_sctp_cm_start(struct siw_qp *qp, const struct mpa_pdata *peer, bool rtr_send)
{
	const struct siw_sctp_stack *stack = qp->dev->sctp->stack;
	struct siw_sctp *s = qp->sctp;

	if (stack->gather != NULL && (peer->flags & MPA_PACKETS_TOGETHER) != 0)
		stack->gather(s->assoc);
	(void)siw_path_rtt(&qp->qp); /* now that of the set-up */
	siw_stream_start(qp, peer, s->session.depths.ord, rtr_send);
}

static int
order_init(struct siw_qp *qp, uint16_t first)
{
	struct siw_sctp *s = qp->sctp;
	uint32_t held = qp->rq_depth + qp->dev->cfg.ird + 1 + qp->dev->cfg.ord + HELD_SPARE;
	const struct ssn_config cfg = {
		.first = first,
		.held_max = (uint16_t)min_u32(held, SSN_WINDOW - 1),
		.held_len = (uint16_t)min_size(s->assoc->message_max, UINT16_MAX),
	};

	return ssn_init(&s->order, &cfg);
}

/* The session has failed: its Terminate ends the stream, behind this one as the only segment where the peer takes
 * segments. */
static void
break_by(struct siw_qp *qp, const struct rdmap_term *term)
{
	struct siw_sctp *s = qp->sctp;
	bool open = s->session.state == DDP_SESSION_BROKEN;

	if (open)
		segq_clear(&s->out);
	siw_qp_break(qp, s->session.why, RNIC_WC_LOCAL_ERR, open ? term : NULL);
}

/* A mistake of the peer's that the session knows: sends what may be sent, and breaks the QP. */
static void
session_broken(struct siw_qp *qp)
{
	break_by(qp, &(struct rdmap_term){ .layer = RDMAP_LAYER_LLP, .code = qp->sctp->session.term_code });
}

/* -- messages of the peer -- */

/* The association that siw_sctp_connect() began is up. */
static void
assoc_up(struct siw_qp *qp)
{
	struct siw_sctp *s = qp->sctp;
	uint8_t pd[MPA_PDATA_LEN], message[SCTP_DDP_CONTROL_MAX];

	if (qp->state != SIW_CONNECTING)
		return;
	int len = ddp_session_initiate(&s->session, own_pdata(qp, &qp->remote, pd), message, sizeof(message));
	siw_qp_set_state(qp, SIW_REQUESTED);
	if (!siw_sctp_say(s->assoc, message, len))
		siw_qp_break(qp, "the DDP stream session's Initiate could not be sent", RNIC_WC_FLUSHED, NULL);
}

/* The peer accepted, with these private data. False: the queue pair is broken. */
static bool
accepted_by_peer(struct siw_qp *qp, struct span pdata)
{
	struct siw_sctp *s = qp->sctp;
	struct mpa_pdata peer;

	if (mpa_pdata_decode(pdata, &peer) < 0 || !siw_is_answer(qp, &peer)) {
		(void)ddp_session_fail(&s->session, "the session was not accepted by the peer's link");
		session_broken(qp);
		return false;
	}
	siw_qp_set_state(qp, SIW_RTS);
	siw_sctp_cm_start(qp, &peer, false);
	siw_tx_schedule(qp);
	siw_cm_check_connected(qp);
	return qp->state == SIW_RTS;
}

/* The DDP-SSNs of the peer make no order, or what they order cannot be kept. */
static void
out_of_order(struct siw_qp *qp, const char *why)
{
	struct rdmap_term term;

	stream_fail_llp(&qp->stream, RDMA_STREAM, &term);
	(void)ddp_session_fail(&qp->sctp->session, why);
	break_by(qp, &term);
}

/* False: the queue pair is broken. */
static bool
control_in(struct siw_qp *qp, struct span body)
{
	struct siw_sctp *s = qp->sctp;
	struct mpa_pdata peer;
	struct span pd;

	enum ddp_session_event ev = ddp_session_control_in(&s->session, body, &pd);
	siw_set_peer_depths(qp, &s->session.depths); /* also those of an Accept that does not fit */
	switch (ev) {
	case DDP_SESSION_EV_NONE:
	case DDP_SESSION_EV_NEGOTIATE:
		return true;
	case DDP_SESSION_EV_ACCEPTED:
		return accepted_by_peer(qp, pd);
	case DDP_SESSION_EV_REJECTED:
		siw_qp_break(qp, mpa_verdict_str(mpa_pdata_decode(pd, &peer) == 0 ? peer.verdict : MPA_ACCEPTED),
		    RNIC_WC_FLUSHED, NULL);
		return false;
	case DDP_SESSION_EV_TERMINATED:
		siw_qp_break(qp, s->session.why, RNIC_WC_RETRY_EXC, NULL);
		return false;
	case DDP_SESSION_EV_FAILED:
	case DDP_SESSION_EV_SEGMENT: /* these two: not of a queue pair's session */
	case DDP_SESSION_EV_ASKED:
		break;
	}
	session_broken(qp);
	return false;
}

static enum siw_seg
segment_in(struct siw_qp *qp, enum ssn_kind kind, struct span bytes)
{
	enum ddp_session_event ev = ddp_session_segment_in(&qp->sctp->session);
	enum siw_seg how = SIW_SEG_TAKEN;

	if (ev == DDP_SESSION_EV_NONE)
		return SIW_SEG_TAKEN;
	if (ev != DDP_SESSION_EV_SEGMENT) {
		session_broken(qp);
		return SIW_SEG_END;
	}
	/* What was held is reused at once. */
	qp->dev->rx_buffer = qp->sctp->order.now != SSN_NONE ? &qp->dev->sctp->unplaced : NULL;
	if (kind == SSN_PLACED)
		qp->stream.started = true;
	else
		how = siw_segment_in(qp, bytes);
	qp->dev->stats.fpdus_received += how == SIW_SEG_TAKEN;
	return how;
}

/* What has its turn. False: the queue pair is broken. */
static bool
take_turns(struct siw_qp *qp)
{
	struct siw_sctp *s = qp->sctp;
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
	qp->held = how == SIW_SEG_HELD;
	return how != SIW_SEG_END;
}

/* False: the queue pair is broken. */
static bool
message_in(struct siw_qp *qp, const struct siw_assoc_msg *msg)
{
	struct siw_sctp *s = qp->sctp;
	const struct sctp_ddp_values *v = siw_sctp_values(qp->dev);
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
		session_broken(qp);
		return false;
	}
	/* Nothing is placed before the session is accepted. */
	if (ssn_in(&s->order, qp->state >= SIW_RTR_WAIT ? &qp->stream : NULL, segment ? SSN_SEGMENT : SSN_CONTROL,
	        number, body, &why) < 0) {
		out_of_order(qp, why);
		return false;
	}
	if (!qp->held && !take_turns(qp))
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

	switch (qp->dev->sctp->stack->take(qp->sctp->assoc, &msg)) {
	case SIW_ASSOC_NOTHING:
		return false;
	case SIW_ASSOC_UP:
		assoc_up(qp);
		return qp->state < SIW_BROKEN;
	case SIW_ASSOC_MESSAGE:
		return message_in(qp, &msg);
	case SIW_ASSOC_CLOSED:
		qp->sctp->closed = true;
		return false;
	case SIW_ASSOC_LOST:
		qp->events.silent = msg.silent;
		siw_qp_break(qp, msg.why, RNIC_WC_RETRY_EXC, NULL);
		return false;
	}
	return false;
}

void
siw_sctp_rx_turn(struct siw_qp *qp)
{
	struct siw_sctp *s = qp->sctp;
	unsigned taken = 0;

	if (s->assoc == NULL || qp->state >= SIW_BROKEN)
		return;
	if (qp->held && stream_recv_cnt(&qp->stream) > 0 && !take_turns(qp))
		return;
	while (!s->closed && taken < RX_BUDGET && take_one(qp))
		taken++;
	if (taken == RX_BUDGET)
		siw_rx_schedule(qp);
	/* What came before that, and is held, has its turn first. */
	if (s->closed && !qp->held && qp->state < SIW_BROKEN)
		siw_qp_break(qp, "the peer closed the association", RNIC_WC_RETRY_EXC, NULL);
}

static void
qp_ready(void *arg)
{
	struct siw_qp *qp = arg;

	if (qp->tx_blocked)
		siw_tx_unblocked(qp);
	siw_sctp_rx_turn(qp);
}

/* -- the active side -- */

static void
own(struct siw_qp *qp, struct siw_assoc *a)
{
	qp->sctp->assoc = a;
	a->owner = qp;
	a->linger.kind = SIW_LINGER_QP;
	a->ready = qp_ready;
}

int
siw_sctp_connect(struct siw_qp *qp)
{
	struct siw_assoc *a;
	int rc = qp->dev->sctp->stack->connect(qp->dev, &qp->remote, &a);

	if (rc < 0)
		return rc;
	own(qp, a);
	session_init(&qp->sctp->session, qp->dev, true);
	return order_init(qp, siw_sctp_values(qp->dev)->first_ssn);
}

/* -- the passive side -- */

struct sctp_pend {
	struct siw_pend pend;
	struct siw_assoc *assoc;
	struct ddp_session session;
	uint16_t next; /* DDP-SSN */
};

static struct sctp_pend *
sctp_pend(struct siw_pend *p)
{
	return CONTAINER_OF(p, struct sctp_pend, pend);
}

/* Frees all but the association, which is returned. */
static struct siw_assoc *
pend_free(struct sctp_pend *t)
{
	struct siw_assoc *a = t->assoc;

	siw_pend_remove(&t->pend);
	free(t);
	return a;
}

void
siw_sctp_pend_drop(struct siw_pend *p)
{
	struct siw_dev *dev = p->dev;

	dev->sctp->stack->end(pend_free(sctp_pend(p)), false);
}

/* The last message, then the end; -1: there is nothing to say. */
static void
pend_end(struct sctp_pend *t, const uint8_t *message, int len)
{
	struct siw_dev *dev = t->pend.dev;
	struct siw_assoc *a = pend_free(t);

	dev->sctp->stack->end(a, siw_sctp_say(a, message, len));
}

void
siw_sctp_pend_refuse(struct siw_pend *p, enum mpa_verdict verdict)
{
	const struct mpa_pdata d = { .verdict = (uint8_t)verdict, .qpn = p->pdata.from_qpn };
	struct sctp_pend *t = sctp_pend(p);
	uint8_t pd[MPA_PDATA_LEN], message[SCTP_DDP_CONTROL_MAX];
	int len;

	/* RFC 5043 6.4: too many that wait is no refusal of the upper layer's. */
	if (verdict == MPA_BUSY)
		len = ddp_session_terminate(&t->session, message, sizeof(message));
	else
		len = ddp_session_reject(&t->session, mpa_pdata_encode(&d, pd), message, sizeof(message));
	pend_end(t, message, len);
}

void
siw_sctp_pend_adopt(struct siw_pend *p, struct siw_qp *qp)
{
	struct sctp_pend *t = sctp_pend(p);
	struct siw_sctp *s = qp->sctp;
	const struct mpa_pdata peer = p->pdata;
	uint8_t pd[MPA_PDATA_LEN], message[SCTP_DDP_CONTROL_MAX];
	uint16_t next = t->next;

	siw_set_peer_depths(qp, &t->session.depths);
	if (t->session.unfit) {
		const char *why = t->session.why;

		siw_sctp_pend_refuse(p, MPA_READ_DEPTH);
		siw_qp_break(qp, why, RNIC_WC_FLUSHED, NULL);
		return;
	}
	s->session = t->session;
	own(qp, pend_free(t));
	qp->peer_qpn = peer.from_qpn;
	siw_qp_set_state(qp, SIW_RTR_WAIT);
	if (order_init(qp, next) < 0 ||
	    !siw_sctp_say(s->assoc, message,
	        ddp_session_accept(&s->session, own_pdata(qp, NULL, pd), message, sizeof(message)))) {
		siw_qp_break(qp, "the DDP stream session's Accept could not be sent", RNIC_WC_FLUSHED, NULL);
		return;
	}
	siw_sctp_cm_start(qp, &peer, s->session.depths.p2p && (s->session.depths.rtr & RTR_SEND) != 0);
	/* We may speak at once, unlike over MPA. */
	if (siw_rx_started(qp))
		siw_rx_schedule(qp);
}

/* A message before the session is accepted: a Negotiate of the draft, the Initiate, or a Terminate behind it. False: it
 * has a queue pair, or is at its end. */
static bool
pend_message(struct sctp_pend *t, const struct siw_assoc_msg *msg)
{
	uint32_t ppid = siw_sctp_values(t->pend.dev)->ppid_control;
	uint8_t message[SCTP_DDP_CONTROL_MAX];
	enum ddp_session_event ev;
	struct span body, pd;
	uint16_t number;

	if (msg->stream != 0 || msg->ppid != ppid || sctp_ddp_ssn_decode(msg->bytes, &number, &body) < 0 ||
	    number != t->next)
		ev = ddp_session_fail(&t->session, "no message of session control in its turn");
	else
		ev = ddp_session_control_in(&t->session, body, &pd);
	t->next++;
	if (ev == DDP_SESSION_EV_NEGOTIATE)
		return true;
	if (ev == DDP_SESSION_EV_ASKED)
		return siw_pend_dispatch(&t->pend, (struct span){ .ptr = t->session.pd, .len = t->session.pd_len });
	if (ev != DDP_SESSION_EV_TERMINATED) /* that is an Initiate that was given up */
		siw_refused(t->pend.dev, UNKNOWN_PEER_BAD, &t->pend.from);
	pend_end(t, message,
	    ddp_session_may(&t->session, DDP_SESSION_TERMINATE)
	        ? ddp_session_terminate(&t->session, message, sizeof(message))
	        : -1);
	return false;
}

static void
pend_ready(void *arg)
{
	struct sctp_pend *t = arg;
	struct siw_dev *dev = t->pend.dev;
	struct siw_assoc_msg msg;

	for (;;)
		switch (dev->sctp->stack->take(t->assoc, &msg)) {
		case SIW_ASSOC_NOTHING:
			return;
		case SIW_ASSOC_UP:
			break;
		case SIW_ASSOC_MESSAGE:
			if (!pend_message(t, &msg))
				return;
			break;
		case SIW_ASSOC_CLOSED:
		case SIW_ASSOC_LOST:
			if (!t->pend.parked)
				siw_refused(dev, UNKNOWN_PEER_BAD, &t->pend.from);
			siw_sctp_pend_drop(&t->pend);
			return;
		}
}

void
siw_sctp_came(struct siw_assoc *a)
{
	struct siw_dev *dev = a->dev;
	struct sctp_pend *t = calloc(1, sizeof(*t));

	if (t == NULL || siw_pend_add(dev, &t->pend, &a->from) < 0) {
		dev->stats.no_memory++;
		free(t);
		dev->sctp->stack->end(a, false);
		return;
	}
	t->assoc = a;
	session_init(&t->session, dev, false);
	t->next = siw_sctp_values(dev)->first_ssn;
	a->owner = t;
	a->ready = pend_ready;
	pend_ready(t);
}
