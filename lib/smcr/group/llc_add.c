/*
 * ADD LINK, what both sides share (RFC 7609 3.5.1.6): the exchange of RTokens
 * in ADD LINK CONTINUATIONs (3.5.5.2.3), and how an attempt ends (C.8). Which
 * devices a new link joins is in topology.c.
 */
#include <string.h>

#include "smcr/group/llc_impl.h"

/* -- our end and the peer's -- */

uint8_t
llc_next_number(struct lgr *lgr)
{
	for (;;) {
		uint8_t number = lgr->next_link_number++;
		bool used = number == 0;

		LGR_EACH_LINK(l, lgr)
			used = used || (l->state != LINK_FREE && l->number == number);
		if (!used)
			return number;
	}
}

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

	LIST_EACH(const struct rmb, rmb, &lgr->rmbs, node) {
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

	LIST_EACH(struct remote_rmb, rr, &lgr->remote_rmbs, node) {
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

/* A CONTINUATION that is not awaited. */
void
llc_add_cont_late(struct link *link, const struct llc_msg *msg)
{
	uint8_t number = msg->add_link_cont.link_num;

	if (number != 0 && number == link->lgr->flow[LLC_FLOW_LINK].number)
		link->lgr->eng->ctr.llc_ignored++; /* of the exchange that we have given up */
	else
		llc_protocol_error(link, "unexpected ADD LINK CONTINUATION");
}

bool
llc_knows_all_rmbs(struct lgr *lgr, const struct link *link)
{
	LIST_EACH(struct remote_rmb, rr, &lgr->remote_rmbs, node) {
		if (rr->on[link->slot].known)
			continue;
		/* The peer has named all that it has: this one is gone, though its DELETE RKEY was refused, or lost. */
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
llc_add_ended(struct lgr *lgr, bool ok)
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
		mark_contact_ready(lgr);
}

void
llc_new_link_up(struct link *link)
{
	struct lgr *lgr = link->lgr;

	link_set_active(link);
	lgr->want_link = lgr->want_link || (lgr->role == SMCR_SERVER && topology_can_add(lgr));
	llc_add_ended(lgr, true);
}

void
llc_no_add_link(struct lgr *lgr)
{
	if (lgr->flow[LLC_FLOW_LINK].step == LLC_WAIT_ADD_LINK)
		llc_add_ended(lgr, false);
}

void
llc_link_connected(struct link *link)
{
	if (link->lgr->flow[LLC_FLOW_LINK].new_link != link)
		return;
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
	struct rnic_dev *dev = topology_spare_device(lgr);
	struct rnic_info info;

	if (dev == NULL || over == NULL)
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
	if (lgr->role == SMCR_SERVER && lgr->active_cnt > 1 && topology_can_add(lgr))
		llc_want_link(lgr);
}
