/* Looking at devices: what smcrctl shows of them, and which one a connection should use; see devices.h. */
#include <string.h>

#include "base/addr.h"
#include "daemon/device/devices.h"
#include "daemon/device/devices_priv.h"
#include "daemon/device/netwatch.h"

struct rnic_dev *
devices_get(const struct worker *w, unsigned i)
{
	return i < w->devices->cnt ? w->devices->devs[i].dev : NULL;
}

bool
devices_near(const struct worker *w, const struct rnic_gid *gid)
{
	struct rnic_dev *dev;

	for (unsigned i = 0; (dev = devices_get(w, i)) != NULL; i++)
		if (subnets_near(&w->subnets, rnic_query(dev).gid.b, gid->b))
			return true;
	return false;
}

const char *
devices_interface(const struct worker *w, unsigned index)
{
	const struct netifs *ifs = w->netwatch != NULL ? netwatch_table(w->netwatch) : NULL;
	const struct netif *i = ifs != NULL ? netifs_by_index(ifs, index) : NULL;

	return i != NULL ? i->name : "";
}

/* 0: not known. */
static unsigned
ifindex_of(const struct worker *w, const struct sockaddr_storage *addr)
{
	const struct netif_addr *a = w->netwatch != NULL ? netifs_find(netwatch_table(w->netwatch), addr) : NULL;

	return a != NULL ? a->index : 0;
}

bool
devices_info(const struct worker *w, unsigned i, struct device_info *info)
{
	const struct device *me = &w->devices->devs[i];

	if (i >= w->devices->cnt)
		return false;
	*info = (struct device_info){ .rnic = rnic_query(me->dev) };
	if (me->dev->ops->stats != NULL)
		info->stat_cnt = me->dev->ops->stats(me->dev, info->stats);
	if (device_is_verbs(me)) {
		info->card = verbs_port_of(me->dev);
		info->gid = (struct verbs_gid){ .gid = me->gid, .type = me->gid_type };
		for (unsigned k = 0; k < info->card->gid_cnt; k++)
			if (info->card->gids[k].type == me->gid_type &&
			    memcmp(&info->card->gids[k].gid, &me->gid, sizeof(me->gid)) == 0)
				info->gid = info->card->gids[k];
	}
	info->interface = devices_interface(w, device_is_verbs(me) ? info->gid.ifindex : ifindex_of(w, &me->addr));
	return true;
}

void
devices_gid_at(const struct worker *w, const struct sockaddr_storage *local, struct rnic_gid *out)
{
	const struct device *near = NULL;

	addr_to_v6(local, out->b);
	for (unsigned i = 0; i < w->devices->cnt; i++) {
		const struct device *me = &w->devices->devs[i];

		if (!device_is_verbs(me) || me->state != RNIC_PORT_UP)
			continue;
		if (memcmp(&me->gid, out, sizeof(*out)) == 0)
			return;
		if (near == NULL && me->ifindex != 0 && me->ifindex == ifindex_of(w, local))
			near = me;
	}
	if (near != NULL)
		*out = near->gid;
}
