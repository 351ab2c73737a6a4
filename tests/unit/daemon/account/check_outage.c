/* What the log tells of outages: once when they begin, when their reason changes, when they are over. */
#include <errno.h>
#include <string.h>

#include "daemon/account/outage.h"
#include "one_service.h"
#include "unit.h"

static struct outage outage;

static void
setup(void)
{
	one_service_begin();
	outage_init(&outage);
	svc.outage = &outage;
}

static void
teardown(void)
{
	one_service_end();
	outage_fini(&outage);
}

UNIT_FIXTURE(setup, teardown);

START_TEST(the_beginning_and_the_end_are_logged_once)
{
	for (int i = 0; i < 50; i++) {
		outage_failed(&svc, svc.outage, OUTAGE_CONNECT, &far, "", ECONNREFUSED);
		env.now_ns += S;
	}
	capture_one_line(
	    "warning: peer not available: service=redis peer=192.0.2.2:16379 "
	    "reason=\"cannot be connected: Connection refused\" connections=1");
	outage_end(&svc, svc.outage, OUTAGE_ENDED_SMCR, &far);
	outage_end(&svc, svc.outage, OUTAGE_ENDED_SMCR, &far);
	capture_one_line(
	    "notice: peer available again: service=redis peer=192.0.2.2:16379 connections=50 after_ms=50000");
}

START_TEST(another_reason_is_logged_and_a_long_outage_again)
{
	outage_failed(&svc, svc.outage, OUTAGE_CONNECT, &far, "", ETIMEDOUT);
	capture_one_line("Connection timed out");
	outage_failed(&svc, svc.outage, OUTAGE_CONNECT, &far, "", ECONNREFUSED);
	capture_one_line("Connection refused\" connections=2");
	outage_failed(&svc, svc.outage, OUTAGE_RESET, &far, "", 0);
	capture_one_line("closed the connection during set-up; its server may be down");
	outage_failed(&svc, svc.outage, OUTAGE_RESET, &far, "", 0);
	ck_assert_uint_eq(capture_lines(), 0);
	env.now_ns += 601 * S;
	outage_failed(&svc, svc.outage, OUTAGE_RESET, &far, "", 0);
	capture_one_line("connections=5");
}

/* Each has another client in its words: one outage. What is connected by our own address says nothing of it. */
START_TEST(answers_that_do_not_come_back)
{
	outage_failed(
	    &svc, svc.outage, OUTAGE_ANSWERS, &far, "the server's answers to 10.1.0.9 do not come back here", 0);
	capture_one_line("reason=\"the server's answers to 10.1.0.9 do not come back here\" connections=1");
	outage_failed(
	    &svc, svc.outage, OUTAGE_ANSWERS, &far, "the server's answers to 10.1.0.10 do not come back here", 0);
	outage_end(&svc, svc.outage, OUTAGE_ENDED_CONNECTED, &far);
	ck_assert_uint_eq(capture_lines(), 0);
	outage_failed(&svc, svc.outage, OUTAGE_CONNECT, &far, "", ECONNREFUSED);
	capture_one_line("reason=\"cannot be connected: Connection refused\" connections=3");
	outage_end(&svc, svc.outage, OUTAGE_ENDED_ANSWERED, &far);
	capture_one_line("available again");
}

START_TEST(other_targets_begin_afresh)
{
	struct outage_info info;

	outage_failed(&svc, svc.outage, OUTAGE_CONNECT, &far, "", ECONNREFUSED);
	capture_one_line("Connection refused");
	outage_forget(svc.outage);
	outage_look(&svc, svc.outage, &info);
	ck_assert_str_eq(info.text, "");
	outage_end(&svc, svc.outage, OUTAGE_ENDED_SMCR, &far);
	ck_assert_uint_eq(capture_lines(), 0);
	env.now_ns += 5 * S;
	outage_failed(&svc, svc.outage, OUTAGE_CONNECT, &far, "", ECONNREFUSED);
	capture_one_line("Connection refused\" connections=1");
	outage_look(&svc, svc.outage, &info);
	ck_assert_int_eq(info.age_ns, 0);
}

