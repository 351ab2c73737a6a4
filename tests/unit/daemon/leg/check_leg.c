/* A leg on a real TCP connection, and on a UNIX socket: drained reads, urgent bytes at any place, end and reset. */
#include "daemon/leg/leg.h"

#include <errno.h>
#include <stdio.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/clock.h"
#include "daemon/net/net.h"
#include "tcp_pair.h"
#include "unit.h"

#define MS 1000000LL

static struct loop *lp;
static struct leg leg;
static int peer;
static unsigned seen;

static void
on_leg(struct loop_io *io, unsigned events)
{
	ck_assert_ptr_eq(io, &leg.io);
	seen |= events;
	leg_latch(&leg, events);
}

static unsigned want;
static int64_t give_up;

static int64_t
stop_turn(void *arg, int64_t now_ns)
{
	(void)arg;
	if ((seen & want) == want || now_ns > give_up)
		loop_stop(lp);
	return give_up;
}

/* Runs the loop until these events were seen. */
static void
await(unsigned events)
{
	seen = 0;
	want = events;
	give_up = loop_now(lp) + 5000 * MS;
	ck_assert_int_eq(loop_run(lp), 0);
	ck_assert_uint_eq(seen & want, want);
}

static void
setup(void)
{
	struct config_keepalive ka = { .enabled = true, .idle_s = 60, .interval_s = 10, .probes = 3 };
	int sv[2];

	tcp_pair(sv);
	peer = sv[0];
	net_tune(sv[1], &ka);
	lp = loop_new();
	ck_assert_ptr_nonnull(lp);
	ck_assert_int_eq(loop_add_turn(lp, stop_turn, NULL), 0);
	leg_init(&leg, on_leg);
	ck_assert_int_lt(leg.io.fd, 0);
	ck_assert_int_eq(leg_open(&leg, lp, sv[1], 0), 0);
	await(LOOP_WRITE);
}

static void
teardown(void)
{
	leg_close(&leg, lp, false);
	loop_free(lp);
	if (peer >= 0)
		close(peer);
}

static ssize_t
get(char *buf, size_t cap, bool *urgent)
{
	struct iovec iov = { buf, cap };

	return leg_read(&leg, &iov, 1, urgent);
}

static void
say(const char *text, int flags)
{
	ck_assert_int_eq(send(peer, text, strlen(text), flags), (ssize_t)strlen(text));
}

static unsigned looks;             /* for the mark */
static const char *say_after_look; /* urgent: it comes when the leg has asked for the mark, and has not read yet */

/* In libc's place for the whole program. */
int
ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	va_start(ap, request);
	void *arg = va_arg(ap, void *);
	va_end(ap);
	int rc = (int)syscall(SYS_ioctl, fd, request, arg);
	looks += request == SIOCATMARK;
	if (request == SIOCATMARK && say_after_look != NULL) {
		const char *text = say_after_look;

		say_after_look = NULL;
		say(text, MSG_OOB);
	}
	return rc;
}

UNIT_FIXTURE(setup, teardown);

START_TEST(a_short_read_means_drained)
{
	char buf[16];
	bool urgent;

	say("abc", 0);
	await(LOOP_READ);
	ck_assert_int_eq(get(buf, 2, &urgent), 2);
	ck_assert_uint_ne(leg.flags & LEG_READABLE, 0);
	ck_assert_int_eq(get(buf, sizeof(buf), &urgent), 1);
	ck_assert_uint_eq(leg.flags & LEG_READABLE, 0);
	ck_assert_int_eq(get(buf, sizeof(buf), &urgent), 0);
	ck_assert_uint_eq(leg.flags & LEG_EOF, 0);
}

START_TEST(two_pieces_are_filled_in_order)
{
	char a[2], b[8];
	struct iovec iov[2] = { { a, sizeof(a) }, { b, sizeof(b) } };
	bool urgent;

	say("abcde", 0);
	await(LOOP_READ);
	ck_assert_int_eq(leg_read(&leg, iov, 2, &urgent), 5);
	ck_assert_mem_eq(a, "ab", 2);
	ck_assert_mem_eq(b, "cde", 3);
}

