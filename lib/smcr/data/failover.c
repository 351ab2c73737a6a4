/* Connections move between links; see failover.h. */
#include "smcr/data/failover.h"

#include "smcr/data/conn.h"
#include "smcr/data/link_tx.h"
#include "smcr/state/engine.h"

static void
change_link(struct smcr_conn *conn, struct link *to)
{
	struct link *from = conn->link;

	list_remove(&conn->ready_node);
	from->conn_cnt--;
	to->conn_cnt++;
	conn->link = to;
	conn_tx_moved(conn);
	if (from->retiring && from->conn_cnt == 0)
		mark_exchanges(conn->lgr);
}

/* -- a link is lost -- */

void
failover_resumed(struct smcr_conn *conn)
{
	struct failover *f = &conn->lgr->failover;

	if (conn_tx_take_resumes(conn) && f->left > 0 && --f->left == 0)
		f->took_ns = conn->eng->now_ns - f->began_ns;
}

void
failover_settled(struct lgr *lgr)
{
	LGR_EACH_LINK(l, lgr)
		if (l->state == LINK_LOST)
			return;
	LIST_EACH(struct smcr_conn, conn, &lgr->conns, lgr_node)
		conn_tx_nothing_late(conn);
}

void
failover_link(struct link *link)
{
	struct lgr *lgr = link->lgr;
	struct smcr *eng = lgr->eng;
	uint32_t moved = 0;

	lgr->failover.left = 0;
	LIST_EACH(struct smcr_conn, conn, &lgr->conns, lgr_node)
		conn_tx_take_resumes(conn);
	LIST_EACH(struct smcr_conn, conn, &lgr->conns, lgr_node) {
		if (conn->tx.move_to == link->number)
			conn_tx_want_link(conn, 0);
		if (conn->link != link)
			continue;
		change_link(conn, lgr_pick_link(lgr));
		if (conn_tx_rewind(conn))
			lgr->failover.left++;
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
	/* Behind a last message there is nothing to move but the wait for its completion. */
	if (conn->link != to && (conn->close.tx_flags & (CDC_CLOSED | CDC_ABORT)) != 0)
		return;
	conn_tx_want_link(conn, conn->link != to ? to->number : 0);
	if (conn->link == to)
		return;
	if (tx_is_settled(&conn->tx))
		change_link(conn, to);
	else
		link_want_fence(conn->link);
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
	struct link *to = lgr_active_link(conn->lgr, conn->tx.move_to);

	if (to == NULL || to == conn->link) {
		conn_tx_want_link(conn, 0);
		return true;
	}
	if (!tx_is_settled(&conn->tx)) {
		conn->link->want_fence = true;
		return false;
	}
	change_link(conn, to);
	conn_tx_schedule(conn);
	return false;
}
