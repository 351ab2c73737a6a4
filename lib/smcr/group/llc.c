/*
 * LLC exchanges: which message is legal from which side, one exchange that
 * changes the group at a time, what a colliding request meets, timers. The
 * handlers are in llc_link.c (CONFIRM LINK), llc_add*.c, llc_delete.c, llc_rkey.c
 * (RMBs) and llc_test.c (keepalive).
 */
#include "smcr/group/llc.h"

#include <errno.h>

#include "smcr/group/llc_impl.h"
#include "smcr/rendezvous/rendezvous.h"

typedef void (*llc_handler)(struct link *, const struct llc_msg *);

/*
 * By type: what a client and a server take as request and as response; NULL is
 * a protocol error. ADD LINK from a client is its "FYI" that a device is there
 * (3.5.5.3); a DELETE LINK from a client is a plea to the server.
 */
static const struct {
	llc_handler client_req, client_rsp, server_req, server_rsp;
} legal[] = {
	[LLC_CONFIRM_LINK] = { llc_confirm_link_req, NULL, NULL, llc_confirm_link_rsp },
	[LLC_ADD_LINK] = { llc_add_link_req, NULL, llc_add_link_fyi, llc_add_link_rsp },
	[LLC_ADD_LINK_CONT] = { llc_add_cont_req, NULL, NULL, llc_add_cont_rsp },
	[LLC_DELETE_LINK] = { llc_delete_link_from_server, llc_delete_link_unknown, llc_delete_link_from_client,
	    llc_delete_link_rsp },
	[LLC_CONFIRM_RKEY] = { llc_confirm_rkey_req, llc_confirm_rkey_rsp, llc_confirm_rkey_req, llc_confirm_rkey_rsp },
	[LLC_TEST_LINK] = { llc_test_link_req, llc_test_link_rsp, llc_test_link_req, llc_test_link_rsp },
	[LLC_CONFIRM_RKEY_CONT] = { llc_confirm_rkey_cont_req, llc_confirm_rkey_cont_rsp, llc_confirm_rkey_cont_req,
	    llc_confirm_rkey_cont_rsp },
	[LLC_DELETE_RKEY] = { llc_delete_rkey_req, llc_delete_rkey_rsp, llc_delete_rkey_req, llc_delete_rkey_rsp },
};

/* -- serialisation (3.5.5.3) -- */

enum exchange {
	EX_NONE,
	EX_FIRST_CONTACT,
	EX_ADD_LINK,
	EX_DELETE_LINK,
	EX_RKEY, /* ours */
	EX_GROUP_END,
	EX_CNT,
};

/*
 * Our exchange under way x the peer's request. TEST LINK is answered at once, and DELETE LINK for all is heard,
 * whatever is under way. A request of the server's is served even within an exchange that we take part in: it alone
 * makes and deletes links, so it has given that one up.
 */
static const enum llc_verdict collisions[EX_CNT][LLC_IN_CNT] = {
	[EX_FIRST_CONTACT] = {
		[LLC_IN_ADD_LINK_FYI] = LLC_IGNORE,
		[LLC_IN_DELETE_LINK_FYI] = LLC_LATER,
		[LLC_IN_RKEY] = LLC_REFUSE,
	},
	[EX_ADD_LINK] = {
		[LLC_IN_ADD_LINK_FYI] = LLC_IGNORE,
		[LLC_IN_DELETE_LINK_FYI] = LLC_LATER,
		[LLC_IN_RKEY] = LLC_REFUSE,
	},
	[EX_DELETE_LINK] = {
		[LLC_IN_ADD_LINK_FYI] = LLC_LATER,
		[LLC_IN_DELETE_LINK_FYI] = LLC_LATER,
		[LLC_IN_RKEY] = LLC_REFUSE,
	},
	[EX_RKEY] = {
		[LLC_IN_ADD_LINK_FYI] = LLC_LATER,
		[LLC_IN_DELETE_LINK_FYI] = LLC_LATER,
		[LLC_IN_RKEY] = LLC_NOW,
	},
	[EX_GROUP_END] = {
		[LLC_IN_ADD_LINK_FYI] = LLC_IGNORE,
		[LLC_IN_DELETE_LINK_FYI] = LLC_LATER,
		[LLC_IN_RKEY] = LLC_REFUSE,
	},
};

