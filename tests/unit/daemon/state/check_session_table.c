/*
 * The three TCP legs. First the table itself, cell by cell against a second list; then its cells on real sockets: a
 * client, a gateway pair in this process, a server. Built twice: check_session_table has the stand-in of fake_smcr.c for an
 * engine, check_session_table_real (GATEWAY_REAL) the real one over soft iWARP.
 */
#include "daemon/state/session_table.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "gateway.h"
#include "tcp_pair.h"
#include "unit.h"

/* -- the table -- */

/* A column for each event in their order: end and reset of the app leg, FIN and RST on the middle, its loss, peer done, both done;
 * connect failed, circle, client refused, destination refused, refused, timeout, operator, stop; fallback, engine's end in order and by reset, all passed on before a reset. */
static const char *const cells[SES_STATE_CNT] = {
	[SES_CONNECT] = "ix..... xxxxxxxx ....",
	[SES_LOOK] = "ixix... xxxxxxxx ....",
	[SES_SECURE] = "ixix... xxxxxxxx ....",
	[SES_OPENING] = "ia..... ...a.aaa .xo.",
	[SES_RENDEZVOUS] = "iafr... aaaaxaaa leo.",
	[SES_LEAVING] = "ixix... xxxxxxxx .e..",
	[SES_SMCR] = "dwfRLDc .....aaa .xw.",
	[SES_MEASURE] = "..fa..c .....aaa .xx.",
	[SES_CLOSING] = "..fRL.. .....iAA .ex.",
	[SES_DRAINING] = "difRL.c .....aaa .xxW",
	[SES_ABORTING] = "..fRL.. .....Aix xxx.",
	[SES_DELIVERING] = ".xii.De .....xxx ...x",
	[SES_TCP_CONNECT] = ".xix... xxxxxxxx ....",
	[SES_TCP] = "mwDw..e ....xxxx ....",
	[SES_TCP_DRAINING] = "mxDx..e ....xxxx ...x",
	[SES_DEAD] = "....... ........ ....",
};

static unsigned
actions(char cell)
{
	static const struct {
		char cell;
		unsigned act;
	} legend[] = {
		{ '.', 0 }, /* cannot happen */
		{ 'i', ACT_IGNORE },
		{ 'x', ACT_END_RESET },
		{ 'o', ACT_OUTAGE | ACT_END_RESET },
		{ 'e', ACT_END },
		{ 'a', ACT_ABORT | ACT_RESET_APP },
		{ 'A', ACT_ABORT },
		{ 'w', ACT_DRAIN },
		{ 'W', ACT_RESET | ACT_RESET_APP },
		{ 'l', ACT_LEAVE },
		{ 'f', ACT_PASS_FIN },
		{ 'r', ACT_PASS_RST },
		{ 'R', ACT_PASS_RST | ACT_CLOSE_MID },
		{ 'L', ACT_CLOSE_MID },
		{ 'd', ACT_SEND_DONE },
		{ 'c', ACT_SEND_CLOSED | ACT_CLOSE_APP },
		{ 'D', ACT_FIN_APP },
		{ 'm', ACT_FIN_MID },
	};

	for (size_t i = 0; i < sizeof(legend) / sizeof(legend[0]); i++)
		if (legend[i].cell == cell)
			return legend[i].act;
	ck_abort_msg("no such cell: %c", cell);
}

START_TEST(every_cell_is_what_the_design_says)
{
	for (int st = 0; st < SES_STATE_CNT; st++) {
		const char *cell = cells[st];

		for (int ev = 0; ev < SEV_EVENT_CNT; ev++, cell++) {
			cell += *cell == ' ';
			ck_assert_msg(
			    session_table_actions((enum session_state)st, (enum session_event)ev) == actions(*cell),
			    "state \"%s\", event \"%s\"", session_state_str((enum session_state)st),
			    session_event_str((enum session_event)ev));
		}
		ck_assert_int_eq(*cell, '\0');
	}
}

