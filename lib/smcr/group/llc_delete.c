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
/* How long a client leaves it to the server to find a link lost: Linux tests one that nothing came over for 30 s, and waits 2 s for
 * the answer, as it is set up without a word. */
#define SERVER_NOTICES_MS 40000
/* How often a deletion is asked for before it is taken for agreed: the peer lives, and has nothing to say to it. */
#define ASKED_MAX 2

/* Why a link or group ends, and why a link ends that only the peer has found fault with, or has no use for. */
struct why {
	uint32_t reason;
	const char *ours, *peers;
};

static const struct why *
why(uint32_t reason)
{
	static const struct why known[] = {
		{ LLC_DELETE_LOST_PATH, "DELETE LINK: lost path", "peer: lost path" },
		{ LLC_DELETE_OPERATOR, "DELETE LINK: operator", "peer: operator" },
		{ LLC_DELETE_PROGRAM, "DELETE LINK: idle", "peer: DELETE LINK" },
		{ LLC_DELETE_PROTOCOL, "DELETE LINK: protocol violation", "peer: protocol violation" },
		{ LLC_DELETE_ASYM_NOT_NEEDED, "DELETE LINK: asymmetric link no longer needed",
		    "peer: asymmetric link no longer needed" },
		{ 0, "DELETE LINK", "peer: DELETE LINK" },
	};
	const struct why *w = known;

	while (w->reason != 0 && w->reason != reason)
		w++;
	return w;
}

/* Of a link that ends in order: ours only for the reason that this end had itself. Who sends DELETE LINK says nothing of that: the
 * server does, for the client, too; and it may name any reason. */
static const char *
why_deleted(const struct link *gone, uint32_t reason)
{
	const struct why *w = why(reason);

	return gone->delete_wanted != 0 && gone->delete_wanted == reason ? w->ours : w->peers;
}

const char *
llc_retired_why(const struct link *link)
{
	return link->retiring && link->delete_sent ? why_deleted(link, link->delete_reason) : NULL;
}

/* -- the whole group -- */

void
llc_delete_group(struct lgr *lgr, uint32_t reason)
{
	struct link *link = lgr_pick_link(lgr);
	struct llc_msg msg = { .type = LLC_DELETE_LINK,
		.delete_link = { .all = true, .orderly = true, .reason = reason } };
	enum llc_step next = lgr->role == SMCR_SERVER ? LLC_WAIT_DELETE_LINK_SENT : LLC_WAIT_DELETE_LINK;

	if (lgr->flow[LLC_FLOW_LINK].new_link != NULL)
		link_retire(lgr->flow[LLC_FLOW_LINK].new_link, "the group ends");
	llc_done(lgr, LLC_FLOW_LINK);
	lgr->delete_why = why(reason)->ours;
	lgr->delete_reason = reason;
	if (link == NULL || link_send_llc(link, &msg) < 0)
		lgr_down(lgr, SMCR_R_GROUP_DELETED, lgr->delete_why);
	else
		llc_start(lgr, LLC_FLOW_LINK, next, link, lgr->eng->cfg.llc_ms);
}

/* -- one link: sending -- */

static int
send_delete(struct link *over, const struct link *gone)
{
	struct llc_msg msg = { .type = LLC_DELETE_LINK };

	msg.delete_link.link_num = gone->number;
	msg.delete_link.reason = gone->delete_reason != 0 ? gone->delete_reason : LLC_DELETE_LOST_PATH;
	msg.delete_link.orderly = gone->state == LINK_ACTIVE;
	return link_send_llc(over, &msg);
}

