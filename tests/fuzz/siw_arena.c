/* See siw_arena.h. */
#include "siw_arena.h"

#include <string.h>

#include "base/addr.h"
#include "fuzz.h"
#include "tests/rnic_end.h"
#include "tests/scenario/oom.h"
#include "tests/seeded_rng.h"

#define GUARD 256
#define RECVS 32
#define TURNS_MAX 20000

/* -- memory -- */

/* Those of 0 bytes: none. */
static void
region_units(struct siw_region *g, uint32_t size)
{
	for (unsigned i = 0; i < 8; i++) {
		rnic_unit_place(&g->units[i]);
		g->units[i].mem = g->mem + GUARD + size * i;
	}
	g->mr->deny_unit = size;
	g->mr->units = g->units;
}

static void
region_new(struct siw_region *g, struct rnic_pd *pd, unsigned access)
{
	g->mem = aligned_alloc(64, SIW_ARENA_REGION + 2 * GUARD);
	FUZZ_CHECK(g->mem != NULL);
	memset(g->mem, 0xa5, SIW_ARENA_REGION + 2 * GUARD);
	g->mr = NULL;
	(void)pd->dev->ops->mr_reg(pd, g->mem + GUARD, SIW_ARENA_REGION, access, &g->mr);
	if (g->mr != NULL && access != RNIC_ACCESS_LOCAL)
		region_units(g, SIW_ARENA_REGION / 8);
}

static void
region_free(struct siw_region *g)
{
	for (unsigned i = 0; i < 8; i++)
		rnic_unit_drop(&g->units[i]);
	for (unsigned i = 0; i < GUARD; i++)
		FUZZ_CHECK(g->mem[i] == 0xa5 && g->mem[GUARD + SIW_ARENA_REGION + i] == 0xa5);
	if (g->mr != NULL)
		g->mr->pd->dev->ops->mr_dereg(g->mr);
	free(g->mem);
}

/* -- queue pairs -- */

static void
link_free(struct siw_link *l)
{
	if (l->dev == NULL)
		return;
	l->dev->ops->qp_destroy(l->qp);
	region_free(&l->open);
	region_free(&l->own);
	l->dev->ops->pd_free(l->pd);
	l->dev = NULL;
}

static void
link_new(struct siw_link *l, struct rnic_dev *dev, uint64_t token, uint32_t sq, uint32_t rq)
{
	struct rnic_qp_attr attr = { .ctx = l, .sq_depth = sq, .rq_depth = rq, .token = token };

	*l = (struct siw_link){ .sq = sq, .rq = rq };
	if (dev->ops->pd_alloc(dev, &l->pd) < 0)
		return;
	if (dev->ops->qp_create(l->pd, &attr, &l->qp) < 0) {
		dev->ops->pd_free(l->pd);
		return;
	}
	l->dev = dev;
	region_new(&l->open, l->pd, RNIC_ACCESS_REMOTE_WRITE | RNIC_ACCESS_REMOTE_READ);
	region_new(&l->own, l->pd, RNIC_ACCESS_LOCAL);
}

static void
link_receive(struct siw_link *l, unsigned n)
{
	while (n-- > 0 && l->own.mr != NULL) {
		struct rnic_recv_wr wr = { .wr_id = l->recvs % RECVS,
			.mr = l->own.mr,
			.ptr = l->own.mr->buf + l->recvs % RECVS * 128,
			.len = 128 };

		if (l->dev->ops->post_recv(l->qp, &wr, 1) < 0)
			return;
		l->recvs++;
	}
}

static void
link_send(
    struct siw_link *l, unsigned flags, unsigned cnt, uint32_t len, enum rnic_wr_op op, uint32_t rkey, uint64_t raddr)
{
	struct rnic_send_wr wr = {
		.wr_id = l->posted, .op = op, .flags = flags, .sge_cnt = cnt, .rkey = rkey, .raddr = raddr
	};

	if (l->own.mr == NULL)
		return;
	for (unsigned i = 0; i < cnt; i++)
		wr.sge[i] = (struct rnic_sge){ .mr = l->own.mr, .ptr = l->own.mr->buf + 4096, .len = len / cnt };
	if (l->dev->ops->post_send(l->qp, &wr) == 0)
		l->posted++;
}

