/* Connections move between links; see failover.h. */
#include "smcr/data/failover.h"

#include "base/minmax.h"
#include "smcr/data/conn.h"
#include "smcr/state/engine.h"

#define LAST (CDC_CLOSED | CDC_ABORT) /* nothing is said behind either */
/* So long after the end of a lost link each message of a peer that moves its connections is out: Linux waits as long for a place in
 * a send queue (SMC_WR_TX_WAIT_FREE_SLOT_TIME), and gives the other link up then. */
#define MOVES_MS 10000

/* Everything that was posted is complete. */
static bool
is_settled(const struct conn_tx *tx)
{
	return tx->done_seq == tx->seq;
}

static void
change_link(struct smcr_conn *conn, struct link *to, bool in_peace)
{
	struct link *from = conn->link;

	list_remove(&conn->ready_node);
	from->conn_cnt--;
	to->conn_cnt++;
	conn->link = to;
	conn->tx.move_to = 0;
	/* While a message of the last move is owed, nothing was said over the link that is left. */
	if (!conn->tx.validate)
		conn->tx.in_peace = in_peace;
	/* Owed unless nothing was said or the last word is complete. */
	conn->tx.validate = conn->tx.any && (conn->tx.done_flags & LAST) == 0;
	if (from->retiring && from->conn_cnt == 0)
		mark_exchanges(conn->lgr);
}

/* -- a link is lost -- */

void
failover_resumed(struct smcr_conn *conn)
{
	struct failover *f = &conn->lgr->failover;

	if (conn->tx.resumes && f->left > 0 && --f->left == 0)
		f->took_ns = conn->eng->now_ns - f->began_ns;
	conn->tx.resumes = false;
}

bool
failover_awaits_peer(const struct smcr_conn *conn)
{
	if (!conn->lgr->dialect.closing_moves_unasked)
		return false;
	LGR_EACH_LINK(l, conn->lgr)
		if (l->state == LINK_LOST && l->was_active && (conn->rx.link == 0 || conn->rx.link == l->number))
			return true;
	/* It validates its move, or has lost its own word of the end. */
	return conn->rx.unheard_ns != 0 && conn->eng->now_ns < conn->rx.unheard_ns + MOVES_MS * MS;
}

bool
failover_holds_back(const struct smcr_conn *conn)
{
	uint8_t owed = conn->close.tx_flags_ever & (uint8_t)~conn->close.tx_flags;

	return (owed & (CDC_SENDING_DONE | CDC_CLOSED)) != 0 && !conn->close.want_abort && !conn->close.ask &&
	    failover_awaits_peer(conn);
}

static bool
is_unheard(const struct smcr_conn *conn)
{
	if (!conn_is_open(conn) || conn->close.rx_flags != 0 || conn->rx.link == 0)
		return false;
	LGR_EACH_LINK(l, conn->lgr)
		if (l->number == conn->rx.link && l->state != LINK_FREE && link_has_ended(l) && l->path_lost)
			return true;
	return conn->rx.unheard_ns != 0;
}

/*
 * Linux validates the move of each connection unless its end has begun. So one that it leaves out, and that we have not begun to
 * end, is one that it has ended itself, and its word of that is lost. One that we have begun to end may have nothing to say. We
 * ask, once, by R: Linux before 5.18 always answers, later ones send what they have not sent at all.
 */
static void
unheard(struct smcr_conn *conn, bool late)
{
	bool ended = (conn->close.tx_flags_ever & (CDC_SENDING_DONE | CDC_CLOSED)) != 0;

	if (!ended && late)
		conn_rx_lost(conn, conn->link);
	/* As the server it moves its connections before it deletes a link, as the client behind its answer. */
	else if (ended && (late || conn->role == SMCR_CLIENT))
		conn_ask_alive(conn, true);
	conn_tx_schedule(conn);
}

static void
look_for_unheard(struct lgr *lgr)
{
	int64_t now = lgr->eng->now_ns, next = 0;

	LIST_EACH(struct smcr_conn, conn, &lgr->conns, lgr_node) {
		if (!is_unheard(conn))
			continue;
		if (conn->rx.unheard_ns == 0)
			conn->rx.unheard_ns = now;
		int64_t due = conn->rx.unheard_ns + MOVES_MS * MS;

		if (due > now && (next == 0 || due < next))
			next = due;
		unheard(conn, due <= now);
	}
	if (next != 0)
		engine_arm(lgr->eng, &lgr->moves, (uint32_t)((next - now + MS - 1) / MS));
}

void
failover_moves_fired(struct timer *t)
{
	look_for_unheard(CONTAINER_OF(t, struct lgr, moves));
}

