/*
 * Two soft iWARP devices in one process over loopback, for the tests of the
 * device: a opens the connection, b is the passive side. Each has a loop of
 * its own, so that one can stand still.
 */
#ifndef SMCRD_TESTS_SIW_ENDS_H
#define SMCRD_TESTS_SIW_ENDS_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "rnic/siw.h"
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
static struct end a, b; /* a opens the connection */

static inline struct siw_config
config(void)
{
	struct siw_config c;
	struct sockaddr_in *sin = (struct sockaddr_in *)&c.addr;

	siw_config_init(&c);
	sin->sin_family = AF_INET;
	sin->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return c;
}

static inline void
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
	ck_assert_int_eq(
	    e->dev->ops->mr_reg(e->pd, e->buf, BUF, RNIC_ACCESS_REMOTE_WRITE | RNIC_ACCESS_REMOTE_READ, &e->mr), 0);
}

static inline void
end_qp(struct end *e, uint32_t sq, uint32_t rq, uint64_t token)
{
	const struct rnic_qp_attr attr = { .ctx = e, .sq_depth = sq, .rq_depth = rq, .token = token };

	ck_assert_int_eq(e->dev->ops->qp_create(e->pd, &attr, &e->qp), 0);
}

static inline void
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

static inline void
setup(void)
{
	rng_init_kernel(&rng);
}

static inline void
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

static inline void
turn_one(struct end *e, int max_ms)
{
	poll_loop_turn(&e->loop, &e->dev, 1, max_ms);
	collect(e);
}

/* Both ends run; an end that is NULL stands still. */
static struct end *run_a = &a, *run_b = &b;

static inline void
turn(void)
{
	if (run_a != NULL)
		turn_one(run_a, run_b != NULL ? 0 : 1);
	if (run_b != NULL)
		turn_one(run_b, 1);
}

/* Turns until the condition (the last operand of a comma list) holds; fails after some seconds. */
#define UNTIL(...)                                                                             \
	do {                                                                                   \
		int64_t until_end = poll_loop_now() + 20000000000;                             \
		while (!(__VA_ARGS__)) {                                                       \
			ck_assert_msg(poll_loop_now() < until_end, "never: %s", #__VA_ARGS__); \
			turn();                                                                \
		}                                                                              \
	} while (0)

static inline struct rnic_remote
remote(const struct end *e)
{
	struct rnic_info info = rnic_query(e->dev);

	return (struct rnic_remote){
		.gid = info.gid,
		.qpn = e->qp->qpn,
		.psn = e->qp->psn,
		.mtu_code = 5,
		.mpa_port = info.mpa_port,
	};
}

static inline void
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

static inline void
post_recv(struct end *e, uint64_t id, size_t off, uint32_t len)
{
	const struct rnic_recv_wr wr = { .wr_id = id, .mr = e->mr, .ptr = e->buf + off, .len = len };

	ck_assert_int_eq(e->dev->ops->post_recv(e->qp, &wr, 1), 0);
}

static inline int
try_post(struct end *e, enum rnic_wr_op op, uint64_t id, unsigned flags, size_t off, uint32_t len, const struct end *to,
    size_t to_off)
{
	const struct rnic_send_wr wr = {
		.wr_id = id,
		.op = op,
		.flags = flags,
		.sge_cnt = 1,
		.sge = { { .mr = e->mr, .ptr = e->buf + off, .len = len } },
		.raddr = to->mr->addr + to_off,
		.rkey = to->mr->rkey,
	};

	return e->dev->ops->post_send(e->qp, &wr);
}

static inline void
post(struct end *e, enum rnic_wr_op op, uint64_t id, unsigned flags, size_t off, uint32_t len, const struct end *to,
    size_t to_off)
{
	ck_assert_int_eq(try_post(e, op, id, flags, off, len, to, to_off), 0);
}

static inline void
check_wc(const struct end *e, unsigned i, uint64_t id, enum rnic_wc_op op, enum rnic_wc_status status)
{
	ck_assert_uint_lt(i, e->wc_cnt);
	ck_assert_uint_eq(e->wc[i].wr_id, id);
	ck_assert_int_eq(e->wc[i].op, op);
	ck_assert_int_eq(e->wc[i].status, status);
	ck_assert_ptr_eq(e->wc[i].qp, e->qp);
}

/* Lets time pass with the loops running. */
static inline void
run_ms(int ms)
{
	int64_t end = poll_loop_now() + (int64_t)ms * 1000000;

	while (poll_loop_now() < end)
		turn();
}

static inline void
fill(uint8_t *buf, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = (uint8_t)(i * 7 + i / 251 + seed);
}

static inline void
open_both(const struct siw_config *ca, const struct siw_config *cb)
{
	end_open(&a, ca);
	end_open(&b, cb);
}

static inline void
open_connected(const struct siw_config *c)
{
	open_both(c, c);
	connect_ends();
	ck_assert_uint_eq(a.connected, 1);
	ck_assert_uint_eq(b.connected, 1);
}

static inline void
close_both(void)
{
	run_a = &a;
	run_b = &b;
	end_close(&a);
	end_close(&b);
}

static inline struct siw_stats
stats(const struct end *e)
{
	struct siw_stats st;

	siw_stats(e->dev, &st);
	return st;
}

static inline struct rnic_room
room(const struct end *e)
{
	struct rnic_room r;

	e->dev->ops->room(e->qp, &r);
	return r;
}

#endif
