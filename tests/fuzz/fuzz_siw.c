/*
 * The soft iWARP device behind a real start-up, both roles: a program of steps (steps.h) says what its peers send
 * (mpa_rival.h), how it arrives, what its user does, and how time passes, over sockets in memory (sockets.h). A second,
 * honest device has a link to it and must not notice. The device may not crash, hang, leak, end a request twice or
 * never, or place a byte where its peer may not.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "base/addr.h"
#include "fuzz.h"
#include "mpa_rival.h"
#include "rnic/siw/siw.h"
#include "sockets.h"
#include "steps.h"
#include "tests/rnic_end.h"
#include "tests/scenario/oom.h"

#define MS 1000000LL
#define QPS 6
#define RIVALS 10
#define REGION 8192
#define GUARD 256
#define RECVS 32
#define CROWD 140
#define TURNS_MAX 20000
#define TOKEN 0x1122334455667700

struct region {
	uint8_t *mem; /* REGION bytes between two guards */
	struct rnic_mr *mr;
};

/* One queue pair, with a protection domain, a region for its peer and one for its receives. */
struct link {
	struct rnic_dev *dev; /* NULL: free */
	struct rnic_pd *pd;
	struct rnic_qp *qp;
	struct region open, own;
	bool connected, over;
	uint32_t sq, rq;
	uint64_t posted, ended; /* sends, signaled or not: what a failure ends is counted, too */
	uint64_t recvs, recvs_ended;
	uint64_t got;
};

struct run {
	struct rng rng;
	struct rnic_dev *dev, *honest;
	struct link link[QPS], witness[2]; /* [0] of the device, [1] of the honest one */
	struct mpa_rival rival[RIVALS];
	struct twists twists;
	struct steps steps;
	int64_t now_ns;
	bool excused;
	int crowd[CROWD];
	unsigned crowd_cnt;
};

/* -- memory -- */

static void
region_new(struct region *g, struct rnic_pd *pd, unsigned access)
{
	g->mem = aligned_alloc(64, REGION + 2 * GUARD);
	FUZZ_CHECK(g->mem != NULL);
	memset(g->mem, 0xa5, REGION + 2 * GUARD);
	g->mr = NULL;
	(void)pd->dev->ops->mr_reg(pd, g->mem + GUARD, REGION, access, &g->mr);
}

static void
region_free(struct region *g)
{
	for (unsigned i = 0; i < GUARD; i++)
		FUZZ_CHECK(g->mem[i] == 0xa5 && g->mem[GUARD + REGION + i] == 0xa5);
	if (g->mr != NULL)
		g->mr->pd->dev->ops->mr_dereg(g->mr);
	free(g->mem);
}

/* -- queue pairs -- */

static void
link_free(struct link *l)
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
link_new(struct link *l, struct rnic_dev *dev, uint64_t token, uint32_t sq, uint32_t rq)
{
	struct rnic_qp_attr attr = { .ctx = l, .sq_depth = sq, .rq_depth = rq, .token = token };

	*l = (struct link){ .sq = sq, .rq = rq };
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
link_receive(struct link *l, unsigned n)
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
link_send(struct link *l, unsigned flags, unsigned cnt, uint32_t len, enum rnic_wr_op op, uint32_t rkey, uint64_t raddr)
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
address_of(const struct link *l)
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
	struct link *l = wc->qp->ctx;

	if (wc->op == RNIC_WC_RECV) {
		FUZZ_CHECK(++l->recvs_ended <= l->recvs && wc->len <= 128);
		l->got += wc->status == RNIC_WC_OK;
	} else {
		FUZZ_CHECK(++l->ended <= l->posted && wc->wr_id < l->posted);
	}
}

static bool
poll_device(struct run *r, struct rnic_dev *dev)
{
	struct rnic_wc wc[16];
	struct rnic_event ev;
	bool news = false;
	unsigned n;

	dev->ops->progress(dev, r->now_ns);
	while ((n = dev->ops->poll(dev, wc, 16)) > 0) {
		for (unsigned i = 0; i < n; i++)
			completion(&wc[i]);
		news = true;
	}
	while (dev->ops->poll_event(dev, &ev)) {
		struct link *l = ev.ctx;

		news = true;
		if (l == NULL)
			continue;
		if (ev.type == RNIC_EV_CONNECTED)
			l->connected = true;
		if (ev.type == RNIC_EV_CONNECT_FAILED || ev.type == RNIC_EV_QP_ERROR) {
			if ((l == &r->witness[0] || l == &r->witness[1]) && !r->excused)
				fprintf(stderr, "the witness's link ends: %s\n", ev.why);
			FUZZ_CHECK(r->excused || (l != &r->witness[0] && l != &r->witness[1]));
			l->over = true;
		}
	}
	dev->ops->flush(dev);
	return news || dev->ops->deadline(dev) <= r->now_ns;
}

