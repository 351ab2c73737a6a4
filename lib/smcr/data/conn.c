/* Connections: creation, elements, end; and queries of smcr.h. Data is in tx.c and rx.c, closing in close.c. */
#include "smcr/data/conn.h"

#include <errno.h>

#include "smcr/state/engine.h"
#include "smcr/data/rmb.h"
#include "smcr/data/window.h"
#include "smcr/data/failover.h"

/* -- creation and freeing -- */

struct smcr_conn *
conn_new(struct smcr *eng, const struct smcr_open *open, int *err)
{
	struct smcr_conn *conn;

	if (eng->conns.used == eng->conns.max) {
		eng->ctr.refused_conns_max++;
		*err = -EMFILE;
		return NULL;
	}
	conn = slab_get(&eng->conn_slab);
	if (conn == NULL || timerq_reserve(&eng->timers, 1) < 0)
		goto no_memory;
	conn->id = idtable_add(&eng->conns, conn);
	if (conn->id == 0) {
		timerq_unreserve(&eng->timers, 1);
		goto no_memory;
	}
	conn->eng = eng;
	conn->app = open->app;
	conn->role = open->role;
	conn->state = CONN_RENDEZVOUS;
	conn->detail = "";
	conn->born_ns = eng->now_ns;
	conn->tx.late = conn->tx.over = UINT64_MAX;
	list_init(&conn->event_node);
	list_init(&conn->lgr_node);
	list_init(&conn->ready_node);
	timer_init(&conn->timer, conn_timer_fired);
	return conn;
no_memory:
	if (conn != NULL)
		slab_put(&eng->conn_slab, conn);
	eng->ctr.refused_memory++;
	*err = -ENOMEM;
	return NULL;
}

void
conn_free(struct smcr_conn *conn)
{
	struct smcr *eng = conn->eng;

	timer_cancel(&eng->timers, &conn->timer);
	timerq_unreserve(&eng->timers, 1);
	idtable_del(&eng->conns, conn->id);
	slab_put(&eng->conn_slab, conn);
}

void
conn_establish(struct smcr_conn *conn)
{
	conn_set_state(conn, CONN_ACTIVE);
	conn->tx.space = cursor_space(conn->peer_elem_size, conn->lgr->eye_catcher);
	if (!conn_is_unanswered(conn))
		conn_answered(conn);
}

void
conn_answered(struct smcr_conn *conn)
{
	uint8_t early = conn->close.rx_flags;

	conn->established = true;
	conn->eng->ctr.established_client += conn->role == SMCR_CLIENT;
	conn->eng->ctr.established_server += conn->role == SMCR_SERVER && !conn->not_opened;
	if (conn->over_link)
		conn_await_answer(conn);
	conn_raise(conn, SMCR_EV_ESTABLISHED | (conn->rx.head > conn->rx.tail ? SMCR_EV_READABLE : 0));
	conn->close.rx_flags = 0;
	conn_peer_flags(conn, early);
	if (conn->close.shut_wr)
		conn_tx_schedule(conn);
}

/* -- elements -- */

void
conn_attach(struct smcr_conn *conn, struct lgr *lgr, struct link *link)
{
	conn->lgr = lgr;
	conn->link = link;
	lgr->conn_cnt++;
	link->conn_cnt++;
	list_push(&lgr->conns, &conn->lgr_node);
	timer_cancel(&conn->eng->timers, &lgr->idle);
	conn->rx.space = cursor_space(conn->rmb->elem_size, lgr->eye_catcher);
	conn->rx.far = window_is_far(lgr);
	rmb_elem_mark(conn->rmb, conn->elem_idx);
}

void
conn_drop_peer_elem(struct smcr_conn *conn)
{
	if (conn->peer_rmb != NULL)
		remote_rmb_release(conn->peer_rmb, conn->peer_elem_idx, conn->id);
	conn->peer_rmb = NULL;
}