void
llc_delete_link(struct link *gone)
{
	struct lgr *lgr = gone->lgr;
	struct link *over = lgr_pick_link(lgr);

	if (over == NULL || gone->delete_sent)
		return;
	gone->delete_sent = true;
	gone->delete_over = over->number;
	gone->delete_cnt++;
	if (lgr->role == SMCR_SERVER) {
		llc_start(lgr, LLC_FLOW_LINK, LLC_WAIT_DELETE_LINK_RSP, over, lgr->eng->cfg.llc_ms);
		lgr->flow[LLC_FLOW_LINK].gone = gone;
	} else {
		engine_arm(lgr->eng, &gone->delete_timer, DELETION_ANSWERS * lgr->eng->cfg.llc_ms);
	}
	if (send_delete(over, gone) < 0)
		link_lost(over, "DELETE LINK could not be sent");
}

/* A server does it when no other exchange is under way. */
static void
ask_again(struct link *gone)
{
	gone->delete_sent = false;
	gone->lgr->eng->ctr.delete_link_resent++;
	if (gone->lgr->role == SMCR_CLIENT)
		llc_delete_link(gone);
}

/* The server would wait for completions that never come. */
static bool
would_hang(const struct link *gone)
{
	const struct lgr *lgr = gone->lgr;

	return lgr->state == LGR_ACTIVE && gone->was_active && lgr->dialect.deletes_when_complete &&
	    gone->info.retries_forever;
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
	if (would_hang(link))
		engine_arm(lgr->eng, &link->delete_timer, SERVER_NOTICES_MS);
	else
		llc_delete_link(link);
	/* A request that it was to carry went with it. */
	LGR_EACH_LINK(l, lgr)
		if (l->state == LINK_LOST && l->delete_sent && l->delete_over == link->number)
			ask_again(l);
}

/* Both sides know that the link is no more. */
static void
deleted(struct link *gone, const char *text)
{
	struct lgr *lgr = gone->lgr;
	/* A new link that failed is tried again by its timer (C.8). */
	bool wanted = gone->was_active && gone->delete_reason != LLC_DELETE_ASYM_NOT_NEEDED &&
	    gone->delete_reason != LLC_DELETE_OPERATOR;

	gone->path_lost = gone->path_lost || gone->delete_reason == LLC_DELETE_LOST_PATH;
	link_retire(gone, gone->down_why != NULL ? gone->down_why : text);
	if (lgr->state == LGR_FORMING && gone->order != 0)
		mark_contact_ready(lgr);
	else if (lgr->state == LGR_ACTIVE && wanted)
		llc_link_missed(lgr);
}

/* -- C.7.1 -- */

static void
unanswered(struct link *gone)
{
	if (gone->delete_cnt >= ASKED_MAX)
		deleted(gone, "DELETE LINK without an answer");
	else
		ask_again(gone);
}

/* Whether the peer lives is not known yet, and the request may be as late as the test: nothing is agreed, nor asked again. */
static bool
awaits_test(const struct link *over)
{
	return over != NULL && over->state == LINK_ACTIVE && over->test_pending;
}

void
llc_deletion_fired(struct timer *t)
{
	struct link *link = CONTAINER_OF(t, struct link, delete_timer);
	struct lgr *lgr = link->lgr;
	struct link *over = lgr_link_by_number(lgr, link->delete_over);

	if (!link->delete_sent && lgr->state == LGR_ACTIVE) {
		llc_delete_link(link);
		return;
	}
	if (awaits_test(over)) {
		engine_arm(lgr->eng, &link->delete_timer, lgr->eng->cfg.llc_ms);
		return;
	}
	lgr->eng->ctr.llc_timeouts++;
	if (lgr->state == LGR_FORMING) {
		mark_contact_broken(lgr, SMCR_R_LLC_TIMEOUT, "no DELETE LINK from the server");
		return;
	}
	if (over != NULL)
		llc_ask_alive(over, "DELETE LINK without an answer");
	if (lgr->state == LGR_ACTIVE && link->state == LINK_LOST)
		unanswered(link);
}

