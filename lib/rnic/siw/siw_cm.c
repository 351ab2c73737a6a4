/* Soft iWARP: connection setup common to both sides and all LLPs, peers without queue pair, the listening port; see
 * siw_int.h. A request of a peer is passed to the QP named in its private data, parked for a while, or refused.
 * Requests are bounded in number and time; incomplete ones are evicted first. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/addr.h"
#include "rnic/siw/siw_llp.h"

#define ACCEPT_BUDGET 64
#define ACCEPT_RETRY_MS 100

/* -- peers without queue pair -- */

void
siw_refused(struct siw_dev *dev, enum unknown_peer_kind kind, const struct unknown_peer *from)
{
	uint64_t *const counters[UNKNOWN_PEER_KINDS] = {
		[UNKNOWN_PEER_ADDRESS] = &dev->stats.mpa_refused_address,
		[UNKNOWN_PEER_BAD] = &dev->stats.mpa_bad,
		[UNKNOWN_PEER_TOKEN] = &dev->stats.mpa_refused_token,
		[UNKNOWN_PEER_PARKED] = &dev->stats.mpa_refused_parked,
		[UNKNOWN_PEER_LIMITED] = &dev->stats.strangers_limited,
	};

	(*counters[kind])++;
	unknown_peers_note(&dev->strangers, kind, from);
}

bool
siw_may_come(struct siw_dev *dev, const struct unknown_peer *from)
{
	if (dev->cfg.may_connect == NULL || dev->cfg.may_connect(dev->cfg.may_connect_ctx, &from->at))
		return true;
	siw_refused(dev, UNKNOWN_PEER_ADDRESS, from);
	return false;
}

static void
pend_refuse(struct siw_pend *p, enum mpa_verdict verdict)
{
	bool early = verdict == MPA_NOT_EXPECTED || verdict == MPA_BUSY;

	siw_refused(p->dev, early ? UNKNOWN_PEER_PARKED : UNKNOWN_PEER_TOKEN, &p->from);
	p->dev->llp->pend_refuse(p, verdict);
}

static void
pend_timeout(struct timer *t)
{
	struct siw_pend *p = CONTAINER_OF(t, struct siw_pend, timer);

	if (p->parked) {
		pend_refuse(p, MPA_NOT_EXPECTED);
	} else {
		siw_refused(p->dev, UNKNOWN_PEER_BAD, &p->from);
		p->dev->llp->pend_drop(p);
	}
}

int
siw_pend_add(struct siw_dev *dev, struct siw_pend *p, const struct unknown_peer *from)
{
	/* Makes room for the new peer: evicts an incomplete request first. */
	if (dev->pending_cnt >= SIW_PENDING_MAX && !list_empty(&dev->pending)) {
		struct siw_pend *slowest = LIST_FIRST(struct siw_pend, &dev->pending, node);

		siw_refused(dev, UNKNOWN_PEER_BAD, &slowest->from);
		dev->llp->pend_drop(slowest);
	}
	if (timerq_reserve(&dev->timers, 1) < 0)
		return -ENOMEM;
	p->dev = dev;
	p->from = *from;
	timer_init(&p->timer, pend_timeout);
	list_init(&p->node);
	list_push(&dev->pending, &p->node);
	dev->pending_cnt++;
	siw_arm(dev, &p->timer, dev->cfg.connect_ms);
	return 0;
}

void
siw_pend_remove(struct siw_pend *p)
{
	struct siw_dev *dev = p->dev;

	timer_cancel(&dev->timers, &p->timer);
	timerq_unreserve(&dev->timers, 1);
	list_remove(&p->node);
	dev->pending_cnt--;
}

static bool
pend_park(struct siw_pend *p)
{
	struct siw_dev *dev = p->dev;
	unsigned parked = 0, of_source = 0, bits = addr_source_bits(p->from.at.b);

	LIST_EACH(struct siw_pend, other, &dev->parked, node) {
		parked++;
		of_source += addr_same_prefix(other->from.at.b, p->from.at.b, bits);
	}
	if (parked >= SIW_PARKED_MAX || of_source >= SIW_PARKED_OF_ONE) {
		pend_refuse(p, MPA_BUSY);
		return false;
	}
	p->parked = true;
	list_remove(&p->node);
	list_push(&dev->parked, &p->node);
	siw_arm(dev, &p->timer, SIW_PARKED_MS);
	return true;
}

