/* Samples of the last ten minutes: a step is closed by the first turn of a later one, steps without a turn were quiet, and rings are
 * bounded in length and number. */
#include "daemon/account/history.h"

#include "gateway.h"
#include "unit.h"

static struct history ring;

static void
setup(void)
{
	ring = (struct history){ .end = 0 };
	gw_setup();
}

static void
teardown(void)
{
	gw_hang_up(&client);
	gw_hang_up(&server);
	gw_stop();
}

UNIT_FIXTURE(setup, teardown);

/* -- a ring -- */

static void
put(int64_t step, uint32_t smcr, uint32_t accepted)
{
	const struct history_sample s = {
		.bytes = { 10, 20 }, .modes = { [SESSION_SMCR] = smcr }, .accepted = accepted, .rtt_us = 9
	};

	history_put(&ring, step, &s);
}

static void
expect(int64_t step, uint32_t smcr, uint32_t accepted, uint64_t bytes)
{
	const struct history_sample s = history_get(&ring, step);

	ck_assert_uint_eq(s.modes[SESSION_SMCR], smcr);
	ck_assert_uint_eq(s.accepted, accepted);
	ck_assert_uint_eq(s.bytes[0], bytes);
	ck_assert_uint_eq(s.rtt_us, smcr > 0 ? 9 : 0);
}

START_TEST(steps_without_a_sample_were_quiet)
{
	put(1000, 3, 4);
	put(1003, 5, 6);
	expect(999, 0, 0, 0);
	expect(1000, 3, 4, 10);
	expect(1001, 3, 0, 0);
	expect(1002, 3, 0, 0);
	expect(1003, 5, 6, 10);
	expect(1004, 5, 0, 0);
	expect(5000, 5, 0, 0);
}

START_TEST(a_ring_keeps_so_many_steps_and_no_more)
{
	for (unsigned i = 0; i < HISTORY_SAMPLES + 1; i++)
		put(1000 + i, i, i);
	expect(1000, 0, 0, 0);
	expect(1001, 1, 1, 10);
	expect(1000 + HISTORY_SAMPLES, HISTORY_SAMPLES, HISTORY_SAMPLES, 10);
}

/* Shorter than the ring, as long, longer, very long. */
START_LOOP_TEST(a_gap_of_any_length_is_filled, 0, 4)
{
	static const int64_t gaps[] = { HISTORY_SAMPLES - 1, HISTORY_SAMPLES, HISTORY_SAMPLES + 1, INT64_C(1) << 40 };

	for (unsigned i = 0; i < HISTORY_SAMPLES; i++)
		put(1000 + i, 7, 1);
	const int64_t end = 1000 + HISTORY_SAMPLES + gaps[_i];
	put(end, 8, 2);
	expect(end, 8, 2, 10);
	for (unsigned i = 1; i < HISTORY_SAMPLES - 1; i++)
		expect(end - i, 7, 0, 0);
	expect(end - HISTORY_SAMPLES + 1, 7, gaps[_i] == HISTORY_SAMPLES - 2, 0);
}

START_TEST(workers_add_up_but_for_the_round_trip)
{
	struct history_sample sum = { { 1, 2 }, { 3, 4, 5 }, 6, 7, 8 };
	const struct history_sample one = { { 10, 20 }, { 30, 40, 50 }, 60, 70, 5 };
	const struct history_sample want = { { 11, 22 }, { 33, 44, 55 }, 66, 77, 8 };

	history_add(&sum, &one);
	ck_assert_mem_eq(&sum, &want, sizeof(want));
}

/* -- of services -- */

#define FAR INT64_C(1000000) /* steps; the clock of the worker's turns does not come there */

static int64_t now;

static void
turn_at(int64_t step)
{
	now = step;
	history_follow(gw_pool(GW_IN), step * HISTORY_STEP_NS + 7);
}

static struct service *
service_of(int i)
{
	return service_find(gw_pool(i), gw.svc[i].kind, gw.svc[i].name);
}

static struct history_sample
last_of(int i)
{
	ck_assert_ptr_nonnull(service_of(i)->history);
	return history_get(service_of(i)->history, now - 1);
}

