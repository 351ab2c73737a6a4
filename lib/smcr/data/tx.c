/* Send direction of a connection: the user fills a borrowed ring; a step writes from it into the peer's element by one
 * or two RDMA writes and one CDC message (RFC 7609 4.5, 4.7). link_tx.c takes steps, one connection after the other. */
#include <assert.h>

#include "base/minmax.h"
#include "smcr/data/conn.h"
#include "smcr/data/failover.h"
#include "smcr/data/link_post.h"
#include "smcr/data/rmb.h"
#include "smcr/data/sndbuf.h"
#include "smcr/data/window.h"
#include "smcr/state/engine.h"
#include "smcr/state/log.h"

#define OUTGROWN_NS 1000000000  /* the least between two exchanges of a ring */
#define TX_QUANTUM (64u * 1024) /* data of one step: limits a bulk connection */
#define PROBES_MAX 16           /* bytes, one for each loss of a link before the peer's next cursor */

/* -- the ring -- */

static uint32_t
ring_used(const struct smcr_conn *conn)
{
	return (uint32_t)(conn->tx.head - tx_free(&conn->tx));
}

static uint32_t
ring_offset(const struct smcr_conn *conn, uint64_t pos)
{
	return (uint32_t)((pos - conn->tx.ring_base) % conn->tx.sndbuf->size);
}

static void
ring_give_back_unused(struct smcr_conn *conn)
{
	struct sndbuf *sb = conn->tx.sndbuf;

	if (sb == NULL || ring_used(conn) > 0)
		return;
	conn->tx.sndbuf = NULL;
	sndbuf_put(conn->lgr, sb, NULL, 0);
}

/* A stream that never empties its ring would keep one that was small for lack of memory, whatever has become free. */
static bool
ring_is_outgrown(const struct smcr_conn *conn)
{
	const uint32_t size = conn->tx.sndbuf->size, want = window_ring_size(conn);

	return size < want && conn->eng->now_ns - conn->tx.ring_ns >= OUTGROWN_NS &&
	    sndbuf_has_larger(conn->lgr, size, want);
}

static bool
ring_borrow(struct smcr_conn *conn)
{
	struct lgr *lgr = conn->lgr;

	if (conn->tx.sndbuf != NULL)
		return true;
	conn->tx.sndbuf = sndbuf_get(lgr, window_ring_size(conn));
	if (conn->tx.sndbuf != NULL) {
		conn->tx.ring_short = conn->tx.outgrown = false;
		conn->tx.ring_ns = conn->eng->now_ns;
		conn_tx_schedule(conn); /* the flush returns it if unused */
		return true;
	}
	conn->eng->ctr.sndbuf_short++;
	if (lgr->sndbuf_cnt == 0) {
		/* No ring exists that could be returned. */
		conn_abort(conn, SMCR_R_NO_MEMORY, "no memory for a send ring");
		return false;
	}
	conn->tx.full = conn->tx.ring_short = true;
	lgr->sndbuf_waiting = true;
	return false;
}

void
conn_tx_drop(struct smcr_conn *conn)
{
	struct sndbuf *sb = conn->tx.sndbuf;

	/* Drops the part that a failover was to repeat as well: our cursor does not go back. */
	conn->tx.sent = max_u64(conn->tx.sent, conn->tx.high);
	conn->tx.head = conn->tx.sent;
	conn->tx.sndbuf = NULL;
	conn->tx.ring_short = false;
	if (sb != NULL)
		sndbuf_put(
		    conn->lgr, sb, tx_free(&conn->tx) == conn->tx.sent ? NULL : conn->link, conn->link->wr_head - 1);
}

/* -- the user's side -- */

size_t
smcr_tx_space(struct smcr_conn *conn, struct iovec iov[2])
{
	iov[0] = iov[1] = (struct iovec){ 0 };
	if (!conn_is_open(conn) || conn->close.shut_wr || conn->close.want_close || conn->close.want_reset)
		return 0;
	if (conn->tx.urgent[1] != 0) {
		conn->tx.full = true;
		return 0;
	}
	if (!ring_borrow(conn))
		return 0;
	if (ring_used(conn) == 0)
		conn->tx.ring_base = conn->tx.head; /* from the start: one piece, and warm */
	const struct sndbuf *sb = conn->tx.sndbuf;
	uint32_t off = ring_offset(conn, conn->tx.head), first = sb->size - off, room = sb->size - ring_used(conn);

	if (room == 0 || conn->tx.outgrown) {
		conn->tx.outgrown = conn->tx.outgrown || ring_is_outgrown(conn);
		conn->tx.full = true;
		conn->eng->ctr.sndbuf_full++;
		return 0;
	}
	iov[0] = (struct iovec){ sb->buf + off, min_u32(first, room) };
	if (first < room)
		iov[1] = (struct iovec){ sb->buf, room - first };
	return room;
}

