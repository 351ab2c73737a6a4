/* Sessions whose connection opens over a link (doc/open.md): first bytes that are held, what else the client does before
 * the answer, refusals, time limits. The engine and its soft iWARP devices are the real ones. */
#define GATEWAY_REAL
#include "gateway.h"
#include "smcr/data/conn.h"
#include "smcr/state/engine.h"
#include "smcr/state/lgr.h"
#include "unit.h"

static int second = -1, served = -1; /* the ends of the connection that opens over a link */

static void
setup(void)
{
	gw_setup();
	gw.cfg.open_over_link = true;
	gw.cfg.smcr.keepalive_ms = 30000;
	gw.svc[GW_IN].elem_size = gw.svc[GW_OUT].elem_size = 0;
	second = served = -1;
}

static void
teardown(void)
{
	gw_hang_up(&client);
	gw_hang_up(&server);
	gw_hang_up(&second);
	gw_hang_up(&served);
	UNTIL(gw_sessions() == 0);
	for (int i = GW_IN; i <= GW_OUT; i++) {
		ck_assert_uint_eq(gw_pool(i)->bufs.lent, 0);
		ck_assert_uint_eq(gw_pool(i)->setup_slab.used, 0);
		ck_assert_uint_eq(gw_pool(i)->session_slab.used, 0);
	}
	gw_stop();
}

UNIT_FIXTURE(setup, teardown);

static const struct smcr_counters *
counters(int service)
{
	return smcr_counters(gw_pool(service)->env->eng);
}

static unsigned
in_state(int service, enum session_state state)
{
	uint32_t pos = 0;
	const struct session *s;
	unsigned n = 0;

	while ((s = idtable_next(&gw_pool(service)->sessions, &pos)) != NULL)
		n += s->state == state;
	return n;
}

static struct service *
service_of(int service)
{
	return LIST_FIRST(struct service, &gw_pool(service)->services, node);
}

/* The first connection, after which others may open over its link. */
static void
begin(void)
{
	gw_begin();
	UNTIL(counters(GW_IN)->llc_received >= 3);
	gw_run_ms(50);
	gw_carries_both_ways();
}

static int
listen_at_server(int backlog)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;

	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&gw.server_addrs[0], sizeof(struct sockaddr_in)), 0);
	ck_assert_int_eq(listen(fd, backlog), 0);
	return fd;
}

static int fillers[4];

/* The server program accepts nothing, and its backlog is full. */
static void
server_stalls(void)
{
	close(gw.listener);
	gw.listener = listen_at_server(0);
	for (int i = 0; i < 4; i++) {
		fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		(void)connect(fillers[i], (struct sockaddr *)&gw.server_addrs[0], sizeof(struct sockaddr_in));
	}
}

static void
fillers_leave(void)
{
	for (int i = 0; i < 4; i++)
		close(fillers[i]);
}

/* It accepts again: the connection whose first byte this is. */
static void
server_goes_on(char first)
{
	char c;

	fillers_leave();
	for (;;) {
		int fd = gw_accept();

		gw.give_up = loop_now(gw.loop) + GW_DEADLINE;
		ssize_t n = recv(fd, &c, 1, MSG_PEEK);
		for (; n < 0 && errno == EAGAIN; n = recv(fd, &c, 1, MSG_PEEK)) {
			ck_assert(loop_now(gw.loop) < gw.give_up);
			gw_once();
		}
		if (n == 1 && c == first) {
			served = fd;
			return;
		}
		close(fd);
	}
}

/* A client whose connection waits for the answer, with its first bytes on the way. */
static void
opening(void)
{
	server_stalls();
	second = gw_client();
	gw_say(second, "hello");
	UNTIL(in_state(GW_IN, SES_OPENING) == 1 && in_state(GW_OUT, SES_RENDEZVOUS) == 1);
	gw_run_ms(20);
	ck_assert_uint_eq(counters(GW_IN)->opened_client, 1);
	ck_assert_uint_eq(gw_pool(GW_IN)->bufs.lent, 1);
}

/* The service has other rules than the rendezvous that gave the ticket: 0: other names or keys; 1: TLS, and no keys. */
START_LOOP_TEST(by_other_rules_nothing_opens_over_the_link, 0, 2)
{
	begin();
	struct lgr *lgr = LIST_FIRST(struct lgr, &gw_pool(GW_OUT)->env->eng->lgrs, node);
	struct settings *st = LIST_FIRST(struct service, &gw_pool(GW_OUT)->services, node)->settings;

	ck_assert_uint_eq(lgr->ticket_cnt, 1);
	if (_i == 0)
		lgr->tickets[0].scope.b[15] = 1;
	else
		st->cfg.secure = CONFIG_SECURE_REQUIRED;
	second = gw_client();
	gw_say(second, "hello");
	UNTIL(counters(GW_IN)->not_opened_client == 1);
	ck_assert_uint_eq(counters(GW_OUT)->not_opened_server, 1);
	if (_i == 1) { /* nor is the rendezvous in clear that follows permitted */
		gw_expect(second, "", GW_RESET);
		return;
	}
	served = gw_accept();
	gw_expect(served, "hello", GW_OPEN);
}