START_TEST(a_connection_is_in_the_samples_of_its_service_and_of_all)
{
	fake.rtt_ns = 3000000;
	gw_start();
	turn_at(FAR);
	gw_connect();
	turn_at(FAR + 1);
	for (int i = 0; i < GW_SERVICES; i++) {
		const struct history_sample s = last_of(i), want = { { 4, 4 }, { [SESSION_SMCR] = 1 }, 1, 0, 1500 };

		ck_assert_mem_eq(&s, &want, sizeof(want));
	}
	const struct history_sample all = history_get(&gw_pool(GW_IN)->history.all, FAR);
	const struct history_sample want = { { 8, 8 }, { [SESSION_SMCR] = 2 }, 2, 0, 3000 };
	ck_assert_mem_eq(&all, &want, sizeof(want));
	/* The next step has a turn, and nothing else. */
	turn_at(FAR + 2);
	ck_assert_uint_eq(last_of(GW_IN).accepted, 0);
	ck_assert_uint_eq(last_of(GW_IN).bytes[0], 0);
	ck_assert_uint_eq(last_of(GW_IN).modes[SESSION_SMCR], 1);
	gw_hang_up(&client);
	gw_hang_up(&server);
	UNTIL(gw_sessions() == 0);
	turn_at(FAR + 4);
	ck_assert_uint_eq(history_get(service_of(GW_IN)->history, FAR + 1).modes[SESSION_SMCR], 1);
	ck_assert_uint_eq(history_get(service_of(GW_IN)->history, FAR + 2).modes[SESSION_SMCR], 0);
	ck_assert_uint_eq(last_of(GW_IN).rtt_us, 0);
}

/* Each kind of refusal counts. */
START_TEST(refused_connections_are_in_the_samples)
{
	gw_start();
	turn_at(FAR);
	struct service_info *c = &service_of(GW_IN)->ctr;
	uint64_t *const kinds[] = { &c->refused_allow, &c->refused_max, &c->refused_per_peer, &c->refused_connect,
		&c->refused_fallback, &c->refused_disabled, &c->refused_header };
	for (unsigned i = 0; i < 7; i++)
		*kinds[i] += 1u << i;
	turn_at(FAR + 1);
	ck_assert_uint_eq(last_of(GW_IN).refused, 127);
}

START_TEST(a_service_without_connections_has_no_ring)
{
	gw_start();
	for (int i = 0; i < 3; i++)
		turn_at(FAR + i);
	ck_assert_ptr_null(service_of(GW_IN)->history);
	ck_assert_uint_eq(gw_pool(GW_IN)->history.rings, 0);
	service_of(GW_IN)->ctr.accepted++;
	turn_at(FAR + 3);
	ck_assert_uint_eq(gw_pool(GW_IN)->history.rings, 1);
	/* Until nothing of it is left to be seen. */
	turn_at(FAR + 1 + HISTORY_SAMPLES);
	turn_at(FAR + 2 + HISTORY_SAMPLES);
	ck_assert_ptr_nonnull(service_of(GW_IN)->history);
	turn_at(FAR + 3 + HISTORY_SAMPLES);
	ck_assert_ptr_null(service_of(GW_IN)->history);
	ck_assert_uint_eq(gw_pool(GW_IN)->history.rings, 0);
}

/* When all rings are taken, the one that has not moved for a minute gives way. */
START_TEST(the_number_of_rings_is_bounded)
{
	gw_start();
	turn_at(FAR);
	service_of(GW_IN)->ctr.accepted++;
	turn_at(FAR + 1);
	gw_pool(GW_IN)->history.rings = HISTORY_SERVICES_MAX;
	service_of(GW_OUT)->ctr.accepted++;
	turn_at(FAR + 2);
	ck_assert_ptr_null(service_of(GW_OUT)->history);
	turn_at(FAR + 12);
	service_of(GW_OUT)->ctr.accepted++;
	turn_at(FAR + 13);
	ck_assert_ptr_null(service_of(GW_IN)->history);
	ck_assert_uint_eq(last_of(GW_OUT).accepted, 1);
	ck_assert_uint_eq(gw_pool(GW_IN)->history.rings, HISTORY_SERVICES_MAX);
	gw_pool(GW_IN)->history.rings = 1;
}
