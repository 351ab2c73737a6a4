#include "tests/sim/sim.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/rnic_end.h"
#include "unit.h"

#define MS 1000000LL
#define US 1000LL

enum { BUF = 4096, DEPTH = 8, MSG = 44 };

struct end {
	struct rnic_dev *dev;
	struct rnic_pd *pd;
	struct rnic_mr *mr; /* buf */
	struct rnic_qp *qp;
	uint8_t buf[BUF];
	unsigned wc_cnt, ev_cnt;
	struct rnic_wc wc[64];
	struct rnic_event ev[64];
};

static struct {
	struct sim_fabric *fab;
	struct end a, b; /* a is the active side */
	int64_t now;
	unsigned breaches;
	char breach[256];
	enum sim_fate fate; /* of message fate_nr */
	uint64_t fate_nr;
	unsigned expected_breaches;
} w;
static struct sim_config cfg;

static void
on_breach(void *ctx, const struct rnic_dev *dev, const char *what)
{
	(void)ctx;
	(void)dev;
	w.breaches++;
	snprintf(w.breach, sizeof(w.breach), "%s", what);
}

static enum sim_fate
on_msg(void *ctx, const struct sim_msg *msg)
{
	(void)ctx;
	return msg->nr == w.fate_nr ? w.fate : SIM_DELIVER;
}

static void
end_init(struct end *e, const char *name, unsigned nr, enum rnic_transport t)
{
	memset(e, 0, sizeof(*e));
	e->dev = sim_dev_at(w.fab, name, t, nr, 0, 0);
	ck_assert_ptr_nonnull(e->dev);
	ck_assert_int_eq(e->dev->ops->pd_alloc(e->dev, &e->pd), 0);
	ck_assert_int_eq(e->dev->ops->mr_reg(e->pd, e->buf, BUF, RNIC_ACCESS_REMOTE_WRITE, &e->mr), 0);
}

static void
new_qp(struct end *e, uint64_t token)
{
	struct rnic_qp_attr attr = { .sq_depth = DEPTH, .rq_depth = DEPTH, .token = token };

	ck_assert_int_eq(e->dev->ops->qp_create(e->pd, &attr, &e->qp), 0);
}

static void
recv_post(struct end *e, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++) {
		struct rnic_recv_wr r = { .wr_id = 100 + i, .mr = e->mr, .ptr = e->buf + 2048 + i * 64, .len = 64 };

		ck_assert_int_eq(e->dev->ops->post_recv(e->qp, &r, 1), 0);
	}
}

/* cfg: as each test finds and changes it */
static void
begin(enum rnic_transport t)
{
	memset(&w, 0, sizeof(w));
	cfg.breach = on_breach;
	cfg.filter = on_msg;
	w.fab = sim_fabric_new(&cfg);
	end_init(&w.a, "a0", 0, t);
	end_init(&w.b, "b0", 1, t);
	new_qp(&w.a, 7);
	new_qp(&w.b, 7);
}

static void
poll_end(struct end *e)
{
	e->wc_cnt += e->dev->ops->poll(e->dev, e->wc + e->wc_cnt, 64 - e->wc_cnt);
	while (e->ev_cnt < 64 && e->dev->ops->poll_event(e->dev, &e->ev[e->ev_cnt]))
		e->ev_cnt++;
}

static void
run(int64_t ns)
{
	w.a.dev->ops->flush(w.a.dev);
	w.b.dev->ops->flush(w.b.dev);
	w.now += ns;
	sim_run(w.fab, w.now);
	poll_end(&w.a);
	poll_end(&w.b);
}

static struct rnic_remote
remote_of(const struct end *e)
{
	struct rnic_info info = rnic_query(e->dev);
	struct rnic_remote r = {
		.gid = info.gid, .qpn = e->qp->qpn, .psn = e->qp->psn, .mtu_code = 5, .mpa_port = info.mpa_port
	};

	memcpy(r.mac, info.mac, 6);
	return r;
}

static void
connect_both(void)
{
	struct rnic_remote ra = remote_of(&w.a), rb = remote_of(&w.b);

	ck_assert_int_eq(w.b.dev->ops->qp_expect(w.b.qp), 0);
	ck_assert_int_eq(w.a.dev->ops->qp_connect(w.a.qp, RNIC_ACTIVE, &rb), 0);
	run(1 * MS);
	ck_assert_int_eq(w.b.dev->ops->qp_connect(w.b.qp, RNIC_PASSIVE, &ra), 0);
	run(1 * MS);
	ck_assert_uint_eq(w.a.ev_cnt, 1);
	ck_assert_uint_eq(w.b.ev_cnt, 1);
	ck_assert_int_eq(w.a.ev[0].type, RNIC_EV_CONNECTED);
	ck_assert_int_eq(w.b.ev[0].type, RNIC_EV_CONNECTED);
	ck_assert_int_eq(w.a.dev->ops->qp_rts(w.a.qp), 0);
	w.a.ev_cnt = w.b.ev_cnt = 0;
}

