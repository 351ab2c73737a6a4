/* Up or down by the results of probes, and the pauses between them. */
#include <errno.h>
#include <string.h>

#include "daemon/target/health.h"
#include "unit.h"
#include "tests/seeded_rng.h"

#define MS INT64_C(1000000)

static const struct config_probe cfg = { .interval_ms = 1000, .rise = 2, .fall = 3 };
static struct health h;
static int64_t now;

static void
setup(void)
{
	h = (struct health){ .state = HEALTH_UNKNOWN, .since_ns = 1 };
	now = 100 * MS;
}
UNIT_FIXTURE(setup, NULL);

/* The results of a text, a letter each, one per 10 ms: up, Down, held off, unknown (?). Returns the word of the state. */
static const char *
after(const char *results)
{
	for (; *results != '\0'; results++) {
		const enum health_state was = h.state;
		const enum health_state r = *results == 'u' ? HEALTH_UP
		    : *results == 'D'                       ? HEALTH_DOWN
		    : *results == 'h'                       ? HEALTH_HELD_OFF
		                                            : HEALTH_UNKNOWN;
		const char why[2] = { *results, '\0' };

		now += 10 * MS;
		ck_assert_int_eq(health_result(&h, &cfg, r, why, now), h.state != was);
		ck_assert_int_eq(h.probed_ns, now);
		if (h.state != was) {
			ck_assert_int_eq(h.since_ns, now);
			ck_assert_str_eq(h.why, why);
		}
	}
	return health_words[h.state];
}

START_TEST(the_first_result_decides)
{
	ck_assert_str_eq(after("D"), "down");
	setup();
	ck_assert_str_eq(after("u"), "up");
	setup();
	ck_assert_str_eq(after("h"), "held-off");
	setup();
	ck_assert_str_eq(after("?"), "unknown");
	ck_assert_int_eq(h.since_ns, 1);
}

START_TEST(rise_and_fall_in_a_row)
{
	ck_assert_str_eq(after("uDD"), "up");
	ck_assert_str_eq(after("uDD"), "up");
	ck_assert_str_eq(after("D"), "down");
	const int64_t since = h.since_ns;
	ck_assert_str_eq(after("uDuDu"), "down");
	ck_assert_int_eq(h.since_ns, since);
	ck_assert_str_eq(after("u"), "up");
	ck_assert_int_gt(h.since_ns, since);
}

START_TEST(what_says_nothing_of_the_server_counts_at_once)
{
	ck_assert_str_eq(after("uh"), "held-off");
	ck_assert_str_eq(after("DD"), "held-off");
	ck_assert_str_eq(after("D"), "down");
	ck_assert_str_eq(after("h"), "held-off");
	ck_assert_str_eq(after("u"), "up");
	ck_assert_str_eq(after("?"), "unknown");
	ck_assert_str_eq(after("D"), "down");
	ck_assert_str_eq(after("u?"), "unknown");
}

/* Every state and result: what it becomes is one of both, and a result in a row of 100 is the state. */
START_LOOP_TEST(each_state_and_result, HEALTH_UNKNOWN, HEALTH_STATE_CNT)
{
	for (int r = HEALTH_UNKNOWN; r < HEALTH_STATE_CNT; r++) {
		h = (struct health){ .state = (enum health_state)_i };
		(void)health_result(&h, &cfg, (enum health_state)r, "", now);
		ck_assert(h.state == (enum health_state)_i || h.state == (enum health_state)r);
		for (int i = 0; i < 100; i++)
			(void)health_result(&h, &cfg, (enum health_state)r, "", now);
		ck_assert_int_eq(h.state, r);
	}
}

START_TEST(a_long_reason_is_cut)
{
	char why[4 * HEALTH_WHY_MAX];

	memset(why, 'x', sizeof(why) - 1);
	why[sizeof(why) - 1] = '\0';
	(void)health_result(&h, &cfg, HEALTH_DOWN, why, now);
	ck_assert_uint_eq(strlen(h.why), HEALTH_WHY_MAX - 1);
}

START_TEST(pauses_are_within_a_tenth_of_the_interval)
{
	int64_t least = INT64_MAX, most = 0;
	struct rng rng;

	rng_init_seeded(&rng, 1);
	for (unsigned i = 0; i < 10000; i++) {
		int64_t ns = health_pause_ns(&cfg, &rng, false), first = health_pause_ns(&cfg, &rng, true);

		ck_assert(ns >= 900 * MS && ns <= 1100 * MS && first >= 0 && first <= 1000 * MS);
		least = ns < least ? ns : least;
		most = ns > most ? ns : most;
	}
	ck_assert(least < 910 * MS && most > 1090 * MS);
	const struct config_probe quick = { .interval_ms = 100 };
	for (unsigned i = 0; i < 1000; i++)
		ck_assert_int_le(health_pause_ns(&quick, &rng, true), 100 * MS);
}

START_TEST(words_for_a_peer)
{
	ck_assert_int_eq(health_server(ECONNREFUSED), CLC_SERVER_REFUSED);
	ck_assert_int_eq(health_server(ETIMEDOUT), CLC_SERVER_SILENT);
	ck_assert_int_eq(health_server(0), CLC_SERVER_NO_NAME);
	ck_assert_int_eq(health_server(EHOSTUNREACH), CLC_SERVER_DOWN);
}
