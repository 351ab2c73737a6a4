/* LLC exchanges: legal messages by role and step, one exchange of links at a time, collisions, timers. The handlers are
 * in llc_link.c (CONFIRM LINK), llc_add.c, llc_ask.c, llc_delete.c, llc_rkey.c (RMBs) and llc_keepalive.c. */
#include "smcr/group/llc.h"

#include <errno.h>

#include "smcr/data/grant.h"
#include "smcr/group/llc_impl.h"

/* Requests of the peer that may collide with an exchange of ours: columns of the collision table. */
enum incoming {
	IN_NOTHING, /* no collision possible */
	IN_ADD_LINK_FYI,
	IN_ADD_LINK,
	IN_DELETE_LINK_FYI, /* one link, from the client */
	IN_DELETE_LINK,     /* one link, from the server */
	IN_RKEY,            /* CONFIRM RKEY, DELETE RKEY */
	IN_CNT,
};

#define AT(step) (1u << LLC_##step)

static void
late(struct link *link, const struct llc_msg *msg)
{
	(void)msg;
	link->lgr->eng->ctr.llc_ignored++; /* the exchange timed out, or was abandoned */
}

/* By type, role and kind: the handler of the message, and the steps of LLC_FLOW_LINK in which it is legal (0: any). In
 * other steps it goes to `otherwise`; without that, or without an entry, it is a protocol error. An ADD LINK request of
 * a client is an "FYI" about a device (3.5.5.3), as REQUEST ADD LINK in version 2; its DELETE LINK is a request. */
static const struct rule {
	llc_handler *take;
	unsigned steps;
	llc_handler *otherwise;
	enum incoming in;
	llc_handler *refuse; /* refuses a colliding request */
} rules[][2][2] = {
#define CLIENT_REQUEST [0][0]
#define CLIENT_RESPONSE [0][1]
#define SERVER_REQUEST [1][0]
#define SERVER_RESPONSE [1][1]
#define ANY_REQUEST [0 ... 1][0]
#define ANY_RESPONSE [0 ... 1][1]
	[LLC_CONFIRM_LINK] = {
		CLIENT_REQUEST = { .take = llc_confirm_link_req, .steps = AT(WAIT_CONFIRM_LINK) | AT(WAIT_NEW_CONFIRM) },
		SERVER_RESPONSE = { .take = llc_confirm_link_rsp, .steps = AT(WAIT_CONFIRM_LINK_RSP) | AT(WAIT_NEW_CONFIRM_RSP) },
	},
	[LLC_ADD_LINK] = {
		CLIENT_REQUEST = { .take = llc_add_link_req, .in = IN_ADD_LINK },
		SERVER_REQUEST = { .take = llc_add_link_fyi, .in = IN_ADD_LINK_FYI },
		SERVER_RESPONSE = { .take = llc_add_link_rsp, .steps = AT(WAIT_ADD_LINK_RSP), .otherwise = late },
	},
	[LLC_ADD_LINK_CONT] = {
		CLIENT_REQUEST = { .take = llc_add_cont_req, .steps = AT(WAIT_ADD_CONT), .otherwise = llc_add_cont_late },
		SERVER_RESPONSE = { .take = llc_add_cont_rsp, .steps = AT(WAIT_ADD_CONT_RSP), .otherwise = llc_add_cont_late },
	},
	[LLC_REQUEST_ADD_LINK] = {
		CLIENT_RESPONSE = { .take = late }, /* our request has no effect */
		SERVER_REQUEST = { .take = llc_add_link_fyi, .in = IN_ADD_LINK_FYI },
	},
	[LLC_DELETE_LINK] = {
		CLIENT_REQUEST = { .take = llc_delete_link_from_server, .in = IN_DELETE_LINK },
		CLIENT_RESPONSE = { .take = llc_delete_link_unknown },
		SERVER_REQUEST = { .take = llc_delete_link_from_client, .in = IN_DELETE_LINK_FYI },
		SERVER_RESPONSE = { .take = llc_delete_link_rsp, .steps = AT(WAIT_DELETE_LINK_RSP), .otherwise = late },
	},
	[LLC_CONFIRM_RKEY] = {
		ANY_REQUEST = { .take = llc_confirm_rkey_req, .in = IN_RKEY, .refuse = llc_confirm_rkey_refuse },
		ANY_RESPONSE = { .take = llc_confirm_rkey_rsp },
	},
	[LLC_TEST_LINK] = {
		ANY_REQUEST = { .take = llc_test_link_req },
		ANY_RESPONSE = { .take = llc_test_link_rsp },
	},
	[LLC_CONFIRM_RKEY_CONT] = {
		ANY_REQUEST = { .take = llc_confirm_rkey_cont_req },
		ANY_RESPONSE = { .take = llc_confirm_rkey_cont_rsp },
	},
	[LLC_DELETE_RKEY] = {
		ANY_REQUEST = { .take = llc_delete_rkey_req, .in = IN_RKEY, .refuse = llc_delete_rkey_refuse },
		ANY_RESPONSE = { .take = llc_delete_rkey_rsp },
	},
};