void
llc_delete_timeout(struct lgr *lgr)
{
	struct link *over = lgr->flow[LLC_FLOW_LINK].link, *gone = lgr->flow[LLC_FLOW_LINK].gone;

	if (lgr->state == LGR_FORMING) {
		mark_contact_broken(lgr, SMCR_R_LLC_TIMEOUT, "DELETE LINK without an answer");
		return;
	}
	if (awaits_test(over)) {
		engine_arm(lgr->eng, &lgr->flow[LLC_FLOW_LINK].timer, lgr->eng->cfg.llc_ms);
		return;
	}
	llc_done(lgr, LLC_FLOW_LINK);
	llc_ask_alive(over, "DELETE LINK without an answer");
	unanswered(gone);
}

/* -- in order: connections leave first -- */

static int
retire(struct link *link, uint32_t reason)
{
	struct lgr *lgr = link->lgr;

	link->delete_reason = reason;
	link->retiring = true;
	if (lgr->role == SMCR_SERVER) {
		mark_exchanges(lgr);
		return 0;
	}
	struct link *over = lgr_pick_link(lgr);
	int err = over != NULL ? send_delete(over, link) : -ENOTCONN;
	link->retiring = err == 0;
	return err;
}

int
llc_retire_link(struct link *link, uint32_t reason)
{
	int err;

	if (link->retiring)
		return 0;
	err = retire(link, reason);
	if (err == 0)
		link->delete_wanted = reason;
	return err;
}

void
llc_drain_link(struct link *gone, struct link *over, uint32_t ms)
{
	gone->retiring = true;
	llc_start(gone->lgr, LLC_FLOW_LINK, LLC_DRAIN_LINK, over, ms);
	gone->lgr->flow[LLC_FLOW_LINK].gone = gone;
	failover_drain(gone);
	mark_exchanges(gone->lgr);
}

static void
answer(struct link *link, const struct llc_delete_link *req, uint32_t reason)
{
	struct llc_msg msg = { .type = LLC_DELETE_LINK, .response = true, .delete_link = *req };

	msg.delete_link.reason = reason;
	(void)link_send_llc(link, &msg);
}

/* Client: the answer goes out though it may travel on the very link that ends (3.5.5.1.3). */
static void
comply(struct link *over, struct link *gone, const struct llc_delete_link *req)
{
	answer(over, req, req->reason);
	deleted(gone, why_deleted(gone, req->reason));
}

/* No connection is left on it, or those that are left have had their time: they go as from a lost link. */
void
llc_drained(struct lgr *lgr)
{
	struct link *gone = lgr->flow[LLC_FLOW_LINK].gone, *over = lgr->flow[LLC_FLOW_LINK].link;

	if (lgr->role == SMCR_SERVER) {
		llc_delete_link(gone);
		return;
	}
	llc_done(lgr, LLC_FLOW_LINK);
	if (link_has_ended(over))
		over = lgr_pick_link(lgr);
	if (over != NULL)
		comply(over, gone, &lgr->delete_req);
}

/* Linux says "orderly" of a link whose queue pair it has destroyed: nothing can be drained from a lost path. */
static bool
is_orderly(const struct llc_delete_link *m)
{
	return m->orderly && m->reason != LLC_DELETE_LOST_PATH;
}

/* -- server: a client asks, the server does it (3.5.5.1.4) -- */

static void
asked_for_one(struct link *gone, const struct llc_delete_link *m)
{
	struct lgr *lgr = gone->lgr;
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];

	gone->delete_reason = m->reason;
	/* The messages have crossed. What Linux says of a link that it has lost is all that it says: it drops ours. */
	if (f->step == LLC_WAIT_DELETE_LINK_RSP && f->gone == gone && !is_orderly(m)) {
		llc_done(lgr, LLC_FLOW_LINK);
		deleted(gone, why_deleted(gone, m->reason));
		return;
	}
	if (gone->state == LINK_LOST || (gone->retiring && is_orderly(m)))
		return; /* its deletion is under way, or will be */
	if (gone == f->new_link)
		llc_add_failed(lgr, "the client gave the new link up");
	else if (is_orderly(m))
		(void)retire(gone, m->reason);
	else
		link_lost(gone, why(m->reason)->peers); /* the exchange follows when no other is under way */
}

