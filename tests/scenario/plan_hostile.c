/* Drawing a hostile run: short timers, small elements and rings, few bytes, so that a run takes a millisecond or two
 * and whatever can happen happens soon. */
#include <string.h>

#include "tests/scenario/dice.h"
#include "tests/scenario/flow.h"
#include "tests/scenario/liar_v2.h"
#include "tests/scenario/plan.h"
#include "wire/clc.h"
#include "wire/llc.h"
#include "wire/open.h"
#include "tests/seeded_rng.h"

/* As scale() of dice.h, but the seeds of hostile runs mean what it draws. */
static uint32_t
hostile_scale(struct rng *r, uint32_t from, uint32_t to)
{
	uint32_t bits = 0;

	while ((to - from) >> bits > 0)
		bits++;
	uint32_t n = rng_below(r, 1u << rng_below(r, bits + 1));
	return from + (n > to - from ? to - from : n);
}

static void
draw_hosts(struct plan *p, struct rng *r)
{
	p->hosts = 3;
	p->two_way = 1;
	p->iwarp = chance(r, 50);
	p->devs0 = chance(r, 60) ? 2 : 1;
	p->devs1 = chance(r, 60) ? 2 : 1;
	p->devs2 = chance(r, 70) ? 2 : even(r, 1, 3);
	p->devs3 = 1;
	p->no_deny = chance(r, 30);
	p->rdma_delay_us = hostile_scale(r, 1, 200);
	p->rdma_spread_us = hostile_scale(r, 0, 200);
	p->ack_us = hostile_scale(r, 0, 200);
	p->confirm_ms = p->iwarp ? hostile_scale(r, 0, 5) : 0;
	p->retry_ms = even(r, 20, 60);
	p->connect_ms = 50;
	p->room_kb = chance(r, 20) ? 4 : 1024;
	p->tear_percent = chance(r, 30) ? even(r, 1, 100) : 0;
	p->tcp_delay_us = hostile_scale(r, 1, 300);
	p->tcp_spread_us = hostile_scale(r, 0, 500);
	p->tcp_window_kb = 4;
	p->tcp_segment = chance(r, 20) ? hostile_scale(r, 1, 100) : 4000;
	p->rst_discards = chance(r, 70);
	p->jitter_us = hostile_scale(r, 0, 100);
	p->read_budget_kb = 16;
}

static void
draw_engines(struct plan *p, struct rng *r)
{
	p->conns_max = PLAN_FLOWS_MAX;
	p->conns_per_group = chance(r, 20) ? even(r, 1, 4) : 255;
	p->rmb_elems = hostile_scale(r, 1, 8);
	p->sndbuf_kb = 1u << even(r, 2, 4);
	p->sq_depth = hostile_scale(r, 8, 64);
	p->rq_depth = hostile_scale(r, 8, 64);
	p->rfc_cursors = chance(r, 20) ? even(r, 0, 7) : 0;
	p->links_max = chance(r, 15) ? 1 : chance(r, 80) ? 2 : 3;
	p->clc_ms = even(r, 200, 400);
	p->llc_ms = even(r, 60, 120);
	p->confirm_link_ms = even(r, 100, 200);
	p->add_link_ms = even(r, 30, 100);
	p->add_link_retry_ms = hostile_scale(r, 10, 200);
	p->add_link_retry_max_ms = 400;
	p->keepalive_ms = even(r, 100, 300);
	p->keepalive_answer_ms = even(r, 60, 120);
	p->last_link_ms = p->keepalive_answer_ms % 3 * 100;
	p->opens = p->keepalive_answer_ms % 7 / 2 * 33 + 1;
	p->levels = p->keepalive_answer_ms % 7 == 6;
	p->group_idle_ms = hostile_scale(r, 1, 600);
	p->rmb_idle_ms = hostile_scale(r, 1, 300);
	p->close_ms = even(r, 1000, 2000);
	p->abort_ms = even(r, 200, 400);
	p->fin_grace_ms = even(r, 100, 200);
	p->holdoff_ms = hostile_scale(r, 1, 50);
	p->holdoff_max_ms = p->holdoff_ms * 8;
}

static void
draw_flows(struct plan *p, struct rng *r)
{
	p->flows = even(r, 2, 12);
	p->spread_ms = hostile_scale(r, 0, 200);
	p->burst_per_mille = chance(r, 40) ? even(r, 0, 1000) : 0;
	p->wave_ms = chance(r, 30) ? hostile_scale(r, 1, 500) : 0;
	p->prewarm = chance(r, 10);
	p->kinds = 63 & ~(1u << FLOW_IDLE);
	p->bytes_max = chance(r, 75) ? hostile_scale(r, 0, 4000) : hostile_scale(r, 0, 60000);
	p->chunk_max = hostile_scale(r, 100, 20000);
	p->pause_us = chance(r, 50) ? hostile_scale(r, 0, 20000) : 0;
	p->slow_per_mille = chance(r, 20) ? 300 : 0;
	p->slow_us = 2000;
	p->urgent_per_mille = chance(r, 15) ? 100 : 0;
	p->liars_share = 500;
	p->quarantine_max = hostile_scale(r, 1, 16);
	p->groups_per_addr = even(r, 4, 16);
	p->drain = 1;
	p->limit_ms = 120000;
}

