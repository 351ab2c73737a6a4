/*
 * Two verbs devices in one process, on the cards of fake_ibverbs.h, for the
 * tests of the device: a is the active side, b the passive one. Nothing happens
 * but in turn(): first the cards work, then the devices.
 */
#ifndef SMCRD_TESTS_VERBS_ENDS_H
#define SMCRD_TESTS_VERBS_ENDS_H

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "fake_ibverbs.h"
#include "rnic/verbs_int.h"
#include "tests/poll_loop.h"
#include "unit.h"

#define BUF (1u << 20)

/* One end of a link. */
struct end {
	struct poll_loop loop;
	struct rnic_dev *dev;
	struct rnic_pd *pd;
	struct rnic_mr *mr;
	struct rnic_qp *qp;
	uint8_t *buf;
	unsigned connected, failed, errors, rooms, ups, downs, gones, troubles;
	const char *why;
	struct rnic_wc wc[8192];
	unsigned wc_cnt;
};

static struct rng rng;
static struct end a, b; /* a opens the connection */

static inline struct verbs_config
config(unsigned n)
{
	struct verbs_config c;

	verbs_config_init(&c);
	(void)snprintf(c.dev, sizeof(c.dev), "fake%u", n);
	c.gid.b[10] = c.gid.b[11] = 0xff;
	c.gid.b[12] = 10;
	c.gid.b[14] = (uint8_t)n;
	c.gid.b[15] = 1;
	return c;
}

static inline void
end_open(struct end *e, const struct verbs_config *c)
{
	struct rnic_loop l;
	const char *why = "?";

	memset(e, 0, sizeof(*e));
	poll_loop_init(&e->loop);
	l = poll_loop_rnic(&e->loop);
	ck_assert_msg(verbs_open(c, &l, &rng, &e->dev, &why) == 0, "%s", why);
	ck_assert_int_eq(e->dev->ops->pd_alloc(e->dev, &e->pd), 0);
	e->buf = calloc(1, BUF);
	ck_assert_int_eq(e->dev->ops->mr_reg(e->pd, e->buf, BUF, RNIC_ACCESS_REMOTE_WRITE, &e->mr), 0);
}

static inline void
end_qp(struct end *e, uint32_t sq, uint32_t rq)
{
	const struct rnic_qp_attr attr = { .ctx = e, .sq_depth = sq, .rq_depth = rq };

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
	fake_reset();
}

static inline void
collect(struct end *e)
{
	struct rnic_event ev;

	e->wc_cnt += e->dev->ops->poll(e->dev, e->wc + e->wc_cnt, 8192 - e->wc_cnt);
	while (e->dev->ops->poll_event(e->dev, &ev)) {
		e->connected += ev.type == RNIC_EV_CONNECTED;
		e->failed += ev.type == RNIC_EV_CONNECT_FAILED;
		e->errors += ev.type == RNIC_EV_QP_ERROR;
		e->rooms += ev.type == RNIC_EV_ROOM;
		e->ups += ev.type == RNIC_EV_PORT_UP;
		e->downs += ev.type == RNIC_EV_PORT_DOWN;
		e->gones += ev.type == RNIC_EV_DEV_GONE;
		e->troubles += ev.type == RNIC_EV_TROUBLE;
		if (ev.why != NULL)
			e->why = ev.why;
	}
}

/* A turn of the device's loop, and what comes of it. */
static inline void
turn_one(struct end *e, int max_ms)
{
	poll_loop_turn(&e->loop, &e->dev, 1, max_ms);
	collect(e);
}

static inline void
turn(void)
{
	fake_run();
	turn_one(&a, 0);
	turn_one(&b, 0);
}

#define UNTIL(...)                                                                             \
	do {                                                                                   \
		int64_t until_end = poll_loop_now() + 20000000000;                             \
		while (!(__VA_ARGS__)) {                                                       \
			ck_assert_msg(poll_loop_now() < until_end, "never: %s", #__VA_ARGS__); \
			turn();                                                                \
		}                                                                              \
	} while (0)

/* Has the thread something to take from the card? */
static inline bool
is_ending(const struct end *e)
{
	return verbs_dev(e->dev)->end_cnt > 0;
}

/* Enough of them for whatever does not wait for the network or a timer. */
static inline void
turns(void)
{
	for (unsigned i = 0; i < 6; i++)
		turn();
	if (fake.destroy_waits || (!is_ending(&a) && !is_ending(&b)))
		return;
	UNTIL(!is_ending(&a) && !is_ending(&b));
	turn();
}

static inline struct rnic_remote
remote(const struct end *e)
{
	return (struct rnic_remote){
		.gid = rnic_query(e->dev).gid,
		.qpn = e->qp->qpn,
		.psn = e->qp->psn,
		.mtu_code = rnic_query(e->dev).mtu_code,
		.mpa_port = rnic_query(e->dev).mpa_port,
	};
}

static inline void
connect_ends(void)
{
	struct rnic_remote ra, rb;

	if (a.qp == NULL)
		end_qp(&a, 64, 16);
	if (b.qp == NULL)
		end_qp(&b, 64, 16);
	ra = remote(&a);
	rb = remote(&b);
	ck_assert_int_eq(b.dev->ops->qp_expect(b.qp), 0);
	ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &rb), 0);
	ck_assert_int_eq(b.dev->ops->qp_connect(b.qp, RNIC_PASSIVE, &ra), 0);
	UNTIL(a.connected && b.connected);
	ck_assert_int_eq(a.dev->ops->qp_rts(a.qp), 0);
}

static inline void
open_both(void)
{
	struct verbs_config ca = config(0), cb = config(1);

	end_open(&a, &ca);
	end_open(&b, &cb);
}

static inline void
open_connected(void)
{
	open_both();
	connect_ends();
}

static inline void
close_both(void)
{
	end_close(&a);
	end_close(&b);
	fake_check_clean();
}

static inline struct fake_qp *
hw(const struct end *e)
{
	return fake_qp_of(e->qp->qpn);
}

static inline int
try_recv(struct end *e, uint64_t id, size_t off, uint32_t len)
{
	const struct rnic_recv_wr wr = { .wr_id = id, .mr = e->mr, .ptr = e->buf + off, .len = len };

	return e->dev->ops->post_recv(e->qp, &wr, 1);
}

static inline void
post_recv(struct end *e, uint64_t id, size_t off, uint32_t len)
{
	ck_assert_int_eq(try_recv(e, id, off, len), 0);
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
		.sge = { { .mr = flags & RNIC_INLINE ? NULL : e->mr, .ptr = e->buf + off, .len = len } },
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

static inline void
fill(uint8_t *buf, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = (uint8_t)(i * 7 + i / 251 + seed);
}

static inline struct verbs_stats
stats(const struct end *e)
{
	struct verbs_stats st;

	verbs_stats(e->dev, &st);
	return st;
}

static inline struct rnic_room
room(const struct end *e)
{
	struct rnic_room r;

	e->dev->ops->room(e->qp, &r);
	return r;
}

/* Time goes on to the device's next deadline, whenever that is. */
static inline void
pass_deadline(struct end *e)
{
	int64_t at = e->dev->ops->deadline(e->dev);

	ck_assert_int_ne(at, INT64_MAX);
	e->dev->ops->progress(e->dev, at);
	collect(e);
}

#endif