/* -- serialization (3.5.5.3) -- */

enum exchange {
	EX_NONE,
	EX_CONFIRM_LINK,   /* first contact, until CONFIRM LINK is complete */
	EX_AWAIT_ADD_LINK, /* first contact, client */
	EX_ADD_LINK,
	EX_DELETE_LINK,
	EX_RKEY, /* ours */
	EX_GROUP_END,
	EX_CNT,
};

enum verdict {
	OUT_OF_STEP, /* a protocol error */
	NOW,         /* in step, no collision */
	CROSSING,    /* handled; what it starts waits for our exchange, or ends it */
	IGNORE,
	REFUSE, /* negative response: the peer retries */
};

/* Our exchange x the peer's request (enum incoming). TEST LINK and DELETE LINK for all are always handled. A server's
 * request counts within an exchange of ours: it alone creates and deletes links, so it has abandoned that. */
static const enum verdict collisions[EX_CNT][IN_CNT] = {
	[EX_NONE] = { NOW, NOW, NOW, NOW, NOW, NOW },
	[EX_CONFIRM_LINK] = { NOW, IGNORE, OUT_OF_STEP, CROSSING, CROSSING, REFUSE },
	[EX_AWAIT_ADD_LINK] = { NOW, OUT_OF_STEP, NOW, OUT_OF_STEP, CROSSING, REFUSE },
	[EX_ADD_LINK] = { NOW, IGNORE, CROSSING, CROSSING, CROSSING, REFUSE },
	[EX_DELETE_LINK] = { NOW, CROSSING, CROSSING, CROSSING, CROSSING, REFUSE },
	[EX_RKEY] = { NOW, CROSSING, CROSSING, CROSSING, CROSSING, NOW },
	[EX_GROUP_END] = { NOW, IGNORE, CROSSING, CROSSING, CROSSING, REFUSE },
};

/* A client that has not answered one may decline (C.2): where RoCE packets do not arrive, data uses TCP. Else the peer
 * should have declined by now: the TCP connection is broken (C.7.1). */
static void
no_confirm_link(struct lgr *lgr)
{
	bool may_decline = lgr->flow[LLC_FLOW_LINK].step == LLC_WAIT_CONFIRM_LINK;

	mark_contact(lgr, may_decline ? CONTACT_FAILED : CONTACT_BROKEN, CLC_DIAG_TIMEOUT_CONFIRM_LINK,
	    SMCR_R_LLC_TIMEOUT, "no CONFIRM LINK from the peer");
}

static void
all_deleted(struct lgr *lgr)
{
	lgr_down(lgr, SMCR_R_GROUP_DELETED, lgr->delete_why);
}

