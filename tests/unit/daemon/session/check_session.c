/* Sessions of a gateway: fallback and refusal, PROXY headers, allow lists and limits, hostile
 * first bytes, exhausted descriptors. Engine and device are the stand-in of fake_smcr.c. */
#include "daemon/session/session.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/resource.h>

#include "daemon/leg/proxy_header.h"
#include "captured.h"
#include "gateway.h"
#include "unit.h"

#define DIAG 0x03030000u

static unsigned
open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static unsigned fds_before;

static void
setup(void)
{
	fds_before = open_fds();
	gw_setup();
}

/* Whatever a test did: nothing leaks. */
static void
teardown(void)
{
	gw_hang_up(&client);
	gw_hang_up(&server);
	UNTIL(gw_sessions() == 0);
	ck_assert_uint_eq(gw_pool(GW_IN)->bufs.lent, 0);
	ck_assert_uint_eq(gw_pool(GW_IN)->setup_slab.used, 0);
	ck_assert_uint_eq(gw_pool(GW_IN)->session_slab.used, 0);
	gw_stop();
	ck_assert_uint_eq(open_fds(), fds_before);
}

UNIT_FIXTURE(setup, teardown);

/* -- fallback -- */

START_LOOP_TEST(a_fallback_is_counted_and_says_why, 0, 2)
{
	struct session_info info;
	uint32_t pos = 0;

	if (_i == 0)
		fake.server_declines = DIAG;
	else
		fake.client_declines = DIAG;
	gw_begin();
	while (worker_session_next(gw.w, &pos, &info)) {
		bool local = (info.kind == CONFIG_EGRESS) == (_i == 0);

		ck_assert_int_eq(info.mode, SESSION_TCP);
		ck_assert_ptr_null(info.conn);
		ck_assert_uint_eq(info.diag.local, local ? DIAG : 0);
		ck_assert_uint_eq(info.diag.peer, local ? 0 : DIAG);
		ck_assert_uint_eq(info.bytes_from_app, 4);
		ck_assert_uint_eq(info.bytes_to_app, 4);
	}
	ck_assert_uint_eq(gw_info(GW_IN).fallbacks, 1);
	ck_assert_uint_eq(gw_info(GW_OUT).fallbacks, 1);
	ck_assert_uint_eq(gw_pool(GW_IN)->fallbacks.local.e[0].key, DIAG);
	ck_assert_uint_eq(gw_pool(GW_IN)->fallbacks.local.e[0].cnt, 1);
	ck_assert_uint_eq(gw_pool(GW_IN)->fallbacks.peer.e[0].cnt, 1);
}

START_LOOP_TEST(refuse_means_no_tcp, 0, 2)
{
	const char *name = _i == GW_IN ? "service=in " : "service=out ";

	gw.svc[_i].fallback = CONFIG_FALLBACK_REFUSE;
	fake.server_declines = DIAG;
	gw_start();
	capture_begin(LOG_LVL_INFO);
	client = gw_client();
	gw_expect_reset(client);
	UNTIL(gw_info(_i).connections == 0);
	ck_assert_uint_eq(gw_info(_i).fallbacks, 0);
	ck_assert_uint_eq(gw_info(_i).refused_fallback, 1);
	ck_assert_uint_eq(gw_info(_i).resets, 1);
	const char *line = strstr(capture_take(), "connection closed");
	while (line != NULL && strncmp(strstr(line, "service="), name, strlen(name)) != 0)
		line = strstr(line + 1, "connection closed");
	ck_assert_ptr_nonnull(line);
	ck_assert_ptr_nonnull(
	    strstr(line, _i == GW_IN ? " mode=refused peer_code=0x03030000 " : " mode=refused local_code=0x03030000 "));
	capture_end();
}

/* Data goes out behind our Decline while the peer's may still come in: it is a Decline (0), data (1), or data that begins
 * like one (2). */
START_LOOP_TEST(a_late_decline_is_not_taken_for_data, 0, 3)
{
	static const char *const arrives[] = { "data", "data", "FA" };
	uint8_t msg[FAKE_MSG_LEN];

	fake.server_declines = DIAG;
	fake.late_declines = true;
	gw_start();
	client = gw_dial(&gw.svc[GW_OUT].listen);
	fake_encode(msg, FAKE_PROPOSAL, 0, 12345);
	ck_assert_int_eq(send(client, msg, sizeof(msg), 0), FAKE_MSG_LEN);
	server = gw_accept();
	gw_say(server, "hello");
	UNTIL(recv(client, msg, sizeof(msg), 0) == FAKE_MSG_LEN);
	ck_assert_int_eq(msg[4], FAKE_DECLINE);
	gw_expect(client, "hello", GW_OPEN);
	if (_i == 0) {
		fake_encode(msg, FAKE_DECLINE, 0, DIAG + 1);
		ck_assert_int_eq(send(client, msg, sizeof(msg), 0), FAKE_MSG_LEN);
	}
	gw_say(client, arrives[_i]);
	ck_assert_int_eq(shutdown(client, SHUT_WR), 0);
	gw_expect(server, arrives[_i], GW_EOF);
	ck_assert_uint_eq(gw_pool(GW_IN)->fallbacks.peer.e[0].cnt, _i == 0);
	gw_hang_up(&server);
	UNTIL(gw_sessions() == 0);
	ck_assert_uint_eq(gw_info(GW_OUT).resets, 0);
}