/* The engine's connection may be released or fallen back there. */
START_TEST(the_engine_is_asked_for_nothing_where_it_has_no_connection)
{
	static const enum session_state states[] = { SES_CONNECT, SES_LOOK, SES_SECURE, SES_LEAVING, SES_TCP_CONNECT,
		SES_TCP, SES_TCP_DRAINING };
	const unsigned engine = ACT_SEND_DONE | ACT_SEND_CLOSED | ACT_ABORT | ACT_RESET | ACT_PASS_FIN | ACT_PASS_RST;

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		for (int ev = 0; ev < SEV_EVENT_CNT; ev++)
			ck_assert_uint_eq(session_table_actions(states[i], (enum session_event)ev) & engine, 0);
}

START_TEST(eof_is_never_reported_as_closed)
{
	for (int st = 0; st < SES_STATE_CNT; st++)
		ck_assert_uint_eq(session_table_actions((enum session_state)st, SEV_APP_EOF) & ACT_SEND_CLOSED, 0);
}

/* -- on sockets; _i is the mode: data on SMC-R, or on TCP after a fallback -- */

enum { ON_SMCR, ON_TCP, MODES };

static void
start(int mode)
{
#ifdef GATEWAY_REAL
	if (mode == ON_TCP)
		gw.cfg.device_cnt = 0;
#else
	if (mode == ON_TCP)
		fake.server_declines = 0x03030000;
#endif
	gw_start();
}

/* Both app legs of a connection are there and data may flow. */
static void
connect_both(int mode)
{
	enum session_state data = mode == ON_TCP ? SES_TCP : SES_SMCR;

	client = gw_client();
	server = gw_accept();
	UNTIL(gw_in_state(GW_IN, data) && gw_in_state(GW_OUT, data));
}

static void
connected(int mode)
{
	start(mode);
	connect_both(mode);
}

static uint64_t
nothing_left(const struct session_pool *p)
{
	ck_assert_uint_eq(p->stats.sessions_opened, p->stats.sessions_closed);
	ck_assert_uint_eq(p->bufs.lent, 0);
	ck_assert_uint_eq(p->setup_slab.used, 0);
	ck_assert_uint_eq(p->session_slab.used, 0);
	return p->stats.sessions_reset;
}

static void
all_gone(bool reset)
{
	UNTIL(gw_sessions() == 0);
	uint64_t resets = nothing_left(gw_pool(GW_IN)) + (gw.w2 != NULL ? nothing_left(gw_pool(GW_OUT)) : 0);
	ck_assert_int_eq(resets > 0, reset);
	ck_assert_uint_eq(gw_info(GW_IN).connections, 0);
	ck_assert_uint_eq(gw_info(GW_OUT).connections, 0);
}

UNIT_FIXTURE(gw_setup, gw_teardown);

START_LOOP_TEST(bytes_go_both_ways, 0, MODES)
{
	connected(_i);
	gw_say(client, "hello");
	gw_expect(server, "hello", GW_OPEN);
	gw_say(server, "world");
	gw_expect(client, "world", GW_OPEN);
	ck_assert_uint_eq(gw_session(GW_IN)->bytes[WAY_FROM_APP], 5);
	ck_assert_uint_eq(gw_session(GW_IN)->bytes[WAY_TO_APP], 5);
	ck_assert_uint_eq(gw_pool(GW_IN)->stats.tcp_bytes, _i != ON_TCP ? 0 : 20 / GW_WORKERS);
}

