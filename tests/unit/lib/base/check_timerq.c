#include "base/rng.h"
#include "base/timerq.h"
#include "unit.h"
#include "tests/seeded_rng.h"

static int fired;
static int64_t last_at, now_ns;

static void
on_fire(struct timer *t)
{
	ck_assert_int_le(t->at_ns, now_ns);
	ck_assert_int_ge(t->at_ns, last_at);
	last_at = t->at_ns;
	fired++;
}

START_TEST(fires_in_order_and_only_when_due)
{
	enum { N = 500 };
	static struct timer t[N];
	struct timerq q;
	struct rng r;

	rng_init_seeded(&r, 7);
	timerq_init(&q);
	ck_assert_int_eq(timerq_reserve(&q, N), 0);
	fired = 0;
	last_at = 0;
	for (int i = 0; i < N; i++) {
		timer_init(&t[i], on_fire);
		timer_arm(&q, &t[i], rng_below(&r, 1000));
	}
	for (int i = 0; i < N; i += 3)
		timer_arm(&q, &t[i], rng_below(&r, 1000));
	for (int i = 0; i < N; i += 5)
		timer_cancel(&q, &t[i]);
	for (now_ns = 0; now_ns <= 1000; now_ns += 10) {
		timerq_run(&q, now_ns);
		ck_assert_int_gt(timerq_next(&q), now_ns);
	}
	ck_assert_int_eq(fired, N - N / 5);
	ck_assert_int_eq(timerq_next(&q), TIMERQ_NEVER);
	timerq_unreserve(&q, N);
	timerq_fini(&q);
}

static struct timerq self_q;
static int self_fired;

static void
rearm_now(struct timer *t)
{
	self_fired++;
	timer_arm(&self_q, t, 10);
}

START_TEST(a_timer_that_rearms_itself_does_not_hold_the_loop)
{
	struct timer t;

	timerq_init(&self_q);
	ck_assert_int_eq(timerq_reserve(&self_q, 1), 0);
	timer_init(&t, rearm_now);
	timer_arm(&self_q, &t, 5);
	timerq_run(&self_q, 10);
	ck_assert_int_eq(self_fired, 1);
	ck_assert_int_eq(timerq_next(&self_q), 10);
	timerq_fini(&self_q);
}
