/*
 * The soft iWARP device behind a real start-up, both roles: a program of steps (steps.h) says what its peers send
 * (mpa_rival.h), how it arrives, what its user does, and how time passes, over sockets in memory (sockets.h). A second,
 * honest device has a link to it and must not notice. The device may not crash, hang, leak, end a request twice or
 * never, or place a byte where its peer may not.
 */
#include <errno.h>
#include <string.h>

#include "base/list.h"
#include "fuzz.h"
#include "mpa_rival.h"
#include "siw_arena.h"
#include "sockets.h"
#include "tests/scenario/oom.h"

#define RIVALS 10
#define CROWD 140

struct run {
	struct siw_arena arena;
	struct mpa_rival rival[RIVALS];
	struct twists twists;
	struct steps steps;
	int crowd[CROWD];
	unsigned crowd_cnt;
};

static struct run *
run_of(struct siw_arena *a)
{
	return CONTAINER_OF(a, struct run, arena);
}

static void
gather(struct lore *l, void *ctx)
{
	const struct run *r = ctx;

	siw_arena_gather(&r->arena, l);
	for (unsigned i = 0; i < RIVALS; i++)
		for (unsigned q = 0; q < RDMAP_QN_CNT; q++)
			lore_num(l, r->rival[i].ddp.msn[q], 4);
}

/* -- steps -- */

static struct mpa_rival *
rival_of(struct run *r, const struct step *s)
{
	struct mpa_rival *p = &r->rival[s->who % RIVALS];

	return p->fd >= 0 ? p : NULL;
}

static void
meet(struct run *r, struct mpa_rival *p, unsigned link, int fd, bool active)
{
	if (fd < 0)
		return;
	memset(p, 0, offsetof(struct mpa_rival, in));
	p->in_len = 0;
	p->fd = fd;
	p->active = active;
	ddp_rival_meet(&p->ddp, &r->arena, link);
}

static void
do_dial(struct run *r, const struct step *s)
{
	struct mpa_rival *p = &r->rival[s->who % RIVALS];

	if (p->fd < 0)
		meet(r, p, s->a, sockets_dial(rnic_query(r->arena.dev).mpa_port), true);
}

static void
do_take(struct run *r, const struct step *s)
{
	struct mpa_rival *p = &r->rival[s->who % RIVALS];

	if (s->a % 8 == 7)
		sockets_refuse();
	else if (p->fd < 0)
		meet(r, p, s->b, sockets_take(), false);
}

static void
do_frame(struct run *r, const struct step *s)
{
	struct mpa_rival *p = rival_of(r, s);

	if (p != NULL && !p->said)
		mpa_rival_frame(p, s->a, s->b % 8 == 0 ? RTR_ANY : s->b % 8 << 1, &r->twists, gather, r);
}

static void
do_fpdu(struct run *r, const struct step *s)
{
	static const size_t lens[] = { 0, 1, 4, 44, 128, 129, 1000, 1500, 4096, 8192, 8193, 20000, 40000, 64000 };
	static const uint32_t offsets[] = { 0, 1, 44, 128, 4096, 8191, 8192, 0xffffffff };
	struct mpa_rival *p = rival_of(r, s);

	if (p != NULL && p->said)
		mpa_rival_fpdu(p, s->a % SEGMENT_KIND_CNT, s->b >> 3, lens[s->c % 14], offsets[s->c / 14 % 8],
		    &r->twists, gather, r);
}

static void
do_twist(struct run *r, const struct step *s)
{
	twist_add(&r->twists, (struct twist){ s->a, s->b, s->c });
}

static void
do_raw(struct run *r, const struct step *s)
{
	struct mpa_rival *p = rival_of(r, s);
	const uint8_t *bytes;
	size_t n = steps_raw(&r->steps, 1 + s->a % 16, &bytes);

	if (p != NULL)
		(void)sockets_send(p->fd, bytes, n);
}

/* Everything that the device has asked for is answered. */
static void
do_honest(struct run *r, const struct step *s)
{
	(void)s;
	for (unsigned i = 0; i < RIVALS; i++) {
		struct mpa_rival *p = &r->rival[i];

		while (p->fd >= 0 && p->started && p->ddp.read_cnt > 0)
			mpa_rival_fpdu(p, SEGMENT_ANSWER, 0, 64000, 0, &r->twists, gather, r);
	}
}

static void
do_pieces(struct run *r, const struct step *s)
{
	static const uint32_t lens[] = { 0, 1, 2, 3, 7, 20, 64, 500, 2047 };
	struct mpa_rival *p = rival_of(r, s);

	if (p == NULL)
		return;
	if (s->b % 2 == 0)
		sockets_pieces(p->fd, lens[s->a % 9]);
	else
		sockets_window(p->fd, s->a % 16 == 0 ? SOCKET_BUF : (uint32_t)s->a * 16);
}

