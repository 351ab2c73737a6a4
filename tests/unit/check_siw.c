/* Soft iWARP: two devices in one process over loopback. */
#include "rnic/siw.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "tests/poll_loop.h"
#include "unit.h"

#define BUF (1u << 20)
#define TOKEN 0x1122334455667788u

/* One end of a link. */
struct end {
	struct poll_loop loop;
	struct rnic_dev *dev;
	struct rnic_pd *pd;
	struct rnic_mr *mr;
	struct rnic_qp *qp;
	uint8_t *buf;
	unsigned connected, failed, errors, rooms;
	const char *why;
	struct rnic_wc wc[4096];
	unsigned wc_cnt;
};

static struct rng rng;
static struct end a, b;		/* a opens the connection */

static struct siw_config
config(void)
{
	struct siw_config c;
	struct sockaddr_in *sin = (struct sockaddr_in *)&c.addr;

	siw_config_init(&c);
	sin->sin_family = AF_INET;
	sin->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return c;
}

static void
end_open(struct end *e, const struct siw_config *c)
{
	struct rnic_loop l;
	const char *err;

	memset(e, 0, sizeof(*e));
	poll_loop_init(&e->loop);
	l = poll_loop_rnic(&e->loop);
	ck_assert_int_eq(siw_open(c, &l, &rng, &e->dev, &err), 0);
	ck_assert_int_eq(e->dev->ops->pd_alloc(e->dev, &e->pd), 0);
	e->buf = calloc(1, BUF);
	ck_assert_int_eq(e->dev->ops->mr_reg(e->pd, e->buf, BUF,
	    RNIC_ACCESS_REMOTE_WRITE | RNIC_ACCESS_REMOTE_READ, &e->mr), 0);
}

static void
end_qp(struct end *e, uint32_t sq, uint32_t rq, uint64_t token)
{
	const struct rnic_qp_attr attr = { .ctx = e, .sq_depth = sq, .rq_depth = rq, .token = token };

	ck_assert_int_eq(e->dev->ops->qp_create(e->pd, &attr, &e->qp), 0);
}

static void
end_close(struct end *e)
{
	if (e->qp != NULL)
		e->dev->ops->qp_destroy(e->qp);
	e->dev->ops->mr_dereg(e->mr);
	e->dev->ops->pd_free(e->pd);
	e->dev->ops->free(e->dev);
	free(e->buf);
	poll_loop_fini(&e->loop);
}

static void
setup(void)
{
	rng_init_kernel(&rng);
}

static void
collect(struct end *e)
{
	struct rnic_event ev;

	e->wc_cnt += e->dev->ops->poll(e->dev, e->wc + e->wc_cnt, 4096 - e->wc_cnt);
	while (e->dev->ops->poll_event(e->dev, &ev)) {
		e->connected += ev.type == RNIC_EV_CONNECTED;
		e->failed += ev.type == RNIC_EV_CONNECT_FAILED;
		e->errors += ev.type == RNIC_EV_QP_ERROR;
		e->rooms += ev.type == RNIC_EV_ROOM;
		if (ev.why != NULL)
			e->why = ev.why;
	}
}

static void
turn_one(struct end *e, int max_ms)
{
	poll_loop_turn(&e->loop, &e->dev, 1, max_ms);
	collect(e);
}

/* Both ends run; an end that is NULL stands still. */
static struct end *run_a = &a, *run_b = &b;

static void
turn(void)
{
	if (run_a != NULL)
		turn_one(run_a, run_b != NULL ? 0 : 1);
	if (run_b != NULL)
		turn_one(run_b, 1);
}

/* Turns until cond holds; fails after some seconds. */
#define UNTIL(cond) do { \
	int64_t until_end = poll_loop_now() + 10000000000; \
	while (!(cond)) { \
		ck_assert_msg(poll_loop_now() < until_end, "never: %s", #cond); \
		turn(); \
	} \
} while (0)

static struct rnic_remote
remote(const struct end *e)
{
	struct rnic_info info = rnic_query(e->dev);

	return (struct rnic_remote){
		.gid = info.gid, .qpn = e->qp->qpn, .psn = e->qp->psn, .mtu_code = 5, .mpa_port = info.mpa_port,
	};
}

static void
connect_ends(void)
{
	struct rnic_remote ra, rb;

	if (a.qp == NULL)
		end_qp(&a, 64, 16, TOKEN);
	if (b.qp == NULL)
		end_qp(&b, 64, 16, TOKEN);
	ra = remote(&a);
	rb = remote(&b);
	ck_assert_int_eq(b.dev->ops->qp_expect(b.qp), 0);
	ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &rb), 0);
	UNTIL(a.connected || a.failed);
	ck_assert_int_eq(b.dev->ops->qp_connect(b.qp, RNIC_PASSIVE, &ra), 0);
	UNTIL(b.connected || b.failed);
}

static void
post_recv(struct end *e, uint64_t id, size_t off, uint32_t len)
{
	const struct rnic_recv_wr wr = { .wr_id = id, .mr = e->mr, .ptr = e->buf + off, .len = len };

	ck_assert_int_eq(e->dev->ops->post_recv(e->qp, &wr, 1), 0);
}

static int
try_post(struct end *e, enum rnic_wr_op op, uint64_t id, unsigned flags, size_t off, uint32_t len,
    const struct end *to, size_t to_off)
{
	const struct rnic_send_wr wr = {
		.wr_id = id, .op = op, .flags = flags, .sge_cnt = 1,
		.sge = { { .mr = e->mr, .ptr = e->buf + off, .len = len } },
		.raddr = to->mr->addr + to_off, .rkey = to->mr->rkey,
	};

	return e->dev->ops->post_send(e->qp, &wr);
}

static void
post(struct end *e, enum rnic_wr_op op, uint64_t id, unsigned flags, size_t off, uint32_t len,
    const struct end *to, size_t to_off)
{
	ck_assert_int_eq(try_post(e, op, id, flags, off, len, to, to_off), 0);
}

static void
check_wc(const struct end *e, unsigned i, uint64_t id, enum rnic_wc_op op, enum rnic_wc_status status)
{
	ck_assert_uint_lt(i, e->wc_cnt);
	ck_assert_uint_eq(e->wc[i].wr_id, id);
	ck_assert_int_eq(e->wc[i].op, op);
	ck_assert_int_eq(e->wc[i].status, status);
	ck_assert_ptr_eq(e->wc[i].qp, e->qp);
}

/* Lets time pass with the loops running. */
static void
run_ms(int ms)
{
	int64_t end = poll_loop_now() + (int64_t)ms * 1000000;

	while (poll_loop_now() < end)
		turn();
}

static void
fill(uint8_t *buf, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = (uint8_t)(i * 7 + i / 251 + seed);
}

static void
open_both(const struct siw_config *ca, const struct siw_config *cb)
{
	end_open(&a, ca);
	end_open(&b, cb);
}

static void
open_connected(const struct siw_config *c)
{
	open_both(c, c);
	connect_ends();
	ck_assert_uint_eq(a.connected, 1);
	ck_assert_uint_eq(b.connected, 1);
}

