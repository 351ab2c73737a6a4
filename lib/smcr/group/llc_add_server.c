/*
 * ADD LINK, the server's side: it alone makes links (RFC 7609 3.5.1.6,
 * 3.5.5.1.1). ADD LINK, the answer, RTokens in both directions, CONFIRM LINK
 * over the new link.
 */
#include <string.h>

#include "smcr/group/llc_impl.h"

#define FYI_EVERY_NS (1000 * MS)
/* A link that breaks as soon as it is there is not made anew without end: all of a group may be made at once, and one each
 * interval. */
#define OFFERS_AT_ONCE (SMCR_LINKS_MAX - 1)
#define OFFER_EVERY_NS (200 * MS)

/* An iWARP client connects before it answers, and may take as long as for any answer. */
static uint32_t
answer_ms(const struct link *link)
{
	uint32_t ms = link->lgr->eng->cfg.llc_ms;

	return link->info.transport == RNIC_TRANSPORT_IWARP ? 2 * ms : ms;
}

bool
llc_offer_link(struct link *over)
{
	struct lgr *lgr = over->lgr;
	struct rnic_dev *dev = topology_device_to_offer(lgr);
	struct llc_msg msg = { .type = LLC_ADD_LINK };
	struct link *link;
	int64_t due_ns;

	if (dev == NULL)
		return false;
	due_ns = llc_offer_due(lgr, OFFERS_AT_ONCE, OFFER_EVERY_NS);
	if (due_ns > 0) {
		timer_arm(&lgr->eng->timers, &lgr->add_retry, due_ns);
		return false;
	}
	if (link_new(lgr, dev, &link) < 0) {
		llc_add_failed(lgr);
		return false;
	}
	link->number = llc_next_number(lgr);
	llc_fill_add_link(&msg.add_link, link);
	if (dev->ops->qp_expect(link->qp) < 0 || link_send_llc(over, &msg) < 0) {
		link_retire(link, "not offered");
		llc_add_failed(lgr);
		return false;
	}
	llc_start(lgr, LLC_FLOW_LINK, LLC_WAIT_ADD_LINK_RSP, over, answer_ms(link));
	lgr->flow[LLC_FLOW_LINK].new_link = link;
	lgr->flow[LLC_FLOW_LINK].number = link->number;
	return true;
}

void
llc_want_link(struct lgr *lgr)
{
	lgr->want_link = true;
	mark_exchanges(lgr);
}

/* The client knows of the new link, and has to agree that it is none (3.5.1.6.2): a DELETE LINK exchange follows, which
 * first contact waits for. */
void
llc_server_add_failed(struct lgr *lgr, const char *why)
{
	struct link *link = lgr->flow[LLC_FLOW_LINK].new_link;

	link_lost(link, why);
	link->delete_reason = LLC_DELETE_LOST_PATH;
	llc_done(lgr, LLC_FLOW_LINK);
	llc_add_failed(lgr);
	if (lgr->state == LGR_FORMING)
		llc_delete_lost(link);
}

static void
send_cont(struct lgr *lgr)
{
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];
	struct llc_msg msg = { .type = LLC_ADD_LINK_CONT };

	llc_fill_cont(lgr, &msg.add_link_cont);
	if (link_send_llc(f->link, &msg) < 0)
		link_lost(f->link, "ADD LINK CONTINUATION could not be sent");
	else
		llc_start(lgr, LLC_FLOW_LINK, LLC_WAIT_ADD_CONT_RSP, f->link, lgr->eng->cfg.llc_ms);
}

/* NULL, or why the link that the client answers with cannot be. */
static const char *
check_answer(const struct lgr *lgr, const struct link *link, const struct llc_add_link *m)
{
	struct rnic_gid gid;

	memcpy(gid.b, m->gid, sizeof(gid.b));
	if (link_has_ended(link))
		return "the new link broke before it was answered";
	if (clc_mtu_bytes(m->mtu_code) == 0)
		return "ADD LINK response with a bad MTU";
	if (topology_is_parallel(lgr, link->dev, &gid, m->mac))
		return "the client's answer would make a parallel link";
	return NULL;
}

