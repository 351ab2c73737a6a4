/* Bounds, each a row: what is counted, and how much of it there may be. A limit of the engine that a peer could exceed
 * otherwise has its row here. All is counted independently of the engine's own figures. */
#include "tests/scenario/bounds.h"

#include <stdio.h>

#include "smcr/data/conn.h"
#include "smcr/data/failover.h"
#include "smcr/data/grant.h"
#include "smcr/data/rmb.h"
#include "smcr/group/lgr.h"
#include "smcr/state/engine.h"
#include "smcr/rendezvous/rendezvous.h"

#define AUTO_RING_MAX (2 * 512 * 1024) /* devices here know of no round trip: no element is larger */
#define PEERS_MOST 1024
#define TICKETS_MOST 64      /* of a group (grant.c) */
#define LATE_DECLINE_MS 1000 /* for a Decline that may have crossed ours, of a peer that is no smcrd */

struct look {
	struct bounds *b;
	const struct smcr *eng;
	char *text;
	size_t cap;
	uint32_t groups, spares;
	bool beyond;
};

static void
expect(struct look *l, const char *of, uint32_t id, const char *what, uint64_t have, uint64_t most)
{
	if (l->beyond || have <= most)
		return;
	l->beyond = true;
	(void)snprintf(l->text, l->cap, "%s %u: %s: %llu, %llu at the most", of, id, what, (unsigned long long)have,
	    (unsigned long long)most);
}

/* -- the engine -- */

static uint64_t
rmb_bytes(const struct smcr *eng)
{
	uint64_t sum = 0;

	LIST_FOREACH(g, &eng->lgrs)
		LIST_FOREACH(n, &CONTAINER_OF(g, struct lgr, node)->rmbs) {
			const struct rmb *rmb = CONTAINER_OF(n, struct rmb, node);

			sum += (uint64_t)rmb->elem_size * rmb->elem_cnt;
		}
	return sum;
}

static uint32_t
peers(const struct smcr *eng, enum smcr_role role)
{
	uint32_t cnt = 0;

	LIST_FOREACH(n, &eng->peers)
		cnt += CONTAINER_OF(n, struct peer, node)->role == role;
	return cnt;
}

/* Clients' groups have their first link here; an eighth of the queue pairs is not for them (owner.h). */
static uint32_t
strangers_links(const struct smcr *eng, const struct rnic_dev *dev)
{
	uint32_t cnt = 0;

	LIST_FOREACH(g, &eng->lgrs) {
		const struct lgr *lgr = CONTAINER_OF(g, struct lgr, node);

		for (unsigned i = 0; i < LINK_SLOTS && lgr->role == SMCR_SERVER; i++)
			cnt += lgr->links[i].qp != NULL && lgr->links[i].order == 0 && lgr->links[i].dev == dev;
	}
	return cnt;
}

static void
look_at_engine(struct look *l)
{
	const struct smcr *eng = l->eng;

	expect(l, "engine", 0, "connections", eng->conns.used, eng->cfg.conns_max);
	expect(l, "engine", 0, "bytes of RMBs", rmb_bytes(eng), eng->cfg.rmb_bytes_max);
	expect(l, "engine", 0, "clients remembered", peers(eng, SMCR_SERVER), PEERS_MOST);
	expect(l, "engine", 0, "servers remembered", peers(eng, SMCR_CLIENT), PEERS_MOST);
	for (unsigned i = 0; i < eng->dev_cnt; i++) {
		uint32_t max = rnic_query(eng->devs[i]).max_qp;

		expect(l, "device", i, "first links of clients' groups", strangers_links(eng, eng->devs[i]),
		    max - max / 8);
	}
}

/* -- its groups -- */

static struct bounds_group *
memory_of(struct look *l, const struct lgr *lgr)
{
	struct bounds_group *m = &l->b->group[lgr->id % BOUNDS_GROUPS];

	if (m->id != lgr->id)
		*m = (struct bounds_group){ .id = lgr->id };
	return m;
}

static uint32_t
most32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* Groups of this one's role and address that never were full: these are not counted, as connections may leave them at any time. */
static uint32_t
like_this(struct look *l, const struct lgr *lgr)
{
	uint32_t cnt = 0;

	LIST_FOREACH(n, &l->eng->lgrs) {
		const struct lgr *other = CONTAINER_OF(n, struct lgr, node);

		cnt += other->role == lgr->role && identity_same(&other->owner.remote, &lgr->owner.remote) &&
		    !memory_of(l, other)->was_full;
	}
	return cnt;
}

/* How many there are. */
static uint32_t
note_full_groups(struct look *l)
{
	uint32_t cnt = 0;

	LIST_FOREACH(n, &l->eng->lgrs) {
		const struct lgr *lgr = CONTAINER_OF(n, struct lgr, node);

		memory_of(l, lgr)->was_full |= lgr->conn_cnt >= l->eng->cfg.conns_per_group;
		cnt++;
	}
	return cnt;
}

