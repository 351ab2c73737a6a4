/* Devices of the links of a group; see topology.h. */
#include "smcr/group/topology.h"

#include <string.h>

#include "smcr/state/engine.h"

bool
topology_is_ipv4(const uint8_t addr[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };

	return memcmp(addr, mapped, sizeof(mapped)) == 0;
}

enum rnic_reach
topology_reach(struct rnic_dev *dev, const uint8_t gid[16])
{
	struct rnic_gid to;

	memcpy(to.b, gid, sizeof(to.b));
	return dev->ops->reaches != NULL ? dev->ops->reaches(dev, &to) : RNIC_REACH_DIRECT;
}

/* The link shares an RNIC, on one side, with an older symmetric link. */
static bool
is_asymmetric(const struct link *link)
{
	return LGR_ANY_LINK(l, link->lgr,
	    l->state == LINK_ACTIVE && l->order < link->order &&
	        (l->dev == link->dev || link_leads_to(l, link->remote.gid.b, link->remote.mac)) && !is_asymmetric(l));
}

struct link *
topology_asymmetric_link(const struct lgr *lgr)
{
	return (struct link *)LGR_FIND_LINK(l, lgr, l->state == LINK_ACTIVE && is_asymmetric(l));
}

unsigned
topology_symmetric_cnt(const struct lgr *lgr)
{
	return lgr->active_cnt - (topology_asymmetric_link(lgr) != NULL ? 1 : 0);
}

struct link *
topology_link_to_ask_over(struct lgr *lgr)
{
	struct link *over = lgr_pick_link(lgr), *asymmetric = topology_asymmetric_link(lgr);
	struct link *other = LGR_FIND_LINK(l, lgr, l != asymmetric && l->state == LINK_ACTIVE && !l->retiring);

	return over == asymmetric && other != NULL ? other : over;
}

/* Use of an RNIC of either side in the group; lower is better for a new link. */
enum use {
	USE_NONE,
	USE_ASYMMETRIC, /* only by the asymmetric link, which a new one would replace */
	USE_BESIDE,     /* unused, but on the interface of a used one: both fail together. Our side only */
	USE_SYMMETRIC,
};

static enum use
use_of(const struct lgr *lgr, struct rnic_dev *dev)
{
	struct rnic_info info = rnic_query(dev);
	enum use use = USE_NONE;
	bool beside = false;

	LGR_EACH_LINK(l, lgr) {
		if (l->state != LINK_ACTIVE)
			continue;
		/* Devices on one interface share its MAC; those on a loopback interface have separate ones. */
		if (l->dev == dev)
			use = is_asymmetric(l) && use != USE_SYMMETRIC ? USE_ASYMMETRIC : USE_SYMMETRIC;
		else
			beside = beside || memcmp(rnic_query(l->dev).mac, info.mac, sizeof(info.mac)) == 0;
	}
	return use == USE_NONE && beside ? USE_BESIDE : use;
}

/* A port with GIDs of both RoCE versions is two devices, but one path: links of one exclude the other's device. */
static bool
is_port_of_another(const struct lgr *lgr, const struct rnic_info *info, enum rnic_gid_type type)
{
	for (unsigned i = 0; i < lgr->eng->dev_cnt && info->gid_type != type; i++) {
		struct rnic_info other = rnic_query(lgr->eng->devs[i]);

		if (other.gid_type == type && memcmp(other.mac, info->mac, sizeof(info->mac)) == 0)
			return true;
	}
	return false;
}

static bool
is_usable(const struct lgr *lgr, struct rnic_dev *dev)
{
	struct rnic_info info = rnic_query(dev);
	enum rnic_transport transport = RNIC_TRANSPORT_ROCE;
	enum rnic_gid_type type = info.gid_type;

	LGR_EACH_LINK(l, lgr)
		if (l->state == LINK_ACTIVE) {
			transport = l->info.transport; /* common to all links */
			type = l->info.gid_type;
		}
	/* Version 2 of Linux uses only IPv4. */
	if (lgr->version == LLC_VERSION_2 && !topology_is_ipv4(info.gid.b))
		return false;
	return info.port == RNIC_PORT_UP && info.transport == transport && info.vlan == lgr->vlan &&
	    (!lgr->dialect.foreign || info.gid_type == type) && !is_port_of_another(lgr, &info, type);
}

bool
topology_is_parallel(
    const struct lgr *lgr, const struct rnic_dev *dev, const struct rnic_gid *gid, const uint8_t mac[6])
{
	return LGR_ANY_LINK(l, lgr, l->state == LINK_ACTIVE && l->dev == dev && link_leads_to(l, gid->b, mac));
}

