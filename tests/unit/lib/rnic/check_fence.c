/* What devices share: credits of a send queue, the fence, events. */
#include "rnic/fence.h"

#include <errno.h>

#include "rnic/events.h"
#include "unit.h"

#define MS 1000000

static struct rnic_dev dev;
static struct timerq timers;
static struct sendq sq;
static struct fence fence;
static unsigned delayed, silent;

static void
on_delay(struct timer *t)
{
	(void)t;
	delayed++;
}

static void
on_silence(struct timer *t)
{
	(void)t;
	silent++;
}

/* Positions begin just before they wrap. */
static void
setup(void)
{
	const uint32_t from = UINT32_MAX - 2;

	dev = (struct rnic_dev){ .now_ns = 1000 * MS };
	timerq_init(&timers);
	ck_assert_int_eq(timerq_reserve(&timers, FENCE_TIMERS), 0);
	sq = (struct sendq){ .depth = 8, .peer_depth = 4, .bytes_max = 1000, .head = from, .sent = from, .done = from };
	fence = (struct fence){ .sq = &sq,
		.dev = &dev,
		.timers = &timers,
		.delay_ms = 5,
		.answer_ms = 50,
		.read_pos = from,
		.want_pos = from,
		.sig_pos = from };
	fence_init(&fence, on_delay, on_silence);
	delayed = silent = 0;
}

static void
teardown(void)
{
	fence_stop(&fence);
	timerq_fini(&timers);
}

static struct rnic_credits
credits(void)
{
	struct rnic_credits c;

	sendq_credits(&sq, sq.head - sq.done, sq.bytes, &c);
	return c;
}

static int
post(enum rnic_wr_op op, size_t len, bool signaled)
{
	struct rnic_credits c = credits();
	int rc = sendq_take(&sq, &c, op, len);

	if (rc == 0)
		fence_posted(&fence, signaled);
	return rc;
}

UNIT_FIXTURE(setup, teardown);

START_TEST(credits_end_with_queue_receives_and_bytes)
{
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(post(RNIC_WR_SEND, 100, false), 0);
	ck_assert_uint_eq(credits().wrs, 4);
	ck_assert_uint_eq(credits().sends, 0);
	ck_assert_uint_eq(credits().bytes, 600);
	ck_assert_int_eq(post(RNIC_WR_SEND, 0, false), -ENOBUFS);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(post(RNIC_WR_WRITE, 300, false), 0);
	ck_assert_uint_eq(credits().wrs, 0);
	ck_assert_uint_eq(credits().bytes, 0);
	ck_assert_int_eq(post(RNIC_WR_WRITE, 0, false), -ENOBUFS);
	ck_assert_uint_eq(sq.head - sq.done, 8);
}

static void
give_credits(const struct rnic_qp *qp, struct rnic_credits *out)
{
	*out = *(const struct rnic_credits *)qp->ctx;
}

/* Each kind is reported once; of bytes half has to be there again. */
START_TEST(credits_that_were_used_up_are_reported)
{
	static const struct rnic_ops ops = { .credits = give_credits };
	struct rnic_dev owner = { .ops = &ops };
	struct rnic_credits c = { .wrs = 8, .sends = 4, .bytes = 1000 };
	struct rnic_qp qp = { .dev = &owner, .ctx = &c };

	ck_assert_int_eq(sendq_take(&sq, &c, RNIC_WR_WRITE, 1000), 0);
	c.bytes = 499;
	ck_assert(!sendq_has_more(&sq, &qp));
	c.bytes = 500;
	ck_assert(sendq_has_more(&sq, &qp));
	ck_assert(!sendq_has_more(&sq, &qp));
	c.sends = 0;
	ck_assert_int_eq(sendq_take(&sq, &c, RNIC_WR_SEND, 0), -ENOBUFS);
	ck_assert(!sendq_has_more(&sq, &qp));
	c.sends = 1;
	ck_assert(sendq_has_more(&sq, &qp));
}

