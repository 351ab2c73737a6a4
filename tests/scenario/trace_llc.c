/* Which LLC message may go when (RFC 7609 3.5.1.5, 3.5.5, 4.5.3). */
#include "tests/scenario/trace_int.h"

static void
bad(const struct watcher *wr, const struct tgroup *g, const struct llc_msg *msg, const char *what)
{
	world_fail(wr->t->w, "host%u group %u: LLC message %d %s: %s", wr->host, g->id, (int)msg->type,
	    msg->response ? "response" : "request", what);
}

/* The host that sent the first CONFIRM LINK. */
static bool
is_server(const struct tgroup *g)
{
	return g->req_out[LLC_CONFIRM_LINK] > 0;
}

/* An RMB with a live connection is not to be taken back, nor named in CLC afterwards. A spare one is none (doc/open.md). */
static void
check_delete_rkey(const struct watcher *wr, const struct tgroup *g, const struct llc_msg *msg)
{
	for (unsigned i = 0; i < TRACE_BUCKETS; i++)
		LIST_FOREACH(n, &wr->t->conns[i]) {
			const struct tconn *c = CONTAINER_OF(n, struct tconn, node);

			if (c->host != wr->host || !c->mine.known || trace_conn_over(c) || (c->granted && !c->confirm))
				continue;
			for (unsigned k = 0; k < msg->delete_rkey.cnt; k++)
				if (trace_first_rkey(wr->t, llc_rkey_get(msg->delete_rkey.rkeys, k)) == c->mine.rkey)
					bad(wr, g, msg, "names an RMB in use");
		}
}

/* The peer's RMBs that we let it take back. In version 2 the answer does not say which it does not. */
static void
note_deleted(const struct watcher *wr, const struct tgroup *g, const struct llc_delete_rkey *m)
{
	for (unsigned i = 0; i < TRACE_BUCKETS; i++)
		LIST_FOREACH(n, &wr->t->conns[i]) {
			struct tconn *c = CONTAINER_OF(n, struct tconn, node);

			for (unsigned k = 0; k < m->cnt; k++)
				if (c->host == wr->host && c->peers.known && (m->error_mask & 0x80u >> k) == 0 &&
				    trace_first_rkey(wr->t, llc_rkey_get(g->peer_deletes, k)) == c->peers.rkey)
					c->peer_through = true;
		}
}

/* One that was cut off by the end of its link does not count: the next one goes over another link. */
static bool
changing(const struct watcher *wr, const struct tgroup *g, uint8_t over)
{
	return g->exchange.kind != EX_NONE && g->exchange.over == over && wr->t->w->now_ns >= g->exchange.from_ns &&
	    wr->t->w->now_ns < g->exchange.until_ns;
}

static bool
rkey_under_way(const struct watcher *wr, const struct tgroup *g, uint8_t over)
{
	return g->rkey_open && g->rkey_over == over && wr->t->w->now_ns < g->rkey_until_ns;
}

static void
check_alone(const struct watcher *wr, const struct tgroup *g, const struct llc_msg *msg, uint8_t over)
{
	/* A client's may have waited in its queue when the server began: they cross (3.5.5.3.3). */
	if (g->req_out[LLC_CONFIRM_LINK] > 0 && changing(wr, g, over))
		bad(wr, g, msg, g->exchange.kind == EX_ADD ? "while a link is added" : "while a link is deleted");
	if (rkey_under_way(wr, g, over))
		bad(wr, g, msg, "another RKEY exchange of ours is not through");
}

static void
check_add_link(const struct watcher *wr, const struct tgroup *g, const struct llc_msg *msg, uint8_t over)
{
	/* Either side may know of a device that came; the server's request begins an exchange, a client's does not. With
	 * its answer to CONFIRM LINK the client is through, but that goes over another link, maybe after this. */
	if (g->exchange.kind == EX_ADD && changing(wr, g, over) && (is_server(g) || !g->exchange.confirming))
		bad(wr, g, msg, "while a link is added");
}

static void
check_confirm_link(const struct watcher *wr, const struct tgroup *g, const struct llc_msg *msg, uint8_t over)
{
	uint8_t nr = msg->confirm_link.link_num;

	if (g->req_out[LLC_CONFIRM_LINK] == 0 && g->req_in[LLC_CONFIRM_LINK] == 0)
		return; /* first contact */
	/* The client may have asked for the end of the group while it was queued. */
	if (wr->t->w->now_ns < g->end_asked_ns && g->exchange.link_num == nr && over == nr)
		return;
	if (g->exchange.kind != EX_ADD || g->exchange.link_num != nr || over != nr)
		bad(wr, g, msg, "for a link that is not being added, or over another one");
}