static void
begin_connected(enum rnic_transport t)
{
	begin(t);
	connect_both();
}

static int
send_msg(struct end *e, uint64_t id, unsigned flags)
{
	uint8_t msg[MSG] = { (uint8_t)id };
	struct rnic_send_wr wr = { .wr_id = id,
		.op = RNIC_WR_SEND,
		.flags = flags | RNIC_INLINE,
		.sge_cnt = 1,
		.sge = { { .ptr = msg, .len = MSG } } };

	return e->dev->ops->post_send(e->qp, &wr);
}

static int
write_at(struct end *e, uint64_t id, const struct end *to, uint64_t off, uint32_t len, unsigned flags)
{
	struct rnic_send_wr wr = { .wr_id = id,
		.op = RNIC_WR_WRITE,
		.flags = flags,
		.sge_cnt = 1,
		.sge = { { .mr = e->mr, .ptr = e->buf, .len = len } },
		.raddr = to->mr->addr + off,
		.rkey = to->mr->rkey };

	return e->dev->ops->post_send(e->qp, &wr);
}

static void
free_end(struct end *e)
{
	struct rnic_event ev;

	if (e->qp != NULL) {
		e->dev->ops->qp_disconnect(e->qp, false);
		e->dev->ops->qp_destroy(e->qp);
	}
	while (e->dev->ops->poll_event(e->dev, &ev))
		continue;
	if (e->mr != NULL)
		e->dev->ops->mr_dereg(e->mr);
	e->dev->ops->pd_free(e->pd);
	rnic_end(e->dev);
}

static void
setup(void)
{
	sim_config_init(&cfg);
}

static void
teardown(void)
{
	struct sim_live live;

	if (w.fab == NULL)
		return;
	free_end(&w.a);
	free_end(&w.b);
	sim_live(w.fab, &live);
	ck_assert_uint_eq(live.pd + live.mr + live.qp, 0);
	ck_assert_msg(w.breaches == w.expected_breaches, "%u breaches, last: %s", w.breaches, w.breach);
	sim_fabric_free(w.fab);
	w.fab = NULL;
}

static enum rnic_transport
transport_of(int i)
{
	return i == 0 ? RNIC_TRANSPORT_ROCE : RNIC_TRANSPORT_IWARP;
}

UNIT_FIXTURE(setup, teardown);

START_LOOP_TEST(data_and_message_arrive_in_order, 0, 2)
{
	cfg.tear_percent = 100;
	begin_connected(transport_of(_i));
	recv_post(&w.b, 2);
	memset(w.a.buf, 'x', 100);
	ck_assert_int_eq(write_at(&w.a, 1, &w.b, 500, 100, 0), 0);
	ck_assert_int_eq(send_msg(&w.a, 2, RNIC_SIGNALED), 0);
	sim_run(w.fab, w.now += 5 * MS);
	ck_assert(!sim_ready(w.b.dev)); /* nothing leaves before the flush */
	run(5 * MS);
	ck_assert_uint_eq(w.b.wc_cnt, 1);
	ck_assert_int_eq(w.b.wc[0].op, RNIC_WC_RECV);
	ck_assert_uint_eq(w.b.wc[0].wr_id, 100);
	ck_assert_uint_eq(w.b.wc[0].len, MSG);
	ck_assert_uint_eq(w.b.buf[2048], 2);
	ck_assert_uint_eq(w.b.buf[500], 'x');
	ck_assert_uint_eq(w.b.buf[599], 'x');
	ck_assert_uint_eq(w.b.buf[600], 0);
	ck_assert_uint_eq(w.a.wc_cnt, 1); /* the write was not signaled */
	ck_assert_uint_eq(w.a.wc[0].wr_id, 2);
	ck_assert_int_eq(w.a.wc[0].status, RNIC_WC_OK);
}

