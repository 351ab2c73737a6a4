/* Two devices in one process, for the tests of devices: what an end of a link has and can do whatever the device is.
 * The including test opens the devices, connects the ends and defines turn(). */
#pragma once

#include <string.h>

#include "base/rng.h"
#include "rnic/rnic.h"
#include "tests/poll_loop.h"
#include "tests/rnic_end.h"
#include "tests/rnic_stats.h"
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
	unsigned connected, failed, errors, silences, freed, rooms, ups, downs, gones, troubles;
	const char *why;
	bool silent; /* the last of CONNECT_FAILED and QP_ERROR */
	struct rnic_wc wc[8192];
	unsigned wc_cnt;
};

static struct rng rng;
static struct end a, b; /* a opens the connection */

static void turn(void);

static inline void
collect(struct end *e)
{
	struct rnic_event ev;

	e->wc_cnt += e->dev->ops->poll(e->dev, e->wc + e->wc_cnt, 8192 - e->wc_cnt);
	while (e->dev->ops->poll_event(e->dev, &ev)) {
		e->connected += ev.type == RNIC_EV_CONNECTED;
		e->failed += ev.type == RNIC_EV_CONNECT_FAILED;
		e->errors += ev.type == RNIC_EV_QP_ERROR;
		e->silences += ev.type == RNIC_EV_SILENT;
		e->freed += ev.type == RNIC_EV_QP_FREED;
		e->rooms += ev.type == RNIC_EV_CREDITS;
		e->ups += ev.type == RNIC_EV_PORT_UP;
		e->downs += ev.type == RNIC_EV_PORT_DOWN;
		e->gones += ev.type == RNIC_EV_DEV_GONE;
		e->troubles += ev.type == RNIC_EV_TROUBLE;
		if (ev.why != NULL)
			e->why = ev.why;
		if (ev.type == RNIC_EV_CONNECT_FAILED || ev.type == RNIC_EV_QP_ERROR)
			e->silent = ev.silent;
	}
}

/* A turn of the device's loop, and what comes of it. */
static inline void
turn_one(struct end *e, int max_ms)
{
	if (e->dev == NULL)
		return;
	poll_loop_turn(&e->loop, &e->dev, 1, max_ms);
	collect(e);
}

/* Before the n-th turn of UNTIL, where turn() itself does not wait. */
#ifndef UNTIL_PAUSE
#define UNTIL_PAUSE(n) (void)(n)
#endif

/* Turns until the condition (the last operand of a comma list) holds; fails after a minute. */
#define UNTIL(...)                                                                             \
	do {                                                                                   \
		int64_t until_end = poll_loop_now() + 60000000000;                             \
		for (unsigned until_n = 0; !(__VA_ARGS__); until_n++) {                        \
			ck_assert_msg(poll_loop_now() < until_end, "never: %s", #__VA_ARGS__); \
			UNTIL_PAUSE(until_n);                                                  \
			turn();                                                                \
		}                                                                              \
	} while (0)

static inline void
end_close(struct end *e)
{
	if (e->qp != NULL)
		e->dev->ops->qp_destroy(e->qp);
	UNTIL(rnic_query(e->dev).qp_cnt == 0);
	e->dev->ops->mr_dereg(e->mr);
	e->dev->ops->pd_free(e->pd);
	rnic_end(e->dev);
	e->dev = NULL;
	free(e->buf);
	poll_loop_fini(&e->loop);
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

static inline struct rnic_credits
room(const struct end *e)
{
	struct rnic_credits r;

	e->dev->ops->credits(e->qp, &r);
	return r;
}
