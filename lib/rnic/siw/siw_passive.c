/*
 * Soft iWARP: the passive side of connection set-up (MPA, RFC 5044 and 6581);
 * see siw_int.h. A request is read on its own, then goes to the QP that its
 * private data names, waits for one a little (parked), or is refused.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/addr.h"
#include "rnic/siw/siw_int.h"

#define ACCEPT_BUDGET 64
#define LISTEN_BACKLOG 256
#define ACCEPT_RETRY_MS 100

/* A connection whose MPA Request is being read, or waits for its QP. */
struct siw_pend {
	struct list_node node;
	struct siw_dev *dev;
	struct timer timer;
	int fd;
	struct rnic_gid from;
	bool parked;
	size_t len;
	uint8_t buf[MPA_FRAME_MAX + 1]; /* one more, to see bytes behind the frame */
	struct mpa_frame frame;
	struct mpa_pdata pdata;
};

/* -- requests -- */

/* Frees all but the descriptor, which is returned. */
static int
pend_free(struct siw_pend *p)
{
	struct siw_dev *dev = p->dev;
	int fd = p->fd;

	dev->loop.unwatch(dev->loop.ctx, fd);
	timer_cancel(&dev->timers, &p->timer);
	timerq_unreserve(&dev->timers, 1);
	list_remove(&p->node);
	dev->pending_cnt--;
	dev->parked_cnt -= p->parked;
	free(p);
	return fd;
}

/* Sends the Reply `f` with our verdict and closes. */
static void
pend_reject_frame(struct siw_pend *p, const struct mpa_frame *f, enum mpa_verdict verdict)
{
	const struct mpa_pdata d = { .verdict = (uint8_t)verdict, .qpn = p->pdata.from_qpn };
	struct siw_dev *dev = p->dev;
	uint8_t out[MPA_FRAME_MAX];
	int fd = pend_free(p), len = siw_frame_encode(*f, &d, out);

	if (len > 0)
		siw_linger_bytes(dev, fd, out, (size_t)len);
	else
		close(fd);
}

/* Refuses a request before any QP had a say. */
static void
pend_reject(struct siw_pend *p, enum mpa_verdict verdict)
{
	struct mpa_frame f;

	if (verdict == MPA_NOT_EXPECTED || verdict == MPA_BUSY)
		p->dev->stats.mpa_refused_parked++;
	else
		p->dev->stats.mpa_refused_token++;
	neg_refuse(&p->dev->neg_cfg, &p->frame, &f);
	pend_reject_frame(p, &f, verdict);
}

/* The QP takes over the descriptor and answers. */
static void
pend_adopt(struct siw_pend *p, struct siw_qp *qp)
{
	const struct mpa_pdata peer = p->pdata;
	struct mpa_frame f;

	neg_init(&qp->neg, &qp->dev->neg_cfg);
	if (neg_request_in(&qp->neg, &p->frame, &f) != NEG_CHECKED) {
		if (qp->neg.state == NEG_REJECTED)
			pend_reject_frame(p, &f, MPA_READ_DEPTH);
		else
			close(pend_free(p));
		siw_qp_break(qp, qp->neg.why, RNIC_WC_FLUSHED, NULL);
		return;
	}
	neg_accept(&qp->neg, &f);
	qp->fd = pend_free(p);
	qp->peer_qpn = peer.from_qpn;
	siw_qp_set_state(qp, SIW_RTR_WAIT);
	siw_arm(qp->dev, &qp->connect_timer, qp->dev->cfg.connect_ms);
	if (!siw_send_frame(qp, NULL, &f) || siw_stream_start(qp, &peer) < 0)
		siw_qp_break(qp, "the MPA Reply could not be sent", RNIC_WC_FLUSHED, NULL);
}

static void
pend_timeout(struct timer *t)
{
	struct siw_pend *p = CONTAINER_OF(t, struct siw_pend, timer);

	if (p->parked) {
		pend_reject(p, MPA_NOT_EXPECTED);
	} else {
		p->dev->stats.mpa_bad++;
		close(pend_free(p));
	}
}

static void
pend_park(struct siw_pend *p)
{
	struct siw_dev *dev = p->dev;
	unsigned of_source = 0, bits = addr_source_bits(p->from.b);

	LIST_EACH(struct siw_pend, other, &dev->parked, node)
		of_source += addr_same_prefix(other->from.b, p->from.b, bits);
	if (dev->parked_cnt >= SIW_PARKED_MAX || of_source >= SIW_PARKED_OF_ONE) {
		pend_reject(p, MPA_BUSY);
		return;
	}
	p->parked = true;
	dev->parked_cnt++;
	list_remove(&p->node);
	list_push(&dev->parked, &p->node);
	siw_arm(dev, &p->timer, SIW_PARKED_MS);
}

/* The request is complete: finds the QP that is meant. */
static void
pend_dispatch(struct siw_pend *p)
{
	/* A peer without receives could never be sent anything. */
	if (mpa_pdata_decode(p->frame.pd, &p->pdata) < 0 || p->pdata.recv_depth == 0) {
		pend_reject(p, MPA_STRANGER);
		return;
	}
	struct siw_qp *qp = siw_qp_find(p->dev, p->pdata.qpn);

	if (qp != NULL && (p->pdata.psn != qp->qp.psn || p->pdata.token != qp->token))
		pend_reject(p, MPA_BAD_TOKEN);
	else if (qp == NULL || qp->state == SIW_IDLE)
		pend_park(p);
	else if (qp->state != SIW_EXPECTING)
		pend_reject(p, qp->state >= SIW_BROKEN ? MPA_GONE : MPA_USED);
	else
		pend_adopt(p, qp);
}

