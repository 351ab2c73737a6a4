/*
 * The verbs device: what happens to the port, its GID and the card; see
 * verbs_int.h. Called when the card's asynchronous events are there.
 */
#include <errno.h>

#include "rnic/verbs/verbs_int.h"

/* -- the port -- */

static void
port_came_up(struct verbs_dev *dev)
{
	if (!dev->gone && dev->gid_present && dev->port.state == RNIC_PORT_UP)
		(void)events_set_port(&dev->events, RNIC_PORT_UP);
}

static void
port_active(struct verbs_dev *dev)
{
	/* The MTU may be another one. A port that is down again by now has an event coming that says so. */
	(void)verbs_read_port(dev->ctx, &dev->port);
	port_came_up(dev);
}

static void
port_error(struct verbs_dev *dev)
{
	dev->port.state = RNIC_PORT_DOWN;
	(void)events_set_port(&dev->events, RNIC_PORT_DOWN);
}

/* Links name the GID by its index: one that has another index now was gone, and so are they. */
static void
gids_changed(struct verbs_dev *dev)
{
	const struct verbs_gid *gid;

	if (verbs_read_gids(dev->ctx, dev->phys_ports, &dev->port) < 0)
		return;
	if (verbs_is_iwarp(dev))
		return; /* its peers know an address, which is not in the table */
	gid = verbs_find_gid(&dev->port, &dev->cfg.gid, dev->cfg.gid_type);
	if (gid == NULL || gid->index != dev->gid.index)
		(void)events_set_port(&dev->events, RNIC_PORT_DOWN);
	dev->gid_present = gid != NULL;
	if (gid != NULL)
		dev->gid = *gid;
	port_came_up(dev);
}

void
verbs_set_gone(struct verbs_dev *dev)
{
	if (dev->gone)
		return;
	dev->gone = true;
	dev->port.state = RNIC_PORT_DOWN;
	events_set_gone(&dev->events);
	LIST_FOREACH(n, &dev->qps) {
		struct verbs_qp *qp = CONTAINER_OF(n, struct verbs_qp, node);

		if (qp->phase >= VERBS_ENDED || verbs_qp_is_away(qp))
			continue;
		verbs_qp_kill(qp, VERBS_GONE_WHY);
		verbs_qp_reap(qp);
	}
}

/* -- queue pairs -- */

/* The QP that has this hardware, which may be gone: the event came too late then. */
static struct verbs_qp *
find_qp(struct verbs_dev *dev, const struct ibv_qp *hw)
{
	LIST_FOREACH(n, &dev->qps) {
		struct verbs_qp *qp = CONTAINER_OF(n, struct verbs_qp, node);

		if (qp->hw == hw)
			return qp;
	}
	return NULL;
}

static void
qp_event(struct verbs_dev *dev, const struct ibv_qp *hw, const char *why)
{
	struct verbs_qp *qp = find_qp(dev, hw);

	if (qp != NULL)
		verbs_qp_break(qp, why);
}

/* Completions are lost: only taking the QP from the card is sure to end its requests. */
static void
cq_event(struct verbs_dev *dev, const struct ibv_cq *cq)
{
	LIST_FOREACH(n, &dev->qps) {
		struct verbs_qp *qp = CONTAINER_OF(n, struct verbs_qp, node);

		if (qp->cq != cq)
			continue;
		verbs_qp_break(qp, "its completion queue failed");
		if (qp->phase == VERBS_FLUSH)
			verbs_qp_kill(qp, "its completion queue failed");
		verbs_qp_reap(qp);
		return;
	}
}

static void
handle(struct verbs_dev *dev, const struct ibv_async_event *ev)
{
	bool ours = ev->element.port_num == dev->cfg.port;

	switch (ev->event_type) {
	case IBV_EVENT_PORT_ACTIVE:
		if (ours)
			port_active(dev);
		break;
	case IBV_EVENT_PORT_ERR:
		if (ours)
			port_error(dev);
		break;
	case IBV_EVENT_GID_CHANGE:
		if (ours)
			gids_changed(dev);
		break;
	case IBV_EVENT_DEVICE_FATAL:
		verbs_set_gone(dev);
		break;
	case IBV_EVENT_QP_FATAL:
		qp_event(dev, ev->element.qp, "the RDMA device gave the queue pair up");
		break;
	case IBV_EVENT_QP_REQ_ERR:
		qp_event(dev, ev->element.qp, "the peer sent an invalid request");
		break;
	case IBV_EVENT_QP_ACCESS_ERR:
		qp_event(dev, ev->element.qp, "the peer wrote where it may not");
		break;
	case IBV_EVENT_CQ_ERR:
		cq_event(dev, ev->element.cq);
		break;
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_SM_CHANGE:
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
	case IBV_EVENT_CLIENT_REREGISTER:
	case IBV_EVENT_WQ_FATAL:
		break; /* InfiniBand's, or of things that we do not use */
	}
}

void
verbs_async_read(struct verbs_dev *dev)
{
	struct ibv_async_event ev, copy;

	dev->async_more = false;
	for (unsigned i = 0; i < VERBS_EVENTS_TURN; i++) {
		if (ibv_get_async_event(dev->ctx, &ev) != 0) {
			if (errno == EINTR)
				continue;
			/* The descriptor of a card that was taken away fails for good. */
			if (errno != EAGAIN)
				verbs_set_gone(dev);
			return;
		}
		dev->stats.async_events++;
		/* Before it is handled: destroying a queue pair waits for this. */
		copy = ev;
		ibv_ack_async_event(&ev);
		handle(dev, &copy);
	}
	dev->async_more = true;
}

void
verbs_async_io(void *arg, int fd, unsigned events, int64_t now_ns)
{
	struct verbs_dev *dev = arg;

	(void)fd;
	(void)events;
	dev->dev.now_ns = now_ns;
	verbs_async_read(dev);
}
