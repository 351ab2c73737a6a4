/* Detection of the other end, on real sockets with the real engine: an egress without the option (BPF is not needed for that),
 * plain clients, and an ingress that sends its Proposal without. */
#define GATEWAY_REAL

#include <fcntl.h>

#include "captured.h"
#include "gateway.h"
#include "unit.h"
#include "wire/clc.h"

#define EYE "\xe2\xd4\xc3\xd9"

UNIT_FIXTURE(gw_setup, gw_teardown);

static void
start(enum smcr_peer_kind in, enum smcr_peer_kind out)
{
	gw.svc[GW_IN].peer = in;
	gw.svc[GW_OUT].peer = out;
	gw_start();
}

/* A plain client of the egress, and its server. */
static void
plain_client(enum smcr_peer_kind out)
{
	start(SMCR_PEER_SMCRD, out);
	client = gw_dial(&gw.svc[GW_OUT].listen);
	server = gw_accept();
}

static const enum smcr_peer_kind kinds[] = { SMCR_PEER_LINUX, SMCR_PEER_AUTO };

START_LOOP_TEST(first_bytes_of_either_end_make_it_plain, 0, 4)
{
	plain_client(kinds[_i % 2]);
	UNTIL(gw_in_state(GW_OUT, SES_LOOK));
	ck_assert_uint_eq(gw_info(GW_OUT).fallbacks, 0);
	if (_i / 2 == 0)
		gw_say(client, "first");
	else
		gw_say(server, "first");
	gw_expect(_i / 2 == 0 ? server : client, "first", GW_OPEN);
	ck_assert(gw_in_state(GW_OUT, SES_TCP));
	gw_carries_both_ways();
	ck_assert_uint_eq(gw_info(GW_OUT).fallbacks, 1);
	ck_assert_uint_eq(gw_pool(GW_OUT)->stats.option_unknown, 1);
	ck_assert_uint_eq(gw_session(GW_OUT)->diag.local, CLC_DIAG_NO_OPTION);
	ck_assert_uint_eq(gw_pool(GW_OUT)->fallbacks.local.e[0].key, CLC_DIAG_NO_OPTION);
}

START_LOOP_TEST(a_half_close_is_passed_on_without_a_byte, 0, 2)
{
	plain_client(SMCR_PEER_AUTO);
	ck_assert_int_eq(shutdown(_i == 0 ? client : server, SHUT_WR), 0);
	gw_expect_eof(_i == 0 ? server : client);
	gw_say(_i == 0 ? server : client, "late");
	gw_expect(_i == 0 ? client : server, "late", GW_OPEN);
}

START_TEST(a_silent_client_is_idle)
{
	gw.svc[GW_OUT].idle_ms = 200;
	plain_client(SMCR_PEER_AUTO);
	gw_expect_reset(client);
	gw_expect_reset(server);
}

START_TEST(a_server_that_cannot_be_reached_is_a_reset)
{
	close(gw.listener);
	gw.listener = -1;
	start(SMCR_PEER_SMCRD, SMCR_PEER_AUTO);
	client = gw_dial(&gw.svc[GW_OUT].listen);
	gw_expect_reset(client);
	ck_assert_uint_eq(gw_info(GW_OUT).refused_connect, 1);
}

/* An ingress as all were before there was an option: at an egress with auto it has SMC-R. */
START_TEST(a_proposal_without_the_option_is_one_for_auto)
{
	start(SMCR_PEER_SMCRD, SMCR_PEER_AUTO);
	gw_connect();
	ck_assert(gw_in_state(GW_IN, SES_SMCR));
	ck_assert(gw_in_state(GW_OUT, SES_SMCR));
	ck_assert_uint_eq(gw_session(GW_OUT)->diag.local, 0);
	ck_assert_uint_eq(gw_info(GW_OUT).fallbacks, 0);
	ck_assert_uint_eq(gw_pool(GW_OUT)->stats.option_stray_clc, 1);
}

