/*
 * The soft iWARP device over SCTP, by libusrsctp, behind a real start-up, both roles: a program of steps (steps.h) says what its
 * peers send (sctp_rival.h), what its user does, and how time passes, over datagrams in memory (datagrams.h). What holds:
 * siw_arena.h.
 *
 * The library has one stack for the process, which outlives a program: time goes on from one to the next, with a pause in
 * which the stack forgets.
 */
#include <errno.h>
#include <string.h>
#include <sys/time.h>

#include "base/list.h"
#include "datagrams.h"
#include "fuzz.h"
#include "sctp_rival.h"
#include "siw_arena.h"
#include "tests/scenario/oom.h"

#define RIVALS 8
#define CROWD 140
#define PORT 30000            /* of the first rival, and so on */
#define PAUSE_NS (70000 * MS) /* longer than tags of associations are remembered */

struct run {
	struct siw_arena arena;
	struct sctp_rival rival[RIVALS + CROWD];
	unsigned crowd_cnt;
	struct twists twists;
	struct steps steps;
};

static struct run world;

/* The library's clock (lib/rnic/siw/sctp/siw_sctp_clock.c). */
int
gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	int64_t us = world.arena.now_ns / 1000;

	(void)zone;
	*tv = (struct timeval){ .tv_sec = us / 1000000, .tv_usec = us % 1000000 };
	return 0;
}

static void
gather(struct lore *l, void *ctx)
{
	const struct run *r = ctx;

	siw_arena_gather(&r->arena, l);
	for (unsigned i = 0; i < RIVALS; i++) {
		const struct sctp_rival *p = &r->rival[i];

		lore_num(l, p->ssn, 2);
		lore_num(l, p->tag, 4);
		for (unsigned q = 0; q < RDMAP_QN_CNT; q++)
			lore_num(l, p->ddp.msn[q], 4);
	}
}

/* -- steps -- */

static struct sctp_rival *
rival_of(struct run *r, const struct step *s)
{
	return &r->rival[s->who % RIVALS];
}

static struct sctp_rival_way
way(struct run *r, unsigned number, unsigned how)
{
	/* Most are in order. */
	return (struct sctp_rival_way){ .number = number < NUMBER_CNT ? number : NUMBER_NEXT,
		.how = how,
		.tw = &r->twists,
		.gather = gather,
		.ctx = r };
}

static void
do_dial(struct run *r, const struct step *s)
{
	struct sctp_rival *p = rival_of(r, s);

	sctp_rival_meet(p, &r->arena, s->a, (uint16_t)(PORT + s->who % RIVALS), s->b);
	sctp_rival_dial(p, rnic_query(r->arena.dev).mpa_port);
}

/* Waits to be dialled. */
static void
do_serve(struct run *r, const struct step *s)
{
	sctp_rival_meet(rival_of(r, s), &r->arena, s->a, (uint16_t)(PORT + s->who % RIVALS), s->b);
}

static void
do_control(struct run *r, const struct step *s)
{
	const struct sctp_rival_way w = way(r, s->b % 8, (s->b >> 3) << 1);

	sctp_rival_control(rival_of(r, s), s->a % SCTP_DDP_FUNCTION_CNT, s->c, &w);
}

static void
do_segment(struct run *r, const struct step *s)
{
	static const size_t lens[] = { 0, 1, 4, 44, 128, 129, 1000, 1400, 1424, 1425, 4096, 8192, 9000, 64000 };
	static const uint32_t offsets[] = { 0, 1, 44, 128, 4096, 8191, 8192, 0xffffffff };
	const struct sctp_rival_way w = way(r, s->b % 8, (s->b >> 3) | (s->a & 0x20u) | (s->a & 0x40u));

	sctp_rival_segment(rival_of(r, s), s->a % SEGMENT_KIND_CNT, lens[s->c % 14], offsets[s->c / 14 % 8], &w);
}

static void
do_twist(struct run *r, const struct step *s)
{
	twist_add(&r->twists, (struct twist){ s->a, s->b, s->c });
}

static void
do_raw(struct run *r, const struct step *s)
{
	const uint8_t *bytes;
	size_t n = steps_raw(&r->steps, 1 + s->a % 16, &bytes);

	sctp_rival_raw(rival_of(r, s), s->b % 2 == 0, (s->b & 0xfeu), bytes, n);
}

/* Of SCTP itself. */
static void
do_chunk(struct run *r, const struct step *s)
{
	struct sctp_rival *p = rival_of(r, s);
	const uint8_t *bytes;
	size_t n = steps_raw(&r->steps, s->c % 8, &bytes);

	if (p->state >= SCTP_RIVAL_STARTS)
		sctp_rival_chunk(p, s->a, s->b, bytes, n, s->c >> 5 == 7, s->c >> 5 == 6);
}

static void
do_honest(struct run *r, const struct step *s)
{
	const struct sctp_rival_way w = way(r, 0, 0);

	(void)s;
	for (unsigned i = 0; i < RIVALS; i++)
		sctp_rival_answer(&r->rival[i], &w);
}

/* a: ABORT, SHUTDOWN, an INIT in the middle, or it says no more. */
static void
do_end(struct run *r, const struct step *s)
{
	struct sctp_rival *p = rival_of(r, s);
	uint8_t cum[4];

	if (p->state < SCTP_RIVAL_STARTS)
		return;
	switch (s->a % 5) {
	case 0:
		sctp_rival_chunk(p, 6, 0, NULL, 0, 0, 0);
		break;
	case 1:
		be32_put(cum, p->first + p->heard - 1);
		sctp_rival_chunk(p, 7, 0, cum, sizeof(cum), 0, 0);
		break;
	case 2:
		p->setup = s->b;
		sctp_rival_dial(p, p->peer);
		break;
	case 3:
		sctp_rival_forget(p);
		break;
	default:
		p->deaf = !p->deaf;
		break;
	}
}

