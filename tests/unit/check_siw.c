/* Soft iWARP: two devices in one process over loopback. */
#include "rnic/siw.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "tests/poll_loop.h"
#include "unit.h"

#define BUF (1u << 20)
#define TOKEN 0x1122334455667788u

/* One end of a link. */
struct end {
	struct rnic_dev *dev;
	struct rnic_pd *pd;
	struct rnic_mr *mr;
	struct rnic_qp *qp;
	uint8_t *buf;
	unsigned connected, failed, errors, rooms;
	const char *why;
	struct rnic_wc wc[4096];
	unsigned wc_cnt;
};

static struct poll_loop loop;
static struct rng rng;
static struct end a, b;		/* a opens the connection */

static struct siw_config
config(void)
{
	struct siw_config c;
	struct sockaddr_in *sin = (struct sockaddr_in *)&c.addr;

	siw_config_init(&c);
	sin->sin_family = AF_INET;
	sin->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return c;
}

static void
end_open(struct end *e, const struct siw_config *c)
{
	struct rnic_loop l = poll_loop_rnic(&loop);
	const char *err;

	memset(e, 0, sizeof(*e));
	ck_assert_int_eq(siw_open(c, &l, &rng, &e->dev, &err), 0);
	ck_assert_int_eq(e->dev->ops->pd_alloc(e->dev, &e->pd), 0);
	e->buf = calloc(1, BUF);
	ck_assert_int_eq(e->dev->ops->mr_reg(e->pd, e->buf, BUF,
	    RNIC_ACCESS_REMOTE_WRITE | RNIC_ACCESS_REMOTE_READ, &e->mr), 0);
}

static void
end_qp(struct end *e, uint32_t sq, uint32_t rq, uint64_t token)
{
	const struct rnic_qp_attr attr = { .ctx = e, .sq_depth = sq, .rq_depth = rq, .token = token };

	ck_assert_int_eq(e->dev->ops->qp_create(e->pd, &attr, &e->qp), 0);
}

static void
end_close(struct end *e)
{
	if (e->qp != NULL)
		e->dev->ops->qp_destroy(e->qp);
	e->dev->ops->mr_dereg(e->mr);
	e->dev->ops->pd_free(e->pd);
	e->dev->ops->free(e->dev);
	free(e->buf);
}

static void
setup(void)
{
	poll_loop_init(&loop);
	rng_init_kernel(&rng);
}

static void
teardown(void)
{
	poll_loop_fini(&loop);
}

static void
collect(struct end *e)
{
	struct rnic_event ev;

	e->wc_cnt += e->dev->ops->poll(e->dev, e->wc + e->wc_cnt, 4096 - e->wc_cnt);
	while (e->dev->ops->poll_event(e->dev, &ev)) {
		e->connected += ev.type == RNIC_EV_CONNECTED;
		e->failed += ev.type == RNIC_EV_CONNECT_FAILED;
		e->errors += ev.type == RNIC_EV_QP_ERROR;
		e->rooms += ev.type == RNIC_EV_ROOM;
		if (ev.why != NULL)
			e->why = ev.why;
	}
}

static void
turn(int max_ms)
{
	struct rnic_dev *devs[] = { a.dev, b.dev };

	poll_loop_turn(&loop, devs, 2, max_ms);
	collect(&a);
	collect(&b);
}

/* Turns until cond holds; fails after some seconds. */
#define UNTIL(cond) do { \
	int64_t until_end = poll_loop_now() + 10000000000; \
	while (!(cond)) { \
		ck_assert_msg(poll_loop_now() < until_end, "never: %s", #cond); \
		turn(20); \
	} \
} while (0)

static struct rnic_remote
remote(const struct end *e)
{
	struct rnic_info info = rnic_query(e->dev);

	return (struct rnic_remote){
		.gid = info.gid, .qpn = e->qp->qpn, .psn = e->qp->psn, .mtu_code = 5, .mpa_port = info.mpa_port,
	};
}