/* Exchange of each step, and its timeout handler. */
static const struct {
	enum exchange exchange;
	void (*timeout)(struct lgr *);
} steps[LLC_STEP_CNT] = {
	[LLC_WAIT_CONFIRM_LINK... LLC_WAIT_CONFIRM_LINK_RSP] = { EX_CONFIRM_LINK, no_confirm_link },
	[LLC_WAIT_PEER_DECLINE] = { EX_CONFIRM_LINK, no_confirm_link },
	[LLC_WAIT_ADD_LINK] = { EX_AWAIT_ADD_LINK, llc_no_add_link },
	[LLC_WAIT_ADD_LINK_RSP] = { EX_ADD_LINK, llc_add_link_timeout },
	[LLC_WAIT_ADD_CONT_RSP] = { EX_ADD_LINK, llc_add_cont_timeout },
	[LLC_WAIT_NEW_CONNECTED... LLC_WAIT_NEW_CONFIRM_RSP] = { EX_ADD_LINK, llc_new_link_timeout },
	[LLC_CONNECT_NEW] = { EX_ADD_LINK, llc_new_link_timeout },
	[LLC_WAIT_ADD_CONT] = { EX_ADD_LINK, llc_add_cont_timeout },
	[LLC_WAIT_NEW_CONFIRM] = { EX_ADD_LINK, llc_new_link_timeout },
	[LLC_DRAIN_LINK] = { EX_DELETE_LINK, llc_drained },
	[LLC_WAIT_DELETE_LINK_RSP] = { EX_DELETE_LINK, llc_delete_timeout },
	[LLC_WAIT_DELETE_LINK_SENT... LLC_WAIT_DELETE_LINK] = { EX_GROUP_END, all_deleted },
	[LLC_WAIT_CONFIRM_RKEY_RSP... LLC_WAIT_DELETE_RKEY_RSP] = { EX_RKEY, llc_rkey_timeout },
};

static enum exchange
exchange_of(const struct lgr *lgr)
{
	enum exchange of_links = steps[lgr->flow[LLC_FLOW_LINK].step].exchange;

	return of_links != EX_NONE ? of_links : steps[lgr->flow[LLC_FLOW_RKEY].step].exchange;
}

/* A peer that requests RKEYs only once is not refused for our ADD LINK or DELETE LINK, which it handles afterwards. */
static enum verdict
verdict_on(const struct lgr *lgr, enum incoming in)
{
	enum llc_step step = lgr->flow[LLC_FLOW_LINK].step;

	if (lgr->dialect.rkeys_asked_once && lgr->state == LGR_ACTIVE && in == IN_RKEY &&
	    (step == LLC_WAIT_ADD_LINK_RSP || step == LLC_DRAIN_LINK || step == LLC_WAIT_DELETE_LINK_RSP))
		return CROSSING;
	return collisions[exchange_of(lgr)][in];
}

const char *
llc_waits_for(const struct lgr *lgr)
{
	static const char *const words[EX_CNT] = {
		[EX_CONFIRM_LINK] = "CONFIRM LINK",
		[EX_AWAIT_ADD_LINK] = "ADD LINK",
		[EX_ADD_LINK] = "second link",
		[EX_DELETE_LINK] = "end of the second link",
	};
	const char *word = words[exchange_of(lgr)];

	if (lgr->state != LGR_FORMING)
		return "";
	return word != NULL ? word : "queue pair";
}

/* -- receiving -- */

/* True on the link of the exchange or, for the confirmation of a new link, on that link. */
static bool
is_in_step(const struct link *link, const struct rule *r)
{
	const struct llc_flow *f = &link->lgr->flow[LLC_FLOW_LINK];

	if (r->steps == 0)
		return true;
	if ((r->steps & (1u << f->step)) == 0)
		return false;
	if (f->step == LLC_WAIT_NEW_CONFIRM || f->step == LLC_WAIT_NEW_CONFIRM_RSP)
		return f->new_link == link;
	return f->step == LLC_WAIT_DELETE_LINK_RSP || f->link == link;
}