/* A server that takes its time is connected once, and the Accept waits for it. */
START_TEST(the_server_is_connected_once)
{
	start(SMCR_PEER_SMCRD, SMCR_PEER_AUTO);
	client = gw_client();
	UNTIL(gw_in_state(GW_IN, SES_SMCR));
	server = gw_accept();
	gw_carries_both_ways();
	gw_run_ms(50);
	ck_assert_int_lt(accept(gw.listener, NULL, NULL), 0);
}

/* The Proposal is in before the server leg is connected. */
START_TEST(the_accept_waits_for_the_server)
{
	gw.server_addrs[1] = gw.server_addrs[0];
	gw_black_hole(&gw.server_addrs[0]);
	gw.to[GW_OUT].addr_cnt = 2;
	gw.svc[GW_OUT].connect_ms = 100;
	start(SMCR_PEER_SMCRD, SMCR_PEER_AUTO);
	gw_connect();
	ck_assert(gw_in_state(GW_IN, SES_SMCR));
	ck_assert(gw_in_state(GW_OUT, SES_SMCR));
}

START_TEST(a_proposal_without_the_option_is_refused_by_linux)
{
	start(SMCR_PEER_SMCRD, SMCR_PEER_LINUX);
	capture_begin(LOG_LVL_NOTICE);
	client = gw_client();
	gw_expect_reset(client);
	UNTIL(gw_sessions() == 0);
	ck_assert_ptr_nonnull(strstr(capture_take(), "CLC message without the SMC-R option"));
	capture_end();
	ck_assert_uint_eq(gw_pool(GW_OUT)->stats.option_stray_clc, 1);
	ck_assert_uint_eq(gw_info(GW_OUT).fallbacks, 0);
	server = gw_accept();
	gw_expect_reset(server);
}

/* The server has spoken, so the client's first bytes come too late for SMC-R; and they are no data. */
START_LOOP_TEST(a_late_proposal_goes_nowhere, 0, 2)
{
	plain_client(kinds[_i]);
	gw_say(server, "welcome");
	gw_expect(client, "welcome", GW_OPEN);
	gw_say(client, EYE "\1more");
	gw_expect_reset(client);
	gw_expect_reset(server);
	ck_assert_uint_eq(gw_pool(GW_OUT)->stats.option_stray_clc, 1);
}

/* But only the first ones are looked at, and nothing waits for them to be four. */
START_LOOP_TEST(other_first_bytes_are_data, 0, 4)
{
	static const char *const firsts[] = { "\xe2", "\xe2\xd4\xc3", "\xe2\xd4\xc3x", ("x" EYE) };

	plain_client(SMCR_PEER_AUTO);
	if (_i % 2 == 0) {
		gw_say(server, "welcome");
		gw_expect(client, "welcome", GW_OPEN);
	}
	gw_say(client, firsts[_i]);
	gw_expect(server, firsts[_i], GW_OPEN);
	gw_say(client, EYE);
	gw_expect(server, EYE, GW_OPEN);
}

/* An ingress that cannot have the option sends a plain server nothing of its own. */
START_LOOP_TEST(a_plain_server_gets_no_stray_byte, 0, 4)
{
	gw.to[GW_IN].addrs = gw.server_addrs;
	gw.svc[GW_IN].fallback = _i / 2 == 0 ? CONFIG_FALLBACK_TCP : CONFIG_FALLBACK_REFUSE;
	start(kinds[_i % 2], SMCR_PEER_SMCRD);
	client = gw_client();
	server = gw_accept();
	if (_i / 2 == 0) {
		gw_say(server, "welcome");
		gw_expect(client, "welcome", GW_OPEN);
		gw_carries_both_ways();
		ck_assert_uint_eq(gw_info(GW_IN).fallbacks, 1);
	} else {
		gw_expect_reset(client);
		gw_expect_reset(server);
		ck_assert_uint_eq(gw_info(GW_IN).refused_fallback, 1);
	}
	ck_assert_uint_eq(smcr_counters(worker_engine(gw.w))->clc_sent, 0);
}

