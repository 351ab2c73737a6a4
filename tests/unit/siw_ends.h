/* Two soft iWARP devices in one process over loopback, for the tests of the device: a opens the connection, b is the
 * passive side. Each has a loop of its own, so that one can stand still. */
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "base/addr.h"
#include "rnic/siw/siw.h"
#include "rnic_ends.h"

/* Which lower layer protocol the cases run over: a program that includes those of another says so before. */
#ifndef OVER_SCTP
#define OVER_SCTP 0
#endif
#ifndef SCTP_STACK
#define SCTP_STACK SIW_STACK_USER
#endif
#define BY_LLP(tcp, sctp) (OVER_SCTP ? (sctp) : (tcp))

/* The secret of its links, with which they are in TLS. */
#ifndef END_SECRET
#define END_SECRET NULL
#endif

#define TOKEN 0x1122334455667788u

static inline struct siw_config
config(void)
{
	struct siw_config c;

	siw_config_init(&c);
	c.transport = OVER_SCTP ? SIW_SCTP : SIW_TCP;
	c.sctp_stack = SCTP_STACK;
	c.connect_ms = 30000; /* a busy machine lets 2 s pass in one turn */
	ck_assert_int_eq(addr_parse("127.0.0.1", &c.addr), 0);
	return c;
}

/* A socket's own address, "address:port". */
static inline const char *
name_of(int fd)
{
	static char text[ADDR_STR_MAX];
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);

	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&ss, &len), 0);
	return addr_format_port(&ss, text, sizeof(text));
}

static inline void
end_open(struct end *e, const struct siw_config *c)
{
	const char *err;

	memset(e, 0, sizeof(*e));
	poll_loop_init(&e->loop);
	struct rnic_loop l = poll_loop_rnic(&e->loop);
	ck_assert_int_eq(siw_open(c, &l, &rng, &e->dev, &err), 0);
	e->dev->now_ns = poll_loop_now();
	ck_assert_int_eq(e->dev->ops->pd_alloc(e->dev, &e->pd), 0);
	e->buf = calloc(1, BUF);
	ck_assert_int_eq(
	    e->dev->ops->mr_reg(e->pd, e->buf, BUF, RNIC_ACCESS_REMOTE_WRITE | RNIC_ACCESS_REMOTE_READ, &e->mr), 0);
}

static inline void
end_qp(struct end *e, uint32_t sq, uint32_t rq, uint64_t token)
{
	const struct rnic_qp_attr attr = {
		.ctx = e, .sq_depth = sq, .rq_depth = rq, .token = token, .secret = END_SECRET
	};

	ck_assert_int_eq(e->dev->ops->qp_create(e->pd, &attr, &e->qp), 0);
}

static inline void
setup(void)
{
	rng_init_kernel(&rng);
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

/* a asks for a link, b expects it and has not claimed it yet. */
static inline void
ask_for_link(void)
{
	if (a.qp == NULL)
		end_qp(&a, 64, 16, TOKEN);
	if (b.qp == NULL)
		end_qp(&b, 64, 16, TOKEN);
	struct rnic_remote rb = remote(&b);
	ck_assert_int_eq(b.dev->ops->qp_expect(b.qp), 0);
	ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &rb), 0);
}

/* After ask_for_link. */
static inline void
claim_link(void)
{
	struct rnic_remote ra = remote(&a);

	UNTIL(a.connected || a.failed);
	ck_assert_int_eq(b.dev->ops->qp_connect(b.qp, RNIC_PASSIVE, &ra), 0);
	UNTIL(b.connected || b.failed);
}

static inline void
connect_ends(void)
{
	ask_for_link();
	claim_link();
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

/* Closes what a test has left open. */
static inline void
teardown(void)
{
	if (a.dev != NULL)
		end_close(&a);
	if (b.dev != NULL)
		end_close(&b);
}

static inline struct siw_stats
stats(const struct end *e)
{
	struct siw_stats st;

	rnic_stats_of(e->dev, &st, sizeof(st));
	return st;
}
