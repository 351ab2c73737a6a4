/*
 * DELETE LINK: the end of one link, because it is lost or of no more use,
 * and of a whole group (RFC 7609 3.5.4, 3.5.5.1.3, 3.5.5.1.4). The server
 * deletes; a client that has lost a link tells it so and waits for the deletion.
 */
#include <errno.h>

#include "smcr/data/conn.h"
#include "smcr/data/failover.h"
#include "smcr/group/llc_impl.h"

/* How long a client waits for the deletion it asked for, in answer times: the server may be busy with a new link first. */
#define DELETION_ANSWERS 5
/* How often a deletion is asked for before it is taken for agreed: the peer lives, and has nothing to say to it. */
#define ASKED_MAX 2

static void deleted(struct link *gone, const char *why);

/* The client's request to delete, anew. */
static void
ask_again(struct link *link)
{
	link->delete_sent = false;
	link->lgr->eng->ctr.delete_link_resent++;
	llc_tell_lost(link);
}

static void
deletion_fired(struct timer *t)
{
	struct link *link = CONTAINER_OF(t, struct link, delete_timer);
	struct lgr *lgr = link->lgr;
	struct link *over = llc_link_by_number(lgr, link->delete_over);

	lgr->eng->ctr.llc_timeouts++;
	if (lgr->state == LGR_FORMING) {
		mark_contact_broken(lgr, SMCR_R_LLC_TIMEOUT, "no DELETE LINK from the server");
		return;
	}
	if (over != NULL)
		llc_doubt(over, "DELETE LINK without an answer");
	if (lgr->state != LGR_ACTIVE || link->state != LINK_LOST)
		return;
	if (link->delete_cnt >= ASKED_MAX)
		deleted(link, "DELETE LINK without an answer");
	else
		ask_again(link);
}

void
llc_init_link(struct link *link)
{
	timer_init(&link->keepalive, NULL);
	timer_init(&link->delete_timer, deletion_fired);
}

static const char *
delete_text(uint32_t reason)
{
	switch (reason) {
	case LLC_DELETE_LOST_PATH:
		return "DELETE LINK: lost path";
	case LLC_DELETE_OPERATOR:
		return "DELETE LINK: operator";
	case LLC_DELETE_PROGRAM:
		return "DELETE LINK: idle";
	case LLC_DELETE_PROTOCOL:
		return "DELETE LINK: protocol violation";
	case LLC_DELETE_ASYM_NOT_NEEDED:
		return "DELETE LINK: asymmetric link no longer needed";
	default:
		return "DELETE LINK";
	}
}

/* Why a link ended that only the peer has found fault with, or has no use for. */
static const char *
peer_text(uint32_t reason)
{
	switch (reason) {
	case LLC_DELETE_LOST_PATH:
		return "peer: lost path";
	case LLC_DELETE_OPERATOR:
		return "peer: operator";
	case LLC_DELETE_PROTOCOL:
		return "peer: protocol violation";
	case LLC_DELETE_ASYM_NOT_NEEDED:
		return "peer: asymmetric link no longer needed";
	default:
		return "peer: DELETE LINK";
	}
}

/* -- the whole group -- */

void
llc_delete_group(struct lgr *lgr, uint32_t reason)
{
	struct link *link = lgr_pick_link(lgr);
	struct llc_msg msg = { .type = LLC_DELETE_LINK };
	bool server = lgr->role == SMCR_SERVER;

	if (lgr->flow[LLC_FLOW_LINK].new_link != NULL)
		link_retire(lgr->flow[LLC_FLOW_LINK].new_link, "the group ends");
	llc_done(lgr, LLC_FLOW_LINK);
	lgr->delete_why = delete_text(reason);
	lgr->delete_reason = reason;
	msg.delete_link.all = true;
	msg.delete_link.orderly = true;
	msg.delete_link.reason = reason;
	if (link == NULL || link_send_llc(link, &msg) < 0) {
		lgr_down(lgr, SMCR_R_GROUP_DELETED, lgr->delete_why);
		return;
	}
	llc_start(
	    lgr, LLC_FLOW_LINK, server ? LLC_WAIT_DELETE_LINK_SENT : LLC_WAIT_DELETE_LINK, link, lgr->eng->cfg.llc_ms);
}

/* -- one link: sending -- */

static int
send_delete(struct link *over, const struct link *gone, bool orderly)
{
	struct llc_msg msg = { .type = LLC_DELETE_LINK };

	msg.delete_link.link_num = gone->number;
	msg.delete_link.reason = gone->delete_reason != 0 ? gone->delete_reason : LLC_DELETE_LOST_PATH;
	msg.delete_link.orderly = orderly;
	return link_send_llc(over, &msg);
}

/* The server's DELETE LINK for a link, lost or drained. */
static void
request_delete(struct link *gone, bool orderly)
{
	struct lgr *lgr = gone->lgr;
	struct link *over = lgr_pick_link(lgr);

	if (over == NULL)
		return;
	gone->delete_sent = true;
	gone->delete_cnt++;
	llc_start(lgr, LLC_FLOW_LINK, LLC_WAIT_DELETE_LINK_RSP, over, lgr->eng->cfg.llc_ms);
	lgr->flow[LLC_FLOW_LINK].gone = gone;
	if (send_delete(over, gone, orderly) < 0)
		link_lost(over, "DELETE LINK could not be sent");
}

