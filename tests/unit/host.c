/* See host.h. */
#include "host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pages.h"
#include "smcr/data/failover.h"
#include "smcr/group/lgr.h"
#include "smcr/rendezvous/rendezvous.h"
#include "tests/numbered.h"
#include "tests/seeded_rng.h"

struct host a, b;
struct smcr_conn *ca, *cb;

/* -- hosts -- */

static void
init_engine(struct host *h)
{
	struct smcr *eng = &h->eng;

	eng->cfg = (struct smcr_config){
		.conns_max = 1000,
		.conns_per_group = 255,
		.rmb_elems = 255,
		.quarantine_max = 64,
		.rmb_bytes_max = UINT64_MAX,
		.sndbuf_size = 64 * 1024,
		.sndbuf_bytes_max = 1ull << 30,
		.group_bytes_max = 1ull << 30,
		.sq_depth = 255,
		.close_ms = 60000,
		.abort_ms = 10000,
		.fin_grace_ms = 2000,
	};
	rng_init_seeded(&h->rng, 1);
	eng->rng = &h->rng;
	eng->now_ns = 1000 * MS;
	timerq_init(&eng->timers);
	idtable_init(&eng->conns, eng->cfg.conns_max);
	slab_init(&eng->conn_slab, sizeof(struct smcr_conn), 4);
	slab_init(&eng->rdv_slab, sizeof(struct rdv), 4);
	list_init(&eng->lgrs);
	list_init(&eng->events);
	list_init(&eng->dead_conns);
	list_init(&eng->busy_links);
	list_init(&eng->marked_lgrs);
	list_init(&eng->waiting_lgrs);
	list_init(&eng->marked_conns);
	list_init(&eng->marked_peers);
}

static void
init_link(struct host *h)
{
	struct link *link = &h->lgr.links[0];

	link->lgr = &h->lgr;
	link->state = LINK_ACTIVE;
	h->lgr.link_cnt = h->lgr.active_cnt = 1;
	link->number = 1;
	link->dev = &h->dev.dev;
	link->pd = &h->dev.pd;
	link->qp = &h->dev.qp;
	link->connected = true;
	link->wr_cap = h->eng.cfg.sq_depth + 1;
	link->wr = pages_alloc(link->wr_cap * sizeof(*link->wr));
	list_init(&link->ready);
	list_init(&link->eng_node);
	h->dev.qp.ctx = link;
	h->link = link;
}

void
host_init(struct host *h, bool eye_catcher)
{
	memset(h, 0, sizeof(*h));
	init_engine(h);
	fake_init(&h->dev);
	h->lgr.eng = &h->eng;
	h->lgr.state = LGR_ACTIVE;
	h->lgr.version = 1;
	h->lgr.eye_catcher = eye_catcher;
	list_init(&h->lgr.rmbs);
	list_init(&h->lgr.dead_rmbs);
	list_init(&h->lgr.remote_rmbs);
	sndbuf_init(&h->lgr);
	list_init(&h->lgr.conns);
	list_init(&h->lgr.wait_rmb);
	list_init(&h->lgr.marks.node);
	list_init(&h->lgr.marks.turn_node);
	timer_init(&h->lgr.moves, failover_moves_fired);
	ck_assert_int_eq(timerq_reserve(&h->eng.timers, 1), 0);
	init_link(h);
}

static void
free_dead(struct host *h)
{
	struct list_node *n;

	while ((n = list_pop(&h->eng.dead_conns)) != NULL) {
		rdv_free(CONTAINER_OF(n, struct smcr_conn, event_node));
		conn_free(CONTAINER_OF(n, struct smcr_conn, event_node));
	}
}

