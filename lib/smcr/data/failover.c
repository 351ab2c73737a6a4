/* Connections move between links; see failover.h. */
#include "smcr/data/failover.h"

#include "base/minmax.h"
#include "smcr/data/conn.h"
#include "smcr/data/link_tx.h"
#include "smcr/state/engine.h"

#define LAST (CDC_CLOSED | CDC_ABORT) /* nothing is said behind either */

/* Everything that was posted is complete. */
static bool
is_settled(const struct conn_tx *tx)
{
	return tx->done_seq == tx->seq;
}

static void
change_link(struct smcr_conn *conn, struct link *to)
{
	struct link *from = conn->link;

	list_remove(&conn->ready_node);
	from->conn_cnt--;
	to->conn_cnt++;
	conn->link = to;
	conn->tx.move_to = 0;
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

void
failover_settled(struct lgr *lgr)
{
	LGR_EACH_LINK(l, lgr)
		if (l->state == LINK_LOST)
			return;
	LIST_EACH(struct smcr_conn, conn, &lgr->conns, lgr_node) {
		conn_tx_probe(conn);
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
		tx->blocked = tx->urgent_pending = false;
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
		if (conn->tx.move_to == link->number)
			conn->tx.move_to = 0;
		if (conn->link != link)
			continue;
		change_link(conn, lgr_pick_link(lgr));
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
		change_link(conn, to);
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
	change_link(conn, to);
	conn_tx_schedule(conn);
	return false;
}
