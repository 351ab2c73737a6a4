/*
 * Bounds, each a row: what is counted, and how much of it there may be. A limit
 * of the engine that a peer could exceed otherwise has its row here.
 */
#include "tests/scenario/bounds.h"

#include "smcr/engine.h"
#include "tests/scenario/liar.h"

/* What there is at this moment. Figures of groups are those of the group that has most. */
struct held {
	uint32_t groups, conns, qps, peers;
	uint32_t group_links, group_rmbs, group_peer_rmbs, group_quarantined;
	uint32_t liars_groups; /* of one role, with room for more connections */
};

struct bound {
	const char *what;
	size_t off;
	uint32_t (*most)(const struct plan *);
};

static void
most_of(uint32_t *most, uint32_t n)
{
	if (*most < n)
		*most = n;
}

static uint32_t
quarantined(const struct lgr *lgr)
{
	uint32_t cnt = 0;

	LIST_FOREACH(n, &lgr->rmbs)
		cnt += CONTAINER_OF(n, struct rmb, node)->quarantined;
	return cnt;
}

static uint32_t
liars_groups(const struct host *h, enum smcr_role role)
{
	uint32_t cnt = 0;

	LIST_FOREACH(n, &h->eng->lgrs) {
		const struct lgr *lgr = CONTAINER_OF(n, struct lgr, node);

		cnt += lgr->role == role && lgr->owner.remote.addr[15] == HOST_ADDR(LIAR_HOST) &&
		    lgr->conn_cnt < h->plan->conns_per_group;
	}
	return cnt;
}

static void
count(const struct host *h, struct held *held)
{
	*held = (struct held){ .conns = h->eng->conns.used };
	LIST_FOREACH(n, &h->eng->lgrs) {
		const struct lgr *lgr = CONTAINER_OF(n, struct lgr, node);

		held->groups++;
		most_of(&held->group_links, lgr->link_cnt);
		most_of(&held->group_rmbs, lgr->rmb_cnt);
		most_of(&held->group_peer_rmbs, lgr->remote_rmb_cnt);
		most_of(&held->group_quarantined, quarantined(lgr));
	}
	LIST_FOREACH(n, &h->eng->peers)
		held->peers++;
	most_of(&held->liars_groups, liars_groups(h, SMCR_CLIENT));
	most_of(&held->liars_groups, liars_groups(h, SMCR_SERVER));
	for (unsigned i = 0; i < h->dev_cnt; i++)
		if (h->dev[i].dev != NULL)
			held->qps += rnic_query(h->dev[i].dev).qp_cnt;
}

static uint32_t
most_conns(const struct plan *p)
{
	return p->conns_max;
}

static uint32_t
most_links(const struct plan *p)
{
	(void)p;
	return LINK_SLOTS;
}

static uint32_t
most_rmbs(const struct plan *p)
{
	(void)p;
	return SMCR_RMBS_PER_GROUP;
}

/* A group that has as many takes nobody; those that it has may all end so. */
static uint32_t
most_quarantined(const struct plan *p)
{
	return p->quarantine_max + p->conns_per_group;
}

/* One more is made when another one's connection leaves it meanwhile, for each that was full: connections come one by one. */
static uint32_t
most_groups(const struct plan *p)
{
	return p->groups_per_addr + (p->flows + p->conns_per_group - 1) / p->conns_per_group;
}

static const struct bound bounds[] = {
	{ "connections", offsetof(struct held, conns), most_conns },
	{ "links of a group", offsetof(struct held, group_links), most_links },
	{ "elements of a group in quarantine", offsetof(struct held, group_quarantined), most_quarantined },
	{ "groups of the liar with room", offsetof(struct held, liars_groups), most_groups },
	{ "RMBs of a group", offsetof(struct held, group_rmbs), most_rmbs },
	{ "RMBs of the peer in a group", offsetof(struct held, group_peer_rmbs), most_rmbs },
};

void
bounds_check(const struct host *h)
{
	struct held held;

	count(h, &held);
	for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
		uint32_t have = *(const uint32_t *)(const void *)((const char *)&held + bounds[i].off);
		uint32_t most = bounds[i].most(h->plan);

		if (have > most)
			world_fail(h->w, "host%u: %u %s, %u are allowed", h->nr, have, bounds[i].what, most);
	}
}
