/* DELETE LINK: end of one link, lost or not needed, and of a whole group (RFC 7609 3.5.4, 3.5.5.1.3, 3.5.5.1.4). The
 * server deletes; a client with a lost link requests the deletion and waits for it. */
#include <errno.h>

#include "smcr/data/conn.h"
#include "smcr/data/failover.h"
#include "smcr/group/llc_impl.h"

/* A client's limit for the requested deletion, in response times: the server may be busy with a new link. */
#define DELETION_ANSWERS 5
/* A client's limit for the server to detect a lost link. Linux tests after 30 s idle, and waits 2 s. */
#define SERVER_NOTICES_MS 40000
/* Requests of a deletion before it is taken as agreed: the peer is alive, but does not respond. */
#define ASKED_MAX 2

/* Reasons for the end of a link or group, and for a link that only the peer wants to end. */
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

/* For a link that ends in order: our text only for a reason of this end. The sender of DELETE LINK proves nothing: the
 * server sends it for the client as well, with any reason. */
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

/* -- whole group -- */

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

/* A server repeats it when no other exchange is in progress. */
static void
ask_again(struct link *gone)
{
	gone->delete_sent = false;
	gone->lgr->eng->ctr.delete_link_resent++;
	if (gone->lgr->role == SMCR_CLIENT)
		llc_delete_link(gone);
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
	/* Else the server would wait for completions that never come. */
	bool would_hang = lgr->state == LGR_ACTIVE && link->was_active && lgr->dialect.deletes_when_complete &&
	    link->info.retries_forever;
	if (would_hang)
		engine_arm(lgr->eng, &link->delete_timer, SERVER_NOTICES_MS);
	else
		llc_delete_link(link);
	/* Requests that it carried are lost with it. */
	LGR_EACH_LINK(l, lgr)
		if (l->state == LINK_LOST && l->delete_sent && l->delete_over == link->number)
			ask_again(l);
}

/* Both sides agree that the link is deleted. */
static void
deleted(struct link *gone, const char *text)
{
	struct lgr *lgr = gone->lgr;
	/* Its timer retries a new link that failed (C.8). */
	bool wanted = gone->was_active && gone->delete_reason != LLC_DELETE_ASYM_NOT_NEEDED &&
	    gone->delete_reason != LLC_DELETE_OPERATOR;

	gone->path_lost = gone->path_lost || gone->delete_reason == LLC_DELETE_LOST_PATH;
	link_retire(gone, gone->down_why != NULL ? gone->down_why : text);
	if (lgr->state == LGR_FORMING && gone->order != 0)
		mark_contact(lgr, CONTACT_READY, 0, SMCR_OK, NULL);
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

/* The peer may be dead, and the request as late as the test: neither agree nor repeat yet. */
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
		mark_contact(lgr, CONTACT_BROKEN, 0, SMCR_R_LLC_TIMEOUT, "no DELETE LINK from the server");
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
		mark_contact(lgr, CONTACT_BROKEN, 0, SMCR_R_LLC_TIMEOUT, "DELETE LINK without an answer");
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
	if (link->retiring)
		return 0;
	int err = retire(link, reason);
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
	LIST_EACH(struct smcr_conn, conn, &gone->lgr->conns, lgr_node)
		if (conn->link == gone)
			failover_ask(conn, lgr_pick_link(gone->lgr));
	mark_exchanges(gone->lgr);
}

static void
answer(struct link *link, const struct llc_delete_link *req, uint32_t reason)
{
	struct llc_msg msg = { .type = LLC_DELETE_LINK, .response = true, .delete_link = *req };

	msg.delete_link.reason = reason;
	(void)link_send_llc(link, &msg);
}

/* Client: sends the response, maybe over the very link that ends (3.5.5.1.3). */
static void
comply(struct link *over, struct link *gone, const struct llc_delete_link *req)
{
	answer(over, req, req->reason);
	deleted(gone, why_deleted(gone, req->reason));
}

/* The link is drained, or its connections have used up their time: they move as from a lost link. */
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

/* Linux calls the end of a link "orderly" whose queue pair it has destroyed: a lost path cannot be drained. */
static bool
is_orderly(const struct llc_delete_link *m)
{
	return m->orderly && m->reason != LLC_DELETE_LOST_PATH;
}

/* -- server: a client's request (3.5.5.1.4) -- */

static void
asked_for_one(struct link *gone, const struct llc_delete_link *m)
{
	struct lgr *lgr = gone->lgr;
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];

	gone->delete_reason = m->reason;
	/* The requests have crossed. Linux sends only that about a link it has lost, and drops ours. */
	if (f->step == LLC_WAIT_DELETE_LINK_RSP && f->gone == gone && !is_orderly(m)) {
		llc_done(lgr, LLC_FLOW_LINK);
		deleted(gone, why_deleted(gone, m->reason));
		return;
	}
	if (gone->state == LINK_LOST || (gone->retiring && is_orderly(m)))
		return; /* its deletion is in progress or scheduled */
	if (gone == f->new_link)
		llc_add_failed(lgr, "the client gave up the new link");
	else if (is_orderly(m))
		(void)retire(gone, m->reason);
	else
		link_lost(gone, why(m->reason)->peers); /* the exchange follows when no other is in progress */
}

/* The client ends the group (3.5.4). Our DELETE LINK is the response: the end follows its completion, or llc_ms. */
static void
asked_for_all(struct lgr *lgr, const struct llc_delete_link *m)
{
	/* A connection is past our Accept, which crossed the client's request: the client will decline. */
	bool is_joined = LIST_FIND(const struct smcr_conn, conn, &lgr->conns, lgr_node,
	                     conn->state == CONN_RENDEZVOUS) != NULL;

	/* No orderly end during first contact. */
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
		link_retire(gone, "the server gave up the new link");
		llc_add_ended(lgr, false);
	} else if (is_orderly(m) && gone->state == LINK_ACTIVE && lgr->active_cnt > 1 &&
	    llc_is_idle(lgr, LLC_FLOW_LINK)) {
		lgr->delete_req = *m; /* answered when the link is drained */
		llc_drain_link(gone, link, lgr->eng->cfg.llc_ms / 2);
	} else {
		comply(link, gone, m);
	}
}

/* The server does not know the link: it is deleted. */
void
llc_delete_link_unknown(struct link *link, const struct llc_msg *msg)
{
	struct link *gone = lgr_link_by_number(link->lgr, msg->delete_link.link_num);

	if (gone != NULL && gone->state == LINK_LOST)
		deleted(gone, why_deleted(gone, gone->delete_reason));
	else
		link->lgr->eng->ctr.llc_ignored++;
}