void
llc_delete_lost(struct link *link)
{
	request_delete(link, false);
}

void
llc_tell_lost(struct link *link)
{
	struct lgr *lgr = link->lgr;
	struct link *over = lgr_pick_link(lgr);

	if (over == NULL || link->delete_sent)
		return;
	link->delete_sent = true;
	link->delete_over = over->number;
	link->delete_cnt++;
	engine_arm(lgr->eng, &link->delete_timer, DELETION_ANSWERS * lgr->eng->cfg.llc_ms);
	if (send_delete(over, link, false) < 0)
		link_lost(over, "DELETE LINK could not be sent");
}

void
llc_link_gone(struct link *link)
{
	struct lgr *lgr = link->lgr;

	if (link->state != LINK_LOST)
		return;
	if (lgr->role != SMCR_CLIENT) {
		mark_exchanges(lgr);
		return;
	}
	llc_tell_lost(link);
	/* A request that it was to carry went with it. */
	LGR_EACH_LINK(l, lgr)
		if (l->state == LINK_LOST && l->delete_sent && l->delete_over == link->number)
			ask_again(l);
}

/* Both sides know that the link is no more. */
static void
deleted(struct link *gone, const char *why)
{
	struct lgr *lgr = gone->lgr;
	/* A new link that failed is tried again by its timer (C.8). */
	bool wanted = gone->was_active && gone->delete_reason != LLC_DELETE_ASYM_NOT_NEEDED &&
	    gone->delete_reason != LLC_DELETE_OPERATOR;

	link_retire(gone, gone->down_why != NULL ? gone->down_why : why);
	if (lgr->state == LGR_FORMING && gone->order != 0)
		mark_contact_ready(lgr);
	else if (lgr->state == LGR_ACTIVE && lgr->role == SMCR_SERVER && wanted)
		llc_want_link(lgr);
}

/* Linux says "orderly" of a link whose queue pair it has destroyed: nothing can be drained from a lost path. */
static bool
is_orderly(const struct llc_delete_link *m)
{
	return m->orderly && m->reason != LLC_DELETE_LOST_PATH;
}

/* -- one link: server -- */

void
llc_delete_link_rsp(struct link *link, const struct llc_msg *msg)
{
	struct lgr *lgr = link->lgr;
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];
	struct link *gone = f->gone;

	if (gone == NULL || msg->delete_link.link_num != gone->number) {
		lgr->eng->ctr.llc_ignored++;
		return;
	}
	llc_done(lgr, LLC_FLOW_LINK);
	deleted(gone, delete_text(gone->delete_reason));
}

static void
answer(struct link *link, const struct llc_msg *req, uint32_t reason)
{
	struct llc_msg msg = *req;

	msg.response = true;
	msg.delete_link.reason = reason;
	(void)link_send_llc(link, &msg);
}

/* A client asks; the server does it (3.5.5.1.4). */
static void
asked_for_one(struct link *gone, const struct llc_delete_link *m)
{
	struct lgr *lgr = gone->lgr;

	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];

	gone->delete_reason = m->reason;
	/* The messages have crossed. What Linux says of a link that it has lost is all that it says: it drops ours. */
	if (f->step == LLC_WAIT_DELETE_LINK_RSP && f->gone == gone && !is_orderly(m)) {
		llc_done(lgr, LLC_FLOW_LINK);
		deleted(gone, peer_text(m->reason));
		return;
	}
	if (gone->state == LINK_LOST || (gone->retiring && is_orderly(m)))
		return; /* its deletion is under way, or will be */
	if (gone == lgr->flow[LLC_FLOW_LINK].new_link)
		llc_add_failed(lgr, "the client gave the new link up");
	else if (is_orderly(m))
		llc_retire_link(gone, m->reason);
	else
		link_lost(gone, peer_text(m->reason)); /* the exchange follows when no other is under way */
}

/* A connection is past our Accept, which has crossed the client's request: it will decline. */
static bool
is_being_joined(const struct lgr *lgr)
{
	LIST_EACH(const struct smcr_conn, conn, &lgr->conns, lgr_node)
		if (conn->state == CONN_RENDEZVOUS)
			return true;
	return false;
}

/*
 * The client wants the whole group to end (3.5.4). Our DELETE LINK answers; the group, with RST for its connections, goes when
 * that is complete, or after llc_ms.
 */
static void
asked_for_all(struct lgr *lgr, const struct llc_delete_link *m)
{
	/* During first contact there is nothing to be ended in order. */
	if (lgr->state == LGR_FORMING)
		lgr_down(lgr, SMCR_R_GROUP_DELETED, delete_text(m->reason));
	else if (m->all && m->orderly && is_being_joined(lgr))
		lgr->end_wanted = true;
	else if (lgr->state == LGR_ACTIVE)
		lgr_delete(lgr, m->reason);
}