static void
do_end(struct run *r, const struct step *s)
{
	struct mpa_rival *p = rival_of(r, s);

	if (p == NULL)
		return;
	if (s->a % 4 == 0)
		sockets_fin(p->fd);
	else if (s->a % 4 == 1)
		sockets_reset(p->fd);
	if (s->a % 4 >= 1) {
		sockets_close(p->fd);
		p->fd = -1;
	}
}

static void
do_fail(struct run *r, const struct step *s)
{
	static const int errs[] = { EINTR, EAGAIN, EMFILE, ENOBUFS, ECONNABORTED, ECONNRESET, ETIMEDOUT, EADDRNOTAVAIL,
		EHOSTUNREACH };

	r->arena.excused = true;
	if (s->a >= 0x80)
		oom_arm(1 + s->b % 16, 1 + s->c % 4);
	else
		sockets_fail(s->a & SOCKETS_FAIL_ALL, s->b % 8, errs[s->c % 9]);
}

/* Connections that are silent, or ask for an unknown link; those that stay wait for the end. */
static void
do_crowd(struct run *r, const struct step *s)
{
	struct mpa_rival p;

	for (unsigned i = 0; i < s->a; i++) {
		int fd = r->crowd_cnt < CROWD ? sockets_dial(rnic_query(r->arena.dev).mpa_port) : -1;

		if (fd < 0)
			return;
		memset(&p, 0, offsetof(struct mpa_rival, in));
		p.fd = fd;
		p.active = true;
		p.ddp.qpn = 0x123456;
		if (s->b % 4 != 0)
			mpa_rival_frame(&p, 0, RTR_ANY, &r->twists, gather, r);
		siw_arena_settle(&r->arena);
		if (s->b % 2 == 0)
			sockets_close(fd);
		else
			r->crowd[r->crowd_cnt++] = fd;
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
	{ .run = do_take },
	{ .run = do_frame },
	{ .run = do_fpdu },
	{ .run = do_honest },
	{ .run = do_twist },
	{ .arena = siw_step_user },
	{ .arena = siw_step_time },
	{ .run = do_pieces },
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

static bool
rivals_turn(struct siw_arena *a)
{
	struct run *r = run_of(a);
	bool more = false;

	for (unsigned i = 0; i < RIVALS; i++)
		more = mpa_rival_turn(&r->rival[i]) || more;
	return more;
}

static void
rivals_end(struct siw_arena *a)
{
	struct run *r = run_of(a);

	for (unsigned i = 0; i < RIVALS; i++)
		if (r->rival[i].fd >= 0)
			sockets_close(r->rival[i].fd);
	for (unsigned i = 0; i < RIVALS; i++)
		r->rival[i].fd = -1;
	for (; r->crowd_cnt > 0; r->crowd_cnt--)
		sockets_close(r->crowd[r->crowd_cnt - 1]);
}

static void
arena_init(struct siw_arena *a, unsigned opts)
{
	struct siw_config *c = &a->cfg;

	siw_config_init(c);
	c->crc = (opts & 1) == 0;
	c->markers = (opts & 2) != 0;
	c->mpa_rev = (opts & 4) != 0 ? 1 : 2;
	c->rtr = (opts >> 3 & 7u) != 0 ? (opts >> 3 & 7u) << 1 : RTR_ANY;
	c->ird = (opts & 64) != 0 ? 1 : 4;
	c->ord = (opts & 64) != 0 ? 1 : 4;
	c->fpdu_max = (opts & 128) != 0 ? 0 : 16384;
	a->loop = sockets_loop();
	a->net_turn = sockets_turn;
	a->rivals_turn = rivals_turn;
	a->ended = rivals_end;
	a->rival_port = 9;
	a->rival_ports = 1;
}

unsigned
fuzz_mutations(void)
{
	return 1500;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct run r; /* large: what the rivals receive */
	uint8_t header[STEPS_HEADER];
	struct steps steps;
	struct step s;

	if (!steps_begin(&steps, data, len, header))
		return 0;
	memset(&r.arena, 0, sizeof(r.arena));
	memset(&r.twists, 0, sizeof(r) - offsetof(struct run, twists));
	r.steps = steps;
	for (unsigned i = 0; i < RIVALS; i++) {
		memset(&r.rival[i], 0, offsetof(struct mpa_rival, in));
		r.rival[i].fd = -1;
	}
	sockets_init();
	arena_init(&r.arena, header[0]);
	siw_arena_begin(&r.arena, (header[1] & 1) != 0);
	while (steps_next(&r.steps, &s))
		run_step(&r, &s);
	sockets_fail(0, 0, 0);
	siw_arena_end(&r.arena);
	sockets_fini();
	return 0;
}