static struct siw_qp *
qp_at(const struct siw_dev *dev, uint32_t qpn)
{
	struct siw_qp *qp = dev->slots[qpn & ((1u << SIW_SLOT_BITS) - 1)];

	return qp != NULL && qp->qp.qpn == qpn ? qp : NULL;
}

const uint8_t *
siw_pend_secret(void *arg, const struct tls_link *link)
{
	const struct siw_qp *qp = qp_at(arg, link->qpn);

	return qp != NULL && qp->secured && qp->qp.psn == link->psn && qp->state <= SIW_EXPECTING ? qp->secret : NULL;
}

/* The peer may have this queue pair: by its token, and if secured by its key. */
static bool
is_for(const struct siw_pend *p, const struct siw_qp *qp)
{
	return p->pdata.psn == qp->qp.psn && p->pdata.token == qp->token && p->in_tls == qp->secured &&
	    (!p->in_tls || p->tls_qpn == qp->qp.qpn);
}

/* Finds the addressed QP. False: the pend has ended, assigned or refused. */
static bool
pend_route(struct siw_pend *p)
{
	struct siw_qp *qp = qp_at(p->dev, p->pdata.qpn);

	if (qp != NULL && !is_for(p, qp))
		pend_refuse(p, MPA_BAD_TOKEN);
	else if (qp == NULL || qp->state == SIW_IDLE)
		return pend_park(p);
	else if (qp->state != SIW_EXPECTING)
		pend_refuse(p, qp->state >= SIW_BROKEN ? MPA_GONE : MPA_USED);
	else
		p->dev->llp->pend_adopt(p, qp);
	return false;
}

bool
siw_pend_dispatch(struct siw_pend *p, struct span pdata)
{
	/* A peer without receives could never be sent a message. */
	if (mpa_pdata_decode(pdata, &p->pdata) == 0 && p->pdata.recv_depth != 0)
		return pend_route(p);
	pend_refuse(p, MPA_UNKNOWN_PEER);
	return false;
}

void
siw_pend_drop_all(struct siw_dev *dev)
{
	LIST_EACH(struct siw_pend, p, &dev->pending, node)
		dev->llp->pend_drop(p);
	LIST_EACH(struct siw_pend, p, &dev->parked, node)
		dev->llp->pend_drop(p);
}

/* -- the listening port -- */

/* A spare at the device's address and in its range, unused by other devices: its descriptor, or -EADDRINUSE. */
static int
take_spare(struct siw_dev *dev)
{
	for (unsigned i = 0; i < dev->cfg.spare_cnt; i++) {
		struct siw_spare *spare = &dev->cfg.spares[i];
		struct sockaddr_storage ss = { 0 };
		socklen_t len = sizeof(ss);

		if (spare->used || getsockname(spare->fd, (struct sockaddr *)&ss, &len) != 0 ||
		    !addr_same_host(&ss, &dev->cfg.addr) || addr_port(&ss) < dev->cfg.port_min ||
		    addr_port(&ss) > dev->cfg.port_max)
			continue;
		int fd = fcntl(spare->fd, F_DUPFD_CLOEXEC, 0);
		spare->used = fd >= 0;
		return fd >= 0 ? fd : -errno;
	}
	return -EADDRINUSE;
}

int
siw_open_port(struct siw_dev *dev, int (*open_on)(const struct siw_config *, uint16_t port), rnic_io_cb ready,
    void *arg, const char **err)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t len = sizeof(ss);
	uint32_t port = dev->cfg.port_min;
	int fd = dev->cfg.transport == SIW_TCP ? take_spare(dev) : -EADDRINUSE;

	for (; fd == -EADDRINUSE && port <= dev->cfg.port_max; port++)
		fd = open_on(&dev->cfg, (uint16_t)port);
	if (fd < 0) {
		*err = fd == -EADDRINUSE ? "no free port in the range" : "address";
		return fd;
	}
	(void)getsockname(fd, (struct sockaddr *)&ss, &len);
	dev->port = addr_port(&ss);
	int rc = dev->loop.watch(dev->loop.ctx, fd, ready, arg);
	if (rc < 0) {
		*err = "event loop";
		close(fd);
		return rc;
	}
	return fd;
}

int
siw_fd_if(bool ok, int fd)
{
	int err = errno;

	if (ok)
		return fd;
	close(fd);
	return -err;
}

