/* ADD LINK. Only the server creates links (RFC 7609 3.5.1.6, 3.5.5.1.1). It offers one; the client finds a device,
 * connects and responds. Both send their RTokens in CONTINUATIONs (3.5.5.2.3), in version 2 with ADD LINK and its
 * response. CONFIRM LINK uses the new link. A failed attempt is repeated (C.7.1, C.8). Devices: topology.c. */
#include <string.h>

#include "base/minmax.h"
#include "smcr/group/llc_impl.h"

/* Limits the repetition of a link that breaks at once: a burst of all links of a group, then one per interval. */
#define OFFERS_AT_ONCE (SMCR_LINKS_MAX - 1)
#define OFFER_EVERY_NS (200 * MS)
/* A client accepts more, and more often, than our servers offer: an offer may catch up with the previous one. */
#define TAKEN_AT_ONCE 8
#define TAKE_EVERY_NS (100 * MS)

uint8_t
llc_next_number(struct lgr *lgr)
{
	for (;;) {
		uint8_t number = lgr->next_link_number++;

		if (number != 0 && !LGR_ANY_LINK(l, lgr, l->state != LINK_FREE && l->number == number))
			return number;
	}
}

/* -- local end of a new link, for ADD LINK and its response; remote end from those -- */

/* Sends ADD LINK or its response; in version 2 with all our RTokens. 0 or a negative errno. */
static int
send_add_link(struct link *over, const struct link *link, bool response)
{
	struct lgr *lgr = over->lgr;
	uint8_t pairs[LLC_MAX_PAIRS * LLC_PAIR_LEN];
	struct llc_msg msg = { .type = LLC_ADD_LINK, .response = response, .add_link.pairs = pairs };
	struct llc_add_link *m = &msg.add_link;

	memcpy(m->mac, link->info.mac, sizeof(m->mac));
	memcpy(m->gid, link->info.gid.b, sizeof(m->gid));
	m->qpn = link->qpn;
	m->psn = link->qp->psn;
	m->link_num = link->number;
	m->mtu_code = link->mtu_code;
	m->mpa_port = link->info.mpa_port;
	memcpy(m->client_gid, response ? link->info.gid.b : topology_client_gid(lgr, over), sizeof(m->client_gid));
	m->direct = topology_reach(link->dev, response ? link->remote.gid.b : m->client_gid) != RNIC_REACH_GATEWAY;
	if (lgr->version == LLC_VERSION_2)
		LIST_EACH(const struct rmb, rmb, &lgr->rmbs, node)
			llc_pair_put(pairs, m->pair_cnt++,
			    &(struct llc_rkey_pair){
			        rmb->mr[over->slot]->rkey, rmb->mr[link->slot]->rkey, rmb->mr[link->slot]->addr });
	return link_send_llc(over, &msg);
}

static struct rnic_remote
remote_of(const struct llc_add_link *m)
{
	struct rnic_remote r = { .qpn = m->qpn, .psn = m->psn, .mtu_code = m->mtu_code, .mpa_port = m->mpa_port };

	memcpy(r.gid.b, m->gid, sizeof(r.gid.b));
	memcpy(r.mac, m->mac, sizeof(r.mac));
	return r;
}

/* -- end of an attempt -- */

/* Schedules another attempt (C.8). */
static void
retry_later(struct lgr *lgr)
{
	lgr->eng->ctr.add_link_failed++;
	lgr->add_failures++;
	lgr->add_rejected = false;
	llc_ask_later(lgr);
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
		retry_later(lgr);
	}
	if (lgr->state == LGR_FORMING)
		mark_contact(lgr, CONTACT_READY, 0, SMCR_OK, NULL);
}

static void
llc_add_reject(struct link *over, const struct llc_add_link *req, uint8_t reason)
{
	struct llc_msg msg = { .type = LLC_ADD_LINK, .response = true, .add_link = *req };

	msg.add_link.rejected = true;
	msg.add_link.reject_reason = reason;
	over->lgr->eng->ctr.add_link_rejected++;
	(void)link_send_llc(over, &msg); /* a full queue is a broken link, which is handled elsewhere */
}