void
conn_hold_peer_elem(struct smcr_conn *conn, struct remote_rmb *rr, const struct clc_accept *a)
{
	conn_drop_peer_elem(conn);
	remote_rmb_claim(rr, a->rmbe_idx, conn->id);
	conn->peer_rmb = rr;
	conn->peer_elem_idx = a->rmbe_idx;
	conn->peer_elem_size = clc_size_bytes(a->size_code);
	conn->peer_token = a->alert_token;
}

struct open_elem
conn_open_elem(const struct smcr_conn *conn, const struct link *link)
{
	const struct rnic_mr *mr = conn->rmb->mr[link->slot];

	return (struct open_elem){ .token = conn->id,
		.rkey = mr->rkey,
		.vaddr = mr->addr,
		.idx = conn->elem_idx,
		.size_code = (uint8_t)clc_size_code(conn->rmb->elem_size) };
}

/* Returns the ring and the places on the link and in the group, which others wait for. The elements stay. */
static void
leave_group(struct smcr_conn *conn)
{
	struct lgr *lgr = conn->lgr;

	conn_tx_drop(conn);
	failover_resumed(conn);
	list_remove(&conn->ready_node);
	list_remove(&conn->lgr_node);
	conn->link->conn_cnt--;
	if (conn->link->retiring && conn->link->conn_cnt == 0)
		mark_exchanges(lgr);
	conn->link = NULL;
	lgr->conn_cnt--;
	lgr->reader_cnt++;
	mark_lgr(lgr)->conn_left = true;
}

void
conn_detach(struct smcr_conn *conn, bool quarantine)
{
	struct lgr *lgr = conn->lgr;

	if (lgr == NULL)
		return;
	if (conn->link != NULL)
		leave_group(conn);
	lgr->reader_cnt--;
	/* Only a peer that closed in order wrote no more than its cursor. */
	if ((conn->close.rx_flags & CDC_CLOSED) == 0)
		rmb_elem_dirty(conn->rmb, conn->elem_idx, conn->rmb->elem_size);
	if (quarantine)
		quarantine_elem(conn->rmb, conn->elem_idx, conn->id, conn->peer_rmb, conn->peer_elem_idx);
	else
		rmb_elem_put(conn->rmb, conn->elem_idx);
	conn_drop_peer_elem(conn);
	conn->rmb = NULL;
	conn->lgr = NULL;
	mark_lgr(lgr)->conn_left = true;
}

void
conn_end(struct smcr_conn *conn, enum smcr_reason reason, const char *detail, bool quarantine)
{
	if (conn->state == CONN_CLOSED)
		return;
	timer_cancel(&conn->eng->timers, &conn->timer);
	tx_set_blocked(conn, false);
	conn_set_state(conn, CONN_CLOSED);
	/* Data written before the end belongs to the user. */
	if (!conn->released && conn_is_readable(conn) && conn->rx.head > conn->rx.tail) {
		conn->close.quarantine = quarantine;
		leave_group(conn);
	} else {
		conn_detach(conn, quarantine);
	}
	conn_report(conn, reason, detail);
	if (conn->released)
		list_push(&conn->eng->dead_conns, &conn->event_node);
}

void
conn_release(struct smcr_conn *conn)
{
	conn->released = true;
	conn->events = 0;
	if (conn->state == CONN_CLOSED)
		conn_detach(conn, conn->close.quarantine);
	list_remove(&conn->event_node);
	if (conn->state == CONN_CLOSED || conn->state == CONN_FALLBACK)
		list_push(&conn->eng->dead_conns, &conn->event_node);
}

/* -- queries -- */

void *
smcr_app(const struct smcr_conn *conn)
{
	return conn->app;
}

enum smcr_reason
smcr_closed(const struct smcr_conn *conn, const char **detail)
{
	if (detail != NULL)
		*detail = conn->detail;
	return conn->reason;
}