/* Everything that arrives, urgent bytes in brackets. */
static void
collect(char *text)
{
	char buf[64];
	bool urgent;
	ssize_t n;

	while ((n = get(buf, sizeof(buf), &urgent)) > 0) {
		ck_assert(!urgent || n == 1);
		sprintf(text + strlen(text), urgent ? "[%.*s]" : "%.*s", (int)n, buf);
	}
	ck_assert_int_eq(n, 0);
}

static const struct {
	const char *before, *urgent, *after;
	const char *result;
} urgent_cases[] = {
	{ "", "!", "", "[!]" },
	{ "abc", "!", "", "abc[!]" },
	{ "", "!", "def", "[!]def" },
	{ "abc", "!", "def", "abc[!]def" },
};

START_LOOP_TEST(an_urgent_byte_comes_alone, 0, 4)
{
	char text[256] = "";

	say(urgent_cases[_i].before, 0);
	say(urgent_cases[_i].urgent, MSG_OOB);
	say(urgent_cases[_i].after, 0);
	await(LOOP_URGENT);
	collect(text);
	ck_assert_str_eq(text, urgent_cases[_i].result);
	ck_assert_uint_eq(leg.flags & LEG_URGENT, 0);
}

START_TEST(a_second_urgent_byte_comes_alone_too)
{
	char text[256] = "";

	say("a", 0);
	say("1", MSG_OOB);
	await(LOOP_URGENT);
	collect(text);
	say("2", MSG_OOB);
	await(LOOP_URGENT);
	collect(text);
	say("b", 0);
	await(LOOP_READ);
	collect(text);
	say("3", MSG_OOB);
	await(LOOP_URGENT);
	collect(text);
	ck_assert_str_eq(text, "a[1][2]b[3]");
}

START_TEST(the_mark_is_found_by_a_reader_that_comes_late)
{
	char buf[3], text[64] = "";
	bool urgent;

	/* Paused after a full read; the urgent byte arrives without an edge being seen. */
	say("abc", 0);
	await(LOOP_READ);
	ck_assert_int_eq(get(buf, sizeof(buf), &urgent), 3);
	say("!", MSG_OOB);
	say("d", 0);
	while (recv(leg.io.fd, text, sizeof(text), MSG_PEEK) < 2)
		;
	memset(text, 0, sizeof(text));
	collect(text);
	ck_assert_str_eq(text, "[!]d");
}

/* Two in a row, the second one comes between a look for the mark and the read: behind the first, or while it is unread and
 * TCP forgets that it was urgent. */
START_LOOP_TEST(an_urgent_byte_that_comes_amid_a_read_stays_urgent, 0, 2)
{
	char text[64] = "";

	say("a", 0);
	say("1", MSG_OOB);
	await(LOOP_URGENT);
	if (_i == 0) {
		char c;
		bool urgent;

		ck_assert_int_eq(get(&c, 1, &urgent), 1);
		ck_assert_int_eq(get(&c, 1, &urgent), 1);
		ck_assert(urgent);
	}
	say_after_look = "2";
	collect(text);
	if (say_after_look != NULL) {
		say(say_after_look, MSG_OOB); /* nothing was there to be looked at */
		say_after_look = NULL;
		await(LOOP_URGENT);
		collect(text);
	}
	ck_assert_str_eq(text, _i == 0 ? "[2]" : "a1[2]");
}

START_TEST(fin_is_read_behind_the_last_byte)
{
	char buf[16];
	bool urgent;

	say("abc", 0);
	shutdown(peer, SHUT_WR);
	await(LOOP_RDHUP);
	looks = 0;
	ck_assert_int_eq(get(buf, sizeof(buf), &urgent), 3);
	ck_assert_uint_eq(leg.flags & LEG_EOF, 0);
	ck_assert_int_eq(get(buf, sizeof(buf), &urgent), 0);
	ck_assert_uint_eq(looks, 0); /* nothing comes behind a FIN */
	ck_assert_uint_eq(leg.flags & LEG_EOF, LEG_EOF);
	ck_assert_int_eq(leg_broken(&leg), 0);
}

