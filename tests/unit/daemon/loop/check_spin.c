/* When the loop polls before it sleeps, by a clock of the test's. */
#include "daemon/loop/spin.h"

#include <stdbool.h>

#include "unit.h"

#define US 1000LL
#define MAX (100 * US)

static struct spin spin;
static int64_t now;

static void
setup(void)
{
	now = 5000000 * US;
	spin = (struct spin){ .max_ns = 0 };
	spin_init(&spin, MAX, now);
}

static void
teardown(void)
{
}

/* A wait of so long, after a turn of 20 us. True: it began by polling. */
static bool
wait_for(int64_t ns)
{
	now += 20 * US;
	int64_t from = now, may = spin_begin(&spin, now);

	ck_assert(may == 0 || may == spin.max_ns);
	now += ns;
	if (may > 0)
		spin_ended(&spin, from, ns < may ? now : from + may, ns < may ? SPIN_HIT : SPIN_MISS);
	spin_waited(&spin, from, now);
	return may > 0;
}

static unsigned
waits(unsigned cnt, int64_t ns)
{
	unsigned polled = 0;

	while (cnt-- > 0)
		polled += wait_for(ns);
	return polled;
}

UNIT_FIXTURE(setup, teardown);

START_TEST(short_waits_are_polled_after_a_few)
{
	ck_assert_uint_eq(waits(3, 30 * US), 0);
	waits(100, 30 * US);
	ck_assert_uint_eq(waits(100, 30 * US), 100);
	ck_assert_uint_eq(spin.ctr.hits, spin.ctr.spins);
	ck_assert_uint_eq(spin.ctr.spun_us, spin.ctr.spins * 30);
}

START_TEST(long_waits_are_not)
{
	ck_assert_uint_eq(waits(1000, 150 * US), 0);
	ck_assert_uint_eq(spin.ctr.spins, 0);
	ck_assert_uint_eq(spin.ctr.spun_us, 0);
}

START_TEST(an_idle_loop_does_it_a_few_times_and_no_more)
{
	waits(200, 30 * US);
	ck_assert_uint_le(waits(10000, 5000 * US), 3);
	ck_assert_uint_eq(spin.ctr.spins - spin.ctr.hits, 2);
}

/* Now and then an event comes quickly, among timers. */
START_TEST(one_request_now_and_then_is_idle)
{
	waits(20, 5000 * US);
	for (unsigned i = 0; i < 1000; i++) {
		ck_assert(!wait_for(30 * US));
		ck_assert(!wait_for(5000 * US));
	}
}

/* Waits whose average is short, and every third one too long. */
START_TEST(unsuccessful_polling_is_bounded)
{
	int64_t from, vain = 0;

	waits(100, 10 * US);
	from = now;
	for (unsigned i = 0; i < 10000; i++) {
		waits(2, 10 * US);
		vain += wait_for(200 * US) ? MAX : 0;
	}
	ck_assert_int_gt(vain, 0);
	ck_assert_int_le(vain, (now - from) / 10 + 20 * MAX);
}

START_TEST(it_stops_for_a_while_when_others_want_the_processor)
{
	waits(200, 10 * US);
	now += 20 * US;
	ck_assert_int_gt(spin_begin(&spin, now), 0);
	spin_ended(&spin, now, now + 50 * US, SPIN_WANTED);
	ck_assert_uint_eq(spin.ctr.wanted, 1);
	now += 50 * US;
	for (int64_t until = now + 9900 * US; now < until;)
		ck_assert(!wait_for(10 * US));
	waits(10, 10 * US);
	ck_assert(wait_for(10 * US));
}

START_TEST(zero_is_never)
{
	spin_init(&spin, 0, now);
	ck_assert_uint_eq(waits(1000, 0), 0);
	ck_assert_uint_eq(waits(1000, 10 * US), 0);
}

START_TEST(another_time_is_kept_to_at_once)
{
	waits(200, 30 * US);
	uint64_t spins = spin.ctr.spins;

	ck_assert_uint_gt(spins, 0);
	spin_init(&spin, 10 * US, now);
	ck_assert_uint_eq(waits(200, 30 * US), 0);
	ck_assert_uint_eq(spin.ctr.spins, spins);
}
