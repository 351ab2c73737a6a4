/* Soft iWARP, DDP over SCTP: the table, birth, sending and the end; see siw_sctp.h. */
#include "rnic/siw/sctp/siw_sctp.h"

#include <errno.h>
#include <stdlib.h>

#define TX_RING (64u * 1024)
#define NS_PER_US 1000

bool
siw_sctp_say(struct siw_assoc *a, const uint8_t *message, int len)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)message, .iov_len = (size_t)len };
	struct siw_dev *dev = a->dev;
	bool said = len > 0 && dev->sctp->stack->send(a, siw_sctp_values(dev)->ppid_control, &iov, 1) == 0;

	if (dev->flush != NULL)
		dev->flush(dev);
	return said;
}

/* -- associations -- */

int
siw_assoc_init(struct siw_assoc *a, struct siw_dev *dev, const struct unknown_peer *from, size_t message_max,
    void (*linger_over)(struct siw_linger *))
{
	if (timerq_reserve(&dev->timers, 1) < 0)
		return -ENOMEM;
	a->dev = dev;
	a->from = *from;
	a->message_max = message_max;
	siw_linger_init(&a->linger, dev, linger_over);
	list_init(&a->node);
	list_push(&dev->sctp->assocs, &a->node);
	return 0;
}

void
siw_assoc_fini(struct siw_assoc *a)
{
	siw_linger_stop(&a->linger);
	timerq_unreserve(&a->dev->timers, 1);
	list_remove(&a->node);
}

bool
siw_assoc_is_over(struct siw_assoc *a, unsigned budget)
{
	enum siw_assoc_in in = SIW_ASSOC_MESSAGE;
	struct siw_assoc_msg msg;

	for (unsigned i = 0; i < budget && (in == SIW_ASSOC_MESSAGE || in == SIW_ASSOC_UP); i++)
		in = a->dev->sctp->stack->take(a, &msg);
	return in == SIW_ASSOC_LOST || in == SIW_ASSOC_CLOSED;
}

/* -- birth -- */

static int
open_stack(struct siw_dev *dev, const struct siw_sctp_stack *stack, const char **err)
{
	int rc = stack->open(dev, err);

	if (rc < 0) {
		free(dev->sctp);
		dev->sctp = NULL;
		return rc;
	}
	dev->sctp->stack = stack;
	dev->sctp->message = dev->sctp->received;
	list_init(&dev->sctp->unplaced);
	return 0;
}

static int
listen_on(struct siw_dev *dev, const char **err)
{
	enum siw_sctp_stack_kind kind = dev->cfg.sctp_stack;
	int rc = -EPROTONOSUPPORT;

	if (dev->cfg.sctp_udp != 0)
		dev->cfg.port_min = dev->cfg.port_max = dev->cfg.sctp_udp;
	if (kind != SIW_STACK_USER)
		rc = open_stack(dev, &siw_sctp_kernel, err);
	if (rc == -EPROTONOSUPPORT && kind != SIW_STACK_KERNEL && dev->cfg.more_addrs.cnt == 0) {
		rc = open_stack(dev, &siw_sctp_user, err);
		dev->transport = RNIC_TRANSPORT_IWARP_SCTP_UDP;
	} else {
		dev->transport = dev->cfg.sctp_udp != 0 ? RNIC_TRANSPORT_IWARP_SCTP_UDP : RNIC_TRANSPORT_IWARP_SCTP;
	}
	return rc;
}

static void
unlisten(struct siw_dev *dev)
{
	dev->sctp->stack->close(dev);
}

static int
qp_init(struct siw_qp *qp)
{
	struct siw_sctp *s = qp->sctp = calloc(1, sizeof(*s));

	if (s == NULL)
		return -ENOMEM;
	qp->queued = &s->out.bytes;
	return segq_init(&s->out, TX_RING);
}

static void
qp_fini(struct siw_qp *qp)
{
	struct siw_sctp *s = qp->sctp;

	if (s == NULL)
		return;
	rnic_unit_place_all(&qp->dev->sctp->unplaced); /* the device may end next */
	segq_fini(&s->out);
	ssn_fini(&s->order);
	free(s);
}

static const char *
connect_error(int err)
{
	return err == ENOMEM ? "out of memory" : "the peer's SCTP port cannot be reached";
}

/* -- sending -- */

static bool
room(const struct siw_qp *qp, size_t payload_len)
{
	return segq_room(&qp->sctp->out, payload_len);
}

static void
siw_sctp_put(struct siw_qp *qp, const struct ddp_hdr *h, const struct txq_payload *payload)
{
	segq_put(&qp->sctp->out, h, payload);
}

static void
push_begin(struct siw_qp *qp)
{
	size_t path = qp->sctp->assoc->message_max - SCTP_DDP_SSN_LEN, own = qp->dev->cfg.fpdu_max;

	qp->seg_max = own != 0 && own < path ? own : path;
}

