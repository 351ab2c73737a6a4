/* Which OPEN and GRANT may go when, and which RMB element may be named in them (doc/open.md). */
#include "tests/scenario/host.h"
#include "tests/scenario/trace_int.h"

static struct elem
elem_of(const struct watcher *wr, const struct open_elem *e)
{
	return (struct elem){ .known = true,
		.rkey = trace_first_rkey(wr->t, e->rkey),
		.idx = e->idx,
		.size = clc_size_bytes(e->size_code),
		.token = e->token };
}

/* As behind an Accept and a Confirm. */
static void
is_open(const struct watcher *wr, struct tconn *c)
{
	c->proposal = c->accept = c->confirm = true;
	c->knows_start_over = (wr->t->hosts[wr->host].plan->no_start_over >> wr->host & 1) == 0;
	trace_note_peers(wr, c);
}

static void
grant_sent(const struct watcher *wr, const struct open_elem *e)
{
	struct tconn *spare = trace_conn(wr, e->token, true);

	if (spare->granted || spare->proposal)
		trace_bad(wr, spare, "granted, but in use");
	spare->granted = true;
	spare->mine = elem_of(wr, e);
	trace_check_mine(wr, spare);
}

/* The element that the client was granted by this token, once. */
static struct elem
take_grant(struct tgroup *g, uint32_t token)
{
	for (unsigned i = 0; i < g->grant_cnt; i++)
		if (g->grant[i].token == token) {
			struct elem e = g->grant[i];

			g->grant[i] = g->grant[--g->grant_cnt];
			return e;
		}
	return (struct elem){ 0 };
}

static void
open_sent(const struct watcher *wr, struct tgroup *g, const struct open_msg *m, struct tconn *c)
{
	if (c->confirm && c->peers.token == m->granted_token)
		return; /* repeated over another link */
	c->client = true;
	c->mine = elem_of(wr, &m->own);
	c->peers = take_grant(g, m->granted_token);
	if (!c->peers.known)
		trace_bad(wr, c, "OPEN with %08x, which was not granted", m->granted_token);
	trace_check_mine(wr, c);
	is_open(wr, c);
}

static void
open_received(const struct watcher *wr, const struct open_msg *m)
{
	struct tconn *c = trace_conn(wr, m->granted_token, false);

	if (c == NULL || !c->granted || c->confirm)
		return;
	c->peers = elem_of(wr, &m->own);
	is_open(wr, c);
}

bool
trace_open(const struct watcher *wr, const struct smcr_trace *t, struct tgroup *g)
{
	struct open_msg m;

	if (open_decode((struct span){ t->msg, t->len }, &m) < 0)
		return false;
	if (m.type == OPEN_CONN && t->sent)
		open_sent(wr, g, &m, trace_conn(wr, t->conn_id, true));
	else if (m.type == OPEN_CONN)
		open_received(wr, &m);
	for (unsigned i = 0; m.type == OPEN_GRANT && i < m.cnt; i++) {
		if (t->sent)
			grant_sent(wr, &m.granted[i]);
		else if (g->grant_cnt < TRACE_GRANTS)
			g->grant[g->grant_cnt++] = elem_of(wr, &m.granted[i]);
	}
	return true;
}
