/* Soft iWARP, MPA on TCP: connection setup in both roles (RFC 5044, RFC 6581); see siw_tcp.h. The passive side reads a
 * request; siw_cm.c finds its QP. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/addr.h"
#include "rnic/siw/tcp/siw_tcp.h"

#define LISTEN_BACKLOG 256
#define NOTSENT_LOWAT (128 * 1024)

static void
tune(int fd)
{
	const int on = 1, lowat = NOTSENT_LOWAT;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &lowat, sizeof(lowat));
}

/* Encodes `f` with this private data to out; its length, or a negative errno. */
static int
encode_frame(struct mpa_frame f, const struct mpa_pdata *d, uint8_t out[MPA_FRAME_MAX])
{
	uint8_t pd[MPA_PDATA_LEN];

	f.pd = mpa_pdata_encode(d, pd);
	return mpa_frame_encode(&f, out, MPA_FRAME_MAX);
}

/* Sends `f` with our private data to the peer asked; to == NULL: an answer. First bytes of a connection: sent entirely,
 * or the connection is broken (false). */
static bool
send_frame(struct siw_qp *qp, const struct rnic_remote *to, const struct mpa_frame *f)
{
	const struct mpa_pdata own = siw_own_pdata(qp, to);
	uint8_t out[MPA_FRAME_MAX];
	int len = encode_frame(*f, &own, out);
	struct iovec all = { .iov_base = out, .iov_len = (size_t)len };

	return len > 0 && siw_wire_send(&qp->tcp->wire, &all, 1, 0) == len;
}

/* In TLS neither CRC nor markers: its records are checked, and hide the bounds of TCP segments. */
static void
start_negotiation(struct siw_qp *qp)
{
	struct neg_config cfg = qp->dev->neg;

	cfg.crc = cfg.crc && !qp->secured;
	cfg.markers = cfg.markers && !qp->secured;
	neg_init(&qp->tcp->neg, &cfg);
}

/* -- the active side -- */

/* Fails the connection, with a Terminate of this code as our only FPDU, or none if code is 0. */
static void
give_up(struct siw_qp *qp, const char *why, uint8_t code)
{
	const struct rdmap_term term = { .layer = RDMAP_LAYER_LLP, .code = code };
	struct siw_tcp *t = qp->tcp;

	if (code != 0)
		txq_start(&t->txq, t->neg.res.crc, t->neg.res.markers_tx);
	siw_qp_break(qp, why, RNIC_WC_FLUSHED, code != 0 ? &term : NULL);
}