/* *used: elements in use, or promised to a waiter for a new RMB. */
static void
count_elements(const struct lgr *lgr, uint32_t *used, uint32_t *quarantined)
{
	*used = *quarantined = 0;
	LIST_FOREACH(n, &lgr->wait_rmb)
		++*used;
	LIST_FOREACH(n, &lgr->rmbs) {
		const struct rmb *rmb = CONTAINER_OF(n, struct rmb, node);

		for (uint32_t i = 0; i < rmb->elem_cnt; i++) {
			*used += rmb->elem[i].state != RMB_ELEM_FREE;
			*quarantined += rmb->elem[i].state == RMB_ELEM_QUARANTINED;
		}
	}
}

/* A group that takes no connections takes none: no new connection gets an element of it. */
static void
look_at_elements(struct look *l, const struct lgr *lgr)
{
	struct bounds_group *m = memory_of(l, lgr);
	uint32_t used, quarantined;

	count_elements(lgr, &used, &quarantined);
	bool full = quarantined >= l->eng->cfg.quarantine_max;
	bool closed = full || (lgr->role == SMCR_SERVER && (lgr->end_wanted || lgr_is_suspect(lgr)));
	if (m->closed && closed)
		expect(l, "group", lgr->id, "elements of a group that takes no connections", used, m->used);
	m->closed = closed;
	m->used = used;
	if (full && lgr->state == LGR_ACTIVE && lgr_unused(lgr) && list_empty(&lgr->marks.node))
		expect(l, "group", lgr->id, "has too much in quarantine, is unused and lives", 1, 0);
}

/* A link that has ended may outlive its device. */
static bool
is_there(const struct smcr *eng, const struct rnic_dev *dev)
{
	for (unsigned i = 0; i < eng->dev_cnt; i++)
		if (eng->devs[i] == dev)
			return true;
	return false;
}

/* First contact's, so many at once, and one each interval: what a client takes, and what a server offers. */
static uint64_t
most_links_made(const struct lgr *lgr)
{
	uint64_t age_ms = (uint64_t)(lgr->eng->now_ns - lgr->born_ns) / MS;

	return lgr->role == SMCR_CLIENT ? 1 + 8 + age_ms / 100 : SMCR_LINKS_MAX + age_ms / 200;
}

static void
look_at_links(struct look *l, const struct lgr *lgr)
{
	expect(l, "group", lgr->id, "links", lgr->link_cnt, LINK_SLOTS);
	expect(l, "group", lgr->id, "links made", lgr->links_made, most_links_made(lgr));
	for (unsigned i = 0; i < LINK_SLOTS; i++)
		if (lgr->links[i].state != LINK_FREE && is_there(l->eng, lgr->links[i].dev))
			expect(l, "group", lgr->id, "a link in another VLAN",
			    rnic_query(lgr->links[i].dev).vlan != lgr->vlan, 0);
}

static uint64_t
ms_until(const struct smcr *eng, const struct timer *t)
{
	return timer_armed(t) && t->at_ns > eng->now_ns ? (uint64_t)(t->at_ns - eng->now_ns) / MS : 0;
}

/* Something leads to an element for waiting connections: an exchange, another try of ours, marks that are to be acted on, or the
 * tests of a group whose links are all silent, where no exchange begins. */
static bool
rmb_is_under_way(const struct lgr *lgr)
{
	return lgr->flow[LLC_FLOW_LINK].step != LLC_IDLE || lgr->flow[LLC_FLOW_RKEY].step != LLC_IDLE ||
	    lgr->cont_rmb != NULL || timer_armed(&lgr->rkey_retry) || lgr_is_silent(lgr) ||
	    !list_empty(&lgr->marks.node) || !list_empty(&lgr->marks.turn_node);
}

/* Whatever a peer is waited for has an end: the timer that ends it is set. */
static void
look_at_waits(struct look *l, const struct lgr *lgr)
{
	const struct smcr_config *cfg = &l->eng->cfg;
	uint32_t most_ms = 2 * most32(cfg->llc_ms, most32(cfg->confirm_link_ms, cfg->add_link_ms));

	for (unsigned i = 0; i < LLC_FLOW_CNT && lgr->state != LGR_DEAD; i++) {
		const struct llc_flow *f = &lgr->flow[i];

		if (f->step == LLC_IDLE)
			continue;
		expect(l, "group", lgr->id, "an LLC exchange without an end", !timer_armed(&f->timer), 0);
		expect(l, "group", lgr->id, "ms until an LLC exchange ends", ms_until(l->eng, &f->timer), most_ms);
	}
	if (lgr->state == LGR_ACTIVE && !list_empty(&lgr->wait_rmb))
		expect(l, "group", lgr->id, "connections wait for an RMB, and nothing leads to one",
		    !rmb_is_under_way(lgr), 0);
	if (lgr->cont_rmb != NULL && lgr->state != LGR_DEAD)
		expect(l, "group", lgr->id, "a CONFIRM RKEY that goes on without an end",
		    !timer_armed(&lgr->cont_timer), 0);
}

