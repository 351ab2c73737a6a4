/* See arena.h. */
#include "arena.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pages.h"
#include "fuzz.h"
#include "rival.h"
#include "tests/unit/smcr_help.h"
#include "witness.h"
#include "tests/seeded_rng.h"

#define SPINS_MAX 20000 /* turns at one instant: more is a loop without end */

/* -- devices -- */

static struct arena *arena; /* of the device calls that fail */
static const struct rnic_ops *real;
static struct rnic_ops failing;

static bool
fails(unsigned what)
{
	if ((arena->fail_what & what) == 0 || arena->fail_cnt == 0)
		return false;
	if (arena->fail_after > 0) {
		arena->fail_after--;
		return false;
	}
	arena->fail_cnt--;
	return true;
}

static int
post_send(struct rnic_qp *qp, const struct rnic_send_wr *wr)
{
	return fails(FAIL_POST_SEND) ? -ENOTCONN : real->post_send(qp, wr);
}

static int
post_recv(struct rnic_qp *qp, const struct rnic_recv_wr *wr, unsigned n)
{
	return fails(FAIL_POST_RECV) ? -ENOTCONN : real->post_recv(qp, wr, n);
}

static int
mr_reg(struct rnic_pd *pd, void *buf, size_t len, unsigned access, struct rnic_mr **out)
{
	return fails(FAIL_MR_REG) ? -ENOMEM : real->mr_reg(pd, buf, len, access, out);
}

static int
qp_create(struct rnic_pd *pd, const struct rnic_qp_attr *attr, struct rnic_qp **out)
{
	return fails(FAIL_QP_CREATE) ? -ENOMEM : real->qp_create(pd, attr, out);
}

static int
pd_alloc(struct rnic_dev *dev, struct rnic_pd **out)
{
	return fails(FAIL_PD_ALLOC) ? -ENOMEM : real->pd_alloc(dev, out);
}

static int
qp_connect(struct rnic_qp *qp, enum rnic_side side, const struct rnic_remote *r)
{
	return fails(FAIL_CONNECT) ? -ENOMEM : real->qp_connect(qp, side, r);
}

static int
qp_expect(struct rnic_qp *qp)
{
	return fails(FAIL_EXPECT) ? -ENOMEM : real->qp_expect(qp);
}

static void
make_failing(struct rnic_dev *dev)
{
	real = dev->ops;
	failing = *real;
	failing.post_send = post_send;
	failing.post_recv = post_recv;
	failing.mr_reg = mr_reg;
	failing.qp_create = qp_create;
	failing.pd_alloc = pd_alloc;
	failing.qp_connect = qp_connect;
	failing.qp_expect = qp_expect;
	failing.flush = NULL;
	dev->ops = &failing;
}

void
arena_fail(struct arena *a, unsigned what, unsigned after, unsigned cnt)
{
	a->fail_what = what;
	a->fail_after = after;
	a->fail_cnt = cnt;
}

static enum rnic_transport
transport_of(const struct arena *a, unsigned n)
{
	static const enum rnic_transport mixed[ARENA_DEVS] = { RNIC_TRANSPORT_IWARP, RNIC_TRANSPORT_IWARP_SCTP,
		RNIC_TRANSPORT_IWARP_SCTP_UDP, RNIC_TRANSPORT_IWARP };

	if ((a->flags & (ARENA_ROCE | ARENA_V2)) != 0)
		return RNIC_TRANSPORT_ROCE;
	if ((a->flags & ARENA_MIXED) != 0)
		return mixed[n];
	if ((a->flags & ARENA_SCTP) != 0)
		return RNIC_TRANSPORT_IWARP_SCTP;
	return (a->flags & ARENA_SCTP_UDP) != 0 ? RNIC_TRANSPORT_IWARP_SCTP_UDP : RNIC_TRANSPORT_IWARP;
}

struct rnic_dev *
arena_device(struct arena *a, unsigned h, unsigned n)
{
	char name[8] = { (char)('a' + h), (char)('0' + n), '\0' };

	return sim_dev_at(a->fab, name, transport_of(a, n), h, n, n);
}

void
arena_dev_add(struct arena *a, unsigned n)
{
	if (a->dev[n] != NULL)
		return;
	a->dev[n] = arena_device(a, 0, n);
	make_failing(a->dev[n]);
	FUZZ_CHECK(smcr_add_device(a->eng, a->dev[n]) == 0);
}

void
arena_dev_remove(struct arena *a, unsigned n)
{
	struct rnic_dev *dev = a->dev[n];

	if (dev == NULL)
		return;
	a->dev[n] = NULL;
	smcr_remove_device(a->eng, dev);
}

/* As the daemon does with a card that was pulled out. */
static void
remove_gone(struct arena *a)
{
	if (!smcr_take_device_changes(a->eng))
		return;
	for (unsigned i = 0; i < ARENA_DEVS; i++)
		if (a->dev[i] != NULL && smcr_device_gone(a->eng, a->dev[i]))
			arena_dev_remove(a, i);
}

/* -- the referee: what the rival does with its own devices is its business -- */

static void
on_breach(void *ctx, const struct rnic_dev *dev, const char *what)
{
	struct arena *a = ctx;

	for (unsigned i = 0; i < ARENA_DEVS; i++) {
		if (dev != a->dev[i])
			continue;
		fprintf(stderr, "breach of the device contract: %s\n", what);
		abort();
	}
}

/* -- set-up -- */

