/* HTTP clients against the thread of http.c, with documents of the test: permitted clients, their number and time. */
#include "daemon/metrics/http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/net/net.h"
#include "some_documents.h"
#include "unit.h"

static struct http *http;
static struct sockaddr_storage at;
static atomic_int wants; /* written by the thread */
static struct event_history news;
static struct accept_pauses pauses;
static bool answers;
static size_t big; /* so many bytes /metrics has, when it is not 0 */

static void
want(void *arg)
{
	(void)arg;
	struct documents *d = some_documents();

	wants++;
	if (big > 0) {
		d->made[WEB_METRICS] = (struct text){ malloc(big), big };
		memset(d->made[WEB_METRICS].p, 'x', big);
	}
	if (answers)
		http_deliver(http, d);
	else
		documents_free(d);
}

static void
begin(const struct config_net *allow, unsigned allow_cnt)
{
	const struct config cfg = { .metrics = {
		                        .allow = (struct config_net *)(uintptr_t)allow, .allow_cnt = allow_cnt } };
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);

	memset(&at, 0, sizeof(at));
	memcpy(&at, &sin, sizeof(sin));
	int fd = net_listen(&at, NET_ALONE, false, NULL);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	wants = 0;
	answers = true;
	ck_assert_int_eq(http_new(fd, &cfg, &pauses, want, NULL, &http), 0);
	ck_assert_int_eq(http_start(http), 0);
}

static void
teardown(void)
{
	http_free(http);
	http = NULL;
	ck_assert_uint_eq(pauses.paused, 0);
	accept_pauses_fini(&pauses);
	event_history_fini(&news);
}

static void
setup(void)
{
	log_init(LOG_LVL_ERROR);
	ck_assert_int_eq(event_history_init(&news), 0);
	accept_pauses_init(&pauses, &news);
	(void)signal(SIGPIPE, SIG_IGN); /* as smcrd.c does */
}

UNIT_FIXTURE(setup, teardown);

/* last: of 127.0.0.x, where it comes from. */
static int
dial_from(uint32_t last)
{
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + last) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_eq(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&at, sizeof(struct sockaddr_in)), 0);
	return fd;
}

static int
dial(void)
{
	return dial_from(1);
}

static void
say(int fd, const char *text)
{
	(void)!send(fd, text, strlen(text), MSG_NOSIGNAL);
}

/* All until the end, or until ms have passed; what there was before a reset, too. The status; 0: there was none. */
static int
status_of(int fd, int ms)
{
	char buf[512] = "", rest[4096];
	size_t len = 0;
	ssize_t n = 1;
	int status = 0;

	while (n > 0) {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		ck_assert_msg(poll(&p, 1, ms) == 1, "neither an answer nor an end");
		n = recv(fd, rest, sizeof(rest), 0);
		for (ssize_t i = 0; i < n && len < sizeof(buf) - 1; i++)
			buf[len++] = rest[i];
	}
	(void)sscanf(buf, "HTTP/1.%*d %d", &status);
	close(fd);
	return status;
}

static int
get_from(uint32_t last, const char *request)
{
	int fd = dial_from(last);

	say(fd, request);
	return status_of(fd, 10000);
}

static int
get(const char *request)
{
	return get_from(1, request);
}