/* Two ways at once, each side slower at times: everything arrives, in order. */
START_LOOP_TEST(bulk_goes_both_ways, 0, MODES)
{
	enum { TOTAL = 2 << 20 };

	static uint8_t chunk[30000];
	size_t sent[2] = { 0 }, got[2] = { 0 };
	uint32_t out[2] = { 1, 2 }, in[2] = { 1, 2 };

	connected(_i);
	int fd[2] = { client, server };

	gw.give_up = loop_now(gw.loop) + 30000 * MS;
	while (got[0] < TOTAL || got[1] < TOTAL) {
		ck_assert_int_lt(loop_now(gw.loop), gw.give_up);
		for (int side = 0; side < 2; side++) {
			size_t want = TOTAL - sent[side] < sizeof(chunk) ? TOTAL - sent[side] : sizeof(chunk);
			uint32_t x = out[side];

			for (size_t i = 0; i < want; i++)
				chunk[i] = (uint8_t)((x = x * 1664525 + 1013904223) >> 24);
			ssize_t n = send(fd[side], chunk, want, MSG_NOSIGNAL);
			for (ssize_t i = 0; i < n; i++)
				out[side] = out[side] * 1664525 + 1013904223;
			sent[side] += n > 0 ? (size_t)n : 0;
			n = recv(fd[!side], chunk, 1 + (got[side] * 7919) % sizeof(chunk), 0);
			for (ssize_t i = 0; i < n; i++)
				ck_assert_uint_eq(
				    chunk[i], (uint8_t)((in[side] = in[side] * 1664525 + 1013904223) >> 24));
			got[side] += n > 0 ? (size_t)n : 0;
		}
		gw_once();
	}
}

START_LOOP_TEST(a_reader_that_stops_stops_the_writer, 0, MODES)
{
	static char block[65536];
	size_t sent = 0, got = 0;
	ssize_t n;

	connected(_i);
	for (int idle = 0; idle < 20;) {
		n = send(client, block, sizeof(block), MSG_NOSIGNAL);
		sent += n > 0 ? (size_t)n : 0;
		idle = n > 0 ? 0 : idle + 1;
		gw_once();
		ck_assert_uint_lt(sent, 64u << 20);
	}
	UNTIL((n = recv(server, block, sizeof(block), 0), got += n > 0 ? (size_t)n : 0, got) == sent);
}

START_LOOP_TEST(half_close_by_the_client, 0, MODES)
{
	connected(_i);
	gw_say(client, "question");
	shutdown(client, SHUT_WR);
	gw_expect(server, "question", GW_EOF);
	gw_run_ms(20);
	ck_assert_uint_eq(gw_sessions(), 2);
	gw_say(server, "answer");
	gw_hang_up(&server);
	gw_expect(client, "answer", GW_EOF);
	all_gone(false);
#ifndef GATEWAY_REAL
	ck_assert_uint_eq(fake_seen.closes, _i == ON_SMCR ? 2 : 0);
#endif
}

START_LOOP_TEST(half_close_by_the_server, 0, MODES)
{
	connected(_i);
	gw_say(server, "banner");
	shutdown(server, SHUT_WR);
	gw_expect(client, "banner", GW_EOF);
	gw_say(client, "more");
	gw_expect(server, "more", GW_OPEN);
	gw_hang_up(&client);
	gw_expect_eof(server);
	all_gone(false);
}

START_LOOP_TEST(a_client_that_closes_at_once_still_sends_all, 0, MODES)
{
	start(_i);
	client = gw_client();
	gw_say(client, "one-shot");
	gw_hang_up(&client);
	server = gw_accept();
	gw_expect(server, "one-shot", GW_EOF);
	gw_hang_up(&server);
	all_gone(false);
}

/* _i / 2: by the client, or the server */
START_LOOP_TEST(rst_reaches_the_other_end, 0, 2 * MODES)
{
	int *ends[] = { &client, &server }, *from = ends[_i / 2], *to = ends[1 - _i / 2];

	connected(_i % 2);
	gw_say(*from, "abc");
	gw_expect(*to, "abc", GW_OPEN);
	net_reset(*from);
	*from = -1;
	gw_expect_reset(*to);
	all_gone(true);
}

START_LOOP_TEST(rst_is_seen_though_reading_is_paused, 0, MODES)
{
	static char block[65536];

	/* The server does not read: everything on the way is full, then the client resets. */
	gw.cfg.reset_grace_ms = 200;
	connected(_i);
	for (int idle = 0; idle < 20; gw_once())
		idle = send(client, block, sizeof(block), MSG_NOSIGNAL) > 0 ? 0 : idle + 1;
	net_reset(client);
	client = -1;
	UNTIL(gw_sessions() == 0);
	while (recv(server, block, sizeof(block), 0) > 0)
		;
	ck_assert_int_eq(errno, ECONNRESET);
	all_gone(true);
}

