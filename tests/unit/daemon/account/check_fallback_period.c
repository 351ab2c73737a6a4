/* Fallback periods: begin, change of the reason and end are reported; each peer separately. */
#include <string.h>

#include "daemon/account/fallback_period.h"
#include "one_service.h"
#include "unit.h"
#include "wire/clc.h"

static struct fallback_periods fallback_periods;

static const struct smcr_diag no_device = { .local = CLC_DIAG_NO_DEVICE };
static const struct smcr_diag says_no_device = { .peer = CLC_DIAG_NO_DEVICE };
static const struct smcr_diag held_off = { .local = CLC_DIAG_NO_ACTIVE_LINK, .held_off = true };
static const struct smcr_diag mpa_silent = { .local = CLC_DIAG_READY_LINK,
	.detail = "no answer",
	.mpa_port = 7471,
	.rnic = { { [10] = 0xff, [11] = 0xff, [12] = 192, [13] = 0, [14] = 2, [15] = 2 } } };

static void
setup(void)
{
	one_service_begin();
	fallback_periods_init(&fallback_periods);
	svc.fallback_periods = &fallback_periods;
}

static void
teardown(void)
{
	one_service_end();
	fallback_periods_fini(&fallback_periods);
}

UNIT_FIXTURE(setup, teardown);

static void
said(const char *wanted)
{
	ck_assert_str_eq(strlen(capture_take()) > 0 ? captured.text + strlen("2026-01-01 00:00:00.000 ") : "", wanted);
}

static unsigned
told(const char *what)
{
	unsigned n = 0;

	for (const char *p = capture_take(); (p = strstr(p, what)) != NULL; p++)
		n++;
	return n;
}

START_TEST(begin_and_end_are_reported_once_with_the_count)
{
	for (int i = 0; i < 3; i++) {
		fallback_period_note(&svc, &far, &no_device);
		env.now_ns += S;
	}
	said(
	    "warning: fallback begins: service=redis peer=192.0.2.2:16379 fallback=tcp reason=\"no RDMA device\" "
	    "connections=1\n");
	fallback_period_end(&svc, &far);
	said("notice: fallback ends: service=redis peer=192.0.2.2:16379 connections=3 after_ms=3000\n");
	fallback_period_end(&svc, &far);
	said("");
	settings.cfg.fallback = CONFIG_FALLBACK_REFUSE;
	fallback_period_note(&svc, &far, &says_no_device);
	said(
	    "warning: fallback begins: service=redis peer=192.0.2.2:16379 fallback=refuse "
	    "reason=\"declined by the peer: no RDMA device\" connections=1\n");
}

START_TEST(another_reason_is_reported_but_not_another_wording)
{
	fallback_period_note(&svc, &far, &no_device);
	ck_assert_uint_eq(told("fallback begins"), 1);
	fallback_period_note(&svc, &far, &says_no_device);
	fallback_period_note(&svc, &far, &held_off);
	fallback_period_note(
	    &svc, &far, &(struct smcr_diag){ .peer = CLC_DIAG_NO_ACTIVE_LINK }); /* the other end holds us off */
	said("");
	fallback_period_note(&svc, &far, &(struct smcr_diag){ .peer = CLC_DIAG_NO_MEMORY });
	ck_assert_uint_eq(told("connections=5"), 1);
	env.now_ns += 601 * S;
	fallback_period_note(&svc, &far, &(struct smcr_diag){ .peer = CLC_DIAG_NO_MEMORY });
	ck_assert_uint_eq(told("connections=6"), 1);
}

START_TEST(one_that_begins_held_off_says_so)
{
	fallback_period_note(&svc, &far, &held_off);
	ck_assert_uint_eq(told("held off after failures"), 1);
}

START_TEST(the_mpa_port_is_named_once)
{
	fallback_period_note(&svc, &far, &mpa_silent);
	fallback_period_note(&svc, &far, &mpa_silent);
	ck_assert_uint_eq(told("MPA port cannot be used: service=redis peer=192.0.2.2:16379 mpa=192.0.2.2:7471 "
	                       "reason=\"no answer\""),
	    1);
	env.now_ns += 5 * S;
	fallback_period_end(&svc, &far);
	ck_assert_uint_eq(told("MPA port can be used again: service=redis peer=192.0.2.2:16379 mpa=192.0.2.2:7471 "
	                       "after_ms=5000"),
	    1);
	/* The next one has another reason: the port is not its. */
	fallback_period_note(&svc, &far, &no_device);
	fallback_period_end(&svc, &far);
	ck_assert_uint_eq(told("MPA"), 0);
}

START_TEST(a_peer_that_comes_and_goes_fills_no_log)
{
	unsigned begins = 0, ends = 0;

	for (int i = 0; i < 500; i++) {
		fallback_period_note(&svc, &far, &no_device);
		fallback_period_end(&svc, &far);
		env.now_ns += S / 100;
	}
	(void)capture_take();
	for (const char *p = captured.text; (p = strstr(p, "begins")) != NULL; p++)
		begins++;
	for (const char *p = captured.text; (p = strstr(p, "ends")) != NULL; p++)
		ends++;
	ck_assert_uint_ge(begins, 1);
	ck_assert_uint_le(begins, 4);
	ck_assert_uint_eq(begins, ends);
	env.now_ns += 61 * S;
	fallback_period_note(&svc, &far, &no_device);
	ck_assert_uint_eq(told("fallback begins"), 1);
}

START_TEST(an_egress_knows_its_peers_by_address_and_each_on_its_own)
{
	settings.cfg.kind = CONFIG_EGRESS;
	fallback_period_note(&svc, &far, &no_device);
	far.in4.sin_port = htons(4711);
	fallback_period_note(&svc, &far, &no_device);
	ck_assert_uint_eq(told("service=redis peer=192.0.2.2 fallback=tcp"), 1);
	set_far("192.0.2.3");
	fallback_period_end(&svc, &far); /* of another peer: that says nothing */
	fallback_period_note(&svc, &far, &no_device);
	ck_assert_uint_eq(told("peer=192.0.2.3 "), 1);
	set_far("192.0.2.2");
	fallback_period_end(&svc, &far);
	ck_assert_uint_eq(told("fallback ends: service=redis peer=192.0.2.2 connections=2"), 1);
}

START_TEST(only_so_many_peers_are_remembered)
{
	char addr[32];

	settings.cfg.kind = CONFIG_EGRESS;
	for (unsigned i = 0; i < FALLBACK_PERIODS_MAX + 5; i++) {
		snprintf(addr, sizeof(addr), "198.51.100.%u", i);
		set_far(addr);
		fallback_period_note(&svc, &far, &no_device);
		env.now_ns += S;
	}
	ck_assert_uint_eq(fallback_periods.known, FALLBACK_PERIODS_MAX);
	ck_assert_uint_eq(fallback_periods.cnt, FALLBACK_PERIODS_MAX);
	ck_assert_uint_eq(told("fallback begins"), FALLBACK_PERIODS_MAX + 5);
	set_far("198.51.100.0");
	fallback_period_end(&svc, &far);
	set_far("198.51.100.36");
	fallback_period_end(&svc, &far);
	ck_assert_uint_eq(told("fallback ends"), 1);
}

START_TEST(a_service_that_is_no_longer_configured_says_nothing)
{
	svc.settings = NULL;
	fallback_period_note(&svc, &far, &no_device);
	fallback_period_end(&svc, &far);
	said("");
}