START_LOOP_TEST(an_urgent_byte_before_fin_comes_alone, 0, 2)
{
	char text[64] = "";

	say("abc", 0);
	if (_i == 1) {
		await(LOOP_READ);
		collect(text);
	}
	say("!", MSG_OOB);
	say("d", 0);
	shutdown(peer, SHUT_WR);
	await(LOOP_RDHUP);
	collect(text);
	ck_assert_str_eq(text, "abc[!]d");
	ck_assert_uint_eq(leg.flags & LEG_EOF, LEG_EOF);
}

/* A reader that goes on as long as there is something to read ends there. */
START_TEST(behind_the_end_nothing_is_there_to_read)
{
	uint8_t buf[8];
	struct iovec iov = { buf, sizeof(buf) };
	bool urgent;

	ck_assert_int_eq(shutdown(peer, SHUT_WR), 0);
	await(LOOP_RDHUP);
	ck_assert_int_eq(leg_read(&leg, &iov, 1, &urgent), 0);
	ck_assert((leg.flags & (LEG_EOF | LEG_READABLE)) == LEG_EOF);
	leg_latch(&leg, LOOP_READ | LOOP_HUP);
	ck_assert_int_eq(leg_read(&leg, &iov, 1, &urgent), 0);
	ck_assert((leg.flags & LEG_READABLE) == 0);
}

START_TEST(a_reset_is_remembered)
{
	net_reset(peer);
	peer = -1;
	await(LOOP_ERR);
	ck_assert_int_eq(leg_broken(&leg), ECONNRESET);
	ck_assert_int_eq(leg_broken(&leg), ECONNRESET);
}

/* _i: known from the edge, from a write, or only from reading. The kernel tells it once, and all bytes before it are read first. */
START_LOOP_TEST(a_reset_stands_behind_unread_bytes, 0, 3)
{
	struct iovec iov = { (char[]){ "x" }, 1 };
	char buf[10];
	struct iovec in = { buf, sizeof(buf) };
	bool urgent;

	say("abc", 0);
	await(LOOP_READ);
	ck_assert(leg_has_bytes(&leg));
	net_reset(peer);
	peer = -1;
	await(LOOP_ERR);
	if (_i == 0)
		ck_assert_int_eq(leg_broken(&leg), ECONNRESET);
	else if (_i == 1)
		ck_assert_int_eq(leg_write(&leg, &iov, 1, false), -ECONNRESET);
	ck_assert(leg_has_bytes(&leg));
	ck_assert_int_eq(leg_read(&leg, &in, 1, &urgent), 3);
	ck_assert(!leg_has_bytes(&leg));
	ck_assert_int_eq(leg_read(&leg, &in, 1, &urgent), -ECONNRESET);
	ck_assert_int_eq(leg_read(&leg, &in, 1, &urgent), -ECONNRESET);
	ck_assert_int_eq(leg_broken(&leg), ECONNRESET);
	ck_assert_uint_eq(leg.flags & LEG_EOF, 0);
}

START_TEST(a_fin_before_the_reset_is_an_end)
{
	struct iovec iov = { (char[]){ "x" }, 1 };
	char buf[10];
	struct iovec in = { buf, sizeof(buf) };
	bool urgent;

	say("abc", 0);
	close(peer); /* and what comes now is answered by RST */
	peer = -1;
	await(LOOP_RDHUP);
	ck_assert_int_eq(leg_write(&leg, &iov, 1, false), 1);
	await(LOOP_ERR);
	ck_assert_int_eq(leg_broken(&leg), EPIPE);
	ck_assert_int_eq(leg_read(&leg, &in, 1, &urgent), 3);
	ck_assert_int_eq(leg_read(&leg, &in, 1, &urgent), 0);
	ck_assert_uint_ne(leg.flags & LEG_EOF, 0);
}