void
smcr_tx_commit(struct smcr_conn *conn, size_t len, bool urgent)
{
	if (len == 0 || conn->tx.sndbuf == NULL || !conn_is_open(conn))
		return;
	assert(len <= conn->tx.sndbuf->size - ring_used(conn));
	if ((conn->close.rx_flags & CDC_CLOSED) != 0) {
		conn_abort(conn, SMCR_R_PEER_CLOSED, "data for a peer that has closed");
		return;
	}
	struct sndbuf *sb = conn->tx.sndbuf;
	uint32_t off = ring_offset(conn, conn->tx.head);

	sb->dirty = max_u32(sb->dirty, len < sb->size - off ? off + (uint32_t)len : sb->size);
	conn->tx.head += len;
	if (urgent)
		conn->tx.urgent[conn->tx.urgent[0] == 0 ? 0 : 1] = conn->tx.head;
	conn_tx_schedule(conn);
}

/* -- the next step -- */

struct tx_step {
	uint64_t end; /* stream position that it reaches */
	uint8_t prod_flags;
	uint8_t conn_flags;
	bool cdc;    /* a message is due, with or without data */
	bool silent; /* but data goes without it: a later step's message covers both */
};

/* The peer may not know yet that we started over: each message repeats it until it has consumed from there on. */
static bool
says_started_over(const struct smcr_conn *conn)
{
	return conn->tx.acked == conn->tx.over;
}

/* Requires that all data ever sent is consumed (after a failover the peer may have more than reported). A lost link or
 * a repetition that a second loss could strand must not bring data later. Then new data starts over at the beginning of
 * the peer's element, where memory is warm at both ends. Small messages thus need one page of any element. */
static void
start_over(struct smcr_conn *conn)
{
	struct conn_tx *tx = &conn->tx;

	if (!conn->lgr->dialect.starts_over || tx->head == tx->sent || tx->acked != tx->high || tx->sent != tx->high ||
	    tx->late != UINT64_MAX || tx->done < tx->replay || conn->close.want_abort ||
	    cursor_offset(tx->space, tx->sent) == tx->space.base)
		return;
	cursor_start_over(&tx->space, tx->sent);
	tx->over = tx->sent;
	conn->eng->ctr.started_over++;
}

/* Part of the peer's element that may be written ahead of its cursor. If that were all of it, the loss of a cursor that
 * the peer sends once would block both sides. A few bytes are reserved: the use of one makes it send its cursor. */
static uint64_t
window(const struct smcr_conn *conn)
{
	uint32_t usable = conn->tx.space.usable;

	/* A message at the end of the first lap would announce the beginning of the next one. */
	if (says_started_over(conn))
		return usable - 1;
	if (!conn->lgr->dialect.cursor_said_once || usable <= PROBES_MAX)
		return usable;
	return usable - (PROBES_MAX - conn->tx.probes);
}

/* Limit for data now: the window without what data of a lost link may still reach, and an unread urgent byte (4.7.5). */
static uint64_t
may_send_to(const struct smcr_conn *conn, uint64_t most)
{
	uint64_t from = min_u64(conn->tx.acked, conn->tx.late);
	uint64_t end = min_u64(from + window(conn), conn->tx.head);

	if (conn->tx.urgent[0] != 0 && end > conn->tx.urgent[0])
		end = conn->tx.urgent[0];
	end = max_u64(end, conn->tx.sent);
	return conn->tx.sent + min_u64(end - conn->tx.sent, most);
}

/* After a failover, cursors of wrap 0 would look new to the peer (dialect.h): no message until they leave wrap 0. */
static bool
looks_like_a_wrap(const struct smcr_conn *conn, uint64_t end)
{
	return conn->lgr->dialect.wrap_0_is_next && end < conn->tx.high &&
	    cursor_encode(conn->tx.space, end).wrap == 0 && cursor_encode(conn->tx.space, conn->tx.high).wrap != 0 &&
	    may_send_to(conn, UINT64_MAX) >= conn->tx.high;
}