START_LOOP_TEST(a_write_may_overtake_a_message, 0, 2)
{
	bool iwarp = transport_of(_i) == RNIC_TRANSPORT_IWARP;

	cfg.early_percent = 100;
	begin_connected(transport_of(_i));
	memset(w.a.buf, 'x', 100);
	ck_assert_int_eq(send_msg(&w.a, 1, RNIC_SIGNALED), 0); /* finds no receive yet */
	ck_assert_int_eq(write_at(&w.a, 2, &w.b, 500, 100, RNIC_SIGNALED), 0);
	run(5 * MS);
	ck_assert_uint_eq(w.b.buf[500], iwarp ? 'x' : 0);
	ck_assert_uint_eq(w.a.wc_cnt, 0); /* placed, and yet not its turn */
	/* It is not placed again. */
	w.b.buf[500] = 'y';
	recv_post(&w.b, 1);
	run(50 * MS);
	ck_assert_uint_eq(w.b.buf[500], iwarp ? 'y' : 'x');
	ck_assert_uint_eq(w.a.wc_cnt, 2);
	ck_assert_uint_eq(w.a.wc[1].wr_id, 2);
}

START_LOOP_TEST(break_flushes_everything_once, 0, 2)
{
	begin_connected(transport_of(_i));
	recv_post(&w.a, 1);
	recv_post(&w.b, 3);
	w.fate = SIM_LOSE;
	w.fate_nr = 2;
	for (unsigned i = 1; i <= 3; i++)
		ck_assert_int_eq(send_msg(&w.a, i, i == 2 ? RNIC_SIGNALED : 0), 0);
	run(100 * MS);
	/* Message 1 arrived and was not signaled: the failure of 2 alone may report its end. */
	ck_assert_uint_ge(w.a.wc_cnt, 3);
	ck_assert_uint_eq(w.a.wc[w.a.wc_cnt - 1].op, RNIC_WC_RECV);
	ck_assert_int_eq(w.a.wc[w.a.wc_cnt - 1].status, RNIC_WC_FLUSHED);
	ck_assert_uint_eq(w.a.wc[w.a.wc_cnt - 2].wr_id, 3);
	ck_assert_int_eq(w.a.wc[w.a.wc_cnt - 2].status, RNIC_WC_FLUSHED);
	ck_assert_int_eq(w.a.wc[0].status, RNIC_WC_RETRY_EXC);
	ck_assert_uint_eq(w.b.wc_cnt, 3);
	ck_assert_int_eq(w.b.wc[0].status, RNIC_WC_OK);
	ck_assert_int_eq(w.b.wc[2].status, RNIC_WC_FLUSHED);
	ck_assert_uint_eq(w.a.ev_cnt, 1);
	ck_assert_uint_eq(w.b.ev_cnt, 1);
	ck_assert_int_eq(w.a.ev[0].type, RNIC_EV_QP_ERROR);
	ck_assert_int_eq(w.b.ev[0].type, RNIC_EV_QP_ERROR);
}

START_LOOP_TEST(wrong_key_and_range_are_refused, 0, 2)
{
	for (int k = 0; k < 3; k++) {
		struct rnic_send_wr wr = { .wr_id = 9, .op = RNIC_WR_WRITE, .flags = RNIC_SIGNALED, .sge_cnt = 1 };

		sim_config_init(&cfg);
		begin_connected(transport_of(_i));
		wr.sge[0] = (struct rnic_sge){ .mr = w.a.mr, .ptr = w.a.buf, .len = 10 };
		wr.rkey = w.b.mr->rkey + (k == 0);
		wr.raddr = k == 1 ? w.b.mr->addr + BUF - 9 : k == 2 ? w.b.mr->addr - 1 : w.b.mr->addr;
		ck_assert_int_eq(w.a.dev->ops->post_send(w.a.qp, &wr), 0);
		run(100 * MS);
		ck_assert_uint_eq(w.a.wc_cnt, 1);
		ck_assert_int_ne(w.a.wc[0].status, RNIC_WC_OK);
		ck_assert_uint_eq(w.b.ev_cnt, 1);
		ck_assert_str_eq(w.b.ev[0].why, "remote access error");
		teardown();
	}
}

START_LOOP_TEST(sends_wait_for_receives, 0, 2)
{
	begin_connected(transport_of(_i));
	ck_assert_int_eq(send_msg(&w.a, 1, RNIC_SIGNALED), 0);
	run(100 * MS);
	ck_assert_uint_eq(w.a.wc_cnt, 0);
	recv_post(&w.b, 1);
	run(1 * MS);
	ck_assert_uint_eq(w.b.wc_cnt, 1);
	ck_assert_uint_eq(w.a.wc_cnt, 1);
}

