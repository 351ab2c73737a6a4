/* The soft iWARP device when memory runs out: each allocation in turn, from opening the device to the end of a link, on
 * sockets in memory. An existing link continues, the failed caller reports it, and nothing is left. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "base/addr.h"
#include "rnic/siw/siw.h"
#include "sweep.h"
#include "tests/fuzz/sockets.h"
#include "tests/rnic_end.h"
#include "tests/rnic_stats.h"
#include "unit.h"
#include "tests/seeded_rng.h"

#define MS 1000000LL
#define BUF 65536
#define TOKEN 77

struct end {
	struct rnic_dev *dev;
	struct rnic_pd *pd;
	struct rnic_mr *mr;
	struct rnic_qp *qp;
	uint8_t *buf;
	unsigned connected, failed, broken;
	unsigned recvs, sends, flushed;
};

static struct rng rng;
static struct rnic_dev *devs[2];
static int64_t now_ns;
/* Two links between the same devices: the first one was there before. */
static struct end old[2], fresh[2];

static struct siw_config
config(void)
{
	struct siw_config c;

	siw_config_init(&c);
	ck_assert_int_eq(addr_parse("127.0.0.1", &c.addr), 0);
	return c;
}

static int
open_device(struct rnic_dev **dev, const char **err)
{
	struct siw_config c = config();
	struct rnic_loop loop = sockets_loop();

	return siw_open(&c, &loop, &rng, dev, err);
}

/* -- a link -- */

/* False: an error was returned; what is there stays for end_free. */
static bool
end_new(struct end *e, struct rnic_dev *dev)
{
	const struct rnic_qp_attr attr = { .ctx = e, .sq_depth = 16, .rq_depth = 8, .token = TOKEN };

	*e = (struct end){ .dev = dev };
	e->buf = aligned_alloc(64, BUF); /* not one of those that fail */
	ck_assert(e->buf != NULL);
	memset(e->buf, 0, BUF);
	int rc = dev->ops->pd_alloc(dev, &e->pd);
	ck_assert(rc == 0 || (rc == -ENOMEM && e->pd == NULL));
	if (rc == 0) {
		rc = dev->ops->mr_reg(e->pd, e->buf, BUF, RNIC_ACCESS_REMOTE_WRITE, &e->mr);
		ck_assert(rc == 0 || (rc == -ENOMEM && e->mr == NULL));
	}
	if (rc == 0) {
		rc = dev->ops->qp_create(e->pd, &attr, &e->qp);
		ck_assert(rc == 0 || (rc == -ENOMEM && e->qp == NULL));
	}
	return rc == 0;
}

static void
end_free(struct end *e)
{
	if (e->dev == NULL)
		return;
	e->dev->ops->qp_destroy(e->qp);
	e->dev->ops->mr_dereg(e->mr);
	e->dev->ops->pd_free(e->pd);
	free(e->buf);
	*e = (struct end){ 0 };
}

static void
collect(struct rnic_dev *dev)
{
	struct rnic_wc wc[8];
	struct rnic_event ev;
	unsigned n;

	while ((n = dev->ops->poll(dev, wc, 8)) > 0)
		for (unsigned i = 0; i < n; i++) {
			struct end *e = wc[i].qp->ctx;

			e->flushed += wc[i].status != RNIC_WC_OK;
			e->recvs += wc[i].status == RNIC_WC_OK && wc[i].op == RNIC_WC_RECV;
			e->sends += wc[i].status == RNIC_WC_OK && wc[i].op == RNIC_WC_SEND;
		}
	while (dev->ops->poll_event(dev, &ev)) {
		struct end *e = ev.qp->ctx;

		e->connected += ev.type == RNIC_EV_CONNECTED;
		e->failed += ev.type == RNIC_EV_CONNECT_FAILED;
		e->broken += ev.type == RNIC_EV_QP_ERROR;
	}
}

static void
run_ms(int64_t ms)
{
	for (int64_t end = now_ns + ms * MS; now_ns < end; now_ns += MS / 2)
		for (unsigned turn = 0; turn < 4; turn++) {
			devs[0]->now_ns = devs[1]->now_ns = now_ns;
			(void)sockets_turn();
			for (unsigned i = 0; i < 2; i++) {
				devs[i]->ops->progress(devs[i], now_ns);
				collect(devs[i]);
				devs[i]->ops->flush(devs[i]);
			}
		}
}

static struct rnic_remote
address(const struct end *e)
{
	struct rnic_info info = rnic_query(e->dev);

	return (struct rnic_remote){
		.gid = info.gid, .qpn = e->qp->qpn, .psn = e->qp->psn, .mtu_code = 5, .mpa_port = info.mpa_port
	};
}

/* [0] is the active side. False: refused at once; else it is connected after a while, or both ends say why not. */
static bool
link_up(struct end e[2])
{
	struct rnic_remote to[2];

	if (!end_new(&e[0], devs[0]) || !end_new(&e[1], devs[1]))
		return false;
	for (unsigned i = 0; i < 2; i++)
		to[i] = address(&e[i]);
	ck_assert(e[1].dev->ops->qp_expect(e[1].qp) == 0);
	ck_assert(e[1].dev->ops->qp_connect(e[1].qp, RNIC_PASSIVE, &to[0]) == 0);
	ck_assert(e[0].dev->ops->qp_connect(e[0].qp, RNIC_ACTIVE, &to[1]) == 0);
	run_ms(5);
	if (e[0].connected && e[1].connected)
		return true;
	run_ms(2100); /* the time limit of those that nobody tells */
	for (unsigned i = 0; i < 2; i++)
		ck_assert(e[i].failed == 1 || (e[i].connected == 1 && e[i].broken == 1));
	return false;
}