/* A client's request asks the server and may go at any time. */
static void
check_delete_link(const struct watcher *wr, const struct tgroup *g, const struct llc_msg *msg, uint8_t over)
{
	const struct texchange *x = &g->exchange;

	if (msg->delete_link.all || !is_server(g))
		return;
	if (rkey_under_way(wr, g, over))
		bad(wr, g, msg, "an RKEY exchange of ours is not through");
	if (x->kind == EX_DELETE && changing(wr, g, over))
		bad(wr, g, msg, "while a link is deleted");
	/* With a fault it may have given the new link up, which only its own DELETE LINK will tell. */
	if (!wr->t->faulty && x->kind == EX_ADD && changing(wr, g, over) && x->link_num != msg->delete_link.link_num)
		bad(wr, g, msg, "while another link is added");
}

static void
check_request(const struct watcher *wr, const struct tgroup *g, const struct llc_msg *msg, uint8_t over)
{
	switch (msg->type) {
	case LLC_CONFIRM_LINK:
		check_confirm_link(wr, g, msg, over);
		break;
	case LLC_ADD_LINK:
		check_add_link(wr, g, msg, over);
		break;
	case LLC_CONFIRM_RKEY:
		check_alone(wr, g, msg, over);
		break;
	case LLC_DELETE_RKEY:
		check_alone(wr, g, msg, over);
		check_delete_rkey(wr, g, msg);
		break;
	case LLC_TEST_LINK:
		if (g->test_open[over] > 0)
			bad(wr, g, msg, "the last one was not answered");
		break;
	case LLC_DELETE_LINK:
		check_delete_link(wr, g, msg, over);
		break;
	case LLC_ADD_LINK_CONT:
	case LLC_CONFIRM_RKEY_CONT:
	case LLC_REQUEST_ADD_LINK:
		break;
	}
}

/* Another message of the exchange that adds a link: it goes on. One that was queued, or was under way, when the time was up does
 * not bring it back. */
static void
goes_on(const struct watcher *wr, struct texchange *x, int64_t until_ns)
{
	if (x->kind == EX_ADD && wr->t->w->now_ns < x->until_ns)
		x->until_ns = until_ns;
}

static bool
lost_path(const struct llc_msg *msg)
{
	return !msg->delete_link.orderly || msg->delete_link.reason == LLC_DELETE_LOST_PATH;
}

/* The client's word that the link is lost answers a DELETE LINK of ours (llc_delete.c), which waits for room meanwhile and
 * goes out all the same: nothing is awaited then. One that the word has caused goes out at once. */
static bool
was_answered(const struct watcher *wr, const struct tgroup *g, uint8_t link_num)
{
	int64_t told = g->lost_told_ns[link_num], now = wr->t->w->now_ns;

	return is_server(g) && told != 0 && told < now && now < told + wr->t->queued_ns;
}

/* Which exchange goes on behind this message, sent or received. from_server: the sender. */
static void
follow_exchange(const struct watcher *wr, struct tgroup *g, const struct llc_msg *msg, uint8_t over, bool from_server)
{
	bool ours = from_server == is_server(g);
	int64_t from = wr->t->w->now_ns + (ours ? 1 : wr->t->queued_ns);
	/* The answer is awaited from when a message of ours was queued. */
	int64_t until = wr->t->w->now_ns + wr->t->llc_ns - (ours ? wr->t->queued_ns : 0);
	struct texchange *x = &g->exchange;
	bool req = !msg->response;

	switch (msg->type) {
	case LLC_ADD_LINK:
		if (req && from_server)
			*x = (struct texchange){ EX_ADD, msg->add_link.link_num, over, from, until, false };
		else if (req)
			break; /* the client's word of a device */
		else if (msg->add_link.rejected && x->kind == EX_ADD)
			x->kind = EX_NONE;
		else
			goes_on(wr, x, until);
		break;
	case LLC_CONFIRM_LINK:
		goes_on(wr, x, until);
		x->confirming = req;
		if (!req && x->kind == EX_ADD && x->link_num == msg->confirm_link.link_num)
			x->kind = EX_NONE;
		break;
	case LLC_DELETE_LINK:
		if (msg->delete_link.all && !ours)
			g->end_asked_ns = from;
		if (msg->delete_link.all || (!req && x->kind == EX_DELETE && x->link_num == msg->delete_link.link_num))
			x->kind = EX_NONE;
		else if (!req)
			break; /* the answer to a request about a link that was gone already */
		else if (from_server)
			*x = (struct texchange){ was_answered(wr, g, msg->delete_link.link_num) ? EX_NONE : EX_DELETE,
				msg->delete_link.link_num, over, from, until, false };
		else if (x->link_num == msg->delete_link.link_num && (x->kind == EX_ADD || lost_path(msg)))
			x->kind = EX_NONE; /* the client gave it up; for the server's DELETE LINK that is an answer */
		break;
	case LLC_ADD_LINK_CONT:
		goes_on(wr, x, until);
		break;
	case LLC_CONFIRM_RKEY:
	case LLC_TEST_LINK:
	case LLC_CONFIRM_RKEY_CONT:
	case LLC_DELETE_RKEY:
	case LLC_REQUEST_ADD_LINK:
		break;
	}
}

