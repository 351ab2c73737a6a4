/* Which target a connection gets, by policy, and what becomes of targets that fail: with time handed in. */
#include <stdio.h>
#include <string.h>

#include "base/addr.h"
#include "daemon/target/endpoints.h"
#include "unit.h"
#include "tests/seeded_rng.h"

#define S INT64_C(1000000000)

static struct endpoints es;
static struct rng rng;
static int64_t now;
static uint64_t tried;

static void
setup(void)
{
	es = (struct endpoints){ .policy = CONFIG_POLICY_FIRST };
	rng_init_seeded(&rng, 1);
	now = 1000 * S;
	tried = 0;
}
UNIT_FIXTURE(setup, NULL);

/* Target `target` has the addresses 10.0.TARGET.N, for each N of the text. */
static void
have(unsigned target, const char *numbers)
{
	struct target_addr addrs[16] = { { .priority = 0 } };
	unsigned cnt = 0;

	for (; numbers[cnt] != '\0'; cnt++) {
		char text[32];

		snprintf(text, sizeof(text), "10.0.%u.%c:80", target, numbers[cnt]);
		ck_assert_int_eq(addr_parse_port(text, &addrs[cnt].ss), 0);
	}
	ck_assert_uint_eq(endpoints_set(&es, target, false, addrs, cnt), cnt);
}

static struct endpoint_pick picked;

/* The next one of the connection, "TARGET.N"; "" when there is none. */
static const char *
next(void)
{
	static char text[32];
	char addr[ADDR_STR_MAX];

	if (!endpoints_pick(&es, now, &rng, &tried, &picked))
		return "";
	snprintf(text, sizeof(text), "%s", addr_format(&picked.addr, addr, sizeof(addr)) + strlen("10.0."));
	return text;
}

static const char *
first(void)
{
	tried = 0;
	return next();
}

static bool
fails(void)
{
	return endpoints_bad(&es, &picked, ENDPOINT_CONNECT, "refused", now, now + 10 * S, 0);
}

static struct endpoint *
at(unsigned place)
{
	return &es.at[place];
}

START_TEST(first_goes_through_targets_and_addresses_in_order)
{
	have(0, "12");
	have(1, "3");
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_str_eq(first(), "0.1");
		ck_assert_str_eq(next(), "0.2");
		ck_assert_str_eq(next(), "1.3");
		ck_assert_str_eq(next(), "");
	}
}

START_TEST(spread_takes_turns)
{
	unsigned cnt[3][10] = { { 0 } };

	es.policy = CONFIG_POLICY_SPREAD;
	have(0, "1");
	have(1, "12");
	have(2, "1");
	for (unsigned i = 0; i < 60; i++) {
		const char *got = first();
		cnt[got[0] - '0'][got[2] - '0']++;
	}
	ck_assert_uint_eq(cnt[0][1], 20);
	ck_assert_uint_eq(cnt[2][1], 20);
	ck_assert_uint_eq(cnt[1][1] + cnt[1][2], 20);
	ck_assert_uint_gt(cnt[1][1], 0);
	ck_assert_uint_gt(cnt[1][2], 0);
}

START_TEST(each_address_is_tried_once)
{
	es.policy = CONFIG_POLICY_SPREAD;
	have(0, "123");
	have(1, "12");
	uint64_t seen = 0;
	(void)first();
	for (unsigned i = 0; i < 5; i++) {
		ck_assert_uint_eq(seen & UINT64_C(1) << picked.place, 0);
		seen |= UINT64_C(1) << picked.place;
		ck_assert_int_eq(next()[0] == '\0', i == 4);
	}
}

START_TEST(a_failed_target_is_passed_over_until_it_is_good)
{
	have(0, "1");
	have(1, "1");
	(void)first();
	ck_assert(fails());
	ck_assert(!fails()); /* no news */
	ck_assert_str_eq(first(), "1.1");
	ck_assert_str_eq(next(), "0.1"); /* the last resort */
	ck_assert_uint_eq(at(0)->failures, 2);
	ck_assert_uint_eq(at(0)->passed_over, 1);
	ck_assert_uint_eq(at(1)->passed_over, 0);
	ck_assert(endpoints_good(&es, &picked, false));
	ck_assert(!endpoints_good(&es, &picked, false));
	ck_assert_str_eq(first(), "0.1");
	ck_assert_uint_eq(at(0)->connections, 2);
}

