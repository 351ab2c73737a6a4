/* What a service's sessions come to is counted once each, and how they travel now is given up when they end. */
#include "daemon/account/service_stats.h"

#include "daemon/session/end_cause.h"
#include "gateway.h"
#include "unit.h"

#define DIAG 0x03030000u

static void
setup(void)
{
	gw_setup();
}

static void
teardown(void)
{
	gw_hang_up(&client);
	gw_hang_up(&server);
	UNTIL(gw_sessions() == 0);
	gw_stop();
}

UNIT_FIXTURE(setup, teardown);

static const struct service_stats *
stats(int service)
{
	return &service_find(gw_pool(service), gw.svc[service].kind, gw.svc[service].name)->stats;
}

static uint64_t
total(const struct histogram *h)
{
	uint64_t n = 0;

	for (unsigned i = 0; i <= HISTOGRAM_BOUNDS; i++)
		n += h->cnt[i];
	return n;
}

static void
expect_modes(int service, uint64_t setup_cnt, uint64_t smcr, uint64_t tcp)
{
	ck_assert_uint_eq(stats(service)->modes[SESSION_SETUP], setup_cnt);
	ck_assert_uint_eq(stats(service)->modes[SESSION_SMCR], smcr);
	ck_assert_uint_eq(stats(service)->modes[SESSION_TCP], tcp);
}

/* On SMC-R (0), or fallen back (1). */
START_LOOP_TEST(a_connection_is_counted_from_its_beginning_to_its_end, 0, 2)
{
	if (_i == 1)
		fake.server_declines = DIAG;
	gw_begin();
	for (int i = 0; i < GW_SERVICES; i++) {
		expect_modes(i, 0, _i == 0, _i == 1);
		ck_assert_uint_eq(total(&stats(i)->setup), 1);
		ck_assert_uint_eq(total(&stats(i)->connect), 1);
		ck_assert_uint_eq(total(&stats(i)->life), 0);
		ck_assert_uint_eq(stats(i)->bytes[WAY_FROM_APP], 4);
		ck_assert_uint_eq(stats(i)->bytes[WAY_TO_APP], 4);
	}
	gw_hang_up(&client);
	gw_hang_up(&server);
	UNTIL(gw_sessions() == 0);
	for (int i = 0; i < GW_SERVICES; i++) {
		expect_modes(i, 0, 0, 0);
		ck_assert_uint_eq(total(&stats(i)->setup), 1);
		ck_assert_uint_eq(total(&stats(i)->life), 1);
		ck_assert_uint_eq(stats(i)->bytes[WAY_FROM_APP], 4);
	}
}

START_TEST(the_worker_knows_them_by_the_name_of_the_service)
{
	struct service_info info;
	struct outage_info outage;

	gw_begin();
	for (int i = 0; i < GW_SERVICES; i++) {
		ck_assert(worker_service_find(gw_worker(i), gw.svc[i].name, &info, &outage));
		ck_assert_ptr_eq(info.stats, stats(i));
	}
	ck_assert(!worker_service_find(gw.w, "none", &info, &outage));
}

/* Both ways, and not one for the other. */
START_TEST(the_bytes_of_a_service_are_reported_with_its_counters)
{
	gw_begin();
	for (int i = 0; i < GW_SERVICES; i++) {
		struct service *svc = service_find(gw_pool(i), gw.svc[i].kind, gw.svc[i].name);

		svc->stats.bytes[WAY_TO_APP] += 7;
		ck_assert_uint_eq(gw_info(i).bytes_from_app, 4);
		ck_assert_uint_eq(gw_info(i).bytes_to_app, 4 + 7);
	}
}

START_TEST(a_fallback_has_its_reason_at_both_ends)
{
	fake.server_declines = DIAG;
	gw_begin();
	ck_assert_uint_eq(stats(GW_OUT)->reasons->local.e[0].key, DIAG);
	ck_assert_uint_eq(stats(GW_OUT)->reasons->local.e[0].cnt, 1);
	ck_assert_uint_eq(stats(GW_OUT)->reasons->peer.used, 0);
	ck_assert_uint_eq(stats(GW_IN)->reasons->peer.e[0].key, DIAG);
	ck_assert_uint_eq(stats(GW_IN)->reasons->peer.e[0].cnt, 1);
	ck_assert_uint_eq(stats(GW_IN)->reasons->local.used, 0);
}

START_TEST(a_reset_has_its_cause)
{
	const struct linger at_once = { .l_onoff = 1 };

	gw_begin();
	ck_assert_ptr_null(stats(GW_IN)->reasons);
	ck_assert_int_eq(setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
	gw_hang_up(&client);
	UNTIL(gw_info(GW_IN).resets == 1);
	const struct tally_entry *e = stats(GW_IN)->reasons->reset.e;
	ck_assert_uint_eq(stats(GW_IN)->reasons->reset.used, 1);
	ck_assert_uint_eq(e[0].key, end_cause_event(SEV_APP_RESET));
	ck_assert_uint_eq(e[0].cnt, 1);
	expect_modes(GW_IN, 0, 0, 0);
}

/* Every cause has words, which differ. */
START_TEST(causes_have_words)
{
	gw_start();
	for (unsigned i = 0; i <= SEV_EVENT_CNT; i++)
		ck_assert_uint_gt(strlen(end_cause_str(CONFIG_INGRESS, i)), 0);
	ck_assert_str_eq(end_cause_str(CONFIG_INGRESS, end_cause_event(SEV_APP_RESET)), "client reset the connection");
	ck_assert_str_eq(end_cause_str(CONFIG_EGRESS, end_cause_event(SEV_APP_RESET)), "server reset the connection");
	ck_assert_str_eq(end_cause_str(CONFIG_EGRESS, end_cause_event(SEV_OPERATOR)), "closed by the operator");
	ck_assert_str_eq(end_cause_str(CONFIG_EGRESS, 0), "other");
	ck_assert_str_eq(
	    end_cause_str(CONFIG_EGRESS, end_cause_engine(SMCR_R_LINK_LOST)), smcr_reason_str(SMCR_R_LINK_LOST));
}

START_TEST(workers_are_added)
{
	struct service_reasons ours = { .reset = { .used = 0 } }, theirs = { .reset = { .used = 0 } };
	struct service_stats sum = { .modes = { 1, 2, 3 }, .bytes = { 4, 5 }, .reasons = &ours };
	const struct service_stats one = { .modes = { 1, 1, 1 },
		.bytes = { 1, 1 },
		.life = { .cnt = { 1 }, .sum = 9 },
		.reasons = &theirs },
	                           bare = { .modes = { 1, 0, 0 } };

	gw_start();
	tally_count(&theirs.reset, 7);
	service_stats_merge(&sum, &one);
	service_stats_merge(&sum, &bare);
	ck_assert_uint_eq(sum.modes[0], 3);
	ck_assert_uint_eq(sum.modes[2], 4);
	ck_assert_uint_eq(sum.bytes[1], 6);
	ck_assert_uint_eq(sum.life.sum, 9);
	ck_assert_uint_eq(ours.reset.e[0].key, 7);
}
