/* Which CDC message may go when, and what its cursors and flags may say (RFC 7609 4.5, 4.8, A.4). */
#include "tests/scenario/trace_int.h"

/* How cursors count in an element of this size on this connection's group. */
static uint32_t
base_of(const struct watcher *wr, const struct smcr_trace *m)
{
	const struct tgroup *g = trace_group(wr, m->group_id);

	return g->no_eyecatcher_in && g->no_eyecatcher_out ? 0 : 4;
}

/* The position that a cursor means, not below `from`. */
static bool
position(const struct cdc_cursor *c, uint32_t size, uint32_t base, uint64_t from, uint64_t *pos)
{
	uint32_t usable = size - base;
	int64_t wrap = (int64_t)(from / usable);

	if (c->count < base || c->count >= size)
		return false;
	wrap += (int16_t)(uint16_t)(c->wrap - (uint16_t)wrap);
	int64_t at = wrap * usable + (c->count - base);
	if (at < (int64_t)from)
		return false;
	*pos = (uint64_t)at;
	return true;
}

/* This message is the first that says that its writer, which was at *pos, has gone on at the start of the element: *pos goes there.
 * So do both directions of what is known of it, as all up to there was consumed. */
static bool
starts_over(const struct cdc_msg *msg, uint32_t usable, uint64_t *pos)
{
	uint64_t lap = *pos / usable;

	if ((msg->prod_flags & CDC_STARTED_OVER) == 0 || *pos % usable == 0 || msg->prod.wrap != (uint16_t)(lap + 1))
		return false;
	*pos = (lap + 1) * usable;
	return true;
}

/* We started over: only with all consumed by its cursor; S is sent until something after that was consumed. */
static void
check_start_over(const struct watcher *wr, struct tconn *c, const struct cdc_msg *msg, uint32_t usable)
{
	bool says = (msg->prod_flags & CDC_STARTED_OVER) != 0;
	uint64_t from = c->out.prod > c->in.cons ? c->out.prod : c->in.cons; /* what is consumed is not said again */

	if (says && !c->knows_start_over)
		trace_bad(wr, c, "starts over with a peer that does not know how to");
	if (c->said_start_over && !says && c->in.cons % usable == 0 && (msg->conn_flags & CDC_ABORT) == 0)
		trace_bad(wr, c, "started over, and S is missing");
	c->said_start_over = says;
	if (!starts_over(msg, usable, &from))
		return;
	if (c->in.cons < c->out.prod)
		trace_bad(wr, c, "starts over at %llu, but %llu is consumed", (unsigned long long)c->out.prod,
		    (unsigned long long)c->in.cons);
	c->out.prod = c->in.cons = from;
}

/* How many of the connection's links were deleted so far. */
static uint32_t
deleted_links(const struct watcher *wr, const struct smcr_trace *m)
{
	const struct tgroup *g = trace_group(wr, m->group_id);

	return g->req_in[LLC_DELETE_LINK] + g->req_out[LLC_DELETE_LINK];
}

/* A consumer cursor alone moves only for a reason (4.5.1), which a message that has come meanwhile may have ended. */
static void
check_update(const struct watcher *wr, const struct tconn *c, uint64_t cons, uint32_t usable)
{
	uint64_t gain = cons - c->out.cons, window = usable - (c->in.prod - c->out.cons);

	if ((c->asked & (CDC_WRITE_BLOCKED | CDC_UPDATE_REQUESTED | CDC_URGENT_PENDING | CDC_URGENT_PRESENT)) != 0)
		return;
	if (gain == 0)
		trace_bad(wr, c, "CDC message that says nothing new");
	else if (window * 2 >= usable || gain * 10 < usable)
		trace_bad(wr, c, "needless consumer update: gains %llu of %u, window %llu", (unsigned long long)gain,
		    usable, (unsigned long long)window);
}

static void
check_flags(const struct watcher *wr, const struct tconn *c, const struct cdc_msg *msg, uint64_t prod, uint32_t usable)
{
	if ((c->out.conn_flags & ~msg->conn_flags & CDC_CONN_FLAGS) != 0)
		trace_bad(wr, c, "flags %02x taken back, now %02x", c->out.conn_flags, msg->conn_flags);
	if ((c->out.conn_flags & CDC_SENDING_DONE) != 0 && prod > c->out.prod)
		trace_bad(wr, c, "data behind D");
	/* The last byte of a first lap is not used (tx.c). */
	unsigned kept = wr->t->kept + ((msg->prod_flags & CDC_STARTED_OVER) != 0 ? 1 : 0);

	if ((msg->prod_flags & CDC_WRITE_BLOCKED) != 0 && usable - (prod - c->in.cons) > kept)
		trace_bad(
		    wr, c, "B while the window has %llu bytes", (unsigned long long)(usable - (prod - c->in.cons)));
	if ((msg->prod_flags & CDC_URGENT_PRESENT) != 0 && (msg->prod_flags & CDC_URGENT_PENDING) == 0)
		trace_bad(wr, c, "U without P");
}

static void
check_start(const struct watcher *wr, const struct smcr_trace *m, const struct tconn *c, const struct cdc_msg *msg)
{
	const struct tgroup *g = trace_group(wr, m->group_id);

	if (!c->confirm || c->declined || !c->mine.known || !c->peers.known)
		trace_bad(wr, c, "CDC message before the connection is established");
	if (c->first_contact && g->rsp_out[LLC_CONFIRM_LINK] + g->rsp_in[LLC_CONFIRM_LINK] == 0)
		trace_bad(wr, c, "CDC message before the link is confirmed");
	if (msg->seq != 1)
		trace_bad(wr, c, "first CDC message has sequence %u", msg->seq);
}