START_TEST(with_spread_the_others_share_what_a_failed_one_would_get)
{
	unsigned cnt[3] = { 0 };

	es.policy = CONFIG_POLICY_SPREAD;
	have(0, "1");
	have(1, "1");
	have(2, "1");
	while (strcmp(first(), "1.1") != 0)
		continue;
	(void)fails();
	for (unsigned i = 0; i < 40; i++)
		cnt[first()[0] - '0']++;
	ck_assert_uint_eq(cnt[0], 20);
	ck_assert_uint_eq(cnt[1], 0);
	ck_assert_uint_eq(cnt[2], 20);
	ck_assert_uint_eq(at(1)->passed_over, 40);
}

START_TEST(when_all_have_failed_all_are_tried)
{
	have(0, "1");
	have(1, "1");
	(void)first();
	(void)fails();
	(void)next();
	(void)fails();
	ck_assert(!endpoints_have_other(&es, 0));
	ck_assert_str_eq(first(), "0.1");
	ck_assert_str_eq(next(), "1.1");
	ck_assert_str_eq(next(), "");
	ck_assert_uint_eq(at(0)->passed_over, 0);
}

START_TEST(a_look_is_due_after_a_while_and_makes_it_good)
{
	struct endpoint_pick due;
	int64_t at_ns;

	have(0, "1");
	have(1, "1");
	ck_assert(!endpoints_due(&es, 0, now, &due, &at_ns));
	ck_assert_int_eq(at_ns, INT64_MAX);
	(void)first();
	(void)fails();
	ck_assert(!endpoints_due(&es, 0, now, &due, &at_ns));
	ck_assert_int_eq(at_ns, now + 10 * S);
	now = at_ns;
	ck_assert(!endpoints_due(&es, 1, now, &due, &at_ns)); /* another worker's business */
	ck_assert_int_eq(at_ns, INT64_MAX);
	ck_assert(endpoints_due(&es, 0, now, &due, &at_ns));
	ck_assert(!endpoints_looked(&es, &due, false, now + 10 * S));
	ck_assert_str_eq(first(), "1.1");
	ck_assert(!endpoints_due(&es, 0, now, &due, &at_ns));
	now += 10 * S;
	ck_assert(endpoints_due(&es, 0, now, &due, &at_ns));
	ck_assert(endpoints_looked(&es, &due, true, now + 10 * S));
	ck_assert_str_eq(first(), "0.1");
	ck_assert(!endpoints_due(&es, 0, now + 100 * S, &due, &at_ns));
	ck_assert_int_eq(at_ns, INT64_MAX);
}

START_TEST(an_operator_has_it_looked_at_at_once)
{
	struct sockaddr_storage peer;
	struct endpoint_pick due;
	int64_t at_ns;

	have(0, "1");
	have(1, "1");
	have(2, "1");
	(void)first();
	(void)fails();
	peer = picked.addr;
	ck_assert_str_eq(next(), "1.1");
	ck_assert_uint_eq(endpoints_retry_now(&es, 1, NULL, now), 0); /* another worker's */
	addr_set_port(&peer, (uint16_t)(addr_port(&peer) ^ 1));
	ck_assert_uint_eq(endpoints_retry_now(&es, 0, &peer, now), 0);
	ck_assert(!endpoints_due(&es, 0, now, &due, &at_ns));
	addr_set_port(&peer, 0);
	ck_assert_uint_eq(endpoints_retry_now(&es, 0, &peer, now), 1);
	ck_assert(endpoints_due(&es, 0, now, &due, &at_ns));
	ck_assert(addr_same_host(&due.addr, &peer));
	ck_assert(!endpoints_looked(&es, &due, false, now + 10 * S));
	ck_assert(!endpoints_due(&es, 0, now, &due, &at_ns));
	ck_assert_uint_eq(endpoints_retry_now(&es, 0, NULL, now), 1);
	ck_assert(endpoints_due(&es, 0, now, &due, &at_ns));
	ck_assert(endpoints_looked(&es, &due, true, now + 10 * S));
	ck_assert_uint_eq(endpoints_retry_now(&es, 0, NULL, now), 0); /* it has not failed */
}