static void
do_fail(struct run *r, const struct step *s)
{
	static const int errs[] = { EAGAIN, EMFILE, ENOBUFS, EMSGSIZE, ECONNREFUSED, EHOSTUNREACH, EPERM };

	r->arena.excused = true;
	if (s->a >= 0x80)
		oom_arm(1 + s->b % 16, 1 + s->c % 4);
	else if (s->a >= 0x40)
		datagrams_fail_socket(s->b % 8, errs[s->c % 7]);
	else
		datagrams_fail_send(s->b % 8, errs[s->c % 7]);
}

/* Associations that are silent, or ask for an unknown link; they stay. */
static void
do_crowd(struct run *r, const struct step *s)
{
	const struct sctp_rival_way w = way(r, 0, 0);

	for (unsigned i = 0; i < s->a && r->crowd_cnt < CROWD; i++) {
		unsigned nr = RIVALS + r->crowd_cnt++;
		struct sctp_rival *p = &r->rival[nr];

		sctp_rival_meet(p, &r->arena, 0, (uint16_t)(PORT + nr), s->c & SETUP_STOPS);
		sctp_rival_dial(p, rnic_query(r->arena.dev).mpa_port);
		siw_arena_settle(&r->arena);
		if (s->b % 2 == 0)
			sctp_rival_control(p, SCTP_DDP_INITIATE, CONTROL_STRANGER, &w);
		if (s->b % 4 >= 2)
			sctp_rival_forget(p);
	}
}

/* Of one kind or the other. */
static const struct {
	void (*run)(struct run *, const struct step *);
	void (*arena)(struct siw_arena *, const struct step *);
} ops[] = {
	{ .arena = siw_step_create },
	{ .arena = siw_step_expect },
	{ .arena = siw_step_connect },
	{ .run = do_dial },
	{ .run = do_serve },
	{ .run = do_control },
	{ .run = do_segment },
	{ .run = do_honest },
	{ .run = do_twist },
	{ .arena = siw_step_user },
	{ .arena = siw_step_time },
	{ .run = do_chunk },
	{ .run = do_end },
	{ .run = do_raw },
	{ .run = do_fail },
	{ .arena = siw_step_witness },
	{ .arena = siw_step_port },
	{ .run = do_crowd },
};

static void
run_step(struct run *r, const struct step *s)
{
	unsigned op = s->op % (sizeof(ops) / sizeof(ops[0]));

	if (ops[op].run != NULL)
		ops[op].run(r, s);
	else
		ops[op].arena(&r->arena, s);
	if ((s->who & 0x40) == 0)
		siw_arena_run(&r->arena, MS / 100);
}

/* -- a whole run -- */

static void
to_rival(void *ctx, uint16_t from, uint16_t to, const uint8_t *bytes, size_t len)
{
	struct run *r = ctx;

	if (to >= PORT && to < PORT + RIVALS + CROWD && r->rival[to - PORT].port == to)
		sctp_rival_packet_in(&r->rival[to - PORT], from, bytes, len);
}

/* They have been called with what was for them. */
static bool
rivals_turn(struct siw_arena *a)
{
	(void)a;
	return false;
}

static void
rivals_end(struct siw_arena *a)
{
	struct run *r = CONTAINER_OF(a, struct run, arena);

	for (unsigned i = 0; i < RIVALS + CROWD; i++)
		sctp_rival_forget(&r->rival[i]);
}

static void
arena_init(struct siw_arena *a, unsigned opts)
{
	struct siw_config *c = &a->cfg;

	siw_config_init(c);
	c->transport = SIW_SCTP;
	c->sctp_stack = SIW_STACK_USER;
	c->sctp_profile = (opts & 1) != 0 ? SCTP_DDP_DRAFT00 : SCTP_DDP_RFC5043;
	c->mpa_rev = (opts & 2) != 0 ? 1 : 2;
	c->ird = (opts & 4) != 0 ? 1 : 4;
	c->ord = (opts & 4) != 0 ? 1 : 4;
	c->rtr = (opts >> 3 & 7u) != 0 ? (opts >> 3 & 7u) << 1 : RTR_ANY;
	c->fpdu_max = (opts & 64) != 0 ? 512 : 0;
	a->loop = datagrams_loop();
	a->net_turn = datagrams_turn;
	a->rivals_turn = rivals_turn;
	a->ended = rivals_end;
	a->rival_port = PORT;
	a->rival_ports = RIVALS;
}

unsigned
fuzz_mutations(void)
{
	return 500;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct run *r = &world;
	int64_t now_ns = r->arena.now_ns;
	uint8_t header[STEPS_HEADER];
	struct steps steps;
	struct step s;

	if (!steps_begin(&steps, data, len, header))
		return 0;
	memset(r, 0, sizeof(*r));
	r->arena.now_ns = now_ns + PAUSE_NS;
	r->steps = steps;
	datagrams_init(to_rival, r);
	arena_init(&r->arena, header[0]);
	siw_arena_begin(&r->arena, (header[1] & 1) != 0);
	while (steps_next(&r->steps, &s))
		run_step(r, &s);
	datagrams_fail_socket(0, 0);
	datagrams_fail_send(0, 0);
	siw_arena_end(&r->arena);
	datagrams_fini();
	return 0;
}