static void
close_both(void)
{
	run_a = &a;
	run_b = &b;
	end_close(&a);
	end_close(&b);
}

static struct siw_stats
stats(const struct end *e)
{
	struct siw_stats st;

	siw_stats(e->dev, &st);
	return st;
}

static struct rnic_room
room(const struct end *e)
{
	struct rnic_room r;

	e->dev->ops->room(e->qp, &r);
	return r;
}

/* -- what the contract promises -- */

START_TEST(connects_writes_sends_both_ways)
{
	struct siw_config c = config();

	open_both(&c, &c);
	end_qp(&b, 64, 16, TOKEN);
	post_recv(&b, 7, 0, 100);
	connect_ends();
	ck_assert_uint_eq(a.connected, 1);
	ck_assert_uint_eq(b.connected, 1);
	fill(a.buf, 300000, 0);
	post(&a, RNIC_WR_WRITE, 1, 0, 0, 300000, &b, 1000);
	post(&a, RNIC_WR_SEND, 2, RNIC_SIGNALED, 5, 44, &b, 0);
	UNTIL(a.wc_cnt == 1 && b.wc_cnt == 1);
	check_wc(&a, 0, 2, RNIC_WC_SEND, RNIC_WC_OK);
	check_wc(&b, 0, 7, RNIC_WC_RECV, RNIC_WC_OK);
	ck_assert_uint_eq(b.wc[0].len, 44);
	ck_assert_mem_eq(b.buf, a.buf + 5, 44);
	ck_assert_mem_eq(b.buf + 1000, a.buf, 300000);
	/* the passive side speaks, too */
	post_recv(&a, 8, 500000, 100);
	post(&b, RNIC_WR_SEND, 3, RNIC_SIGNALED, 0, 44, &a, 0);
	UNTIL(a.wc_cnt == 2 && b.wc_cnt == 2);
	check_wc(&a, 1, 8, RNIC_WC_RECV, RNIC_WC_OK);
	check_wc(&b, 1, 3, RNIC_WC_SEND, RNIC_WC_OK);
	ck_assert_uint_eq(a.errors + b.errors, 0);
	close_both();
}
END_TEST

START_TEST(query_tells_the_device)
{
	struct siw_config c = config();
	struct rnic_info info;

	open_both(&c, &c);
	end_qp(&a, 8, 8, TOKEN);
	info = rnic_query(a.dev);
	ck_assert_str_eq(info.name, "siw0");
	ck_assert_str_eq(info.provider, "siw");
	ck_assert_int_eq(info.transport, RNIC_TRANSPORT_IWARP);
	ck_assert_uint_ne(info.mpa_port, 0);
	ck_assert_mem_eq(info.gid.b, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\1", 16);
	ck_assert_uint_eq(info.mac[0] & 3, 2);		/* the loopback has none: local, unicast */
	ck_assert_uint_eq(info.qp_cnt, 1);
	ck_assert_uint_eq(info.mr_cnt, 1);
	ck_assert_uint_eq(info.mr_bytes, BUF);
	ck_assert_uint_gt(a.qp->qpn, 1);
	ck_assert_uint_lt(a.qp->qpn, 1u << 24);
	ck_assert_uint_lt(a.qp->psn, 1u << 24);
	ck_assert_uint_ne(a.mr->addr, (uintptr_t)a.buf);
	close_both();
}
END_TEST

/* The completion waits for the peer's RNIC, not for TCP: while the peer does not read there is none. */
START_TEST(no_completion_while_the_peer_does_not_read)
{
	struct siw_config c = config();

	open_connected(&c);
	run_b = NULL;
	post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 1000, &b, 0);
	a.dev->ops->confirm(a.qp);
	UNTIL(stats(&a).bytes_sent > 1000);	/* TCP has it */
	run_ms(100);
	ck_assert_uint_eq(a.wc_cnt, 0);
	run_b = &b;
	UNTIL(a.wc_cnt == 1);
	check_wc(&a, 0, 1, RNIC_WC_WRITE, RNIC_WC_OK);
	close_both();
}
END_TEST

START_TEST(a_peer_that_does_not_answer_breaks_the_qp)
{
	struct siw_config c = config();
	int64_t start;

	c.answer_ms = 150;
	open_connected(&c);
	post_recv(&a, 50, 0, 10);
	run_b = NULL;
	post(&a, RNIC_WR_WRITE, 1, 0, 0, 1000, &b, 0);
	post(&a, RNIC_WR_WRITE, 2, RNIC_SIGNALED, 0, 1000, &b, 0);
	start = poll_loop_now();
	UNTIL(a.errors == 1);
	ck_assert_int_ge(poll_loop_now() - start, 150000000);
	ck_assert_str_eq(a.why, "the peer does not answer");
	ck_assert_uint_eq(a.wc_cnt, 3);
	check_wc(&a, 0, 1, RNIC_WC_WRITE, RNIC_WC_RETRY_EXC);
	check_wc(&a, 1, 2, RNIC_WC_WRITE, RNIC_WC_FLUSHED);
	check_wc(&a, 2, 50, RNIC_WC_RECV, RNIC_WC_FLUSHED);
	ck_assert_int_eq(try_post(&a, RNIC_WR_WRITE, 3, 0, 0, 1, &b, 0), -ENOTCONN);
	run_b = &b;
	UNTIL(b.errors == 1);
	close_both();
}
END_TEST

START_TEST(confirmation_on_request_only)
{
	struct siw_config c = config();

	c.confirm_ms = 60000;
	open_connected(&c);
	post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 1000, &b, 0);
	post(&a, RNIC_WR_WRITE, 2, 0, 0, 1000, &b, 0);
	post(&a, RNIC_WR_WRITE, 3, RNIC_SIGNALED, 0, 1000, &b, 0);
	run_ms(50);
	ck_assert_uint_eq(a.wc_cnt, 0);
	ck_assert_uint_eq(stats(&a).reads_sent, 0);
	a.dev->ops->confirm(a.qp);
	UNTIL(a.wc_cnt == 2);
	check_wc(&a, 0, 1, RNIC_WC_WRITE, RNIC_WC_OK);
	check_wc(&a, 1, 3, RNIC_WC_WRITE, RNIC_WC_OK);
	ck_assert_uint_eq(stats(&a).reads_sent, 1);
	ck_assert_uint_eq(stats(&b).reads_served, 1);
	/* nothing to confirm, nothing sent */
	a.dev->ops->confirm(a.qp);
	run_ms(20);
	ck_assert_uint_eq(stats(&a).reads_sent, 1);
	close_both();
}
END_TEST

START_TEST(confirmation_after_confirm_ms)
{
	struct siw_config c = config();
	int64_t start;

	c.confirm_ms = 60;
	open_connected(&c);
	run_ms(100);	/* the time that the device was told last is old now */
	start = poll_loop_now();
	post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 1000, &b, 0);
	UNTIL(a.wc_cnt == 1);
	ck_assert_int_ge(poll_loop_now() - start, 55000000);
	/* an unsignaled request asks for none */
	post(&a, RNIC_WR_WRITE, 2, 0, 0, 1000, &b, 0);
	run_ms(150);
	ck_assert_uint_eq(stats(&a).reads_sent, 1);
	close_both();
}
END_TEST

