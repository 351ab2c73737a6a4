/*
 * Two verbs devices in one process on real ones of the kernel: the contract of
 * rnic.h, and what a card does that no test can make up. Driven by
 * check_verbs.py.
 *
 *	verbs_host CASE DEV-A DEV-B ADDRESS-A ADDRESS-B [ADDRESS]
 *
 * Ends with 0 when the case holds; what was measured, or what went wrong, is on
 * stdout. Cases that need something to happen to an interface say on stdout what
 * ("do: down a"), and go on with a line on stdin.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "rnic/verbs/verbs.h"
#include "tests/poll_loop.h"
#include "tests/rnic_end.h"
#include "tests/rnic_stats.h"

#define BUF (4u << 20)
#define DEPTH 256
#define TOKEN 4711 /* iWARP's */

struct end {
	struct poll_loop loop;
	struct rnic_dev *dev;
	struct rnic_pd *pd;
	struct rnic_mr *mr;
	struct rnic_qp *qp;
	uint8_t *buf;
	unsigned connected, failed, errors, ups, downs, gones;
	const char *why;
	/* completions by status, of sends (and writes) and of receives */
	unsigned sends[RNIC_WC_RETRY_EXC + 1], recvs[RNIC_WC_RETRY_EXC + 1];
	unsigned order;     /* wr_id of the last send, plus one */
	int64_t slowest_ns; /* turn */
};

static struct rng rng;
static struct end a, b;
static const char *arg_dev[2], *arg_addr[3];

static void fail(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

static void
fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	for (unsigned i = 0; i < 2; i++) {
		const struct end *e = i == 0 ? &a : &b;

		printf(
		    "%c: sends ok %u flushed %u remote %u local %u retry %u, recvs ok %u flushed %u local %u, "
		    "connected %u failed %u errors %u why %s\n",
		    "ab"[i], e -> sends[0], e -> sends[1], e -> sends[2], e -> sends[3], e -> sends[4], e -> recvs[0],
		    e -> recvs[1], e -> recvs[3], e -> connected, e -> failed, e -> errors,
		    e -> why != NULL ? e -> why : "-");
	}
	exit(1);
}

