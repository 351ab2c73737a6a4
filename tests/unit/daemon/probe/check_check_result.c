/* The steps of a check, and its verdict in words. */
#include "daemon/probe/check_result.h"

#include <stdio.h>
#include <string.h>

#include "unit.h"
#include "wire/clc.h"

#define MS INT64_C(1000000)

#define ROW(constant, word, ...) word,
static const char *const check_step_result_words[] = { CHECK_STEP_RESULTS(ROW) };
static const char *const check_finding_words[] = { CHECK_FINDINGS(ROW) };

static struct check_result r;

static const char *
became(enum check_step step)
{
	return check_step_result_words[r.steps[step].result];
}

START_TEST(each_step_has_its_time)
{
	check_begin(&r, 100 * MS);
	check_step(&r, CHECK_CLC, 103 * MS, "no");
	check_step(&r, CHECK_CLC, 104 * MS, "no");
	check_step(&r, CHECK_CONNECT, 110 * MS, "no");
	check_step(&r, CHECK_CLC, 111 * MS, "no");
	check_step(&r, CHECK_LINK, 112 * MS, "no");
	check_step(&r, CHECK_TEST, 120 * MS, "no");
	check_step(&r, CHECK_SERVER, 121 * MS, "no");
	r.finding = CHECK_POSSIBLE;
	check_end(&r, 121 * MS);
	static const int64_t took[CHECK_STEP_CNT] = { 3 * MS, 7 * MS, 2 * MS, 8 * MS, 1 * MS, 0 };
	for (unsigned i = 0; i < CHECK_STEP_CNT; i++) {
		ck_assert_str_eq(became(i), "ok");
		ck_assert_int_eq(r.steps[i].took_ns, took[i]);
		ck_assert_ptr_null(r.steps[i].text);
	}
	ck_assert(r.possible);
	ck_assert_int_eq(r.took_ns, 21 * MS);
}

START_TEST(steps_between_are_skipped_and_those_behind_not_reached)
{
	check_begin(&r, 0);
	check_step(&r, CHECK_CLC, 1 * MS, NULL);
	check_step(&r, CHECK_TEST, 2 * MS, "why");
	r.finding = CHECK_LINK_FAILED;
	check_end(&r, 5 * MS);
	ck_assert(!r.possible);
	ck_assert_str_eq(became(CHECK_CONNECT), "skipped");
	ck_assert_str_eq(became(CHECK_LINK), "skipped");
	ck_assert_str_eq(r.steps[CHECK_LINK].text, "why");
	ck_assert_int_eq(r.steps[CHECK_LINK].took_ns, 0);
	ck_assert_str_eq(became(CHECK_TEST), "failed");
	ck_assert_int_eq(r.steps[CHECK_TEST].took_ns, 3 * MS);
	check_begin(&r, 0);
	r.finding = CHECK_UNREACHABLE;
	check_end(&r, 5 * MS);
	ck_assert_str_eq(became(CHECK_TCP), "failed");
	ck_assert_str_eq(became(CHECK_CLC), "not-reached");
	ck_assert_str_eq(became(CHECK_TEST), "not-reached");
}

START_TEST(declines)
{
	r = (struct check_result){ .diag = { .peer = CLC_DIAG_NO_DEVICE, .offered = CLC_TRANSPORT_IWARP } };
	check_say_declined(&r, "192.0.2.2:80");
	ck_assert_str_eq(check_finding_words[r.finding], "declined");
	ck_assert_msg(
	    strstr(r.text, "192.0.2.2:80 declined: ") == r.text && strstr(r.text, "offers iwarp"), "%s", r.text);
	r = (struct check_result){ .diag = { .local = CLC_DIAG_READY_LINK,
		                       .over = "iwarp",
		                       .detail = "the peer's MPA port does not answer",
		                       .silent = true,
		                       .rnic = { { [10] = 0xff, 0xff, 192, 0, 2, 2 } },
		                       .mpa_port = 7471,
		                       .phase = SMCR_PHASE_CONNECT } };
	check_say_declined(&r, "192.0.2.2:80");
	ck_assert_str_eq(check_finding_words[r.finding], "link-failed");
	ck_assert_msg(
	    strstr(r.text, "over iwarp: the peer's MPA port does not answer (192.0.2.2:7471): firewall?") != NULL, "%s",
	    r.text);
	r.diag.silent = false;
	check_say_declined(&r, "192.0.2.2:80");
	ck_assert_msg(strstr(r.text, "firewall") == NULL, "%s", r.text);
	/* RoCE has no port that could be blocked. */
	r.diag.silent = true;
	r.diag.mpa_port = 0;
	check_say_declined(&r, "192.0.2.2:80");
	ck_assert_msg(strstr(r.text, "firewall") == NULL, "%s", r.text);
	r.diag = (struct smcr_diag){ .local = CLC_DIAG_NO_ACTIVE_LINK, .held_off = true, .phase = SMCR_PHASE_CLC };
	check_say_declined(&r, "192.0.2.2:80");
	ck_assert_str_eq(check_finding_words[r.finding], "declined-here");
	ck_assert_msg(strstr(r.text, "held off after failures") != NULL, "%s", r.text);
}