static enum exchange
exchange_of(const struct lgr *lgr)
{
	switch (lgr->flow[LLC_FLOW_LINK].step) {
	case LLC_WAIT_CONFIRM_LINK:
	case LLC_WAIT_CONFIRM_LINK_RSP:
	case LLC_WAIT_ADD_LINK:
		return EX_FIRST_CONTACT;
	case LLC_WAIT_ADD_LINK_RSP:
	case LLC_WAIT_ADD_CONT_RSP:
	case LLC_WAIT_NEW_CONNECTED:
	case LLC_WAIT_NEW_CONFIRM_RSP:
	case LLC_CONNECT_NEW:
	case LLC_WAIT_ADD_CONT:
	case LLC_WAIT_NEW_CONFIRM:
		return EX_ADD_LINK;
	case LLC_DRAIN_LINK:
	case LLC_WAIT_DELETE_LINK_RSP:
		return EX_DELETE_LINK;
	case LLC_WAIT_DELETE_LINK_SENT:
	case LLC_WAIT_DELETE_LINK:
		return EX_GROUP_END;
	case LLC_IDLE:
	case LLC_WAIT_CONFIRM_RKEY_RSP:
	case LLC_WAIT_DELETE_RKEY_RSP:
	case LLC_STEP_CNT:
		break;
	}
	return llc_is_idle(lgr, LLC_FLOW_RKEY) ? EX_NONE : EX_RKEY;
}

enum llc_verdict
llc_collision(struct lgr *lgr, enum llc_incoming in)
{
	enum exchange ex = exchange_of(lgr);

	if (ex != EX_NONE && !(ex == EX_RKEY && in == LLC_IN_RKEY) &&
	    !(ex == EX_FIRST_CONTACT && in == LLC_IN_ADD_LINK))
		lgr->eng->ctr.llc_collisions++;
	return collisions[ex][in];
}

const char *
llc_waits_for(const struct lgr *lgr)
{
	if (lgr->state != LGR_FORMING)
		return "";
	switch (exchange_of(lgr)) {
	case EX_ADD_LINK:
		return "second link";
	case EX_DELETE_LINK:
		return "end of the second link";
	case EX_FIRST_CONTACT:
		return lgr->flow[LLC_FLOW_LINK].step == LLC_WAIT_ADD_LINK ? "ADD LINK" : "CONFIRM LINK";
	case EX_NONE:
	case EX_RKEY:
	case EX_GROUP_END:
	case EX_CNT:
		break;
	}
	return "queue pair";
}

/* The next lost link that the client is to be told of, or that is to retire; NULL when there is none. */
static struct link *
to_be_deleted(struct lgr *lgr)
{
	for (unsigned i = 0; i < LINK_SLOTS; i++) {
		struct link *l = &lgr->links[i];

		if ((l->state == LINK_LOST || (l->state == LINK_ACTIVE && l->retiring)) && !l->told)
			return l;
	}
	return NULL;
}

static bool
next_for_server(struct lgr *lgr)
{
	struct link *gone = to_be_deleted(lgr), *asymmetric = lgr_asymmetric_link(lgr);

	if (gone == NULL && asymmetric != NULL && lgr_symmetric_cnt(lgr) > 1) {
		asymmetric->retiring = true;
		asymmetric->delete_reason = LLC_DELETE_ASYM_NOT_NEEDED;
		lgr->eng->ctr.asymmetric_replaced++;
		gone = asymmetric;
	}
	if (gone != NULL && gone->state == LINK_LOST)
		llc_delete_lost(gone);
	else if (gone != NULL)
		llc_start_retiring(gone);
	if (gone != NULL || !lgr->want_link)
		return gone != NULL;
	lgr->want_link = false;
	return llc_offer_link(lgr_pick_link(lgr));
}

bool
llc_may_begin_rkey(struct lgr *lgr)
{
	return llc_is_idle(lgr, LLC_FLOW_RKEY) && llc_is_idle(lgr, LLC_FLOW_LINK) &&
	    !(lgr->role == SMCR_SERVER && to_be_deleted(lgr) != NULL);
}