START_TEST(confirmation_under_pressure)
{
	struct siw_config c = config();

	c.confirm_ms = 60000;
	open_both(&c, &c);
	end_qp(&a, 8, 8, TOKEN);
	connect_ends();
	for (unsigned i = 0; i < 4; i++)
		post(&a, RNIC_WR_WRITE, i, RNIC_SIGNALED, 0, 10, &b, 0);
	run_ms(30);
	ck_assert_uint_eq(a.wc_cnt, 0);
	ck_assert_uint_eq(room(&a).wrs, 4);
	post(&a, RNIC_WR_WRITE, 4, RNIC_SIGNALED, 0, 10, &b, 0);
	UNTIL(a.wc_cnt == 5);
	ck_assert_uint_eq(room(&a).wrs, 8);
	close_both();
}
END_TEST

START_TEST(a_full_queue_is_refused_and_room_is_told)
{
	struct siw_config c = config();

	c.confirm_ms = 60000;
	open_both(&c, &c);
	end_qp(&a, 4, 4, TOKEN);
	connect_ends();
	run_b = NULL;
	for (unsigned i = 0; i < 4; i++)
		post(&a, RNIC_WR_WRITE, i, 0, 0, 10, &b, 0);
	ck_assert_uint_eq(room(&a).wrs, 0);
	ck_assert_int_eq(try_post(&a, RNIC_WR_WRITE, 9, 0, 0, 10, &b, 0), -ENOBUFS);
	run_ms(20);
	ck_assert_uint_eq(a.rooms, 0);
	run_b = &b;
	UNTIL(a.rooms == 1);
	ck_assert_uint_eq(room(&a).wrs, 4);
	ck_assert_uint_eq(a.wc_cnt, 0);		/* none was signaled */
	close_both();
}
END_TEST

/* A signaled completion holds its place until it was polled: the completion queue cannot overflow. */
START_TEST(completions_not_polled_hold_their_place)
{
	struct siw_config c = config();
	struct rnic_wc wc[8];
	int64_t end;

	open_both(&c, &c);
	end_qp(&a, 4, 4, TOKEN);
	connect_ends();
	for (unsigned i = 0; i < 4; i++)
		post(&a, RNIC_WR_WRITE, i, RNIC_SIGNALED, 0, 10, &b, 0);
	end = poll_loop_now() + 200000000;
	while (poll_loop_now() < end) {
		poll_loop_turn(&a.loop, &a.dev, 1, 1);	/* without polling */
		turn_one(&b, 1);
	}
	ck_assert_uint_eq(room(&a).wrs, 0);
	ck_assert_uint_eq(a.dev->ops->poll(a.dev, wc, 3), 3);
	ck_assert_uint_eq(room(&a).wrs, 3);
	ck_assert_uint_eq(a.dev->ops->poll(a.dev, wc, 8), 1);
	ck_assert_uint_eq(room(&a).wrs, 4);
	collect(&a);
	ck_assert_uint_eq(a.rooms, 1);
	close_both();
}
END_TEST

/* -- receives -- */

START_TEST(sends_keep_to_the_peers_receive_depth)
{
	struct siw_config c = config();

	c.confirm_ms = 60000;
	open_both(&c, &c);
	end_qp(&b, 64, 3, TOKEN);
	for (unsigned i = 0; i < 3; i++)
		post_recv(&b, i, i * 100, 100);
	connect_ends();
	ck_assert_uint_eq(room(&a).sends, 3);
	run_b = NULL;
	for (unsigned i = 0; i < 3; i++)
		post(&a, RNIC_WR_SEND, i, RNIC_SIGNALED, 0, 10, &b, 0);
	ck_assert_uint_eq(room(&a).sends, 0);
	ck_assert_uint_eq(room(&a).wrs, 61);
	ck_assert_int_eq(try_post(&a, RNIC_WR_SEND, 9, 0, 0, 10, &b, 0), -ENOBUFS);
	post(&a, RNIC_WR_WRITE, 3, RNIC_SIGNALED, 0, 10, &b, 0);	/* writes may go on */
	run_ms(20);
	run_b = &b;
	UNTIL(a.wc_cnt == 4 && b.wc_cnt == 3);
	ck_assert_uint_eq(room(&a).sends, 3);
	ck_assert_uint_ge(a.rooms, 1);
	ck_assert_uint_eq(stats(&b).recv_stalls, 0);
	close_both();
}
END_TEST

START_TEST(a_send_without_a_receive_waits)
{
	struct siw_config c = config();

	open_connected(&c);
	fill(a.buf, 1000, 3);
	post(&a, RNIC_WR_SEND, 1, RNIC_SIGNALED, 0, 100, &b, 0);
	post(&a, RNIC_WR_WRITE, 2, RNIC_SIGNALED, 0, 1000, &b, 5000);
	UNTIL(stats(&b).recv_stalls == 1);
	run_ms(50);
	ck_assert_uint_eq(a.wc_cnt + b.wc_cnt, 0);
	ck_assert_uint_eq(b.buf[5001], 0);	/* order: the write is behind it */
	post_recv(&b, 7, 100, 100);
	UNTIL(a.wc_cnt == 2 && b.wc_cnt == 1);
	check_wc(&b, 0, 7, RNIC_WC_RECV, RNIC_WC_OK);
	ck_assert_mem_eq(b.buf + 100, a.buf, 100);
	ck_assert_mem_eq(b.buf + 5000, a.buf, 1000);
	ck_assert_uint_eq(stats(&b).recv_stalls, 1);
	close_both();
}
END_TEST

/* Stalls with bytes behind the Send that no further edge announces. */
START_TEST(stalled_stream_goes_on_where_it_was)
{
	struct siw_config c = config();

	open_connected(&c);
	for (unsigned i = 0; i < 10; i++) {
		fill(a.buf + i * 1000, 1000, i);
		post(&a, RNIC_WR_SEND, i, RNIC_SIGNALED, i * 1000, 1000, &b, 0);
	}
	UNTIL(stats(&b).recv_stalls == 1);
	run_ms(20);
	for (unsigned i = 0; i < 10; i++) {
		post_recv(&b, i, i * 1000, 1000);
		UNTIL(b.wc_cnt == i + 1);
	}
	UNTIL(a.wc_cnt == 10);
	ck_assert_mem_eq(b.buf, a.buf, 10000);
	close_both();
}
END_TEST

START_TEST(receives_are_bounded_all_or_none)
{
	struct siw_config c = config();
	struct rnic_recv_wr wr[5];

	open_both(&c, &c);
	end_qp(&a, 4, 4, TOKEN);
	for (unsigned i = 0; i < 5; i++)
		wr[i] = (struct rnic_recv_wr){ .wr_id = i, .mr = a.mr, .ptr = a.buf, .len = 10 };
	ck_assert_int_eq(a.dev->ops->post_recv(a.qp, wr, 5), -ENOBUFS);
	wr[2].len = BUF + 1;
	ck_assert_int_eq(a.dev->ops->post_recv(a.qp, wr, 4), -EINVAL);
	wr[2].len = 10;
	ck_assert_int_eq(a.dev->ops->post_recv(a.qp, wr, 4), 0);
	ck_assert_int_eq(a.dev->ops->post_recv(a.qp, wr, 1), -ENOBUFS);
	a.dev->ops->qp_disconnect(a.qp, false);
	collect(&a);
	ck_assert_uint_eq(a.wc_cnt, 4);
	for (unsigned i = 0; i < 4; i++)
		check_wc(&a, i, i, RNIC_WC_RECV, RNIC_WC_FLUSHED);
	ck_assert_int_eq(a.dev->ops->post_recv(a.qp, wr, 1), -ENOTCONN);
	close_both();
}
END_TEST

