/*
 * ADD LINK, what both sides share: which devices a new link joins (RFC 7609
 * 2.2, 3.5.1.6), the exchange of RTokens in ADD LINK CONTINUATIONs (3.5.5.2.3),
 * and how an attempt ends (C.8).
 */
#include <string.h>

#include "smcr/group/llc_impl.h"
#include "smcr/rendezvous/rendezvous.h"

/* -- which devices -- */

static bool
same_rnic(const struct rnic_remote *r, const struct rnic_gid *gid, const uint8_t mac[6])
{
	return memcmp(&r->gid, gid, sizeof(*gid)) == 0 && memcmp(r->mac, mac, sizeof(r->mac)) == 0;
}

/* It shares an RNIC, on one side, with a symmetric link that was there before it. */
static bool
is_asymmetric(const struct link *link)
{
	for (unsigned i = 0; i < LINK_SLOTS; i++) {
		const struct link *l = &link->lgr->links[i];

		if (l->state == LINK_ACTIVE && l->order < link->order &&
		    (l->dev == link->dev || same_rnic(&l->remote, &link->remote.gid, link->remote.mac)) &&
		    !is_asymmetric(l))
			return true;
	}
	return false;
}

struct link *
lgr_asymmetric_link(const struct lgr *lgr)
{
	for (unsigned i = 0; i < LINK_SLOTS; i++) {
		const struct link *l = &lgr->links[i];

		if (l->state == LINK_ACTIVE && is_asymmetric(l))
			return (struct link *)l;
	}
	return NULL;
}

unsigned
lgr_symmetric_cnt(const struct lgr *lgr)
{
	return lgr->active_cnt - (lgr_asymmetric_link(lgr) != NULL ? 1 : 0);
}

/* What an RNIC of either side is used for in the group; the better for a new link the smaller. */
enum use {
	USE_NONE,
	USE_ASYMMETRIC, /* only by the asymmetric link, which a new one would replace */
	USE_BESIDE,     /* not itself, but the interface that it is on: both fail together. Our side only */
	USE_SYMMETRIC,
};

static enum use
use_by(const struct link *link)
{
	return is_asymmetric(link) ? USE_ASYMMETRIC : USE_SYMMETRIC;
}

static enum use
worse(enum use a, enum use b)
{
	return a > b ? a : b;
}

/* Devices on one interface have its MAC; those on a loopback interface have one each. */
static bool
same_interface(struct rnic_dev *a, struct rnic_dev *b)
{
	struct rnic_info ia = rnic_query(a), ib = rnic_query(b);

	return memcmp(ia.mac, ib.mac, sizeof(ia.mac)) == 0;
}

static enum use
use_of(const struct lgr *lgr, struct rnic_dev *dev)
{
	enum use use = USE_NONE;
	bool beside = false;

	for (unsigned i = 0; i < LINK_SLOTS; i++) {
		const struct link *l = &lgr->links[i];

		if (l->state != LINK_ACTIVE)
			continue;
		if (l->dev == dev)
			use = worse(use, use_by(l));
		else
			beside = beside || same_interface(l->dev, dev);
	}
	return use == USE_NONE && beside ? USE_BESIDE : use;
}

static enum use
use_of_peer(const struct lgr *lgr, const struct rnic_gid *gid, const uint8_t mac[6])
{
	enum use use = USE_NONE;

	for (unsigned i = 0; i < LINK_SLOTS; i++) {
		const struct link *l = &lgr->links[i];

		if (l->state == LINK_ACTIVE && same_rnic(&l->remote, gid, mac))
			use = worse(use, use_by(l));
	}
	return use;
}

static enum rnic_transport
transport_of(const struct lgr *lgr)
{
	for (unsigned i = 0; i < LINK_SLOTS; i++)
		if (lgr->links[i].state == LINK_ACTIVE)
			return lgr->links[i].info.transport;
	return RNIC_TRANSPORT_ROCE;
}