void
llc_next(struct lgr *lgr)
{
	const struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];

	if (f->step == LLC_DRAIN_LINK && f->gone->conn_cnt == 0)
		llc_drained(lgr);
	if (lgr->state != LGR_ACTIVE || !llc_is_idle(lgr, LLC_FLOW_LINK) || !llc_is_idle(lgr, LLC_FLOW_RKEY) ||
	    lgr->cont_rmb != NULL)
		return;
	if (lgr->role == SMCR_SERVER && next_for_server(lgr))
		return;
	if (lgr->role == SMCR_CLIENT && lgr->want_link) {
		lgr->want_link = false;
		llc_tell_of_device(lgr);
	}
	if (lgr->state != LGR_ACTIVE || timer_armed(&lgr->rkey_retry))
		return;
	if (!list_empty(&lgr->wait_rmb))
		rdv_rmb_ready(lgr, true);
	/* Who waited may have found an element elsewhere. */
	if (lgr->state == LGR_ACTIVE && llc_is_idle(lgr, LLC_FLOW_RKEY) && list_empty(&lgr->wait_rmb))
		llc_delete_unconfirmed(lgr);
}

/* -- timers -- */

static void
link_timeout(struct lgr *lgr, enum llc_step step)
{
	switch (step) {
	case LLC_WAIT_CONFIRM_LINK:
	case LLC_WAIT_CONFIRM_LINK_RSP:
		/* The other side should have declined by now: the TCP connection is broken (C.7.1). */
		rdv_end(lgr->first_conn, SMCR_R_LLC_TIMEOUT, "no CONFIRM LINK from the peer");
		break;
	case LLC_WAIT_ADD_LINK:
	case LLC_CONNECT_NEW:
	case LLC_WAIT_ADD_CONT:
	case LLC_WAIT_NEW_CONFIRM:
		llc_client_add_timeout(lgr, step);
		break;
	case LLC_WAIT_ADD_LINK_RSP:
	case LLC_WAIT_ADD_CONT_RSP:
	case LLC_WAIT_NEW_CONNECTED:
	case LLC_WAIT_NEW_CONFIRM_RSP:
		llc_server_add_timeout(lgr, step);
		break;
	case LLC_DRAIN_LINK:
	case LLC_WAIT_DELETE_LINK_RSP:
		llc_delete_timeout(lgr, step);
		break;
	case LLC_WAIT_DELETE_LINK_SENT:
	case LLC_WAIT_DELETE_LINK:
		lgr_down(lgr, SMCR_R_GROUP_DELETED, lgr->delete_why);
		break;
	case LLC_IDLE:
	case LLC_WAIT_CONFIRM_RKEY_RSP:
	case LLC_WAIT_DELETE_RKEY_RSP:
	case LLC_STEP_CNT:
		break;
	}
}

static void
flow_timeout(struct timer *t, int64_t now_ns)
{
	struct llc_flow *f = CONTAINER_OF(t, struct llc_flow, timer);
	enum llc_step step = f->step;

	(void)now_ns;
	f->lgr->eng->ctr.llc_timeouts++;
	if (f == &f->lgr->flow[LLC_FLOW_LINK])
		link_timeout(f->lgr, step);
	else
		llc_rkey_timeout(f->lgr);
}

void
llc_init(struct lgr *lgr)
{
	for (unsigned i = 0; i < LLC_FLOW_CNT; i++) {
		lgr->flow[i].lgr = lgr;
		timer_init(&lgr->flow[i].timer, flow_timeout);
	}
}

void
llc_fini(struct lgr *lgr)
{
	for (unsigned i = 0; i < LLC_FLOW_CNT; i++)
		llc_done(lgr, i);
}

void
llc_start(struct lgr *lgr, enum llc_flow_kind kind, enum llc_step step, struct link *link, uint32_t ms)
{
	struct llc_flow *f = &lgr->flow[kind];

	f->step = step;
	f->link = link;
	engine_arm(lgr->eng, &f->timer, ms);
}

void
llc_done(struct lgr *lgr, enum llc_flow_kind kind)
{
	struct llc_flow *f = &lgr->flow[kind];

	timer_cancel(&lgr->eng->timers, &f->timer);
	f->step = LLC_IDLE;
	f->link = NULL;
	f->new_link = NULL;
	f->gone = NULL;
	f->rmb = NULL;
	lgr_settle(lgr);
}

void
llc_protocol_error(struct link *link, const char *what)
{
	link->lgr->eng->ctr.bad_llc++;
	engine_log(link->lgr->eng, SMCR_LOG_PROTOCOL, link->lgr, link, what);
	link_down(link, what);
}