#define NEED(...)                                                            \
	do {                                                                 \
		if (!(__VA_ARGS__))                                          \
			fail("line %d: not so: %s", __LINE__, #__VA_ARGS__); \
	} while (0)

/* -- ends -- */

static void
collect(struct end *e)
{
	struct rnic_wc wc[64];
	struct rnic_event ev;
	unsigned n;

	while ((n = e->dev->ops->poll(e->dev, wc, 64)) > 0) {
		for (unsigned i = 0; i < n; i++) {
			if (wc[i].op == RNIC_WC_RECV) {
				e->recvs[wc[i].status]++;
				continue;
			}
			e->sends[wc[i].status]++;
			if (wc[i].wr_id < e->order)
				fail("request %llu after %u", (unsigned long long)wc[i].wr_id, e->order);
			e->order = (unsigned)wc[i].wr_id + 1;
		}
	}
	while (e->dev->ops->poll_event(e->dev, &ev)) {
		e->connected += ev.type == RNIC_EV_CONNECTED;
		e->failed += ev.type == RNIC_EV_CONNECT_FAILED;
		e->errors += ev.type == RNIC_EV_QP_ERROR;
		e->ups += ev.type == RNIC_EV_PORT_UP;
		e->downs += ev.type == RNIC_EV_PORT_DOWN;
		e->gones += ev.type == RNIC_EV_DEV_GONE;
		if (ev.why != NULL)
			e->why = ev.why;
	}
}

static void
turn_one(struct end *e, int max_ms)
{
	if (e->dev == NULL)
		return;
	poll_loop_turn(&e->loop, &e->dev, 1, max_ms);
	int64_t start = poll_loop_now();
	collect(e);
	if (poll_loop_now() - start > e->slowest_ns)
		e->slowest_ns = poll_loop_now() - start;
}

static void
turn(void)
{
	turn_one(&a, 0);
	turn_one(&b, 1);
}

static double
ms_since(int64_t start)
{
	return (double)(poll_loop_now() - start) / 1e6;
}

#define UNTIL(...)                                                                  \
	do {                                                                        \
		int64_t until_end = poll_loop_now() + 30000000000;                  \
		while (!(__VA_ARGS__)) {                                            \
			if (poll_loop_now() > until_end)                            \
				fail("line %d: never: %s", __LINE__, #__VA_ARGS__); \
			turn();                                                     \
		}                                                                   \
	} while (0)

static void
run_ms(int ms)
{
	int64_t until_end = poll_loop_now() + (int64_t)ms * 1000000;

	while (poll_loop_now() < until_end)
		turn();
}

static void
end_open(struct end *e, unsigned n)
{
	struct verbs_config c;
	struct sockaddr_storage ss;
	const char *why = "";

	memset(e, 0, sizeof(*e));
	poll_loop_init(&e->loop);
	struct rnic_loop l = poll_loop_rnic(&e->loop);
	verbs_config_init(&c);
	(void)snprintf(c.dev, sizeof(c.dev), "%s", arg_dev[n]);
	NEED(addr_parse(arg_addr[n], &ss) == 0);
	addr_to_v6(&ss, c.gid.b);
	c.addr = ss;
	int rc = verbs_open(&c, &l, &rng, &e->dev, &why);
	if (rc < 0)
		fail("%s: %s: %s", arg_dev[n], why, strerror(-rc));
	e->dev->now_ns = poll_loop_now();
	NEED(e->dev->ops->pd_alloc(e->dev, &e->pd) == 0);
	e->buf = calloc(1, BUF);
	NEED(e->dev->ops->mr_reg(e->pd, e->buf, BUF, RNIC_ACCESS_REMOTE_WRITE, &e->mr) == 0);
}

static void
end_qp(struct end *e)
{
	const struct rnic_qp_attr attr = { .ctx = e, .sq_depth = DEPTH, .rq_depth = DEPTH, .token = TOKEN };

	NEED(e->dev->ops->qp_create(e->pd, &attr, &e->qp) == 0);
}

static void
qp_end(struct end *e)
{
	e->dev->ops->qp_destroy(e->qp);
	e->qp = NULL;
}

static void
end_close(struct end *e)
{
	if (e->qp != NULL)
		qp_end(e);
	UNTIL(rnic_query(e->dev).qp_cnt == 0);
	if (e->mr != NULL)
		e->dev->ops->mr_dereg(e->mr);
	if (e->pd != NULL)
		e->dev->ops->pd_free(e->pd);
	rnic_end(e->dev);
	e->dev = NULL;
	free(e->buf);
	poll_loop_fini(&e->loop);
}

static struct rnic_remote
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

static void
connect_ends(void)
{
	int64_t start = poll_loop_now();

	a.connected = b.connected = 0;
	end_qp(&a);
	end_qp(&b);
	struct rnic_remote ra = remote(&a);
	struct rnic_remote rb = remote(&b);
	NEED(b.dev->ops->qp_expect(b.qp) == 0);
	NEED(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &rb) == 0);
	NEED(b.dev->ops->qp_connect(b.qp, RNIC_PASSIVE, &ra) == 0);
	UNTIL(a.connected && b.connected);
	NEED(a.dev->ops->qp_rts(a.qp) == 0);
	printf("connected in %.1f ms\n", ms_since(start));
}

static void
open_connected(void)
{
	end_open(&a, 0);
	end_open(&b, 1);
	connect_ends();
}

static void
receives(struct end *e, unsigned n, uint32_t len)
{
	struct rnic_recv_wr wr = { .mr = e->mr, .len = len };

	for (unsigned i = 0; i < n; i++) {
		wr.ptr = e->buf + BUF / 2 + (size_t)i * 64;
		NEED(e->dev->ops->post_recv(e->qp, &wr, 1) == 0);
	}
}

static unsigned next_id;

static int
post_from(
    struct end *e, size_t off, enum rnic_wr_op op, unsigned flags, uint32_t len, const struct end *to, size_t to_off)
{
	struct rnic_send_wr wr = {
		.wr_id = next_id,
		.op = op,
		.flags = flags,
		.sge_cnt = 1,
		.sge = { { .mr = flags & RNIC_INLINE ? NULL : e->mr, .ptr = e->buf + off, .len = len } },
		.raddr = to->mr->addr + to_off,
		.rkey = to->mr->rkey,
	};
	int rc = e->dev->ops->post_send(e->qp, &wr);

	next_id += rc == 0;
	return rc;
}

static int
post(struct end *e, enum rnic_wr_op op, unsigned flags, uint32_t len, const struct end *to, size_t to_off)
{
	return post_from(e, 0, op, flags, len, to, to_off);
}

static void
message(struct end *e, const struct end *to)
{
	NEED(post(e, RNIC_WR_SEND, RNIC_INLINE | RNIC_SOLICITED | RNIC_SIGNALED, 44, to, 0) == 0);
}

/* -- cases -- */

static void
case_data(void)
{
	enum { LEN = 1000003 };

	open_connected();
	const struct verbs_port *p = verbs_port_of(a.dev);
	printf("%s port %u, provider %s, MTU code %u, %u GIDs; max_sq %u max_rq %u max_sge %u\n", p->dev, p->port,
	    p->provider, p->mtu_code, p->gid_cnt, rnic_query(a.dev).max_sq, rnic_query(a.dev).max_rq,
	    rnic_query(a.dev).max_sge);
	NEED(strcmp(p->provider, "rxe") == 0);
	receives(&b, 10, 64);
	receives(&a, 10, 64);
	for (unsigned i = 0; i < LEN; i++)
		a.buf[i] = (uint8_t)(i * 7 + i / 251);
	int64_t start = poll_loop_now();
	NEED(post(&a, RNIC_WR_WRITE, 0, LEN, &b, 17) == 0);
	message(&a, &b);
	UNTIL(a.sends[RNIC_WC_OK] == 1 && b.recvs[RNIC_WC_OK] == 1);
	NEED(memcmp(a.buf, b.buf + 17, LEN) == 0);
	NEED(memcmp(a.buf, b.buf + BUF / 2, 44) == 0);
	printf("%u bytes in %.1f ms\n", LEN, ms_since(start));
	start = poll_loop_now();
	for (unsigned i = 0; i < 9; i++) {
		message(&b, &a);
		UNTIL(a.recvs[RNIC_WC_OK] == i + 1);
		message(&a, &b);
		UNTIL(b.recvs[RNIC_WC_OK] == i + 2);
	}
	printf("round trip %.2f ms\n", ms_since(start) / 9);
	NEED(a.errors + b.errors == 0);
}

/* Thousands of unsignaled requests, through a queue of 256. */
static void
case_many(void)
{
	struct verbs_stats st;

	open_connected();
	receives(&b, DEPTH, 64);
	for (unsigned i = 0; i < 3000; i++) {
		UNTIL(({
			struct rnic_credits r;
			a.dev->ops->credits(a.qp, &r);
			r.wrs > 0 && r.bytes > 0;
		}));
		NEED(post(&a, RNIC_WR_WRITE, 0, 100 + i % 3000, &b, 0) == 0);
	}
	message(&a, &b);
	UNTIL(b.recvs[RNIC_WC_OK] == 1 && a.sends[RNIC_WC_OK] == 1);
	rnic_stats_of(a.dev, &st, sizeof(st));
	printf("%llu requests, %llu doorbells, %llu completions, %llu polls, %llu wake-ups\n",
	    (unsigned long long)(st.writes_posted + st.sends_posted), (unsigned long long)st.doorbells,
	    (unsigned long long)st.completions, (unsigned long long)st.polls, (unsigned long long)st.wakeups);
	NEED(st.completions < 100);
}

/*
 * Short writes that cross a page, behind one so long that the card's driver has not sent it when the request is posted.
 * Each length up to what is inline, and some more; each place of the border.
 */
static void
case_short(void)
{
	enum { LONG = 256 << 10, SHORT_MAX = 80, PAGE = 4096, SLOT = 128, ROUND = 100 };
	unsigned len = 2, cut = 1, rounds = 0;

	open_connected();
	const size_t page = (PAGE - (uintptr_t)a.buf % PAGE) % PAGE;
	for (size_t i = 0; i < BUF; i++)
		a.buf[i] = (uint8_t)rng_below(&rng, 256);
	for (; len <= SHORT_MAX; rounds++) {
		struct {
			size_t from;
			unsigned len;
		} was[ROUND];
		unsigned cnt = 0;

		receives(&b, 1, 64);
		UNTIL(({
			struct rnic_credits r;
			a.dev->ops->credits(a.qp, &r);
			r.wrs > ROUND + 1 && r.bytes > LONG;
		}));
		NEED(post(&a, RNIC_WR_WRITE, 0, LONG, &b, BUF / 4) == 0);
		for (; cnt < ROUND && len <= SHORT_MAX; cnt++) {
			was[cnt].from = page + (cnt + 1) * PAGE - cut;
			was[cnt].len = len;
			NEED(post_from(&a, was[cnt].from, RNIC_WR_WRITE, 0, len, &b, cnt * SLOT) == 0);
			if (++cut == len) {
				cut = 1;
				len++;
			}
		}
		message(&a, &b);
		UNTIL(b.recvs[RNIC_WC_OK] == rounds + 1);
		NEED(memcmp(a.buf, b.buf + BUF / 4, LONG) == 0);
		for (unsigned i = 0; i < cnt; i++)
			if (memcmp(a.buf + was[i].from, b.buf + i * SLOT, was[i].len) != 0)
				fail("%u bytes, %u of them before the border of a page, are not what was sent",
				    was[i].len, (unsigned)(PAGE - (was[i].from - page) % PAGE));
	}
	printf("%u rounds\n", rounds);
}

/* A wrong key: the peer refuses, both ends break, each request ends once. */
static void
case_access(void)
{
	struct rnic_mr *right = b.mr;

	open_connected();
	receives(&a, 5, 64);
	receives(&b, 5, 64);
	right = b.mr;
	struct rnic_mr wrong = *right;
	wrong.rkey ^= 0x5a00;
	b.mr = &wrong;
	NEED(post(&a, RNIC_WR_WRITE, 0, 100, &b, 0) == 0);
	NEED(post(&a, RNIC_WR_WRITE, 0, 100, &b, 0) == 0);
	message(&a, &b);
	b.mr = right;
	UNTIL(a.errors == 1);
	printf("a: %s\n", a.why);
	NEED(a.sends[RNIC_WC_REMOTE_ERR] == 1 && a.sends[RNIC_WC_FLUSHED] == 2 && a.recvs[RNIC_WC_FLUSHED] == 5);
	run_ms(300);
	printf("b: %u errors, %s; receives flushed %u\n", b.errors, b.why != NULL ? b.why : "no word",
	    b.recvs[RNIC_WC_FLUSHED]);
	NEED(b.recvs[RNIC_WC_OK] == 0);
	NEED(b.buf[0] == 0);
}

static void
case_too_long(void)
{
	open_connected();
	receives(&b, 5, 40);
	message(&a, &b);
	UNTIL(a.errors == 1 && b.errors == 1);
	printf("a: %s; b: %s\n", a.why, b.why);
	NEED(a.sends[RNIC_WC_REMOTE_ERR] == 1);
	NEED(b.recvs[RNIC_WC_LOCAL_ERR] == 1 && b.recvs[RNIC_WC_FLUSHED] == 4);
}

/* No receive: it waits, and goes on by itself. With a card as long as it takes; rxe counts the time against the answer that
 * it does not get, and gives up after (retry count + 1) timeouts. */
static void
case_rnr(void)
{
	open_connected();
	message(&a, &b);
	run_ms(300);
	NEED(a.sends[RNIC_WC_OK] == 0 && a.errors == 0);
	receives(&b, 1, 64);
	int64_t start = poll_loop_now();
	UNTIL(a.sends[RNIC_WC_OK] == 1 && b.recvs[RNIC_WC_OK] == 1);
	printf("%.1f ms after the receive\n", ms_since(start));
	message(&a, &b);
	start = poll_loop_now();
	while (a.errors == 0 && ms_since(start) < 3000)
		turn();
	printf("%s, after %.0f ms without a receive\n", a.errors != 0 ? a.why : "it still waits", ms_since(start));
	NEED(a.errors == 0 || a.sends[RNIC_WC_RETRY_EXC] == 1);
}

/* The peer's queue pair is gone: no answer. */
static void
case_retry(void)
{
	open_connected();
	receives(&a, 5, 64);
	qp_end(&b);
	int64_t start = poll_loop_now();
	for (unsigned i = 0; i < 20; i++)
		NEED(post(&a, RNIC_WR_WRITE, 0, 1000, &b, 0) == 0);
	UNTIL(a.errors == 1);
	printf("%s, after %.0f ms\n", a.why, ms_since(start));
	NEED(a.sends[RNIC_WC_RETRY_EXC] == 1 && a.sends[RNIC_WC_FLUSHED] == 19 && a.recvs[RNIC_WC_FLUSHED] == 5);
	NEED(ms_since(start) < 5000);
}

/* Our own end, with requests under way. */
static void
case_flush(void)
{
	open_connected();
	receives(&a, 5, 64);
	message(&a, &b); /* waits for a receive, and all the others behind it */
	for (unsigned i = 0; i < 50; i++)
		NEED(post(&a, RNIC_WR_WRITE, i % 2 == 0 ? RNIC_SIGNALED : 0, 1000, &b, 0) == 0);
	run_ms(50);
	int64_t start = poll_loop_now();
	a.dev->ops->qp_disconnect(a.qp, false);
	UNTIL(a.sends[RNIC_WC_FLUSHED] == 51 && a.recvs[RNIC_WC_FLUSHED] == 5);
	printf("flushed in %.1f ms\n", ms_since(start));
	/* Not because time was up. */
	NEED(ms_since(start) < 900);
	NEED(a.errors == 0);
}

/* All had ended well, unsignaled: they are heard of all the same, and at once. */
static void
case_flush_quiet(void)
{
	open_connected();
	for (unsigned i = 0; i < 20; i++)
		NEED(post(&a, RNIC_WR_WRITE, 0, 1000, &b, 0) == 0);
	run_ms(300);
	NEED(a.sends[RNIC_WC_OK] == 0);
	int64_t start = poll_loop_now();
	a.dev->ops->qp_disconnect(a.qp, false);
	UNTIL(a.sends[RNIC_WC_FLUSHED] == 20);
	printf("flushed in %.1f ms\n", ms_since(start));
	NEED(ms_since(start) < 900);
}

/* The last message before a disconnect in order arrives. */
static void
case_last_words(void)
{
	open_connected();
	for (unsigned i = 0; i < 10; i++) {
		receives(&b, 1, 64);
		NEED(post(&a, RNIC_WR_WRITE, 0, 500000, &b, 0) == 0);
		message(&a, &b);
		a.dev->ops->qp_disconnect(a.qp, true);
		qp_end(&a);
		UNTIL(b.recvs[RNIC_WC_OK] == i + 1);
		qp_end(&b);
		run_ms(20);
		connect_ends();
	}
}

/* An unused address: the loop continues meanwhile. */
static void
case_absent(void)
{
	struct sockaddr_storage ss;

	end_open(&a, 0);
	end_open(&b, 1);
	end_qp(&a);
	end_qp(&b);
	struct rnic_remote r = remote(&b);
	NEED(addr_parse(arg_addr[2], &ss) == 0);
	addr_to_v6(&ss, r.gid.b);
	receives(&a, 5, 64);
	int64_t start = poll_loop_now();
	NEED(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &r) == 0);
	NEED(ms_since(start) < 200);
	UNTIL(a.failed == 1 && a.recvs[RNIC_WC_FLUSHED] == 5);
	printf("%s, after %.0f ms; slowest turn %.1f ms\n", a.why, ms_since(start), (double)a.slowest_ns / 1e6);
	NEED(a.slowest_ns < 500000000);
	/* Destroyed while it is asked for. */
	qp_end(&a);
	end_qp(&a);
	NEED(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &r) == 0);
	run_ms(100);
	start = poll_loop_now();
	qp_end(&a);
	NEED(ms_since(start) < 500);
	/* And the device, which ends behind it: no turn of the loop waits. */
	end_qp(&a);
	NEED(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &r) == 0);
	run_ms(100);
	start = poll_loop_now();
	a.slowest_ns = 0;
	end_close(&a);
	printf("freed after %.0f ms; slowest turn %.1f ms\n", ms_since(start), (double)a.slowest_ns / 1e6);
	NEED(a.slowest_ns < 500000000);
}