/* A Write and a Send each way. */
static void
exchange(struct end e[2])
{
	for (unsigned i = 0; i < 2; i++) {
		const struct rnic_recv_wr r = { .wr_id = 1, .mr = e[i].mr, .ptr = e[i].buf, .len = 64 };

		e[i].recvs = e[i].sends = 0;
		ck_assert(e[i].dev->ops->post_recv(e[i].qp, &r, 1) == 0);
	}
	for (unsigned i = 0; i < 2; i++) {
		struct rnic_send_wr wr = { .op = RNIC_WR_WRITE,
			.sge_cnt = 1,
			.sge = { { .mr = e[i].mr, .ptr = e[i].buf + 4096, .len = 20000 } },
			.raddr = e[1 - i].mr->addr + 30000,
			.rkey = e[1 - i].mr->rkey };

		memset(e[i].buf + 4096, (int)(i + 1 + now_ns % 100), 20000);
		ck_assert(e[i].dev->ops->post_send(e[i].qp, &wr) == 0);
		wr.op = RNIC_WR_SEND;
		wr.sge[0].len = 44;
		wr.flags = RNIC_SIGNALED;
		ck_assert(e[i].dev->ops->post_send(e[i].qp, &wr) == 0);
	}
	run_ms(20);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert(e[i].recvs == 1);
		ck_assert(e[i].sends == 1);
		ck_assert(memcmp(e[i].buf + 30000, e[1 - i].buf + 4096, 20000) == 0);
	}
}

/* In order, with something still to be said: the linger's memory is one of those that fail. */
static void
part(struct end e[2])
{
	struct rnic_send_wr wr = { .op = RNIC_WR_WRITE,
		.sge_cnt = 1,
		.sge = { { .mr = e[0].mr, .ptr = e[0].buf, .len = 2000 } },
		.raddr = e[1].mr->addr,
		.rkey = e[1].mr->rkey };

	ck_assert(e[0].dev->ops->post_send(e[0].qp, &wr) == 0);
	e[0].dev->ops->qp_disconnect(e[0].qp, true);
	run_ms(10);
	ck_assert(e[1].broken == 1);
	run_ms(2100);
}

static void
setup(void)
{
	const char *err;

	sockets_init();
	rng_init_seeded(&rng, 1);
	now_ns = 0;
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(open_device(&devs[i], &err), 0);
	ck_assert(link_up(old));
	exchange(old);
}

static void
teardown(void)
{
	for (unsigned i = 0; i < 2; i++) {
		end_free(&fresh[i]);
		end_free(&old[i]);
	}
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_uint_eq(rnic_query(devs[i]).qp_cnt, 0);
		ck_assert_uint_eq(rnic_query(devs[i]).mr_cnt, 0);
		rnic_end(devs[i]);
	}
	sockets_fini();
}

static void
old_link_lives(void)
{
	for (unsigned i = 0; i < 2; i++)
		ck_assert_uint_eq(old[i].broken + old[i].flushed, 0);
	exchange(old);
}

static unsigned
said(void)
{
	struct siw_stats st[2];

	for (unsigned i = 0; i < 2; i++)
		rnic_stats_of(devs[i], &st[i], sizeof(st[i]));
	return (unsigned)(st[0].no_memory + st[1].no_memory);
}

START_TEST(a_device_does_not_open)
{
	struct sweep s = { 0 };

	while (sweep_next(&s)) {
		struct rnic_dev *dev = NULL;
		const char *err = NULL;

		sockets_init();
		rng_init_seeded(&rng, 1);
		sweep_arm(&s);
		int rc = open_device(&dev, &err);
		if (sweep_over(&s)) {
			ck_assert_int_eq(rc, -ENOMEM);
			ck_assert_str_eq(err, "memory");
			ck_assert_ptr_null(dev);
		} else {
			ck_assert_int_eq(rc, 0);
			rnic_end(dev);
		}
		sockets_fini();
	}
	ck_assert_uint_gt(s.nth, 3);
}

START_TEST(a_link_is_made_or_says_why_not)
{
	struct sweep s = { 0 };

	while (sweep_next(&s)) {
		setup();
		sweep_arm(&s);
		bool up = link_up(fresh);
		if (sweep_over(&s))
			ck_assert(fresh[0].qp == NULL || fresh[1].qp == NULL || up || said() == 1);
		else
			ck_assert(up);
		if (up)
			exchange(fresh);
		old_link_lives();
		teardown();
	}
	ck_assert_uint_gt(s.nth, 15);
}

START_TEST(a_link_ends)
{
	struct sweep s = { 0 };

	while (sweep_next(&s)) {
		setup();
		ck_assert(link_up(fresh));
		sweep_arm(&s);
		part(fresh);
		(void)sweep_over(&s);
		old_link_lives();
		teardown();
	}
	ck_assert_uint_gt(s.nth, 1);
}

/* A stranger's request needs memory, as does what it is told. */
START_TEST(a_stranger_costs_no_other_peer)
{
	struct sweep s = { 0 };

	while (sweep_next(&s)) {
		uint8_t bad[56] = "MPA ID Req Frame\x50\x02";

		setup();
		int fd = sockets_dial(rnic_query(devs[1]).mpa_port);
		bad[19] = 36;
		(void)sockets_send(fd, bad, sizeof(bad));
		sweep_arm(&s);
		run_ms(10);
		if (sweep_over(&s))
			ck_assert_uint_eq(said(), 1);
		run_ms(3100);
		old_link_lives();
		ck_assert(sockets_over(fd));
		sockets_close(fd);
		teardown();
	}
	ck_assert_uint_gt(s.nth, 2);
}