START_LOOP_TEST(what_proves_less_than_the_outage_does_not_end_it, 0, 8)
{
	static const struct {
		enum outage_kind kind;
		unsigned not_over, over;
	} rows[] = {
		{ OUTAGE_CONNECT, 0, OUTAGE_ENDED_CONNECTED },
		{ OUTAGE_CONNECT, 0, OUTAGE_ENDED_DECLINED },
		{ OUTAGE_CONNECT, 0, OUTAGE_ENDED_BYTES },
		{ OUTAGE_RESET, OUTAGE_ENDED_CONNECTED, OUTAGE_ENDED_BYTES },
		{ OUTAGE_RESET, OUTAGE_ENDED_DECLINED, OUTAGE_ENDED_SMCR },
		{ OUTAGE_NO_SMC, OUTAGE_ENDED_BYTES, OUTAGE_ENDED_DECLINED },
		{ OUTAGE_NO_SMC, OUTAGE_ENDED_CONNECTED, OUTAGE_ENDED_SMCR },
		{ OUTAGE_SETUP, OUTAGE_ENDED_BYTES | OUTAGE_ENDED_DECLINED, OUTAGE_ENDED_SMCR },
	};

	outage_failed(&svc, svc.outage, rows[_i].kind, &far, "words", 0);
	capture_one_line("not available");
	outage_end(&svc, svc.outage, rows[_i].not_over, &far);
	ck_assert_uint_eq(capture_lines(), 0);
	outage_end(&svc, svc.outage, rows[_i].over, &far);
	capture_one_line("available again");
}

START_TEST(a_service_that_comes_and_goes_fills_no_log)
{
	unsigned begins = 0, ends = 0;

	for (int i = 0; i < 1000; i++) {
		outage_failed(&svc, svc.outage, OUTAGE_RESET, &far, "", 0);
		outage_end(&svc, svc.outage, OUTAGE_ENDED_SMCR, &far);
		env.now_ns += S / 100;
	}
	(void)capture_lines();
	for (const char *p = captured.text; (p = strstr(p, "not available")) != NULL; p++)
		begins++;
	for (const char *p = captured.text; (p = strstr(p, "available again")) != NULL; p++)
		ends++;
	ck_assert_uint_ge(begins, 1);
	ck_assert_uint_le(begins, 4);
	ck_assert_uint_eq(ends, begins); /* each that was told has its end */
	env.now_ns += 61 * S;
	outage_failed(&svc, svc.outage, OUTAGE_RESET, &far, "", 0);
	capture_one_line("not available");
}

START_TEST(an_egress_speaks_of_its_server_and_of_strangers)
{
	settings.cfg.kind = CONFIG_EGRESS;
	outage_failed(&svc, svc.outage, OUTAGE_CONNECT, &far, "", ECONNREFUSED);
	capture_one_line("server not available: service=redis server=192.0.2.2:16379 reason=\"cannot be connected: ");
	outage_end(&svc, svc.outage, OUTAGE_ENDED_CONNECTED, &far);
	capture_one_line("server available again: service=redis server=192.0.2.2:16379");
	outage_unknown_peer(&svc, &far, "no CLC message where one was expected");
	capture_one_line(
	    "notice: no SMC-R peer, or a broken one: service=redis peer=192.0.2.2:16379 "
	    "reason=\"no CLC message where one was expected\"");
	for (int i = 0; i < 1000; i++)
		outage_unknown_peer(&svc, &far, "no Proposal received");
	ck_assert_uint_le(capture_lines(), 20);
}

START_TEST(a_service_that_is_no_longer_configured_says_nothing)
{
	outage_failed(&svc, svc.outage, OUTAGE_CONNECT, &far, "", ECONNREFUSED);
	capture_one_line("not available");
	svc.settings = NULL;
	outage_failed(&svc, svc.outage, OUTAGE_CONNECT, &far, "", ETIMEDOUT);
	outage_unknown_peer(&svc, &far, "no Proposal received");
	outage_end(&svc, svc.outage, OUTAGE_ENDED_SMCR, &far);
	ck_assert_uint_eq(capture_lines(), 0);
}

START_TEST(the_name_in_the_configuration_is_reported_besides_the_address)
{
	strcpy(to.host, "pg1.example");
	outage_failed(&svc, svc.outage, OUTAGE_CONNECT, &far, "", ECONNREFUSED);
	capture_one_line("peer=192.0.2.2:16379 host=pg1.example reason=");
	outage_end(&svc, svc.outage, OUTAGE_ENDED_SMCR, &far);
	capture_one_line("peer=192.0.2.2:16379 host=pg1.example connections=1");
	strcpy(to.host, "192.0.2.2");
	outage_failed(&svc, svc.outage, OUTAGE_CONNECT, &far, "", ECONNREFUSED);
	capture_one_line("peer=192.0.2.2:16379 reason=");
}

/* Another worker's service of the same name has the same outage. */
START_TEST(workers_tell_of_one_outage_once)
{
	struct session_pool other_pool = pool;
	struct service other = svc;

	other.pool = &other_pool;
	outage_failed(&svc, svc.outage, OUTAGE_CONNECT, &far, "", ECONNREFUSED);
	outage_failed(&other, other.outage, OUTAGE_CONNECT, &far, "", ECONNREFUSED);
	capture_one_line("connections=1");
	outage_end(&other, other.outage, OUTAGE_ENDED_SMCR, &far);
	outage_end(&svc, svc.outage, OUTAGE_ENDED_SMCR, &far);
	capture_one_line("peer available again: service=redis peer=192.0.2.2:16379 connections=2");
}