/* The first message on another link (4.6.1), also behind C or A. What was said behind the last completed message is said
 * again: from the peer's consumer cursor at the earliest, and so are the flags. */
static void
moved(const struct watcher *wr, const struct smcr_trace *m, struct tconn *c, const struct cdc_msg *msg)
{
	if (!c->out.any || m->link == c->out.link)
		trace_bad(wr, c, "F on link %u though it did not move there", m->link);
	if ((int16_t)(uint16_t)(msg->seq - c->out.seq) > 0)
		trace_bad(wr, c, "F with sequence %u, only %u was sent", msg->seq, c->out.seq);
	if (msg->token != c->peers.token)
		trace_bad(wr, c, "F for token %08x, not %08x", msg->token, c->peers.token);
	c->out.link = m->link;
	if (msg->seq != c->out.seq) {
		c->out.prod = c->in.cons;
		c->out.conn_flags = 0;
	}
	c->asked |= CDC_UPDATE_REQUESTED; /* whatever follows may be said */
}

static void
sent(const struct watcher *wr, const struct smcr_trace *m, struct tconn *c, const struct cdc_msg *msg)
{
	uint32_t base = base_of(wr, m), tx = c->peers.size - base, rx = c->mine.size - base;
	uint64_t prod, cons;

	if ((msg->prod_flags & CDC_FAILOVER) != 0) {
		moved(wr, m, c, msg);
		return;
	}
	if (c->out.any && m->link != c->out.link)
		trace_bad(wr, c, "CDC message on link %u, the last was on %u, without F", m->link, c->out.link);
	c->out.link = m->link;
	if (!c->out.any)
		check_start(wr, m, c, msg);
	else if (msg->seq != (uint16_t)(c->out.seq + 1))
		trace_bad(wr, c, "sequence %u behind %u", msg->seq, c->out.seq);
	if ((c->out.conn_flags & (CDC_CLOSED | CDC_ABORT)) != 0)
		trace_bad(wr, c, "CDC message behind C or A");
	if (!c->peers.known || !c->mine.known)
		return;
	if (msg->token != c->peers.token)
		trace_bad(wr, c, "CDC message for token %08x, not %08x", msg->token, c->peers.token);
	check_start_over(wr, c, msg, tx);
	if (!position(&msg->prod, c->peers.size, base, c->out.prod, &prod) || prod - c->in.cons > tx)
		trace_bad(wr, c, "producer cursor %u/%u", msg->prod.wrap, msg->prod.count);
	else if ((msg->conn_flags & CDC_ABORT) != 0)
		c->out.prod = prod; /* what came behind its cause was not looked at: its consumer cursor may be old */
	else if (!position(&msg->cons, c->mine.size, base, c->out.cons, &cons) || cons > c->in.prod)
		trace_bad(wr, c, "consumer cursor %u/%u", msg->cons.wrap, msg->cons.count);
	else {
		check_flags(wr, c, msg, prod, tx);
		/* The answer to R may be lost with a link. */
		bool again = (msg->prod_flags & CDC_UPDATE_REQUESTED) != 0 && deleted_links(wr, m) != c->out.deleted;
		if (c->out.any && prod == c->out.prod && msg->prod_flags == c->out.prod_flags &&
		    msg->conn_flags == c->out.conn_flags && !again)
			check_update(wr, c, cons, rx);
		c->out.prod = prod;
		c->out.cons = cons;
	}
	c->out.any = true;
	c->out.seq = msg->seq;
	c->out.deleted = deleted_links(wr, m);
	c->out.prod_flags = msg->prod_flags;
	c->out.conn_flags = msg->conn_flags;
	c->asked = c->in.prod_flags;
}

/* A message that the engine received; its peer's trace judges whether it was right. */
static void
received(const struct watcher *wr, const struct smcr_trace *m, struct tconn *c, const struct cdc_msg *msg)
{
	uint32_t base = base_of(wr, m);

	if ((msg->prod_flags & CDC_FAILOVER) != 0) {
		c->in.link = m->link;
		return;
	}
	/* Late. */
	if (c->in.link != 0 && m->link != c->in.link)
		return;
	if (c->in.any && (int16_t)(uint16_t)(msg->seq - c->in.seq) <= 0)
		return;
	c->in.any = true;
	c->in.link = m->link;
	c->in.seq = msg->seq;
	c->in.prod_flags = msg->prod_flags;
	c->asked |= msg->prod_flags;
	c->in.conn_flags |= msg->conn_flags;
	if (c->mine.known && starts_over(msg, c->mine.size - base, &c->in.prod))
		c->out.cons = c->in.prod;
	if (c->mine.known)
		(void)position(&msg->prod, c->mine.size, base, c->in.prod, &c->in.prod);
	if (c->peers.known)
		(void)position(&msg->cons, c->peers.size, base, c->in.cons, &c->in.cons);
}

void
trace_late_cdc(const struct watcher *wr, const struct smcr_trace *m)
{
	struct cdc_msg msg;

	if (cdc_decode((struct span){ m->msg, m->len }, &msg) != CDC_LEN || (msg.prod_flags & CDC_FAILOVER) != 0 ||
	    (msg.conn_flags & (CDC_CLOSED | CDC_ABORT)) == 0)
		return;
	struct tconn *c = trace_conn(wr, msg.token, false);
	if (c != NULL)
		c->peer_through = true;
}

void
trace_cdc(const struct watcher *wr, const struct smcr_trace *m, struct tconn *c)
{
	struct cdc_msg msg;

	if (cdc_decode((struct span){ m->msg, m->len }, &msg) != CDC_LEN)
		trace_bad(wr, c, "CDC message cannot be decoded");
	else if (m->sent)
		sent(wr, m, c, &msg);
	else
		received(wr, m, c, &msg);
}