START_LOOP_TEST(room_ends_and_comes_back, 0, 2)
{
	struct rnic_credits room;

	cfg.credit_bytes = 300;
	begin_connected(transport_of(_i));
	recv_post(&w.b, DEPTH);
	for (unsigned i = 0; i < DEPTH; i++)
		ck_assert_int_eq(send_msg(&w.a, i, i == DEPTH - 1 ? RNIC_SIGNALED : 0), 0);
	w.a.dev->ops->credits(w.a.qp, &room);
	ck_assert_uint_eq(room.wrs, 0);
	ck_assert_uint_eq(room.sends, 0);
	ck_assert_uint_eq(room.bytes, 0);
	ck_assert_int_eq(send_msg(&w.a, 99, 0), -ENOBUFS);
	ck_assert_uint_eq(w.breaches, 1);
	run(10 * MS);
	ck_assert_uint_eq(w.a.wc_cnt, 1);
	ck_assert_uint_eq(w.a.ev_cnt, 1);
	ck_assert_int_eq(w.a.ev[0].type, RNIC_EV_CREDITS);
	w.a.dev->ops->credits(w.a.qp, &room);
	ck_assert_uint_eq(room.wrs, DEPTH);
	ck_assert_uint_eq(room.sends, DEPTH);
	ck_assert_uint_eq(room.bytes, 300);
	w.expected_breaches = 1;
}

START_TEST(completions_wait_for_confirm)
{
	cfg.fence_ns = 50 * MS;
	begin_connected(RNIC_TRANSPORT_IWARP);
	recv_post(&w.b, 2);
	ck_assert_int_eq(send_msg(&w.a, 1, RNIC_SIGNALED), 0);
	run(10 * MS);
	ck_assert_uint_eq(w.b.wc_cnt, 1);
	ck_assert_uint_eq(w.a.wc_cnt, 0);
	w.a.dev->ops->fence(w.a.qp);
	run(1 * MS);
	ck_assert_uint_eq(w.a.wc_cnt, 1);
	ck_assert_int_eq(send_msg(&w.a, 2, RNIC_SIGNALED), 0);
	run(60 * MS);
	ck_assert_uint_eq(w.a.wc_cnt, 2);
}

static void
expect_breach(const char *part)
{
	ck_assert_msg(w.breaches == 1 && strstr(w.breach, part) != NULL, "%u breaches, last: %s", w.breaches, w.breach);
	w.breaches = 0;
}

START_LOOP_TEST(breaches_are_reported, 0, 2)
{
	struct rnic_send_wr wr = { .op = RNIC_WR_WRITE, .sge_cnt = 1 };
	struct rnic_recv_wr rv[DEPTH + 1];
	struct rnic_pd *pd;
	struct rnic_mr *other;
	uint8_t mem[64];

	begin(transport_of(_i));
	ck_assert_int_eq(send_msg(&w.a, 1, 0), -ENOTCONN);
	expect_breach("before it is connected");
	connect_both();

	wr.sge[0] = (struct rnic_sge){ .mr = w.a.mr, .ptr = w.a.buf + BUF - 1, .len = 2 };
	ck_assert_int_eq(w.a.dev->ops->post_send(w.a.qp, &wr), -EINVAL);
	expect_breach("outside of its memory region");

	ck_assert_int_eq(w.a.dev->ops->pd_alloc(w.a.dev, &pd), 0);
	ck_assert_int_eq(w.a.dev->ops->mr_reg(pd, mem, sizeof(mem), 0, &other), 0);
	wr.sge[0] = (struct rnic_sge){ .mr = other, .ptr = mem, .len = 2 };
	ck_assert_int_eq(w.a.dev->ops->post_send(w.a.qp, &wr), -EINVAL);
	expect_breach("another protection domain");
	w.a.dev->ops->pd_free(pd);
	expect_breach("protection domain freed with 1");
	w.a.dev->ops->mr_dereg(other);
	w.a.dev->ops->pd_free(pd);

	for (unsigned i = 0; i <= DEPTH; i++)
		rv[i] = (struct rnic_recv_wr){ .mr = w.a.mr, .ptr = w.a.buf, .len = 64 };
	ck_assert_int_eq(w.a.dev->ops->post_recv(w.a.qp, rv, DEPTH + 1), -ENOBUFS);
	expect_breach("more receives than rq_depth");

	ck_assert_int_eq(write_at(&w.a, 1, &w.b, 0, 8, RNIC_SIGNALED), 0);
	w.a.dev->ops->mr_dereg(w.a.mr);
	expect_breach("deregistered under 1");
	w.a.buf[3] ^= 1;
	run(1 * MS);
	expect_breach("changed under request 1");

	ck_assert_int_eq(write_at(&w.a, 2, &w.b, 0, 8, RNIC_SIGNALED), 0);
	w.a.dev->ops->qp_destroy(w.a.qp);
	expect_breach("did not end");
	w.a.qp = NULL;
}