static void
accepted(struct lgr *lgr, const struct llc_add_link *m)
{
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];
	struct link *link = f->new_link;
	struct rnic_remote r = llc_remote_of(m);
	const char *wrong = check_answer(lgr, link, m);

	if (wrong != NULL) {
		llc_server_add_failed(lgr, wrong);
		return;
	}
	link_set_remote(link, &r);
	if (link->dev->ops->qp_connect(link->qp, RNIC_PASSIVE, &link->remote) < 0) {
		llc_server_add_failed(lgr, "the queue pair could not be connected");
		return;
	}
	llc_begin_cont(lgr);
	send_cont(lgr);
}

void
llc_add_link_rsp(struct link *link, const struct llc_msg *msg)
{
	struct lgr *lgr = link->lgr;
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];

	if (msg->add_link.link_num != f->number) {
		lgr->eng->ctr.llc_ignored++; /* late: the exchange timed out meanwhile */
		return;
	}
	if (!msg->add_link.rejected) {
		accepted(lgr, &msg->add_link);
		return;
	}
	lgr->eng->ctr.add_link_rejected++;
	link_retire(f->new_link, "rejected by the client");
	llc_add_ended(lgr, false);
}

static void
confirm_new(struct lgr *lgr)
{
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];

	if (!f->new_link->connected)
		llc_start(lgr, LLC_FLOW_LINK, LLC_WAIT_NEW_CONNECTED, f->link, lgr->eng->cfg.llc_ms);
	else if (llc_send_confirm_link(f->new_link, false) < 0)
		llc_server_add_failed(lgr, "CONFIRM LINK could not be sent");
	else
		llc_start(lgr, LLC_FLOW_LINK, LLC_WAIT_NEW_CONFIRM_RSP, f->link, lgr->eng->cfg.llc_ms);
}

void
llc_server_connected(struct lgr *lgr)
{
	if (lgr->flow[LLC_FLOW_LINK].step == LLC_WAIT_NEW_CONNECTED)
		confirm_new(lgr);
}

void
llc_add_cont_rsp(struct link *link, const struct llc_msg *msg)
{
	struct lgr *lgr = link->lgr;
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];
	const char *wrong = llc_take_cont(lgr, &msg->add_link_cont);
	if (wrong != NULL)
		llc_protocol_error(link, wrong); /* as a link outage (C.7.1) */
	else if (f->left > 0 || f->peer_left > 0)
		send_cont(lgr);
	else if (!llc_knows_all_rmbs(lgr, f->new_link))
		llc_server_add_failed(lgr, "the client did not tell the RTokens of all RMBs");
	else
		confirm_new(lgr);
}

/*
 * The client has a device to spare, and says so without being asked (3.5.5.1.2). Each offer costs a queue pair: once in a
 * while it is made at once, and the retry comes the sooner for the next. How long it waits after a rejection is not forgotten.
 */
void
llc_add_link_fyi(struct link *link, const struct llc_msg *msg)
{
	struct lgr *lgr = link->lgr;

	(void)msg;
	if (lgr->eng->now_ns >= lgr->fyi_due_ns) {
		lgr->fyi_due_ns = lgr->eng->now_ns + FYI_EVERY_NS;
		llc_want_link(lgr);
		return;
	}
	lgr->eng->ctr.llc_limited++;
	if (timer_armed(&lgr->add_retry) && lgr->add_retry.at_ns <= lgr->fyi_due_ns)
		return;
	timer_arm(&lgr->eng->timers, &lgr->add_retry, lgr->fyi_due_ns);
	lgr->fyi_due_ns += FYI_EVERY_NS;
}

/* Timeouts of C.7.1; the new link may have broken before. */
void
llc_server_add_timeout(struct lgr *lgr, enum llc_step step)
{
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];
	struct link *over = f->link;
	bool first = lgr->state == LGR_FORMING;

	if (step == LLC_WAIT_ADD_LINK_RSP) {
		/* At first contact C.7.1 would reset; 3.5.1.6.2, C.8 and Linux go on with one link. */
		link_retire(f->new_link, "ADD LINK without an answer");
		llc_add_ended(lgr, false);
		if (first)
			return;
		llc_doubt(over, "ADD LINK without an answer");
	} else if (step == LLC_WAIT_ADD_CONT_RSP && !first) {
		llc_server_add_failed(lgr, "ADD LINK CONTINUATION without an answer");
		llc_doubt(over, "ADD LINK CONTINUATION without an answer");
	} else {
		llc_server_add_failed(lgr, "the new link was not confirmed");
	}
}
