/* The duties of an honest host to its users; see hostile.h. */
#include "tests/scenario/hostile.h"

#include "smcr/data/conn.h"
#include "smcr/data/failover.h"
#include "smcr/data/rmb.h"
#include "smcr/group/lgr.h"
#include "smcr/state/engine.h"
#include "tests/scenario/trace.h"
#include "tests/unit/smcr_help.h"

#define RKEY_RETRY_MAX_MS 40 /* of llc_rkey.c */

bool
hostile_flow(const struct flow *f)
{
	return f->plan->hostile != 0 && (f->from == LIAR_HOST || f->to == LIAR_HOST);
}

static bool
bit(const uint64_t *map, uint32_t nr)
{
	return nr < HOST_GROUPS && (map[nr / 64] >> (nr % 64) & 1) != 0;
}

bool
hostile_judges(const struct host *h, uint32_t group_id)
{
	return h->plan->hostile == 0 || (!h->lies && bit(h->honest_groups, group_id));
}

/* The liar is at the other end. What it opens over a link is known by the group alone until there is a session. */
static bool
is_liars(const struct host *h, const struct smcr_conn *c)
{
	return trace_is_hostile(h->trace, h->nr, c->id) ||
	    (c->over_link && c->role == SMCR_SERVER && c->rmb != NULL &&
	        c->rmb->lgr->owner.remote.addr[15] == HOST_ADDR(LIAR_HOST));
}

/* Whose connections a group has is found out while it has them, and remembered: it lives longer. */
static void
look_at_groups(struct host *h)
{
	struct smcr_conn_info c;

	for (uint32_t pos = 0; smcr_conn_next(h->eng, &pos, &c);) {
		if (c.group_id == 0)
			continue;
		bool liars = is_liars(h, idtable_get(&h->eng->conns, c.id));
		uint64_t *map = liars ? h->liars_groups : h->honest_groups;
		if (c.group_id < HOST_GROUPS)
			map[c.group_id / 64] |= 1ULL << (c.group_id % 64);
		if (bit(h->liars_groups, c.group_id) && bit(h->honest_groups, c.group_id))
			world_fail(h->w, "host%u: group %u has connections of an honest peer and of the liar", h->nr,
			    c.group_id);
	}
}

/* A server names where a client's queue pairs go: with iWARP, only to itself (host.c sets the policy). */
static void
look_at_links(struct host *h)
{
	LIST_FOREACH(n, &h->eng->lgrs) {
		const struct lgr *lgr = CONTAINER_OF(n, struct lgr, node);

		for (unsigned i = 0; i < LINK_SLOTS && lgr->role == SMCR_CLIENT; i++) {
			const struct link *link = &lgr->links[i];

			if (link->state != LINK_FREE && h->plan->iwarp != 0 && h->plan->af_smc == 0 &&
			    link->remote.gid.b[15] != lgr->owner.remote.addr[15])
				world_fail(h->w, "host%u: group %u of host%u has a link to host%u", h->nr, lgr->id,
				    lgr->owner.remote.addr[15] - 1u, link->remote.gid.b[15] - 1u);
		}
	}
}

/* Links are as protected as the middles of their connections: on TCP with the secret of one, with "required" no others. */
static void
look_at_levels(struct host *h)
{
	LIST_FOREACH(n, &h->eng->lgrs) {
		const struct lgr *lgr = CONTAINER_OF(n, struct lgr, node);
		const unsigned level = lgr->owner.remote.level;

		for (unsigned i = 0; i < LINK_SLOTS; i++) {
			const struct link *link = &lgr->links[i];
			bool tls = link->state != LINK_FREE && link->qp != NULL && sim_qp_in_tls(link->qp);

			if (link->state == LINK_FREE || link->qp == NULL)
				continue;
			if (tls != (level > 0 && link->info.tls) || (level > 1 && !tls))
				world_fail(h->w, "host%u: group %u of level %u has a link %s", h->nr, lgr->id, level,
				    tls ? "in TLS" : "in clear");
		}
	}
}

/* A connection is in a group of its own level, and of a peer with the name of its own. */
void
hostile_check_level(const struct host *h, const struct flow *f, const struct smcr_conn *c)
{
	if (c->rmb == NULL)
		return; /* it has ended since */
	const struct smcr_identity *owner = &c->rmb->lgr->owner.remote;
	unsigned level = plan_level(h->plan, f->nr, f->hostile), peer = h->nr == f->from ? f->to : f->from;

	if (owner->level != level || owner->name_id[0] != (level > 0 ? HOST_ADDR(peer) : 0))
		world_fail(h->w, "host%u: flow %u of level %u with host%u is in a group of level %u and name %u", h->nr,
		    f->nr, level, peer, owner->level, owner->name_id[0]);
}