START_TEST(done)
{
	r = (struct check_result){ .possible = false };
	check_say_done(&r, "a:1");
	ck_assert_str_eq(r.text, "rendezvous with a:1 done");
	r.group = (struct smcr_group_info){ .id = 1, .peer = { .version = 1 } };
	check_say_done(&r, "a:1");
	ck_assert_str_eq(r.text, "rendezvous with a:1 done: smcrd, SMC-R version 1");
	r.group.peer.foreign = true;
	check_say_done(&r, "a:1");
	ck_assert_str_eq(r.text, "rendezvous with a:1 done: SMC-R version 1");
	ck_assert_str_eq(check_finding_words[r.finding], "possible");
}

/* The last step, with the peer's answer; the rest has worked. */
START_TEST(the_server_behind_the_peer)
{
	static const struct {
		unsigned server;
		const char *step, *finding, *words;
	} of[] = {
		{ CLC_SERVER_UP, "ok", "possible", "rendezvous with a:1 done" },
		{ CLC_SERVER_UNSAID, "skipped", "possible", "rendezvous with a:1 done" },
		{ CLC_SERVER_REFUSED, "failed", "server-down", "the server behind it is down: refuses connections" },
		{ 200, "failed", "server-down", "the server behind it is down: does not work" },
	};

	for (unsigned i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		check_begin(&r, 0);
		check_step(&r, CHECK_TEST, 0, "skipped");
		check_step_end(&r, CHECK_STEP_OK, 3 * MS);
		r.server = of[i].server;
		check_say_done(&r, "a:1");
		check_say_server(&r, "a:1", 9 * MS);
		check_end(&r, 9 * MS);
		ck_assert_str_eq(became(CHECK_SERVER), of[i].step);
		ck_assert_str_eq(check_finding_words[r.finding], of[i].finding);
		ck_assert_msg(strstr(r.text, of[i].words) != NULL, "%s", r.text);
		ck_assert_int_eq(r.possible, i < 2);
		ck_assert_int_eq(r.steps[CHECK_TEST].took_ns, 3 * MS);
		ck_assert_int_eq(r.steps[CHECK_SERVER].took_ns, 0);
	}
	r = (struct check_result){ .diag = { .peer = CLC_DIAG_SERVER_LATE } };
	check_say_declined(&r, "a:1");
	ck_assert_str_eq(check_finding_words[r.finding], "server-down");
	ck_assert_uint_eq(r.server, CLC_SERVER_SILENT);
}

/* Of a probe's result: the server's state is what counts, then whether the peer was reached. */
START_TEST(health_of_a_result)
{
	static const struct {
		enum check_finding finding;
		unsigned server;
		bool held_off, must_smcr;
		const char *state, *why;
	} of[] = {
		{ CHECK_POSSIBLE, CLC_SERVER_UP, false, true, "up", "" },
		{ CHECK_LINK_FAILED, CLC_SERVER_UP, false, false, "up", "" },
		{ CHECK_LINK_FAILED, CLC_SERVER_UP, false, true, "down", "text" },
		{ CHECK_POSSIBLE, CLC_SERVER_SILENT, false, false, "down", "does not answer" },
		{ CHECK_POSSIBLE, 200, false, false, "down", "does not work" },
		{ CHECK_POSSIBLE, CLC_SERVER_UNSAID, false, false, "unknown", "the peer does not say it" },
		{ CHECK_POSSIBLE, CLC_SERVER_UNSAID, false, true, "unknown", "the peer does not say it" },
		{ CHECK_PEER_DECLINED, CLC_SERVER_UNSAID, false, false, "unknown", "text" },
		{ CHECK_PEER_DECLINED, CLC_SERVER_UNSAID, false, true, "down", "text" },
		{ CHECK_DECLINED, CLC_SERVER_UNSAID, true, false, "held-off", "text" },
		{ CHECK_DECLINED, CLC_SERVER_UNSAID, true, true, "down", "text" },
		{ CHECK_NO_OPTION, CLC_SERVER_UNSAID, false, false, "unknown", "text" },
		{ CHECK_UNREACHABLE, CLC_SERVER_UNSAID, false, false, "down", "text" },
		{ CHECK_CLOSED, CLC_SERVER_UNSAID, false, false, "down", "text" },
		{ CHECK_SILENT, CLC_SERVER_UNSAID, false, false, "down", "text" },
		{ CHECK_TIMEOUT, CLC_SERVER_UNSAID, false, false, "down", "text" },
		{ CHECK_NO_TLS, CLC_SERVER_UNSAID, false, false, "down", "text" },
		{ CHECK_NOT_TRIED, CLC_SERVER_UNSAID, false, true, "", "text" },
	};

	for (unsigned i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		const char *why;

		r = (struct check_result){ .finding = of[i].finding,
			.server = of[i].server,
			.text = "text",
			.diag.held_off = of[i].held_off };
		ck_assert_str_eq(health_words[check_health(&r, of[i].must_smcr, &why)], of[i].state);
		ck_assert_msg(strstr(why, of[i].why) == why, "%u: %s", i, why);
	}
}