static void
llc_dispatch(struct link *link, const struct llc_msg *msg)
{
	const struct rule *r = &rules[msg->type][link->lgr->role == SMCR_SERVER][msg->response];
	bool for_all = msg->type == LLC_DELETE_LINK && msg->delete_link.all;

	if (r->take == NULL) {
		llc_protocol_error(link, "LLC message from the wrong side");
		return;
	}
	if (!is_in_step(link, r)) {
		if (r->otherwise != NULL)
			r->otherwise(link, msg);
		else
			llc_protocol_error(
			    link, msg->response ? "unexpected CONFIRM LINK response" : "unexpected CONFIRM LINK");
		return;
	}
	enum verdict v = verdict_on(link->lgr, for_all ? IN_NOTHING : r->in);
	link->lgr->eng->ctr.llc_collisions += v != NOW;
	switch (v) {
	case OUT_OF_STEP:
		llc_protocol_error(link, "LLC request out of step");
		break;
	case NOW:
	case CROSSING:
		r->take(link, msg);
		break;
	case IGNORE:
		break;
	case REFUSE:
		r->refuse(link, msg);
		break;
	}
}

/* A GRANT or OPEN (doc/open.md). 0: handled; or as open_decode. */
static int
open_recv(struct link *link, const uint8_t *buf, size_t len)
{
	struct lgr *lgr = link->lgr;
	struct open_msg msg;
	int n = open_decode((struct span){ buf, len }, &msg);

	if (n < 0)
		return n;
	if ((msg.type == OPEN_GRANT) != (lgr->role == SMCR_CLIENT)) {
		llc_protocol_error(link, "GRANT or OPEN from the wrong side");
	} else if (msg.type == OPEN_CONN) {
		lgr->marks.open = msg;
		mark_lgr(lgr)->opened_over = link;
	} else {
		grant_add(link, &msg);
	}
	return 0;
}

void
llc_recv(struct link *link, const uint8_t *buf, size_t len)
{
	struct lgr *lgr = link->lgr;
	struct smcr *eng = lgr->eng;
	struct llc_msg msg;
	int n = llc_decode((struct span){ buf, len }, lgr->version, &msg);

	engine_trace(eng, SMCR_TRACE_LLC, false, link, 0, buf, len);
	eng->ctr.llc_received++;
	/* Any message: a client sends only after it has received our CONFIRM LINK (3.5.1.5). */
	if (lgr->role == SMCR_SERVER && lgr->contact.confirm_link_out)
		lgr->contact.confirm_link_in = true;
	if (n == -EOPNOTSUPP && lgr->dialect.opens)
		n = open_recv(link, buf, len);
	if (n == -EOPNOTSUPP)
		eng->ctr.llc_ignored++; /* optional messages of newer peers have type bits 10 (A.3): discarded */
	else if (n < 0)
		llc_protocol_error(link, n == -EPROTO ? "unknown LLC message type" : "malformed LLC message");
	else if (n > 0)
		llc_dispatch(link, &msg);
}

void
llc_protocol_error(struct link *link, const char *what)
{
	link->lgr->eng->ctr.bad_llc++;
	engine_log(SMCR_LOG_PROTOCOL, link->lgr, link, 0, what);
	link_lost(link, what);
}

/* -- next exchange -- */

/* The next link that requires DELETE LINK, lost or retiring; NULL: none. */
static struct link *
to_be_deleted(struct lgr *lgr)
{
	return LGR_FIND_LINK(
	    l, lgr, (l->state == LINK_LOST || (l->state == LINK_ACTIVE && l->retiring)) && !l->delete_sent);
}

/* True: an exchange of links has started, or is due. */
static bool
next_for_server(struct lgr *lgr)
{
	struct link *gone = to_be_deleted(lgr), *asymmetric = topology_asymmetric_link(lgr);

	if (gone == NULL && asymmetric != NULL && topology_symmetric_cnt(lgr) > 1) {
		asymmetric->delete_reason = asymmetric->delete_wanted = LLC_DELETE_ASYM_NOT_NEEDED;
		lgr->eng->ctr.asymmetric_replaced++;
		gone = asymmetric;
	}
	if (gone == NULL) {
		bool wanted = lgr->want_link;

		lgr->want_link = false;
		if (wanted && llc_offer_link(topology_link_to_ask_over(lgr)))
			return true;
		llc_answer_asked(lgr);
		return false;
	}
	if (gone->state == LINK_LOST)
		llc_delete_link(gone);
	else
		llc_drain_link(gone, NULL, lgr->eng->cfg.llc_ms);
	return true;
}

