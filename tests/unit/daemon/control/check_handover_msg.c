/* Messages of a hand-over: every field, truncation and kind; descriptors that come with them, or should not. */
#include "daemon/control/handover_msg.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/addr.h"
#include "open_fds.h"
#include "unit.h"

static const struct handover_msg hello = {
	.type = HANDOVER_HELLO, .cnt = 3, .pid = 0x1234, .watchdog_us = 30000000, .text = "/run/systemd/notify"
};
static const struct handover_msg sock = {
	.type = HANDOVER_SOCKET, .kind = HANDOVER_SERVICE, .dev = 0x0102030405060708, .ino = 9, .text = "/run/x"
};
static const struct handover_msg ready = { .type = HANDOVER_READY };

static struct span
encoded(const struct handover_msg *m, uint8_t *buf)
{
	memset(buf, 0xee, HANDOVER_LEN);
	handover_encode(m, buf);
	return (struct span){ buf, HANDOVER_LEN };
}

START_TEST(bytes_are_as_they_were)
{
	static const uint8_t head[] = { 'S', 'M', 'C', 'H', 0, 1, 0, 3, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 9, '/', 'r', 'u', 'n', '/', 'x',
		0 };
	uint8_t buf[HANDOVER_LEN];

	(void)encoded(&sock, buf);
	ck_assert_mem_eq(buf, head, sizeof(head));
	for (size_t i = sizeof(head); i < HANDOVER_LEN; i++)
		ck_assert_uint_eq(buf[i], 0);
}

START_TEST(what_is_encoded_is_decoded)
{
	const struct handover_msg all[] = { hello, sock, ready, { .type = HANDOVER_REFUSED, .text = "no" },
		{ .type = HANDOVER_END }, { .type = HANDOVER_USED, .cnt = 7 },
		{ .type = HANDOVER_DONE, .text = "/run/c.1" } };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		uint8_t buf[HANDOVER_LEN];
		struct handover_msg out;

		memset(&out, 0xee, sizeof(out));
		ck_assert_int_eq(handover_decode(encoded(&all[i], buf), &out), HANDOVER_LEN);
		ck_assert_int_eq(out.type, all[i].type);
		ck_assert_int_eq(out.kind, all[i].kind);
		ck_assert_uint_eq(out.cnt, all[i].cnt);
		ck_assert_uint_eq(out.pid, all[i].pid);
		ck_assert_uint_eq(out.watchdog_us, all[i].watchdog_us);
		ck_assert_uint_eq(out.dev, all[i].dev);
		ck_assert_uint_eq(out.ino, all[i].ino);
		ck_assert_str_eq(out.text, all[i].text);
	}
}

START_TEST(a_text_that_is_too_long_is_cut)
{
	struct handover_msg m = { .type = HANDOVER_REFUSED }, out;
	uint8_t buf[HANDOVER_LEN];

	memset(m.text, 'x', sizeof(m.text));
	ck_assert_int_eq(handover_decode(encoded(&m, buf), &out), HANDOVER_LEN);
	ck_assert_uint_eq(strlen(out.text), HANDOVER_TEXT_MAX - 1);
}

START_TEST(every_truncation_needs_more)
{
	uint8_t buf[HANDOVER_LEN];
	struct handover_msg out = ready;

	(void)encoded(&hello, buf);
	for (size_t len = 0; len < HANDOVER_LEN; len++)
		ck_assert_int_eq(handover_decode((struct span){ buf, len }, &out), 0);
	ck_assert_int_eq(out.type, HANDOVER_READY); /* untouched */
}

static const struct {
	const struct handover_msg *of;
	size_t at;
	uint8_t value;
	int rc;
} bad[] = {
	{ &hello, 0, 'X', -EPROTO },
	{ &hello, 3, 0, -EPROTO },
	{ &hello, 4, 1, -EPROTONOSUPPORT },
	{ &hello, 5, 0, -EPROTONOSUPPORT },
	{ &hello, 5, 2, -EPROTONOSUPPORT },
	{ &hello, 7, 0, -EPROTO }, /* type */
	{ &hello, 7, HANDOVER_HEALTH + 1, -EPROTO },
	{ &hello, 6, 0xff, -EPROTO },
	{ &hello, 9, HANDOVER_SERVICE, -EPROTO }, /* a kind, of no socket */
	{ &sock, 9, HANDOVER_NONE, -EPROTO },     /* a socket of no kind */
	{ &sock, 9, HANDOVER_MPA + 1, -EPROTO },
	{ &sock, 8, 0xff, -EPROTO },
	{ &hello, 16, 0xff, -EPROTO }, /* sockets */
	{ &hello, 17, 1, -EPROTO },
	{ &hello, 20, 0x80, -EPROTO }, /* process id */
	{ &hello, 49, '\n', -EPROTO }, /* text */
	{ &hello, 49, 0x7f, -EPROTO },
	{ &hello, 49, 0x1b, -EPROTO },
};