static struct rnic_remote
address_of(const struct siw_link *l)
{
	struct rnic_info info = rnic_query(l->dev);

	return (struct rnic_remote){
		.gid = info.gid, .qpn = l->qp->qpn, .psn = l->qp->psn, .mtu_code = 5, .mpa_port = info.mpa_port
	};
}

/* -- events and completions -- */

static void
completion(const struct rnic_wc *wc)
{
	struct siw_link *l = wc->qp->ctx;

	if (wc->op == RNIC_WC_RECV) {
		FUZZ_CHECK(++l->recvs_ended <= l->recvs && wc->len <= 128);
		l->got += wc->status == RNIC_WC_OK;
	} else {
		FUZZ_CHECK(++l->ended <= l->posted && wc->wr_id < l->posted);
	}
}

static bool
poll_device(struct siw_arena *a, struct rnic_dev *dev)
{
	struct rnic_wc wc[16];
	struct rnic_event ev;
	bool news = false;
	unsigned n;

	dev->ops->progress(dev, a->now_ns);
	while ((n = dev->ops->poll(dev, wc, 16)) > 0) {
		for (unsigned i = 0; i < n; i++)
			completion(&wc[i]);
		news = true;
	}
	while (dev->ops->poll_event(dev, &ev)) {
		struct siw_link *l = ev.ctx;

		news = true;
		if (l == NULL)
			continue;
		if (ev.type == RNIC_EV_CONNECTED)
			l->connected = true;
		if (ev.type == RNIC_EV_CONNECT_FAILED || ev.type == RNIC_EV_QP_ERROR) {
			if ((l == &a->witness[0] || l == &a->witness[1]) && !a->excused)
				fprintf(stderr, "the witness's link ends: %s\n", ev.why);
			FUZZ_CHECK(a->excused || (l != &a->witness[0] && l != &a->witness[1]));
			l->over = true;
		}
	}
	dev->ops->flush(dev);
	return news || dev->ops->deadline(dev) <= a->now_ns;
}

void
siw_arena_settle(struct siw_arena *a)
{
	bool more = true;

	for (unsigned turn = 0; more; turn++) {
		FUZZ_CHECK(turn < TURNS_MAX);
		more = poll_device(a, a->dev);
		oom_suspend(true);
		more = poll_device(a, a->honest) || more;
		more = a->rivals_turn(a) || more;
		oom_suspend(false);
		more = a->net_turn() || more; /* last: what was said in this turn is heard in the next */
	}
}

void
siw_arena_run(struct siw_arena *a, int64_t ns)
{
	int64_t end = a->now_ns + ns;

	siw_arena_settle(a);
	while (a->now_ns < end) {
		int64_t dev = a->dev->ops->deadline(a->dev), honest = a->honest->ops->deadline(a->honest);
		int64_t at = dev < honest ? dev : honest;

		a->now_ns = at > end ? end : at > a->now_ns ? at : a->now_ns + 1;
		siw_arena_settle(a);
	}
}

/* -- what means something elsewhere -- */

void
siw_arena_gather(const struct siw_arena *a, struct lore *l)
{
	for (unsigned i = 0; i < SIW_ARENA_LINKS + 2; i++) {
		const struct siw_link *k = i < SIW_ARENA_LINKS ? &a->link[i] : &a->witness[i - SIW_ARENA_LINKS];

		if (k->dev == NULL)
			continue;
		lore_num(l, k->qp->qpn, 4);
		lore_num(l, k->qp->psn, 4);
		for (unsigned m = 0; m < 2; m++) {
			const struct rnic_mr *mr = m == 0 ? k->open.mr : k->own.mr;

			if (mr == NULL)
				continue;
			lore_num(l, mr->rkey, 4);
			lore_num(l, mr->addr, 8);
			lore_num(l, mr->addr + mr->len, 8);
		}
	}
	lore_num(l, SIW_ARENA_TOKEN, 8);
}

/* -- steps -- */