static struct tx_step
plan(const struct smcr_conn *conn, const struct rnic_credits *room)
{
	const struct conn_tx *tx = &conn->tx;
	uint64_t most = room->wrs < LINK_STEP_WRS ? 0 : min_u64(room->bytes, TX_QUANTUM);
	struct tx_step step = { .end = conn->close.want_abort ? tx->sent : may_send_to(conn, most) };

	if (!conn->close.want_abort) {
		if (tx->head > step.end && step.end >= tx->acked + window(conn)) /* the window is closed */
			step.prod_flags |= CDC_WRITE_BLOCKED;
		if (says_started_over(conn))
			step.prod_flags |= CDC_STARTED_OVER;
		if (tx->probes > 0 || conn->close.doubt)
			step.prod_flags |= CDC_UPDATE_REQUESTED;
		if (tx->urgent[0] != 0)
			step.prod_flags |= CDC_URGENT_PENDING;
		if (tx->urgent[0] == step.end && step.end != 0)
			step.prod_flags |= CDC_URGENT_PRESENT;
	}
	step.conn_flags = conn_due_flags(conn, step.end);
	step.cdc = step.end > tx->sent || step.conn_flags != conn->close.tx_flags || tx->pending || conn->close.ask;
	/* B, and P with it, justify a separate message: the peer should hurry. */
	if ((step.prod_flags & CDC_WRITE_BLOCKED) != 0)
		step.cdc = step.cdc || !tx->blocked || (tx->urgent[0] != 0 && !tx->urgent_pending);
	step.silent = step.cdc && !conn->close.want_abort && looks_like_a_wrap(conn, step.end);
	return step;
}

/* -- posting -- */

void
tx_set_blocked(struct smcr_conn *conn, bool blocked)
{
	struct conn_tx *tx = &conn->tx;

	if (blocked == tx->blocked)
		return;
	tx->blocked = blocked;
	if (blocked) {
		conn->eng->ctr.writer_blocked++;
		tx->blocked_ns = conn->eng->now_ns;
	} else {
		histogram_add_time(&conn->eng->hist.blocked, conn->eng->now_ns - tx->blocked_ns);
	}
}

/* Writes [tx.sent, end): two requests when it wraps at the end of the element. */
static int
post_writes(struct smcr_conn *conn, uint64_t end, struct rnic_credits *room)
{
	const struct cursor_space *space = &conn->tx.space;
	const struct sndbuf *sb = conn->tx.sndbuf;
	const struct remote_rmb *rr = conn->peer_rmb;
	unsigned slot = conn->link->slot;
	uint64_t elem = rr->on[slot].addr + (uint64_t)conn->peer_elem_size * (conn->peer_elem_idx - 1u);
	struct link_wr what = { .kind = LINK_WR_WRITE, .conn_id = conn->id };

	for (uint64_t pos = conn->tx.sent; pos < end;) {
		uint32_t to = cursor_offset(*space, pos), len = space->base + space->usable - to;

		if (len > end - pos)
			len = (uint32_t)(end - pos);
		uint32_t from = ring_offset(conn, pos), first = min_u32(len, sb->size - from);
		struct rnic_send_wr wr = {
			.op = RNIC_WR_WRITE,
			.raddr = elem + to,
			.rkey = rr->on[slot].rkey,
			.sge_cnt = first < len ? 2 : 1,
			.sge = { { sb->mr[slot], sb->buf + from, first }, { sb->mr[slot], sb->buf, len - first } },
		};
		int err = link_post(conn->link, &wr, NULL, &what);

		if (err < 0)
			return err;
		pos += len;
		room->wrs--;
		room->bytes -= len;
		conn->eng->ctr.writes++;
		histogram_add_size(&conn->eng->hist.write_size, len);
	}
	return 0;
}

static int
send_cdc(struct smcr_conn *conn, const struct cdc_msg *msg, const struct link_wr *what, struct rnic_credits *room)
{
	uint8_t buf[CDC_LEN];
	int err = cdc_encode(msg, buf, sizeof(buf));

	if (err > 0)
		err = link_post(conn->link, NULL, buf, what);
	if (err < 0)
		return err;
	room->wrs--;
	room->sends--;
	conn->eng->ctr.cdc_sent++;
	engine_trace(conn->eng, SMCR_TRACE_CDC, true, conn->link, conn->id, buf, sizeof(buf));
	return 0;
}

