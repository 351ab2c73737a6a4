/* Soft iWARP, MPA on TCP: active side of connection setup (RFC 5044, RFC 6581); see siw_tcp.h. */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/addr.h"
#include "rnic/siw/tcp/siw_tcp.h"

/* Fails the connection, with a Terminate of this code as our only FPDU, or none if code is 0. */
static void
give_up(struct siw_qp *qp, const char *why, uint8_t code)
{
	const struct rdmap_term term = { .layer = RDMAP_LAYER_LLP, .code = code };
	struct siw_tcp *t = siw_tcp(qp);

	if (code != 0)
		txq_start(&t->txq, t->neg.res.crc, t->neg.res.markers_tx);
	siw_qp_break(qp, why, RNIC_WC_FLUSHED, code != 0 ? &term : NULL);
}

static void
reply_in(struct siw_qp *qp, const struct mpa_frame *f)
{
	struct siw_tcp *t = siw_tcp(qp);
	enum neg_state outcome = neg_reply_in(&t->neg, f);
	struct mpa_pdata peer;
	bool ours = mpa_pdata_decode(f->pd, &peer) == 0;

	siw_set_peer_depths(qp, &t->neg.res.depths);
	if (outcome == NEG_REJECTED) {
		siw_qp_break(qp, mpa_verdict_str(ours ? peer.verdict : MPA_ACCEPTED), RNIC_WC_FLUSHED, NULL);
		return;
	}
	if (outcome == NEG_FAILED) {
		give_up(qp, t->neg.why, t->neg.term_code);
		return;
	}
	if (!ours || !siw_is_answer(qp, &peer)) {
		give_up(qp, "the MPA Reply is not from the peer's link", ENHANCED_TERM_LOCAL);
		return;
	}
	qp->dev->loop.unwatch(qp->dev->loop.ctx, t->fd);
	siw_qp_set_state(qp, SIW_RTS);
	if (siw_tcp_start(qp, &peer) < 0) {
		give_up(qp, "out of resources", ENHANCED_TERM_LOCAL);
		return;
	}
	siw_tx_rtr(qp, t->neg.res.depths.rtr);
	siw_tx_schedule(qp);
	siw_cm_check_connected(qp);
}

static void
read_reply(struct siw_qp *qp)
{
	struct siw_tcp *t = siw_tcp(qp);
	size_t space = MPA_FRAME_MAX + 1 - t->rx_len;
	ssize_t n = recv(t->fd, t->rx_buf + t->rx_len, space, MSG_DONTWAIT);
	struct mpa_frame f;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		siw_qp_break(qp, "the peer closed the MPA connection without a reply", RNIC_WC_FLUSHED, NULL);
		return;
	}
	t->rx_len += (size_t)n;
	int used = mpa_frame_decode((struct span){ .ptr = t->rx_buf, .len = t->rx_len }, MPA_REPLY, &f);
	if (used == 0)
		return;
	/* The peer must not send more before our first FPDU. */
	if (used < 0 || (size_t)used != t->rx_len)
		siw_qp_break(qp, "malformed MPA Reply", RNIC_WC_FLUSHED, NULL);
	else
		reply_in(qp, &f);
}

static void
connect_io(void *arg, int fd, unsigned events)
{
	struct siw_qp *qp = arg;
	struct siw_tcp *t = siw_tcp(qp);

	(void)events;
	if (qp->state == SIW_CONNECTING) {
		struct sockaddr_storage ss;
		socklen_t ss_len = sizeof(ss), len = sizeof(int);
		struct mpa_frame request;
		int err = 0;

		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0 || err != 0) {
			if (err == ETIMEDOUT)
				siw_qp_note_silence(qp);
			siw_qp_break(qp, mpa_connect_error(err), RNIC_WC_FLUSHED, NULL);
			return;
		}
		if (getpeername(fd, (struct sockaddr *)&ss, &ss_len) < 0)
			return; /* not connected yet */
		neg_init(&t->neg, &siw_tcp_dev(qp->dev)->neg_cfg);
		neg_request(&t->neg, &request);
		siw_qp_set_state(qp, SIW_REQUESTED);
		if (!siw_tcp_send_frame(qp, &qp->remote, &request))
			siw_qp_break(qp, "the MPA Request could not be sent", RNIC_WC_FLUSHED, NULL);
	}
	if (qp->state == SIW_REQUESTED)
		read_reply(qp);
}

int
siw_tcp_connect(struct siw_qp *qp)
{
	struct siw_dev *dev = qp->dev;
	struct siw_tcp *t = siw_tcp(qp);
	struct sockaddr_storage local = dev->cfg.addr, ss;
	const int on = 1;
	int rc = iface_remote(&local, &qp->remote.gid, qp->remote.mpa_port, &ss);

	if (rc < 0)
		return rc;
	t->fd = socket(ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (t->fd < 0)
		return -errno;
	siw_tcp_tune(t->fd);
	/* The port is chosen at connect: only then is it known to be free for this peer. */
	(void)setsockopt(t->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	addr_set_port(&local, 0);
	if (bind(t->fd, (const struct sockaddr *)&local, addr_len(&local)) < 0 ||
	    (connect(t->fd, (const struct sockaddr *)&ss, addr_len(&ss)) < 0 && errno != EINPROGRESS))
		return -errno;
	return dev->loop.watch(dev->loop.ctx, t->fd, connect_io, qp);
}