static bool
is_usable(const struct lgr *lgr, struct rnic_dev *dev)
{
	struct rnic_info info = rnic_query(dev);

	return info.port == RNIC_PORT_UP && info.transport == transport_of(lgr) && info.vlan == lgr->vlan;
}

/* The device that the group uses least, *use: for what; NULL when none is up. */
static struct rnic_dev *
least_used(const struct lgr *lgr, enum use *use)
{
	struct rnic_dev *best = NULL;

	for (unsigned i = 0; i < lgr->eng->dev_cnt; i++) {
		struct rnic_dev *dev = lgr->eng->devs[i];
		enum use u;

		if (!is_usable(lgr, dev))
			continue;
		u = use_of(lgr, dev);
		if (best != NULL && u >= *use)
			continue;
		best = dev;
		*use = u;
	}
	return best;
}

struct rnic_dev *
llc_device_to_offer(const struct lgr *lgr)
{
	enum use use = USE_SYMMETRIC;
	struct rnic_dev *dev = least_used(lgr, &use);

	if (dev == NULL || lgr->links_limit < 2 || lgr->active_cnt == 0)
		return NULL;
	/* A used one for the sake of a client with more devices than we have, once a group (3.5.1.6, 3.5.5.1.1). */
	if (use == USE_SYMMETRIC)
		return lgr->active_cnt == 1 ? dev : NULL;
	return lgr_symmetric_cnt(lgr) < lgr->links_limit ? dev : NULL;
}

/* A device that no link uses. */
static bool
has_spare(const struct lgr *lgr)
{
	for (unsigned i = 0; i < lgr->eng->dev_cnt; i++) {
		struct rnic_dev *dev = lgr->eng->devs[i];
		enum use use = use_of(lgr, dev);

		if (is_usable(lgr, dev) && (use == USE_NONE || use == USE_BESIDE))
			return true;
	}
	return false;
}

bool
llc_can_add(const struct lgr *lgr)
{
	return has_spare(lgr) && lgr_symmetric_cnt(lgr) < lgr->links_limit;
}

bool
llc_is_parallel(const struct lgr *lgr, const struct rnic_dev *dev, const struct rnic_gid *gid, const uint8_t mac[6])
{
	for (unsigned i = 0; i < LINK_SLOTS; i++) {
		const struct link *l = &lgr->links[i];

		if (l->state == LINK_ACTIVE && l->dev == dev && same_rnic(&l->remote, gid, mac))
			return true;
	}
	return false;
}

struct rnic_dev *
llc_device_for(const struct lgr *lgr, const struct rnic_gid *gid, const uint8_t mac[6])
{
	enum use peer_use = use_of_peer(lgr, gid, mac), best_use = USE_SYMMETRIC;
	struct rnic_dev *best = NULL;
	bool asymmetric;

	for (unsigned i = 0; i < lgr->eng->dev_cnt; i++) {
		struct rnic_dev *dev = lgr->eng->devs[i];
		enum use u = use_of(lgr, dev);

		if (dev->ops->reaches != NULL && !dev->ops->reaches(dev, gid))
			continue;
		if (!is_usable(lgr, dev) || llc_is_parallel(lgr, dev, gid, mac) || (best != NULL && u >= best_use))
			continue;
		best = dev;
		best_use = u;
	}
	if (best == NULL || lgr->links_limit < 2)
		return NULL;
	asymmetric = best_use == USE_SYMMETRIC || peer_use == USE_SYMMETRIC;
	/* An asymmetric link is for a group that has nothing better. */
	if (asymmetric ? lgr->active_cnt > 1 : lgr_symmetric_cnt(lgr) >= lgr->links_limit)
		return NULL;
	return best;
}

/* -- our end and the peer's -- */

void
llc_fill_add_link(struct llc_add_link *m, const struct link *link)
{
	memcpy(m->mac, link->info.mac, sizeof(m->mac));
	memcpy(m->gid, link->info.gid.b, sizeof(m->gid));
	m->qpn = link->qpn;
	m->psn = link->qp->psn;
	m->link_num = link->number;
	m->mtu_code = link->mtu_code;
	m->mpa_port = link->info.mpa_port;
}