void
host_fini(struct host *h)
{
	struct list_node *n;
	struct smcr_conn *conn;
	uint32_t pos = 0;

	LIST_EACH(struct smcr_conn, c, &h->lgr.conns, lgr_node)
		host_link_lost(c);
	while ((conn = idtable_next(&h->eng.conns, &pos)) != NULL)
		smcr_release(conn);
	free_dead(h);
	ck_assert_uint_eq(h->eng.conns.used, 0);
	ck_assert_uint_eq(h->lgr.conn_cnt, 0);
	ck_assert_uint_eq(h->link->conn_cnt, 0);
	ck_assert_uint_eq(h->lgr.sndbuf_lent, 0);
	ck_assert(list_empty(&h->link->ready));
	while ((n = list_first(&h->lgr.rmbs)) != NULL)
		rmb_free(CONTAINER_OF(n, struct rmb, node));
	while ((n = list_first(&h->lgr.remote_rmbs)) != NULL)
		remote_rmb_free(&h->lgr, CONTAINER_OF(n, struct remote_rmb, node));
	sndbuf_free_all(&h->lgr);
	pages_free(h->link->wr, h->link->wr_cap * sizeof(*h->link->wr));
	timer_cancel(&h->eng.timers, &h->lgr.moves);
	timerq_unreserve(&h->eng.timers, 1);
	ck_assert_uint_eq(h->eng.timers.reserved, 0);
	timerq_fini(&h->eng.timers);
	idtable_fini(&h->eng.conns);
	slab_fini(&h->eng.conn_slab);
	slab_fini(&h->eng.rdv_slab);
	fake_fini(&h->dev);
}

void
host_link_lost(struct smcr_conn *conn)
{
	if (conn->state == CONN_RENDEZVOUS)
		rdv_end(conn, SMCR_R_LINK_LOST, "");
	else
		conn_end(conn, SMCR_R_LINK_LOST, "", false);
}

void
host_begin_rdv(struct host *h, struct smcr_conn *conn)
{
	conn->rdv = slab_get(&h->eng.rdv_slab);
	conn->rdv->conn = conn;
	list_init(&conn->rdv->wait);
	list_init(&conn->rdv->mark.node);
	conn->mark = &conn->rdv->mark;
	ck_assert_int_eq(timerq_reserve(&h->eng.timers, 1), 0);
}

void
host_establish(struct smcr_conn *conn)
{
	rdv_free(conn);
	conn_establish(conn);
}

struct smcr_conn *
host_conn(struct host *h, uint32_t elem_size, uint32_t cnt)
{
	struct smcr_open open = { .role = SMCR_CLIENT, .elem_size = elem_size };
	int err = 0;
	struct smcr_conn *conn = conn_new(&h->eng, &open, &err);

	ck_assert_ptr_nonnull(conn);
	host_begin_rdv(h, conn);
	conn->rmb = rmb_find_place(&h->lgr, &(struct smcr_open){ .elem_size = elem_size });
	if (conn->rmb == NULL) {
		conn->rmb = rmb_new(&h->lgr, elem_size, cnt);
		ck_assert_ptr_nonnull(conn->rmb);
		conn->rmb->state = RMB_CONFIRMED;
	}
	conn->elem_idx = rmb_elem_get_from(conn->rmb);
	conn_attach(conn, &h->lgr, h->link);
	return conn;
}

static void
tell_peer(struct host *h, struct smcr_conn *conn, const struct smcr_conn *peer)
{
	const struct rnic_mr *mr = peer->rmb->mr[0];
	const struct clc_accept accept = {
		.rmbe_idx = peer->elem_idx,
		.size_code = (uint8_t)clc_size_code(peer->rmb->elem_size),
		.alert_token = peer->id,
	};

	conn_hold_peer_elem(conn, remote_rmb_add(&h->lgr, h->link, mr->rkey, mr->addr), &accept);
	conn->peer_elem_size = peer->rmb->elem_size; /* tests use sizes that no code stands for */
	conn->tx.space = cursor_space(conn->peer_elem_size, h->lgr.eye_catcher);
}

void
hosts_join(struct host *x, struct smcr_conn *cx, struct host *y, struct smcr_conn *cy)
{
	tell_peer(x, cx, cy);
	tell_peer(y, cy, cx);
}

void
hosts_pair(struct host *x, struct host *y, uint32_t elem_size, struct smcr_conn **cx, struct smcr_conn **cy)
{
	*cx = host_conn(x, elem_size, 4);
	*cy = host_conn(y, elem_size, 4);
	(*cy)->role = SMCR_SERVER;
	hosts_join(x, *cx, y, *cy);
	host_establish(*cx);
	host_establish(*cy);
	ck_assert_uint_eq(host_events(*cx), SMCR_EV_ESTABLISHED);
	ck_assert_uint_eq(host_events(*cy), SMCR_EV_ESTABLISHED);
}