/* -- bytes before a reset; _i / 2: of the client, or the server -- */

static int *const ends[] = { &client, &server };

static void
resets(int *fd)
{
	net_reset(*fd);
	*fd = -1;
}

START_LOOP_TEST(bytes_before_a_reset_arrive_before_it, 0, 2 * MODES)
{
	int *from = ends[_i / 2], *to = ends[1 - _i / 2];

	connected(_i % 2);
	gw_say(*from, "last ");
	gw_once();
	gw_say(*to, "for nobody");
	gw_say(*from, "words");
	resets(from);
	gw_expect(*to, "last words", GW_RESET);
	all_gone(true);
}

START_LOOP_TEST(bytes_behind_the_other_ends_fin_arrive_before_a_reset, 0, 2 * MODES)
{
	int *from = ends[_i / 2], *to = ends[1 - _i / 2];

	connected(_i % 2);
	shutdown(*to, SHUT_WR);
	gw_expect_eof(*from);
	gw_say(*from, "last words");
	resets(from);
	gw_expect(*to, "last words", GW_RESET);
	all_gone(true);
}

/* Linux hands out the end, and not the reset behind it. */
START_LOOP_TEST(a_fin_before_a_reset_arrives, 0, 2 * MODES)
{
	int *from = ends[_i / 2], *to = ends[1 - _i / 2];

	connected(_i % 2);
	gw_say(*from, "last words");
	shutdown(*from, SHUT_WR);
	resets(from);
	gw_expect(*to, "last words", GW_EOF);
	all_gone(true);
}

#ifdef GATEWAY_REAL
/* The stand-in forgets what an ended connection has sent. */
START_LOOP_TEST(bytes_before_a_reset_in_set_up_arrive, 0, 2 * MODES)
{
	start(_i % 2);
	client = gw_client();
	if (_i / 2 == 1)
		server = gw_accept();
	gw_say(*ends[_i / 2], "last words");
	resets(ends[_i / 2]);
	if (_i / 2 == 0)
		server = gw_accept();
	gw_expect(*ends[1 - _i / 2], "last words", GW_RESET);
	all_gone(true);
}

START_LOOP_TEST(a_fin_before_a_reset_in_set_up_arrives, 0, 2 * MODES)
{
	start(_i % 2);
	client = gw_client();
	if (_i / 2 == 1)
		server = gw_accept();
	shutdown(*ends[_i / 2], SHUT_WR);
	resets(ends[_i / 2]);
	if (_i / 2 == 0)
		server = gw_accept();
	gw_expect(*ends[1 - _i / 2], "", GW_EOF);
	UNTIL(send(*ends[1 - _i / 2], "", 0, MSG_NOSIGNAL) < 0);
	all_gone(true);
}

static char piece[262144];

/* Sends while anything moves, and resets; returns what was sent, but for what is in the sender's own kernel and so lost. */
static size_t
fill_and_reset(int *fd)
{
	size_t sent = 0;
	int unsent = 0;

	for (int idle = 0; idle < 20; gw_once()) {
		ssize_t n = send(*fd, piece, sizeof(piece), MSG_NOSIGNAL);

		sent += n > 0 ? (size_t)n : 0;
		idle = n > 0 ? 0 : idle + 1;
	}
	ck_assert_int_eq(ioctl(*fd, SIOCOUTQ, &unsent), 0);
	resets(fd);
	return sent - (size_t)unsent;
}

/* Reads to the reset, with a pause behind each piece; returns how much. */
static size_t
read_all(int fd, int pause_ms)
{
	size_t got = 0;
	ssize_t n;

	gw.give_up = loop_now(gw.loop) + 2 * GW_DEADLINE;
	while ((n = recv(fd, piece, sizeof(piece), 0)) > 0 || (n < 0 && errno == EAGAIN)) {
		ck_assert_int_lt(loop_now(gw.loop), gw.give_up);
		got += n > 0 ? (size_t)n : 0;
		gw_run_ms(pause_ms);
	}
	ck_assert_int_eq(errno, ECONNRESET);
	return got;
}