/* Posts the step's CDC message; may end the connection. */
static int
post_cdc(struct smcr_conn *conn, const struct tx_step *step, struct rnic_credits *room)
{
	struct conn_tx *tx = &conn->tx;
	struct smcr_counters *ctr = &conn->eng->ctr;
	struct cdc_msg msg = {
		.seq = (uint16_t)(tx->seq + 1),
		.token = conn->peer_token,
		.prod = cursor_encode(tx->space, step->end),
		.cons = cursor_encode(conn->rx.space, conn->rx.tail),
		.prod_flags = step->prod_flags,
		.conn_flags = step->conn_flags,
	};
	struct link_wr what = { LINK_WR_CDC, conn->id, .tx_end = step->end, .seq = msg.seq, .flags = msg.conn_flags };
	int err = send_cdc(conn, &msg, &what, room);

	if (err < 0)
		return err;
	if (step->end > tx->sent && (step->prod_flags & CDC_URGENT_PRESENT) != 0)
		ctr->urgent_sent++;
	tx_set_blocked(conn, (step->prod_flags & CDC_WRITE_BLOCKED) != 0);
	if (step->end > tx->high) {
		ctr->bytes_sent += step->end - tx->high;
		tx->high = step->end;
	}
	tx->seq = msg.seq;
	tx->any = true;
	tx->sent = step->end;
	tx->urgent_pending = (step->prod_flags & CDC_URGENT_PENDING) != 0;
	tx->asks = (step->prod_flags & CDC_UPDATE_REQUESTED) != 0;
	tx->pending = conn->close.ask = false;
	conn->rx.announced = conn->rx.tail;
	if (step->conn_flags != conn->close.tx_flags)
		conn_flags_posted(conn, step->conn_flags);
	return 0;
}

/* Completions are worth requesting: they are awaited, and no later request of the connection brings them. */
static bool
wants_fence(const struct smcr_conn *conn)
{
	if (conn->state == CONN_PROCESS_ABORT || (conn->state == CONN_PEER_ABORT_WAIT && !conn->reported))
		return (conn->close.tx_flags & CDC_ABORT) != 0;
	if (conn->tx.sndbuf == NULL || conn->tx.head > conn->tx.sent)
		return false;
	return conn->close.want_close || conn->close.want_reset || ring_used(conn) > conn->tx.sndbuf->size / 2;
}

/* F: the sequence of the last message whose data the peer has, as far as we know; only that counts (4.6.1). For an
 * smcrd, CDC_IN_PEACE leaves its element open to the old link, to which the connection may return. */
static int
post_validation(struct smcr_conn *conn, struct rnic_credits *room)
{
	uint8_t in_peace = conn->tx.in_peace && !conn->lgr->dialect.foreign ? CDC_IN_PEACE : 0;
	struct cdc_msg msg = {
		.seq = conn->tx.done_seq, .token = conn->peer_token, .prod_flags = CDC_FAILOVER | in_peace
	};
	struct link_wr what = { .kind = LINK_WR_FAILOVER, .conn_id = conn->id };
	int err = send_cdc(conn, &msg, &what, room);

	if (err < 0)
		return err;
	conn->tx.validate = false;
	conn->tx.unproven = true;
	conn->link->want_fence = true;
	return 0;
}

static int
post_open(struct smcr_conn *conn, struct rnic_credits *room)
{
	struct open_msg msg = { .type = OPEN_CONN,
		.cnt = (uint8_t)conn->lgr->grant_cnt,
		.granted_token = conn->peer_token,
		.ticket = conn->ticket,
		.own = conn_open_elem(conn, conn->link),
		.hops = conn->hops,
		.origin = conn->origin,
		.client = conn->client };
	struct link_wr what = { .kind = LINK_WR_LLC };
	uint8_t buf[OPEN_LEN];
	int err = open_encode(&msg, buf, sizeof(buf));

	if (err > 0)
		err = link_post(conn->link, NULL, buf, &what);
	if (err < 0)
		return err;
	room->wrs--;
	room->sends--;
	conn->eng->ctr.llc_sent++;
	engine_trace(conn->eng, SMCR_TRACE_LLC, true, conn->link, conn->id, buf, sizeof(buf));
	conn->open_owed = false;
	return 0;
}

