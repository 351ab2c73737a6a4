/* The verbs device: asynchronous events of port, GID and card; see verbs_int.h. */
#include <errno.h>

#include "rnic/verbs/verbs_int.h"

/* -- the port -- */

static void
port_came_up(struct verbs_dev *dev)
{
	if (!dev->gone && dev->gid_present && dev->port.state == RNIC_PORT_UP)
		(void)events_set_port(&dev->events, RNIC_PORT_UP);
}

/* Links use the GID by its index. If the index changed, the GID was removed, and the links with it. */
static void
gids_changed(struct verbs_dev *dev)
{
	const uint32_t index = dev->gid.index;

	if (verbs_read_gids(dev->ctx, dev->phys_ports, &dev->port) < 0)
		return;
	if (verbs_is_iwarp(dev))
		return; /* peers use the IP address, which is not in the table */
	if (!verbs_find_gid(dev) || dev->gid.index != index)
		(void)events_set_port(&dev->events, RNIC_PORT_DOWN);
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
	LIST_EACH(struct verbs_qp, qp, &dev->qps, node) {
		if (qp->phase >= VERBS_ENDED || verbs_qp_is_away(qp))
			continue;
		verbs_qp_kill(qp, VERBS_GONE_WHY);
		verbs_qp_reap(qp);
	}
}

/* -- events -- */

/* Other types are InfiniBand's, or of unused objects. */
static void
handle(struct verbs_dev *dev, const struct ibv_async_event *ev)
{
	static const char *const qp_why[] = {
		[IBV_EVENT_QP_FATAL] = "the RDMA device reported a fatal queue pair error",
		[IBV_EVENT_QP_REQ_ERR] = "the peer sent an invalid request",
		[IBV_EVENT_QP_ACCESS_ERR] = "remote access violation by the peer",
	};
	const unsigned type = ev->event_type;
	bool ours = ev->element.port_num == dev->cfg.port; /* of a port's event */

	if (type == IBV_EVENT_DEVICE_FATAL) {
		verbs_set_gone(dev);
	} else if (type == IBV_EVENT_CQ_ERR) {
		LIST_EACH(struct verbs_qp, qp, &dev->qps, node) {
			if (qp->cq != ev->element.cq)
				continue;
			verbs_cq_failed(qp);
			verbs_qp_reap(qp);
			break;
		}
	} else if (type < sizeof(qp_why) / sizeof(qp_why[0]) && qp_why[type] != NULL) {
		/* If the hardware's QP is destroyed, the event is stale. */
		LIST_EACH(struct verbs_qp, qp, &dev->qps, node) {
			if (qp->hw != ev->element.qp)
				continue;
			verbs_qp_break(qp, qp_why[type]);
			break;
		}
	} else if (type == IBV_EVENT_GID_CHANGE && ours) {
		gids_changed(dev);
	} else if (type == IBV_EVENT_PORT_ERR && ours) {
		dev->port.state = RNIC_PORT_DOWN;
		(void)events_set_port(&dev->events, RNIC_PORT_DOWN);
	} else if (type == IBV_EVENT_PORT_ACTIVE && ours) {
		/* The MTU may have changed. If the port is down again, another event reports it. */
		(void)verbs_read_port(dev->ctx, &dev->port);
		port_came_up(dev);
	}
}

void
verbs_async_io(void *arg, unsigned events)
{
	struct verbs_dev *dev = arg;
	struct ibv_async_event ev, copy;

	(void)events;
	for (unsigned i = 0; i < VERBS_EVENTS_TURN; i++) {
		if (ibv_get_async_event(dev->ctx, &ev) != 0) {
			if (errno == EINTR)
				continue;
			/* The descriptor of a removed card fails permanently. */
			if (errno != EAGAIN)
				verbs_set_gone(dev);
			return;
		}
		dev->stats.async_events++;
		/* Before handling: destroying a queue pair waits for this. */
		copy = ev;
		ibv_ack_async_event(&ev);
		handle(dev, &copy);
	}
	dev->more = true;
}