bool
llc_may_begin_rkey(struct lgr *lgr)
{
	return llc_is_idle(lgr, LLC_FLOW_RKEY) && llc_is_idle(lgr, LLC_FLOW_LINK) && !lgr_is_silent(lgr) &&
	    !(lgr->role == SMCR_SERVER && to_be_deleted(lgr) != NULL);
}

void
llc_next(struct lgr *lgr)
{
	const struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];

	if (f->step == LLC_DRAIN_LINK && f->gone->conn_cnt == 0)
		llc_drained(lgr);
	if (lgr->state != LGR_ACTIVE || !llc_is_idle(lgr, LLC_FLOW_LINK) || !llc_is_idle(lgr, LLC_FLOW_RKEY) ||
	    lgr->cont_rmb != NULL || lgr_is_silent(lgr))
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
		mark_lgr(lgr)->rmb = RMB_READY;
	else
		llc_delete_unconfirmed(lgr);
}

/* -- timers -- */

void
llc_flow_fired(struct timer *t)
{
	struct llc_flow *f = CONTAINER_OF(t, struct llc_flow, timer);

	f->lgr->eng->ctr.llc_timeouts++;
	steps[f->step].timeout(f->lgr);
}

void
llc_start(struct lgr *lgr, enum llc_flow_kind kind, enum llc_step step, struct link *link, uint32_t ms)
{
	struct llc_flow *f = &lgr->flow[kind];

	f->link = link;
	llc_flow_set_step(f, step);
	engine_arm(lgr->eng, &f->timer, ms);
}

void
llc_done(struct lgr *lgr, enum llc_flow_kind kind)
{
	struct llc_flow *f = &lgr->flow[kind];

	timer_cancel(&lgr->eng->timers, &f->timer);
	llc_flow_set_step(f, LLC_IDLE);
	f->link = NULL;
	f->new_link = NULL;
	f->gone = NULL;
	f->rmb = NULL;
	mark_exchanges(lgr);
}

/* -- end of links -- */

bool
llc_link_lost(struct link *link)
{
	struct lgr *lgr = link->lgr;
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];
	bool carries = f->link == link; /* the exchange */

	if (lgr->flow[LLC_FLOW_RKEY].link == link)
		llc_rkey_lost(lgr);
	if (f->new_link == link) {
		/* While the response is awaited, the client may or may not know the link. */
		if (f->step != LLC_WAIT_ADD_LINK_RSP)
			llc_add_failed(lgr, link->down_why);
		return true;
	}
	if (f->new_link != NULL && carries && lgr->state == LGR_FORMING) {
		/* First contact cannot continue. A client that was not ready declines (C.2), within the timer. */
		link_retire(f->new_link, "the first link was lost");
		f->new_link = NULL;
		f->link = NULL;
		llc_flow_set_step(f, LLC_WAIT_PEER_DECLINE);
	} else if (f->new_link != NULL && carries) {
		llc_add_failed(lgr, link->down_why);
	} else if (lgr->state == LGR_FORMING) {
		return false;
	} else if (lgr->state == LGR_DELETING && carries && lgr_pick_link(lgr) != NULL) {
		lgr->eng->ctr.delete_link_resent++;
		llc_delete_group(lgr, lgr->delete_reason);
	} else if (f->step == LLC_WAIT_DELETE_LINK_RSP && carries) {
		/* C.7.1: repeat it over another link. */
		f->gone->delete_sent = false;
		lgr->eng->ctr.delete_link_resent++;
		llc_done(lgr, LLC_FLOW_LINK);
	} else if (f->step == LLC_DRAIN_LINK && f->gone == link && lgr->role == SMCR_SERVER) {
		llc_done(lgr, LLC_FLOW_LINK); /* no time to drain it: handle it as a lost link */
	}
	return false;
}
