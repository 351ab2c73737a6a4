/*
 * LLC exchanges: which message is legal from which side, one exchange of a
 * kind at a time, timers. The handlers are in llc_link.c (links), llc_rkey.c
 * (RMBs) and llc_test.c (keepalive).
 */
#include "smcr/llc.h"

#include <errno.h>

#include "smcr/llc_impl.h"

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
	[LLC_ADD_LINK_CONT] = { NULL, NULL, NULL, NULL },
	[LLC_DELETE_LINK] = { llc_delete_link_from_server, llc_delete_link_rsp, llc_delete_link_from_client,
	    llc_delete_link_rsp },
	[LLC_CONFIRM_RKEY] = { llc_confirm_rkey_req, llc_confirm_rkey_rsp, llc_confirm_rkey_req, llc_confirm_rkey_rsp },
	[LLC_TEST_LINK] = { llc_test_link_req, llc_test_link_rsp, llc_test_link_req, llc_test_link_rsp },
	[LLC_CONFIRM_RKEY_CONT] = { llc_confirm_rkey_cont_req, llc_confirm_rkey_cont_rsp, llc_confirm_rkey_cont_req,
	    llc_confirm_rkey_cont_rsp },
	[LLC_DELETE_RKEY] = { llc_delete_rkey_req, llc_delete_rkey_rsp, llc_delete_rkey_req, llc_delete_rkey_rsp },
};

static void
flow_timeout(struct timer *t, int64_t now_ns)
{
	struct llc_flow *f = CONTAINER_OF(t, struct llc_flow, timer);
	enum llc_step step = f->step;

	(void)now_ns;
	f->lgr->eng->ctr.llc_timeouts++;
	if (f == &f->lgr->flow[LLC_FLOW_LINK])
		llc_link_timeout(f->lgr, step);
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
	f->rmb = NULL;
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

		if (l->number == number && (l->state == LINK_ACTIVE || l->state == LINK_CONFIRMING))
			return l;
	}
	return NULL;
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