START_TEST(a_signaled_request_is_fenced_after_a_while)
{
	ck_assert_int_eq(post(RNIC_WR_WRITE, 1, false), 0);
	ck_assert(!timer_armed(&fence.delay_timer));
	ck_assert_int_eq(post(RNIC_WR_WRITE, 1, true), 0);
	ck_assert_int_eq(timerq_next(&timers), dev.now_ns + 5 * MS);
	timerq_run(&timers, dev.now_ns + 5 * MS);
	ck_assert_uint_eq(delayed, 1);
	fence_want(&fence);
	ck_assert(!fence_wanted(&fence)); /* not sent yet */
	sq.sent++;
	ck_assert(!fence_wanted(&fence));
	sq.sent++;
	ck_assert(fence_wanted(&fence));
	fence_sent(&fence);
	ck_assert(!fence_wanted(&fence)); /* one at a time */
	ck_assert_int_eq(timerq_next(&timers), dev.now_ns + 50 * MS);
	/* One that is posted meanwhile needs another. */
	ck_assert_int_eq(post(RNIC_WR_WRITE, 1, true), 0);
	ck_assert(timer_armed(&fence.delay_timer));
	ck_assert_uint_eq(sq.done + 2, fence_answered(&fence));
	ck_assert(!timer_armed(&fence.answer_timer));
}

START_TEST(half_a_queue_needs_a_fence)
{
	sq.peer_depth = UINT32_MAX;
	for (unsigned i = 0; i < 5; i++) {
		ck_assert(!fence_pressed(&fence));
		ck_assert_int_eq(post(RNIC_WR_WRITE, 0, false), 0);
		sq.sent = sq.head;
	}
	ck_assert(fence_pressed(&fence));
	sq.done += 1;
	ck_assert(!fence_pressed(&fence));
	sq.peer_depth = 2;
	ck_assert_int_eq(post(RNIC_WR_SEND, 0, false), 0);
	sq.done += 4;
	sq.sent = sq.head;
	ck_assert(!fence_pressed(&fence));
	ck_assert_int_eq(post(RNIC_WR_SEND, 0, false), 0);
	ck_assert(fence_pressed(&fence));
}

START_TEST(a_silent_peer_is_noticed)
{
	ck_assert_int_eq(post(RNIC_WR_WRITE, 0, true), 0);
	sq.sent = sq.head;
	fence_sent(&fence);
	dev.now_ns += 49 * MS;
	timerq_run(&timers, dev.now_ns);
	ck_assert_uint_eq(silent, 0);
	timerq_run(&timers, dev.now_ns + MS);
	ck_assert_uint_eq(silent, 1);
}

/* The card first, then the port, down before up, then trouble, then queue pairs in turn, errors last. */
START_TEST(events_have_an_order)
{
	static const enum rnic_event_type want[] = { RNIC_EV_PORT_DOWN, RNIC_EV_PORT_UP, RNIC_EV_TROUBLE,
		RNIC_EV_CONNECTED, RNIC_EV_CREDITS, RNIC_EV_SILENT, RNIC_EV_QP_ERROR };
	struct events e;
	struct qp_events q[2];
	struct rnic_qp qp[2];
	struct rnic_event ev;

	events_init(&e, RNIC_PORT_UP);
	for (unsigned i = 0; i < 2; i++)
		qp_events_init(&q[i], &qp[i]);
	ck_assert(!events_pending(&e));
	events_add(&e, &q[0], RNIC_EV_QP_ERROR);
	events_add(&e, &q[0], RNIC_EV_CONNECTED);
	events_add(&e, &q[0], RNIC_EV_CONNECTED);
	events_add(&e, &q[0], RNIC_EV_SILENT);
	q[0].why = "broken";
	q[0].silent = true;
	events_add(&e, &q[1], RNIC_EV_CREDITS);
	e.trouble = "trouble";
	ck_assert(events_set_port(&e, RNIC_PORT_DOWN));
	ck_assert(!events_set_port(&e, RNIC_PORT_DOWN));
	ck_assert(events_set_port(&e, RNIC_PORT_UP));
	for (unsigned i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		ck_assert(events_pending(&e));
		ck_assert(events_poll(&e, &ev));
		ck_assert_int_eq(ev.type, want[i]);
		ck_assert_ptr_eq(ev.qp, i < 3 ? NULL : ev.type == RNIC_EV_CREDITS ? &qp[1] : &qp[0]);
		ck_assert_int_eq(ev.why != NULL, ev.type == RNIC_EV_TROUBLE || ev.type == RNIC_EV_QP_ERROR);
		ck_assert_int_eq(ev.silent, ev.type == RNIC_EV_QP_ERROR);
	}
	ck_assert(!events_poll(&e, &ev));
	events_add(&e, &q[0], RNIC_EV_CONNECTED);
	events_drop(&q[0]);
	ck_assert(events_set_port(&e, RNIC_PORT_DOWN));
	events_set_gone(&e);
	ck_assert(events_poll(&e, &ev));
	ck_assert_int_eq(ev.type, RNIC_EV_DEV_GONE);
	ck_assert(!events_pending(&e));
}