/* -- requests -- */

START_TEST(inline_data_is_copied)
{
	struct siw_config c = config();
	uint8_t bytes[64];
	struct rnic_send_wr wr = {
		.wr_id = 1, .op = RNIC_WR_WRITE, .flags = RNIC_SIGNALED | RNIC_INLINE, .sge_cnt = 2,
		.sge = { { .ptr = bytes, .len = 30 }, { .ptr = bytes + 30, .len = 34 } },
	};

	open_connected(&c);
	wr.raddr = b.mr->addr;
	wr.rkey = b.mr->rkey;
	fill(bytes, 64, 9);
	ck_assert_int_eq(a.dev->ops->post_send(a.qp, &wr), 0);
	memset(bytes, 0xee, 64);
	UNTIL(a.wc_cnt == 1);
	fill(bytes, 64, 9);
	ck_assert_mem_eq(b.buf, bytes, 64);
	wr.sge[1].len = 35;
	ck_assert_int_eq(a.dev->ops->post_send(a.qp, &wr), -EINVAL);
	close_both();
}
END_TEST

START_TEST(four_pieces_are_gathered)
{
	struct siw_config c = config();
	struct rnic_send_wr wr = { .wr_id = 1, .op = RNIC_WR_WRITE, .flags = RNIC_SIGNALED, .sge_cnt = 4 };
	static const uint32_t lens[4] = { 1, 40000, 0, 20001 };
	uint8_t *want = malloc(70000);
	size_t len = 0;

	open_connected(&c);
	fill(a.buf, BUF, 1);
	for (unsigned i = 0; i < 4; i++) {
		wr.sge[i] = (struct rnic_sge){ .mr = a.mr, .ptr = a.buf + i * 100001, .len = lens[i] };
		memcpy(want + len, wr.sge[i].ptr, lens[i]);
		len += lens[i];
	}
	wr.raddr = b.mr->addr + 3;
	wr.rkey = b.mr->rkey;
	ck_assert_int_eq(a.dev->ops->post_send(a.qp, &wr), 0);
	wr.sge_cnt = 5;
	ck_assert_int_eq(a.dev->ops->post_send(a.qp, &wr), -EINVAL);
	UNTIL(a.wc_cnt == 1);
	ck_assert_mem_eq(b.buf + 3, want, len);
	ck_assert_uint_eq(b.buf[3 + len], 0);
	free(want);
	close_both();
}
END_TEST

START_TEST(buffers_have_to_be_inside_of_their_region)
{
	struct siw_config c = config();
	struct rnic_pd *pd;
	struct rnic_mr *mr, *mine;

	open_connected(&c);
	ck_assert_int_eq(try_post(&a, RNIC_WR_WRITE, 1, 0, BUF - 9, 10, &b, 0), -EINVAL);
	ck_assert_int_eq(try_post(&a, RNIC_WR_WRITE, 1, 0, BUF + 1, 0, &b, 0), -EINVAL);
	/* a region of another protection domain is none of ours */
	ck_assert_int_eq(a.dev->ops->pd_alloc(a.dev, &pd), 0);
	ck_assert_int_eq(a.dev->ops->mr_reg(pd, a.buf, BUF, 0, &mr), 0);
	mine = a.mr;
	a.mr = mr;
	ck_assert_int_eq(try_post(&a, RNIC_WR_WRITE, 1, 0, 0, 10, &b, 0), -EINVAL);
	a.mr = NULL;
	ck_assert_int_eq(try_post(&a, RNIC_WR_WRITE, 1, 0, 0, 10, &b, 0), -EINVAL);
	a.mr = mine;
	a.dev->ops->mr_dereg(mr);
	a.dev->ops->pd_free(pd);
	ck_assert_int_eq(a.dev->ops->mr_reg(a.pd, a.buf, 0, 0, &mr), -EINVAL);
	close_both();
}
END_TEST

/* -- protection -- */

/* The peer refuses: both QPs break, the first request says so, and nothing was placed. */
static void
refused(const char *why)
{
	UNTIL(a.errors == 1 && b.errors == 1);
	ck_assert_str_eq(a.why, why);
	ck_assert_str_eq(b.why, "the peer broke the iWARP protocol");
	check_wc(&a, 0, 1, RNIC_WC_WRITE, RNIC_WC_REMOTE_ERR);
	ck_assert_uint_eq(stats(&b).terminates_sent, 1);
	ck_assert_uint_eq(stats(&a).terminates_received, 1);
	for (unsigned i = 0; i < 1000; i++)
		ck_assert_uint_eq(b.buf[i], 0);
}

START_TEST(memory_is_protected)
{
	struct siw_config c = config();
	struct rnic_pd *pd = NULL;
	struct rnic_mr *mr = NULL;
	struct rnic_mr shown;

	c.crc = _i < 5;		/* without CRC large writes take another way */
	open_connected(&c);
	shown = *b.mr;
	b.buf[0] = 0;
	fill(a.buf, 100000, 1);
	switch (_i % 5) {
	case 0:
		shown.rkey ^= 0x10000;
		break;
	case 1:
		shown.addr += BUF - 99999;
		break;
	case 2:		/* another protection domain */
		ck_assert_int_eq(b.dev->ops->pd_alloc(b.dev, &pd), 0);
		ck_assert_int_eq(b.dev->ops->mr_reg(pd, b.buf, BUF, RNIC_ACCESS_REMOTE_WRITE, &mr), 0);
		shown = *mr;
		break;
	case 3:		/* no right to write */
		ck_assert_int_eq(b.dev->ops->mr_reg(b.pd, b.buf, BUF, RNIC_ACCESS_REMOTE_READ, &mr), 0);
		shown = *mr;
		break;
	default:	/* gone */
		ck_assert_int_eq(b.dev->ops->mr_reg(b.pd, b.buf, BUF, RNIC_ACCESS_REMOTE_WRITE, &mr), 0);
		shown = *mr;
		b.dev->ops->mr_dereg(mr);
		mr = NULL;
		break;
	}
	{
		struct end fake = { .mr = &shown };

		post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 100000, &fake, 0);
	}
	refused(_i % 5 == 1 ? "DDP tagged buffer: base or bounds" :
	    _i % 5 == 2 ? "DDP tagged buffer: STag not associated with the stream" :
	    "DDP tagged buffer: invalid STag");
	if (mr != NULL)
		b.dev->ops->mr_dereg(mr);
	if (pd != NULL)
		b.dev->ops->pd_free(pd);
	close_both();
}
END_TEST