void
llc_add_failed(struct lgr *lgr, const char *why)
{
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];
	struct link *link = f->new_link;

	if (f->step == LLC_CONNECT_NEW) {
		link_retire(link, why);
		llc_add_reject(f->link, &(struct llc_add_link){ .link_num = f->number }, LLC_REJECT_NO_ALT_PATH);
		llc_add_ended(lgr, false);
		return;
	}
	/* The peer counts on the link, or will, and must agree to its end, even at first contact (3.5.1.6.2, C.7.1). */
	link_lost(link, why);
	link->delete_reason = LLC_DELETE_LOST_PATH;
	llc_done(lgr, LLC_FLOW_LINK);
	retry_later(lgr);
	if (lgr->role == SMCR_CLIENT || lgr->state == LGR_FORMING)
		llc_delete_link(link);
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
	/* C.7.1 requires a reset; C.8 and Linux continue with one link. */
	if (lgr->flow[LLC_FLOW_LINK].step == LLC_WAIT_ADD_LINK)
		llc_add_ended(lgr, false);
}

/* -- timeouts of C.7.1; the new link may have broken before -- */

void
llc_add_link_timeout(struct lgr *lgr)
{
	struct link *over = lgr->flow[LLC_FLOW_LINK].link;
	bool first = lgr->state == LGR_FORMING;

	/* At first contact C.7.1 requires a reset; 3.5.1.6.2, C.8 and Linux continue with one link. */
	link_retire(lgr->flow[LLC_FLOW_LINK].new_link, "ADD LINK without an answer");
	llc_add_ended(lgr, false);
	if (!first)
		llc_ask_alive(over, "ADD LINK without an answer");
}

void
llc_add_cont_timeout(struct lgr *lgr)
{
	struct link *over = lgr->flow[LLC_FLOW_LINK].link;
	const char *why = lgr->role == SMCR_CLIENT ? "no ADD LINK CONTINUATION from the server"
	                                           : "ADD LINK CONTINUATION without an answer";

	if (lgr->state != LGR_FORMING) {
		llc_add_failed(lgr, why);
		llc_ask_alive(over, why);
	} else if (lgr->role == SMCR_CLIENT) {
		mark_contact(lgr, CONTACT_BROKEN, 0, SMCR_R_LLC_TIMEOUT, why);
	} else {
		llc_new_link_timeout(lgr);
	}
}

void
llc_new_link_timeout(struct lgr *lgr)
{
	llc_add_failed(lgr, "the new link was not confirmed");
}

/* -- the server's offer -- */

/* Each offer of a link, sent or accepted, costs a queue pair and the registration of all memory: limited to a burst and
 * one per interval. 0: allowed; else (counted) when the next one is. */
static int64_t
offer_due(struct lgr *lgr, int64_t at_once, int64_t every_ns)
{
	int64_t now = lgr->eng->now_ns;

	lgr->add_due_ns = max_i64(lgr->add_due_ns, now);
	if (lgr->add_due_ns - now > (at_once - 1) * every_ns) {
		lgr->eng->ctr.llc_limited++;
		return lgr->add_due_ns - (at_once - 1) * every_ns;
	}
	lgr->add_due_ns += every_ns;
	return 0;
}

bool
llc_offer_link(struct link *over)
{
	struct lgr *lgr = over->lgr;
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];
	struct rnic_dev *dev = topology_device_to_offer(lgr);
	uint32_t ms = lgr->eng->cfg.llc_ms;
	struct link *link;

	if (dev == NULL)
		return false;
	int64_t due_ns = offer_due(lgr, OFFERS_AT_ONCE, OFFER_EVERY_NS);
	if (due_ns > 0) {
		timer_arm(&lgr->eng->timers, &lgr->add_retry, due_ns);
		return false;
	}
	if (link_new(lgr, dev, &link) < 0) {
		retry_later(lgr);
		return false;
	}
	link->number = llc_next_number(lgr);
	if (dev->ops->qp_expect(link->qp) < 0 || send_add_link(over, link, false) < 0) {
		link_retire(link, "not offered");
		retry_later(lgr);
		return false;
	}
	/* An iWARP client connects before it responds, and may take the time of another response. */
	llc_start(lgr, LLC_FLOW_LINK, LLC_WAIT_ADD_LINK_RSP, over, rnic_is_iwarp(link->info.transport) ? 2 * ms : ms);
	f->new_link = link;
	f->number = link->number;
	lgr->asked_over = 0;
	return true;
}

/* -- the peer's RTokens -- */