/* Where TCP is forbidden: linux has nothing to wait for, auto waits for a CLC message as smcrd does. */
START_TEST(refuse_means_no_plain_client)
{
	gw.svc[GW_OUT].fallback = CONFIG_FALLBACK_REFUSE;
	start(SMCR_PEER_SMCRD, SMCR_PEER_LINUX);
	client = gw_dial(&gw.svc[GW_OUT].listen);
	gw_expect_reset(client);
	ck_assert_uint_eq(gw_info(GW_OUT).refused_fallback, 1);
}

START_TEST(refuse_and_auto_is_smcr_alone)
{
	gw.svc[GW_OUT].fallback = CONFIG_FALLBACK_REFUSE;
	start(SMCR_PEER_SMCRD, SMCR_PEER_AUTO);
	gw_connect();
	ck_assert(gw_in_state(GW_OUT, SES_SMCR));
	ck_assert_uint_eq(gw_session(GW_OUT)->diag.local, 0);
	int other = gw_dial(&gw.svc[GW_OUT].listen);
	gw_say(other, "plain");
	gw_expect_reset(other);
	close(other);
}

/* -- a first contact that others wait for, led by the test -- */

static int leader, leaders_server;

static void
propose(int fd)
{
	struct clc_msg msg = { .type = CLC_PROPOSAL, .version = 1 };
	uint8_t buf[CLC_MAX_LEN];

	msg.proposal.typev1 = CLC_PATH_R;
	memset(msg.proposal.peer_id, 7, sizeof(msg.proposal.peer_id));
	msg.proposal.gid[15] = 1;
	msg.proposal.ipv4_subnet = 0x7f000000;
	msg.proposal.ipv4_len = 8;
	msg.proposal.ext = (struct clc_smcrd_ext){
		.present = true, .version = CLC_SMCRD_EXT_VERSION, .transports = CLC_TRANSPORT_IWARP, .recv_depth = 64
	};
	int n = clc_encode(&msg, buf, sizeof(buf));
	ck_assert_int_gt(n, 0);
	ck_assert_int_eq(send(fd, buf, (size_t)n, MSG_NOSIGNAL), n);
}

static struct smcr *
engine(void)
{
	return worker_engine(gw_worker(GW_OUT));
}

/* It has its Accept, and its Confirm does not come; then there is another client of that address, or of another one, whose server
 * speaks first. */
static void
lead_and_dial(enum smcr_peer_kind out, const char *from)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };

	start(SMCR_PEER_SMCRD, out);
	leader = gw_dial(&gw.svc[GW_OUT].listen);
	leaders_server = gw_accept();
	if (out == SMCR_PEER_AUTO) {
		propose(leader);
		UNTIL(smcr_counters(engine())->first_contacts == 1);
	}
	client = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(inet_pton(AF_INET, from, &sin.sin_addr), 1);
	ck_assert_int_eq(bind(client, (struct sockaddr *)&sin, sizeof(sin)), 0);
	ck_assert_int_eq(connect(client, (struct sockaddr *)&gw.svc[GW_OUT].listen, sizeof(sin)), 0);
	ck_assert_int_eq(fcntl(client, F_SETFL, O_NONBLOCK), 0);
	server = gw_accept();
	gw_say(server, "welcome");
}

static void
leave(void)
{
	close(leader);
	close(leaders_server);
}

/* It waits for its turn with its Proposal: the server's first bytes do not take SMC-R from it. */
START_TEST(a_waiter_for_a_first_contact_may_send_after_the_server)
{
	lead_and_dial(SMCR_PEER_AUTO, "127.0.0.1");
	gw_run_ms(50);
	propose(client);
	UNTIL(gw_pool(GW_OUT)->stats.option_stray_clc == 2);
	leave();
	UNTIL(smcr_counters(engine())->first_contacts == 2);
	ck_assert_uint_eq(gw_info(GW_OUT).fallbacks, 0);
}

