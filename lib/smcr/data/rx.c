/* Receive direction of a connection: CDC messages carry the peer's producer cursor in our element and its consumer
 * cursor; the user reads in place. All fields of a message are checked before any takes effect. */
#include <assert.h>
#include <errno.h>

#include "base/minmax.h"
#include "smcr/data/conn.h"
#include "smcr/state/engine.h"
#include "smcr/data/rmb.h"
#include "smcr/state/log.h"

#define NEED_LAPS 8 /* elements' worth of data needed to judge the window */

/* -- cursor updates -- */

/* 4.5.1: after consumption an update is due when the peer is blocked or requests it. Else it is due when its window is
 * below half and the update gains a tenth. Other messages carry the cursor anyway. On a long path updates arrive late:
 * with one for each half, a writer paced by TCP would have two thirds of its window in flight. */
static bool
update_due(const struct smcr_conn *conn)
{
	uint64_t usable = conn->rx.space.usable, gain = conn->rx.tail - conn->rx.announced;
	uint64_t window = usable - (conn->rx.head - conn->rx.announced); /* as known to the peer */

	if (conn->rx.blocked || conn->rx.update_req)
		return gain > 0;
	if (conn->rx.far)
		return gain * 8 >= usable;
	return window * 2 < usable && gain * 10 >= usable;
}

static void
owe_update(struct smcr_conn *conn)
{
	conn->tx.pending = true;
	conn_tx_schedule(conn);
}

/* -- messages of the peer -- */

/* Handles the first message after the peer started over in our element. NULL, or the error. */
static const char *
take_start_over(struct smcr_conn *conn, const struct cdc_msg *msg)
{
	struct conn_rx *rx = &conn->rx;

	if ((msg->prod_flags & CDC_STARTED_OVER) == 0 || !conn->lgr->dialect.starts_over ||
	    cursor_offset(rx->space, rx->head) == rx->space.base ||
	    msg->prod.wrap != (uint16_t)(cursor_lap(rx->space, rx->head) + 1))
		return NULL;
	if (rx->announced != rx->head)
		return "started over before it was notified that all is consumed";
	cursor_start_over(&rx->space, rx->head);
	return NULL;
}

/* Both cursors as stream positions; a cursor that did not advance keeps its value. NULL, or the error. */
static const char *
decode_cursors(const struct smcr_conn *conn, const struct cdc_msg *msg, uint64_t *prod, uint64_t *cons)
{
	uint64_t window_end = conn->rx.announced + conn->rx.space.usable;

	*prod = conn->rx.head;
	*cons = conn->tx.acked;
	if (cursor_decode(conn->rx.space, msg->prod, conn->rx.head, window_end, prod) == -EPROTO)
		return "producer cursor outside the window";
	/* Nothing was sent before the peer's element is known, and its cursor starts there. */
	if (conn->tx.space.usable != 0 &&
	    cursor_decode(conn->tx.space, msg->cons, conn->tx.acked, conn->tx.high, cons) == -EPROTO)
		return "consumer cursor beyond what was sent";
	if (*prod > conn->rx.head && (conn->close.rx_flags & (CDC_SENDING_DONE | CDC_CLOSED)) != 0)
		return "data after the end of data";
	if (*prod > conn->rx.head && !rmb_elem_intact(conn->rmb, conn->elem_idx))
		return "eye catcher of the RMB element overwritten";
	return NULL;
}

static void
take_data(struct smcr_conn *conn, const struct cdc_msg *msg, uint64_t prod)
{
	const struct cursor_space *space = &conn->rx.space;
	bool fresh = prod > conn->rx.head;

	if (fresh) {
		const struct rnic_unit *u = &conn->rmb->units[conn->elem_idx - 1];
		bool laps = cursor_lap(*space, conn->rx.head) != cursor_lap(*space, prod);

		if (!rnic_unit_keeps(u, cursor_offset(*space, conn->rx.head), prod - conn->rx.head))
			rmb_elem_dirty(conn->rmb, conn->elem_idx,
			    laps ? space->base + space->usable : cursor_offset(*space, prod));
		conn->eng->ctr.bytes_received += prod - conn->rx.head;
		conn->rx.head = prod;
	}
	conn->rx.blocked = (msg->prod_flags & CDC_WRITE_BLOCKED) != 0;
	conn->rx.update_req = (msg->prod_flags & CDC_UPDATE_REQUESTED) != 0;
	/* The flag stays set until the peer writes more: it counts only before the byte is consumed. */
	if ((msg->prod_flags & CDC_URGENT_PRESENT) != 0 && prod > conn->rx.tail && prod != conn->rx.urgent) {
		conn->rx.urgent = prod;
		conn->eng->ctr.urgent_received++;
		fresh = true;
	}
	if (fresh && conn_is_open(conn))
		conn_raise(conn, SMCR_EV_READABLE);
}

/* Distance of the message from the last one received. */
static int
ahead(const struct smcr_conn *conn, const struct cdc_msg *msg)
{
	return (int16_t)(uint16_t)(msg->seq - conn->rx.seq);
}