START_LOOP_TEST(what_is_out_of_range_is_refused, 0, sizeof(bad) / sizeof(bad[0]))
{
	uint8_t buf[HANDOVER_LEN];
	struct handover_msg out = ready;
	const struct span in = encoded(bad[_i].of, buf);

	buf[bad[_i].at] = bad[_i].value;
	ck_assert_int_eq(handover_decode(in, &out), bad[_i].rc);
	ck_assert_int_eq(out.type, HANDOVER_READY);
}

START_TEST(a_text_without_an_end_is_refused)
{
	uint8_t buf[HANDOVER_LEN];
	struct handover_msg out;
	const struct span in = encoded(&hello, buf);

	memset(buf + HANDOVER_LEN - HANDOVER_TEXT_MAX, 'x', HANDOVER_TEXT_MAX);
	ck_assert_int_eq(handover_decode(in, &out), -EPROTO);
}

START_TEST(no_process_is_refused)
{
	struct handover_msg m = hello, out;
	uint8_t buf[HANDOVER_LEN];

	m.pid = 0;
	ck_assert_int_eq(handover_decode(encoded(&m, buf), &out), -EPROTO);
}

/* -- on a socket -- */

static int ends[2];

static void
setup(void)
{
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
}

static void
teardown(void)
{
	close(ends[0]);
	close(ends[1]);
}

UNIT_FIXTURE(setup, teardown);

