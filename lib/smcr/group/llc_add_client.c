/*
 * ADD LINK, the client's side (RFC 7609 3.5.1.6.1): it finds a device for the
 * server's offer, connects, answers, tells its RTokens, and waits for CONFIRM
 * LINK over the new link.
 */
#include <string.h>

#include "smcr/group/llc_impl.h"

/* More, and more often, than a server of ours makes (llc_add_server.c): on its way, one may catch up with the one before. */
#define OFFERS_AT_ONCE 8
#define OFFER_EVERY_NS (100 * MS)

static void
reject(struct link *over, const struct llc_add_link *req, uint8_t reason)
{
	struct llc_msg msg = { .type = LLC_ADD_LINK, .response = true, .add_link = *req };

	msg.add_link.rejected = true;
	msg.add_link.reject_reason = reason;
	over->lgr->eng->ctr.add_link_rejected++;
	(void)link_send_llc(over, &msg); /* a full queue is a broken link, which reports itself */
}

/* The server has given up the attempt that we are at, and makes another. */
static void
drop_attempt(struct lgr *lgr)
{
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];

	if (f->new_link == NULL)
		return;
	link_retire(f->new_link, "the server has begun anew");
	llc_done(lgr, LLC_FLOW_LINK);
}

/* 0, or the reason to reject the offer. */
static uint8_t
connect_new(struct link *over, const struct llc_add_link *m, struct link **out)
{
	struct lgr *lgr = over->lgr;
	struct rnic_remote r = llc_remote_of(m);
	struct rnic_dev *dev;
	if (clc_mtu_bytes(m->mtu_code) == 0)
		return LLC_REJECT_BAD_MTU;
	dev = m->link_num != 0 && llc_link_by_number(lgr, m->link_num) == NULL ? topology_device_for(lgr, &r.gid, r.mac)
	                                                                       : NULL;
	if (dev == NULL)
		return LLC_REJECT_NO_ALT_PATH;
	if (!topology_may_dial(lgr->eng, dev, &r.gid, &lgr->owner.remote)) {
		engine_log(lgr->eng, SMCR_LOG_REFUSED, lgr, over, NOT_DIALED);
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
	struct link *new_link = NULL;
	uint8_t reason = LLC_REJECT_NO_ALT_PATH;

	drop_attempt(lgr);
	if (lgr->state != LGR_DELETING && llc_offer_due(lgr, OFFERS_AT_ONCE, OFFER_EVERY_NS) == 0)
		reason = connect_new(link, &msg->add_link, &new_link);
	if (reason != 0) {
		reject(link, &msg->add_link, reason);
		if (lgr->state == LGR_FORMING && lgr->flow[LLC_FLOW_LINK].step == LLC_WAIT_ADD_LINK)
			llc_add_ended(lgr, false);
		return;
	}
	llc_start(lgr, LLC_FLOW_LINK, LLC_CONNECT_NEW, link, lgr->eng->cfg.llc_ms);
	lgr->flow[LLC_FLOW_LINK].new_link = new_link;
	lgr->flow[LLC_FLOW_LINK].number = new_link->number;
}

/* Connected: a blocked port would have been a rejection by now. */
void
llc_client_connected(struct lgr *lgr)
{
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];
	struct link *link = f->new_link;
	struct llc_msg msg = { .type = LLC_ADD_LINK, .response = true };

	if (f->step != LLC_CONNECT_NEW)
		return;
	llc_fill_add_link(&msg.add_link, link);
	llc_begin_cont(lgr);
	if (link_send_llc(f->link, &msg) < 0)
		link_lost(f->link, "ADD LINK could not be answered");
	else
		llc_start(lgr, LLC_FLOW_LINK, LLC_WAIT_ADD_CONT, f->link, lgr->eng->cfg.llc_ms);
}

void
llc_add_cont_req(struct link *link, const struct llc_msg *msg)
{
	struct lgr *lgr = link->lgr;
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];
	struct llc_msg rsp = { .type = LLC_ADD_LINK_CONT, .response = true };
	const char *wrong = llc_take_cont(lgr, &msg->add_link_cont);

	if (wrong != NULL) {
		llc_protocol_error(link, wrong);
		return;
	}
	llc_fill_cont(lgr, &rsp.add_link_cont);
	if (link_send_llc(link, &rsp) < 0)
		link_lost(link, "ADD LINK CONTINUATION could not be answered");
	else if (f->left > 0 || f->peer_left > 0)
		llc_start(lgr, LLC_FLOW_LINK, LLC_WAIT_ADD_CONT, link, lgr->eng->cfg.llc_ms);
	else if (!llc_knows_all_rmbs(lgr, f->new_link))
		llc_client_add_failed(lgr, "the server did not tell the RTokens of all RMBs");
	else
		llc_start(lgr, LLC_FLOW_LINK, LLC_WAIT_NEW_CONFIRM, link, 2 * lgr->eng->cfg.llc_ms);
}

/* The server counts on the new link, or will: it has to take it back (C.7.1). First contact waits for that. */
void
llc_client_add_failed(struct lgr *lgr, const char *why)
{
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];
	struct link *link = f->new_link, *over = f->link;

	if (f->step == LLC_CONNECT_NEW) {
		struct llc_add_link m = { .link_num = f->number };

		link_retire(link, why);
		reject(over, &m, LLC_REJECT_NO_ALT_PATH);
		llc_add_ended(lgr, false);
		return;
	}
	link_lost(link, why);
	link->delete_reason = LLC_DELETE_LOST_PATH;
	llc_done(lgr, LLC_FLOW_LINK);
	llc_add_failed(lgr);
	llc_tell_lost(link);
}

/* Timeouts of C.7.1. */
void
llc_client_add_timeout(struct lgr *lgr, enum llc_step step)
{
	struct link *over = lgr->flow[LLC_FLOW_LINK].link;

	if (step == LLC_WAIT_ADD_LINK) {
		/* C.7.1 would reset; C.8 and Linux go on with one link. */
		llc_add_ended(lgr, false);
	} else if (step == LLC_WAIT_ADD_CONT && lgr->state != LGR_FORMING) {
		llc_client_add_failed(lgr, "no ADD LINK CONTINUATION from the server");
		llc_doubt(over, "no ADD LINK CONTINUATION from the server");
	} else if (step == LLC_WAIT_ADD_CONT) {
		mark_contact_broken(lgr, SMCR_R_LLC_TIMEOUT, "no ADD LINK CONTINUATION from the server");
	} else {
		llc_client_add_failed(lgr, "the new link was not confirmed");
	}
}