/* Data behind a Decline, in one piece with it (0), with the Proposal as well (1), behind one that comes late (2), and with an
 * urgent byte at its end (3). */
START_LOOP_TEST(data_that_comes_with_a_decline_is_passed_on, 0, 4)
{
	uint8_t msg[3 * FAKE_MSG_LEN], *at = msg;

	fake.server_declines = _i == 2 ? DIAG : 0;
	fake.late_declines = true;
	gw_start();
	client = gw_dial(&gw.svc[GW_OUT].listen);
	fake_encode(at, FAKE_PROPOSAL, 0, 12345);
	at += FAKE_MSG_LEN;
	if (_i == 0 || _i == 2) {
		uint8_t reply[FAKE_MSG_LEN];

		ck_assert_int_eq(send(client, msg, FAKE_MSG_LEN, 0), FAKE_MSG_LEN);
		UNTIL(recv(client, reply, sizeof(reply), 0) == FAKE_MSG_LEN);
		ck_assert_int_eq(reply[4], _i == 0 ? FAKE_ACCEPT : FAKE_DECLINE);
		at = msg;
	}
	fake_encode(at, FAKE_DECLINE, 0, DIAG + 1);
	at += FAKE_MSG_LEN;
	memcpy(at, "data", 4);
	ck_assert_int_eq(send(client, msg, (size_t)(at + 4 - msg), 0), at + 4 - msg);
	if (_i == 3)
		gw_urgent(client, '!');
	server = gw_accept();
	gw_expect(server, _i == 3 ? "data[!]" : "data", GW_OPEN);
	ck_assert_uint_eq(gw_pool(GW_IN)->fallbacks.peer.e[0].cnt, 1);
	gw_say(server, "back");
	if (_i == 1 || _i == 3)
		UNTIL(recv(client, msg, FAKE_MSG_LEN, 0) == FAKE_MSG_LEN); /* the Accept */
	gw_expect(client, "back", GW_OPEN);
	gw_say(client, "more");
	gw_expect(server, "more", GW_OPEN);
}

/* The test is the peer of the ingress. A Decline, data and a RST come in one turn: the data is the client's. */
START_TEST(data_between_a_decline_and_a_reset_is_passed_on)
{
	int ls = gw_listen(&gw.peer_addrs[0]), peer;
	uint8_t msg[FAKE_MSG_LEN + 4];

	gw.cfg.service_cnt = 1;
	gw_start();
	client = gw_client();
	UNTIL((peer = accept4(ls, NULL, NULL, SOCK_NONBLOCK)) >= 0);
	UNTIL(recv(peer, msg, sizeof(msg), 0) == FAKE_MSG_LEN);
	fake_encode(msg, FAKE_DECLINE, 0, DIAG);
	memcpy(msg + FAKE_MSG_LEN, "data", 4);
	ck_assert_int_eq(send(peer, msg, sizeof(msg), 0), sizeof(msg));
	gw_break(peer);
	gw_expect(client, "data", GW_RESET);
	close(peer);
	close(ls);
}

START_TEST(refusing_does_not_wait_for_a_late_decline)
{
	gw.svc[GW_OUT].fallback = CONFIG_FALLBACK_REFUSE;
	fake.server_declines = DIAG;
	fake.late_declines = true;
	gw_start();
	client = gw_client();
	gw_expect_reset(client);
	UNTIL(gw_info(GW_OUT).connections == 0);
}

START_LOOP_TEST(out_of_sync_is_tried_once_more, 0, 2)
{
	gw.svc[GW_IN].fallback = CONFIG_FALLBACK_REFUSE;
	fake.server_declines = DIAG;
	fake.out_of_sync = true;
	fake.decline_cnt = 1 + (unsigned)_i;
	gw_start();
	client = gw_client();
	/* The egress went on with the declined one on TCP, and learns that nobody is there. */
	int declined = gw_accept();

	gw_expect_eof(declined);
	close(declined);
	if (_i == 0) {
		server = gw_accept();
		gw_carries_both_ways();
		ck_assert(gw_in_state(GW_IN, SES_SMCR));
	} else {
		gw_expect_reset(client);
	}
	ck_assert_uint_eq(fake_seen.declines, 1 + (unsigned)_i);
	ck_assert_uint_eq(gw_info(GW_IN).fallbacks, 0);
	ck_assert_uint_eq(gw_info(GW_IN).refused_fallback, (unsigned)_i);
}