/* Bytes with some descriptors, as only another program would send them. */
static void
send_raw(const void *p, size_t len, unsigned fd_cnt)
{
	union {
		char buf[CMSG_SPACE(16 * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)p, .iov_len = len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd_cnt > 0) {
		mh.msg_control = control.buf;
		mh.msg_controllen = CMSG_SPACE(fd_cnt * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(fd_cnt * sizeof(int));
		for (unsigned i = 0; i < fd_cnt; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &ends[0], sizeof(int));
	}
	ck_assert_int_eq(sendmsg(ends[0], &mh, MSG_NOSIGNAL), (int)len);
}

START_TEST(messages_and_their_descriptors_stay_together)
{
	struct handover_rx rx = HANDOVER_RX_NONE;
	struct handover_msg out;
	int fd = -2;

	ck_assert_int_eq(handover_recv(ends[1], &rx, &out, &fd), -EAGAIN);
	ck_assert_int_eq(handover_send(ends[0], &hello, -1), 0);
	ck_assert_int_eq(handover_send(ends[0], &sock, ends[0]), 0);
	ck_assert_int_eq(handover_send(ends[0], &sock, ends[0]), 0);
	ck_assert_int_eq(handover_send(ends[0], &ready, -1), 0);
	ck_assert_int_eq(handover_recv(ends[1], &rx, &out, &fd), 0);
	ck_assert_int_eq(out.type, HANDOVER_HELLO);
	ck_assert_int_eq(fd, -1);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(handover_recv(ends[1], &rx, &out, &fd), 0);
		ck_assert_int_eq(out.type, HANDOVER_SOCKET);
		ck_assert_int_ge(fd, 0);
		ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
		close(fd);
	}
	ck_assert_int_eq(handover_recv(ends[1], &rx, &out, &fd), 0);
	ck_assert_int_eq(out.type, HANDOVER_READY);
	close(ends[0]);
	ck_assert_int_eq(handover_recv(ends[1], &rx, &out, &fd), -ECONNRESET);
	ends[0] = -1;
}

START_TEST(a_message_may_come_in_pieces)
{
	struct handover_rx rx = HANDOVER_RX_NONE;
	uint8_t buf[HANDOVER_LEN];
	struct handover_msg out;
	int fd = -2;

	(void)encoded(&sock, buf);
	for (size_t i = 0; i < HANDOVER_LEN; i++) {
		ck_assert_int_eq(handover_recv(ends[1], &rx, &out, &fd), -EAGAIN);
		send_raw(buf + i, 1, i == 50);
	}
	ck_assert_int_eq(handover_recv(ends[1], &rx, &out, &fd), 0);
	ck_assert_str_eq(out.text, "/run/x");
	close(fd);
}

static const struct {
	const struct handover_msg *m;
	unsigned fds;
} wrong[] = { { &sock, 0 }, { &sock, 2 }, { &sock, 3 }, { &sock, 16 }, { &hello, 1 }, { &ready, 1 } };

START_LOOP_TEST(wrong_numbers_of_descriptors_are_refused_and_closed, 0, sizeof(wrong) / sizeof(wrong[0]))
{
	struct handover_rx rx = HANDOVER_RX_NONE;
	const unsigned before = open_fds();
	uint8_t buf[HANDOVER_LEN];
	struct handover_msg out;
	int fd = -2;

	(void)encoded(wrong[_i].m, buf);
	send_raw(buf, HANDOVER_LEN, wrong[_i].fds);
	ck_assert_int_eq(handover_recv(ends[1], &rx, &out, &fd), -EPROTO);
	ck_assert_int_eq(fd, -2);
	handover_rx_fini(&rx);
	ck_assert_uint_eq(open_fds(), before);
}

START_TEST(something_else_is_refused_at_its_first_byte)
{
	struct handover_rx rx = HANDOVER_RX_NONE;
	struct handover_msg out;
	int fd;

	send_raw("{\"schema\":1}\n", 13, 0);
	ck_assert_int_eq(handover_recv(ends[1], &rx, &out, &fd), -EPROTO);
	ck_assert_uint_eq(rx.buf[0], '{');
}

START_TEST(half_a_message_and_its_descriptor_are_no_leak)
{
	struct handover_rx rx = HANDOVER_RX_NONE;
	const unsigned before = open_fds();
	uint8_t buf[HANDOVER_LEN];
	struct handover_msg out;
	int fd;

	(void)encoded(&sock, buf);
	send_raw(buf, 80, 1);
	shutdown(ends[0], SHUT_WR);
	ck_assert_int_eq(handover_recv(ends[1], &rx, &out, &fd), -ECONNRESET);
	handover_rx_fini(&rx);
	ck_assert_uint_eq(open_fds(), before);
}

START_TEST(a_full_socket_is_tried_again)
{
	struct handover_rx rx = HANDOVER_RX_NONE;
	struct handover_msg out;
	unsigned sent = 0;
	int rc, fd;

	while ((rc = handover_send(ends[0], &sock, ends[1])) == 0)
		sent++;
	ck_assert_msg(rc == -EAGAIN || rc == -ETOOMANYREFS, "%d", rc);
	ck_assert_uint_gt(sent, 10);
	for (; sent > 0; sent--) {
		ck_assert_int_eq(handover_recv(ends[1], &rx, &out, &fd), 0);
		close(fd);
	}
	ck_assert_int_eq(handover_send(ends[0], &ready, -1), 0);
}

/* Health of a target: the address, the state and its age, the reason. */
START_TEST(health_there_and_back)
{
	static const char *const addrs[] = { "192.0.2.1:80", "[2001:db8::1]:80", "unix:/run/s" };

	for (size_t i = 0; i < sizeof(addrs) / sizeof(addrs[0]); i++) {
		struct targets_known is = {
			.health = { .state = HEALTH_DOWN, .server = CLC_SERVER_REFUSED, .since_ns = 5000000000 }
		};
		struct targets_known got;
		struct handover_msg m, read;
		uint8_t bytes[HANDOVER_LEN];

		strcpy(is.health.why, "it\nfails");
		ck_assert_int_eq((i == 2 ? addr_parse_unix : addr_parse_port)(addrs[i], &is.addr), 0);
		handover_from_health(&m, &is, 8000000000);
		handover_encode(&m, bytes);
		ck_assert_int_eq(handover_decode((struct span){ bytes, sizeof(bytes) }, &read), HANDOVER_LEN);
		ck_assert_int_eq(handover_to_health(&read, &got, 103000000000), 0);
		ck_assert(addr_same_place(&got.addr, &is.addr));
		ck_assert_int_eq(got.health.state, HEALTH_DOWN);
		ck_assert_int_eq(got.health.server, CLC_SERVER_REFUSED);
		ck_assert_int_eq(got.health.since_ns, 100000000000);
		ck_assert_int_eq(got.health.probed_ns, 0);
		ck_assert_str_eq(got.health.why, "it?fails");
	}
}

START_TEST(health_that_cannot_be)
{
	static const struct {
		uint32_t state;
		uint64_t age_ms, server;
		const char *text;
		int rc;
	} of[] = {
		{ HEALTH_UP, 0, 0, "192.0.2.1:80 ", 0 },
		{ HEALTH_UP, 0, 0, "192.0.2.1:80", 0 },
		{ HEALTH_DOWN, 0, 1000, "192.0.2.1:80 x", 0 },
		{ HEALTH_NONE, 0, 0, "192.0.2.1:80 ", -EPROTO },
		{ HEALTH_STATE_CNT, 0, 0, "192.0.2.1:80 ", -EPROTO },
		{ UINT32_MAX, 0, 0, "192.0.2.1:80 ", -EPROTO },
		{ HEALTH_UP, UINT64_MAX, 0, "192.0.2.1:80 ", -EPROTO },
		{ HEALTH_UP, INT64_MAX / 2 / 1000000 + 1, 0, "192.0.2.1:80 ", -EPROTO },
		{ HEALTH_UP, 0, 0, "", -EPROTO },
		{ HEALTH_UP, 0, 0, " 192.0.2.1:80", -EPROTO },
		{ HEALTH_UP, 0, 0, "192.0.2.1", -EPROTO },
		{ HEALTH_UP, 0, 0, "unix:relative x", -EPROTO },
	};

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		struct handover_msg m = {
			.type = HANDOVER_HEALTH, .cnt = of[i].state, .dev = of[i].age_ms, .ino = of[i].server
		};
		struct targets_known got = { .health.row = 77 };

		strcpy(m.text, of[i].text);
		ck_assert_msg(handover_to_health(&m, &got, 1) == of[i].rc, "%zu", i);
		ck_assert_msg((got.health.row == 77) == (of[i].rc != 0), "%zu", i);
		if (of[i].rc == 0)
			ck_assert(got.health.server <= CLC_SERVER_DOWN);
	}
}