START_TEST(rts_is_needed_on_roce)
{
	begin(RNIC_TRANSPORT_ROCE);
	struct rnic_remote ra = remote_of(&w.a);
	struct rnic_remote rb = remote_of(&w.b);
	ck_assert_int_eq(w.a.dev->ops->qp_connect(w.a.qp, RNIC_ACTIVE, &rb), 0);
	recv_post(&w.a, 1);
	run(1 * MS);
	ck_assert_int_eq(send_msg(&w.a, 1, 0), -ENOTCONN);
	expect_breach("before qp_rts");
	ck_assert_int_eq(w.b.dev->ops->qp_connect(w.b.qp, RNIC_PASSIVE, &ra), 0);
	run(0);
	ck_assert_int_eq(send_msg(&w.b, 1, 0), 0); /* the passive side sends first */
	run(1 * MS);
	ck_assert_uint_eq(w.a.wc_cnt, 1);
}

START_LOOP_TEST(roce_needs_the_right_peer, 0, 2)
{
	begin(RNIC_TRANSPORT_ROCE);
	struct rnic_remote ra = remote_of(&w.a);
	struct rnic_remote rb = remote_of(&w.b);
	if (_i == 0)
		rb.psn ^= 1;
	else
		rb.mac[5] ^= 1;
	recv_post(&w.b, 1);
	ck_assert_int_eq(w.b.dev->ops->qp_connect(w.b.qp, RNIC_PASSIVE, &ra), 0);
	ck_assert_int_eq(w.a.dev->ops->qp_connect(w.a.qp, RNIC_ACTIVE, &rb), 0);
	run(1 * MS);
	ck_assert_int_eq(w.a.dev->ops->qp_rts(w.a.qp), 0);
	ck_assert_int_eq(send_msg(&w.a, 1, 0), 0);
	run(5000 * MS);
	ck_assert_uint_eq(w.b.wc_cnt, 0);
	ck_assert_uint_eq(w.a.wc_cnt, 1);
	ck_assert_int_eq(w.a.wc[0].status, RNIC_WC_RETRY_EXC);
}

START_LOOP_TEST(mpa_connect_fails_in_time, 0, 4)
{
	begin(RNIC_TRANSPORT_IWARP);
	struct rnic_remote rb = remote_of(&w.b);
	ck_assert_int_eq(w.b.dev->ops->qp_expect(w.b.qp), 0);
	if (_i == 0)
		rb.mpa_port++;
	else if (_i == 1)
		rb.psn ^= 1;
	else if (_i == 2)
		sim_block_connect(w.b.dev, true);
	else
		rb.gid.b[15]++;
	ck_assert_int_eq(w.a.dev->ops->qp_connect(w.a.qp, RNIC_ACTIVE, &rb), 0);
	run(1999 * MS);
	ck_assert_uint_eq(w.a.ev_cnt, 0);
	run(2 * MS);
	ck_assert_uint_eq(w.a.ev_cnt, 1);
	ck_assert_int_eq(w.a.ev[0].type, RNIC_EV_CONNECT_FAILED);
}

START_TEST(mpa_early_connection_is_parked)
{
	begin(RNIC_TRANSPORT_IWARP);
	struct rnic_remote rb = remote_of(&w.b);
	ck_assert_int_eq(w.a.dev->ops->qp_connect(w.a.qp, RNIC_ACTIVE, &rb), 0);
	run(100 * MS);
	ck_assert_uint_eq(w.a.ev_cnt, 0);
	ck_assert_int_eq(w.b.dev->ops->qp_expect(w.b.qp), 0);
	run(100 * MS);
	ck_assert_uint_eq(w.a.ev_cnt, 1);
	ck_assert_int_eq(w.a.ev[0].type, RNIC_EV_CONNECTED);
}

START_LOOP_TEST(silent_link_is_noticed_by_the_sender_only, 0, 2)
{
	begin_connected(transport_of(_i));
	recv_post(&w.b, 1);
	ck_assert(sim_break(w.fab, 0, SIM_CUT_SILENT));
	run(10000 * MS);
	ck_assert_uint_eq(w.a.ev_cnt + w.b.ev_cnt, 0);
	ck_assert_int_eq(send_msg(&w.a, 1, RNIC_SIGNALED), 0);
	run(999 * MS);
	ck_assert_uint_eq(w.a.ev_cnt, 0);
	run(10 * MS);
	ck_assert_uint_eq(w.a.ev_cnt, 1);
	ck_assert_int_eq(w.a.wc[0].status, RNIC_WC_RETRY_EXC);
	ck_assert_uint_eq(w.b.wc_cnt, 0);
}