/* The device that the group uses least, with *use; NULL: none. to: it reaches this RNIC, and has no link to it. After a
 * failure of several alike another one is next: the path of the first may be silent though its port is up. */
static struct rnic_dev *
least_used(const struct lgr *lgr, const struct rnic_gid *to, const uint8_t *to_mac, enum use *use)
{
	struct rnic_dev *best = NULL;

	for (unsigned i = 0; i < lgr->eng->dev_cnt; i++) {
		struct rnic_dev *dev = lgr->eng->devs[(i + lgr->add_failures) % lgr->eng->dev_cnt];
		enum use u = use_of(lgr, dev);

		if (!is_usable(lgr, dev) || (best != NULL && u >= *use))
			continue;
		if (to != NULL &&
		    (topology_reach(dev, to->b) == RNIC_REACH_NONE || topology_is_parallel(lgr, dev, to, to_mac)))
			continue;
		best = dev;
		*use = u;
	}
	return best;
}

struct rnic_dev *
topology_device_to_offer(const struct lgr *lgr)
{
	enum use use = USE_SYMMETRIC;
	struct rnic_dev *dev = least_used(lgr, NULL, NULL, &use);

	if (dev == NULL || lgr->links_limit < 2 || lgr->active_cnt == 0)
		return NULL;
	/* A used one, once per group, for a client with more devices than we have (3.5.1.6, 3.5.5.1.1). */
	if (use == USE_SYMMETRIC)
		return lgr->active_cnt == 1 ? dev : NULL;
	return topology_symmetric_cnt(lgr) < lgr->links_limit ? dev : NULL;
}

bool
topology_can_add(const struct lgr *lgr)
{
	if (topology_symmetric_cnt(lgr) >= lgr->links_limit)
		return false;
	for (unsigned i = 0; i < lgr->eng->dev_cnt; i++) {
		struct rnic_dev *dev = lgr->eng->devs[i];
		enum use use = use_of(lgr, dev);

		if (is_usable(lgr, dev) && (use == USE_NONE || use == USE_BESIDE))
			return true;
	}
	return false;
}

struct rnic_dev *
topology_device_for(const struct lgr *lgr, const struct rnic_gid *gid, const uint8_t mac[6])
{
	enum use use = USE_SYMMETRIC;
	struct rnic_dev *dev = least_used(lgr, gid, mac, &use);
	bool asymmetric = use == USE_SYMMETRIC ||
	    LGR_ANY_LINK(l, lgr, l->state == LINK_ACTIVE && link_leads_to(l, gid->b, mac) && !is_asymmetric(l));

	if (dev == NULL || lgr->links_limit < 2)
		return NULL;
	/* An asymmetric link requires a group without a better one. */
	if (asymmetric ? lgr->active_cnt > 1 : topology_symmetric_cnt(lgr) >= lgr->links_limit)
		return NULL;
	return dev;
}

struct rnic_dev *
topology_spare_device(const struct lgr *lgr)
{
	enum use use = USE_SYMMETRIC;
	struct rnic_dev *dev = least_used(lgr, NULL, NULL, &use);

	return use != USE_SYMMETRIC && topology_symmetric_cnt(lgr) < lgr->links_limit ? dev : NULL;
}

uint8_t
topology_gids(const struct lgr *lgr, uint8_t *gids)
{
	uint8_t n = 0;

	for (unsigned i = 0; i < lgr->eng->dev_cnt && n < LLC_MAX_GIDS; i++)
		if (is_usable(lgr, lgr->eng->devs[i]))
			memcpy(gids + 16 * n++, rnic_query(lgr->eng->devs[i]).gid.b, 16);
	return n;
}

const uint8_t *
topology_client_gid(const struct lgr *lgr, const struct link *over)
{
	const uint8_t *unused[CLC_MAX_GIDS];
	unsigned cnt = 0;

	for (unsigned i = 0; i < lgr->terms.peer_gid_cnt; i++) {
		const uint8_t *gid = lgr->terms.peer_gids[i];

		if (!LGR_ANY_LINK(l, lgr, l->state == LINK_ACTIVE && link_leads_to(l, gid, over->remote.mac)))
			unused[cnt++] = gid;
	}
	return cnt > 0 ? unused[lgr->add_failures % cnt] : over->remote.gid.b;
}

bool
topology_may_dial(struct smcr *eng, struct rnic_dev *dev, const struct rnic_gid *to, const struct smcr_identity *middle)
{
	/* RoCE opens no connection: a host without that queue pair drops its packets. */
	if (eng->may_dial == NULL || !rnic_is_iwarp(rnic_query(dev).transport))
		return true;
	if (eng->may_dial(eng->may_dial_ctx, to, middle))
		return true;
	eng->ctr.refused_mpa_peers++;
	return false;
}