/* The client wants the whole group to end (3.5.4). Our DELETE LINK answers; the group, with RST for its connections,
 * goes when that is complete, or after llc_ms. */
static void
asked_for_all(struct lgr *lgr, const struct llc_delete_link *m)
{
	bool is_joined = false;

	/* A connection is past our Accept, which has crossed the client's request: it will decline. */
	LIST_EACH(const struct smcr_conn, conn, &lgr->conns, lgr_node)
		is_joined = is_joined || conn->state == CONN_RENDEZVOUS;
	/* During first contact there is nothing to be ended in order. */
	if (lgr->state == LGR_FORMING)
		lgr_down(lgr, SMCR_R_GROUP_DELETED, why(m->reason)->ours);
	else if (m->all && m->orderly && is_joined)
		lgr->end_wanted = true;
	else if (lgr->state == LGR_ACTIVE)
		lgr_delete(lgr, m->reason);
}

void
llc_delete_link_from_client(struct link *link, const struct llc_msg *msg)
{
	struct lgr *lgr = link->lgr;
	const struct llc_delete_link *m = &msg->delete_link;
	struct link *gone = m->all ? NULL : lgr_link_by_number(lgr, m->link_num);

	if (m->all || (gone != NULL && gone->state == LINK_ACTIVE && lgr->active_cnt <= 1))
		asked_for_all(lgr, m);
	else if (gone == NULL)
		answer(link, m, LLC_DELETE_UNKNOWN_LINK);
	else
		asked_for_one(gone, m);
}

void
llc_delete_link_rsp(struct link *link, const struct llc_msg *msg)
{
	struct lgr *lgr = link->lgr;
	struct link *gone = lgr->flow[LLC_FLOW_LINK].gone;

	if (gone == NULL || msg->delete_link.link_num != gone->number) {
		lgr->eng->ctr.llc_ignored++;
		return;
	}
	llc_done(lgr, LLC_FLOW_LINK);
	deleted(gone, why_deleted(gone, gone->delete_reason));
}

/* -- client -- */

void
llc_delete_link_from_server(struct link *link, const struct llc_msg *msg)
{
	struct lgr *lgr = link->lgr;
	const struct llc_delete_link *m = &msg->delete_link;
	struct link *gone = m->all ? NULL : lgr_link_by_number(lgr, m->link_num);

	if (m->all) {
		if (m->orderly && lgr->state == LGR_ACTIVE)
			lgr_set_state(lgr, LGR_DELETING, NULL);
		lgr_down(lgr, SMCR_R_GROUP_DELETED, why(m->reason)->ours);
		return;
	}
	if (gone == NULL) {
		answer(link, m, LLC_DELETE_UNKNOWN_LINK);
		return;
	}
	gone->delete_reason = m->reason;
	if (gone == lgr->flow[LLC_FLOW_LINK].new_link) {
		answer(link, m, m->reason);
		link_retire(gone, "the server gave the new link up");
		llc_add_ended(lgr, false);
	} else if (is_orderly(m) && gone->state == LINK_ACTIVE && lgr->active_cnt > 1 &&
	    llc_is_idle(lgr, LLC_FLOW_LINK)) {
		lgr->delete_req = *m; /* answered when the link is drained */
		llc_drain_link(gone, link, lgr->eng->cfg.llc_ms / 2);
	} else {
		comply(link, gone, m);
	}
}

/* The server does not know the link: it is as good as deleted. */
void
llc_delete_link_unknown(struct link *link, const struct llc_msg *msg)
{
	struct link *gone = lgr_link_by_number(link->lgr, msg->delete_link.link_num);

	if (gone != NULL && gone->state == LINK_LOST)
		deleted(gone, why_deleted(gone, gone->delete_reason));
	else
		link->lgr->eng->ctr.llc_ignored++;
}