START_LOOP_TEST(port_down_and_up, 0, 2)
{
	begin_connected(transport_of(_i));
	recv_post(&w.b, 2);
	sim_port(w.b.dev, RNIC_PORT_DOWN);
	ck_assert_int_eq(send_msg(&w.a, 1, RNIC_SIGNALED), 0);
	run(500 * MS);
	ck_assert_uint_eq(w.b.ev_cnt, 1);
	ck_assert_int_eq(w.b.ev[0].type, RNIC_EV_PORT_DOWN);
	ck_assert_int_eq(rnic_query(w.b.dev).port, RNIC_PORT_DOWN);
	sim_port(w.b.dev, RNIC_PORT_UP);
	run(500 * MS);
	ck_assert_uint_eq(w.b.wc_cnt, 1);
	sim_port(w.b.dev, RNIC_PORT_DOWN);
	ck_assert_int_eq(send_msg(&w.a, 2, RNIC_SIGNALED), 0);
	run(5500 * MS);
	if (rnic_is_iwarp(transport_of(_i))) {
		ck_assert_uint_eq(w.a.wc_cnt, 1);
		ck_assert_uint_ge(w.a.ev_cnt, 3);
		ck_assert_int_eq(w.a.ev[w.a.ev_cnt - 1].type, RNIC_EV_SILENT);
		return;
	}
	ck_assert_uint_eq(w.a.wc_cnt, 2);
	ck_assert_int_eq(w.a.wc[1].status, RNIC_WC_RETRY_EXC);
}

START_LOOP_TEST(device_gone, 0, 2)
{
	begin_connected(transport_of(_i));
	recv_post(&w.b, 2);
	sim_gone(w.b.dev);
	run(1 * MS);
	ck_assert_uint_eq(w.b.ev_cnt, 2);
	ck_assert_int_eq(w.b.ev[0].type, RNIC_EV_QP_ERROR);
	ck_assert_int_eq(w.b.ev[1].type, RNIC_EV_DEV_GONE);
	ck_assert_uint_eq(w.b.wc_cnt, 2);
	ck_assert_int_eq(send_msg(&w.a, 1, RNIC_SIGNALED), 0);
	run(5000 * MS);
	ck_assert_uint_eq(w.a.wc_cnt, rnic_is_iwarp(transport_of(_i)) ? 0 : 1);
	if (w.a.wc_cnt > 0)
		ck_assert_int_ne(w.a.wc[0].status, RNIC_WC_OK);
}

START_TEST(graceful_disconnect_delivers)
{
	begin_connected(RNIC_TRANSPORT_IWARP);
	recv_post(&w.b, 2);
	ck_assert_int_eq(send_msg(&w.a, 1, RNIC_SIGNALED), 0);
	w.a.dev->ops->qp_disconnect(w.a.qp, true);
	run(10 * MS);
	ck_assert_uint_eq(w.b.wc_cnt, 2);
	ck_assert_int_eq(w.b.wc[0].status, RNIC_WC_OK);
	ck_assert_int_eq(w.b.wc[1].status, RNIC_WC_FLUSHED);
	ck_assert_uint_eq(w.b.ev_cnt, 1);
	ck_assert_uint_eq(w.a.ev_cnt, 0);
}

START_TEST(late_link_still_places)
{
	unsigned placed = 0;

	for (uint64_t seed = 1; seed <= 40; seed++) {
		sim_config_init(&cfg);
		cfg.seed = seed;
		cfg.delay_max_ns = 5 * MS;
		begin(RNIC_TRANSPORT_ROCE);
		run(20 * MS);
		connect_both();
		memset(w.a.buf, 'y', 10);
		ck_assert_int_eq(write_at(&w.a, 1, &w.b, 100, 10, RNIC_SIGNALED), 0);
		w.a.dev->ops->flush(w.a.dev);
		ck_assert(sim_break(w.fab, 0, SIM_CUT_LATE));
		run(5000 * MS);
		placed += w.a.wc[0].status != RNIC_WC_OK && w.b.buf[100] == 'y';
		ck_assert_uint_eq(w.a.wc_cnt, 1);
		teardown();
	}
	ck_assert_uint_gt(placed, 0);
}

START_LOOP_TEST(denied_units_are_refused, 0, 2)
{
	static const struct {
		uint64_t off;
		uint32_t len;
		bool refused;
	} writes[] = { { 0, 100, false }, { 100, 1, true }, { 199, 1, true }, { 50, 51, true }, { 150, 100, true },
		{ 200, 100, false }, { 0, 300, true }, { 3300, 1, true }, { 3299, 1, false } };

	for (unsigned k = 0; k < sizeof(writes) / sizeof(writes[0]); k++) {
		sim_config_init(&cfg);
		begin_connected(transport_of(_i));
		/* Units 1 and 132, of 100 bytes or 25. */
		w.b.mr->deny_unit = writes[k].off >= 3000 ? 25 : 100;
		w.b.mr->deny[0] = 1 << 1;
		w.b.mr->deny[2] = 1 << (132 - 128);
		ck_assert_int_eq(write_at(&w.a, 1, &w.b, writes[k].off, writes[k].len, RNIC_SIGNALED), 0);
		run(100 * MS);
		ck_assert_uint_eq(w.a.wc_cnt, 1);
		ck_assert_int_eq(w.a.wc[0].status == RNIC_WC_OK, !writes[k].refused);
		ck_assert_uint_eq(w.b.ev_cnt, writes[k].refused ? 1 : 0);
		teardown();
	}
}