void
failover_settled(struct lgr *lgr)
{
	LGR_EACH_LINK(l, lgr)
		if (l->state == LINK_LOST)
			return;
	/* Others may validate a move when they have something to send. */
	if (lgr->dialect.closing_moves_unasked && lgr->terms.peer_os == CLC_OS_LINUX && lgr->state == LGR_ACTIVE)
		look_for_unheard(lgr);
	LIST_EACH(struct smcr_conn, conn, &lgr->conns, lgr_node) {
		conn_tx_probe(conn);
		if (conn->close.shut_wr || conn->close.want_close)
			conn_tx_schedule(conn);
		if (conn->tx.late == UINT64_MAX)
			continue;
		conn->tx.late = UINT64_MAX;
		conn_tx_schedule(conn);
	}
}

/*
 * The link that the connection has left was lost: what is neither complete nor consumed is sent again, data and flags, in
 * messages with new numbers (the second way of 4.6.2). Nothing below the later of both positions is: the peer may have newer
 * data there already.
 */
static void
go_back(struct smcr_conn *conn)
{
	struct conn_tx *tx = &conn->tx;
	struct smcr_counters *ctr = &conn->eng->ctr;
	uint64_t from = tx_released(tx);
	/* What the peer has consumed is not on its way over the link that was left, unless it came over an earlier one, and
	 * its repetition over this one has not. */
	uint64_t under_way = tx->acked > tx->replay ? from : tx_free(tx);

	/* A queue pair that was reset here may still receive there, until the peer knows, and place it. */
	if (under_way < tx->high)
		tx->late = min_u64(tx->late, under_way);
	if (tx->any) {
		tx->floor = from;
		tx->replay = tx->high;
		if (tx->sent > from && !conn->close.want_abort) {
			ctr->conns_replayed++;
			ctr->bytes_replayed += tx->sent - from;
			tx->sent = from;
		}
		conn->close.tx_flags = tx->done_flags;
		tx_set_blocked(conn, false);
		tx->urgent_pending = false;
		/* The cursor that the last messages announced may be lost as well. */
		tx->pending = tx->validate;
	}
	tx->resumes = tx->validate;
	conn_tx_schedule(conn);
}

void
failover_link(struct link *link)
{
	struct lgr *lgr = link->lgr;
	struct smcr *eng = lgr->eng;
	uint32_t moved = 0;

	lgr->failover.left = 0;
	LIST_EACH(struct smcr_conn, conn, &lgr->conns, lgr_node) {
		conn->tx.resumes = false;
		conn->tx.asks = false; /* the answer may be lost with it */
		if (conn->tx.move_to == link->number)
			conn->tx.move_to = 0;
		if (link->path_lost && (conn->rx.link == 0 || conn->rx.link == link->number))
			conn_peer_moves(conn);
		if (conn->link != link)
			continue;
		change_link(conn, lgr_pick_link(lgr), false);
		go_back(conn);
		lgr->failover.left += conn->tx.resumes;
		moved++;
	}
	/* A link that the peer gave up first brings nothing more. */
	failover_settled(lgr);
	/* One that ends in order, and has none left, is no loss. */
	if (moved == 0 && link->state != LINK_LOST)
		return;
	eng->ctr.failovers++;
	eng->ctr.conns_moved += moved;
	lgr->failover.began_ns = eng->now_ns;
	lgr->failover.took_ns = 0;
	lgr->failover.why = link->down_why;
	lgr->failover.moved = moved;
}

/* -- a connection is wanted elsewhere -- */

void
failover_ask(struct smcr_conn *conn, struct link *to)
{
	if (conn->link == to) {
		conn->tx.move_to = 0;
		return;
	}
	/* Behind a last message there is nothing to move but the wait for its completion. */
	if ((conn->close.tx_flags & LAST) != 0)
		return;
	conn->tx.move_to = to->number;
	if (is_settled(&conn->tx))
		change_link(conn, to, true);
	else
		conn->link->want_fence = true;
	conn_tx_schedule(conn);
}

void
failover_drain(struct link *link)
{
	LIST_EACH(struct smcr_conn, conn, &link->lgr->conns, lgr_node)
		if (conn->link == link)
			failover_ask(conn, lgr_pick_link(link->lgr));
}

bool
failover_stays(struct smcr_conn *conn)
{
	struct link *to = conn->link;

	LGR_EACH_LINK(l, conn->lgr)
		if (l->state == LINK_ACTIVE && l->number == conn->tx.move_to)
			to = l;
	if (to == conn->link) {
		conn->tx.move_to = 0;
		return true;
	}
	if (!is_settled(&conn->tx)) {
		conn->link->want_fence = true;
		return false;
	}
	change_link(conn, to, true);
	conn_tx_schedule(conn);
	return false;
}