/* An unknown RToken is no error: its CONFIRM RKEY was refused or lost and is repeated, or is late (llc_rkey.c). */
static void
take_pair(struct lgr *lgr, const struct llc_rkey_pair *pair)
{
	const struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];

	LIST_EACH(struct remote_rmb, rr, &lgr->remote_rmbs, node) {
		struct rtoken *known = &rr->on[f->link->slot], *added = &rr->on[f->new_link->slot];

		/* Several RMBs may be registered as one region, with one rkey. */
		if (!known->known || known->rkey != pair->old_rkey || added->known)
			continue;
		*added = (struct rtoken){ true, pair->new_rkey, pair->new_vaddr };
		return;
	}
	if (f->new_link->rtokens_ahead < UINT8_MAX)
		f->new_link->rtokens_ahead++;
}

/* The peer has sent its RTokens. False: that of an RMB in use is missing, and the attempt has failed. */
static bool
has_all_rtokens(struct lgr *lgr)
{
	LIST_EACH(struct remote_rmb, rr, &lgr->remote_rmbs, node) {
		if (rr->on[lgr->flow[LLC_FLOW_LINK].new_link->slot].known)
			continue;
		if (rr->used > 0) {
			llc_add_failed(lgr,
			    lgr->role == SMCR_CLIENT ? "the server did not send the RTokens of all RMBs"
			                             : "the client did not send the RTokens of all RMBs");
			return false;
		}
		remote_rmb_free(lgr, rr); /* it is deleted, but its DELETE RKEY was refused or lost */
	}
	return true;
}

/* Version 2: the RTokens came with ADD LINK. As has_all_rtokens; true in version 1. */
static bool
take_pairs(struct lgr *lgr, const struct llc_add_link *m)
{
	for (unsigned i = 0; i < m->pair_cnt; i++) {
		struct llc_rkey_pair pair = llc_pair_get(m->pairs, i);

		take_pair(lgr, &pair);
	}
	return lgr->version == LLC_VERSION || has_all_rtokens(lgr);
}

/* -- the client's response -- */

/* 0, or the reason to reject the offer. */
static uint8_t
connect_new(struct link *over, const struct llc_add_link *m, struct link **out)
{
	struct lgr *lgr = over->lgr;
	struct rnic_remote r = remote_of(m);
	struct rnic_dev *dev = NULL;

	if (clc_mtu_bytes(m->mtu_code) == 0)
		return LLC_REJECT_BAD_MTU;
	if (m->link_num != 0 && lgr_link_by_number(lgr, m->link_num) == NULL)
		dev = topology_device_for(lgr, &r.gid, r.mac);
	if (dev == NULL)
		return LLC_REJECT_NO_ALT_PATH;
	if (!topology_may_dial(lgr->eng, dev, &r.gid, &lgr->owner.remote)) {
		engine_log(SMCR_LOG_REFUSED, lgr, over, 0, NOT_DIALED);
		return LLC_REJECT_NO_ALT_PATH;
	}
	if (link_new(lgr, dev, out) < 0)
		return LLC_REJECT_NO_ALT_PATH;
	(*out)->number = m->link_num;
	link_set_remote(*out, &r);
	if (dev->ops->qp_connect((*out)->qp, RNIC_ACTIVE, &(*out)->remote) < 0) {
		link_retire(*out, "the queue pair could not be connected");
		return LLC_REJECT_NO_ALT_PATH;
	}
	return 0;
}

void
llc_add_link_req(struct link *link, const struct llc_msg *msg)
{
	struct lgr *lgr = link->lgr;
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];
	struct link *new_link = NULL;
	uint8_t reason = LLC_REJECT_NO_ALT_PATH;

	if (f->new_link != NULL) {
		link_retire(f->new_link, "the server started a new exchange");
		llc_done(lgr, LLC_FLOW_LINK);
	}
	if (lgr->state != LGR_DELETING && offer_due(lgr, TAKEN_AT_ONCE, TAKE_EVERY_NS) == 0)
		reason = connect_new(link, &msg->add_link, &new_link);
	if (reason != 0) {
		llc_add_reject(link, &msg->add_link, reason);
		llc_no_add_link(lgr);
		return;
	}
	llc_start(lgr, LLC_FLOW_LINK, LLC_CONNECT_NEW, link, lgr->eng->cfg.llc_ms);
	f->new_link = new_link;
	f->number = new_link->number;
	(void)take_pairs(lgr, &msg->add_link);
}