START_TEST(no_free_connection_in_the_engine_is_a_reset)
{
	fake.open_fails = true;
	gw_start();
	client = gw_client();
	gw_expect_reset(client);
	ck_assert_uint_eq(gw_pool(GW_IN)->stats.sessions_reset, _i == 0 ? 2 : 1);
}

/* -- PROXY header -- */

static const enum config_proxy proxies[] = { CONFIG_PROXY_V1, CONFIG_PROXY_V2 };

START_LOOP_TEST(the_proxy_header_comes_first, 0, 4)
{
	bool tcp = _i / 2 == 1;
	union net_addr src, dst;
	struct sockaddr_storage ss = { 0 };
	socklen_t len = sizeof(ss);
	uint8_t want[PROXY_HEADER_MAX + 5], got[256];
	size_t have = 0;

	gw.svc[GW_IN].proxy_protocol = proxies[_i % 2];
	fake.server_declines = tcp ? DIAG : 0;
	gw_start();
	client = gw_client();
	gw_say(client, "hello");
	ck_assert_int_eq(getsockname(client, (struct sockaddr *)&ss, &len), 0);
	net_addr_set(&src, &ss);
	net_addr_set(&dst, &gw.svc[GW_IN].listen);
	size_t hdr = proxy_header(proxies[_i % 2], &src, &dst, want);
	memcpy(want + hdr, "hello", 5);
	server = gw_accept();
	while (have < hdr + 5) {
		ssize_t n = recv(server, got + have, sizeof(got) - have, 0);

		have += n > 0 ? (size_t)n : 0;
		gw_once();
	}
	ck_assert_uint_eq(have, hdr + 5);
	ck_assert_mem_eq(got, want, have);
	gw_say(server, "world");
	gw_expect(client, "world", GW_OPEN);
}

START_LOOP_TEST(the_proxy_header_comes_without_a_word_of_the_client, 0, 2)
{
	char text[256] = "", want[128], to[INET_ADDRSTRLEN];
	const struct sockaddr_in *listen = (const struct sockaddr_in *)&gw.svc[GW_IN].listen;

	ck_assert_ptr_nonnull(inet_ntop(AF_INET, &listen->sin_addr, to, sizeof(to)));
	snprintf(want, sizeof(want), "PROXY TCP4 127.0.0.1 %s ", to);
	gw.svc[GW_IN].proxy_protocol = CONFIG_PROXY_V1;
	fake.server_declines = _i == 1 ? DIAG : 0;
	gw_start();
	client = gw_client();
	server = gw_accept();
	UNTIL(gw_read(server, text, sizeof(text)) == GW_OPEN && strstr(text, "\r\n") != NULL);
	ck_assert_int_eq(strncmp(text, want, strlen(want)), 0);
}

/* -- who may come, and how many -- */

START_LOOP_TEST(the_allow_list_is_obeyed, 0, 2)
{
	struct config_net nets[2] = {
		{ .addr = { [10] = 0xff, [11] = 0xff, [12] = 192, [14] = 2 }, .prefix_len = 120 },
		{ .addr = { [10] = 0xff, [11] = 0xff, [12] = 127 }, .prefix_len = 104 },
	};

	gw.svc[_i].allow = nets;
	gw.svc[_i].allow_cnt = 1;
	gw_start();
	client = gw_client();
	gw_expect_reset(client);
	gw_hang_up(&client);
	ck_assert_uint_eq(gw_info(_i).refused_allow, 1);
	ck_assert_uint_eq(gw_info(_i).connections, 0);
	gw.svc[_i].allow_cnt = 2;
	ck_assert_int_eq(gw_reload(), 0);
	gw_connect();
	ck_assert_uint_eq(gw_info(_i).refused_allow, 1);
}

/* _i / 2: max_connections, or max_connections_per_peer, with which another peer may come */
START_LOOP_TEST(no_more_connections_than_are_allowed, 0, 4)
{
	struct sockaddr_in other = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000109) };
	const int service = _i % 2, per_peer = _i / 2;
	int fd;

	gw_begin();
	/* Those that were there before the limit was set count too. */
	gw.svc[service].max_connections = per_peer ? 1000 : 1;
	gw.svc[service].max_per_peer = per_peer ? 1 : 0;
	ck_assert_int_eq(gw_reload(), 0);
	int extra = gw_client();
	gw_expect_reset(extra);
	close(extra);
	if (per_peer && service == GW_IN) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		ck_assert_int_eq(bind(fd, (struct sockaddr *)&other, sizeof(other)), 0);
		ck_assert_int_eq(connect(fd, (struct sockaddr *)&gw.svc[GW_IN].listen, sizeof(other)), 0);
		extra = gw_accept();
		close(fd);
		close(extra);
		UNTIL(gw_sessions() == 2);
	}
	gw_carries_both_ways();
	gw_hang_up(&client);
	gw_hang_up(&server);
	UNTIL(gw_sessions() == 0);
	gw_connect();
	ck_assert_uint_eq(gw_info(service).refused_per_peer, per_peer ? 1 : 0);
	ck_assert_uint_eq(gw_info(service).refused_max, per_peer ? 0 : 1);
}

