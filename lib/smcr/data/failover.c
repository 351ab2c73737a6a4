/* Connections move between links; see failover.h. */
#include "smcr/data/failover.h"

#include "smcr/data/conn.h"
#include "smcr/engine.h"

/* Everything that was posted is complete. */
static bool
is_settled(const struct smcr_conn *conn)
{
	return !conn->tx_any || (conn->tx_done_any && conn->tx_done_seq == conn->tx_seq);
}

/* The peer, or our own end, allows no message any more. */
static bool
has_said_last(uint8_t conn_flags)
{
	return (conn_flags & (CDC_CLOSED | CDC_ABORT)) != 0;
}

static void
change_link(struct smcr_conn *conn, struct link *to)
{
	struct link *from = conn->link;

	list_remove(&conn->ready_node);
	from->conn_cnt--;
	to->conn_cnt++;
	conn->link = to;
	conn->move_to = 0;
	conn->tx_validate = conn->tx_any && !has_said_last(conn->tx_done_flags);
	if (from->retiring && from->conn_cnt == 0)
		lgr_settle(conn->lgr);
}

/* -- a link is lost -- */

void
failover_resumed(struct smcr_conn *conn)
{
	struct failover *f = &conn->lgr->failover;

	if (!conn->tx_resumes)
		return;
	conn->tx_resumes = false;
	if (f->left > 0 && --f->left == 0)
		f->took_ns = conn->eng->now_ns - f->began_ns;
}

/*
 * From where on something may be on its way over the link that the connection leaves. What the peer has consumed is not,
 * unless it came over an earlier link, and its repetition over this one has not.
 */
static uint64_t
under_way(const struct smcr_conn *conn)
{
	return conn->tx_acked > conn->tx_replay ? conn_tx_released(conn) : conn_tx_free(conn);
}

/*
 * What is neither complete nor consumed is to be sent again, data and flags, in messages with new numbers (the second way
 * of 4.6.2). Nothing below the later of both positions is: the peer may have newer data there already.
 */
static void
rewind(struct smcr_conn *conn)
{
	uint64_t from = conn_tx_released(conn);
	struct smcr_counters *ctr = &conn->eng->ctr;

	conn->tx_floor = from;
	conn->tx_replay = conn->tx_high;
	if (conn->tx_sent > from && !conn->want_abort) {
		ctr->conns_replayed++;
		ctr->bytes_replayed += conn->tx_sent - from;
		conn->tx_sent = from;
	}
	conn->tx_flags = conn->tx_done_flags;
	conn->tx_blocked = conn->tx_urgent_told = false;
	/* The cursor that the last messages told may be lost as well. */
	conn->tx_pending = conn->tx_validate;
}

static void
move_now(struct smcr_conn *conn, struct link *to)
{
	change_link(conn, to);
	/* A queue pair that was reset here may still receive there, until the peer knows, and place it. */
	if (under_way(conn) < conn->tx_late && under_way(conn) < conn->tx_high)
		conn->tx_late = under_way(conn);
	if (conn->tx_any)
		rewind(conn);
	if (conn->tx_validate) {
		conn->tx_resumes = true;
		conn->lgr->failover.left++;
	}
	conn_tx_schedule(conn);
}

static bool
any_lost(const struct lgr *lgr)
{
	for (unsigned i = 0; i < LINK_SLOTS; i++)
		if (lgr->links[i].state == LINK_LOST)
			return true;
	return false;
}

void
failover_settled(struct lgr *lgr)
{
	if (any_lost(lgr))
		return;
	LIST_FOREACH(n, &lgr->conns) {
		struct smcr_conn *conn = CONTAINER_OF(n, struct smcr_conn, lgr_node);

		if (conn->tx_late == UINT64_MAX)
			continue;
		conn->tx_late = UINT64_MAX;
		conn_tx_schedule(conn);
	}
}

void
failover_link(struct link *link)
{
	struct lgr *lgr = link->lgr;
	struct smcr *eng = lgr->eng;
	uint32_t moved = 0;

	lgr->failover.left = 0;
	LIST_FOREACH(n, &lgr->conns)
		CONTAINER_OF(n, struct smcr_conn, lgr_node)->tx_resumes = false;
	LIST_FOREACH(n, &lgr->conns) {
		struct smcr_conn *conn = CONTAINER_OF(n, struct smcr_conn, lgr_node);

		if (conn->move_to == link->number)
			conn->move_to = 0;
		if (conn->link != link)
			continue;
		move_now(conn, lgr_pick_link(lgr));
		moved++;
	}
	/* A link that the peer gave up first brings nothing any more. */
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
		conn->move_to = 0;
		return;
	}
	/* Its last message is out: there is nothing to move but the wait for its completion. */
	if (has_said_last(conn->tx_flags))
		return;
	conn->move_to = to->number;
	if (is_settled(conn))
		change_link(conn, to);
	else
		link_want_confirm(conn->link);
	conn_tx_schedule(conn);
}

void
failover_drain(struct link *link)
{
	struct lgr *lgr = link->lgr;

	LIST_FOREACH(n, &lgr->conns) {
		struct smcr_conn *conn = CONTAINER_OF(n, struct smcr_conn, lgr_node);

		if (conn->link == link)
			failover_ask(conn, lgr_pick_link(lgr));
	}
}

/* -- posting -- */

static struct link *
target(const struct smcr_conn *conn)
{
	for (unsigned i = 0; i < LINK_SLOTS; i++) {
		struct link *l = &conn->lgr->links[i];

		if (l->state == LINK_ACTIVE && l->number == conn->move_to)
			return l;
	}
	return NULL;
}

bool
failover_stays(struct smcr_conn *conn)
{
	struct link *to = target(conn);

	if (to == NULL || to == conn->link) {
		conn->move_to = 0;
		return true;
	}
	if (!is_settled(conn)) {
		conn->link->want_confirm = true;
		return false;
	}
	change_link(conn, to);
	conn_tx_schedule(conn);
	return false;
}

/* The sequence is that of the last message whose data the peer has, as far as we know; nothing else counts (4.6.1). */
int
failover_validate(struct smcr_conn *conn, struct rnic_credits *room)
{
	struct cdc_msg msg = {
		.seq = conn->tx_done_seq,
		.token = conn->peer_token,
		.prod_flags = CDC_FAILOVER,
	};
	struct link_wr what = { .kind = LINK_WR_FAILOVER, .conn_id = conn->id };
	int err = conn_post_cdc(conn, &msg, &what, room);

	if (err < 0)
		return err;
	conn->tx_validate = false;
	conn->link->want_confirm = true;
	return 0;
}