static void
ask(const char *what)
{
	char line[64];

	printf("do: %s\n", what);
	fflush(stdout);
	if (fgets(line, sizeof(line), stdin) == NULL)
		fail("no answer");
}

/* The interface goes down and comes back. */
static void
case_port(void)
{
	open_connected();
	receives(&a, 5, 64);
	ask("down");
	UNTIL(a.downs == 1 && b.downs == 1);
	NEED(rnic_query(a.dev).port == RNIC_PORT_DOWN);
	ask("up");
	UNTIL(a.ups == 1 && b.ups == 1);
	NEED(rnic_query(a.dev).port == RNIC_PORT_UP);
	qp_end(&a);
	qp_end(&b);
	connect_ends();
	receives(&b, 1, 64);
	message(&a, &b);
	UNTIL(b.recvs[RNIC_WC_OK] == 1);
}

/* The address is taken away and comes back behind others. */
static void
case_gid(void)
{
	open_connected();
	ask("take");
	UNTIL(a.downs == 1);
	NEED(!verbs_gid_present(a.dev));
	NEED(b.downs == 0);
	ask("give");
	UNTIL(a.ups == 1);
	NEED(verbs_gid_present(a.dev));
	qp_end(&a);
	qp_end(&b);
	connect_ends();
	receives(&b, 1, 64);
	message(&a, &b);
	UNTIL(b.recvs[RNIC_WC_OK] == 1);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "data", case_data },
	{ "many", case_many },
	{ "short", case_short },
	{ "access", case_access },
	{ "too_long", case_too_long },
	{ "rnr", case_rnr },
	{ "retry", case_retry },
	{ "flush", case_flush },
	{ "flush_quiet", case_flush_quiet },
	{ "last_words", case_last_words },
	{ "absent", case_absent },
	{ "port", case_port },
	{ "gid", case_gid },
};

int
main(int argc, char **argv)
{
	if (argc < 6)
		return 2;
	rng_init_kernel(&rng);
	arg_dev[0] = argv[2];
	arg_dev[1] = argv[3];
	arg_addr[0] = argv[4];
	arg_addr[1] = argv[5];
	arg_addr[2] = argv[6];
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(cases[i].name, argv[1]) != 0)
			continue;
		cases[i].run();
		if (a.dev != NULL)
			end_close(&a);
		end_close(&b);
		printf("done\n");
		return 0;
	}
	return 2;
}