/* How often it was logged. */
static unsigned
logged(const char *log, const char *what)
{
	unsigned n = 0;

	for (const char *p = log; (p = strstr(p, what)) != NULL; p++)
		n++;
	return n;
}

START_TEST(accepting_goes_on_after_descriptors_ran_out)
{
	struct rlimit lim = { .rlim_cur = 0 }, old;
	int waiting[8];

	gw_begin();
	capture_begin(LOG_LVL_NOTICE);
	for (int i = 0; i < 8; i++)
		waiting[i] = gw_client();
	getrlimit(RLIMIT_NOFILE, &old);
	lim.rlim_max = old.rlim_max;
	lim.rlim_cur = (rlim_t)dup(0);
	close((int)lim.rlim_cur);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &lim), 0);
	UNTIL(gw_pool(GW_IN)->stats.accept_pauses >= 3);
	gw_carries_both_ways();
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
	UNTIL(gw_info(GW_IN).accepted == 9);
	const char *log = capture_take();
	ck_assert_msg(logged(log, "warning: accepting paused: ") == 1, "not once:\n%s", log);
	ck_assert_msg(logged(log, "notice: accepting goes on: ") == 1, "not once:\n%s", log);
	for (int i = 0; i < 8; i++)
		close(waiting[i]);
	for (int fd, i = 0; i < 8; i += fd >= 0)
		if ((fd = accept4(gw.listener, NULL, NULL, 0)) >= 0)
			close(fd);
		else
			gw_once();
	gw_carries_both_ways();
	capture_end();
}

/* The last one goes to the client's leg, and there is none for the middle. */
START_TEST(a_client_accepted_with_the_last_descriptor_waits_for_another)
{
	struct rlimit lim = { .rlim_cur = 0 }, old;
	int waiting[3];

	gw_begin();
	for (int i = 0; i < 3; i++)
		waiting[i] = gw_client();
	getrlimit(RLIMIT_NOFILE, &old);
	lim.rlim_max = old.rlim_max;
	lim.rlim_cur = (rlim_t)dup(0) + 1;
	close((int)lim.rlim_cur - 1);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &lim), 0);
	UNTIL(gw_pool(GW_IN)->stats.accept_pauses >= 4);
	ck_assert_uint_eq(gw_info(GW_IN).accepted, 2);
	for (int i = 0; i < 3; i++)
		ck_assert(recv(waiting[i], &(char){ 0 }, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	gw_carries_both_ways();
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
	for (int fd, i = 0; i < 3; i += fd >= 0)
		if ((fd = accept4(gw.listener, NULL, NULL, 0)) >= 0)
			close(fd);
		else
			gw_once();
	ck_assert_uint_eq(gw_info(GW_IN).refused_connect, 0);
	for (int i = 0; i < 3; i++)
		close(waiting[i]);
	gw_carries_both_ways();
}

START_TEST(a_listener_that_is_closed_pauses_no_more)
{
	struct rlimit lim = { .rlim_cur = 0 }, old;

	gw_begin();
	int waiting = gw_client();
	getrlimit(RLIMIT_NOFILE, &old);
	lim.rlim_max = old.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &lim), 0);
	UNTIL(gw_pool(GW_IN)->stats.accept_pauses > 0);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
	ck_assert_uint_eq(gw.pauses.paused, 1);
	gw.cfg.services = &gw.svc[GW_OUT];
	gw.cfg.service_cnt = 1;
	ck_assert_int_eq(gw_reload(), 0);
	ck_assert_uint_eq(gw.pauses.paused, 0);
	close(waiting);
}

/* Served here, clients that wait would wait for the end of this process and their peers, if these are services of the same one, for
 * the next. */
START_LOOP_TEST(a_drain_takes_whom_no_other_process_will_serve, 0, 2)
{
	bool elsewhere = _i == 1;

	gw_begin();
	LIST_EACH(struct service, svc, &gw_pool(GW_IN)->services, node)
		svc->listener.sock.elsewhere = elsewhere;
	uint64_t before = gw_info(GW_IN).accepted;
	int waiting = gw_client();
	ck_assert_int_eq(session_pool_drain(gw_pool(GW_IN), true), 0);
	ck_assert_uint_eq(gw_info(GW_IN).accepted, before + !elsewhere);
	ck_assert_int_eq(session_pool_drain(gw_pool(GW_IN), false), 0);
	close(gw_accept());
	ck_assert_uint_eq(gw_info(GW_IN).accepted, before + 1);
	close(waiting);
}

/* -- hostile peers, on the egress's port -- */

static const char *const garbage[] = { "GET / HTTP/1.0\r\n\r\n", "F", "FAK\n", "FAKE1234567890123456789" };