static void
settle(struct run *r)
{
	bool more = true;

	for (unsigned turn = 0; more; turn++) {
		FUZZ_CHECK(turn < TURNS_MAX);
		more = poll_device(r, r->dev);
		oom_suspend(true);
		more = poll_device(r, r->honest) || more;
		for (unsigned i = 0; i < RIVALS; i++)
			more = mpa_rival_turn(&r->rival[i]) || more;
		oom_suspend(false);
		more = sockets_turn() || more; /* last: what was said in this turn is heard in the next */
	}
}

static void
run_for(struct run *r, int64_t ns)
{
	int64_t end = r->now_ns + ns;

	settle(r);
	while (r->now_ns < end) {
		int64_t a = r->dev->ops->deadline(r->dev), b = r->honest->ops->deadline(r->honest), at = a < b ? a : b;

		r->now_ns = at > end ? end : at > r->now_ns ? at : r->now_ns + 1;
		settle(r);
	}
}

/* -- what means something elsewhere -- */

static void
gather(struct lore *l, void *ctx)
{
	const struct run *r = ctx;

	for (unsigned i = 0; i < QPS + 2; i++) {
		const struct link *k = i < QPS ? &r->link[i] : &r->witness[i - QPS];

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
	for (unsigned i = 0; i < RIVALS; i++)
		for (unsigned q = 0; q < RDMAP_QN_CNT; q++)
			lore_num(l, r->rival[i].msn[q], 4);
	lore_num(l, TOKEN, 8);
}

/* -- steps -- */

static struct link *
link_of(struct run *r, const struct step *s)
{
	struct link *l = &r->link[s->who % QPS];

	return l->dev != NULL ? l : NULL;
}

static struct mpa_rival *
rival_of(struct run *r, const struct step *s)
{
	struct mpa_rival *p = &r->rival[s->who % RIVALS];

	return p->fd >= 0 ? p : NULL;
}

static void
do_create(struct run *r, const struct step *s)
{
	static const uint32_t depths[] = { 16, 64, 1, 2, 8, 3 };
	struct link *l = &r->link[s->who % QPS];

	if (l->dev != NULL)
		return;
	link_new(l, r->dev, TOKEN + s->who % QPS, depths[s->a % 6], depths[s->b % 6]);
	if (l->dev != NULL)
		link_receive(l, s->c % 17);
}

/* The rival's end of a connection knows what CLC would have told it. */
static void
meet(struct run *r, struct mpa_rival *p, unsigned slot, int fd, bool active)
{
	const struct link *l = &r->link[slot % QPS];

	if (fd < 0)
		return;
	memset(p, 0, offsetof(struct mpa_rival, in));
	p->in_len = 0;
	p->fd = fd;
	p->active = active;
	p->token = TOKEN + slot % QPS;
	if (l->dev == NULL)
		return;
	p->qpn = l->qp->qpn;
	p->psn = l->qp->psn;
	if (l->open.mr == NULL)
		return;
	p->stag = l->open.mr->rkey;
	p->base = l->open.mr->addr;
	p->region_len = l->open.mr->len;
}

static void
do_dial(struct run *r, const struct step *s)
{
	struct mpa_rival *p = &r->rival[s->who % RIVALS];

	if (p->fd < 0)
		meet(r, p, s->a, sockets_dial(rnic_query(r->dev).mpa_port), true);
}

static void
do_expect(struct run *r, const struct step *s)
{
	struct link *l = link_of(r, s);

	if (l != NULL)
		(void)l->dev->ops->qp_expect(l->qp);
}

/* b: who is to come, or to be found. */
static void
do_connect(struct run *r, const struct step *s)
{
	struct link *l = link_of(r, s);
	struct rnic_remote to = { .qpn = 77, .psn = 7, .mtu_code = 5, .mpa_port = 9 };

	if (l == NULL)
		return;
	to.gid.b[10] = to.gid.b[11] = 0xff;
	if (s->b % 4 == 1)
		to.qpn = 78;
	if (s->b % 4 == 2)
		to.gid.b[10] = 0;
	if (s->b % 4 == 3 && r->link[s->c % QPS].dev != NULL)
		to = address_of(&r->link[s->c % QPS]);
	(void)l->dev->ops->qp_connect(l->qp, s->a % 2 == 0 ? RNIC_PASSIVE : RNIC_ACTIVE, &to);
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
		mpa_rival_fpdu(
		    p, s->a % FPDU_KIND_CNT, s->b >> 3, lens[s->c % 14], offsets[s->c / 14 % 8], &r->twists, gather, r);
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

		while (p->fd >= 0 && p->started && p->read_cnt > 0)
			mpa_rival_fpdu(p, FPDU_KIND_ANSWER, 0, 64000, 0, &r->twists, gather, r);
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
close_region(struct rnic_mr *mr, unsigned unit, unsigned bit)
{
	static const uint32_t units[] = { 0, 1024, 4096, 8192 };

	if (mr == NULL)
		return;
	mr->deny_unit = units[unit % 4];
	mr->deny[0] ^= 1ULL << bit % 8;
}

static void
do_user(struct run *r, const struct step *s)
{
	static const uint32_t lens[] = { 0, 1, 44, 64, 65, 1024, 1025, 4096 };
	struct link *l = link_of(r, s);
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
		close_region(l->open.mr, s->b, s->c);
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

static void
do_time(struct run *r, const struct step *s)
{
	static const int64_t ns[] = { 0, 1000, 1 * MS, 4 * MS, 6 * MS, 50 * MS, 101 * MS, 500 * MS, 999 * MS, 1001 * MS,
		1990 * MS, 2010 * MS, 5010 * MS };

	run_for(r, ns[s->a % 13]);
}

static void
do_fail(struct run *r, const struct step *s)
{
	static const int errs[] = { EINTR, EAGAIN, EMFILE, ENOBUFS, ECONNABORTED, ECONNRESET, ETIMEDOUT, EADDRNOTAVAIL,
		EHOSTUNREACH };

	r->excused = true;
	if (s->a >= 0x80)
		oom_arm(1 + s->b % 16, 1 + s->c % 4);
	else
		sockets_fail(s->a & SOCKETS_FAIL_ALL, s->b % 8, errs[s->c % 9]);
}

static void
do_port(struct run *r, const struct step *s)
{
	struct rnic_stat st[RNIC_STATS_MAX];

	siw_set_port_state(r->dev, s->a % 2 == 0 ? RNIC_PORT_DOWN : RNIC_PORT_UP);
	(void)r->dev->ops->stats(r->dev, st);
}

/* Connections that say nothing, or ask for somebody who is not there; those that stay wait for the end. */
static void
do_crowd(struct run *r, const struct step *s)
{
	struct mpa_rival p;

	for (unsigned i = 0; i < s->a; i++) {
		int fd = r->crowd_cnt < CROWD ? sockets_dial(rnic_query(r->dev).mpa_port) : -1;

		if (fd < 0)
			return;
		memset(&p, 0, offsetof(struct mpa_rival, in));
		p.fd = fd;
		p.active = true;
		p.qpn = 0x123456;
		if (s->b % 4 != 0)
			mpa_rival_frame(&p, 0, RTR_ANY, &r->twists, gather, r);
		settle(r);
		if (s->b % 2 == 0)
			sockets_close(fd);
		else
			r->crowd[r->crowd_cnt++] = fd;
	}
}

static void
witness_send(struct run *r)
{
	for (unsigned i = 0; i < 2; i++) {
		struct link *l = &r->witness[i], *to = &r->witness[1 - i];

		if (l->over || !l->connected || to->open.mr == NULL)
			continue;
		link_send(l, RNIC_SIGNALED, 1, 1000, RNIC_WR_WRITE, to->open.mr->rkey, to->open.mr->addr);
		link_send(l, RNIC_SIGNALED, 1, 44, RNIC_WR_SEND, 0, 0);
	}
}

static void
do_witness(struct run *r, const struct step *s)
{
	(void)s;
	witness_send(r);
	link_receive(&r->witness[0], 2);
	link_receive(&r->witness[1], 2);
}

static void (*const ops[])(struct run *, const struct step *) = {
	do_create,
	do_expect,
	do_connect,
	do_dial,
	do_take,
	do_frame,
	do_fpdu,
	do_honest,
	do_twist,
	do_user,
	do_time,
	do_pieces,
	do_end,
	do_raw,
	do_fail,
	do_witness,
	do_port,
	do_crowd,
};

/* -- a whole run -- */

static struct rnic_dev *
open_device(struct run *r, unsigned opts)
{
	struct siw_config c;
	struct rnic_loop loop = sockets_loop();
	struct rnic_dev *dev;
	const char *err;

	siw_config_init(&c);
	(void)addr_parse("127.0.0.1", &c.addr);
	c.crc = (opts & 1) == 0;
	c.markers = (opts & 2) != 0;
	c.mpa_rev = (opts & 4) != 0 ? 1 : 2;
	c.rtr = (opts >> 3 & 7u) != 0 ? opts >> 3 & 7u : 7u;
	c.ird = (opts & 64) != 0 ? 1 : 4;
	c.ord = (opts & 64) != 0 ? 1 : 4;
	c.fpdu_max = (opts & 128) != 0 ? 0 : 16384;
	c.max_qp = QPS + 1;
	FUZZ_CHECK(siw_open(&c, &loop, &r->rng, &dev, &err) == 0);
	return dev;
}

static void
begin(struct run *r, const uint8_t header[STEPS_HEADER])
{
	bool reversed = (header[1] & 1) != 0;
	struct link *active = &r->witness[reversed], *passive = &r->witness[!reversed];

	sockets_init();
	rng_init_seeded(&r->rng, 1);
	for (unsigned i = 0; i < RIVALS; i++)
		r->rival[i].fd = -1;
	r->dev = open_device(r, header[0]);
	r->honest = open_device(r, header[0] & ~64u);
	link_new(&r->witness[0], r->dev, 1, 16, 16);
	link_new(&r->witness[1], r->honest, 1, 16, 16);
	link_receive(&r->witness[0], 8);
	link_receive(&r->witness[1], 8);
	struct rnic_remote a = address_of(active);
	struct rnic_remote p = address_of(passive);
	FUZZ_CHECK(passive->dev->ops->qp_expect(passive->qp) == 0);
	FUZZ_CHECK(passive->dev->ops->qp_connect(passive->qp, RNIC_PASSIVE, &a) == 0);
	FUZZ_CHECK(active->dev->ops->qp_connect(active->qp, RNIC_ACTIVE, &p) == 0);
	run_for(r, 10 * MS);
	FUZZ_CHECK(active->connected && passive->connected);
}

/* The honest link works, everything that was posted has ended, and all memory is back. */
static void
check_witness(struct run *r)
{
	uint64_t before[2] = { r->witness[0].got, r->witness[1].got };

	if (r->excused)
		return;
	link_receive(&r->witness[0], 2);
	link_receive(&r->witness[1], 2);
	run_for(r, 20 * MS);
	witness_send(r);
	run_for(r, 100 * MS);
	FUZZ_CHECK(r->witness[0].got > before[0] && r->witness[1].got > before[1]);
}

static void
check_ended(const struct link *l)
{
	if (l->dev != NULL && l->over)
		FUZZ_CHECK(l->recvs_ended == l->recvs);
}

static void
end(struct run *r)
{
	oom_disarm();
	sockets_fail(0, 0, 0);
	check_witness(r);
	for (unsigned i = 0; i < RIVALS; i++)
		if (r->rival[i].fd >= 0)
			sockets_close(r->rival[i].fd);
	for (unsigned i = 0; i < RIVALS; i++)
		r->rival[i].fd = -1;
	for (; r->crowd_cnt > 0; r->crowd_cnt--)
		sockets_close(r->crowd[r->crowd_cnt - 1]);
	run_for(r, 8000 * MS);
	check_witness(r);
	for (unsigned i = 0; i < QPS; i++) {
		check_ended(&r->link[i]);
		link_free(&r->link[i]);
	}
	link_free(&r->witness[0]);
	link_free(&r->witness[1]);
	FUZZ_CHECK(rnic_query(r->dev).qp_cnt == 0 && rnic_query(r->dev).mr_cnt == 0);
	rnic_end(r->dev);
	rnic_end(r->honest);
	sockets_fini();
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
	for (unsigned i = 0; i < RIVALS; i++)
		memset(&r.rival[i], 0, offsetof(struct mpa_rival, in));
	memset(&r, 0, offsetof(struct run, rival));
	memset(&r.twists, 0, sizeof(r) - offsetof(struct run, twists));
	r.steps = steps;
	begin(&r, header);
	while (steps_next(&r.steps, &s)) {
		ops[s.op % (sizeof(ops) / sizeof(ops[0]))](&r, &s);
		if ((s.who & 0x40) == 0)
			run_for(&r, MS / 100);
	}
	end(&r);
	return 0;
}