static uint32_t fixture_elem_size;

static void
setup(void)
{
	host_init(&a, false);
	host_init(&b, false);
	hosts_pair(&a, &b, fixture_elem_size, &ca, &cb);
}

static void
setup_rfc(void)
{
	host_init(&a, true);
	host_init(&b, true);
	hosts_pair(&a, &b, fixture_elem_size, &ca, &cb);
}

static void
teardown(void)
{
	host_fini(&a);
	host_fini(&b);
}

void
hosts_case(TCase *tc, uint32_t elem_size, bool eye_catcher)
{
	fixture_elem_size = elem_size;
	tcase_add_checked_fixture(tc, eye_catcher ? setup_rfc : setup, teardown);
}

void
hosts_restart(bool eye_catcher)
{
	teardown();
	host_init(&a, eye_catcher);
	host_init(&b, eye_catcher);
}

/* -- carrying -- */

/* The engine's part: what was marked happens. */
static void
act(struct host *h)
{
	struct conn_mark *m;

	while ((m = LIST_POP(struct conn_mark, &h->eng.marked_conns, node)) != NULL)
		rdv_act_on_conn(m);
}

void
host_flush(struct host *h)
{
	struct list_node *n;
	unsigned rounds = 0;

	while ((n = list_pop(&h->eng.busy_links)) != NULL) {
		struct link *link = CONTAINER_OF(n, struct link, eng_node);

		if (link_flush(link))
			link_schedule(link);
		ck_assert_uint_lt(rounds++, 1000);
	}
	free_dead(h);
}

static void
describe_cdc(const uint8_t *buf, char *out, size_t cap)
{
	static const struct {
		uint8_t flag;
		char name;
	} prod[] = { { CDC_WRITE_BLOCKED, 'B' }, { CDC_URGENT_PENDING, 'P' }, { CDC_URGENT_PRESENT, 'U' },
		{ CDC_UPDATE_REQUESTED, 'R' }, { CDC_FAILOVER, 'F' }, { CDC_STARTED_OVER, 'S' },
		{ CDC_IN_PEACE, 'I' } },
	  conn[] = { { CDC_SENDING_DONE, 'D' }, { CDC_CLOSED, 'C' }, { CDC_ABORT, 'A' }, { CDC_OPERATOR, 'O' } };

	char flags[12] = " ";
	size_t n = 1;
	struct cdc_msg m;

	ck_assert_int_eq(cdc_decode((struct span){ buf, CDC_LEN }, &m), CDC_LEN);
	for (size_t i = 0; i < sizeof(prod) / sizeof(prod[0]); i++)
		if ((m.prod_flags & prod[i].flag) != 0)
			flags[n++] = prod[i].name;
	for (size_t i = 0; i < sizeof(conn) / sizeof(conn[0]); i++)
		if ((m.conn_flags & conn[i].flag) != 0)
			flags[n++] = conn[i].name;
	flags[n == 1 ? 0 : n] = '\0';
	snprintf(out, cap, "C prod=%u/%u cons=%u/%u%s", m.prod.wrap, m.prod.count, m.cons.wrap, m.cons.count, flags);
}

/* Writes are described by their place in the element, as the figures of RFC 7609 do. */
static void
describe_write(struct host *to, const struct fake_wr *w, char *out, size_t cap)
{
	const uint8_t *at = fake_at(&to->dev, w->wr.rkey, w->wr.raddr, w->len);
	size_t off = 0;

	LIST_FOREACH(n, &to->lgr.rmbs) {
		const struct rmb *rmb = CONTAINER_OF(n, struct rmb, node);

		if (at >= rmb->buf && at < rmb->buf + (size_t)rmb->elem_size * rmb->elem_cnt)
			off = (size_t)(at - rmb->buf) % rmb->elem_size;
	}
	snprintf(out, cap, "W %zu:%zu", off, off + w->len - 1);
}