/* Data that was placed is not read from the buffer again, though no answer says so: a user that knows it otherwise may use the
 * buffer. */
START_LOOP_TEST(unacked_write_was_placed, 0, 2)
{
	begin_connected(transport_of(_i));
	w.fate = SIM_UNACKED;
	w.fate_nr = 1;
	w.a.buf[0] = 'u';
	ck_assert_int_eq(write_at(&w.a, 1, &w.b, 100, 1, RNIC_SIGNALED), 0);
	for (unsigned spin = 0; w.b.buf[100] != 'u'; spin++) {
		ck_assert_uint_lt(spin, 1000);
		run(1 * US);
	}
	ck_assert_uint_eq(w.a.wc_cnt, 0);
	w.a.buf[0] = 'v';
	run(5000 * MS);
	ck_assert_uint_eq(w.a.wc_cnt, 1);
	ck_assert_int_ne(w.a.wc[0].status, RNIC_WC_OK);
}

START_LOOP_TEST(ghost_completes_what_does_not_arrive, 0, 2)
{
	begin_connected(transport_of(_i));
	recv_post(&w.b, 3);
	w.fate = SIM_GHOST;
	w.fate_nr = 2;
	memset(w.a.buf, 'g', 10);
	ck_assert_int_eq(send_msg(&w.a, 1, RNIC_SIGNALED), 0);
	ck_assert_int_eq(write_at(&w.a, 2, &w.b, 100, 10, RNIC_SIGNALED), 0);
	ck_assert_int_eq(send_msg(&w.a, 3, RNIC_SIGNALED), 0);
	run(5000 * MS);
	ck_assert_uint_eq(w.a.wc_cnt, 3);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(w.a.wc[i].status, RNIC_WC_OK);
	ck_assert_uint_eq(w.b.buf[100], 0);
	ck_assert_int_eq(w.b.wc[0].status, RNIC_WC_OK); /* message 1; then the end */
	ck_assert_int_eq(w.b.wc[1].status, RNIC_WC_FLUSHED);
	ck_assert_int_eq(w.a.ev[0].type, RNIC_EV_QP_ERROR);
	ck_assert_int_eq(w.b.ev[0].type, RNIC_EV_QP_ERROR);
}

START_LOOP_TEST(dropped_message_harms_nothing_else, 0, 2)
{
	begin_connected(transport_of(_i));
	recv_post(&w.b, 3);
	w.fate = SIM_DROP;
	w.fate_nr = 1;
	for (unsigned i = 1; i <= 2; i++)
		ck_assert_int_eq(send_msg(&w.a, i, RNIC_SIGNALED), 0);
	run(5000 * MS);
	ck_assert_uint_eq(w.a.wc_cnt, 2);
	ck_assert_int_eq(w.a.wc[0].status, RNIC_WC_OK);
	ck_assert_uint_eq(w.b.wc_cnt, 1);
	ck_assert_uint_eq(w.b.buf[2048], 2);
	ck_assert_uint_eq(w.a.ev_cnt + w.b.ev_cnt, 0);
}

START_LOOP_TEST(held_message_comes_later, 0, 2)
{
	begin_connected(transport_of(_i));
	recv_post(&w.a, 1);
	recv_post(&w.b, 2);
	w.fate = SIM_HOLD;
	w.fate_nr = 1;
	for (unsigned i = 1; i <= 2; i++)
		ck_assert_int_eq(send_msg(&w.a, i, RNIC_SIGNALED), 0);
	run(3000 * MS); /* longer than retry_ns */
	ck_assert_uint_eq(w.a.wc_cnt + w.b.wc_cnt, 0);
	w.fate_nr = 0;
	run(10 * MS);
	ck_assert_uint_eq(w.b.wc_cnt, 2);
	ck_assert_uint_eq(w.b.buf[2048], 1);
	ck_assert_uint_eq(w.a.wc_cnt, 2);
	ck_assert_int_eq(w.a.wc[1].status, RNIC_WC_OK);
}