/* Revoked in the middle of a write: not a byte more is placed. */
START_TEST(revocation_in_the_middle_of_a_write)
{
	struct siw_config c = config();
	struct rnic_mr *mr;
	struct end fake = { 0 };
	size_t placed = 0;

	c.crc = _i == 0;
	open_connected(&c);
	ck_assert_int_eq(b.dev->ops->mr_reg(b.pd, b.buf, BUF, RNIC_ACCESS_REMOTE_WRITE, &mr), 0);
	fake.mr = mr;
	memset(a.buf, 0x77, BUF);
	post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, BUF, &fake, 0);
	while (b.buf[0] == 0)
		turn();
	ck_assert_uint_eq(b.buf[BUF - 1], 0);
	b.dev->ops->mr_dereg(mr);
	while (placed < BUF && b.buf[placed] != 0)
		placed++;
	UNTIL(a.errors == 1 && b.errors == 1);
	for (size_t i = placed; i < BUF; i++)
		ck_assert_uint_eq(b.buf[i], 0);
	close_both();
}
END_TEST

/* -- the end of a link -- */

START_TEST(disconnect_flushes_everything_once)
{
	struct siw_config c = config();

	open_connected(&c);
	post_recv(&a, 10, 0, 10);
	post_recv(&a, 11, 0, 10);
	run_b = NULL;
	for (unsigned i = 0; i < 5; i++)
		post(&a, RNIC_WR_WRITE, i, i & 1 ? RNIC_SIGNALED : 0, 0, 1000, &b, 0);
	run_ms(20);
	a.dev->ops->qp_disconnect(a.qp, false);
	run_ms(20);
	ck_assert_uint_eq(a.errors, 0);
	ck_assert_uint_eq(a.wc_cnt, 7);
	for (unsigned i = 0; i < 5; i++)
		check_wc(&a, i, i, RNIC_WC_WRITE, RNIC_WC_FLUSHED);
	check_wc(&a, 5, 10, RNIC_WC_RECV, RNIC_WC_FLUSHED);
	check_wc(&a, 6, 11, RNIC_WC_RECV, RNIC_WC_FLUSHED);
	ck_assert_int_eq(try_post(&a, RNIC_WR_SEND, 1, 0, 0, 10, &b, 0), -ENOTCONN);
	run_b = &b;
	UNTIL(b.errors == 1);
	ck_assert_str_eq(b.why, "the peer reset the connection");
	a.dev->ops->qp_disconnect(a.qp, true);	/* again: harmless */
	close_both();
}
END_TEST

/* Reset: bytes that wait in the peer's kernel are not placed any more. */
START_TEST(after_a_reset_nothing_is_placed)
{
	struct siw_config c = config();

	open_connected(&c);
	run_b = NULL;
	memset(a.buf, 0x55, 1000);
	post(&a, RNIC_WR_WRITE, 1, 0, 0, 1000, &b, 0);
	run_ms(20);
	ck_assert_uint_ge(stats(&a).bytes_sent, 1000);
	a.dev->ops->qp_disconnect(a.qp, false);
	run_b = &b;
	UNTIL(b.errors == 1);
	ck_assert_uint_eq(b.buf[0], 0);
	close_both();
}
END_TEST

/* Graceful: all that was posted arrives, more than the kernel takes at once, and the buffers are free at once. */
START_TEST(graceful_disconnect_sends_what_was_posted)
{
	struct siw_config c = config();
	unsigned n = 3;

	open_connected(&c);
	fill(a.buf, BUF, 2);
	for (unsigned i = 0; i < 4; i++)
		post_recv(&b, i, BUF - 1000, 100);
	run_b = NULL;
	for (unsigned i = 0; i < n; i++)
		post(&a, RNIC_WR_WRITE, i, 0, i * 200000, 200000, &b, i * 200000);
	post(&a, RNIC_WR_SEND, n, RNIC_SIGNALED, 0, 44, &b, 0);
	a.dev->ops->qp_disconnect(a.qp, true);
	collect(&a);
	ck_assert_uint_eq(a.wc_cnt, n + 1);
	a.dev->ops->qp_destroy(a.qp);
	a.qp = NULL;
	memset(a.buf, 0, BUF);
	run_b = &b;
	UNTIL(b.errors == 1);
	ck_assert_str_eq(b.why, "the peer closed the connection");
	check_wc(&b, 0, 0, RNIC_WC_RECV, RNIC_WC_OK);
	ck_assert_uint_eq(b.wc_cnt, 4);
	fill(a.buf, BUF, 2);
	ck_assert_mem_eq(b.buf, a.buf, n * 200000);
	close_both();
}
END_TEST

START_TEST(destroy_drops_what_was_not_polled)
{
	struct siw_config c = config();
	struct rnic_wc wc;
	struct rnic_event ev;

	open_connected(&c);
	post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 10, &b, 0);
	b.dev->ops->qp_destroy(b.qp);
	b.qp = NULL;
	for (unsigned i = 0; i < 50; i++)
		poll_loop_turn(&a.loop, &a.dev, 1, 1);
	ck_assert_int_le(a.dev->ops->deadline(a.dev), poll_loop_now());	/* something waits */
	a.dev->ops->qp_destroy(a.qp);
	a.qp = NULL;
	ck_assert_uint_eq(a.dev->ops->poll(a.dev, &wc, 1), 0);
	ck_assert(!a.dev->ops->poll_event(a.dev, &ev));
	ck_assert_int_eq(a.dev->ops->deadline(a.dev), INT64_MAX);
	close_both();
}
END_TEST

/* -- the wire's options -- */

static void
soak(unsigned rounds, unsigned seed)
{
	uint64_t x = seed * 2654435761u + 1;
	unsigned sent_a = 0, sent_b = 0;
	size_t off = 0;

	fill(a.buf, BUF, seed);
	fill(b.buf + BUF / 2, BUF / 2, seed + 1);
	for (unsigned i = 0; i < 16; i++) {
		post_recv(&a, i, 0, 0);
		post_recv(&b, i, 0, 0);
	}
	a.wc_cnt = b.wc_cnt = 0;
	for (unsigned r = 0; r < rounds; r++) {
		uint32_t len;

		x = x * 6364136223846793005u + 1442695040888963407u;
		len = (uint32_t)(x >> 40) % (x & 0x100 ? 50000 : 300);
		if (off + len > BUF / 2)
			off = 0;
		UNTIL(room(&a).wrs > 1 && room(&a).sends > 0 && room(&b).sends > 0);
		post(&a, RNIC_WR_WRITE, 1000 + r, 0, off, len, &b, off);
		post(&b, RNIC_WR_WRITE, 1000 + r, 0, BUF / 2 + off, len, &a, BUF / 2 + off);
		post(&a, RNIC_WR_SEND, r, RNIC_SIGNALED, 0, 0, &b, 0);
		post(&b, RNIC_WR_SEND, r, RNIC_SIGNALED, 0, 0, &a, 0);
		off += len;
		turn();
		for (struct end *e = &a; e != NULL; e = e == &a ? &b : NULL) {
			for (unsigned i = 0; i < e->wc_cnt; i++) {
				ck_assert_int_eq(e->wc[i].status, RNIC_WC_OK);
				if (e->wc[i].op == RNIC_WC_RECV)
					post_recv(e, e->wc[i].wr_id, 0, 0);
				else
					ck_assert_uint_eq(e->wc[i].wr_id, e == &a ? sent_a++ : sent_b++);
			}
			e->wc_cnt = 0;
		}
	}
	while (sent_a < rounds || sent_b < rounds) {
		UNTIL(a.wc_cnt > 0 || b.wc_cnt > 0);
		for (unsigned i = 0; i < a.wc_cnt; i++)
			sent_a += a.wc[i].op == RNIC_WC_SEND;
		for (unsigned i = 0; i < b.wc_cnt; i++)
			sent_b += b.wc[i].op == RNIC_WC_SEND;
		a.wc_cnt = b.wc_cnt = 0;
	}
	ck_assert_mem_eq(a.buf + BUF / 2, b.buf + BUF / 2, off);
	ck_assert_mem_eq(a.buf, b.buf, off);
	ck_assert_uint_eq(a.errors + b.errors, 0);
	ck_assert_uint_eq(stats(&a).crc_errors + stats(&b).crc_errors, 0);
}

