/* Two verbs devices in one process, on the cards of fake_ibverbs.h, for the tests of the device: a is the active side,
 * b the passive one. Nothing happens but in turn(): first the cards work, then the devices. */
#pragma once

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "fake_ibverbs.h"
#include "rnic/verbs/verbs_int.h"

/* The thread that a few turns did not wait for wakes a loop; a processor that only turns would keep it from doing so. */
#define UNTIL_PAUSE(n) until_pause(n)
static inline void until_pause(unsigned);
#include "rnic_ends.h"

static inline void
until_pause(unsigned n)
{
	struct pollfd p[] = {
		{ .fd = a.dev != NULL ? a.loop.ep : -1, .events = POLLIN },
		{ .fd = b.dev != NULL ? b.loop.ep : -1, .events = POLLIN },
	};

	if (n >= 6)
		(void)poll(p, 2, 1);
}

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
	e->dev->now_ns = poll_loop_now();
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
setup(void)
{
	rng_init_kernel(&rng);
	fake_reset();
}

static inline void
turn(void)
{
	fake_run();
	turn_one(&a, 0);
	turn_one(&b, 0);
}

/* Has the thread something to take from the card? */
static inline bool
is_ending(const struct end *e)
{
	LIST_EACH(const struct verbs_qp, qp, &verbs_dev(e->dev)->qps, node)
		if (qp->phase == VERBS_DESTROY || qp->phase == VERBS_RELEASE)
			return true;
	return false;
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

/* Closes what a test has left open. */
static inline void
teardown(void)
{
	if (a.dev != NULL)
		end_close(&a);
	if (b.dev != NULL)
		end_close(&b);
	fake_check_clean();
}

static inline struct fake_qp *
hw(const struct end *e)
{
	return fake_qp_of(e->qp->qpn);
}

static inline struct verbs_stats
stats(const struct end *e)
{
	struct verbs_stats st;

	rnic_stats_of(e->dev, &st, sizeof(st));
	return st;
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