START_TEST(pages_and_methods)
{
	begin(NULL, 0);
	ck_assert_int_eq(get("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
	ck_assert_int_eq(get("GET /metrics?a=b HTTP/1.0\r\n\r\n"), 200);
	ck_assert_int_eq(get("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
	ck_assert_int_eq(get("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
	ck_assert_int_eq(get("GET /status.json HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
	ck_assert_int_eq(get("GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n"), 404);
	ck_assert_int_ge(get("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"), 400);
	ck_assert_int_ge(get("GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"), 400);
	ck_assert_int_ge(get("\r\n\r\nnonsense\r\n\r\n"), 0);
	ck_assert_int_eq(get("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\nGET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
}

/* The name of somebody else's page, which leads here. */
START_TEST(over_loopback_the_host_is_here)
{
	begin(NULL, 0);
	ck_assert_int_eq(get("GET /status.json HTTP/1.1\r\nHost: evil.example\r\n\r\n"), 421);
	ck_assert_int_eq(get("GET /status.json HTTP/1.1\r\nHost: evil.example:9471\r\n\r\n"), 421);
	ck_assert_int_eq(get("GET /status.json HTTP/1.1\r\nHost: 127.0.0.1:9471\r\n\r\n"), 200);
	ck_assert_int_eq(wants, 1);
}

/* libevent would answer these twice, or the request behind them as well. */
START_LOOP_TEST(connect_has_one_answer, 0, 4)
{
	static const char *const requests[] = { "CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
		"CONNECT <x> HTTP/1.1\r\nHost: x\r\n\r\n", "CONNECT x:1 HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n",
		"CONNECT http://x HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello" };
	char buf[4096] = "";
	size_t len = 0;
	ssize_t n;

	begin(NULL, 0);
	int fd = dial();
	say(fd, "CON"); /* in pieces */
	(void)poll(NULL, 0, 20);
	say(fd, requests[_i] + 3);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	while (poll(&p, 1, HTTP_REQUEST_MS / 2) == 1 && (n = recv(fd, buf + len, sizeof(buf) - 1 - len, 0)) > 0)
		len += (size_t)n;
	ck_assert_str_eq(buf, "HTTP/1.1 501 Not Implemented\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
	ck_assert_int_eq(poll(&p, 1, 0), 1); /* it has ended */
	close(fd);
	ck_assert_int_eq(get("GET /metrics HTTP/1.0\r\n\r\n"), 200);
}

/* Many clients within a second are served by one collection. */
START_TEST(one_collection_serves_all)
{
	begin(NULL, 0);
	const int64_t from = clock_ms();
	for (int i = 0; i < 20; i++)
		ck_assert_int_eq(get("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
	ck_assert_int_le(wants, 4 + (clock_ms() - from) / HTTP_FRESH_MS);
}

START_TEST(an_address_that_is_not_allowed)
{
	const struct config_net other = { .addr = { [10] = 0xff, 0xff, 192, 0, 2, 1 }, .prefix_len = 128 };

	begin(&other, 1);
	int status = get("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
	ck_assert(status == 0 || status == 403);
	ck_assert_int_eq(wants, 0);
	/* One that says nothing is not kept either. */
	ck_assert_int_eq(status_of(dial(), HTTP_REQUEST_MS / 2), 0);
	ck_assert_int_eq(http_allow(http, NULL, 0), 0);
	ck_assert_int_eq(get("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
}

/* The oldest silent ones make room. */
START_TEST(silent_clients_make_room)
{
	int fds[HTTP_CLIENTS_MAX + 8];

	begin(NULL, 0);
	for (unsigned i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		fds[i] = dial();
		say(fds[i], "GET /metr");
		ck_assert_int_eq(get("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
	}
	ck_assert_int_eq(status_of(fds[0], HTTP_REQUEST_MS / 2), 0);
	for (unsigned i = 1; i < sizeof(fds) / sizeof(fds[0]); i++)
		close(fds[i]);
}

/* -- clients that ask for much and read nothing -- */

#define MIB (1024 * 1024)
#ifdef __SANITIZE_THREAD__
#define RESIDENT_MAX (500 * MIB) /* ThreadSanitizer has four bytes of its own for each */
#else
#define RESIDENT_MAX (100 * MIB)
#endif
#define METRICS "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
#define HEALTH "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"

static int
deaf(void)
{
	int fd = dial(), little = 4096;

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little));
	say(fd, METRICS);
	return fd;
}

static size_t
resident(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fscanf(f, "%*u %lu", &pages), 1);
	(void)fclose(f);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void
fill_with_deaf(int fds[HTTP_CLIENTS_MAX + 16])
{
	unsigned answered = 0;
	char byte;

	big = 16 * MIB;
	begin(NULL, 0);
	for (unsigned i = 0; i < HTTP_CLIENTS_MAX + 16; i++)
		fds[i] = deaf();
	/* An answer is under way, or there was no place. */
	for (unsigned i = 0; i < HTTP_CLIENTS_MAX + 16; i++)
		answered += recv(fds[i], &byte, 1, MSG_PEEK) == 1;
	ck_assert_uint_ge(answered, HTTP_CLIENTS_MAX / 2);
}

START_TEST(clients_without_reading_take_places_of_their_source_only)
{
	int fds[HTTP_CLIENTS_MAX + 16];
	size_t before = resident();

	fill_with_deaf(fds);
	for (unsigned i = 0; i < 20; i++)
		ck_assert_int_eq(get_from(2, HEALTH), 200);
	ck_assert_int_eq(get_from(2, METRICS), 200);
	ck_assert_uint_lt(resident() - before, RESIDENT_MAX);
	for (unsigned i = 0; i < HTTP_CLIENTS_MAX + 16; i++)
		close(fds[i]);
}

START_TEST(an_answer_that_stands_still_makes_room)
{
	int fds[HTTP_CLIENTS_MAX + 16];

	fill_with_deaf(fds);
	unsigned ms = 0;

	while (ms < HTTP_ANSWER_MS / 2 && get(HEALTH) != 200) {
		(void)poll(NULL, 0, HTTP_TICK_MS);
		ms += HTTP_TICK_MS;
	}
	for (unsigned i = 0; i < 10; i++)
		ck_assert_int_eq(get(HEALTH), 200);
	for (unsigned i = 0; i < HTTP_CLIENTS_MAX + 16; i++)
		close(fds[i]);
}

START_TEST(few_texts_are_kept)
{
	int fds[HTTP_TEXTS_MAX + 1];
	char byte;

	big = 16 * MIB;
	begin(NULL, 0);
	for (int i = 0; i <= HTTP_TEXTS_MAX; i++) {
		fds[i] = deaf();
		ck_assert_int_eq(recv(fds[i], &byte, 1, MSG_PEEK), 1);
		ck_assert_int_eq(wants, i + 1);
		(void)poll(NULL, 0, HTTP_FRESH_MS + 10);
	}
	/* What is on its way may still arrive, but nobody has the socket: what is sent to it is answered by a reset. */
	for (unsigned ms = 0; send(fds[0], "x", 1, MSG_NOSIGNAL) == 1; ms += 10) {
		ck_assert_uint_lt(ms, HTTP_ANSWER_MS / 4);
		(void)poll(NULL, 0, 10);
	}
	ck_assert_int_eq(send(fds[1], "x", 1, MSG_NOSIGNAL), 1);
	(void)poll(NULL, 0, 10);
	ck_assert_int_eq(send(fds[1], "x", 1, MSG_NOSIGNAL), 1);
	for (int i = 0; i <= HTTP_TEXTS_MAX; i++)
		close(fds[i]);
}

/* A byte now and then is not enough. */
START_TEST(a_request_has_its_time)
{
	begin(NULL, 0);
	int fd = dial();
	struct pollfd p = { .fd = fd, .events = POLLIN };
	const int64_t from = clock_ms();
	int ms = 0; /* the waits alone, which the machine's own pauses do not lengthen */

	say(fd, "GET /metrics HTTP/1.1\r\n");
	while (ms < 3 * HTTP_REQUEST_MS && poll(&p, 1, 100) == 0) {
		say(fd, "X-A: b\r\n");
		ms += 100;
	}
	ck_assert_int_gt(clock_ms() - from, HTTP_REQUEST_MS / 2);
	ck_assert_int_lt(ms, 2 * HTTP_REQUEST_MS);
	close(fd);
}

START_LOOP_TEST(a_request_has_its_length, 0, 3)
{
	static const char *const begins[] = { "GET /", "GET /metrics HTTP/1.1\r\nX: ", "GET /metrics HTTP/1.1\r\n" };
	static char part[4096];
	size_t sent = 0;
	ssize_t n = 0;

	begin(NULL, 0);
	memset(part, 'x', sizeof(part) - 1);
	for (size_t i = 0; _i == 2 && i + 8 < sizeof(part); i += 8)
		memcpy(part + i, "X: yyy\r\n", 8);
	int fd = dial();
	say(fd, begins[_i]);
	while (sent < 64u << 20 && n >= 0) {
		n = send(fd, part, sizeof(part) - 16, MSG_NOSIGNAL);
		sent += n > 0 ? (size_t)n : 0;
	}
	ck_assert_uint_lt(sent, 16u << 20);
	close(fd);
	ck_assert_int_eq(get("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
}

/* What nobody delivers: the client that has gone meanwhile, the one that shut down its side, and the end of all. */
START_TEST(clients_that_wait_when_it_ends)
{
	begin(NULL, 0);
	answers = false;
	int gone = dial(), half = dial(), waits = dial();

	say(gone, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
	while (wants == 0)
		(void)poll(NULL, 0, 1);
	close(gone);
	say(half, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
	(void)shutdown(half, SHUT_WR);
	say(waits, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
	http_deliver(http, some_documents());
	ck_assert_int_eq(status_of(waits, 10000), 200);
	ck_assert_int_eq(status_of(half, 10000), 200);
	ck_assert_int_eq(wants, 1);
	answers = false;
	(void)poll(NULL, 0, HTTP_FRESH_MS + 10);
	waits = dial();
	say(waits, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
	while (wants == 1)
		(void)poll(NULL, 0, 1);
	http_stop(http);
	http_deliver(http, some_documents());
	teardown();
	(void)status_of(waits, 1000);
}

START_TEST(what_could_not_be_collected)
{
	begin(NULL, 0);
	answers = false;
	int fd = dial();

	say(fd, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
	while (wants == 0)
		(void)poll(NULL, 0, 1);
	http_deliver(http, NULL);
	ck_assert_int_eq(status_of(fd, 10000), 503);
}

/* The nr-th event of all. */
static void
wait_for_event(uint64_t nr, enum event_kind kind, const char *reason)
{
	struct event_record r;

	for (int ms = 0; event_history_last(&news) < nr; ms += 10) {
		ck_assert_msg(ms < 20000, "no event");
		usleep(10000);
	}
	ck_assert(event_history_next(&news, nr - 1, &r));
	ck_assert_int_eq(r.event.kind, kind);
	ck_assert_str_eq(r.event.reason, reason);
}

/* Clients wait in the backlog, and accepting is tried again; when somebody else was so long, nobody waits. */
START_LOOP_TEST(descriptors_that_run_out, 0, 2)
{
	struct rlimit old, none;

	begin(NULL, 0);
	ck_assert_int_eq(get("GET /metrics HTTP/1.0\r\n\r\n"), 200);
	int fd = dial();
	say(fd, "GET /metrics HTTP/1.0\r\n\r\n");
	ck_assert_int_eq(status_of(fd, 10000), 200);
	ck_assert_uint_eq(event_history_last(&news), 0);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = old;
	none.rlim_cur = 0;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&at, sizeof(struct sockaddr_in)), 0);
	say(fd, "GET /metrics HTTP/1.0\r\n\r\n");
	wait_for_event(1, EVENT_ACCEPTING_PAUSED, strerror(EMFILE));
	usleep(3 * HTTP_TICK_MS * 1000); /* for what must not happen */
	ck_assert_uint_eq(event_history_last(&news), 1);
	if (_i == 1)
		close(fd);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
	if (_i == 0)
		ck_assert_int_eq(status_of(fd, 10000), 200);
	wait_for_event(2, EVENT_ACCEPTING_GOES_ON, "");
	ck_assert_int_eq(get("GET /metrics HTTP/1.0\r\n\r\n"), 200);
	ck_assert_uint_eq(event_history_last(&news), 2);
}