void
siw_close_reset(int fd)
{
	const struct linger now = { .l_onoff = 1 };

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
}

void
siw_accept_run(struct siw_dev *dev)
{
	dev->unfinished = false;
	if (dev->listen_fd < 0)
		return;
	for (unsigned i = 0; i < ACCEPT_BUDGET; i++) {
		struct sockaddr_storage from = { 0 };
		socklen_t len = sizeof(from);
		int fd = accept4(dev->listen_fd, (struct sockaddr *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			const struct unknown_peer peer = unknown_peer_of(&from);

			if (siw_may_come(dev, &peer))
				dev->accepted(dev, fd, &peer);
			else
				siw_close_reset(fd); /* no TIME_WAIT for unknown peers */
			continue;
		}
		if (errno == EAGAIN)
			return;
		if (errno == ECONNABORTED || errno == EINTR || errno == EPROTO)
			continue;
		/* Out of descriptors or memory: the connection stays in the backlog without a wake-up. */
		dev->stats.accept_pauses++;
		siw_arm(dev, &dev->accept_retry, ACCEPT_RETRY_MS);
		return;
	}
	dev->unfinished = true;
}

static void
siw_accept_retry(struct timer *t)
{
	siw_accept_run(CONTAINER_OF(t, struct siw_dev, accept_retry));
}

static void
ready(void *arg, unsigned events)
{
	(void)events;
	siw_accept_run(arg);
}

int
siw_accept_open(struct siw_dev *dev, int (*open_on)(const struct siw_config *, uint16_t port),
    void (*accepted)(struct siw_dev *, int fd, const struct unknown_peer *from), const char **err)
{
	dev->accepted = accepted;
	dev->go_on = siw_accept_run;
	timer_init(&dev->accept_retry, siw_accept_retry);
	int rc = timerq_reserve(&dev->timers, 1);
	if (rc < 0) {
		*err = "memory";
		return rc;
	}
	dev->listen_fd = siw_open_port(dev, open_on, ready, dev, err);
	return dev->listen_fd < 0 ? dev->listen_fd : 0;
}

void
siw_accept_close(struct siw_dev *dev)
{
	timer_cancel(&dev->timers, &dev->accept_retry);
	if (dev->listen_fd < 0)
		return;
	dev->loop.unwatch(dev->loop.ctx, dev->listen_fd);
	close(dev->listen_fd);
	dev->listen_fd = -1;
}

/* -- queue pairs -- */

void
siw_set_peer_depths(struct siw_qp *qp, const struct depths *d)
{
	qp->peer_depths.ird = d->peer_ird == DEPTH_NONE ? -1 : d->peer_ird;
	qp->peer_depths.ord = d->peer_ord == DEPTH_NONE ? -1 : d->peer_ord;
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

	qp->events.silent = qp->state == SIW_CONNECTING;
	siw_qp_break(qp, qp->dev->llp->timeout_why[qp->state], RNIC_WC_FLUSHED, NULL);
}

int
siw_qp_expect(struct rnic_qp *rqp)
{
	struct siw_qp *qp = siw_qp(rqp);

	if (qp->state != SIW_IDLE)
		return -EINVAL;
	siw_qp_set_state(qp, SIW_EXPECTING);
	/* The peer may be parked. */
	LIST_EACH(struct siw_pend, p, &qp->dev->parked, node)
		if (qp->state == SIW_EXPECTING && p->pdata.qpn == qp->qp.qpn)
			(void)pend_route(p);
	return 0;
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
	if (side == RNIC_ACTIVE)
		siw_qp_set_state(qp, SIW_CONNECTING);
	else
		(void)siw_qp_expect(rqp); /* unless called before */
	if (qp->state < SIW_BROKEN)
		siw_arm(qp->dev, &qp->connect_timer, qp->dev->cfg.connect_ms);
	if (side == RNIC_PASSIVE) {
		siw_cm_check_connected(qp);
		return 0;
	}
	int rc = qp->dev->llp->connect(qp);
	if (rc == -EAFNOSUPPORT)
		siw_qp_break(qp, "the peer's RNIC has an address of another family", RNIC_WC_FLUSHED, NULL);
	else if (rc < 0)
		siw_qp_break(qp, qp->dev->llp->connect_error(-rc), RNIC_WC_FLUSHED, NULL);
	return 0;
}