START_TEST(a_full_socket_is_not_written_until_it_has_room)
{
	static char big[1 << 22];
	struct iovec iov = { big, sizeof(big) };
	ssize_t n = leg_write(&leg, &iov, 1, false);
	size_t left;

	ck_assert_int_gt(n, 0);
	ck_assert_int_lt(n, (ssize_t)sizeof(big));
	ck_assert_uint_eq(leg.flags & LEG_WRITABLE, 0);
	ck_assert_int_eq(leg_write(&leg, &iov, 1, false), 0);
	for (left = (size_t)n; left > 0; left -= (size_t)n)
		n = recv(peer, big, sizeof(big), 0);
	await(LOOP_WRITE);
	ck_assert_uint_eq(leg.flags & LEG_WRITABLE, LEG_WRITABLE);
}

START_TEST(an_urgent_byte_is_written_as_one)
{
	struct iovec iov = { (char[]){ "!" }, 1 };
	char c;

	ck_assert_int_eq(leg_write(&leg, &iov, 1, true), 1);
	while (recv(peer, &c, 1, MSG_OOB) != 1)
		ck_assert_int_eq(errno, EAGAIN);
	ck_assert_int_eq(c, '!');
}

START_TEST(writing_to_a_reset_leg_fails)
{
	struct iovec iov = { (char[]){ "x" }, 1 };

	net_reset(peer);
	peer = -1;
	await(LOOP_ERR);
	ck_assert_int_ne(leg_broken(&leg), 0);
	ck_assert_int_lt(leg_write(&leg, &iov, 1, false), 0);
}

START_LOOP_TEST(closing_sends_rst_or_fin, 0, 2)
{
	char c;

	leg_close(&leg, lp, _i == 1);
	ck_assert_int_eq(recv(peer, &c, 1, 0), _i == 1 ? -1 : 0);
	ck_assert(_i == 0 || errno == ECONNRESET);
	leg_close(&leg, lp, false);
}

/* -- on a UNIX socket -- */

/* In the place of the TCP connection. */
static void
use_unix(void)
{
	int sv[2], on = 1;

	leg_close(&leg, lp, false);
	close(peer);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	ck_assert_int_eq(ioctl(sv[1], FIONBIO, &on), 0);
	peer = sv[0];
	leg_init(&leg, on_leg);
	ck_assert_int_eq(leg_open(&leg, lp, sv[1], LEG_UNIX), 0);
	await(LOOP_WRITE);
}

START_TEST(a_unix_leg_carries_bytes_to_the_end)
{
	char buf[16], end[2];
	struct iovec in[2] = { { buf, 2 }, { buf + 2, 14 } },
	             out[2] = { { (char[]){ "12" }, 2 }, { (char[]){ "3" }, 1 } };
	bool urgent;

	use_unix();
	say("abcde", 0);
	shutdown(peer, SHUT_WR);
	await(LOOP_RDHUP);
	ck_assert_int_eq(leg_read(&leg, in, 2, &urgent), 5);
	ck_assert_mem_eq(buf, "abcde", 5);
	ck_assert_int_eq(get(buf, sizeof(buf), &urgent), 0);
	ck_assert_uint_ne(leg.flags & LEG_EOF, 0);
	/* Half closed: the other direction goes on. */
	ck_assert_int_eq(leg_write(&leg, out, 2, false), 3);
	leg_shut(&leg);
	ck_assert_int_eq(recv(peer, buf, sizeof(buf), 0), 3);
	ck_assert_mem_eq(buf, "123", 3);
	ck_assert_int_eq(recv(peer, end, sizeof(end), 0), 0);
	ck_assert_int_eq(leg_broken(&leg), 0);
}