START_LOOP_TEST(first_bytes_that_are_no_clc_end_the_connection, 0, 4)
{
	gw.cfg.smcr.clc_ms = 200;
	gw_start();
	client = gw_dial(&gw.svc[GW_OUT].listen);
	gw_say(client, garbage[_i]);
	gw_expect_reset(client);
	ck_assert_uint_eq(gw_info(GW_OUT).resets, 1);
	ck_assert_int_lt(accept4(gw.listener, NULL, NULL, 0), 0);
}

/* Speaks so many messages, then nothing more. */
static void
stop_after(int step)
{
	uint8_t msg[FAKE_MSG_LEN], reply[FAKE_MSG_LEN];

	client = gw_dial(&gw.svc[GW_OUT].listen);
	if (step == 0)
		return;
	fake_encode(msg, FAKE_PROPOSAL, 0, 12345);
	ck_assert_int_eq(send(client, msg, step == 1 ? 7 : sizeof(msg), 0), step == 1 ? 7 : FAKE_MSG_LEN);
	if (step < 3)
		return;
	UNTIL(recv(client, reply, sizeof(reply), 0) == FAKE_MSG_LEN);
	ck_assert_int_eq(reply[4], FAKE_ACCEPT);
	fake_encode(msg, FAKE_CONFIRM, 0, 12345);
	ck_assert_int_eq(send(client, msg, 7, 0), 7);
}

START_LOOP_TEST(a_peer_that_stops_at_any_step_is_cut_off, 0, 4)
{
	gw.cfg.smcr.clc_ms = 1500; /* for the others, too, on a machine under load */
	gw_start();
	stop_after(_i);
	if (_i >= 2)
		server = gw_accept();
	/* Others are not disturbed. */
	int other = gw_client(), other_server = gw_accept();

	gw_say(other, "ping");
	gw_expect(other_server, "ping", GW_OPEN);
	UNTIL(gw_info(GW_OUT).connections == 1);
	ck_assert_uint_eq(gw_info(GW_OUT).resets, 1);
	gw_say(other, "more");
	gw_expect(other_server, "more", GW_OPEN);
	close(other);
	close(other_server);
}

START_LOOP_TEST(a_peer_that_goes_away_at_any_step_leaves_nothing, 0, 8)
{
	gw_start();
	stop_after(_i / 2);
	UNTIL(gw_info(GW_OUT).connections == 1);
	if (_i % 2 == 1)
		net_reset(client);
	else
		gw_hang_up(&client);
	UNTIL(gw_sessions() == 0);
	server = accept4(gw.listener, NULL, NULL, SOCK_NONBLOCK);
	if (server >= 0)
		gw_expect_reset(server);
}

/* The test is the peer of the ingress. */
START_LOOP_TEST(a_peer_that_fails_the_ingress_is_a_reset_for_the_client, 0, 4)
{
	int ls = gw_listen(&gw.peer_addrs[0]), peer;

	gw.cfg.service_cnt = 1;
	gw.cfg.smcr.clc_ms = 200;
	gw_start();
	client = gw_client();
	UNTIL((peer = accept4(ls, NULL, NULL, 0)) >= 0);
	switch (_i) {
	case 0:
		net_reset(peer);
		break;
	case 1:
		close(peer);
		break;
	case 2:
		gw_say(peer, "220 mail.example ESMTP\r\n");
		break;
	default:
		break; /* says nothing */
	}
	gw_expect_reset(client);
	if (_i >= 2)
		close(peer);
	close(ls);
	ck_assert_uint_eq(gw_info(GW_IN).resets, 1);
}

START_TEST(a_client_that_resets_during_the_rendezvous)
{
	int ls = gw_listen(&gw.peer_addrs[0]), peer;
	char buf[64];

	gw.cfg.service_cnt = 1;
	gw_start();
	client = gw_client();
	UNTIL((peer = accept4(ls, NULL, NULL, SOCK_NONBLOCK)) >= 0);
	UNTIL(gw_in_state(GW_IN, SES_RENDEZVOUS));
	net_reset(client);
	client = -1;
	UNTIL(recv(peer, buf, sizeof(buf), 0) < 0 && errno == ECONNRESET);
	ck_assert_uint_eq(fake_seen.aborts, 1);
	close(peer);
	close(ls);
}

START_TEST(a_peer_that_makes_a_group_ahead_needs_no_server)
{
	uint8_t msg[FAKE_MSG_LEN];

	gw_start();
	client = gw_dial(&gw.svc[GW_OUT].listen);
	fake_encode(msg, FAKE_PROPOSAL, FAKE_F_PREWARM, 12345);
	ck_assert_int_eq(send(client, msg, sizeof(msg), 0), FAKE_MSG_LEN);
	UNTIL(recv(client, msg, sizeof(msg), 0) == FAKE_MSG_LEN);
	fake_encode(msg, FAKE_CONFIRM, 0, 12345);
	ck_assert_int_eq(send(client, msg, sizeof(msg), 0), FAKE_MSG_LEN);
	gw_expect_eof(client);
	ck_assert_uint_eq(gw_info(GW_OUT).resets, 0);
	ck_assert_uint_eq(gw_info(GW_OUT).accepted, 0);
	ck_assert_int_lt(accept4(gw.listener, NULL, NULL, 0), 0);
}