START_TEST(a_gateway_that_answers_gets_one_connection_to_find_out)
{
	struct endpoint_pick due;
	int64_t at_ns;

	have(0, "1");
	have(1, "1");
	(void)first();
	ck_assert(endpoints_bad(&es, &picked, ENDPOINT_SETUP, "reset", now, now + 10 * S, 0));
	/* A TCP connection proves nothing. */
	ck_assert(!endpoints_good(&es, &picked, false));
	ck_assert_str_eq(first(), "1.1");
	now += 10 * S;
	ck_assert(endpoints_due(&es, 0, now, &due, &at_ns));
	ck_assert(!endpoints_looked(&es, &due, true, now + 10 * S));
	ck_assert(!endpoints_due(&es, 0, now + 20 * S, &due, &at_ns)); /* that it can be connected is known */
	ck_assert_str_eq(first(), "0.1");
	struct endpoint_pick trial = picked;
	ck_assert_str_eq(first(), "1.1");
	ck_assert(!endpoints_good(&es, &trial, false));
	ck_assert(endpoints_good(&es, &trial, true));
	ck_assert_str_eq(first(), "0.1");
}

START_TEST(a_single_address_is_never_looked_at)
{
	struct endpoint_pick due;
	int64_t at_ns;

	have(0, "1");
	(void)first();
	(void)fails();
	ck_assert(!endpoints_due(&es, 0, now + 100 * S, &due, &at_ns));
	ck_assert_int_eq(at_ns, INT64_MAX);
	ck_assert_str_eq(first(), "0.1");
}

/* Its worker may have lost it, by a reload. */
/* Where clients are kept away nobody else finds out that it is back. */
START_TEST(a_single_address_is_looked_at_where_clients_are_kept_away)
{
	int64_t at_ns;

	es.watched = true;
	ck_assert(endpoints_down(&es));
	have(0, "1");
	ck_assert(!endpoints_down(&es));
	ck_assert_str_eq(first(), "0.1");
	ck_assert(endpoints_bad(&es, &picked, ENDPOINT_CONNECT, "refused", now, now + 10 * S, 3));
	ck_assert(endpoints_down(&es));
	ck_assert(!endpoints_due(&es, 3, now, &picked, &at_ns));
	ck_assert_int_eq(at_ns, now + 10 * S);
	now += 10 * S;
	ck_assert(endpoints_due(&es, 3, now, &picked, &at_ns));
	ck_assert(endpoints_looked(&es, &picked, true, now + 10 * S));
	ck_assert(!endpoints_down(&es));
}

START_TEST(a_gateway_that_answers_is_down_but_for_one_connection)
{
	es.watched = true;
	have(0, "1");
	ck_assert_str_eq(first(), "0.1");
	ck_assert(endpoints_bad(&es, &picked, ENDPOINT_SETUP, "reset", now, now + 10 * S, 3));
	ck_assert(endpoints_down(&es));
	ck_assert(!endpoints_looked(&es, &picked, true, now + 20 * S));
	ck_assert(!endpoints_down(&es));
	ck_assert_str_eq(first(), "0.1");
	ck_assert(endpoints_down(&es));
	ck_assert(endpoints_good(&es, &picked, true));
	ck_assert(!endpoints_down(&es));
}

START_TEST(a_failed_one_without_probes_gets_a_connection_after_a_while)
{
	have(0, "1");
	have(1, "1");
	(void)first();
	(void)fails();
	now += 70 * S;
	ck_assert_str_eq(first(), "1.1");
	now += S;
	ck_assert_str_eq(first(), "0.1");
	ck_assert_str_eq(first(), "1.1");
}