/* The peer closes both directions at once, which is no error: its bytes are read first. */
START_TEST(a_unix_peer_that_closes_is_at_its_end)
{
	struct iovec iov = { (char[]){ "x" }, 1 };
	char buf[16];
	bool urgent;

	use_unix();
	say("abc", 0);
	close(peer);
	peer = -1;
	await(LOOP_HUP | LOOP_RDHUP);
	ck_assert_int_eq(leg_broken(&leg), 0);
	ck_assert_int_eq(get(buf, sizeof(buf), &urgent), 3);
	ck_assert_int_eq(get(buf, sizeof(buf), &urgent), 0);
	ck_assert_uint_ne(leg.flags & LEG_EOF, 0);
	ck_assert_int_eq(leg_write(&leg, &iov, 1, false), -EPIPE);
}

START_LOOP_TEST(what_the_other_ends_kernel_does_not_have_is_unsent, 0, 2)
{
	static char big[1 << 22];
	struct iovec iov = { big, sizeof(big) };

	if (_i == 1)
		use_unix();
	ck_assert_uint_eq(leg_unsent(&leg), 0);
	while (leg_write(&leg, &iov, 1, false) > 0)
		continue;
	ck_assert_int_eq(leg_unsent(&leg) > 0, _i == 0); /* a UNIX socket has no way to go */
}

START_TEST(a_unix_peer_that_leaves_bytes_unread_is_a_reset)
{
	struct iovec iov = { (char[]){ "x" }, 1 };

	use_unix();
	ck_assert_int_eq(leg_write(&leg, &iov, 1, false), 1);
	close(peer);
	peer = -1;
	await(LOOP_ERR);
	ck_assert_int_eq(leg_broken(&leg), ECONNRESET);
}

/* What a UNIX socket has of a reset: bytes of the peer that nobody has read. */
START_LOOP_TEST(closing_a_unix_leg_tells_of_unread_bytes, 0, 2)
{
	char c;

	use_unix();
	if (_i == 1)
		say("abc", 0);
	leg_close(&leg, lp, true);
	ck_assert_int_eq(recv(peer, &c, 1, 0), _i == 1 ? -1 : 0);
	ck_assert(_i == 0 || errno == ECONNRESET);
}

START_TEST(a_full_unix_socket_is_not_written_until_it_has_room)
{
	static char big[1 << 22];
	struct iovec iov = { big, sizeof(big) };
	size_t left;

	use_unix();
	ssize_t n = leg_write(&leg, &iov, 1, false);
	ck_assert_int_gt(n, 0);
	ck_assert_int_lt(n, (ssize_t)sizeof(big));
	ck_assert_uint_eq(leg.flags & LEG_WRITABLE, 0);
	for (left = (size_t)n; left > 0; left -= (size_t)n)
		n = recv(peer, big, sizeof(big), 0);
	await(LOOP_WRITE);
	ck_assert_int_gt(leg_write(&leg, &iov, 1, false), 0);
}

/* Not beside the stream, where a program that asks for nothing would lose it. */
START_TEST(an_urgent_byte_goes_in_line_into_a_unix_socket)
{
	struct iovec a = { (char[]){ "a" }, 1 }, u = { (char[]){ "!" }, 1 }, b = { (char[]){ "b" }, 1 };
	char buf[8];

	use_unix();
	ck_assert_int_eq(leg_write(&leg, &a, 1, false), 1);
	ck_assert_int_eq(leg_write(&leg, &u, 1, true), 1);
	ck_assert_int_eq(leg_write(&leg, &b, 1, false), 1);
	ck_assert_int_eq(recv(peer, buf, sizeof(buf), 0), 3);
	ck_assert_mem_eq(buf, "a!b", 3);
}

