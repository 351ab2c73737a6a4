/* Which CLC message may go when, and which RMB element may be named in it (RFC 7609 3.5, 4.4.2, C.1 to C.3). */
#include <string.h>

#include "tests/scenario/host.h"
#include "tests/scenario/trace_int.h"

static void
take_elem(const struct watcher *wr, struct elem *e, const struct clc_accept *a)
{
	*e = (struct elem){ .known = true,
		.rkey = trace_first_rkey(wr->t, a->rkey),
		.idx = a->rmbe_idx,
		.size = clc_size_bytes(a->size_code),
		.token = a->alert_token };
}

static bool
same_elem(const struct elem *a, const struct elem *b)
{
	return a->known && b->known && a->rkey == b->rkey && a->idx == b->idx;
}

void
trace_check_mine(const struct watcher *wr, struct tconn *c)
{
	for (unsigned i = 0; i < TRACE_BUCKETS; i++)
		LIST_FOREACH(n, &wr->t->conns[i]) {
			struct tconn *o = CONTAINER_OF(n, struct tconn, node);

			if (o == c || o->host != wr->host || !same_elem(&o->mine, &c->mine))
				continue;
			if (!trace_conn_over(o))
				trace_bad(wr, c,
				    "element %u is given out, but connection %08x has it (sent %02x, got %02x)",
				    c->mine.idx, o->id, o->out.conn_flags, o->in.conn_flags);
			o->mine.known = false;
		}
}

void
trace_note_peers(const struct watcher *wr, const struct tconn *c)
{
	for (unsigned i = 0; i < TRACE_BUCKETS; i++)
		LIST_FOREACH(n, &wr->t->conns[i]) {
			struct tconn *o = CONTAINER_OF(n, struct tconn, node);

			if (o != c && o->host == wr->host && same_elem(&o->peers, &c->peers)) {
				o->peer_through = true;
				o->peers.known = false;
			}
		}
}

static bool
link_confirmed(const struct watcher *wr, const struct smcr_trace *m)
{
	return m->group_id != 0 &&
	    trace_group(wr, m->group_id)->rsp_out[LLC_CONFIRM_LINK] +
	        trace_group(wr, m->group_id)->req_out[LLC_CONFIRM_LINK] >
	    0;
}

/* A Decline in place of what was expected: it may not chase another message (C.1), except on first contact (C.2). */
static void
check_decline(const struct watcher *wr, const struct smcr_trace *m, struct tconn *c)
{
	bool mine = c->client ? c->confirm : c->accept && !c->confirm;

	if (c->client && !c->accept && c->proposal)
		trace_bad(wr, c, "Decline chases the Proposal");
	if (mine && !(c->first_contact && c->client))
		trace_bad(wr, c, "Decline chases our %s", c->client ? "Confirm" : "Accept");
	if (!c->client && c->confirm && !c->first_contact)
		trace_bad(wr, c, "Decline after the Confirm of a subsequent contact");
	if (link_confirmed(wr, m) && !wr->t->faulty)
		trace_bad(wr, c, "Decline after our CONFIRM LINK");
}

/* RoCE learns only by a timer of its own that the device of a first contact does not work: too late for a Decline (C.7). */
static void
check_device(const struct watcher *wr, const struct clc_accept *a)
{
	const struct host *h = &wr->t->hosts[wr->host];

	for (unsigned i = 0; a->first_contact && i < h->dev_cnt; i++)
		if (h->dev[i].frozen && memcmp(rnic_query(h->dev[i].dev).gid.b, a->gid, sizeof(a->gid)) == 0)
			world_excuse(wr->t->w, "a first contact over a device that has failed");
}

static void
sent(const struct watcher *wr, const struct smcr_trace *m, struct tconn *c, const struct clc_msg *msg)
{
	/* A Decline of first contact is answered, once. */
	if (c->declined && (msg->type != CLC_DECLINE || !c->first_contact || c->mine_declined))
		trace_bad(wr, c, "CLC message %d behind a Decline", (int)msg->type);
	switch (msg->type) {
	case CLC_PROPOSAL:
		if (c->proposal)
			trace_bad(wr, c, "second Proposal");
		c->client = true;
		c->proposal = true;
		break;
	case CLC_ACCEPT:
		if (c->client || !c->proposal || c->accept)
			trace_bad(wr, c, "Accept out of place");
		check_device(wr, &msg->accept);
		c->accept = true;
		c->first_contact = msg->accept.first_contact;
		take_elem(wr, &c->mine, &msg->accept);
		trace_check_mine(wr, c);
		break;
	case CLC_CONFIRM:
		if (!c->client || !c->accept || c->confirm)
			trace_bad(wr, c, "Confirm out of place");
		check_device(wr, &msg->accept);
		c->confirm = true;
		take_elem(wr, &c->mine, &msg->accept);
		trace_check_mine(wr, c);
		break;
	case CLC_DECLINE:
		check_decline(wr, m, c);
		c->declined = c->mine_declined = true;
		break;
	}
}

static bool
knows_start_over(const struct clc_smcrd_ext *ext)
{
	return ext->present && (ext->features & CLC_FEATURE_START_OVER) != 0;
}

static void
received(const struct watcher *wr, struct tconn *c, const struct clc_msg *msg)
{
	switch (msg->type) {
	case CLC_PROPOSAL:
		c->proposal = true;
		break;
	case CLC_ACCEPT:
		c->accept = true;
		c->first_contact = msg->accept.first_contact;
		take_elem(wr, &c->peers, &msg->accept);
		trace_note_peers(wr, c);
		break;
	case CLC_CONFIRM:
		c->confirm = true;
		take_elem(wr, &c->peers, &msg->accept);
		trace_note_peers(wr, c);
		break;
	case CLC_DECLINE:
		c->declined = true;
		break;
	}
}

void
trace_clc(const struct watcher *wr, const struct smcr_trace *m, struct tconn *c)
{
	struct clc_msg msg;

	if (clc_decode((struct span){ m->msg, m->len }, &msg) != (int)m->len) {
		trace_bad(wr, c, "CLC message cannot be decoded");
		return;
	}
	if (m->sent)
		sent(wr, m, c, &msg);
	else
		received(wr, c, &msg);
	if (msg.type == CLC_PROPOSAL)
		c->knows_start_over = knows_start_over(&msg.proposal.ext);
	else if (msg.type == CLC_ACCEPT)
		c->knows_start_over = c->knows_start_over && knows_start_over(&msg.accept.ext);
}