static void
configure(struct smcr_config *cfg, unsigned flags)
{
	smcr_config_init(cfg);
	cfg->conns_max = 24;
	cfg->clc_ms = 600;
	cfg->llc_ms = 300;
	cfg->confirm_link_ms = 500;
	cfg->add_link_ms = 300;
	cfg->add_link_retry_ms = 1000;
	cfg->add_link_retry_max_ms = 4000;
	cfg->keepalive_ms = 2000;
	cfg->keepalive_answer_ms = 300;
	cfg->last_link_ms = 2000;
	cfg->group_idle_ms = 5000;
	cfg->rmb_idle_ms = 1500;
	cfg->close_ms = 3000;
	cfg->abort_ms = 1000;
	cfg->fin_grace_ms = 500;
	cfg->holdoff_ms = 200;
	cfg->holdoff_max_ms = 1000;
	cfg->sq_depth = cfg->rq_depth = 32;
	cfg->sndbuf_size = 16 * 1024;
	cfg->rmb_elems = 8;
	cfg->rfc_cursors = (flags & ARENA_RFC_CURSORS) != 0;
	cfg->ueid_cnt = (flags & ARENA_V2) != 0;
	memset(&cfg->ueids[0], ARENA_UEID, sizeof(cfg->ueids[0]));
	if ((flags & ARENA_ONE_LINK) != 0)
		cfg->links_max = 1;
	if ((flags & ARENA_MANY_LINKS) != 0)
		cfg->links_max = SMCR_LINKS_MAX;
	if ((flags & ARENA_SMALL) != 0) {
		cfg->conns_max = 6;
		cfg->conns_per_group = 2;
		cfg->groups_per_addr = 2;
		cfg->rmb_elems = 1;
		cfg->sq_depth = 8;
		cfg->rq_depth = 8;
	}
}

void
arena_init(struct arena *a, unsigned flags)
{
	struct sim_config sim;

	memset(a, 0, sizeof(*a));
	arena = a;
	a->flags = flags;
	sim_config_init(&sim);
	sim.ctx = a;
	sim.breach = on_breach;
	sim.need_flush = false; /* looking through all queue pairs in each turn takes most of the time */
	sim.no_deny = (flags & ARENA_NO_DENY) != 0;
	sim.fence_ns = (flags & ARENA_CONFIRMS) != 0 ? 5 * ARENA_MS : 0;
	a->fab = sim_fabric_new(&sim);
	configure(&a->cfg, flags);
	rng_init_seeded(&a->rng, 1);
	a->eng = smcr_new(&a->cfg, &a->rng, 0);
	FUZZ_CHECK(a->eng != NULL);
	arena_dev_add(a, 0);
	for (unsigned i = 1; i < ((flags & ARENA_ONE_DEV) != 0             ? 1u
	                                 : (flags & ARENA_MANY_LINKS) != 0 ? ARENA_DEVS
	                                                                   : 2u);
	     i++)
		arena_dev_add(a, i);
}

void
arena_free_engine(struct arena *a)
{
	smcr_free(a->eng);
	a->eng = NULL;
}

void
arena_free_fabric(struct arena *a)
{
	struct sim_live live;

	sim_live(a->fab, &live);
	FUZZ_CHECK(live.qp == 0 && live.mr == 0 && live.pd == 0);
	sim_fabric_free(a->fab);
}

/* -- time -- */

static void
look(struct arena *a)
{
	char text[160];

	if (bounds_look(&a->bounds, a->eng, text, sizeof(text)) == NULL)
		return;
	fprintf(stderr, "beyond its bound: %s\n", text);
	abort();
}

/* A connection that the rival opened over a link. */
static struct arena_user *
adopt(struct arena *a, struct smcr_conn *c)
{
	struct rival_mid *m = rival_adopt(a->rival, c);

	if (m == NULL) {
		smcr_abort(c, SMCR_R_NOT_OPENED);
		smcr_release(c);
		return NULL;
	}
	smcr_set_app(c, &m->user);
	return &m->user;
}

/* One turn of the engine's loop: true when it has more to do at once. */
static bool
turn(struct arena *a)
{
	struct smcr_conn *c;
	struct smcr_log line;
	unsigned events;
	bool more = false;

	smcr_poll(a->eng, a->now_ns);
	while ((c = smcr_next_event(a->eng, &events)) != NULL) {
		struct arena_user *u = smcr_app(c);

		if (u == NULL)
			u = adopt(a, c);
		if (u != NULL)
			u->on_event(u, events);
		more = true;
	}
	remove_gone(a);
	while (!a->deaf && smcr_next_log(a->eng, &line))
		;
	more = smcr_flush(a->eng) || more;
	look(a);
	return more;
}

void
arena_settle(struct arena *a)
{
	bool more = true;

	for (unsigned spin = 0; more; spin++) {
		FUZZ_CHECK(spin < SPINS_MAX);
		sim_run(a->fab, a->now_ns);
		more = rival_turn(a->rival);
		more = witness_turn(a->witness) || more;
		more = turn(a) || more;
		more = more || sim_next(a->fab) <= a->now_ns || smcr_deadline(a->eng) <= a->now_ns;
	}
}

void
arena_run(struct arena *a, int64_t ns)
{
	int64_t end = a->now_ns + ns;

	arena_settle(a);
	while (a->now_ns < end) {
		int64_t at[] = { sim_next(a->fab), smcr_deadline(a->eng), witness_deadline(a->witness), end };

		for (unsigned i = 0; i + 1 < sizeof(at) / sizeof(at[0]); i++)
			if (at[i] < at[3])
				at[3] = at[i];
		a->now_ns = at[3];
		arena_settle(a);
	}
}