/* A server grants twice as many elements at most: once more when a link is lost. What was opened waits for its user. */
static void
look_at_opens(struct look *l, const struct lgr *lgr)
{
	uint32_t spares = 0, waiting = 0;

	LIST_FOREACH(n, &lgr->spares)
		spares++;
	LIST_FOREACH(n, &lgr->conns) {
		const struct smcr_conn *c = CONTAINER_OF(n, struct smcr_conn, lgr_node);

		waiting += c->over_link && c->state == CONN_RENDEZVOUS;
	}
	l->spares += spares;
	expect(l, "group", lgr->id, "granted elements", spares, 2 * GRANTS_MAX);
	expect(l, "group", lgr->id, "granted elements of the peer", lgr->grant_cnt, GRANTS_MAX);
	expect(
	    l, "group", lgr->id, "connections that wait for the server program", waiting, l->eng->cfg.conns_per_group);
	expect(l, "group", lgr->id, "tickets", lgr->ticket_cnt, TICKETS_MOST);
}

static void
look_at_group(struct look *l, const struct lgr *lgr)
{
	expect(l, "group", lgr->id, "RMBs", lgr->rmb_cnt, SMCR_RMBS_PER_GROUP);
	expect(l, "group", lgr->id, "RMBs of the peer", lgr->remote_rmb_cnt, SMCR_RMBS_PER_GROUP);
	expect(l, "group", lgr->id, "bytes of send rings", lgr->sndbuf_bytes,
	    (uint64_t)l->eng->cfg.conns_per_group *
	        (l->eng->cfg.sndbuf_size != 0 ? l->eng->cfg.sndbuf_size : AUTO_RING_MAX));
	if (l->groups > l->eng->cfg.groups_per_addr)
		expect(l, "group", lgr->id, "groups of its role and address with room", like_this(l, lgr),
		    l->eng->cfg.groups_per_addr);
	look_at_elements(l, lgr);
	look_at_links(l, lgr);
	look_at_waits(l, lgr);
	look_at_opens(l, lgr);
}

/* -- its connections -- */

/* How long a rendezvous takes at most, whatever the peer does. Each side waits for each CLC message for clc_ms, has to
 * come to its own within that, and first contact has one LLC exchange behind another; a late Decline may follow. That a foreign
 * peer is at others comes on top. */
static uint64_t
rendezvous_ms(const struct smcr_config *cfg)
{
	return 3 * (uint64_t)cfg->clc_ms + cfg->confirm_link_ms + cfg->add_link_ms + 4 * cfg->llc_ms + LATE_DECLINE_MS;
}

/* A message is awaited, by us or by the peer, and neither waits for more than clc_ms (C.5). What comes later is LLC's. */
static bool
clc_is_awaited(enum rdv_step step)
{
	return step != RDV_NONE && step != RDV_WAIT_GROUP && step != RDV_WAIT_LINK;
}

static void
look_at_conn(struct look *l, const struct smcr_conn *c)
{
	const struct smcr *eng = l->eng;
	const struct timer *t = &c->rdv->timer;
	uint64_t turns_ms = rdv_is_smcrd(c) ? 0 : RDV_TURNS_MAX * (uint64_t)eng->cfg.clc_ms;
	/* A Confirm that joins a group is awaited for as long as that lives (dialect.h, reset_unseen). */
	bool joins = c->role == SMCR_SERVER && c->lgr != NULL && c->lgr->state != LGR_FORMING &&
	    c->lgr->dialect.reset_unseen;

	if (c->over_link)
		return; /* waits for its user alone */
	if (!joins)
		expect(l, "connection", c->id, "ms in the rendezvous", (uint64_t)(eng->now_ns - c->born_ns) / MS,
		    rendezvous_ms(&eng->cfg) + turns_ms);
	if (!clc_is_awaited(c->rdv->step))
		return;
	expect(l, "connection", c->id, "a rendezvous without an end", !timer_armed(t), 0);
	expect(l, "connection", c->id, "ms until a rendezvous goes on", ms_until(eng, t),
	    c->rdv->step == RDV_LATE_DECLINE ? most32(eng->cfg.clc_ms, LATE_DECLINE_MS) : eng->cfg.clc_ms);
}

static void
look_at_conns(struct look *l)
{
	const struct smcr_conn *c;

	for (uint32_t pos = 0; (c = idtable_next(&l->eng->conns, &pos)) != NULL;)
		if (c->state == CONN_RENDEZVOUS && c->rdv->step != RDV_NONE)
			look_at_conn(l, c);
}

const char *
bounds_look(struct bounds *b, const struct smcr *eng, char *text, size_t cap)
{
	struct look l = { .b = b, .eng = eng, .text = text, .cap = cap };

	look_at_engine(&l);
	l.groups = note_full_groups(&l);
	LIST_FOREACH(n, &eng->lgrs)
		look_at_group(&l, CONTAINER_OF(n, struct lgr, node));
	expect(&l, "engine", 0, "granted elements", l.spares, eng->cfg.conns_max / 4 * 3);
	look_at_conns(&l);
	return l.beyond ? text : NULL;
}