struct link *
llc_link_by_number(struct lgr *lgr, uint8_t number)
{
	for (unsigned i = 0; i < LINK_SLOTS; i++) {
		struct link *l = &lgr->links[i];

		if (l->state != LINK_FREE && l->state != LINK_GONE && l->state != LINK_DOWN && l->number == number)
			return l;
	}
	return NULL;
}

/* The new link, or the one over which it is being added, is lost. True: the group has nothing to do with it yet. */
static bool
add_lost(struct link *link)
{
	struct lgr *lgr = link->lgr;
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];
	bool server = lgr->role == SMCR_SERVER, is_new = f->new_link == link;

	if (!is_new && lgr->state == LGR_FORMING) {
		/* Nothing to go on with. A client that was not through declines (C.2); the timer ends the wait for that. */
		link_stop(f->new_link, LINK_DOWN, "the first link was lost", false);
		f->new_link = NULL;
		f->link = NULL;
		f->step = LLC_WAIT_CONFIRM_LINK_RSP;
		return false;
	}
	if (is_new && f->step == LLC_WAIT_ADD_LINK_RSP)
		return true; /* the answer is awaited: the client may know of it or not */
	if (server)
		llc_server_add_failed(lgr, link->down_why);
	else
		llc_client_add_failed(lgr, link->down_why);
	return is_new;
}

bool
llc_link_lost(struct link *link)
{
	struct lgr *lgr = link->lgr;
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];

	if (lgr->flow[LLC_FLOW_RKEY].link == link)
		llc_rkey_lost(lgr);
	if (f->new_link != NULL && (f->new_link == link || f->link == link))
		return add_lost(link);
	if (lgr->state == LGR_FORMING)
		return false;
	if (lgr->state == LGR_DELETING && f->link == link && lgr_pick_link(lgr) != NULL) {
		lgr->eng->ctr.delete_link_resent++;
		llc_delete_group(lgr, lgr->delete_reason);
	} else if (f->step == LLC_WAIT_DELETE_LINK_RSP && f->link == link) {
		/* C.7.1: again over another one. */
		f->gone->told = false;
		lgr->eng->ctr.delete_link_resent++;
		llc_done(lgr, LLC_FLOW_LINK);
	} else if (f->step == LLC_DRAIN_LINK && f->gone == link && lgr->role == SMCR_SERVER) {
		llc_done(lgr, LLC_FLOW_LINK); /* no time to drain it: as any lost link */
	}
	return false;
}

void
llc_recv(struct link *link, const uint8_t *buf, size_t len)
{
	struct smcr *eng = link->lgr->eng;
	bool client = link->lgr->role == SMCR_CLIENT;
	struct llc_msg msg;
	llc_handler h;
	int n = llc_decode((struct span){ buf, len }, link->lgr->version, &msg);

	engine_trace(eng, SMCR_TRACE_LLC, false, link, 0, buf, len);
	eng->ctr.llc_received++;
	/* Whatever it is: a client speaks only after it has heard our CONFIRM LINK (3.5.1.5). */
	if (!client && link->lgr->first_conn != NULL && link->lgr->first_conn->rdv->confirm_link_out)
		link->lgr->first_conn->rdv->confirm_link_in = true;
	if (n == -EOPNOTSUPP) {
		/* Optional messages of newer peers have type bits 10 (A.3): discarded. */
		eng->ctr.llc_ignored++;
		return;
	}
	if (n < 0) {
		llc_protocol_error(link, n == -EPROTO ? "unknown LLC message type" : "malformed LLC message");
		return;
	}
	if (client)
		h = msg.response ? legal[msg.type].client_rsp : legal[msg.type].client_req;
	else
		h = msg.response ? legal[msg.type].server_rsp : legal[msg.type].server_req;
	if (h == NULL)
		llc_protocol_error(link, "LLC message from the wrong side");
	else
		h(link, &msg);
}

void
llc_sent(struct link *link, enum llc_type type, bool response, bool ok)
{
	struct lgr *lgr = link->lgr;

	if (type == LLC_CONFIRM_LINK && !response && ok && lgr->first_conn != NULL)
		lgr->first_conn->rdv->confirm_link_in = true;
	/* Delivered, or the client was so quick to comply that our link is gone already. */
	if (type == LLC_DELETE_LINK && !response && lgr->flow[LLC_FLOW_LINK].step == LLC_WAIT_DELETE_LINK_SENT)
		lgr_down(lgr, SMCR_R_GROUP_DELETED, lgr->delete_why);
}