/* CRC on and off, markers in each direction, all FPDU sizes: bulk and small, both ways at once. */
START_TEST(every_option_carries_data)
{
	static const uint32_t fpdu[] = { 0, 128, 1000, 16384, 64768 };
	struct siw_config ca = config(), cb = config();

	ca.crc = cb.crc = _i & 1;
	ca.markers = _i & 2;
	cb.markers = _i & 4;
	ca.fpdu_max = fpdu[_i / 8];
	cb.fpdu_max = 64768;
	open_both(&ca, &cb);
	connect_ends();
	soak(200, (unsigned)_i);
	close_both();
}
END_TEST

START_TEST(every_rtr_kind)
{
	static const unsigned kinds[] = { SIW_RTR_SEND, SIW_RTR_WRITE, SIW_RTR_READ };
	struct siw_config ca = config(), cb = config();

	ca.rtr = kinds[_i % 3];
	if (_i >= 3)
		cb.rtr = kinds[_i % 3];
	cb.markers = true;
	open_both(&ca, &cb);
	end_qp(&b, 64, 16, TOKEN);
	post_recv(&b, 99, 0, 100);
	connect_ends();
	ck_assert_uint_eq(a.connected, 1);
	ck_assert_uint_eq(b.connected, 1);
	ck_assert_uint_eq(stats(&b).reads_served, ca.rtr == SIW_RTR_READ);
	/* an RTR Send took no receive, and counts for nothing */
	ck_assert_uint_eq(b.wc_cnt, 0);
	ck_assert_uint_eq(room(&a).sends, 16);
	post(&a, RNIC_WR_SEND, 1, RNIC_SIGNALED, 0, 10, &b, 0);
	UNTIL(b.wc_cnt == 1 && a.wc_cnt == 1);
	check_wc(&b, 0, 99, RNIC_WC_RECV, RNIC_WC_OK);
	b.wc_cnt = 0;
	soak(50, 3);
	close_both();
}
END_TEST

START_TEST(no_rtr_kind_in_common)
{
	struct siw_config ca = config(), cb = config();

	ca.rtr = SIW_RTR_SEND;
	cb.rtr = SIW_RTR_WRITE | SIW_RTR_READ;
	open_both(&ca, &cb);
	connect_ends();
	ck_assert_uint_eq(a.failed, 1);
	ck_assert_str_eq(a.why, "no RTR kind in common");
	ck_assert_uint_eq(stats(&a).terminates_sent, 1);
	UNTIL(b.failed == 1);
	ck_assert_str_eq(b.why, "MPA: no matching RTR option");
	ck_assert_uint_eq(b.connected, 0);
	close_both();
}
END_TEST

START_TEST(revision_1_initiator)
{
	struct siw_config ca = config(), cb = config();

	ca.mpa_rev = 1;
	open_both(&ca, &cb);
	connect_ends();
	ck_assert_uint_eq(a.connected, 1);
	ck_assert_uint_eq(b.connected, 1);
	soak(50, 3);
	close_both();
}
END_TEST

START_TEST(ipv6)
{
	struct siw_config c = config();
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)&c.addr;

	memset(&c.addr, 0, sizeof(c.addr));
	sin6->sin6_family = AF_INET6;
	sin6->sin6_addr = in6addr_loopback;
	open_both(&c, &c);
	connect_ends();
	ck_assert_uint_eq(a.connected, 1);
	soak(20, 4);
	close_both();
}
END_TEST

/* -- set-up: who may come -- */

START_TEST(nobody_listens)
{
	struct siw_config c = config();
	struct rnic_remote r;

	open_both(&c, &c);
	end_qp(&a, 8, 8, TOKEN);
	end_qp(&b, 8, 8, TOKEN);
	r = remote(&b);
	end_close(&b);
	run_b = NULL;
	ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &r), 0);
	UNTIL(a.failed == 1);
	ck_assert_str_eq(a.why, "the peer's MPA port refuses connections");
	ck_assert_int_eq(try_post(&a, RNIC_WR_WRITE, 1, 0, 0, 0, &a, 0), -ENOTCONN);
	ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &r), -EINVAL);
	end_close(&a);
	run_b = &b;
}
END_TEST

START_TEST(wrong_address_family)
{
	struct siw_config c = config();
	struct rnic_remote r;

	open_both(&c, &c);
	end_qp(&a, 8, 8, TOKEN);
	r = (struct rnic_remote){ .gid = { { 0xfe, 0x80, [15] = 1 } }, .qpn = 2, .mpa_port = 1 };
	ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &r), 0);
	UNTIL(a.failed == 1);
	ck_assert_str_eq(a.why, "the peer's RNIC has an address of another family");
	close_both();
}
END_TEST

static void
attempt(struct rnic_remote r, uint64_t token, const char *why)
{
	if (a.qp != NULL)
		a.dev->ops->qp_destroy(a.qp);
	end_qp(&a, 8, 8, token);
	a.failed = a.connected = 0;
	ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &r), 0);
	UNTIL(a.failed + a.connected == 1);
	if (why == NULL)
		ck_assert_uint_eq(a.connected, 1);
	else
		ck_assert_str_eq(a.why, why);
}

START_TEST(token_binds_the_link)
{
	struct siw_config c = config();
	struct rnic_remote r, wrong;

	open_both(&c, &c);
	end_qp(&b, 8, 8, TOKEN);
	ck_assert_int_eq(b.dev->ops->qp_expect(b.qp), 0);
	r = remote(&b);
	attempt(r, TOKEN + 1, "rejected by the peer: wrong token");
	wrong = r;
	wrong.psn ^= 1;
	attempt(wrong, TOKEN, "rejected by the peer: wrong token");
	ck_assert_uint_eq(stats(&b).mpa_refused_token, 2);
	attempt(r, TOKEN, NULL);
	/* the second one with the right token comes too late */
	{
		struct rnic_qp *first = a.qp;

		a.qp = NULL;
		attempt(r, TOKEN, "rejected by the peer: link already connected");
		ck_assert_uint_eq(stats(&b).mpa_refused_token, 3);
		a.dev->ops->qp_destroy(first);
	}
	close_both();
}
END_TEST