bool
conn_tx_post(struct smcr_conn *conn, struct rnic_credits *room)
{
	const bool last_sent = (conn->close.tx_flags & (CDC_CLOSED | CDC_ABORT)) != 0;

	if (conn->lgr == NULL || conn->state == CONN_RENDEZVOUS || (last_sent && !conn->tx.validate))
		return false;
	if (conn->tx.move_to != 0 && !failover_stays(conn))
		return false;
	if (conn->open_owed) {
		if (room->wrs == 0 || room->sends == 0)
			return true;
		if (post_open(conn, room) < 0)
			goto no_room;
	}
	if (conn->tx.validate) {
		if (room->wrs == 0 || room->sends == 0)
			return true;
		if (post_validation(conn, room) < 0)
			goto no_room;
	}
	if (last_sent || failover_holds_back(conn))
		return false;
	if (tx_free(&conn->tx) == conn->tx.head)
		conn_all_written(conn);
	start_over(conn);
	struct tx_step step = plan(conn, room);
	if (step.cdc) {
		if (room->wrs == 0 || room->sends == 0)
			return true;
		if (step.end > conn->tx.sent && !conn->peer_rmb->on[conn->link->slot].known) {
			conn_abort(conn, SMCR_R_PROTOCOL, "the peer took back the RMB of a live connection");
			return true;
		}
		if (post_writes(conn, step.end, room) < 0)
			goto no_room;
		if (step.silent)
			conn->tx.sent = step.end;
		else if (post_cdc(conn, &step, room) < 0)
			goto no_room;
	}
	if (conn->lgr == NULL)
		return false; /* that was its last message */
	ring_give_back_unused(conn);
	if (wants_fence(conn))
		conn->link->want_fence = true;
	return !conn->close.want_abort && may_send_to(conn, UINT64_MAX) > conn->tx.sent;
no_room:
	*room = (struct rnic_credits){ 0 }; /* the link is broken, or full despite its credits */
	return true;
}

void
conn_tx_schedule(struct smcr_conn *conn)
{
	if (conn->link == NULL)
		return;
	if (list_empty(&conn->ready_node))
		list_push(&conn->link->ready, &conn->ready_node);
	link_schedule(conn->link);
}

/* -- completions and cursors -- */

/* Space worth a wake-up of the user: a quarter of the ring. On a long path a ring as large as the window would then keep
 * seven eighths of it in flight; a sixteenth wakes the user more often, but a round trip has time for that. */
static bool
ring_has_room(const struct smcr_conn *conn)
{
	const struct sndbuf *sb = conn->tx.sndbuf;

	return sb == NULL || sb->size - ring_used(conn) >= sb->size / (conn->rx.far ? 16 : 4);
}

/* The ring has more space, or is unused. */
static void
released(struct smcr_conn *conn)
{
	if (conn->tx.full && !conn->tx.ring_short && conn->tx.urgent[1] == 0 && ring_has_room(conn) &&
	    conn_is_open(conn)) {
		conn->tx.full = false;
		conn_raise(conn, SMCR_EV_WRITABLE);
	}
	ring_give_back_unused(conn);
	conn_close_progress(conn);
	if (may_send_to(conn, UINT64_MAX) > conn->tx.sent ||
	    conn_due_flags(conn, conn->tx.sent) != conn->close.tx_flags || conn->close.want_reset)
		conn_tx_schedule(conn);
}

void
conn_tx_acked(struct smcr_conn *conn, uint64_t pos)
{
	conn->tx.acked = pos;
	conn->tx.probes = 0;
	conn->eng->unblocked = conn->eng->unblocked || conn->tx.blocked;
	/* A failover went back before data that the peer has consumed since: it is not repeated. */
	if (pos > conn->tx.sent) {
		conn->tx.replay = min_u64(conn->tx.replay, conn->tx.sent);
		conn->tx.sent = pos;
	}
	while (conn->tx.urgent[0] != 0 && pos >= conn->tx.urgent[0]) {
		conn->tx.urgent[0] = conn->tx.urgent[1];
		conn->tx.urgent[1] = 0;
	}
	released(conn);
}

void
conn_tx_probe(struct smcr_conn *conn)
{
	if (!conn->lgr->dialect.cursor_said_once || conn->tx.high == conn->tx.acked || conn->tx.probes == PROBES_MAX)
		return;
	conn->tx.probes++;
	conn_tx_schedule(conn);
}

void
conn_wr_done(struct smcr_conn *conn, const struct link_wr *what)
{
	conn->tx.done = max_u64(conn->tx.done, what->tx_end);
	conn->tx.done_seq = what->seq;
	conn->tx.done_flags = what->flags;
	if ((what->flags & (CDC_CLOSED | CDC_ABORT)) != 0) {
		/* A reset has arrived; the peer's response may take until its program has closed. */
		if ((what->flags & CDC_ABORT) != 0)
			conn_report(conn, SMCR_R_APP_RESET, "");
		close_event(conn, CLOSE_LAST_SENT);
		return;
	}
	if ((conn->close.tx_flags & CDC_ABORT) != 0)
		return;
	if (conn->tx.move_to != 0)
		conn_tx_schedule(conn);
	released(conn);
}