static void
connect_ends(void)
{
	struct rnic_remote ra, rb;

	if (a.qp == NULL)
		end_qp(&a, 64, 16, TOKEN);
	if (b.qp == NULL)
		end_qp(&b, 64, 16, TOKEN);
	ra = remote(&a);
	rb = remote(&b);
	ck_assert_int_eq(b.dev->ops->qp_expect(b.qp), 0);
	ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &rb), 0);
	UNTIL(a.connected || a.failed);
	ck_assert_int_eq(b.dev->ops->qp_connect(b.qp, RNIC_PASSIVE, &ra), 0);
	UNTIL(b.connected || b.failed);
}

static void
post_recv(struct end *e, uint64_t id, size_t off, uint32_t len)
{
	const struct rnic_recv_wr wr = { .wr_id = id, .mr = e->mr, .ptr = e->buf + off, .len = len };

	ck_assert_int_eq(e->dev->ops->post_recv(e->qp, &wr, 1), 0);
}

static int
try_post(struct end *e, enum rnic_wr_op op, uint64_t id, unsigned flags, size_t off, uint32_t len,
    const struct end *to, size_t to_off)
{
	const struct rnic_send_wr wr = {
		.wr_id = id, .op = op, .flags = flags, .sge_cnt = 1,
		.sge = { { .mr = e->mr, .ptr = e->buf + off, .len = len } },
		.raddr = to->mr->addr + to_off, .rkey = to->mr->rkey,
	};

	return e->dev->ops->post_send(e->qp, &wr);
}

static void
post(struct end *e, enum rnic_wr_op op, uint64_t id, unsigned flags, size_t off, uint32_t len,
    const struct end *to, size_t to_off)
{
	ck_assert_int_eq(try_post(e, op, id, flags, off, len, to, to_off), 0);
}

static void
check_wc(const struct end *e, unsigned i, uint64_t id, enum rnic_wc_op op, enum rnic_wc_status status)
{
	ck_assert_uint_lt(i, e->wc_cnt);
	ck_assert_uint_eq(e->wc[i].wr_id, id);
	ck_assert_int_eq(e->wc[i].op, op);
	ck_assert_int_eq(e->wc[i].status, status);
	ck_assert_ptr_eq(e->wc[i].qp, e->qp);
}

START_TEST(connects_writes_sends_both_ways)
{
	struct siw_config c = config();

	end_open(&a, &c);
	end_open(&b, &c);
	end_qp(&b, 64, 16, TOKEN);
	post_recv(&b, 7, 0, 100);
	connect_ends();
	ck_assert_uint_eq(a.connected, 1);
	ck_assert_uint_eq(b.connected, 1);
	for (unsigned i = 0; i < 300000; i++)
		a.buf[i] = (uint8_t)(i * 7 + i / 251);
	post(&a, RNIC_WR_WRITE, 1, 0, 0, 300000, &b, 1000);
	post(&a, RNIC_WR_SEND, 2, RNIC_SIGNALED, 5, 44, &b, 0);
	UNTIL(a.wc_cnt == 1 && b.wc_cnt == 1);
	check_wc(&a, 0, 2, RNIC_WC_SEND, RNIC_WC_OK);
	check_wc(&b, 0, 7, RNIC_WC_RECV, RNIC_WC_OK);
	ck_assert_uint_eq(b.wc[0].len, 44);
	ck_assert_mem_eq(b.buf, a.buf + 5, 44);
	ck_assert_mem_eq(b.buf + 1000, a.buf, 300000);
	/* the passive side speaks, too */
	post_recv(&a, 8, 500000, 100);
	post(&b, RNIC_WR_SEND, 3, RNIC_SIGNALED, 0, 44, &a, 0);
	UNTIL(a.wc_cnt == 2 && b.wc_cnt == 2);
	check_wc(&a, 1, 8, RNIC_WC_RECV, RNIC_WC_OK);
	check_wc(&b, 1, 3, RNIC_WC_SEND, RNIC_WC_OK);
	ck_assert_uint_eq(a.errors + b.errors, 0);
	end_close(&a);
	end_close(&b);
}
END_TEST

static void
siw_case(TCase *tc)
{
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, connects_writes_sends_both_ways);
}

UNIT_MAIN("siw", siw_case)