static void
pend_io(void *arg, int fd, unsigned events)
{
	struct siw_pend *p = arg;
	ssize_t n = recv(fd, p->buf + p->len, sizeof(p->buf) - p->len, MSG_DONTWAIT);

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0 && !p->parked) {
		p->len += (size_t)n;
		int used = mpa_frame_decode((struct span){ .ptr = p->buf, .len = p->len }, MPA_REQUEST, &p->frame);

		if (used == 0)
			return;
		if (used > 0 && (size_t)used == p->len && p->frame.rev >= 1 && p->frame.rev <= 2) {
			pend_dispatch(p);
			return;
		}
	}
	/* The request is malformed, the peer talks before it was answered, or it is gone: a parked one may go. */
	p->dev->stats.mpa_bad += n > 0 || !p->parked;
	close(pend_free(p));
}

/* A connection to our MPA port. */
static void
accepted(struct siw_dev *dev, int fd, const struct sockaddr_storage *from)
{
	const struct linger reset = { .l_onoff = 1 };
	struct rnic_gid gid;
	struct siw_pend *p;

	addr_to_v6(from, gid.b);
	if (dev->cfg.may_connect != NULL && !dev->cfg.may_connect(dev->cfg.may_connect_ctx, &gid)) {
		dev->stats.mpa_refused_address++;
		/* No TIME_WAIT for strangers. */
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		close(fd);
		return;
	}
	/* A place for the newcomer: slow ones are the last to have a claim. */
	if (dev->pending_cnt >= SIW_PENDING_MAX && !list_empty(&dev->pending)) {
		dev->stats.mpa_bad++;
		close(pend_free(LIST_FIRST(struct siw_pend, &dev->pending, node)));
	}
	p = calloc(1, sizeof(*p));
	if (p == NULL || timerq_reserve(&dev->timers, 1) < 0) {
		dev->stats.no_memory++;
		free(p);
		close(fd);
		return;
	}
	p->dev = dev;
	p->fd = fd;
	p->from = gid;
	timer_init(&p->timer, pend_timeout);
	list_init(&p->node);
	list_push(&dev->pending, &p->node);
	dev->pending_cnt++;
	siw_arm(dev, &p->timer, dev->cfg.connect_ms);
	siw_tune_socket(fd);
	if (dev->loop.watch(dev->loop.ctx, fd, pend_io, p) < 0)
		close(pend_free(p));
}

/* -- listening -- */

void
siw_accept_more(struct siw_dev *dev)
{
	dev->accept_more = false;
	for (unsigned i = 0; i < ACCEPT_BUDGET; i++) {
		struct sockaddr_storage from = { 0 };
		socklen_t len = sizeof(from);
		int fd = accept4(dev->listen_fd, (struct sockaddr *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			accepted(dev, fd, &from);
			continue;
		}
		if (errno == EAGAIN)
			return;
		if (errno == ECONNABORTED || errno == EINTR || errno == EPROTO)
			continue;
		/* Out of descriptors or memory: the connection stays in the queue, nothing will wake us. */
		dev->stats.accept_pauses++;
		siw_arm(dev, &dev->accept_timer, ACCEPT_RETRY_MS);
		return;
	}
	dev->accept_more = true;
}

static void
accept_retry(struct timer *t)
{
	siw_accept_more(CONTAINER_OF(t, struct siw_dev, accept_timer));
}

static void
listen_io(void *arg, int fd, unsigned events)
{
	struct siw_dev *dev = arg;

	(void)fd;
	(void)events;
	siw_accept_more(dev);
}

/* A socket that listens on this port, or a negative errno. */
static int
listen_on(const struct siw_config *cfg, uint16_t port)
{
	struct sockaddr_storage ss = cfg->addr;
	const int on = 1;
	int fd = socket(ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -errno;
	/* Of a range, a port in TIME_WAIT is as good as another. */
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
siw_listen(struct siw_dev *dev, const char **err)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t len = sizeof(ss);
	uint32_t port = dev->cfg.port_min;
	int rc;

	timer_init(&dev->accept_timer, accept_retry);
	do
		rc = listen_on(&dev->cfg, (uint16_t)port);
	while (rc == -EADDRINUSE && ++port <= dev->cfg.port_max);
	if (rc < 0) {
		*err = rc == -EADDRINUSE ? "no free port in the range" : "address";
		return rc;
	}
	dev->listen_fd = rc;
	(void)getsockname(rc, (struct sockaddr *)&ss, &len);
	dev->port = addr_port(&ss);
	rc = dev->loop.watch(dev->loop.ctx, dev->listen_fd, listen_io, dev);
	if (rc < 0) {
		*err = "event loop";
		close(dev->listen_fd);
		dev->listen_fd = -1;
	}
	return rc;
}

void
siw_listen_close(struct siw_dev *dev)
{
	LIST_EACH(struct siw_pend, p, &dev->pending, node)
		close(pend_free(p));
	LIST_EACH(struct siw_pend, p, &dev->parked, node)
		close(pend_free(p));
	timer_cancel(&dev->timers, &dev->accept_timer);
	if (dev->listen_fd < 0)
		return;
	dev->loop.unwatch(dev->loop.ctx, dev->listen_fd);
	close(dev->listen_fd);
	dev->listen_fd = -1;
}

int
siw_qp_expect(struct rnic_qp *rqp)
{
	struct siw_qp *qp = siw_qp(rqp);

	if (qp->state != SIW_IDLE)
		return -EINVAL;
	siw_qp_set_state(qp, SIW_EXPECTING);
	LIST_EACH(struct siw_pend, p, &qp->dev->parked, node)
		if (qp->state == SIW_EXPECTING && p->pdata.qpn == qp->qp.qpn)
			pend_dispatch(p);
	return 0;
}