static const struct {
	enum smcr_reason reason;
	enum smcr_phase phase;
	const char *bytes;
	bool acked;
	const char *finding, *words, *tls;
} breaks[] = {
	{ SMCR_R_PROTOCOL, SMCR_PHASE_CLC, "HTTP/1.1 400 Bad \"Request\"\r\nServer", true, "plain-server",
	    "a plain server, it answers \"HTTP/1.1 400 Bad .Request.\"", NULL },
	{ SMCR_R_PROTOCOL, SMCR_PHASE_CLC, "\x1b[2J\x80\xff", true, "plain-server", "it answers \".[2J..\"", NULL },
	{ SMCR_R_PROTOCOL, SMCR_PHASE_CLC,
	    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890", true,
	    "plain-server", "\"012345678901234567890123456789012345678901234567\"", NULL },
	{ SMCR_R_PROTOCOL, SMCR_PHASE_LINK, "HTTP", true, "link-failed", "192.0.2.2:80: ", NULL },
	{ SMCR_R_TCP_FIN, SMCR_PHASE_CLC, "", true, "closed",
	    "closed the connection on our Proposal: a plain server, or", NULL },
	{ SMCR_R_TCP_RESET, SMCR_PHASE_CLC, "", true, "closed", "192.0.2.2:80 reset the connection on our Proposal",
	    NULL },
	{ SMCR_R_TCP_RESET, SMCR_PHASE_CONNECT, "", true, "link-failed", "192.0.2.2:80: ", NULL },
	{ SMCR_R_CLC_TIMEOUT, SMCR_PHASE_CLC, "", true, "silent", "its TCP has acknowledged the Proposal", NULL },
	{ SMCR_R_CLC_TIMEOUT, SMCR_PHASE_CLC, "", false, "silent", "has not acknowledged the Proposal", NULL },
	{ SMCR_R_NO_MEMORY, SMCR_PHASE_CLC, "", true, "closed", "192.0.2.2:80: ", NULL },
	{ SMCR_R_TCP_RESET, SMCR_PHASE_CLC, "", true, "no-tls",
	    "192.0.2.2:80: no TLS: peer ended it after the handshake", "" },
	{ SMCR_R_TCP_FIN, SMCR_PHASE_CLC, "", true, "no-tls", "192.0.2.2:80: no TLS: an alert (hint)", "an alert" },
	{ SMCR_R_CLC_TIMEOUT, SMCR_PHASE_CLC, "", true, "silent", "its TCP has acknowledged the Proposal", "" },
};

START_LOOP_TEST(rendezvous_that_are_broken_off, 0, sizeof(breaks) / sizeof(breaks[0]))
{
	struct clc_in in = { .len = (uint16_t)strlen(breaks[_i].bytes) };

	memcpy(in.buf, breaks[_i].bytes, in.len);
	r = (struct check_result){ .diag.phase = breaks[_i].phase };
	const struct check_break b = { breaks[_i].reason, "the engine's words", &in, breaks[_i].acked, " (hint)",
		breaks[_i].tls };
	check_say_broken(&r, "192.0.2.2:80", &b);
	ck_assert_str_eq(check_finding_words[r.finding], breaks[_i].finding);
	ck_assert_msg(strstr(r.text, breaks[_i].words) != NULL, "%s", r.text);
	ck_assert_msg(strstr(r.text, " (hint)") != NULL, "%s", r.text);
}