START_TEST(addresses_that_stay_keep_what_is_known_of_them)
{
	have(0, "12");
	(void)first();
	(void)fails();
	struct endpoint_pick old = picked;
	have(0, "321");
	ck_assert_uint_eq(endpoints_count(&es), 3);
	ck_assert_str_eq(first(), "0.3");
	ck_assert_str_eq(next(), "0.2");
	ck_assert_str_eq(next(), "0.1");
	have(0, "4");
	ck_assert_uint_eq(endpoints_count(&es), 1);
	ck_assert_str_eq(first(), "0.4");
	/* What a connection says of one that is gone, whose place another one may have, counts for nobody. */
	ck_assert(!endpoints_good(&es, &old, true));
	ck_assert(!endpoints_bad(&es, &old, ENDPOINT_CONNECT, "", now, now, 0));
	ck_assert(!endpoints_looked(&es, &old, true, now));
	ck_assert_uint_eq(at(picked.place)->failures, 0);
}

START_TEST(an_address_belongs_to_one_target)
{
	struct target_addr a = { .priority = 0 };

	have(0, "1");
	ck_assert_int_eq(addr_parse_port("10.0.0.1:80", &a.ss), 0);
	ck_assert_uint_eq(endpoints_set(&es, 1, false, &a, 1), 0);
	ck_assert_uint_eq(endpoints_count(&es), 1);
}

START_TEST(what_has_no_room_is_left_out)
{
	for (unsigned t = 0; t < 16; t++) {
		struct target_addr addrs[16] = { { .priority = 0 } };

		for (unsigned i = 0; i < 16; i++) {
			char text[32];

			snprintf(text, sizeof(text), "10.0.%u.%u:80", t, i + 1);
			ck_assert_int_eq(addr_parse_port(text, &addrs[i].ss), 0);
		}
		ck_assert_uint_eq(endpoints_set(&es, t, false, addrs, 16), t < 4 ? 16 : 0);
	}
	ck_assert_uint_eq(endpoints_count(&es), ENDPOINTS_MAX);
	unsigned cnt = 0;
	for (const char *got = first(); got[0] != '\0'; got = next())
		cnt++;
	ck_assert_uint_eq(cnt, ENDPOINTS_MAX);
}

/* Records of SRV: N has this priority and weight. */
static void
have_srv(unsigned cnt, const uint16_t priority[], const uint16_t weight[])
{
	struct target_addr addrs[8] = { { .priority = 0 } };

	for (unsigned i = 0; i < cnt; i++) {
		char text[32];

		snprintf(text, sizeof(text), "10.0.0.%u:80", i);
		ck_assert_int_eq(addr_parse_port(text, &addrs[i].ss), 0);
		addrs[i].priority = priority[i];
		addrs[i].weight = weight[i];
	}
	ck_assert_uint_eq(endpoints_set(&es, 0, true, addrs, cnt), cnt);
}

START_LOOP_TEST(srv_weights_count_within_the_best_priority, CONFIG_POLICY_FIRST, CONFIG_POLICY_SPREAD + 1)
{
	static const uint16_t priority[] = { 10, 10, 10, 20 }, weight[] = { 30, 10, 0, 65535 };
	unsigned cnt[4] = { 0 };

	es.policy = _i;
	have_srv(4, priority, weight);
	for (unsigned i = 0; i < 4000; i++)
		cnt[first()[2] - '0']++;
	ck_assert_uint_gt(cnt[0], 2800);
	ck_assert_uint_lt(cnt[0], 3200);
	ck_assert_uint_gt(cnt[1], 800);
	ck_assert_uint_lt(cnt[2], 20);
	ck_assert_uint_eq(cnt[3], 0);
	/* The other ones first, then the next priority. */
	(void)first();
	for (unsigned i = 0; i < 2; i++)
		ck_assert_str_ne(next(), "0.3");
	ck_assert_str_eq(next(), "0.3");
}

START_TEST(a_lower_srv_priority_serves_while_the_best_has_failed)
{
	static const uint16_t priority[] = { 1, 2 }, weight[] = { 1, 1 };

	have_srv(2, priority, weight);
	ck_assert_str_eq(first(), "0.0");
	(void)fails();
	ck_assert_str_eq(first(), "0.1");
	ck_assert_uint_eq(at(0)->passed_over, 1);
}