/* It may take longer than reset_grace, as long as it goes on. A busy machine may take half a second from both. */
START_LOOP_TEST(a_slow_reader_gets_all_before_a_reset, 0, 2 * MODES)
{
	gw.cfg.reset_grace_ms = 1500;
	connected(_i % 2);
	size_t sent = fill_and_reset(ends[_i / 2]);
	ck_assert_uint_ge(read_all(*ends[1 - _i / 2], 20), sent);
	all_gone(true);
}

/* What it writes is for nobody, but has to go, or it would never come to read. */
START_LOOP_TEST(a_reader_that_writes_first_gets_all_before_a_reset, 0, 2 * MODES)
{
	gw.cfg.reset_grace_ms = 10000;
	connected(_i % 2);
	int to = *ends[1 - _i / 2];
	size_t sent = fill_and_reset(ends[_i / 2]);
	gw.give_up = loop_now(gw.loop) + 2 * GW_DEADLINE;
	for (size_t left = 32u << 20; left > 0; gw_once()) {
		ssize_t n = send(to, piece, left < sizeof(piece) ? left : sizeof(piece), MSG_NOSIGNAL);

		ck_assert(n > 0 || errno == EAGAIN);
		ck_assert_msg(loop_now(gw.loop) < gw.give_up, "%zu bytes are left to be written", left);
		left -= n > 0 ? (size_t)n : 0;
	}
	ck_assert_uint_ge(read_all(to, 1), sent);
	all_gone(true);
}
#endif

START_LOOP_TEST(a_reset_after_both_ends_were_read_is_no_error, 0, MODES)
{
	connected(_i);
	shutdown(client, SHUT_WR);
	gw_expect_eof(server);
	shutdown(server, SHUT_WR);
	gw_expect_eof(client);
	all_gone(false);
}

/* Beside data on SMC-R the links decide, and the end needs no middle. _i: how it ends, and at which end that is noticed. */
START_LOOP_TEST(data_on_smcr_goes_on_without_the_middle, 0, 4)
{
	connected(ON_SMCR);
	struct session *s = gw_session(_i % 2 == 0 ? GW_IN : GW_OUT);
	/* The ingress knows then that its peer has the connection. */
	gw_say(server, "hello");
	gw_expect(client, "hello", GW_OPEN);
	if (_i < 2)
		gw_break(s->mid.io.fd);
	else
		session_raise(s, SEV_MID_LOST);
	UNTIL(s->mid.io.fd < 0);
	/* Longer than the grace for a peer that is gone. */
	for (int i = 0; i < 5; i++) {
		gw_run_ms(50);
		gw_say(client, "ping");
		gw_expect(server, "ping", GW_OPEN);
	}
	shutdown(client, SHUT_WR);
	gw_expect_eof(server);
	gw_say(server, "last");
	shutdown(server, SHUT_WR);
	gw_expect(client, "last", GW_EOF);
	all_gone(false);
}

START_TEST(rst_on_the_middle_resets_both_app_legs_on_tcp)
{
	connected(ON_TCP);
	gw_break(gw_session(GW_IN)->mid.io.fd);
	gw_expect_reset(server);
	gw_expect_reset(client);
	all_gone(true);
}

START_TEST(fin_on_the_middle_alone_gets_a_grace)
{
	gw.cfg.smcr.fin_grace_ms = 1500;
	connected(ON_SMCR);
	shutdown(gw_session(GW_IN)->mid.io.fd, SHUT_WR);
	UNTIL((gw_session(GW_OUT)->flags & SF_MID_FIN) != 0);
	/* The link is served meanwhile. */
	gw_say(client, "still");
	gw_expect(server, "still", GW_OPEN);
	gw_expect_reset(server);
	gw_expect_reset(client);
	all_gone(true);
}