bool
host_carry_one(struct host *from, struct host *to)
{
	char *text = from->step[from->steps];

	host_flush(from);
	if (from->carried == from->dev.cnt)
		return false;
	struct fake_wr *w = &from->dev.posted[from->carried++];
	if (w->wr.op == RNIC_WR_WRITE) {
		describe_write(to, w, text, sizeof(from->step[0]));
		memcpy(fake_at(&to->dev, w->wr.rkey, w->wr.raddr, w->len), w->data, w->len);
	} else if (w->data[0] == CDC_TYPE) {
		describe_cdc(w->data, text, sizeof(from->step[0]));
		conn_rx_cdc(to->link, w->data, w->len, true);
		act(to);
	} else {
		snprintf(text, sizeof(from->step[0]), "L %u", w->data[0]);
	}
	from->steps = (from->steps + 1) % HOST_STEPS;
	return true;
}

void
hosts_carry(struct host *x, struct host *y)
{
	for (bool more = true; more;) {
		more = false;
		while (host_carry_one(x, y))
			more = true;
		while (host_carry_one(y, x))
			more = true;
	}
}

void
host_complete(struct host *h)
{
	for (; h->completed < h->dev.cnt; h->completed++) {
		const struct rnic_send_wr *wr = &h->dev.posted[h->completed].wr;
		struct rnic_wc wc = { .wr_id = wr->wr_id, .qp = &h->dev.qp, .status = RNIC_WC_OK };

		if ((wr->flags & RNIC_SIGNALED) != 0)
			link_wc(h->link, &wc);
	}
}

void
host_forget(struct host *h)
{
	h->steps = 0;
}

void
host_forget_posted(struct host *h)
{
	if (h->carried < h->dev.cnt || h->completed < h->dev.cnt)
		return;
	for (unsigned i = 0; i < h->dev.cnt; i++)
		free(h->dev.posted[i].data);
	h->dev.cnt = h->carried = h->completed = 0;
	host_forget(h);
}

void
host_saw_all(const struct host *h, unsigned i, const char *const texts[])
{
	for (; *texts != NULL; i++, texts++)
		ck_assert_str_eq(i < h->steps ? h->step[i] : "(nothing)", *texts);
}

unsigned
host_events(struct smcr_conn *conn)
{
	unsigned events = conn->events;

	conn->events = 0;
	list_remove(&conn->event_node);
	return events;
}

void
host_advance(struct host *h, int64_t ms)
{
	h->eng.now_ns += ms * MS;
	timerq_run(&h->eng.timers, h->eng.now_ns);
}

/* -- the daemon's part -- */

size_t
host_write(struct smcr_conn *conn, size_t len, bool urgent)
{
	struct iovec iov[2];
	size_t room = smcr_tx_space(conn, iov);

	ck_assert_uint_eq(room, iov[0].iov_len + iov[1].iov_len);
	if (len > room)
		len = room;
	numbered_fill(iov, len, conn->tx.head);
	smcr_tx_commit(conn, len, urgent && len > 0);
	return len;
}

size_t
host_read(struct smcr_conn *conn, size_t len, unsigned *urgents)
{
	struct iovec iov[2];
	size_t done = 0, n;
	bool urgent;

	while (done < len && (n = smcr_rx_data(conn, iov, &urgent)) > 0) {
		ck_assert_uint_eq(n, iov[0].iov_len + iov[1].iov_len);
		if (urgent) {
			ck_assert_uint_eq(n, 1);
			ck_assert_ptr_nonnull(urgents);
			(*urgents)++;
		}
		ck_assert(numbered_holds(iov, n, conn->rx.tail));
		if (n > len - done)
			n = len - done;
		smcr_rx_consume(conn, n);
		done += n;
	}
	return done;
}

void
host_rx(struct host *h, struct smcr_conn *conn, const struct cdc_msg *msg)
{
	struct cdc_msg m = *msg;
	uint8_t buf[CDC_LEN];

	if (m.token == 0)
		m.token = conn->id;
	ck_assert_int_eq(cdc_encode(&m, buf, sizeof(buf)), CDC_LEN);
	conn_rx_cdc(h->link, buf, sizeof(buf), true);
	act(h);
}

const char *
host_last_log(const struct host *h)
{
	return h->eng.log_cnt > 0 ? h->eng.log[(h->eng.log_first + h->eng.log_cnt - 1) % SMCR_LOG_MAX].text : "";
}