/* Linux 5.15 and later let a program send one: it is not lost. */
START_TEST(an_urgent_byte_of_a_unix_socket_comes_too)
{
	char text[64] = "";

	use_unix();
	say("abc", 0);
	if (send(peer, "!", 1, MSG_OOB) != 1)
		return; /* the kernel has none */
	say("def", 0);
	await(LOOP_READ);
	while (strchr(text, 'f') == NULL) {
		collect(text);
		if (strchr(text, 'f') == NULL)
			await(LOOP_READ);
	}
	ck_assert_str_eq(text, "abc[!]def");
}

/* A short read because of it is no sign that nothing is left, and what the bytes mean is lost with it. */
START_TEST(a_descriptor_cannot_be_passed)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, buf[16];
	struct iovec iov = { (char[]){ "fd" }, 2 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int fd = 0;
	bool urgent;

	use_unix();
	*c = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int)) };
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	ck_assert_int_eq(sendmsg(peer, &msg, 0), 2);
	say("more", 0);
	await(LOOP_READ);
	ck_assert_int_eq(get(buf, sizeof(buf), &urgent), -ENOTSUP);
	/* Nor is what stands behind it read. */
	ck_assert_int_eq(get(buf, sizeof(buf), &urgent), -ENOTSUP);
}

/* -- what the other end acknowledges -- */

static bool
silent_for(int64_t ms)
{
	return leg_is_silent(&leg, clock_ns(), ms * MS, 1);
}

static void
put(const char *text)
{
	struct iovec iov = { (void *)(uintptr_t)text, strlen(text) };

	ck_assert_int_eq(leg_write(&leg, &iov, 1, false), (ssize_t)strlen(text));
}

/* _i: bytes, or FIN */
START_LOOP_TEST(a_peer_that_acknowledges_nothing_is_silent, 0, 2)
{
	ck_assert(!silent_for(0)); /* nothing was sent */
	put("x");
	while ((leg.flags & LEG_SENT) != 0)
		ck_assert(!silent_for(5000));
	tcp_vanish(peer);
	if (_i == 0)
		put("y");
	else
		leg_shut(&leg);
	int64_t from = clock_ns();
	while (!silent_for(200))
		usleep(5000);
	ck_assert_int_ge(clock_ns() - from, 190 * MS);
	/* Back again: nothing counts of what was before. */
	tcp_come_back(peer);
	while ((leg.flags & LEG_SENT) != 0) {
		usleep(5000);
		(void)silent_for(60000);
	}
	ck_assert(!silent_for(0));
}

/* The time counts from when it was sent, however long nothing has come before. */
START_TEST(an_idle_time_before_is_no_silence)
{
	int64_t from = clock_ns();

	while (clock_ns() - from < 300 * MS)
		usleep(10000);
	tcp_vanish(peer);
	from = clock_ns();
	put("x");
	for (int i = 0; i < 5; i++) {
		ck_assert(!silent_for(200) || clock_ns() - from >= 190 * MS);
		usleep(20000);
	}
}

/* A program that does not read acknowledges: its window stays closed for as long as it likes, and TCP asks less and less often. A
 * host that vanishes then does not answer. _i: the window closes in order, or too late: what is sent then is dropped, and sent again */