static struct siw_link *
link_of(struct siw_arena *a, const struct step *s)
{
	struct siw_link *l = &a->link[s->who % SIW_ARENA_LINKS];

	return l->dev != NULL ? l : NULL;
}

void
siw_step_create(struct siw_arena *a, const struct step *s)
{
	static const uint32_t depths[] = { 16, 64, 1, 2, 8, 3 };
	struct siw_link *l = &a->link[s->who % SIW_ARENA_LINKS];

	if (l->dev != NULL)
		return;
	link_new(l, a->dev, SIW_ARENA_TOKEN + s->who % SIW_ARENA_LINKS, depths[s->a % 6], depths[s->b % 6]);
	if (l->dev != NULL)
		link_receive(l, s->c % 17);
}

void
siw_step_expect(struct siw_arena *a, const struct step *s)
{
	struct siw_link *l = link_of(a, s);

	if (l != NULL)
		(void)l->dev->ops->qp_expect(l->qp);
}

/* b: the peer that comes, or is looked for. */
void
siw_step_connect(struct siw_arena *a, const struct step *s)
{
	struct siw_link *l = link_of(a, s);
	struct rnic_remote to = {
		.qpn = 77, .psn = 7, .mtu_code = 5, .mpa_port = (uint16_t)(a->rival_port + s->c % a->rival_ports)
	};

	if (l == NULL)
		return;
	to.gid.b[10] = to.gid.b[11] = 0xff;
	if (s->b % 4 == 1)
		to.qpn = 78;
	if (s->b % 4 == 2)
		to.gid.b[10] = 0;
	if (s->b % 4 == 3 && a->link[s->c % SIW_ARENA_LINKS].dev != NULL)
		to = address_of(&a->link[s->c % SIW_ARENA_LINKS]);
	(void)l->dev->ops->qp_connect(l->qp, s->a % 2 == 0 ? RNIC_PASSIVE : RNIC_ACTIVE, &to);
}

static void
close_region(struct siw_region *g, unsigned unit, unsigned bit)
{
	static const uint32_t units[] = { 0, 1024, 4096, 8192 };

	if (g->mr == NULL)
		return;
	region_units(g, units[unit % 4]);
	g->mr->deny[0] ^= 1ULL << bit % 8;
}

void
siw_step_user(struct siw_arena *a, const struct step *s)
{
	static const uint32_t lens[] = { 0, 1, 44, 64, 65, 1024, 1025, 4096 };
	struct siw_link *l = link_of(a, s);
	struct rnic_credits room;

	if (l == NULL)
		return;
	switch (s->a % 8) {
	case 0:
		link_send(l, s->b % 8, 1 + s->b / 8 % RNIC_SGE_MAX, lens[s->c % 8], RNIC_WR_SEND, 0, 0);
		break;
	case 1:
		for (unsigned i = 0; i <= s->b / 64; i++)
			link_send(
			    l, s->b % 8, 1 + s->b / 8 % RNIC_SGE_MAX, lens[s->c % 8], RNIC_WR_WRITE, 0x77, 0x1000);
		break;
	case 2:
		link_receive(l, 1 + s->b % 16);
		break;
	case 3:
		l->dev->ops->fence(l->qp);
		break;
	case 4:
		l->dev->ops->qp_disconnect(l->qp, s->b % 2 == 1);
		break;
	case 5:
		link_free(l);
		break;
	case 6:
		close_region(&l->open, s->b, s->c);
		break;
	default:
		l->dev->ops->credits(l->qp, &room);
		if (s->b % 4 == 3 && l->open.mr != NULL) {
			l->dev->ops->mr_dereg(l->open.mr);
			l->open.mr = NULL;
		}
		break;
	}
}

void
siw_step_time(struct siw_arena *a, const struct step *s)
{
	static const int64_t ns[] = { 0, 1000, 1 * MS, 4 * MS, 6 * MS, 50 * MS, 101 * MS, 500 * MS, 999 * MS, 1001 * MS,
		1990 * MS, 2010 * MS, 5010 * MS };

	siw_arena_run(a, ns[s->a % 13]);
}