/* Something that is done always, over more connections than usual. */
static void
draw_habit(struct plan *p, struct rng *r)
{
	static const uint8_t kinds[] = { LIAR_HABIT_CLC(CLC_PROPOSAL), LIAR_HABIT_CLC(CLC_ACCEPT),
		LIAR_HABIT_CLC(CLC_CONFIRM), LIAR_HABIT_CLC(CLC_CONFIRM), LIAR_HABIT_CLC(CLC_DECLINE), LIAR_HABIT_CDC,
		LIAR_HABIT_CDC, LIAR_HABIT_LLC(LLC_CONFIRM_LINK), LIAR_HABIT_LLC(LLC_ADD_LINK),
		LIAR_HABIT_LLC(LLC_ADD_LINK_CONT), LIAR_HABIT_LLC(LLC_DELETE_LINK), LIAR_HABIT_LLC(LLC_CONFIRM_RKEY),
		LIAR_HABIT_LLC(LLC_DELETE_RKEY), LIAR_HABIT_LLC(LLC_TEST_LINK), LIAR_HABIT_LLC(OPEN_GRANT),
		LIAR_HABIT_LLC(OPEN_CONN) };

	if (!chance(r, 25))
		return;
	p->habit = kinds[rng_below(r, sizeof(kinds))];
	p->habit_lie = rng_below(r, LIE_CNT);
	p->habit_field = chance(r, 70) ? even(r, 1, 20) : 0;
	p->habit_per_mille = chance(r, 50) ? 1000 : even(r, 100, 900);
	if (!chance(r, 30))
		return;
	p->flows = even(r, 20, 80);
	p->bytes_max = hostile_scale(r, 0, 500);
	p->lies_max = 0;
	p->liars_share = 900;
}

/* Many strangers instead of one; little room for anybody, so that honest hosts may have to do without RDMA. */
static void
draw_crowd(struct plan *p, struct rng *r)
{
	p->pose_per_mille = chance(r, 15) ? even(r, 50, 500) : 0;
	if (!chance(r, 10))
		return;
	p->liar_ids = 1;
	p->flows = even(r, 20, 80);
	p->liars_share = 900;
	p->bytes_max = hostile_scale(r, 0, 500);
	p->lie_per_mille = hostile_scale(r, 1, 100);
	p->group_idle_ms = even(r, 300, 600);
	if (chance(r, 40)) {
		p->max_qp = hostile_scale(r, 8, 24);
		p->groups_per_addr = 100;
	}
	p->rmb_kb = chance(r, 30) ? hostile_scale(r, 64, 1024) : 0;
}

/* Drawn from numbers of its own, for any run: version 1 does not look at it. */
static void
draw_v2(struct plan *p, uint64_t seed)
{
	struct rng r;

	rng_init_seeded(&r, plan_mix(seed ^ 0x76657232));
	p->habit_v2 = p->habit != 0 && chance(&r, 50) ? even(&r, LIE_V2_LIST, LIE_V2_TURN) : 0;
	p->liar_order = chance(&r, 60) ? LIAR_ORDER_ENGINES : chance(&r, 70) ? LIAR_LITTLE : LIAR_EITHER;
}

void
plan_draw_hostile(struct plan *p, uint64_t seed)
{
	struct rng r;

	*p = (struct plan){ .seed = seed, .hostile = 1 };
	rng_init_seeded(&r, plan_mix(seed ^ 0x686f7374));
	draw_hosts(p, &r);
	draw_engines(p, &r);
	draw_flows(p, &r);
	/* Most runs: one lie, or a few, somewhere; others: hardly a true word. */
	p->lies_from = chance(&r, 30) ? 0 : hostile_scale(&r, 0, 200);
	p->lies_max = chance(&r, 70) ? hostile_scale(&r, 1, 8) : 1000;
	p->lie_per_mille = chance(&r, 40) ? 1000 : hostile_scale(&r, 10, 500);
	p->mishear_per_mille = chance(&r, 50) ? hostile_scale(&r, 5, 300) : 0;
	p->act_us = chance(&r, 60) ? hostile_scale(&r, 200, 50000) : 0;
	p->talk_ms = hostile_scale(&r, 20, 1500);
	p->silent_ms = chance(&r, 30) ? hostile_scale(&r, 10, 1000) : 0;
	draw_habit(p, &r);
	p->liar_id = chance(&r, 10) ? even(&r, 1, 2) : 0;
	draw_crowd(p, &r);
	/* The first device of each host is in no VLAN, so that everybody reaches everybody. */
	p->far_middle = chance(&r, 15);
	p->vlans = chance(&r, 15) ? rng_below(&r, 4096) & ~0111u : 0;
	p->end_ms = chance(&r, 25) ? hostile_scale(&r, 1, 4000) : 0;
	draw_v2(p, seed);
	p->early_percent = chance(&r, 20) ? even(&r, 1, 100) : 0;
	p->sctp = chance(&r, 25) ? chance(&r, 60) ? 4095 : rng_below(&r, 4096) : 0;
	p->sctp_udp = p->sctp != 0 && chance(&r, 30) ? 15 : 0;
	p->no_sctp = p->sctp != 0 && chance(&r, 15) ? rng_below(&r, 8) : 0;
	p->unplaced_percent = chance(&r, 50) ? even(&r, 1, 100) : 0;
	p->secure = plan_draw_secure(p, seed);
}
