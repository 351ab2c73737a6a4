/* Which LLC message may go when (RFC 7609 3.5.1.5, 3.5.5, 4.5.3). */
#include "tests/scenario/trace_int.h"

static void
bad(const struct watcher *wr, const struct tgroup *g, const struct llc_msg *msg, const char *what)
{
	world_fail(wr->t->w, "host%u group %u: LLC message %d %s: %s", wr->host, g->id, (int)msg->type,
	    msg->response ? "response" : "request", what);
}

static void
check_response(const struct watcher *wr, const struct tgroup *g, const struct llc_msg *msg)
{
	if (g->rsp_out[msg->type] >= g->req_in[msg->type])
		bad(wr, g, msg, "nobody asked");
}

/* An RMB with a live connection is not to be taken back, nor named in CLC afterwards. */
static void
check_delete_rkey(const struct watcher *wr, const struct tgroup *g, const struct llc_msg *msg)
{
	for (unsigned i = 0; i < TRACE_BUCKETS; i++)
		LIST_FOREACH(n, &wr->t->conns[i]) {
			const struct tconn *c = CONTAINER_OF(n, struct tconn, node);

			if (c->host != wr->host || !c->mine.known || trace_conn_over(c))
				continue;
			for (unsigned k = 0; k < msg->delete_rkey.cnt; k++)
				if (msg->delete_rkey.rkeys[k] == c->mine.rkey)
					bad(wr, g, msg, "names an RMB in use");
		}
}

static void
check_request(const struct watcher *wr, const struct tgroup *g, const struct llc_msg *msg)
{
	uint32_t open = g->req_out[msg->type] - g->rsp_in[msg->type];

	switch (msg->type) {
	case LLC_CONFIRM_LINK:
	case LLC_ADD_LINK:
		if (g->req_out[msg->type] > 0)
			bad(wr, g, msg, "a second one on a group of one link");
		break;
	case LLC_CONFIRM_RKEY:
	case LLC_DELETE_RKEY:
		if (g->req_out[LLC_CONFIRM_RKEY] + g->req_out[LLC_DELETE_RKEY] >
		    g->rsp_in[LLC_CONFIRM_RKEY] + g->rsp_in[LLC_DELETE_RKEY])
			bad(wr, g, msg, "another RKEY exchange of ours is not through");
		if (msg->type == LLC_DELETE_RKEY)
			check_delete_rkey(wr, g, msg);
		break;
	case LLC_TEST_LINK:
		if (open > 0)
			bad(wr, g, msg, "the last one was not answered");
		break;
	case LLC_ADD_LINK_CONT:
	case LLC_CONFIRM_RKEY_CONT:
	case LLC_DELETE_LINK:
		break;
	}
}

static void
sent(const struct watcher *wr, struct tgroup *g, const struct llc_msg *msg)
{
	if (msg->type != LLC_CONFIRM_LINK && g->req_out[LLC_CONFIRM_LINK] + g->rsp_out[LLC_CONFIRM_LINK] == 0)
		bad(wr, g, msg, "before CONFIRM LINK");
	if (g->deleted && !msg->response && msg->type != LLC_TEST_LINK)
		bad(wr, g, msg, "behind DELETE LINK for all");
	if (msg->response)
		check_response(wr, g, msg);
	else
		check_request(wr, g, msg);
	if (msg->type == LLC_CONFIRM_LINK)
		g->no_eyecatcher_out = msg->confirm_link.no_eyecatcher;
	if (msg->type == LLC_DELETE_LINK && !msg->response && msg->delete_link.all)
		g->deleted = true; /* a client asks for it: the server's may cross */
	(msg->response ? g->rsp_out : g->req_out)[msg->type]++;
}

void
trace_llc(const struct watcher *wr, const struct smcr_trace *m, struct tgroup *g)
{
	struct llc_msg msg;

	if (llc_decode((struct span){ m->msg, m->len }, LLC_VERSION, &msg) != LLC_LEN) {
		world_fail(wr->t->w, "host%u group %u: LLC message cannot be decoded", wr->host, g->id);
		return;
	}
	if (m->sent) {
		sent(wr, g, &msg);
		return;
	}
	(msg.response ? g->rsp_in : g->req_in)[msg.type]++;
	if (msg.type == LLC_CONFIRM_LINK)
		g->no_eyecatcher_in = msg.confirm_link.no_eyecatcher;
}