START_TEST(the_second_connection_opens_over_the_link)
{
	begin();
	second = gw_client();
	gw_say(second, "hello");
	served = gw_accept();
	gw_expect(served, "hello", GW_OPEN);
	gw_say(served, "back");
	gw_expect(second, "back", GW_OPEN);
	ck_assert_uint_eq(counters(GW_IN)->opened_client, 1);
	ck_assert_uint_eq(counters(GW_OUT)->opened_server, 1);
	ck_assert_uint_eq(gw_pool(GW_IN)->bufs.lent, 0);
	gw_carries_both_ways();
}

START_TEST(a_server_may_speak_first)
{
	begin();
	second = gw_client();
	served = gw_accept();
	gw_say(served, "banner");
	gw_expect(second, "banner", GW_OPEN);
	ck_assert_uint_eq(counters(GW_IN)->opened_client, 1);
}

START_TEST(first_bytes_are_held_until_the_answer)
{
	begin();
	opening();
	gw_say(second, " and more");
	gw_run_ms(50);
	ck_assert_uint_eq(gw_pool(GW_IN)->bufs.lent, 1);
	server_goes_on('h');
	gw_expect(served, "hello and more", GW_OPEN);
	ck_assert_uint_eq(gw_pool(GW_IN)->bufs.lent, 0);
	gw_say(served, "back");
	gw_expect(second, "back", GW_OPEN);
	gw_carries_both_ways();
}

START_TEST(the_end_of_a_client_waits_for_the_answer)
{
	begin();
	opening();
	ck_assert_int_eq(shutdown(second, SHUT_WR), 0);
	gw_run_ms(50);
	ck_assert_uint_eq(in_state(GW_IN, SES_OPENING), 1);
	server_goes_on('h');
	gw_expect(served, "hello", GW_EOF);
	gw_say(served, "back");
	gw_expect(second, "back", GW_OPEN);
}

START_TEST(an_urgent_byte_of_a_client_waits_for_the_answer)
{
	begin();
	opening();
	gw_urgent(second, '!');
	gw_run_ms(50);
	server_goes_on('h');
	gw_expect(served, "hello[!]", GW_OPEN);
}

START_TEST(a_client_that_closes_before_the_answer)
{
	begin();
	opening();
	gw_hang_up(&second);
	gw_run_ms(50);
	server_goes_on('h');
	gw_expect(served, "hello", GW_EOF);
	gw_carries_both_ways();
}

START_TEST(a_client_that_resets_before_the_answer)
{
	char text[64] = "";

	begin();
	opening();
	gw_break(second);
	gw_run_ms(50);
	server_goes_on('h');
	UNTIL(gw_read(served, text, sizeof(text)) == GW_RESET);
	ck_assert(text[0] == '\0' || strcmp(text, "hello") == 0);
	gw_carries_both_ways();
}

/* The peer's own attempt lasts longer than ours waits: as a peer that stands still. */
START_TEST(no_answer_in_time_resets_the_client)
{
	gw.svc[GW_IN].connect_ms = 500;
	gw.cfg.smcr.clc_ms = 1000; /* not less, on a machine under load: begin() is to get through */
	begin();
	opening();
	gw_expect_reset(second);
	UNTIL(in_state(GW_IN, SES_OPENING) == 0);
	ck_assert_uint_eq(counters(GW_IN)->not_opened_client, 0);
	UNTIL(gw_info(GW_IN).resets == 1);
	ck_assert_uint_eq(gw_info(GW_IN).refused_connect, 1);
	ck_assert_int_eq(service_of(GW_IN)->outage->kind, OUTAGE_SETUP);
	fillers_leave();
	gw_carries_both_ways();
	/* Others do not try over the link for a while. */
	int third = gw_client();
	gw_run_ms(50);
	ck_assert_uint_eq(counters(GW_IN)->opened_client, 1);
	gw_hang_up(&third);
}

/* The peer's daemon stands still: its kernel accepts CLC connections, and nobody reads them. */
static void
egress_freezes(bool on)
{
	struct loop_io *io = &service_of(GW_OUT)->listener.io.io;

	if (on)
		loop_del(gw.loop, io);
	else
		ck_assert_int_eq(loop_add(gw.loop, io), 0);
}