/* It connects to the server, and says how that went: no client, nor a refused one. */
START_LOOP_TEST(a_probe_asks_for_the_server, 0, 2)
{
	uint8_t msg[FAKE_MSG_LEN];

	gw_start();
	if (_i == 1) {
		close(gw.listener);
		gw.listener = -1;
	}
	client = gw_dial(&gw.svc[GW_OUT].listen);
	fake_encode(msg, FAKE_PROPOSAL, FAKE_F_PREWARM | FAKE_F_ASKS, 12345);
	ck_assert_int_eq(send(client, msg, sizeof(msg), 0), FAKE_MSG_LEN);
	if (_i == 0) {
		UNTIL((server = accept4(gw.listener, NULL, NULL, SOCK_NONBLOCK)) >= 0);
		gw_expect_eof(server);
	}
	UNTIL(recv(client, msg, sizeof(msg), 0) == FAKE_MSG_LEN);
	ck_assert_int_eq(msg[4], FAKE_ACCEPT);
	ck_assert_int_eq(msg[5], _i == 0 ? CLC_SERVER_UP : CLC_SERVER_REFUSED);
	fake_encode(msg, FAKE_CONFIRM, 0, 12345);
	ck_assert_int_eq(send(client, msg, sizeof(msg), 0), FAKE_MSG_LEN);
	gw_expect_eof(client);
	ck_assert_uint_eq(gw_info(GW_OUT).resets, 0);
	ck_assert_uint_eq(gw_info(GW_OUT).accepted, 0);
	ck_assert_uint_eq(gw_info(GW_OUT).refused_connect, 0);
}

/* Nor one that is told why it cannot be: nobody goes on for it over TCP. A client that is told so does count. */
START_LOOP_TEST(a_probe_that_is_declined_needs_no_server, 0, 2)
{
	uint8_t msg[FAKE_MSG_LEN];

	fake.server_declines = 0x03030000;
	gw_start();
	client = gw_dial(&gw.svc[GW_OUT].listen);
	fake_encode(msg, FAKE_PROPOSAL, _i == 0 ? FAKE_F_PREWARM : 0, 12345);
	ck_assert_int_eq(send(client, msg, sizeof(msg), 0), FAKE_MSG_LEN);
	UNTIL(recv(client, msg, sizeof(msg), 0) == FAKE_MSG_LEN);
	ck_assert_int_eq(msg[4], FAKE_DECLINE);
	if (_i == 0) {
		gw_expect_eof(client);
		ck_assert_int_lt(accept4(gw.listener, NULL, NULL, 0), 0);
	} else {
		UNTIL((server = accept4(gw.listener, NULL, NULL, SOCK_NONBLOCK)) >= 0);
	}
	ck_assert_uint_eq(gw_info(GW_OUT).accepted, _i == 0 ? 0 : 1);
	ck_assert_uint_eq(gw_info(GW_OUT).fallbacks, _i == 0 ? 0 : 1);
	ck_assert_uint_eq(gw_info(GW_OUT).resets, 0);
}

static int
option(int fd, int level, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	ck_assert_int_eq(getsockopt(fd, level, name, &value, &len), 0);
	return value;
}

START_TEST(every_leg_has_its_options)
{
	gw.cfg.keepalive = (struct config_keepalive){ .enabled = true, .idle_s = 77, .interval_s = 7, .probes = 5 };
	gw_begin();
	for (int i = 0; i < 4; i++) {
		const struct session *s = gw_session(i / 2 == 0 ? GW_IN : GW_OUT);
		int fd = i % 2 == 0 ? s->app.io.fd : s->mid.io.fd;

		ck_assert_int_ne(option(fd, IPPROTO_TCP, TCP_NODELAY), 0);
		ck_assert_int_ne(option(fd, SOL_SOCKET, SO_OOBINLINE), 0);
		ck_assert_int_ne(option(fd, SOL_SOCKET, SO_KEEPALIVE), 0);
		ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 77);
		ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_KEEPINTVL), 7);
		ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_KEEPCNT), 5);
		ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
		ck_assert_int_ne(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	}
}

/* RFC 7609 4.5.3: less keepalive on the middle while links are tested; as much as elsewhere once it carries data. */
START_LOOP_TEST(keepalive_of_an_idle_middle_has_its_own_minimum, 0, 3)
{
	gw.cfg.keepalive = (struct config_keepalive){
		.enabled = true,
		.idle_s = 7,
		.interval_s = 3,
		.probes = 5,
		.smcr_min_s = _i == 2 ? 5 : 50,
	};
	if (_i == 1)
		fake.client_declines = DIAG;
	gw_begin();
	for (int i = 0; i < GW_SERVICES; i++) {
		const struct session *s = gw_session(i);

		ck_assert_int_eq(option(s->app.io.fd, IPPROTO_TCP, TCP_KEEPIDLE), 7);
		ck_assert_int_eq(option(s->mid.io.fd, IPPROTO_TCP, TCP_KEEPIDLE), _i == 0 ? 50 : 7);
		ck_assert_int_eq(option(s->mid.io.fd, IPPROTO_TCP, TCP_KEEPINTVL), 3);
	}
}

