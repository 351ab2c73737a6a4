/* Moves of connections between links; see failover.h. */
#include "smcr/data/failover.h"

#include "base/minmax.h"
#include "smcr/data/conn.h"
#include "smcr/data/grant.h"
#include "smcr/state/engine.h"

#define LAST (CDC_CLOSED | CDC_ABORT) /* nothing follows either flag */
/* After this time from the end of a lost link, a peer that moves its connections has sent every message. Linux waits
 * that long for a send queue slot (SMC_WR_TX_WAIT_FREE_SLOT_TIME), then ends the other link. */
#define MOVES_MS 10000

/* All posted messages are complete. */
static bool
is_settled(const struct conn_tx *tx)
{
	return tx->done_seq == tx->seq && !tx->unproven;
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
	conn->tx.unproven = false;
	/* The OPEN may be lost, or overtaken by what follows: repeated, it is ignored by a peer that has it. */
	conn->open_owed = conn_is_unanswered(conn);
	if (conn->open_owed)
		conn_await_answer(conn);
	/* While the last move's message is owed, nothing was sent over the old link. */
	if (!conn->tx.validate)
		conn->tx.in_peace = in_peace;
	/* Also behind a final message: complete is not arrived (4.6.1), and no CLC connection may tell of its loss. */
	conn->tx.validate = conn->tx.any;
	if (from->retiring && from->conn_cnt == 0)
		mark_exchanges(conn->lgr);
}

/* -- loss of a link -- */

void
failover_resumed(struct smcr_conn *conn)
{
	struct failover *f = &conn->lgr->failover;

	if (conn->tx.resumes && f->left > 0 && --f->left == 0)
		f->took_ns = conn->eng->now_ns - f->began_ns;
	conn->tx.resumes = false;
}

void
failover_proven(struct smcr_conn *conn)
{
	conn->tx.unproven = false;
	failover_resumed(conn);
	if (conn->tx.move_to != 0)
		conn_tx_schedule(conn);
}

bool
failover_awaits_peer(const struct smcr_conn *conn)
{
	if (!conn->lgr->dialect.closing_moves_unasked)
		return false;
	LGR_EACH_LINK(l, conn->lgr)
		if (l->state == LINK_LOST && l->was_active && (conn->rx.link == 0 || conn->rx.link == l->number))
			return true;
	/* It validates its move, or has lost its own close. */
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
	return conn->rx.unheard_ns != 0 ||
	    LGR_ANY_LINK(
	        l, conn->lgr, l->number == conn->rx.link && l->state != LINK_FREE && link_has_ended(l) && l->path_lost);
}

/* Linux validates each move except those of closing connections. A connection it omits and that we have not begun to
 * close was closed by Linux, and that message is lost. One that we have begun to close may have nothing to send. We
 * request an answer once by R: Linux before 5.18 always answers, later versions send unsent data. */
static void
unheard(struct smcr_conn *conn, bool late)
{
	bool ended = (conn->close.tx_flags_ever & (CDC_SENDING_DONE | CDC_CLOSED)) != 0;

	if (!ended && late)
		conn_rx_lost(conn, conn->link);
	/* A server moves its connections before it deletes a link, a client after its response. */
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
	if (LGR_ANY_LINK(l, lgr, l->state == LINK_LOST))
		return;
	/* Others validate a move maybe only with their next message. */
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

/* The connection's old link was lost: what is neither complete nor consumed is repeated, data and flags, in messages
 * with new numbers (second method of 4.6.2). Nothing below the later of both is: the peer may have newer data there. */
static void
go_back(struct smcr_conn *conn)
{
	struct conn_tx *tx = &conn->tx;
	struct smcr_counters *ctr = &conn->eng->ctr;
	uint64_t from = tx_released(tx);
	/* Consumed data is not in flight over the old link, unless an earlier one brought it before its repetition. */
	uint64_t under_way = tx->acked > tx->replay ? from : tx_free(tx);

	/* The peer may still receive and place data from a queue pair that we have reset, until it is notified. */
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
		/* The cursor in the last messages may be lost as well. */
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
	grant_in_doubt(lgr);
	LIST_EACH(struct smcr_conn, conn, &lgr->conns, lgr_node) {
		conn->tx.resumes = false;
		conn->tx.asks = false; /* the answer may be lost with the link */
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
	/* A link that the peer ended first brings nothing more. */
	failover_settled(lgr);
	/* A link that ends in order without connections is no loss. */
	if (moved == 0 && link->state != LINK_LOST)
		return;
	eng->ctr.failovers++;
	eng->ctr.conns_moved += moved;
	lgr->failover.began_ns = eng->now_ns;
	lgr->failover.took_ns = 0;
	lgr->failover.why = link->down_why;
	lgr->failover.moved = moved;
}

/* -- requested moves -- */

void
failover_ask(struct smcr_conn *conn, struct link *to)
{
	if (conn->link == to) {
		conn->tx.move_to = 0;
		return;
	}
	/* After a final message only its completion is awaited. */
	if ((conn->close.tx_flags & LAST) != 0)
		return;
	conn->tx.move_to = to->number;
	if (is_settled(&conn->tx))
		change_link(conn, to, true);
	else
		conn->link->want_fence = true;
	conn_tx_schedule(conn);
}

bool
failover_stays(struct smcr_conn *conn)
{
	struct link *to = LGR_FIND_LINK(l, conn->lgr, l->state == LINK_ACTIVE && l->number == conn->tx.move_to);

	if (to == NULL || to == conn->link) {
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