/* keepalive does not see a peer that vanishes while something is on its way to it. */
static void
who_vanishes_frees_the_other(int mode, bool is_client)
{
	gw.cfg.keepalive = (struct config_keepalive){ .ack_s = 1, .probes = 3 };
	connected(mode);
	tcp_vanish(is_client ? client : server);
	gw_say(is_client ? server : client, "tick");
	gw_expect_reset(is_client ? server : client);
	all_gone(true);
}

START_LOOP_TEST(a_client_that_vanishes_frees_its_server, 0, MODES)
{
	who_vanishes_frees_the_other(_i, true);
}

START_LOOP_TEST(a_server_that_vanishes_frees_its_client, 0, MODES)
{
	who_vanishes_frees_the_other(_i, false);
}

START_LOOP_TEST(a_gateway_that_vanishes_on_tcp_frees_both, 0, 2)
{
	gw.cfg.keepalive = (struct config_keepalive){ .ack_s = 1, .probes = 3 };
	connected(ON_TCP);
	tcp_vanish(gw_session(_i == 0 ? GW_IN : GW_OUT)->mid.io.fd);
	tcp_vanish(gw_session(_i == 0 ? GW_OUT : GW_IN)->mid.io.fd);
	gw_say(client, "tick");
	gw_expect_reset(client);
	gw_say(server, "tick");
	gw_expect_reset(server);
	all_gone(true);
}

/* The gateway stands still while the client is gone. False: so did the machine, and TCP, which sends again after 0.2, 0.6, 1.4, 3,
 * 6.2 and 12.6 s, does it next when the limit has passed. */
static bool
stands_still(void)
{
	int64_t said = loop_now(gw.loop) + loop_stalled(gw.loop);

	tcp_vanish(client);
	gw_say(server, "tick");
	gw_run_ms(600);
	gw.stall_us = 4200000;
	gw_run_ms(100);
	tcp_come_back(client);
	return loop_now(gw.loop) + loop_stalled(gw.loop) - said < 6000 * MS;
}

/* A gateway that stood still for longer than the limit does not count that against its peers. */
START_LOOP_TEST(a_stalled_gateway_restarts_its_count, 0, MODES)
{
	gw.cfg.keepalive = (struct config_keepalive){ .ack_s = 4, .probes = 3 };
	connected(_i);
	while (!stands_still()) {
		close(client);
		close(server);
		UNTIL(gw_sessions() == 0);
		connect_both(_i);
	}
	gw_expect(client, "tick", GW_OPEN);
	gw_carries_both_ways();
}

START_LOOP_TEST(a_program_that_does_not_read_is_not_reset, 0, MODES)
{
	static char block[1 << 20];
	size_t sent = 0;

	gw.cfg.keepalive = (struct config_keepalive){ .ack_s = 1, .probes = 3 };
	connected(_i);
	for (int i = 0; i < 60; i++) {
		ssize_t n = send(server, block, sizeof(block), MSG_DONTWAIT | MSG_NOSIGNAL);
		sent += n > 0 ? (size_t)n : 0;
		gw_run_ms(50);
	}
	for (ssize_t n; sent > 0; sent -= n > 0 ? (size_t)n : 0) {
		n = recv(client, block, sizeof(block), MSG_DONTWAIT);
		ck_assert_msg(n > 0 || (n < 0 && errno == EAGAIN), "%zu bytes are lost: %s", sent, strerror(errno));
		gw_once();
	}
	gw_carries_both_ways();
}

START_LOOP_TEST(an_idle_connection_is_ended_by_rst, 0, MODES)
{
	gw.svc[GW_OUT].idle_ms = 1500; /* a busy machine may stop us for a second; the loop leaves out what is longer */
	connected(_i);
	for (int i = 0; i < 18; i++) {
		gw_run_ms(100);
		gw_say(client, "x");
		gw_expect(server, "x", GW_OPEN);
	}
	gw_expect_reset(server);
	gw_expect_reset(client);
	all_gone(true);
}

START_LOOP_TEST(the_end_of_the_daemon_resets_both_app_legs, 0, MODES)
{
	connected(_i);
	gw_free_workers();
	gw_expect_reset(client);
	gw_expect_reset(server);
}

/* -- urgent bytes -- */