void
hostile_look(struct host *h)
{
	char text[160];

	if (h->lies)
		return;
	const char *beyond = bounds_look(&h->bounds, h->eng, text, sizeof(text));
	if (beyond != NULL)
		world_fail(h->w, "host%u: %s", h->nr, beyond);
	if (h->plan->secure != 0)
		look_at_levels(h);
	if (h->plan->hostile == 0)
		return;
	look_at_groups(h);
	look_at_links(h);
}

/*
 * First contact with a second link and a new RMB, behind other connections that wait for it, on a network without faults: some
 * dozens of messages one way. First contacts with one peer come one after the other, so it may be behind those of as many groups
 * as its host's flows can fill, and once both sides may have begun an exchange at a time, and a CONFIRM RKEY waits for its second
 * try, which meets the next ADD LINK when the server offers links as often. A wait for anything that the liar should do lasts
 * longer, but for the shortest timers.
 */
void
hostile_check_set_up(const struct host *h, const struct flow *f, int64_t took_ns)
{
	const struct plan *p = h->plan;
	int64_t rdma = (p->rdma_delay_us + p->rdma_spread_us + p->ack_us + p->jitter_us) * US + p->confirm_ms * MS;
	int64_t tcp = (p->tcp_delay_us + p->tcp_spread_us + p->jitter_us) * US;
	int64_t before = p->flows / p->conns_per_group;
	int64_t tries = p->add_link_retry_ms < RKEY_RETRY_MAX_MS ? 3 : 1;
	int64_t most = (1 + before) * (30 * rdma + 15 * tcp) + tries * RKEY_RETRY_MAX_MS * MS + 2 * MS;

	if (p->max_qp != 0)
		return; /* a server without a queue pair for the second link lets its client wait for ADD LINK */
	if (took_ns > most)
		world_fail(h->w, "flow %u: %lld us until it was established, %lld at the most without a liar", f->nr,
		    (long long)(took_ns / US), (long long)(most / US));
}

/* -- memory -- */

static struct rmb *
rmb_at(const struct lgr *lgr, const uint8_t *ptr, size_t len)
{
	LIST_FOREACH(n, &lgr->rmbs) {
		struct rmb *rmb = CONTAINER_OF(n, struct rmb, node);

		if (ptr >= rmb->buf && len <= (size_t)rmb->elem_size * rmb->elem_cnt &&
		    ptr + len <= rmb->buf + (size_t)rmb->elem_size * rmb->elem_cnt)
			return rmb;
	}
	return NULL;
}

/* An honest connection whose element has some of these bytes. */
static struct smcr_conn *
honest_user(const struct host *h, const struct rmb *rmb, const uint8_t *ptr, size_t len)
{
	const struct smcr_conn *c;

	for (uint32_t pos = 0; (c = idtable_next(&h->eng->conns, &pos)) != NULL;) {
		const uint8_t *elem = c->rmb == rmb && c->elem_idx > 0 ? rmb->units[c->elem_idx - 1].mem : NULL;

		if (elem != NULL && ptr < elem + rmb->elem_size && elem < ptr + len && !is_liars(h, c))
			return (struct smcr_conn *)(uintptr_t)c;
	}
	return NULL;
}

void
hostile_placed(struct host *hosts, const struct rnic_dev *from, struct rnic_qp *to, const uint8_t *ptr, size_t len)
{
	const struct host *h = NULL;
	const struct link *link = to->ctx;
	bool liars = false;

	for (unsigned i = 0; i <= LIAR_HOST; i++)
		for (unsigned k = 0; k < hosts[i].dev_cnt; k++) {
			if (hosts[i].dev[k].dev == from)
				liars = hosts[i].lies;
			if (hosts[i].dev[k].dev == to->dev)
				h = &hosts[i];
		}
	if (!liars || h == NULL || h->lies)
		return;
	struct rmb *rmb = rmb_at(link->lgr, ptr, len);
	if (rmb == NULL)
		world_fail(h->w, "host%u: the liar wrote %zu bytes outside of the RMBs of group %u", h->nr, len,
		    link->lgr->id);
	else if (honest_user(h, rmb, ptr, len) != NULL)
		world_fail(h->w, "host%u: the liar wrote into the element of a connection of honest hosts", h->nr);
}
