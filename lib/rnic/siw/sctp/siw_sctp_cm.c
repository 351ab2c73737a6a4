/*
 * Soft iWARP, DDP over SCTP: set-up, in both roles; see siw_sctp.h. A peer that
 * has made an association waits, with its Initiate, for its queue pair as one that
 * sent an MPA Request does (siw_pend.c).
 */
#include <errno.h>
#include <stdlib.h>

#include "base/minmax.h"
#include "rnic/siw/sctp/siw_sctp.h"

#define HELD_SPARE 8 /* messages that no contract counts: of session control, Writes of nothing, a Terminate */

void
siw_sctp_session_init(struct ddp_session *s, const struct siw_dev *dev, bool active)
{
	struct ddp_session_config cfg = {
		.profile = siw_sctp_profile(dev), .enhanced = dev->cfg.mpa_rev >= 2, .depths = dev->depths
	};

	cfg.depths.p2p = false; /* either side may speak first (RFC 6581 7) */
	ddp_session_init(s, &cfg, active);
}

static struct span
encoded(const struct mpa_pdata *d, uint8_t out[MPA_PDATA_LEN])
{
	mpa_pdata_encode(d, out);
	return (struct span){ .ptr = out, .len = MPA_PDATA_LEN };
}

static struct mpa_pdata
own_pdata(const struct siw_qp *qp, const struct rnic_remote *to)
{
	struct mpa_pdata d = siw_own_pdata(qp, to);

	d.flags = siw_sctp_stack(qp->dev)->gather != NULL ? MPA_PACKETS_TOGETHER : 0;
	return d;
}

static void
siw_sctp_cm_start(struct siw_qp *qp, const struct mpa_pdata *peer, bool rtr_send)
{
	const struct siw_sctp_stack *stack = siw_sctp_stack(qp->dev);
	struct siw_sctp *s = siw_sctp(qp);

	if (stack->gather != NULL && (peer->flags & MPA_PACKETS_TOGETHER) != 0)
		stack->gather(s->assoc);
	siw_sctp_learn_rtt(qp);
	siw_stream_start(qp, peer, s->session.depths.ord, rtr_send);
}

static int
order_init(struct siw_qp *qp, uint16_t first)
{
	struct siw_sctp *s = siw_sctp(qp);
	uint32_t held = qp->rq_depth + qp->dev->cfg.ird + 1 + qp->dev->cfg.ord + HELD_SPARE;
	const struct ssn_config cfg = {
		.first = first,
		.held_max = (uint16_t)min_u32(held, SSN_WINDOW - 1),
		.held_len = (uint16_t)min_size(s->assoc->message_max, UINT16_MAX),
	};

	return ssn_init(&s->order, &cfg);
}

static void
own(struct siw_qp *qp, struct siw_assoc *a)
{
	siw_sctp(qp)->assoc = a;
	a->owner = qp;
	a->kind = SIW_LINGER_QP;
	a->ready = siw_sctp_qp_ready;
}

/* -- the active side -- */

int
siw_sctp_connect(struct siw_qp *qp)
{
	struct siw_assoc *a;
	int rc = siw_sctp_stack(qp->dev)->connect(qp->dev, &qp->remote, &a);

	if (rc < 0)
		return rc;
	own(qp, a);
	siw_sctp_session_init(&siw_sctp(qp)->session, qp->dev, true);
	return order_init(qp, sctp_ddp_values[siw_sctp_profile(qp->dev)].first_ssn);
}

void
siw_sctp_up(struct siw_qp *qp)
{
	struct siw_sctp *s = siw_sctp(qp);
	const struct mpa_pdata mine = own_pdata(qp, &qp->remote);
	uint8_t pd[MPA_PDATA_LEN], message[SCTP_DDP_CONTROL_MAX];

	if (qp->state != SIW_CONNECTING)
		return;
	int len = ddp_session_initiate(&s->session, encoded(&mine, pd), message, sizeof(message));
	siw_qp_set_state(qp, SIW_REQUESTED);
	if (!siw_sctp_say(s->assoc, message, len))
		siw_qp_break(qp, "the DDP stream session's Initiate could not be sent", RNIC_WC_FLUSHED, NULL);
}

bool
siw_sctp_accepted(struct siw_qp *qp, struct span pdata)
{
	struct siw_sctp *s = siw_sctp(qp);
	struct mpa_pdata peer;

	siw_set_peer_depths(qp, &s->session.depths);
	if (mpa_pdata_decode(pdata, &peer) < 0 || !siw_is_answer(qp, &peer)) {
		(void)ddp_session_fail(&s->session, "the session was not accepted by the peer's link");
		siw_sctp_broken(qp);
		return false;
	}
	siw_qp_set_state(qp, SIW_RTS);
	siw_sctp_cm_start(qp, &peer, false);
	siw_tx_schedule(qp);
	siw_cm_check_connected(qp);
	return qp->state == SIW_RTS;
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

	siw_sctp_stack(dev)->end(pend_free(sctp_pend(p)), false);
}

/* The last message, then the end; -1: there is nothing to say. */
static void
pend_end(struct sctp_pend *t, const uint8_t *message, int len)
{
	struct siw_dev *dev = t->pend.dev;
	struct siw_assoc *a = pend_free(t);

	siw_sctp_stack(dev)->end(a, siw_sctp_say(a, message, len));
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
		len = ddp_session_reject(&t->session, encoded(&d, pd), message, sizeof(message));
	pend_end(t, message, len);
}

void
siw_sctp_pend_adopt(struct siw_pend *p, struct siw_qp *qp)
{
	struct sctp_pend *t = sctp_pend(p);
	struct siw_sctp *s = siw_sctp(qp);
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
	struct mpa_pdata mine = own_pdata(qp, NULL);
	if (order_init(qp, next) < 0 ||
	    !siw_sctp_say(
	        s->assoc, message, ddp_session_accept(&s->session, encoded(&mine, pd), message, sizeof(message)))) {
		siw_qp_break(qp, "the DDP stream session's Accept could not be sent", RNIC_WC_FLUSHED, NULL);
		return;
	}
	siw_sctp_cm_start(qp, &peer, s->session.depths.p2p && (s->session.depths.rtr & RTR_SEND) != 0);
	/* We may speak at once, unlike over MPA. */
	if (siw_rx_started(qp))
		siw_rx_schedule(qp);
}

/* A message before the session is accepted: a Negotiate of the draft, the Initiate, or a Terminate behind it. False: it has a
 * queue pair, or is at its end. */
static bool
pend_message(struct sctp_pend *t, const struct siw_assoc_msg *msg)
{
	uint32_t ppid = sctp_ddp_values[siw_sctp_profile(t->pend.dev)].ppid_control;
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
		switch (siw_sctp_stack(dev)->take(t->assoc, &msg)) {
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
		siw_sctp_stack(dev)->end(a, false);
		return;
	}
	t->assoc = a;
	siw_sctp_session_init(&t->session, dev, false);
	t->next = sctp_ddp_values[siw_sctp_profile(dev)].first_ssn;
	a->owner = t;
	a->ready = pend_ready;
	pend_ready(t);
}