START_LOOP_TEST(a_closed_connection_is_one_line_that_says_all, 0, 3)
{
	char peer[ADDR_STR_MAX + 8] = " peer=", srv[ADDR_STR_MAX + 32] = "service=out server=";
	const char *const want[] = { "service=in client=127.0.0.1:", peer, " from_client=4 to_client=4 ", srv,
		" from_server=4 to_server=4 ",
		" duration_ms=", _i == 2 ? "reason=\"client reset the connection\"" : "reason=\"normal end\"",
		_i == 1 ? "mode=TCP local_code=0x03030000 " : "mode=SMC-R ",
		_i == 1 ? "mode=TCP peer_code=0x03030000 " : "mode=SMC-R " };
	unsigned lines = 0;

	addr_format(&gw.peer_addrs[0], peer + strlen(peer), ADDR_STR_MAX);
	addr_format(&gw.server_addrs[0], srv + strlen(srv), ADDR_STR_MAX);
	fake.server_declines = _i == 1 ? DIAG : 0;
	gw_start();
	capture_begin(LOG_LVL_INFO);
	gw_connect();
	if (_i == 2)
		net_reset(client);
	else
		close(client);
	client = -1;
	if (_i < 2)
		gw_expect_eof(server);
	gw_hang_up(&server);
	UNTIL(gw_sessions() == 0);
	const char *text = capture_take();
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		ck_assert_msg(strstr(text, want[i]) != NULL, "no \"%s\" in: %s", want[i], text);
	for (const char *p = text; (p = strstr(p, "connection closed")) != NULL; p++)
		lines++;
	ck_assert_uint_eq(lines, 2);
	capture_end();
}

START_TEST(idle_fallen_back_connections_hold_no_buffer)
{
	enum { N = 50 };

	int c[N], s[N];

	fake.server_declines = DIAG;
	gw_start();
	for (int i = 0; i < N; i++) {
		c[i] = gw_client();
		s[i] = gw_accept();
		gw_say(c[i], "x");
		gw_expect(s[i], "x", GW_OPEN);
	}
	ck_assert_uint_eq(gw_pool(GW_IN)->bufs.lent, 0);
	ck_assert_uint_le(gw_pool(GW_IN)->bufs.free_cnt, 2);
	ck_assert_uint_eq(gw_pool(GW_IN)->setup_slab.used, 0);
	for (int i = 0; i < N; i++) {
		close(c[i]);
		close(s[i]);
	}
}

/* -- UNIX sockets as application legs -- */

/* On SMC-R, and fallen back. */
START_LOOP_TEST(unix_legs_carry_what_tcp_legs_do, 0, 2)
{
	struct session_info info;
	char text[ADDR_STR_MAX], want[ADDR_STR_MAX];
	uint32_t pos = 0;

	fake.server_declines = _i == 1 ? DIAG : 0;
	gw_listen_at("client");
	gw_serve_at("server", 8);
	gw_begin();
	while (worker_session_next(gw.w, &pos, &info)) {
		ck_assert_int_eq(info.mode, _i == 1 ? SESSION_TCP : SESSION_SMCR);
		ck_assert_uint_eq(info.app_peer.un.uid, geteuid());
		ck_assert_int_eq(info.app_peer.un.pid, getpid());
		snprintf(want, sizeof(want), "unix:uid=%d,pid=%d", (int)geteuid(), (int)getpid());
		if (info.kind == CONFIG_EGRESS)
			addr_format(&gw.server_addrs[0], want, sizeof(want));
		ck_assert_str_eq(net_addr_str(&info.app_peer, text, sizeof(text)), want);
	}
	/* Half closed by the client, the server goes on. */
	gw_say(client, "last words");
	ck_assert_int_eq(shutdown(client, SHUT_WR), 0);
	gw_expect(server, "last words", GW_EOF);
	gw_say(server, "answer");
	gw_expect(client, "answer", GW_OPEN);
	gw_hang_up(&server);
	gw_expect_eof(client);
}

/* _i: what the far end of a reset sees that has sent bytes which nobody has read, or has not. */
START_LOOP_TEST(a_reset_of_a_unix_leg_is_as_much_as_the_kernel_has_of_it, 0, 2)
{
	gw_listen_at("client");
	gw_begin();
	/* The client's words wait behind a server that reads nothing. */
	if (_i == 1) {
		static char big[1 << 20];

		while (send(client, big, sizeof(big), MSG_NOSIGNAL) > 0)
			gw_once();
	}
	gw_break(server);
	gw_expect(client, "", _i == 1 ? GW_RESET : GW_EOF);
	UNTIL(gw_sessions() == 0);
	ck_assert_uint_eq(gw_info(GW_IN).resets, 1);
}