struct rnic_remote
llc_remote_of(const struct llc_add_link *m)
{
	struct rnic_remote r = { .qpn = m->qpn, .psn = m->psn, .mtu_code = m->mtu_code, .mpa_port = m->mpa_port };

	memcpy(r.gid.b, m->gid, sizeof(r.gid.b));
	memcpy(r.mac, m->mac, sizeof(r.mac));
	return r;
}

/* -- RTokens -- */

/* Our next RMB in the exchange, by number. */
static const struct rmb *
next_rmb(const struct lgr *lgr, uint32_t after)
{
	const struct rmb *next = NULL;

	LIST_FOREACH(n, &lgr->rmbs) {
		const struct rmb *rmb = CONTAINER_OF(n, struct rmb, node);

		if (rmb->number > after && (next == NULL || rmb->number < next->number))
			next = rmb;
	}
	return next;
}

void
llc_begin_cont(struct lgr *lgr)
{
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];

	f->left = (uint8_t)lgr->rmb_cnt;
	f->sent = 0;
	f->cont_seen = false;
	f->peer_left = 0;
}

void
llc_fill_cont(struct lgr *lgr, struct llc_add_link_cont *m)
{
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];

	m->link_num = f->number;
	m->left_cnt = f->left;
	for (unsigned i = 0; i < LLC_PAIRS_PER_CONT && f->left > 0; i++, f->left--) {
		const struct rmb *rmb = next_rmb(lgr, f->sent);

		/* Deleted since it was counted: our DELETE RKEY and the server's ADD LINK have crossed. Its place is empty. */
		if (rmb == NULL)
			continue;

		m->pairs[i].old_rkey = rmb->mr[f->link->slot]->rkey;
		m->pairs[i].new_rkey = rmb->mr[f->new_link->slot]->rkey;
		m->pairs[i].new_vaddr = rmb->mr[f->new_link->slot]->addr;
		f->sent = rmb->number;
	}
}

/* One that we do not know is no error: its CONFIRM RKEY was refused, or lost, and comes again. */
static void
take_pair(struct lgr *lgr, const struct llc_rkey_pair *pair)
{
	const struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];

	LIST_FOREACH(n, &lgr->remote_rmbs) {
		struct remote_rmb *rr = CONTAINER_OF(n, struct remote_rmb, node);

		/* Several RMBs may be registered as one region, with one rkey. */
		if (!rr->on[f->link->slot].known || rr->on[f->link->slot].rkey != pair->old_rkey ||
		    rr->on[f->new_link->slot].known)
			continue;
		rr->on[f->new_link->slot].known = true;
		rr->on[f->new_link->slot].rkey = pair->new_rkey;
		rr->on[f->new_link->slot].addr = pair->new_vaddr;
		return;
	}
}

const char *
llc_take_cont(struct lgr *lgr, const struct llc_add_link_cont *m)
{
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];

	if (m->link_num != f->number)
		return "ADD LINK CONTINUATION names another link";
	/* Fewer than it said before are all right: Linux counts the RMBs of its connections, which may have ended since. */
	if (f->cont_seen && m->left_cnt > f->peer_left)
		return "ADD LINK CONTINUATION out of sequence";
	f->cont_seen = true;
	f->peer_left = m->left_cnt;
	for (unsigned i = 0; i < LLC_PAIRS_PER_CONT && f->peer_left > 0; i++, f->peer_left--)
		take_pair(lgr, &m->pairs[i]);
	return NULL;
}

void
llc_cont_out_of_place(struct link *link, const struct llc_add_link_cont *m)
{
	if (m->link_num != 0 && m->link_num == link->lgr->flow[LLC_FLOW_LINK].number)
		link->lgr->eng->ctr.llc_ignored++; /* of the exchange that we have given up */
	else
		llc_protocol_error(link, "unexpected ADD LINK CONTINUATION");
}