static void
sent(const struct watcher *wr, struct tgroup *g, const struct llc_msg *msg, uint8_t over)
{
	if (msg->type != LLC_CONFIRM_LINK && g->req_out[LLC_CONFIRM_LINK] + g->rsp_out[LLC_CONFIRM_LINK] == 0)
		bad(wr, g, msg, "before CONFIRM LINK");
	if (g->deleted && !msg->response && msg->type != LLC_TEST_LINK && msg->type != LLC_DELETE_LINK)
		bad(wr, g, msg, "behind DELETE LINK for all");
	if (msg->response) {
		if (g->rsp_out[msg->type] >= g->req_in[msg->type])
			bad(wr, g, msg, "unsolicited");
	} else
		check_request(wr, g, msg, over);
	if (msg->type == LLC_CONFIRM_LINK)
		g->no_eyecatcher_out = msg->confirm_link.no_eyecatcher;
	if (msg->type == LLC_DELETE_LINK && !msg->response && msg->delete_link.all)
		g->deleted = true; /* a client asks for it: the server's may cross */
	if (msg->type == LLC_TEST_LINK && !msg->response)
		g->test_open[over]++;
	if ((msg->type == LLC_CONFIRM_RKEY || msg->type == LLC_DELETE_RKEY) && !msg->response) {
		g->rkey_open = true;
		g->rkey_over = over;
		g->rkey_until_ns = wr->t->w->now_ns + wr->t->llc_ns - wr->t->queued_ns;
	}
	if (msg->type == LLC_DELETE_RKEY && msg->response)
		note_deleted(wr, g, &msg->delete_rkey);
	/* Rkeys of an RMB of the sender. */
	if (msg->type == LLC_CONFIRM_RKEY && !msg->response)
		for (unsigned i = 0; i < msg->confirm_rkey.other_cnt && i < LLC_LINKS_INLINE; i++)
			trace_alias(wr->t, msg->confirm_rkey.others[i].rkey, msg->confirm_rkey.rkey);
	if (msg->type == LLC_ADD_LINK)
		for (unsigned i = 0; i < msg->add_link.pair_cnt; i++) {
			struct llc_rkey_pair pair = llc_pair_get(msg->add_link.pairs, i);

			trace_alias(wr->t, pair.new_rkey, pair.old_rkey);
		}
	if (msg->type == LLC_ADD_LINK_CONT)
		for (unsigned i = 0; i < msg->add_link_cont.left_cnt && i < LLC_PAIRS_PER_CONT; i++)
			trace_alias(wr->t, msg->add_link_cont.pairs[i].new_rkey, msg->add_link_cont.pairs[i].old_rkey);
	(msg->response ? g->rsp_out : g->req_out)[msg->type]++;
}

static void
received(const struct watcher *wr, struct tgroup *g, const struct llc_msg *msg, uint8_t over)
{
	if (msg->type == LLC_DELETE_LINK && !msg->response && is_server(g) && lost_path(msg))
		g->lost_told_ns[msg->delete_link.link_num] = wr->t->w->now_ns;
	if (msg->type == LLC_TEST_LINK && msg->response && g->test_open[over] > 0)
		g->test_open[over]--;
	if ((msg->type == LLC_CONFIRM_RKEY || msg->type == LLC_DELETE_RKEY) && msg->response)
		g->rkey_open = false; /* or goes on in CONTINUATIONs, which nothing of ours overtakes */
	if (msg->type == LLC_DELETE_RKEY && !msg->response)
		memcpy(g->peer_deletes, msg->delete_rkey.rkeys, (size_t)msg->delete_rkey.cnt * LLC_RKEY_LEN);
	if (msg->type == LLC_CONFIRM_LINK)
		g->no_eyecatcher_in = msg->confirm_link.no_eyecatcher;
	(msg->response ? g->rsp_in : g->req_in)[msg->type]++;
}

void
trace_llc(const struct watcher *wr, const struct smcr_trace *m, struct tgroup *g)
{
	struct span in = { m->msg, m->len };
	struct llc_msg msg;

	if (llc_decode(in, llc_version_of(in), &msg) <= 0) {
		world_fail(wr->t->w, "host%u group %u: LLC message cannot be decoded", wr->host, g->id);
		return;
	}
	if (m->sent)
		sent(wr, g, &msg, m->link);
	else
		received(wr, g, &msg, m->link);
	follow_exchange(wr, g, &msg, m->link, is_server(g) == m->sent);
}