/* Data in flight over the peer's old link must not overwrite newer data, until a TEST LINK shows that it is in use. */
static void
deny_left(struct smcr_conn *conn, const struct link *now)
{
	LGR_EACH_LINK(l, now->lgr) {
		/* Without any message so far: any link. */
		if (l->state != LINK_ACTIVE || l == now || (conn->rx.link != 0 && l->number != conn->rx.link))
			continue;
		rmb_elem_deny(conn->rmb, conn->elem_idx, l);
		link_request_ack(l);
	}
}

/* The peer has moved from its link to this one, lost or not. in_peace: it reported nothing in flight. */
static void
moved(struct smcr_conn *conn, const struct link *now, bool in_peace)
{
	if (conn->rx.link == now->number)
		return;
	if (!in_peace)
		deny_left(conn, now);
	conn->rx.link = now->number;
	conn->rx.unheard_ns = 0;
	conn->rx.moves = false;
	conn_ask_alive(conn, false);
	conn_tx_schedule(conn); /* D or C may have waited for this */
}

/* A closing connection may move with its next message (dialect.h): data in flight over the old link is not repeated. */
static bool
may_move_unasked(const struct smcr_conn *conn, const struct link *link, const struct cdc_msg *msg)
{
	uint8_t said = conn->close.rx_flags | conn->close.tx_flags_ever | msg->conn_flags;

	return conn->lgr->dialect.closing_moves_unasked && conn->rx.link != link->number &&
	    (said & (CDC_SENDING_DONE | CDC_CLOSED | CDC_ABORT)) != 0 && ahead(conn, msg) > 0;
}

/* The message came over the peer's link for this connection. Others are late, from a link that it has left. */
static bool
is_current(struct smcr_conn *conn, const struct link *link, const struct cdc_msg *msg)
{
	/* The first to arrive is not the first sent: that one was lost with a link that nothing came over. */
	if (conn->rx.link == 0 && conn->lgr->dialect.closing_moves_unasked && ahead(conn, msg) > 1) {
		conn_rx_lost(conn, link);
		return false;
	}
	if (conn->rx.link == 0) {
		conn->rx.link = link->number;
		conn->rx.moves = false;
	}
	if (conn->rx.link == link->number)
		return true;
	if (link_has_ended(link) || rmb_elem_denied(conn->rmb, conn->elem_idx, link))
		conn->eng->ctr.cdc_stale++;
	else if (!may_move_unasked(conn, link, msg))
		conn_bad_cdc(conn, link, "moved to another link without failover validation");
	else if (ahead(conn, msg) > 1 && (conn->close.rx_flags & CDC_SENDING_DONE) == 0)
		conn_rx_lost(conn, link);
	else
		moved(conn, link, false); /* after its D only cursors can be missing */
	return conn->rx.link == link->number;
}

static void
rx_handle(struct smcr_conn *conn, const struct link *link, const struct cdc_msg *msg)
{
	/* F: only the sequence counts. The peer moved here and checks that all it completed has arrived (4.6.1). */
	if ((msg->prod_flags & CDC_FAILOVER) != 0) {
		conn->eng->ctr.failover_validations++;
		if (ahead(conn, msg) > 0)
			conn_rx_lost(conn, link);
		else
			moved(conn, link, !conn->lgr->dialect.foreign && (msg->prod_flags & CDC_IN_PEACE) != 0);
		if (conn_is_open(conn))
			conn_tx_probe(conn);
		return;
	}
	if (!is_current(conn, link, msg))
		return;
	if (conn->rx.any && ahead(conn, msg) < 0) {
		conn->eng->ctr.cdc_stale++;
		return;
	}
	if ((msg->conn_flags & CDC_ABORT) != 0) {
		/* Nothing else counts then. */
		conn_peer_flags(conn, msg->conn_flags & (CDC_ABORT | CDC_OPERATOR | CDC_NOT_OPENED));
		return;
	}
	uint64_t prod, cons;
	const char *wrong = take_start_over(conn, msg);

	if (wrong == NULL)
		wrong = decode_cursors(conn, msg, &prod, &cons);
	if (wrong != NULL) {
		conn_bad_cdc(conn, link, wrong);
		return;
	}
	bool answer = conn_is_unanswered(conn);
	conn->rx.any = true;
	conn->rx.seq = msg->seq;
	if (answer)
		conn_answered(conn);
	take_data(conn, msg, prod);
	if (cons > conn->tx.acked)
		conn_tx_acked(conn, cons);
	conn_peer_flags(conn, msg->conn_flags);
	if (conn->close.want_close && (conn->close.tx_flags & CDC_CLOSED) == 0 && conn->rx.head > conn->rx.tail)
		conn_abort(conn, SMCR_R_APP_RESET, "closed with unread data");
	/* Blocked or requesting, with a stale cursor. */
	if ((conn->rx.blocked || conn->rx.update_req) && conn->rx.tail > conn->rx.announced) {
		conn->eng->unblocked = true;
		owe_update(conn);
	}
}