static enum siw_push
push(struct siw_qp *qp, size_t *sent)
{
	struct siw_sctp *s = qp->sctp;
	const struct sctp_ddp_values *v = siw_sctp_values(qp->dev);
	size_t max = s->assoc->message_max;
	struct iovec iov[SEGQ_IOV_MAX];
	unsigned cnt = segq_peek(&s->out, s->session.tx_ssn, max, iov);

	if (cnt == 0)
		return SIW_PUSH_OVER;
	int rc = qp->dev->sctp->stack->send(s->assoc, v->ppid_segment, iov, cnt);
	if (rc == -EAGAIN)
		return SIW_PUSH_BLOCKED;
	if (rc == -EMSGSIZE && s->assoc->message_max < max)
		return SIW_PUSH_SENT;
	if (rc < 0) {
		siw_qp_break(qp, "the association is lost", RNIC_WC_RETRY_EXC, NULL);
		return SIW_PUSH_OVER;
	}
	(void)ddp_session_segment_ssn(&s->session);
	for (unsigned i = 0; i < cnt; i++)
		*sent += iov[i].iov_len;
	segq_sent(&s->out);
	return SIW_PUSH_SENT;
}

/* -- the end -- */

static void
siw_sctp_finish(struct siw_qp *qp, bool last_word)
{
	struct siw_sctp *s = qp->sctp;
	uint8_t message[SCTP_DDP_CONTROL_MAX];
	struct siw_assoc *a = s->assoc;
	struct siw_dev *dev = qp->dev;
	size_t sent = 0;
	bool in_order;

	if (a == NULL || s->ending)
		return;
	s->ending = true;
	if (last_word) {
		/* All that is queued, and what the queue pair still makes. */
		dev->sctp->stack->last_words(a);
		do
			siw_tx_fill(qp);
		while (push(qp, &sent) == SIW_PUSH_SENT);
		in_order = segq_empty(&s->out);
	} else {
		/* A session that the peer ended, or that never was one, ends in order if that cuts nothing off. */
		in_order = segq_empty(&s->out) &&
		    (s->session.state == DDP_SESSION_ENDED || s->session.state == DDP_SESSION_FAILED);
	}
	if (in_order && ddp_session_may(&s->session, DDP_SESSION_TERMINATE))
		in_order = siw_sctp_say(a, message, ddp_session_terminate(&s->session, message, sizeof(message)));
	s->assoc = NULL;
	dev->sctp->stack->end(a, in_order);
}

/* -- the path -- */

static void
conn_info(struct siw_qp *qp, struct rnic_conn_info *out)
{
	if (qp->sctp->assoc != NULL)
		qp->dev->sctp->stack->info(qp->sctp->assoc, out);
}

/* Stacks smooth round trips, which delayed acknowledgements of lone messages lengthen: the shortest one counts, that of
 * the set-up as a rule. They are in milliseconds: 0 after some is less than one; 0 at first is unknown. */
static void
learn_rtt(struct siw_qp *qp)
{
	struct rnic_conn_info info = { 0 };

	conn_info(qp, &info);
	for (unsigned i = 0; i < info.path_cnt; i++) {
		int64_t ns = (int64_t)info.paths[i].rtt_us * NS_PER_US;

		if (info.paths[i].primary && (qp->rtt_ns < 0 ? ns > 0 : ns < qp->rtt_ns))
			qp->rtt_ns = ns;
	}
}

static void
rest(struct siw_qp *qp)
{
	segq_rest(&qp->sctp->out);
	ssn_rest(&qp->sctp->order);
}

static const char *const timeout_why[SIW_CLOSED + 1] = {
	[SIW_EXPECTING] = "the peer did not open its SCTP association in time",
	[SIW_CONNECTING] = "the peer's SCTP port does not answer",
	[SIW_REQUESTED] = "the peer did not answer the DDP stream session's Initiate in time",
	[SIW_RTR_WAIT] = "the peer's first message did not arrive in time",
	[SIW_RTS] = "timed out",
};

const struct siw_llp siw_sctp_llp = {
	.stream = STREAM_SCTP,
	.timeout_why = timeout_why,
	.listen = listen_on,
	.unlisten = unlisten,
	.pend_adopt = siw_sctp_pend_adopt,
	.pend_refuse = siw_sctp_pend_refuse,
	.pend_drop = siw_sctp_pend_drop,
	.qp_init = qp_init,
	.qp_fini = qp_fini,
	.connect = siw_sctp_connect,
	.connect_error = connect_error,
	.room = room,
	.put = siw_sctp_put,
	.push_begin = push_begin,
	.push = push,
	.rx_turn = siw_sctp_rx_turn,
	.finish = siw_sctp_finish,
	.learn_rtt = learn_rtt,
	.conn_info = conn_info,
	.rest = rest,
};
