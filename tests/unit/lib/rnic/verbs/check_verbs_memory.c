/*
 * The verbs device when memory runs out: each allocation of its own in turn,
 * from opening a card to the end of a queue pair, RoCE and iWARP. A link that
 * is there already continues, the failed caller reports it, nothing is left.
 */
#include "sweep.h"
#include "verbs_ends.h"

#include "fake_rdmacm.h"

/* A second link between the cards of a and b. */
struct extra {
	struct rnic_dev *dev;
	struct rnic_pd *pd;
	struct rnic_mr *mr;
	struct rnic_qp *qp;
	uint8_t buf[4096];
};

static struct extra x, y;

static struct verbs_config
card(unsigned n, bool iwarp)
{
	struct verbs_config c = config(n);
	struct sockaddr_in *sin = (struct sockaddr_in *)(void *)&c.addr;

	c.connect_ms = 30000;
	if (!iwarp)
		return c;
	memset(&c.gid, 0, sizeof(c.gid));
	sin->sin_family = AF_INET;
	sin->sin_addr.s_addr = htonl(0x0a000001u | n << 8);
	return c;
}

static void
begin(bool iwarp)
{
	struct verbs_config ca = card(0, iwarp), cb = card(1, iwarp);

	setup();
	if (iwarp) {
		fake_make_iwarp(&fake.devs[0]);
		fake_make_iwarp(&fake.devs[1]);
	}
	end_open(&a, &ca);
	end_open(&b, &cb);
	connect_ends();
}

static void
finish(void)
{
	end_close(&a);
	end_close(&b);
	fake_check_clean();
}

static void
old_link_lives(void)
{
	unsigned wcs = a.wc_cnt;

	ck_assert_uint_eq(a.errors + b.errors, 0);
	post_recv(&b, 7, 0, 64);
	post(&a, RNIC_WR_SEND, 8, RNIC_SIGNALED | RNIC_INLINE, 0, 44, &b, 0);
	a.dev->ops->fence(a.qp);
	UNTIL(a.wc_cnt == wcs + 1);
	check_wc(&a, wcs, 8, RNIC_WC_SEND, RNIC_WC_OK);
}

/* -- the second link -- */

static int
extra_new(struct extra *e, struct rnic_dev *dev)
{
	const struct rnic_qp_attr attr = { .ctx = e, .sq_depth = 8, .rq_depth = 8, .token = 9 };
	int rc;

	*e = (struct extra){ .dev = dev };
	rc = dev->ops->pd_alloc(dev, &e->pd);
	if (rc == 0)
		rc = dev->ops->mr_reg(e->pd, e->buf, sizeof(e->buf), RNIC_ACCESS_REMOTE_WRITE, &e->mr);
	if (rc == 0)
		rc = dev->ops->qp_create(e->pd, &attr, &e->qp);
	ck_assert(rc == 0 || rc == -ENOMEM);
	return rc;
}

static void
extra_free(struct extra *e)
{
	if (e->mr != NULL)
		e->dev->ops->mr_dereg(e->mr);
	if (e->pd != NULL)
		e->dev->ops->pd_free(e->pd);
	*e = (struct extra){ 0 };
}

static struct rnic_remote
address(const struct extra *e)
{
	struct rnic_info info = rnic_query(e->dev);

	return (struct rnic_remote){ .gid = info.gid,
		.qpn = e->qp->qpn,
		.psn = e->qp->psn,
		.mtu_code = info.mtu_code,
		.mpa_port = info.mpa_port };
}

/* 0 and connected, or it says why not: by a number, or by an event. */
static int
extra_link(void)
{
	unsigned connected = a.connected + b.connected;
	struct rnic_remote rx, ry;
	int rc = extra_new(&x, a.dev);

	if (rc == 0)
		rc = extra_new(&y, b.dev);
	if (rc < 0)
		return rc;
	rx = address(&x);
	ry = address(&y);
	rc = y.dev->ops->qp_expect(y.qp);
	if (rc == 0)
		rc = x.dev->ops->qp_connect(x.qp, RNIC_ACTIVE, &ry);
	if (rc == 0)
		rc = y.dev->ops->qp_connect(y.qp, RNIC_PASSIVE, &rx);
	if (rc < 0)
		return rc;
	UNTIL(a.connected + b.connected == connected + 2 || a.failed + b.failed > 0);
	return a.failed + b.failed > 0 ? -ECONNREFUSED : 0;
}

static void
made_or_told(bool iwarp)
{
	for (struct sweep s = { 0 }; sweep_next(&s);) {
		int rc;

		begin(iwarp);
		sweep_arm(&s);
		rc = extra_link();
		if (!sweep_over(&s))
			ck_assert_int_eq(rc, 0);
		if (x.qp != NULL)
			a.dev->ops->qp_destroy(x.qp);
		if (y.qp != NULL)
			b.dev->ops->qp_destroy(y.qp);
		UNTIL(rnic_query(a.dev).qp_cnt == 1 && rnic_query(b.dev).qp_cnt == 1);
		extra_free(&x);
		extra_free(&y);
		old_link_lives();
		finish();
		ck_assert(rc == 0 || s.nth > 0);
	}
}

START_LOOP_TEST(a_link_is_made_or_says_why_not, 0, 2)
{
	made_or_told(_i == 1);
}

START_LOOP_TEST(a_card_does_not_open, 0, 2)
{
	bool iwarp = _i == 1;
	struct sweep s = { 0 };

	while (sweep_next(&s)) {
		struct verbs_config c = card(0, iwarp);
		struct rnic_dev *dev = NULL;
		struct poll_loop loop;
		struct rnic_loop l;
		const char *why = NULL;
		int rc;

		setup();
		if (iwarp)
			fake_make_iwarp(&fake.devs[0]);
		poll_loop_init(&loop);
		l = poll_loop_rnic(&loop);
		sweep_arm(&s);
		rc = verbs_open(&c, &l, &rng, &dev, &why);
		if (sweep_over(&s)) {
			ck_assert_int_eq(rc, -ENOMEM);
			ck_assert_str_eq(why, "memory");
		} else {
			ck_assert_int_eq(rc, 0);
		}
		if (rc == 0)
			rnic_end(dev);
		fake_check_clean();
		poll_loop_fini(&loop);
	}
	ck_assert_uint_gt(s.nth, 1);
}

START_TEST(cards_are_listed_or_not)
{
	struct sweep s = { 0 };

	while (sweep_next(&s)) {
		struct verbs_port *ports = NULL;
		const char *why = NULL;
		unsigned cnt = 0;
		int rc;

		setup();
		sweep_arm(&s);
		rc = verbs_list(&ports, &cnt, &why);
		/* A card that could not be asked is left out, when others could. */
		if (!sweep_over(&s))
			ck_assert(rc == 0 && cnt == 2);
		ck_assert(rc == 0 ? cnt > 0 && cnt <= 2 : rc == -ENOMEM && why != NULL);
		if (rc == 0)
			free(ports);
		fake_check_clean();
	}
	ck_assert_uint_gt(s.nth, 1);
}