START_TEST(early_request_waits_for_its_qp)
{
	struct siw_config c = config();
	struct rnic_remote ra, rb;

	open_both(&c, &c);
	end_qp(&a, 8, 8, TOKEN);
	end_qp(&b, 8, 8, TOKEN);
	ra = remote(&a);
	rb = remote(&b);
	ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &rb), 0);
	run_ms(100);
	ck_assert_uint_eq(a.connected + a.failed, 0);
	ck_assert_int_eq(b.dev->ops->qp_expect(b.qp), 0);
	UNTIL(a.connected == 1);
	ck_assert_uint_eq(b.connected, 0);
	ck_assert_int_eq(b.dev->ops->qp_connect(b.qp, RNIC_PASSIVE, &ra), 0);
	UNTIL(b.connected == 1);
	close_both();
}
END_TEST

START_TEST(early_request_waits_only_so_long)
{
	struct siw_config c = config();
	struct rnic_remote rb;

	open_both(&c, &c);
	end_qp(&a, 8, 8, TOKEN);
	end_qp(&b, 8, 8, TOKEN);
	rb = remote(&b);
	ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &rb), 0);
	UNTIL(a.failed == 1);
	ck_assert_str_eq(a.why, "rejected by the peer: not expected");
	ck_assert_uint_eq(stats(&b).mpa_refused_parked, 1);
	close_both();
}
END_TEST

START_TEST(early_requests_are_bounded)
{
	struct siw_config c = config();
	struct rnic_qp *qps[65];
	struct rnic_remote rb;

	open_both(&c, &c);
	end_qp(&b, 8, 8, TOKEN);
	rb = remote(&b);
	for (unsigned i = 0; i < 65; i++) {
		end_qp(&a, 8, 8, TOKEN);
		qps[i] = a.qp;
		ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &rb), 0);
		run_ms(1);
	}
	UNTIL(a.failed == 1);
	ck_assert_str_eq(a.why, "rejected by the peer: too many requests wait there");
	/* one of those that wait is taken, the others are told no */
	ck_assert_int_eq(b.dev->ops->qp_expect(b.qp), 0);
	UNTIL(a.connected == 1 && a.failed == 64);
	ck_assert_uint_eq(stats(&b).mpa_refused_parked, 1 + 63);
	for (unsigned i = 0; i < 65; i++)
		a.dev->ops->qp_destroy(qps[i]);
	a.qp = NULL;
	close_both();
}
END_TEST

START_TEST(another_qp_of_the_peer_took_the_link)
{
	struct siw_config c = config();
	struct rnic_remote r;

	open_both(&c, &c);
	end_qp(&b, 8, 8, TOKEN);
	end_qp(&a, 8, 8, TOKEN);
	r = remote(&b);
	ck_assert_int_eq(b.dev->ops->qp_expect(b.qp), 0);
	ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &r), 0);
	UNTIL(a.connected == 1);
	r = remote(&a);
	r.qpn ^= 1;		/* CLC says another one */
	ck_assert_int_eq(b.dev->ops->qp_connect(b.qp, RNIC_PASSIVE, &r), 0);
	UNTIL(b.failed == 1 && a.errors == 1);
	ck_assert_str_eq(b.why, "the link was taken by another QP of the peer");
	close_both();
}
END_TEST

START_TEST(the_peer_never_comes)
{
	struct siw_config c = config();
	struct rnic_remote ra;

	c.connect_ms = 100;
	open_both(&c, &c);
	end_qp(&a, 8, 8, TOKEN);
	end_qp(&b, 8, 8, TOKEN);
	ra = remote(&a);
	ck_assert_int_eq(b.dev->ops->qp_expect(b.qp), 0);
	ck_assert_int_eq(b.dev->ops->qp_connect(b.qp, RNIC_PASSIVE, &ra), 0);
	UNTIL(b.failed == 1);
	ck_assert_str_eq(b.why, "the peer did not open its MPA connection in time");
	close_both();
}
END_TEST

/* It came and went before CLC asked for it. */
START_TEST(the_peer_left_before_it_was_claimed)
{
	struct siw_config c = config();
	struct rnic_remote ra, rb;

	open_both(&c, &c);
	end_qp(&a, 8, 8, TOKEN);
	end_qp(&b, 8, 8, TOKEN);
	ra = remote(&a);
	rb = remote(&b);
	ck_assert_int_eq(b.dev->ops->qp_expect(b.qp), 0);
	ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &rb), 0);
	UNTIL(a.connected == 1);
	a.dev->ops->qp_destroy(a.qp);
	a.qp = NULL;
	run_ms(50);
	ck_assert_uint_eq(b.failed + b.errors, 0);
	ck_assert_int_eq(b.dev->ops->qp_connect(b.qp, RNIC_PASSIVE, &ra), 0);
	UNTIL(b.failed == 1);
	ck_assert_str_eq(b.why, "the peer reset the connection");
	close_both();
}
END_TEST

START_TEST(bad_settings_are_named)
{
	struct siw_config good = config(), c;
	struct rnic_loop l = poll_loop_rnic(&a.loop);
	struct rnic_dev *dev = NULL;
	const char *err;

	c = good, c.ird = 0;
	ck_assert_int_eq(siw_open(&c, &l, &rng, &dev, &err), -EINVAL);
	ck_assert_str_eq(err, "inbound Read depth");
	c = good, c.ord = 0x3fff;
	ck_assert_int_eq(siw_open(&c, &l, &rng, &dev, &err), -EINVAL);
	ck_assert_str_eq(err, "outbound Read depth");
	c = good, c.rtr = 0;
	ck_assert_int_eq(siw_open(&c, &l, &rng, &dev, &err), -EINVAL);
	ck_assert_str_eq(err, "RTR kinds");
	c = good, c.fpdu_max = 127;
	ck_assert_int_eq(siw_open(&c, &l, &rng, &dev, &err), -EINVAL);
	ck_assert_str_eq(err, "largest FPDU");
	c = good, c.port_min = 2, c.port_max = 1;
	ck_assert_int_eq(siw_open(&c, &l, &rng, &dev, &err), -EINVAL);
	ck_assert_str_eq(err, "port range");
	c = good, c.addr.ss_family = AF_UNIX;
	ck_assert_int_eq(siw_open(&c, &l, &rng, &dev, &err), -EINVAL);
	ck_assert_str_eq(err, "address");
	/* an address that this host has not */
	c = good;
	((struct sockaddr_in *)&c.addr)->sin_addr.s_addr = htonl(0xc0000201);
	ck_assert_int_eq(siw_open(&c, &l, &rng, &dev, &err), -EADDRNOTAVAIL);
	ck_assert_str_eq(err, "address");
	ck_assert_ptr_null(dev);
}
END_TEST