static void
reply_in(struct siw_qp *qp, const struct mpa_frame *f)
{
	struct siw_tcp *t = qp->tcp;
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
	qp->dev->loop.unwatch(qp->dev->loop.ctx, t->wire.fd);
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
	struct siw_tcp *t = qp->tcp;
	size_t space = MPA_FRAME_MAX + 1 - t->rx_len;
	struct iovec at = { .iov_base = t->rx_buf + t->rx_len, .iov_len = space };
	struct mpa_frame f;
	bool more;
	ssize_t n = siw_wire_recv(&t->wire, &at, 1, &more);

	if (n == -EAGAIN || n == -EINTR)
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

/* The socket is connected, and so is TLS, if used. False: not yet, or the queue pair is broken. */
static bool
is_connected(struct siw_qp *qp)
{
	struct siw_tcp *t = qp->tcp;
	const struct tls_link link = { .qpn = qp->remote.qpn, .psn = qp->remote.psn };
	struct sockaddr_storage ss;
	socklen_t ss_len = sizeof(ss), len = sizeof(int);
	int err = 0, n = 1;

	if (getsockopt(t->wire.fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0 || err != 0) {
		qp->events.silent = err == ETIMEDOUT;
		siw_qp_break(qp, mpa_connect_error(err), RNIC_WC_FLUSHED, NULL);
		return false;
	}
	if (getpeername(t->wire.fd, (struct sockaddr *)&ss, &ss_len) < 0)
		return false;
	if (qp->secured && t->wire.tls == NULL)
		t->wire.tls = tls_link_dial(t->wire.fd, qp->secret, &link);
	if (qp->secured)
		n = t->wire.tls != NULL ? tls_io_handshake(t->wire.tls) : -ENOMEM;
	if (n < 0)
		siw_qp_break(qp,
		    n == -EPROTO       ? "no TLS with the peer's MPA port: see what its log says"
		        : n == -ENOMEM ? "TLS with the peer's MPA port cannot begin: out of memory"
		                       : "the peer's MPA port ended the TLS handshake: see what its log says",
		    RNIC_WC_FLUSHED, NULL);
	return n > 0;
}

static void
connect_io(void *arg, unsigned events)
{
	struct siw_qp *qp = arg;
	struct mpa_frame request;

	(void)events;
	if (qp->state == SIW_CONNECTING && is_connected(qp)) {
		start_negotiation(qp);
		neg_request(&qp->tcp->neg, &request);
		siw_qp_set_state(qp, SIW_REQUESTED);
		if (!send_frame(qp, &qp->remote, &request))
			siw_qp_break(qp, "the MPA Request could not be sent", RNIC_WC_FLUSHED, NULL);
	}
	if (qp->state == SIW_REQUESTED)
		read_reply(qp);
}

int
siw_tcp_connect(struct siw_qp *qp)
{
	struct siw_dev *dev = qp->dev;
	struct siw_tcp *t = qp->tcp;
	struct sockaddr_storage local = dev->cfg.addr, ss;
	const int on = 1;
	int rc = iface_remote(&local, &qp->remote.gid, qp->remote.mpa_port, &ss);

	if (rc < 0)
		return rc;
	t->wire.fd = socket(ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (t->wire.fd < 0)
		return -errno;
	tune(t->wire.fd);
	/* The port is chosen at connect: only then is it known to be free for this peer. */
	(void)setsockopt(t->wire.fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	addr_set_port(&local, 0);
	if (bind(t->wire.fd, (const struct sockaddr *)&local, addr_len(&local)) < 0 ||
	    (connect(t->wire.fd, (const struct sockaddr *)&ss, addr_len(&ss)) < 0 && errno != EINPROGRESS))
		return -errno;
	return dev->loop.watch(dev->loop.ctx, t->wire.fd, connect_io, qp);
}

/* -- the passive side -- */

/* A connection with an incomplete MPA Request, or parked. */
struct tcp_pend {
	struct siw_pend pend;
	struct siw_wire wire;
	size_t len;
	uint8_t buf[MPA_FRAME_MAX + 1]; /* one extra byte, to detect bytes after the frame */
	struct mpa_frame frame;
};

static struct tcp_pend *
tcp_pend(struct siw_pend *p)
{
	return CONTAINER_OF(p, struct tcp_pend, pend);
}

/* Frees all but the wire, which it returns. */
static struct siw_wire
pend_free(struct tcp_pend *t)
{
	struct siw_dev *dev = t->pend.dev;
	struct siw_wire w = t->wire;

	dev->loop.unwatch(dev->loop.ctx, w.fd);
	siw_pend_remove(&t->pend);
	free(t);
	return w;
}

void
siw_tcp_pend_drop(struct siw_pend *p)
{
	struct siw_wire w = pend_free(tcp_pend(p));

	siw_wire_close(&w);
}

/* Sends the Reply `f` with our verdict and closes. */
static void
pend_reject(struct siw_pend *p, const struct mpa_frame *f, enum mpa_verdict verdict)
{
	const struct mpa_pdata d = { .verdict = (uint8_t)verdict, .qpn = p->pdata.from_qpn };
	struct siw_dev *dev = p->dev;
	uint8_t out[MPA_FRAME_MAX];
	struct siw_wire w = pend_free(tcp_pend(p));
	int len = encode_frame(*f, &d, out);

	if (len > 0)
		siw_tcp_linger_bytes(dev, w, out, (size_t)len);
	else
		siw_wire_close(&w);
}

void
siw_tcp_pend_refuse(struct siw_pend *p, enum mpa_verdict verdict)
{
	struct mpa_frame f;

	neg_refuse(&p->dev->neg, &tcp_pend(p)->frame, &f);
	pend_reject(p, &f, verdict);
}

void
siw_tcp_pend_adopt(struct siw_pend *p, struct siw_qp *qp)
{
	const struct mpa_pdata peer = p->pdata;
	struct siw_tcp *t = qp->tcp;
	struct mpa_frame f;

	start_negotiation(qp);
	enum neg_state outcome = neg_request_in(&t->neg, &tcp_pend(p)->frame, &f);
	siw_set_peer_depths(qp, &t->neg.res.depths);
	if (outcome != NEG_CHECKED) {
		if (outcome == NEG_REJECTED)
			pend_reject(p, &f, MPA_READ_DEPTH);
		else
			siw_tcp_pend_drop(p);
		siw_qp_break(qp, t->neg.why, RNIC_WC_FLUSHED, NULL);
		return;
	}
	neg_accept(&t->neg, &f);
	t->wire = pend_free(tcp_pend(p));
	qp->peer_qpn = peer.from_qpn;
	siw_qp_set_state(qp, SIW_RTR_WAIT);
	siw_arm(qp->dev, &qp->connect_timer, qp->dev->cfg.connect_ms);
	if (!send_frame(qp, NULL, &f) || siw_tcp_start(qp, &peer) < 0)
		siw_qp_break(qp, "the MPA Reply could not be sent", RNIC_WC_FLUSHED, NULL);
}

/* Its first byte is that of a ClientHello (RFC 8446 5.1), not of an MPA key, and some queue pair is reached so. */
static bool
begins_tls(struct tcp_pend *t)
{
	uint8_t first;

	if (t->pend.dev->secured_cnt == 0 || t->wire.tls != NULL || t->len > 0)
		return false;
	return recv(t->wire.fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) == 1 && first == TLS_HANDSHAKE_BYTE;
}

/* The bytes of the peer, in TLS once both ends have proven the link's key. */
static ssize_t
pend_recv(struct tcp_pend *t)
{
	struct iovec at = { .iov_base = t->buf + t->len, .iov_len = sizeof(t->buf) - t->len };
	struct siw_pend *p = &t->pend;
	bool more;

	if (begins_tls(t)) {
		t->wire.tls = tls_link_accept(t->wire.fd, siw_pend_secret, p->dev);
		if (t->wire.tls == NULL)
			return -ENOMEM;
	}
	if (t->wire.tls != NULL && !p->in_tls) {
		int n = tls_io_handshake(t->wire.tls);

		if (n <= 0)
			return n == 0 ? -EAGAIN : n;
		p->in_tls = true;
		p->tls_qpn = tls_link_proven(t->wire.tls)->qpn;
	}
	return siw_wire_recv(&t->wire, &at, 1, &more);
}

static void
pend_io(void *arg, unsigned events)
{
	struct tcp_pend *t = arg;
	struct siw_pend *p = &t->pend;
	ssize_t n = pend_recv(t);

	(void)events;
	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n > 0 && !p->parked) {
		t->len += (size_t)n;
		int used = mpa_frame_decode((struct span){ .ptr = t->buf, .len = t->len }, MPA_REQUEST, &t->frame);

		if (used == 0)
			return;
		if (used > 0 && (size_t)used == t->len && t->frame.rev >= 1 && t->frame.rev <= 2) {
			(void)siw_pend_dispatch(p, t->frame.pd);
			return;
		}
	}
	/* The request is malformed, or the peer sends before our answer; both are errors. A parked peer may close. */
	if (n > 0 || !p->parked)
		siw_refused(p->dev, UNKNOWN_PEER_BAD, &p->from);
	siw_tcp_pend_drop(p);
}

static void
accepted(struct siw_dev *dev, int fd, const struct unknown_peer *from)
{
	struct tcp_pend *t = calloc(1, sizeof(*t));

	if (t == NULL || siw_pend_add(dev, &t->pend, from) < 0) {
		dev->stats.no_memory++;
		free(t);
		close(fd);
		return;
	}
	t->wire.fd = fd;
	tune(fd);
	if (dev->loop.watch(dev->loop.ctx, fd, pend_io, t) < 0)
		siw_tcp_pend_drop(&t->pend);
}

/* -- listening -- */

static int
listen_on(const struct siw_config *cfg, uint16_t port)
{
	struct sockaddr_storage ss = cfg->addr;
	const int on = 1;
	int fd = socket(ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	/* A port of a range may be in TIME_WAIT. */
	if (port != 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	addr_set_port(&ss, port);
	return siw_fd_if(
	    bind(fd, (const struct sockaddr *)&ss, addr_len(&ss)) == 0 && listen(fd, LISTEN_BACKLOG) == 0, fd);
}

int
siw_tcp_listen(struct siw_dev *dev, const char **err)
{
	return siw_accept_open(dev, listen_on, accepted, err);
}