bool
conn_rx_cdc(struct link *link, const uint8_t *buf, size_t len, bool last)
{
	struct smcr *eng = link->lgr->eng;
	struct cdc_msg msg;

	if (cdc_decode((struct span){ buf, len }, &msg) < 0) {
		eng->ctr.bad_cdc++;
		engine_log(SMCR_LOG_PROTOCOL, link->lgr, link, 0, "malformed CDC message");
		return true;
	}
	struct smcr_conn *conn = idtable_get(&eng->conns, msg.token);

	if (conn != NULL && conn->lgr != link->lgr)
		conn = NULL; /* of another group: not this peer's */
	bool failover = (msg.prod_flags & CDC_FAILOVER) != 0;

	/* From a peer that has moved, and ahead of what came over the old link so far. */
	if (conn != NULL && !last &&
	    (failover ? ahead(conn, &msg) > 0 : ahead(conn, &msg) > 1 && may_move_unasked(conn, link, &msg)))
		return false;
	eng->ctr.cdc_received++;
	engine_trace(eng, SMCR_TRACE_CDC, false, link, conn != NULL ? conn->id : 0, buf, len);
	if (conn == NULL) {
		if (failover || !quarantine_take_flags(link->lgr, msg.token, msg.conn_flags))
			eng->ctr.cdc_unknown++;
	} else if (conn->state == CONN_CLOSED) {
		if ((msg.conn_flags & (CDC_CLOSED | CDC_ABORT)) != 0) /* late, as for quarantine_take_flags */
			conn->close.quarantine = false;
	} else if (conn->state == CONN_PEER_ABORT_WAIT || conn->state == CONN_PROCESS_ABORT) {
		/* After A only the peer's response counts (4.8.2), A or C. Its data does not, so C is no end of data. */
		if (!failover && (msg.conn_flags & (CDC_CLOSED | CDC_ABORT)) != 0)
			conn_peer_flags(conn, CDC_ABORT | (msg.conn_flags & CDC_OPERATOR));
	} else if (conn->state != CONN_LAST_WAIT) {
		rx_handle(conn, link, &msg);
	}
	return true;
}

/* -- the user's side -- */

size_t
smcr_rx_data(struct smcr_conn *conn, struct iovec iov[2], bool *urgent)
{
	uint64_t end = conn->rx.head;

	iov[0] = iov[1] = (struct iovec){ 0 };
	*urgent = false;
	if (!conn_is_readable(conn) || conn->rx.tail == end)
		return 0;
	if (!rmb_elem_intact(conn->rmb, conn->elem_idx)) {
		conn->rx.dropped = true;
		if (conn_is_open(conn))
			conn_bad_cdc(conn, conn->link, "eye catcher of the RMB element overwritten");
		return 0;
	}
	if (conn->rx.urgent != 0) {
		*urgent = conn->rx.tail + 1 == conn->rx.urgent;
		end = *urgent ? conn->rx.urgent : conn->rx.urgent - 1;
	}
	struct rnic_unit *u = &conn->rmb->units[conn->elem_idx - 1];
	uint32_t off = cursor_offset(conn->rx.space, conn->rx.tail), len = (uint32_t)(end - conn->rx.tail);
	uint32_t first = conn->rx.space.base + conn->rx.space.usable - off;

	if (!rnic_unit_keeps(u, off, len))
		rnic_unit_place(u);
	iov[0] = (struct iovec){ u->len > 0 ? (void *)(uintptr_t)u->from : u->mem + off, min_u32(first, len) };
	if (first < len)
		iov[1] = (struct iovec){ u->mem + conn->rx.space.base, len - first };
	return len;
}

uint32_t
smcr_elem_need(const struct smcr_conn *conn)
{
	uint32_t size = conn->rx.space.base + conn->rx.space.usable;
	uint64_t laps = size > 0 ? conn->rx.head / size : 0;

	if (laps < NEED_LAPS)
		return 0;
	/* A window that a slow program leaves full needs no increase. */
	if (conn->rx.starved < laps / 4)
		return max_u32(size / 2, SMCR_ELEM_MIN);
	return min_u32(size * 2, SMCR_ELEM_MAX);
}

void
smcr_rx_consume(struct smcr_conn *conn, size_t len)
{
	if (len == 0 || !conn_is_readable(conn))
		return;
	assert(len <= conn->rx.head - conn->rx.tail);
	struct rnic_unit *u = &conn->rmb->units[conn->elem_idx - 1];
	if (rnic_unit_keeps(u, cursor_offset(conn->rx.space, conn->rx.tail), len))
		rnic_unit_drop(u);
	conn->rx.tail += len;
	if (conn->rx.blocked && conn->rx.tail == conn->rx.head)
		conn->rx.starved++;
	bool urgent = conn->rx.urgent != 0 && conn->rx.tail >= conn->rx.urgent;

	if (urgent)
		conn->rx.urgent = 0;
	if (conn_is_open(conn) &&
	    (urgent || update_due(conn))) /* the peer waits for an urgent byte regardless of its window (4.7.5) */
		owe_update(conn);
}

bool
smcr_rx_eof(const struct smcr_conn *conn)
{
	return conn->established && (conn->close.rx_flags & (CDC_SENDING_DONE | CDC_CLOSED)) != 0 &&
	    conn->rx.tail == conn->rx.head;
}
