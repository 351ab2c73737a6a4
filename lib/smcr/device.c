/* Devices of the engine: which links may use, their events, and the loss of links with their port or device. */
#include "smcr/device.h"

#include <errno.h>

#include "smcr/group/link.h"
#include "smcr/group/llc.h"
#include "smcr/rendezvous/rendezvous.h"
#include "smcr/state/engine.h"
#include "smcr/state/log.h"

/* Groups may add a link now. */
static void
device_is_there(struct smcr *eng)
{
	LIST_EACH(struct lgr, lgr, &eng->lgrs, node)
		llc_device_appeared(lgr);
}

int
smcr_add_device(struct smcr *eng, struct rnic_dev *dev)
{
	if (eng->dev_cnt == SMCR_DEVS_MAX)
		return -ENOSPC;
	eng->devs[eng->dev_cnt++] = dev;
	list_push(&eng->devices, &dev->node);
	dev->ctx = eng;
	dev->now_ns = eng->now_ns;
	device_is_there(eng);
	return 0;
}

/* Connections move to another link of the group. Without one they wait, like TCP, for the port or last_link_ms. */
static void
port_down(struct smcr *eng, const struct rnic_dev *dev)
{
	LIST_EACH(struct lgr, lgr, &eng->lgrs, node) {
		/* An active, responsive link on another device with its port up. */
		bool moves = LGR_ANY_LINK(l, lgr,
		    l->state == LINK_ACTIVE && l->suspect == NULL && l->dev != dev &&
		        rnic_query(l->dev).port == RNIC_PORT_UP);

		LGR_EACH_LINK(l, lgr) {
			if (l->dev != dev)
				continue;
			/* A RoCE queue pair does not survive a port that goes down. */
			if (!moves && l->state == LINK_ACTIVE && lgr->state == LGR_ACTIVE &&
			    rnic_is_iwarp(l->info.transport))
				llc_suspect(l, "port down");
			else
				link_lost(l, "port down");
		}
	}
}

void
engine_device_ends(struct smcr *eng, struct rnic_dev *dev, const char *why)
{
	for (unsigned i = 0; i < eng->dev_cnt; i++)
		if (eng->devs[i] == dev)
			eng->devs[i--] = eng->devs[--eng->dev_cnt]; /* the order of devices is irrelevant */
	LIST_EACH(struct lgr, lgr, &eng->lgrs, node)
		LGR_EACH_LINK(l, lgr)
			if (l->dev == dev)
				link_lost(l, why);
}

bool
smcr_take_device_changes(struct smcr *eng)
{
	bool changed = eng->devs_changed;

	eng->devs_changed = false;
	return changed;
}

bool
smcr_device_gone(const struct smcr *eng, const struct rnic_dev *dev)
{
	for (unsigned i = 0; i < eng->dev_cnt; i++)
		if (eng->devs[i] == dev)
			return false;
	return LIST_FIND(const struct rnic_dev, d, &eng->devices, node, d == dev) != NULL;
}

bool
smcr_has_devices(const struct smcr *eng)
{
	return !list_empty(&eng->devices);
}

void
engine_device_event(struct smcr *eng, struct rnic_dev *dev, const struct rnic_event *ev)
{
	static const char *const words[] = {
		[RNIC_EV_CONNECT_FAILED] = "queue pair could not be connected",
		[RNIC_EV_QP_ERROR] = "queue pair error",
	};
	struct link *link = ev->ctx;

	switch (ev->type) {
	case RNIC_EV_CONNECTED:
		link_connected(link);
		if (link->order == 0)
			rdv_link_connected(link->lgr);
		break;
	case RNIC_EV_CONNECT_FAILED:
	case RNIC_EV_QP_ERROR:
		if (!link_has_ended(link))
			link->silent = ev->silent;
		link_lost(link, ev->why != NULL ? ev->why : words[ev->type]);
		break;
	case RNIC_EV_SILENT:
		llc_suspect(link, "the peer does not answer");
		break;
	case RNIC_EV_CREDITS:
		link_schedule(link);
		break;
	case RNIC_EV_QP_FREED:
		link_qp_freed(link);
		break;
	case RNIC_EV_PORT_DOWN:
		eng->devs_changed = true;
		port_down(eng, dev);
		break;
	case RNIC_EV_DEV_GONE:
		eng->devs_changed = true;
		engine_device_ends(eng, dev, "device gone");
		break;
	case RNIC_EV_PORT_UP:
		eng->devs_changed = true;
		device_is_there(eng);
		break;
	case RNIC_EV_TROUBLE:
		engine_log_device(eng, dev, ev->why);
		break;
	case RNIC_EV_DEV_FREED:
		break;
	}
}