/* A client without data, whose link is found to be silent, as the engine's tests have it. */
static void
opening_is_silent(void)
{
	server_stalls();
	second = gw_client();
	UNTIL(in_state(GW_IN, SES_OPENING) == 1);
	uint32_t pos = 0;
	struct session *s = idtable_next(&gw_pool(GW_IN)->sessions, &pos);
	while (s->state != SES_OPENING)
		s = idtable_next(&gw_pool(GW_IN)->sessions, &pos);
	conn_abort(s->conn, SMCR_R_NOT_OPENED, "its link is silent");
}

START_TEST(a_client_over_a_silent_link_comes_by_a_rendezvous)
{
	begin();
	opening_is_silent();
	UNTIL(in_state(GW_IN, SES_OPENING) == 0 && in_state(GW_OUT, SES_RENDEZVOUS) > 0);
	gw_say(second, "hello");
	server_goes_on('h');
	gw_expect(served, "hello", GW_OPEN);
	gw_say(served, "back");
	gw_expect(second, "back", GW_OPEN);
	ck_assert_uint_eq(gw_info(GW_IN).refused_connect, 0);
	gw_carries_both_ways();
}

/* Its rendezvous waits for a peer that stands still as long as an OPEN. */
START_LOOP_TEST(a_rendezvous_after_a_silent_link_is_repeated, 0, 2)
{
	gw.svc[GW_IN].connect_ms = _i == 0 ? 30000 : 3000;
	gw.cfg.smcr.clc_ms = 600;
	begin();
	egress_freezes(true);
	opening_is_silent();
	UNTIL(counters(GW_IN)->clc_timeouts >= 2);
	if (_i == 0) {
		ck_assert_uint_eq(in_state(GW_IN, SES_RENDEZVOUS) + in_state(GW_IN, SES_CONNECT), 1);
		egress_freezes(false);
		gw_say(second, "hello");
		server_goes_on('h');
		gw_expect(served, "hello", GW_OPEN);
		return;
	}
	gw_expect_reset(second);
	ck_assert_uint_eq(gw_info(GW_IN).refused_connect, 1);
	ck_assert_uint_le(counters(GW_IN)->clc_timeouts, 7); /* fewer on a busy machine */
	egress_freezes(false);
	fillers_leave();
}

/* Nobody listens at first. */
START_TEST(a_refused_connection_begins_again_with_the_same_bytes)
{
	begin();
	close(gw.listener);
	gw.listener = -1;
	second = gw_client();
	gw_say(second, "hello");
	UNTIL(counters(GW_IN)->not_opened_client == 1);
	gw.listener = listen_at_server(16);
	served = gw_accept();
	gw_expect(served, "hello", GW_OPEN);
	gw_say(served, "back");
	gw_expect(second, "back", GW_OPEN);
	ck_assert_uint_eq(counters(GW_OUT)->not_opened_server, 1);
	ck_assert_uint_eq(gw_pool(GW_IN)->bufs.lent, 0);
	gw_carries_both_ways();
}

START_TEST(a_server_that_is_not_there_shows_in_the_rendezvous)
{
	begin();
	close(gw.listener);
	gw.listener = -1;
	second = gw_client();
	gw_say(second, "hello");
	gw_expect_reset(second);
	ck_assert_uint_eq(counters(GW_IN)->not_opened_client, 1);
	UNTIL(gw_info(GW_OUT).refused_connect == 1); /* of the rendezvous */
	gw_carries_both_ways();
}

/* Its end before the refusal: the rendezvous brings both. */
START_TEST(the_end_of_a_refused_client_comes_by_the_rendezvous)
{
	begin();
	close(gw.listener);
	gw.listener = -1;
	second = gw_client();
	gw_say(second, "hello");
	ck_assert_int_eq(shutdown(second, SHUT_WR), 0);
	UNTIL(counters(GW_IN)->not_opened_client == 1);
	gw.listener = listen_at_server(16);
	served = gw_accept();
	gw_expect(served, "hello", GW_EOF);
	gw_say(served, "back");
	gw_expect(second, "back", GW_OPEN);
}

/* Limits refuse an OPEN as not opened, and the rendezvous as always. */
START_TEST(a_limit_counts_at_the_rendezvous)
{
	gw.svc[GW_OUT].max_connections = 1;
	begin();
	second = gw_client();
	gw_say(second, "hello");
	gw_expect_reset(second);
	ck_assert_uint_eq(counters(GW_IN)->not_opened_client, 1);
	ck_assert_uint_eq(gw_info(GW_OUT).refused_max, 1);
	gw_carries_both_ways();
}