/* -- RTokens in CONTINUATIONs: version 1 -- */

static void
begin_cont(struct lgr *lgr)
{
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];

	f->left = (uint8_t)lgr->rmb_cnt;
	f->sent = 0;
	f->cont_seen = false;
	f->peer_left = 0;
}

/* Sends our next RTokens, by RMB number, and awaits the peer's. False: the link is lost. */
static bool
send_cont(struct lgr *lgr)
{
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];
	bool client = lgr->role == SMCR_CLIENT;
	struct llc_msg msg = { .type = LLC_ADD_LINK_CONT, .response = client };
	struct llc_add_link_cont *m = &msg.add_link_cont;

	m->link_num = f->number;
	m->left_cnt = f->left;
	for (unsigned i = 0; i < LLC_PAIRS_PER_CONT && f->left > 0; i++, f->left--) {
		const struct rmb *next = NULL;

		LIST_EACH(const struct rmb, rmb, &lgr->rmbs, node)
			if (rmb->number > f->sent && (next == NULL || rmb->number < next->number))
				next = rmb;
		/* Deleted since it was counted: our DELETE RKEY crossed ADD LINK. Its entry stays empty. */
		if (next == NULL)
			continue;
		m->pairs[i] = (struct llc_rkey_pair){ next->mr[f->link->slot]->rkey, next->mr[f->new_link->slot]->rkey,
			next->mr[f->new_link->slot]->addr };
		f->sent = next->number;
	}
	if (link_send_llc(f->link, &msg) < 0) {
		link_lost(f->link,
		    client ? "ADD LINK CONTINUATION could not be answered" : "ADD LINK CONTINUATION could not be sent");
		return false;
	}
	llc_start(
	    lgr, LLC_FLOW_LINK, client ? LLC_WAIT_ADD_CONT : LLC_WAIT_ADD_CONT_RSP, f->link, lgr->eng->cfg.llc_ms);
	return true;
}

static void
llc_add_not_awaited(struct link *link, const struct llc_add_link_cont *m, const char *why)
{
	struct lgr *lgr = link->lgr;
	const struct link *named = lgr_link_by_number(lgr, m->link_num);
	/* Of an abandoned exchange whose link has ended: behind other messages it may come after the next exchange. */
	bool is_late = m->link_num != 0 &&
	    (named == NULL || link_has_ended(named) || m->link_num == lgr->flow[LLC_FLOW_LINK].number);

	if (is_late)
		lgr->eng->ctr.llc_ignored++;
	else
		llc_protocol_error(link, why);
}

/* Takes the peer's RTokens. False: unexpected or invalid, and the link is lost (C.7.1). */
static bool
take_cont(struct link *link, const struct llc_add_link_cont *m)
{
	struct llc_flow *f = &link->lgr->flow[LLC_FLOW_LINK];

	if (m->link_num != f->number) {
		llc_add_not_awaited(link, m, "ADD LINK CONTINUATION names another link");
		return false;
	}
	/* Fewer than announced are allowed: Linux counts the RMBs of its connections, which may have ended since. */
	if (f->cont_seen && m->left_cnt > f->peer_left) {
		llc_protocol_error(link, "ADD LINK CONTINUATION out of sequence");
		return false;
	}
	f->cont_seen = true;
	f->peer_left = m->left_cnt;
	for (unsigned i = 0; i < LLC_PAIRS_PER_CONT && f->peer_left > 0; i++, f->peer_left--)
		take_pair(link->lgr, &m->pairs[i]);
	return true;
}

void
llc_add_cont_req(struct link *link, const struct llc_msg *msg)
{
	struct lgr *lgr = link->lgr;
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];

	if (take_cont(link, &msg->add_link_cont) && send_cont(lgr) && f->left == 0 && f->peer_left == 0 &&
	    has_all_rtokens(lgr))
		llc_start(lgr, LLC_FLOW_LINK, LLC_WAIT_NEW_CONFIRM, link, 2 * lgr->eng->cfg.llc_ms);
}