void
llc_delete_link_from_client(struct link *link, const struct llc_msg *msg)
{
	struct lgr *lgr = link->lgr;
	const struct llc_delete_link *m = &msg->delete_link;
	struct link *gone = m->all ? NULL : llc_link_by_number(lgr, m->link_num);

	if (m->all || (gone != NULL && gone->state == LINK_ACTIVE && lgr->active_cnt <= 1)) {
		asked_for_all(lgr, m);
		return;
	}
	if (gone == NULL) {
		answer(link, msg, LLC_DELETE_UNKNOWN_LINK);
		return;
	}
	asked_for_one(gone, m);
}

/* -- one link: client -- */

/* The answer goes out though it may travel on the very link that ends (3.5.5.1.3). */
static void
comply(struct link *over, struct link *gone, const struct llc_msg *req)
{
	answer(over, req, req->delete_link.reason);
	deleted(gone, peer_text(req->delete_link.reason));
}

static void
keep_answer(struct link *over, struct link *gone, const struct llc_msg *req)
{
	struct lgr *lgr = gone->lgr;

	lgr->delete_req = req->delete_link;
	gone->retiring = true;
	llc_start(lgr, LLC_FLOW_LINK, LLC_DRAIN_LINK, over, lgr->eng->cfg.llc_ms / 2);
	lgr->flow[LLC_FLOW_LINK].gone = gone;
	failover_drain(gone);
	mark_exchanges(lgr);
}

void
llc_delete_link_from_server(struct link *link, const struct llc_msg *msg)
{
	struct lgr *lgr = link->lgr;
	const struct llc_delete_link *m = &msg->delete_link;
	struct link *gone;

	if (m->all) {
		lgr_down(lgr, SMCR_R_GROUP_DELETED, delete_text(m->reason));
		return;
	}
	gone = llc_link_by_number(lgr, m->link_num);
	if (gone == NULL) {
		answer(link, msg, LLC_DELETE_UNKNOWN_LINK);
		return;
	}
	gone->delete_reason = m->reason;
	if (gone == lgr->flow[LLC_FLOW_LINK].new_link) {
		answer(link, msg, m->reason);
		link_retire(gone, "the server gave the new link up");
		llc_add_ended(lgr, false);
	} else if (is_orderly(m) && gone->state == LINK_ACTIVE && lgr->active_cnt > 1 &&
	    llc_is_idle(lgr, LLC_FLOW_LINK)) {
		keep_answer(link, gone, msg);
	} else {
		comply(link, gone, msg);
	}
}

/* The server does not know the link: it is as good as deleted. */
void
llc_delete_link_unknown(struct link *link, const struct llc_msg *msg)
{
	struct link *gone = llc_link_by_number(link->lgr, msg->delete_link.link_num);

	if (gone != NULL && gone->state == LINK_LOST)
		deleted(gone, delete_text(gone->delete_reason));
	else
		link->lgr->eng->ctr.llc_ignored++;
}

/* -- in order: connections leave first -- */

int
llc_retire_link(struct link *link, uint32_t reason)
{
	struct lgr *lgr = link->lgr;
	struct link *over;
	int err = 0;

	if (link->retiring)
		return 0;
	link->delete_reason = reason;
	link->retiring = true;
	if (lgr->role == SMCR_SERVER) {
		mark_exchanges(lgr);
		return 0;
	}
	over = lgr_pick_link(lgr);
	err = over != NULL ? send_delete(over, link, true) : -ENOTCONN;
	link->retiring = err == 0;
	return err;
}

void
llc_start_retiring(struct link *link)
{
	struct lgr *lgr = link->lgr;

	llc_start(lgr, LLC_FLOW_LINK, LLC_DRAIN_LINK, NULL, lgr->eng->cfg.llc_ms);
	lgr->flow[LLC_FLOW_LINK].gone = link;
	failover_drain(link);
	mark_exchanges(lgr);
}

/* No connection is left on it, or those that are left have had their time: they go as from a lost link. */
void
llc_drained(struct lgr *lgr)
{
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];
	struct link *gone = f->gone, *over = f->link;
	struct llc_msg req = { .type = LLC_DELETE_LINK, .delete_link = lgr->delete_req };

	if (lgr->role == SMCR_SERVER) {
		request_delete(gone, true);
		return;
	}
	llc_done(lgr, LLC_FLOW_LINK);
	if (link_has_ended(over))
		over = lgr_pick_link(lgr);
	if (over != NULL)
		comply(over, gone, &req);
}

/* -- C.7.1 -- */

void
llc_delete_timeout(struct lgr *lgr)
{
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];
	struct link *over = f->link, *gone = f->gone;

	if (lgr->state == LGR_FORMING) {
		mark_contact_broken(lgr, SMCR_R_LLC_TIMEOUT, "DELETE LINK without an answer");
		return;
	}
	llc_done(lgr, LLC_FLOW_LINK);
	llc_doubt(over, "DELETE LINK without an answer");
	if (gone->delete_cnt >= ASKED_MAX) {
		deleted(gone, "DELETE LINK without an answer");
		return;
	}
	gone->delete_sent = false;
	lgr->eng->ctr.delete_link_resent++;
}