/* A client on a UNIX socket that leaves bytes unread has reset the connection. */
START_TEST(a_reset_of_a_unix_client_is_one_of_the_server)
{
	gw_listen_at("client");
	gw_begin();
	gw_say(server, "unread");
	UNTIL(gw_session(GW_IN)->bytes[WAY_TO_APP] == 4 + 6);
	gw_hang_up(&client);
	gw_expect_reset(server);
	gw_hang_up(&server);
}

START_TEST(users_are_allowed_or_not)
{
	struct config_id users[2] = { { "other", geteuid() + 1 }, { "me", geteuid() } };
	char want[64];

	gw_listen_at("client");
	gw.svc[GW_IN].allow_users = users;
	gw.svc[GW_IN].allow_users_cnt = 1;
	gw_start();
	capture_begin(LOG_LVL_NOTICE);
	client = gw_client();
	gw_expect_eof(client);
	gw_hang_up(&client);
	ck_assert_uint_eq(gw_info(GW_IN).refused_allow, 1);
	snprintf(want, sizeof(want), "from=unix:uid=%d,pid=%d", (int)geteuid(), (int)getpid());
	const char *line = capture_take();
	ck_assert_ptr_nonnull(strstr(line, want));
	ck_assert_ptr_nonnull(strstr(line, "not on the allow_users list"));
	capture_end();
	gw.svc[GW_IN].allow_users_cnt = 2;
	ck_assert_int_eq(gw_reload(), 0);
	gw_connect();
	ck_assert_uint_eq(gw_info(GW_IN).refused_allow, 1);
}

/* A client's own name for its socket is no address of anybody's. */
START_TEST(a_client_that_has_bound_its_socket_is_known_by_its_user)
{
	struct sockaddr_storage own;
	char text[ADDR_STR_MAX];

	gw_listen_at("client");
	gw_file(&own, "own");
	gw_start();
	client = socket(AF_UNIX, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(client, (struct sockaddr *)&own, addr_len(&own)), 0);
	ck_assert_int_eq(connect(client, (struct sockaddr *)&gw.svc[GW_IN].listen, addr_len(&own)), 0);
	server = gw_accept();
	unlink(addr_path(&own));
	ck_assert_ptr_nonnull(strstr(net_addr_str(&gw_session(GW_IN)->app_peer, text, sizeof(text)), "unix:uid="));
}

START_TEST(clients_of_one_user_are_one_source)
{
	gw_listen_at("client");
	gw.svc[GW_IN].max_per_peer = 1;
	gw_begin();
	int extra = gw_client();
	gw_expect_eof(extra);
	close(extra);
	ck_assert_uint_eq(gw_info(GW_IN).refused_per_peer, 1);
	gw_carries_both_ways();
	gw_hang_up(&client);
	gw_hang_up(&server);
	UNTIL(gw_sessions() == 0);
	gw_connect();
}

/* Nothing tells of room in the backlog of a UNIX socket: it is tried again, until connect_timeout. */
START_LOOP_TEST(a_server_whose_backlog_is_full_is_waited_for, 0, 2)
{
	int waiting[2];

	gw_serve_at("server", 0);
	for (int i = 0; i < 2; i++) {
		waiting[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		(void)connect(waiting[i], (struct sockaddr *)&gw.server_addrs[0], addr_len(&gw.server_addrs[0]));
	}
	gw.svc[GW_OUT].connect_ms = _i == 0 ? 5000 : 100;
	gw_start();
	capture_begin(LOG_LVL_NOTICE);
	client = gw_client();
	if (_i == 0) {
		gw_run_ms(50);
		ck_assert_uint_eq(gw_info(GW_OUT).refused_connect, 0);
		close(gw_accept());
		server = gw_accept();
		gw_carries_both_ways();
	} else {
		gw_expect_reset(client);
		ck_assert_uint_eq(gw_info(GW_OUT).refused_connect, 1);
		ck_assert_ptr_nonnull(strstr(capture_take(), "cannot be connected: its backlog is full"));
	}
	capture_end();
	for (int i = 0; i < 2; i++)
		close(waiting[i]);
}

START_TEST(a_descriptor_from_a_client_ends_its_connection)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { (char[]){ "fd" }, 2 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int fd = 0;

	gw_listen_at("client");
	gw_begin();
	capture_begin(LOG_LVL_INFO);
	*c = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int)) };
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	ck_assert_int_eq(sendmsg(client, &msg, 0), 2);
	gw_expect_reset(server);
	UNTIL(gw_sessions() == 0);
	ck_assert_ptr_nonnull(strstr(capture_take(), "a file descriptor came over the UNIX socket"));
	capture_end();
}

UNIT_CASE();

START_TEST(a_session_is_small)
{
	ck_assert_uint_le(sizeof(struct session), 456);
}