START_LOOP_TEST(urgent_bytes_stay_urgent, 0, MODES)
{
	connected(_i);
	gw_say(client, "ab");
	gw_urgent(client, '!');
	gw_say(client, "cd");
	gw_expect(server, "ab[!]cd", GW_OPEN);
	gw_urgent(client, '1');
	gw_expect(server, "[1]", GW_OPEN);
	gw_urgent(client, '2');
	gw_expect(server, "[2]", GW_OPEN);
	gw_urgent(server, '3');
	gw_say(server, "z");
	gw_expect(client, "[3]z", GW_OPEN);
}

START_LOOP_TEST(an_urgent_byte_sent_before_data_may_flow_stays_urgent, 0, MODES)
{
	start(_i);
	client = gw_client();
	gw_say(client, "ab");
	gw_urgent(client, '!');
	server = gw_accept();
	gw_expect(server, "ab[!]", GW_OPEN);
}

/* -- connecting -- */

/* What is connected: the middle, or the server leg in both modes. */
static const struct {
	int service, mode;
} dials[] = { { GW_IN, ON_SMCR }, { GW_OUT, ON_SMCR }, { GW_OUT, ON_TCP } };

enum { DIALS = sizeof(dials) / sizeof(dials[0]) };

static struct sockaddr_storage *
dialed(int i)
{
	return dials[i].service == GW_IN ? &gw.peer_addrs[0] : &gw.server_addrs[0];
}

static void
expect_refused(int i)
{
	start(dials[i].mode);
	client = gw_client();
	gw_expect_reset(client);
	all_gone(true);
	ck_assert_uint_eq(gw_info(dials[i].service).refused_connect, 1);
	ck_assert_uint_eq(gw_info(dials[i].service).resets, 1);
}

START_LOOP_TEST(a_far_end_that_is_not_there_is_a_reset, 0, DIALS)
{
	gw_free_addr(dialed(_i));
	expect_refused(_i);
}

START_LOOP_TEST(connecting_takes_too_long, 0, DIALS)
{
	gw_black_hole(dialed(_i));
	gw.svc[dials[_i].service].connect_ms = 50;
	expect_refused(_i);
}

START_LOOP_TEST(addresses_are_tried_in_order, 0, MODES)
{
	gw.peer_addrs[2] = gw.peer_addrs[0];
	gw.server_addrs[1] = gw.server_addrs[0];
	gw_free_addr(&gw.peer_addrs[0]);
	gw_black_hole(&gw.peer_addrs[1]);
	gw_free_addr(&gw.server_addrs[0]);
	gw.to[GW_IN].addr_cnt = 3;
	gw.to[GW_OUT].addr_cnt = 2;
	gw.svc[GW_IN].connect_ms = 300; /* the last address is to answer in time on a busy machine, too */
	connected(_i);
	gw_say(client, "hello");
	gw_expect(server, "hello", GW_OPEN);
	ck_assert_uint_eq(gw_info(GW_IN).refused_connect, 0);
}

START_LOOP_TEST(a_client_that_resets_while_the_far_end_is_being_connected, 0, DIALS)
{
	gw_black_hole(dialed(_i));
	start(dials[_i].mode);
	client = gw_client();
	UNTIL(gw_session(dials[_i].service) != NULL && setup_dialing(gw_session(dials[_i].service)));
	net_reset(client);
	client = -1;
	all_gone(true);
}

START_LOOP_TEST(half_close_before_data_may_flow_is_kept, 0, MODES)
{
	start(_i);
	client = gw_client();
	shutdown(client, SHUT_WR);
	server = gw_accept();
	gw_expect_eof(server);
	gw_say(server, "late");
	gw_expect(client, "late", GW_OPEN);
}

START_LOOP_TEST(the_daemon_ends_while_connecting, 0, DIALS)
{
	gw_black_hole(dialed(_i));
	start(dials[_i].mode);
	client = gw_client();
	UNTIL(gw_session(dials[_i].service) != NULL && setup_dialing(gw_session(dials[_i].service)));
	gw_free_workers();
	gw_expect_reset(client);
}