/* The end of the first contact wakes it: there is nothing to look for meanwhile. */
START_TEST(a_waiter_for_a_first_contact_sleeps)
{
	struct session *s;

	lead_and_dial(SMCR_PEER_AUTO, "127.0.0.1");
	gw_run_ms(50);
	for (uint32_t pos = 0; (s = idtable_next(&gw_pool(GW_OUT)->sessions, &pos)) != NULL && s->state != SES_LOOK;)
		;
	ck_assert_ptr_nonnull(s);
	int64_t at_ns = s->timer.at_ns;
	ck_assert(timer_armed(&s->timer) && at_ns > loop_now(gw.loop) + 4000 * MS);
	leave();
	gw_expect(client, "welcome", GW_OPEN);
	ck_assert_int_lt(loop_now(gw.loop), at_ns - 2000 * MS);
}

/* Its Proposal is on its way when the first contact ends. */
START_TEST(a_first_contact_that_has_just_ended_counts)
{
	lead_and_dial(SMCR_PEER_AUTO, "127.0.0.1");
	gw_run_ms(10);
	leave();
	UNTIL(smcr_counters(engine())->first_contacts_failed == 1 || gw_pool(GW_OUT)->sessions.used == 1);
	gw_run_ms(50);
	propose(client);
	UNTIL(smcr_counters(engine())->first_contacts == 2);
	ck_assert_uint_eq(gw_info(GW_OUT).fallbacks, 0);
}

/* A plain client of the same address has the server's first bytes soon after. */
START_LOOP_TEST(a_plain_client_waits_for_the_first_contact_alone, 0, 2)
{
	gw.svc[GW_OUT].idle_ms = _i == 0 ? 0 : 5000;
	lead_and_dial(SMCR_PEER_AUTO, "127.0.0.1");
	gw_run_ms(50);
	leave();
	gw_expect(client, "welcome", GW_OPEN);
	gw_carries_both_ways();
	ck_assert_uint_eq(gw_info(GW_OUT).fallbacks, 1);
	gw_run_ms(100);
	ck_assert(gw_in_state(GW_OUT, SES_TCP));
}

/* And at once when it speaks itself. */
START_TEST(a_plain_client_that_speaks_waits_for_no_first_contact)
{
	lead_and_dial(SMCR_PEER_AUTO, "127.0.0.1");
	gw_run_ms(10);
	gw_say(client, "hello");
	gw_expect(client, "welcome", GW_OPEN);
	gw_expect(server, "hello", GW_OPEN);
	gw_run_ms(100);
	gw_carries_both_ways();
	ck_assert_uint_eq(smcr_counters(engine())->first_contacts_failed, 0);
	leave();
}

/* Whoever cannot wait for it waits for nothing. */
START_LOOP_TEST(others_do_not_wait_for_a_first_contact, 0, 2)
{
	lead_and_dial(kinds[_i], _i == 0 ? "127.0.0.1" : "127.0.0.9");
	gw_expect(client, "welcome", GW_OPEN);
	ck_assert_uint_eq(gw_pool(GW_OUT)->sessions.used, 2);
	leave();
}

/* One first contact after the other: the wait has an end. */
START_TEST(a_plain_client_does_not_wait_for_ever)
{
	gw.cfg.smcr.clc_ms = 300;
	lead_and_dial(SMCR_PEER_AUTO, "127.0.0.1");
	for (char got[16] = ""; strcmp(got, "welcome") != 0; (void)gw_read(client, got, sizeof(got))) {
		leave();
		leader = gw_dial(&gw.svc[GW_OUT].listen);
		leaders_server = gw_accept();
		propose(leader);
		gw_run_ms(20);
		ck_assert_uint_le(smcr_counters(engine())->first_contacts, 100);
	}
	leave();
}