START_TEST(all_weights_of_0_are_alike)
{
	static const uint16_t priority[] = { 1, 1 }, weight[] = { 0, 0 };
	unsigned cnt[2] = { 0 };

	have_srv(2, priority, weight);
	for (unsigned i = 0; i < 1000; i++)
		cnt[first()[2] - '0']++;
	ck_assert_uint_gt(cnt[0], 400);
	ck_assert_uint_gt(cnt[1], 400);
}

static void
probed(unsigned place, enum health_state state, bool up_serves)
{
	const struct health h = { .state = state };

	endpoints_probed(&es, &es.at[place].addr, &h, up_serves);
}

START_TEST(a_target_that_is_down_is_passed_over_without_an_attempt)
{
	have(0, "1");
	have(1, "1");
	probed(0, HEALTH_DOWN, true);
	ck_assert_str_eq(first(), "1.1");
	ck_assert_uint_eq(at(0)->passed_over, 1);
	ck_assert(!endpoints_down(&es));
	ck_assert_str_eq(next(), "0.1"); /* the last resort */
	probed(1, HEALTH_DOWN, true);
	ck_assert(endpoints_down(&es));
	ck_assert_str_eq(first(), "0.1");
	ck_assert(!endpoints_have_other(&es, tried));
	/* What is not known to be down is used. */
	probed(1, HEALTH_HELD_OFF, true);
	ck_assert_str_eq(first(), "1.1");
	probed(0, HEALTH_UNKNOWN, true);
	ck_assert_str_eq(first(), "0.1");
	ck_assert(endpoints_have_other(&es, tried));
}

/* What a connection found ends when a probe proves the opposite. */
START_LOOP_TEST(a_target_that_is_up_has_no_fault, 0, 2)
{
	have(0, "1");
	have(1, "1");
	(void)first();
	(void)endpoints_bad(&es, &picked, _i == 0 ? ENDPOINT_CONNECT : ENDPOINT_SETUP, "why", now, now + 10 * S, 0);
	ck_assert_str_eq(first(), "1.1");
	probed(0, HEALTH_UP, false);
	ck_assert_int_eq(at(0)->fault, _i == 0 ? ENDPOINT_OK : ENDPOINT_SETUP);
	ck_assert_int_eq(at(0)->trial, _i == 1); /* a gateway is there; whether its server is, a client shows */
	probed(0, HEALTH_UP, true);
	ck_assert_int_eq(at(0)->fault, ENDPOINT_OK);
	ck_assert_str_eq(first(), "0.1");
}

START_TEST(an_address_that_is_gone_has_no_health)
{
	struct sockaddr_storage other;

	have(0, "1");
	ck_assert_int_eq(addr_parse_port("192.0.2.1:1", &other), 0);
	endpoints_probed(&es, &other, &(struct health){ .state = HEALTH_DOWN }, true);
	ck_assert_str_eq(first(), "0.1");
	probed(0, HEALTH_DOWN, true);
	have(0, "2");
	ck_assert_int_eq(at(0)->health.state, HEALTH_NONE);
}

START_LOOP_TEST(a_backup_is_used_while_no_other_works, 0, 2)
{
	es.policy = _i == 0 ? CONFIG_POLICY_FIRST : CONFIG_POLICY_SPREAD;
	es.backups = 1 << 0;
	have(0, "1");
	have(1, "1");
	for (unsigned i = 0; i < 4; i++)
		ck_assert_str_eq(first(), "1.1");
	ck_assert_uint_eq(at(0)->passed_over, 0);
	ck_assert_str_eq(next(), "0.1"); /* of the same connection */
	probed(1, HEALTH_DOWN, true);
	ck_assert_str_eq(first(), "0.1");
	probed(0, HEALTH_DOWN, true);
	ck_assert_str_eq(first(), "1.1");
	probed(1, HEALTH_UP, true);
	ck_assert_str_eq(first(), "1.1");
}