/* Server: sends CONFIRM LINK when the new queue pair is connected. */
static void
confirm_new(struct lgr *lgr)
{
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];

	if (!f->new_link->connected)
		llc_start(lgr, LLC_FLOW_LINK, LLC_WAIT_NEW_CONNECTED, f->link, lgr->eng->cfg.llc_ms);
	else if (llc_send_confirm_link(f->new_link, false) < 0)
		llc_add_failed(lgr, "CONFIRM LINK could not be sent");
	else
		llc_start(lgr, LLC_FLOW_LINK, LLC_WAIT_NEW_CONFIRM_RSP, f->link, lgr->eng->cfg.llc_ms);
}

void
llc_add_cont_rsp(struct link *link, const struct llc_msg *msg)
{
	struct lgr *lgr = link->lgr;
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];

	if (!take_cont(link, &msg->add_link_cont))
		return;
	if (f->left > 0 || f->peer_left > 0)
		(void)send_cont(lgr);
	else if (has_all_rtokens(lgr))
		confirm_new(lgr);
}

void
llc_add_cont_late(struct link *link, const struct llc_msg *msg)
{
	llc_add_not_awaited(link, &msg->add_link_cont, "unexpected ADD LINK CONTINUATION");
}

/* -- after the client's response, or its connected queue pair: RTokens -- */

static void
join_new(struct link *link, const struct llc_add_link *m, const struct rnic_remote *r)
{
	struct lgr *lgr = link->lgr;

	link_set_remote(link, r);
	if (!take_pairs(lgr, m))
		return;
	if (link->dev->ops->qp_connect(link->qp, RNIC_PASSIVE, &link->remote) < 0) {
		llc_add_failed(lgr, "the queue pair could not be connected");
	} else if (lgr->version == LLC_VERSION_2) {
		confirm_new(lgr);
	} else {
		begin_cont(lgr);
		(void)send_cont(lgr);
	}
}

void
llc_add_link_rsp(struct link *over, const struct llc_msg *msg)
{
	const struct llc_add_link *m = &msg->add_link;
	struct lgr *lgr = over->lgr;
	struct link *link = lgr->flow[LLC_FLOW_LINK].new_link;
	struct rnic_remote r = remote_of(m);

	if (m->link_num != lgr->flow[LLC_FLOW_LINK].number) {
		lgr->eng->ctr.llc_ignored++; /* late: the exchange has timed out */
	} else if (m->rejected) {
		lgr->eng->ctr.add_link_rejected++;
		link_retire(link, "rejected by the client");
		llc_add_ended(lgr, false);
		lgr->add_rejected = true;
	} else if (link_has_ended(link)) {
		llc_add_failed(lgr, "the new link broke before it was answered");
	} else if (clc_mtu_bytes(m->mtu_code) == 0) {
		llc_add_failed(lgr, "ADD LINK response with a bad MTU");
	} else if (topology_is_parallel(lgr, link->dev, &r.gid, r.mac)) {
		llc_add_failed(lgr, "the client's answer would make a parallel link");
	} else if (lgr->version == LLC_VERSION_2 && topology_reach(link->dev, r.gid.b) == RNIC_REACH_NONE) {
		llc_add_failed(lgr, "no route to the client's port");
	} else {
		join_new(link, m, &r);
	}
}

void
llc_link_connected(struct link *link)
{
	struct lgr *lgr = link->lgr;
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK], *rkey = &lgr->flow[LLC_FLOW_RKEY];

	if (f->new_link == link && f->step == LLC_WAIT_NEW_CONNECTED)
		confirm_new(lgr);
	if (f->new_link != link || f->step != LLC_CONNECT_NEW)
		return;
	/* Client: a blocked port would have caused a rejection by now. */
	begin_cont(lgr);
	/* Our RTokens for the new link may overtake a CONFIRM RKEY on another link. */
	rkey->overtaken = rkey->step == LLC_WAIT_CONFIRM_RKEY_RSP && rkey->link != f->link;
	if (send_add_link(f->link, link, true) < 0)
		llc_add_failed(lgr, "ADD LINK could not be answered");
	else if (lgr->version == LLC_VERSION_2)
		llc_start(lgr, LLC_FLOW_LINK, LLC_WAIT_NEW_CONFIRM, f->link, 2 * lgr->eng->cfg.llc_ms);
	else
		llc_start(lgr, LLC_FLOW_LINK, LLC_WAIT_ADD_CONT, f->link, lgr->eng->cfg.llc_ms);
}
