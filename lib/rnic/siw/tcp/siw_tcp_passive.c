/* Soft iWARP, MPA on TCP: passive side of connection setup (RFC 5044, RFC 6581); see siw_tcp.h. Reads a request;
 * siw_pend.c finds its QP. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/addr.h"
#include "rnic/siw/tcp/siw_tcp.h"

#define LISTEN_BACKLOG 256

/* A connection with an incomplete MPA Request, or parked. */
struct tcp_pend {
	struct siw_pend pend;
	int fd;
	size_t len;
	uint8_t buf[MPA_FRAME_MAX + 1]; /* one extra byte, to detect bytes after the frame */
	struct mpa_frame frame;
};

/* -- requests -- */

static struct tcp_pend *
tcp_pend(struct siw_pend *p)
{
	return CONTAINER_OF(p, struct tcp_pend, pend);
}

/* Frees all but the descriptor, which it returns. */
static int
pend_free(struct tcp_pend *t)
{
	struct siw_dev *dev = t->pend.dev;
	int fd = t->fd;

	dev->loop.unwatch(dev->loop.ctx, fd);
	siw_pend_remove(&t->pend);
	free(t);
	return fd;
}

void
siw_tcp_pend_drop(struct siw_pend *p)
{
	close(pend_free(tcp_pend(p)));
}

/* Sends the Reply `f` with our verdict and closes. */
static void
pend_reject(struct siw_pend *p, const struct mpa_frame *f, enum mpa_verdict verdict)
{
	const struct mpa_pdata d = { .verdict = (uint8_t)verdict, .qpn = p->pdata.from_qpn };
	struct siw_dev *dev = p->dev;
	uint8_t out[MPA_FRAME_MAX];
	int fd = pend_free(tcp_pend(p)), len = siw_tcp_frame(*f, &d, out);

	if (len > 0)
		siw_tcp_linger_bytes(dev, fd, out, (size_t)len);
	else
		close(fd);
}

void
siw_tcp_pend_refuse(struct siw_pend *p, enum mpa_verdict verdict)
{
	struct mpa_frame f;

	neg_refuse(&siw_tcp_dev(p->dev)->neg_cfg, &tcp_pend(p)->frame, &f);
	pend_reject(p, &f, verdict);
}

/* The QP takes the descriptor and answers. */
void
siw_tcp_pend_adopt(struct siw_pend *p, struct siw_qp *qp)
{
	const struct mpa_pdata peer = p->pdata;
	struct siw_tcp *t = siw_tcp(qp);
	struct mpa_frame f;

	neg_init(&t->neg, &siw_tcp_dev(qp->dev)->neg_cfg);
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
	t->fd = pend_free(tcp_pend(p));
	qp->peer_qpn = peer.from_qpn;
	siw_qp_set_state(qp, SIW_RTR_WAIT);
	siw_arm(qp->dev, &qp->connect_timer, qp->dev->cfg.connect_ms);
	if (!siw_tcp_send_frame(qp, NULL, &f) || siw_tcp_start(qp, &peer) < 0)
		siw_qp_break(qp, "the MPA Reply could not be sent", RNIC_WC_FLUSHED, NULL);
}

static void
pend_io(void *arg, int fd, unsigned events)
{
	struct tcp_pend *t = arg;
	struct siw_pend *p = &t->pend;
	ssize_t n = recv(fd, t->buf + t->len, sizeof(t->buf) - t->len, MSG_DONTWAIT);

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
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

/* A connection to our MPA port. */
static void
accepted(struct siw_dev *dev, int fd, const struct sockaddr_storage *from)
{
	const struct linger reset = { .l_onoff = 1 };
	const struct unknown_peer who = unknown_peer_of(from);
	struct tcp_pend *t;

	if (!siw_may_come(dev, &who)) {
		/* No TIME_WAIT for unknown peers. */
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		close(fd);
		return;
	}
	t = calloc(1, sizeof(*t));
	if (t == NULL || siw_pend_add(dev, &t->pend, &who) < 0) {
		dev->stats.no_memory++;
		free(t);
		close(fd);
		return;
	}
	t->fd = fd;
	siw_tcp_tune(fd);
	if (dev->loop.watch(dev->loop.ctx, fd, pend_io, t) < 0)
		siw_tcp_pend_drop(&t->pend);
}

/* -- listening -- */

void
siw_tcp_accept(struct siw_dev *dev)
{
	siw_acceptor_run(&siw_tcp_dev(dev)->acceptor);
}

/* A listening socket on this port, or a negative errno. */
static int
listen_on(const struct siw_config *cfg, uint16_t port)
{
	struct sockaddr_storage ss = cfg->addr;
	const int on = 1;
	int fd = socket(ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -errno;
	/* A port of a range may be in TIME_WAIT. */
	if (port != 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	addr_set_port(&ss, port);
	if (bind(fd, (const struct sockaddr *)&ss, addr_len(&ss)) == 0 && listen(fd, LISTEN_BACKLOG) == 0)
		return fd;
	err = errno;
	close(fd);
	return -err;
}

int
siw_tcp_listen(struct siw_dev *dev, const char **err)
{
	const struct siw_config *cfg = &dev->cfg;
	struct siw_tcp_dev *t = dev->llp_dev = calloc(1, sizeof(*t));

	if (t == NULL) {
		*err = "memory";
		return -ENOMEM;
	}
	t->neg_cfg = (struct neg_config){
		.enhanced = cfg->mpa_rev >= 2, .crc = cfg->crc, .markers = cfg->markers, .depths = dev->depths
	};
	return siw_acceptor_open(&t->acceptor, dev, listen_on, accepted, err);
}

void
siw_tcp_unlisten(struct siw_dev *dev)
{
	siw_linger_end_all(dev);
	siw_acceptor_close(&siw_tcp_dev(dev)->acceptor);
}
