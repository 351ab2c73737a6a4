/* Soft iWARP: connection set-up (MPA, RFC 5044 and 6581): what both sides share, and the active one; see siw_int.h. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/addr.h"
#include "rnic/siw/siw_int.h"

#define NOTSENT_LOWAT (128 * 1024)

void
siw_tune_socket(int fd)
{
	const int on = 1, lowat = NOTSENT_LOWAT;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &lowat, sizeof(lowat));
}

static int
depth_named(const struct neg *neg, uint16_t depth)
{
	return neg->state == NEG_IDLE || depth == MPA_DEPTH_NONE ? -1 : depth;
}

struct rnic_depths
siw_peer_depths(const struct rnic_qp *rqp)
{
	const struct siw_qp *qp = siw_qp(rqp);

	return (struct rnic_depths){
		.ird = depth_named(&qp->neg, qp->neg.res.peer_ird),
		.ord = depth_named(&qp->neg, qp->neg.res.peer_ord),
	};
}

int
siw_frame_encode(struct mpa_frame f, const struct mpa_pdata *d, uint8_t out[MPA_FRAME_MAX])
{
	uint8_t pd[MPA_PDATA_LEN];

	mpa_pdata_encode(d, pd);
	f.pd = (struct span){ .ptr = pd, .len = sizeof(pd) };
	return mpa_frame_encode(&f, out, MPA_FRAME_MAX);
}

bool
siw_send_frame(struct siw_qp *qp, const struct rnic_remote *to, const struct mpa_frame *f)
{
	const struct mpa_pdata own = {
		.recv_depth = (uint16_t)qp->rq_depth,
		.qpn = to != NULL ? to->qpn : qp->peer_qpn,
		.psn = to != NULL ? to->psn : 0,
		.token = to != NULL ? qp->token : 0,
		.from_qpn = qp->qp.qpn,
		.ulpdu_max = qp->dev->cfg.fpdu_max,
		.read_stag = qp->fence_region.stag,
		.read_to = qp->fence_region.base,
	};
	uint8_t out[MPA_FRAME_MAX];
	int len = siw_frame_encode(*f, &own, out);

	return len > 0 && send(qp->fd, out, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL) == len;
}

void
siw_cm_check_connected(struct siw_qp *qp)
{
	if (qp->state != SIW_RTS || !qp->claimed || qp->connected)
		return;
	if (qp->peer_qpn != qp->remote.qpn) {
		const struct rdmap_term term = { .layer = RDMAP_LAYER_LLP, .code = NEG_TERM_LOCAL };

		siw_qp_break(qp, "the link was taken by another QP of the peer", RNIC_WC_LOCAL_ERR, &term);
		return;
	}
	timer_cancel(&qp->dev->timers, &qp->connect_timer);
	qp->connected = true;
	events_add(&qp->dev->events, &qp->events, RNIC_EV_CONNECTED);
}

void
siw_cm_connect_timeout(struct timer *t)
{
	static const char *const why[SIW_CLOSED + 1] = {
		[SIW_EXPECTING] = "the peer did not open its MPA connection in time",
		[SIW_CONNECTING] = "the peer's MPA port does not answer",
		[SIW_REQUESTED] = "the peer did not answer the MPA Request in time",
		[SIW_RTR_WAIT] = "the peer's first message did not come in time",
		[SIW_RTS] = "timed out",
	};
	struct siw_qp *qp = CONTAINER_OF(t, struct siw_qp, connect_timer);

	siw_qp_break(qp, why[qp->state], RNIC_WC_FLUSHED, NULL);
}

/* -- the active side -- */

/* Not to be: with the Terminate of this code as our only FPDU, or none when it is 0. */
static void
give_up(struct siw_qp *qp, const char *why, uint8_t code)
{
	const struct rdmap_term term = { .layer = RDMAP_LAYER_LLP, .code = code };

	if (code != 0)
		txq_start(&qp->txq, qp->neg.res.crc, qp->neg.res.markers_tx);
	siw_qp_break(qp, why, RNIC_WC_FLUSHED, code != 0 ? &term : NULL);
}

static void
reply_in(struct siw_qp *qp, const struct mpa_frame *f)
{
	enum neg_state outcome = neg_reply_in(&qp->neg, f);
	struct mpa_pdata peer;
	bool ours = mpa_pdata_decode(f->pd, &peer) == 0;

	if (outcome == NEG_REJECTED) {
		siw_qp_break(qp, mpa_verdict_str(ours ? peer.verdict : MPA_ACCEPTED), RNIC_WC_FLUSHED, NULL);
		return;
	}
	if (outcome == NEG_FAILED) {
		give_up(qp, qp->neg.why, qp->neg.term_code);
		return;
	}
	if (!ours || peer.qpn != qp->qp.qpn || peer.from_qpn != qp->remote.qpn || peer.recv_depth == 0) {
		give_up(qp, "the MPA Reply is not from the peer's link", NEG_TERM_LOCAL);
		return;
	}
	qp->dev->loop.unwatch(qp->dev->loop.ctx, qp->fd);
	siw_qp_set_state(qp, SIW_RTS);
	if (siw_stream_start(qp, &peer) < 0) {
		give_up(qp, "out of resources", NEG_TERM_LOCAL);
		return;
	}
	siw_tx_rtr(qp);
	siw_tx_schedule(qp);
	siw_cm_check_connected(qp);
}