bool
llc_knows_all_rmbs(struct lgr *lgr, const struct link *link)
{
	LIST_FOREACH(n, &lgr->remote_rmbs) {
		struct remote_rmb *rr = CONTAINER_OF(n, struct remote_rmb, node);

		if (rr->on[link->slot].known)
			continue;
		/* The peer has told all that it has: this one is no more, though its DELETE RKEY was refused, or lost. */
		if (rr->used > 0)
			return false;
		remote_rmb_free(lgr, rr);
	}
	return true;
}

int64_t
llc_offer_due(struct lgr *lgr, int64_t at_once, int64_t every_ns)
{
	int64_t now = lgr->eng->now_ns;

	if (lgr->add_due_ns < now)
		lgr->add_due_ns = now;
	if (lgr->add_due_ns - now > (at_once - 1) * every_ns) {
		lgr->eng->ctr.llc_limited++;
		return lgr->add_due_ns - (at_once - 1) * every_ns;
	}
	lgr->add_due_ns += every_ns;
	return 0;
}

/* -- how it ends -- */

void
llc_add_failed(struct lgr *lgr)
{
	const struct smcr_config *cfg = &lgr->eng->cfg;

	lgr->eng->ctr.add_link_failed++;
	lgr->add_retry_ms = lgr->add_retry_ms == 0 ? cfg->add_link_retry_ms : lgr->add_retry_ms * 2;
	if (lgr->add_retry_ms > cfg->add_link_retry_max_ms)
		lgr->add_retry_ms = cfg->add_link_retry_max_ms;
	if (lgr->state != LGR_DEAD && lgr->links_limit > 1)
		engine_arm(lgr->eng, &lgr->add_retry, lgr->add_retry_ms);
}

void
llc_add_over(struct lgr *lgr, bool ok)
{
	llc_done(lgr, LLC_FLOW_LINK);
	if (ok) {
		lgr->eng->ctr.links_added++;
		lgr->add_retry_ms = 0;
		timer_cancel(&lgr->eng->timers, &lgr->add_retry);
	} else {
		llc_add_failed(lgr);
	}
	if (lgr->state == LGR_FORMING)
		rdv_group_ready(lgr);
}

void
llc_new_link_up(struct link *link)
{
	struct lgr *lgr = link->lgr;

	link_set_active(link);
	lgr->want_link = lgr->want_link || (lgr->role == SMCR_SERVER && llc_can_add(lgr));
	llc_add_over(lgr, true);
}

void
llc_add_link_over(struct lgr *lgr)
{
	if (lgr->flow[LLC_FLOW_LINK].step == LLC_WAIT_ADD_LINK)
		llc_add_over(lgr, false);
}

void
llc_new_link_connected(struct link *link)
{
	if (link->lgr->role == SMCR_CLIENT)
		llc_client_connected(link->lgr);
	else
		llc_server_connected(link->lgr);
}

/* -- a device is there -- */

/* A client tells the server that it has a device to spare (3.5.5.1.2); nothing has to come of it. */
void
llc_tell_of_device(struct lgr *lgr)
{
	struct link *over = lgr_pick_link(lgr);
	struct llc_msg msg = { .type = LLC_ADD_LINK };
	enum use use = USE_SYMMETRIC;
	struct rnic_dev *dev = least_used(lgr, &use);
	struct rnic_info info;

	if (dev == NULL || use == USE_SYMMETRIC || over == NULL || lgr_symmetric_cnt(lgr) >= lgr->links_limit)
		return;
	info = rnic_query(dev);
	memcpy(msg.add_link.mac, info.mac, sizeof(info.mac));
	memcpy(msg.add_link.gid, info.gid.b, sizeof(info.gid.b));
	msg.add_link.mtu_code = info.mtu_code;
	(void)link_send_llc(over, &msg);
}

void
llc_device_appeared(struct lgr *lgr)
{
	if (lgr->state != LGR_ACTIVE || lgr->links_limit < 2)
		return;
	llc_want_link(lgr);
}

void
llc_group_active(struct lgr *lgr)
{
	if (lgr->role == SMCR_SERVER && lgr->active_cnt > 1 && llc_can_add(lgr))
		llc_want_link(lgr);
}