START_LOOP_TEST(a_peer_that_does_not_read_is_not_silent, 0, 2)
{
	static char block[65536];
	struct iovec iov = { block, sizeof(block) };
	int small = 1;
	struct net_unacked u;

	if (_i == 1)
		setsockopt(peer, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	while (leg_write(&leg, &iov, 1, false) > 0)
		;
	int64_t from = clock_ns();
	while (clock_ns() - from < 1500 * MS) {
		ck_assert(net_unacked(leg.io.fd, &u));
		ck_assert(!silent_for(500));
		usleep(20000);
	}
	tcp_vanish(peer);
	while (!silent_for(500))
		usleep(20000);
}

/* -- connecting to one -- */

START_TEST(a_full_backlog_is_waited_for)
{
	const struct config_keepalive ka = { 0 };
	struct sockaddr_storage ss = { 0 };
	struct dial d = { .leg = &leg };
	char path[64], text[ADDR_STR_MAX];
	int ls = socket(AF_UNIX, SOCK_STREAM, 0), waiting[2];

	snprintf(path, sizeof(path), "/tmp/check_leg.%d", (int)getpid());
	snprintf(text, sizeof(text), "unix:%s", path);
	ck_assert_int_eq(addr_parse_unix(text, &ss), 0);
	leg_close(&leg, lp, false);
	ck_assert_int_eq(dial_start(&d, lp, &ka, &ss), -ENOENT);
	ck_assert_int_eq(bind(ls, (struct sockaddr *)&ss, addr_len(&ss)), 0);
	ck_assert_int_eq(dial_start(&d, lp, &ka, &ss), -ECONNREFUSED);
	ck_assert_int_eq(listen(ls, 0), 0);
	for (int i = 0; i < 2; i++) {
		waiting[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		(void)connect(waiting[i], (struct sockaddr *)&ss, addr_len(&ss));
	}
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(dial_start(&d, lp, &ka, &ss), 0);
		ck_assert(d.busy && d.waits);
		ck_assert_int_lt(leg.io.fd, 0);
		ck_assert_int_eq(dial_check(&d), 0);
	}
	close(accept(ls, NULL, NULL));
	ck_assert_int_eq(dial_start(&d, lp, &ka, &ss), 0);
	ck_assert(d.busy && !d.waits);
	await(LOOP_WRITE);
	ck_assert_int_eq(dial_check(&d), 1);
	ck_assert_uint_ne(leg.flags & LEG_UNIX, 0);
	/* Given up for want of room. */
	ck_assert_int_eq(dial_start(&d, lp, &ka, &ss), 0);
	ck_assert(d.waits);
	dial_end(&d, lp);
	ck_assert(!d.busy && !d.waits);
	for (int i = 0; i < 2; i++)
		close(waiting[i]);
	close(ls);
	unlink(path);
}

/* Before the loop has seen that it is connected. The data are there, then FIN where there was one, or the error. */
START_TEST(a_reset_behind_the_handshake_is_no_failed_connect)
{
	static const struct {
		const char *text;
		bool fin;
		int err;
	} cases[] = { { "", false, ECONNRESET }, { "", true, EPIPE }, { "abc", false, ECONNRESET },
		{ "abc", true, EPIPE } };
	const struct linger reset = { .l_onoff = 1 };

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sockaddr_storage ss = { .ss_family = AF_INET };
		const struct config_keepalive ka = { 0 };
		struct dial d = { .leg = &leg };
		socklen_t len = sizeof(ss);
		char buf[8];
		bool urgent;
		int ls = socket(AF_INET, SOCK_STREAM, 0);

		leg_close(&leg, lp, false);
		((struct sockaddr_in *)&ss)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		ck_assert_int_eq(bind(ls, (struct sockaddr *)&ss, sizeof(struct sockaddr_in)), 0);
		ck_assert_int_eq(getsockname(ls, (struct sockaddr *)&ss, &len), 0);
		ck_assert_int_eq(listen(ls, 1), 0);
		ck_assert_int_eq(dial_start(&d, lp, &ka, &ss), 0);
		int fd = accept(ls, NULL, NULL);
		ck_assert_int_eq(send(fd, cases[i].text, strlen(cases[i].text), 0), (ssize_t)strlen(cases[i].text));
		if (cases[i].fin)
			ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
		ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
		close(fd);
		close(ls);
		await(LOOP_ERR);
		ck_assert_int_eq(dial_check(&d), 1);
		ck_assert(!d.busy);
		ck_assert_int_eq(leg_broken(&leg), cases[i].err);
		if (cases[i].text[0] != '\0')
			ck_assert_int_eq(get(buf, sizeof(buf), &urgent), (ssize_t)strlen(cases[i].text));
		ck_assert_int_eq(get(buf, sizeof(buf), &urgent), cases[i].fin ? 0 : -cases[i].err);
	}
}