void
siw_step_port(struct siw_arena *a, const struct step *s)
{
	struct rnic_stat st[RNIC_STATS_MAX];

	siw_set_port_state(a->dev, s->a % 2 == 0 ? RNIC_PORT_DOWN : RNIC_PORT_UP);
	(void)a->dev->ops->stats(a->dev, st);
}

static void
witness_send(struct siw_arena *a)
{
	for (unsigned i = 0; i < 2; i++) {
		struct siw_link *l = &a->witness[i], *to = &a->witness[1 - i];

		if (l->over || !l->connected || to->open.mr == NULL)
			continue;
		link_send(l, RNIC_SIGNALED, 1, 1000, RNIC_WR_WRITE, to->open.mr->rkey, to->open.mr->addr);
		link_send(l, RNIC_SIGNALED, 1, 44, RNIC_WR_SEND, 0, 0);
	}
}

void
siw_step_witness(struct siw_arena *a, const struct step *s)
{
	(void)s;
	witness_send(a);
	link_receive(&a->witness[0], 2);
	link_receive(&a->witness[1], 2);
}

/* -- a whole run -- */

static struct rnic_dev *
open_device(struct siw_arena *a, const struct siw_config *cfg)
{
	struct siw_config c = *cfg;
	struct rnic_dev *dev;
	const char *err;

	(void)addr_parse("127.0.0.1", &c.addr);
	c.max_qp = SIW_ARENA_LINKS + 1;
	FUZZ_CHECK(siw_open(&c, &a->loop, &a->rng, &dev, &err) == 0);
	return dev;
}

void
siw_arena_begin(struct siw_arena *a, bool reversed)
{
	struct siw_link *active = &a->witness[reversed], *passive = &a->witness[!reversed];
	struct siw_config honest = a->cfg;

	honest.ird = honest.ord = 4;
	rng_init_seeded(&a->rng, 1);
	a->dev = open_device(a, &a->cfg);
	a->honest = open_device(a, &honest);
	/* They hear what time it is before they are asked for anything. */
	siw_arena_settle(a);
	link_new(&a->witness[0], a->dev, 1, 16, 16);
	link_new(&a->witness[1], a->honest, 1, 16, 16);
	link_receive(&a->witness[0], 8);
	link_receive(&a->witness[1], 8);
	struct rnic_remote from = address_of(active);
	struct rnic_remote to = address_of(passive);
	FUZZ_CHECK(passive->dev->ops->qp_expect(passive->qp) == 0);
	FUZZ_CHECK(passive->dev->ops->qp_connect(passive->qp, RNIC_PASSIVE, &from) == 0);
	FUZZ_CHECK(active->dev->ops->qp_connect(active->qp, RNIC_ACTIVE, &to) == 0);
	siw_arena_run(a, 10 * MS);
	FUZZ_CHECK(active->connected && passive->connected);
}

/* The honest link works, everything that was posted has ended, and all memory is back. */
static void
check_witness(struct siw_arena *a)
{
	uint64_t before[2] = { a->witness[0].got, a->witness[1].got };

	if (a->excused)
		return;
	link_receive(&a->witness[0], 2);
	link_receive(&a->witness[1], 2);
	siw_arena_run(a, 20 * MS);
	witness_send(a);
	siw_arena_run(a, 100 * MS);
	FUZZ_CHECK(a->witness[0].got > before[0] && a->witness[1].got > before[1]);
}

static void
check_ended(const struct siw_link *l)
{
	if (l->dev != NULL && l->over)
		FUZZ_CHECK(l->recvs_ended == l->recvs);
}

void
siw_arena_end(struct siw_arena *a)
{
	oom_disarm();
	check_witness(a);
	a->ended(a);
	siw_arena_run(a, 8000 * MS);
	check_witness(a);
	for (unsigned i = 0; i < SIW_ARENA_LINKS; i++) {
		check_ended(&a->link[i]);
		link_free(&a->link[i]);
	}
	link_free(&a->witness[0]);
	link_free(&a->witness[1]);
	FUZZ_CHECK(rnic_query(a->dev).qp_cnt == 0 && rnic_query(a->dev).mr_cnt == 0);
	rnic_end(a->dev);
	rnic_end(a->honest);
}