START_TEST(ports_come_from_the_range)
{
	struct siw_config c = config();
	struct rnic_loop l;
	struct rnic_dev *dev;
	const char *err;
	uint16_t port;

	end_open(&a, &c);
	port = rnic_query(a.dev).mpa_port;
	c.port_min = c.port_max = port;
	poll_loop_init(&b.loop);
	l = poll_loop_rnic(&b.loop);
	ck_assert_int_eq(siw_open(&c, &l, &rng, &dev, &err), -EADDRINUSE);
	ck_assert_str_eq(err, "no free port in the range");
	poll_loop_fini(&b.loop);
	c.port_max = (uint16_t)(port + 20);
	end_open(&b, &c);
	ck_assert_uint_gt(rnic_query(b.dev).mpa_port, port);
	ck_assert_uint_le(rnic_query(b.dev).mpa_port, port + 20);
	close_both();
}
END_TEST

START_TEST(qps_are_bounded)
{
	struct siw_config c = config();
	const struct rnic_qp_attr attr = { .sq_depth = 4, .rq_depth = 4 };
	struct rnic_qp_attr bad = attr;
	struct rnic_qp *qp[3];

	c.max_qp = 2;
	open_both(&c, &c);
	ck_assert_int_eq(a.dev->ops->qp_create(a.pd, &attr, &qp[0]), 0);
	ck_assert_int_eq(a.dev->ops->qp_create(a.pd, &attr, &qp[1]), 0);
	ck_assert_int_eq(a.dev->ops->qp_create(a.pd, &attr, &qp[2]), -ENOSPC);
	a.dev->ops->qp_destroy(qp[0]);
	bad.sq_depth = 0;
	ck_assert_int_eq(a.dev->ops->qp_create(a.pd, &bad, &qp[2]), -EINVAL);
	ck_assert_int_eq(a.dev->ops->qp_create(a.pd, &attr, &qp[0]), 0);
	ck_assert_uint_ne(qp[0]->qpn, qp[1]->qpn);
	a.dev->ops->qp_destroy(qp[0]);
	a.dev->ops->qp_destroy(qp[1]);
	close_both();
}
END_TEST

/* Random requests and a break at a random moment: every request ends exactly once, in order. */
START_TEST(each_request_ends_exactly_once)
{
	struct siw_config c = config();
	uint64_t x = 77 + (uint64_t)_i;
	unsigned posted = 0, recvs = 0, sends_seen = 0, recvs_seen = 0;
	bool flushed = false;

	c.crc = _i & 1;
	open_connected(&c);
	for (unsigned i = 0; i < 16; i++)
		post_recv(&b, i, 0, 100);
	for (; recvs < 16; recvs++)
		post_recv(&a, recvs, 0, 100);
	for (unsigned r = 0; r < 60; r++) {
		enum rnic_wr_op op;

		x = x * 6364136223846793005u + 1442695040888963407u;
		op = x >> 60 & 1 ? RNIC_WR_SEND : RNIC_WR_WRITE;
		if (posted < 64 && room(&a).wrs > 0 && (op == RNIC_WR_WRITE || room(&a).sends > 0))
			post(&a, op, posted++, RNIC_SIGNALED, 0, op == RNIC_WR_SEND ? 100 : (x >> 30) % 40000, &b, 0);
		if ((x >> 20) % 4 == 0)
			turn_one(&a, 0);
		if ((x >> 23) % 5 == 0)
			turn_one(&b, 0);
	}
	switch (_i % 4) {
	case 0:
		a.dev->ops->qp_disconnect(a.qp, false);
		break;
	case 1:
		a.dev->ops->qp_disconnect(a.qp, true);
		break;
	case 2:
		b.dev->ops->qp_disconnect(b.qp, false);
		UNTIL(a.errors == 1);
		break;
	default:
		b.dev->ops->qp_disconnect(b.qp, true);
		UNTIL(a.errors == 1);
		break;
	}
	run_ms(5);
	for (unsigned i = 0; i < a.wc_cnt; i++) {
		const struct rnic_wc *wc = &a.wc[i];

		if (wc->op == RNIC_WC_RECV)
			ck_assert_uint_eq(wc->wr_id, recvs_seen++);
		else
			ck_assert_uint_eq(wc->wr_id, sends_seen++);
		ck_assert(!(flushed && wc->status == RNIC_WC_OK));
		flushed = flushed || wc->status != RNIC_WC_OK;
	}
	ck_assert_uint_eq(recvs_seen, recvs);
	ck_assert_uint_eq(sends_seen, posted);
	close_both();
}
END_TEST

static void
siw_case(TCase *tc)
{
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, connects_writes_sends_both_ways);
	tcase_add_test(tc, query_tells_the_device);
	tcase_add_test(tc, no_completion_while_the_peer_does_not_read);
	tcase_add_test(tc, a_peer_that_does_not_answer_breaks_the_qp);
	tcase_add_test(tc, confirmation_on_request_only);
	tcase_add_test(tc, confirmation_after_confirm_ms);
	tcase_add_test(tc, confirmation_under_pressure);
	tcase_add_test(tc, a_full_queue_is_refused_and_room_is_told);
	tcase_add_test(tc, completions_not_polled_hold_their_place);
	tcase_add_test(tc, sends_keep_to_the_peers_receive_depth);
	tcase_add_test(tc, a_send_without_a_receive_waits);
	tcase_add_test(tc, stalled_stream_goes_on_where_it_was);
	tcase_add_test(tc, receives_are_bounded_all_or_none);
	tcase_add_test(tc, inline_data_is_copied);
	tcase_add_test(tc, four_pieces_are_gathered);
	tcase_add_test(tc, buffers_have_to_be_inside_of_their_region);
	tcase_add_loop_test(tc, memory_is_protected, 0, 10);
	tcase_add_loop_test(tc, revocation_in_the_middle_of_a_write, 0, 2);
	tcase_add_test(tc, disconnect_flushes_everything_once);
	tcase_add_test(tc, after_a_reset_nothing_is_placed);
	tcase_add_test(tc, graceful_disconnect_sends_what_was_posted);
	tcase_add_test(tc, destroy_drops_what_was_not_polled);
	tcase_add_loop_test(tc, every_option_carries_data, 0, 40);
	tcase_add_loop_test(tc, every_rtr_kind, 0, 6);
	tcase_add_test(tc, no_rtr_kind_in_common);
	tcase_add_test(tc, revision_1_initiator);
	tcase_add_test(tc, ipv6);
	tcase_add_test(tc, nobody_listens);
	tcase_add_test(tc, wrong_address_family);
	tcase_add_test(tc, token_binds_the_link);
	tcase_add_test(tc, early_request_waits_for_its_qp);
	tcase_add_test(tc, early_request_waits_only_so_long);
	tcase_add_test(tc, early_requests_are_bounded);
	tcase_add_test(tc, another_qp_of_the_peer_took_the_link);
	tcase_add_test(tc, the_peer_never_comes);
	tcase_add_test(tc, the_peer_left_before_it_was_claimed);
	tcase_add_test(tc, bad_settings_are_named);
	tcase_add_test(tc, ports_come_from_the_range);
	tcase_add_test(tc, qps_are_bounded);
	tcase_add_loop_test(tc, each_request_ends_exactly_once, 0, 24);
}

UNIT_MAIN("siw", siw_case)