START_LOOP_TEST(completions_are_withheld, 0, 2)
{
	begin_connected(transport_of(_i));
	recv_post(&w.b, 2);
	sim_withhold(w.a.dev, true);
	for (unsigned i = 1; i <= 2; i++)
		ck_assert_int_eq(send_msg(&w.a, i, RNIC_SIGNALED), 0);
	run(3000 * MS);
	ck_assert_uint_eq(w.b.wc_cnt, 2);
	ck_assert_uint_eq(w.a.wc_cnt, 0);
	sim_withhold(w.a.dev, false);
	run(1 * MS);
	ck_assert_uint_eq(w.a.wc_cnt, 2);
	ck_assert_uint_eq(w.a.ev_cnt, 0);
}

START_LOOP_TEST(one_link_is_broken_by_its_qp, 0, 2)
{
	begin(transport_of(_i));
	ck_assert(!sim_break_qp(w.a.dev, w.a.qp->qpn, SIM_CUT_RESET));
	connect_both();
	ck_assert(!sim_break_qp(w.a.dev, w.a.qp->qpn ^ 1, SIM_CUT_RESET));
	ck_assert(sim_break_qp(w.b.dev, w.b.qp->qpn, SIM_CUT_RESET));
	run(100 * MS);
	ck_assert_int_eq(w.a.ev[0].type, RNIC_EV_QP_ERROR);
	ck_assert_int_eq(w.b.ev[0].type, RNIC_EV_QP_ERROR);
}

START_TEST(same_seed_same_run)
{
	uint32_t qpn[2];
	int64_t next[2];

	for (int i = 0; i < 2; i++) {
		sim_config_init(&cfg);
		cfg.seed = 4711;
		begin_connected(RNIC_TRANSPORT_IWARP);
		ck_assert_int_eq(send_msg(&w.a, 1, RNIC_SIGNALED), 0);
		w.a.dev->ops->flush(w.a.dev);
		qpn[i] = w.a.qp->qpn;
		next[i] = sim_next(w.fab);
		teardown();
	}
	ck_assert_uint_eq(qpn[0], qpn[1]);
	ck_assert_int_eq(next[0], next[1]);
}

static bool
on_tamper(void *ctx, struct sim_forgery *f)
{
	(void)ctx;
	if (f->op == RNIC_WR_SEND)
		f->data[0] = 0x77;
	return f->op == RNIC_WR_SEND;
}

/* The fabric carries something else than the peer posted, and the peer sees no completion of what it posted. */
START_LOOP_TEST(tampering_is_seen_by_the_peer_alone, 0, 2)
{
	cfg.tamper = on_tamper;
	begin(transport_of(_i));
	recv_post(&w.b, 1);
	connect_both();
	memset(w.b.buf, 0, 64);
	memset(w.a.buf, 0x11, MSG);
	ck_assert_int_eq(write_at(&w.a, 1, &w.b, 0, 32, 0), 0);
	ck_assert_int_eq(send_msg(&w.a, 2, RNIC_SIGNALED), 0);
	run(2 * MS);
	ck_assert_uint_eq(w.b.wc_cnt, 1);
	ck_assert_uint_eq(w.b.buf[2048], 0x77);
	ck_assert_uint_eq(w.b.buf[0], 0);
	ck_assert_uint_eq(w.a.wc_cnt, 1);
	ck_assert_int_eq(w.a.wc[0].status, RNIC_WC_OK);
}

/* No request stands behind it; a key that is wrong is refused as any. */
START_LOOP_TEST(forged_messages_arrive, 0, 2)
{
	uint8_t data[MSG] = { 0x42 };
	struct sim_forgery f = { .op = RNIC_WR_SEND, .data = data, .len = 7 };
	uint32_t qpn;

	begin(transport_of(_i));
	recv_post(&w.b, 1);
	ck_assert(!sim_nth_qp_of(w.a.dev, 0, &qpn));
	ck_assert(!sim_forge(w.a.dev, w.a.qp->qpn, &f));
	connect_both();
	ck_assert(sim_nth_qp_of(w.a.dev, 3, &qpn));
	ck_assert_uint_eq(qpn, w.a.qp->qpn);
	ck_assert(sim_forge(w.a.dev, qpn, &f));
	run(1 * MS);
	ck_assert_uint_eq(w.b.wc_cnt, 1);
	ck_assert_uint_eq(w.b.wc[0].len, 7);
	ck_assert_uint_eq(w.b.buf[2048], 0x42);
	ck_assert_uint_eq(w.a.wc_cnt, 0);
	f = (struct sim_forgery){ .op = RNIC_WR_WRITE, .data = data, .len = 1, .raddr = w.b.mr->addr, .rkey = 1 };
	ck_assert(sim_forge(w.a.dev, qpn, &f));
	run(1 * MS);
	ck_assert_int_eq(w.b.ev[w.b.ev_cnt - 1].type, RNIC_EV_QP_ERROR);
}