static void
read_reply(struct siw_qp *qp)
{
	size_t space = MPA_FRAME_MAX + 1 - qp->rx_len;
	ssize_t n = recv(qp->fd, qp->rx_buf + qp->rx_len, space, MSG_DONTWAIT);
	struct mpa_frame f;
	int used;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		siw_qp_break(qp, "the peer closed its MPA port's connection without an answer", RNIC_WC_FLUSHED, NULL);
		return;
	}
	qp->rx_len += (size_t)n;
	used = mpa_frame_decode((struct span){ .ptr = qp->rx_buf, .len = qp->rx_len }, MPA_REPLY, &f);
	if (used == 0)
		return;
	/* The peer may not say more before our first FPDU. */
	if (used < 0 || (size_t)used != qp->rx_len)
		siw_qp_break(qp, "malformed MPA Reply", RNIC_WC_FLUSHED, NULL);
	else
		reply_in(qp, &f);
}

static void
connect_io(void *arg, int fd, unsigned events)
{
	struct siw_qp *qp = arg;

	(void)events;
	if (qp->state == SIW_CONNECTING) {
		struct sockaddr_storage ss;
		socklen_t ss_len = sizeof(ss), len = sizeof(int);
		struct mpa_frame request;
		int err = 0;

		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0 || err != 0) {
			siw_qp_break(qp, mpa_connect_error(err), RNIC_WC_FLUSHED, NULL);
			return;
		}
		if (getpeername(fd, (struct sockaddr *)&ss, &ss_len) < 0)
			return; /* not connected yet */
		neg_init(&qp->neg, &qp->dev->neg_cfg);
		neg_request(&qp->neg, &request);
		siw_qp_set_state(qp, SIW_REQUESTED);
		if (!siw_send_frame(qp, &qp->remote, &request))
			siw_qp_break(qp, "the MPA Request could not be sent", RNIC_WC_FLUSHED, NULL);
	}
	if (qp->state == SIW_REQUESTED)
		read_reply(qp);
}

/* 0 or a negative errno; what is left of it goes with the QP's end. */
static int
start_connect(struct siw_qp *qp)
{
	struct siw_dev *dev = qp->dev;
	struct sockaddr_storage local = dev->cfg.addr, ss;
	const int on = 1;
	int rc = iface_remote(&local, &qp->remote.gid, qp->remote.mpa_port, &ss);

	if (rc < 0)
		return rc;
	qp->fd = socket(ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (qp->fd < 0)
		return -errno;
	siw_tune_socket(qp->fd);
	/* The port is chosen at connect: only then is it known to be free for this peer. */
	(void)setsockopt(qp->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	addr_set_port(&local, 0);
	if (bind(qp->fd, (const struct sockaddr *)&local, addr_len(&local)) < 0 ||
	    (connect(qp->fd, (const struct sockaddr *)&ss, addr_len(&ss)) < 0 && errno != EINPROGRESS))
		return -errno;
	return dev->loop.watch(dev->loop.ctx, qp->fd, connect_io, qp);
}

int
siw_qp_connect(struct rnic_qp *rqp, enum rnic_side side, const struct rnic_remote *remote)
{
	struct siw_qp *qp = siw_qp(rqp);
	int rc;

	if (qp->claimed || (side == RNIC_ACTIVE && (qp->state != SIW_IDLE || remote->mpa_port == 0)) ||
	    qp->state == SIW_CLOSED)
		return -EINVAL;
	qp->claimed = true;
	qp->remote = *remote;
	if (qp->state == SIW_BROKEN) {
		/* It came, and broke before we were asked. */
		events_add(&qp->dev->events, &qp->events, RNIC_EV_CONNECT_FAILED);
		return 0;
	}
	if (side == RNIC_PASSIVE) {
		(void)siw_qp_expect(rqp); /* or it was called before */
		if (qp->state < SIW_BROKEN)
			siw_arm(qp->dev, &qp->connect_timer, qp->dev->cfg.connect_ms);
		siw_cm_check_connected(qp);
		return 0;
	}
	siw_qp_set_state(qp, SIW_CONNECTING);
	siw_arm(qp->dev, &qp->connect_timer, qp->dev->cfg.connect_ms);
	rc = start_connect(qp);
	if (rc < 0)
		siw_qp_break(qp,
		    rc == -EAFNOSUPPORT ? "the peer's RNIC has an address of another family" : mpa_connect_error(-rc),
		    RNIC_WC_FLUSHED, NULL);
	return 0;
}
