/* Links in TLS against those who lack the key, use it elsewhere, or sit on the path; see doc/secure.md. */
#define END_SECRET end_secret
static const unsigned char secrets[2][34] = { "the secret of a group, 32 bytes", "the secret of another group" };
static const unsigned char *end_secret = secrets[0];
#include "siw_ends.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

UNIT_FIXTURE(setup, teardown);

/* -- a relay between both ends: records, and may change a byte of what the active end sends -- */

#define RECORD (1024u * 1024)

static struct {
	int listener, ends[2]; /* of the active end, of the passive end */
	uint16_t to;
	atomic_size_t seen_len[2];
	atomic_size_t change_at;                    /* of the active end's bytes; 0: none */
	enum { CHANGED, DROPPED, TWICE, CUT } harm; /* done to what has that byte */
	uint8_t seen[2][RECORD];
} relay;

static int
tcp_socket(uint16_t port, bool listening)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = { htonl(INADDR_LOOPBACK) }
	};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(
	    listening ? bind(fd, (struct sockaddr *)&at, sizeof(at)) : connect(fd, (struct sockaddr *)&at, sizeof(at)),
	    0);
	ck_assert(!listening || listen(fd, 1) == 0);
	return fd;
}

static bool
relay_move(int way)
{
	uint8_t buf[65536];
	ssize_t n = read(relay.ends[way], buf, sizeof(buf));
	size_t from = relay.seen_len[way], at = atomic_load(&relay.change_at);

	if (n <= 0)
		return false;
	for (ssize_t i = 0; i < n && from + (size_t)i < RECORD; i++)
		relay.seen[way][relay.seen_len[way]++] = buf[i];
	if (way != 0 || at <= from || at > from + (size_t)n)
		return write(relay.ends[!way], buf, (size_t)n) == n;
	buf[at - from - 1] ^= relay.harm == CHANGED;
	for (int i = relay.harm == TWICE ? 2 : relay.harm == DROPPED || relay.harm == CUT ? 0 : 1; i > 0; i--)
		if (write(relay.ends[!way], buf, (size_t)n) != n)
			return false;
	return relay.harm != CUT;
}

static void *
relay_run(void *arg)
{
	struct pollfd p[2];
	bool goes_on = true;

	relay.ends[0] = accept(relay.listener, NULL, NULL);
	relay.ends[1] = tcp_socket(relay.to, false);
	for (int i = 0; i < 2; i++)
		p[i] = (struct pollfd){ .fd = relay.ends[i], .events = POLLIN };
	while (goes_on && poll(p, 2, -1) > 0)
		for (int i = 0; i < 2 && goes_on; i++)
			goes_on = (p[i].revents & (POLLIN | POLLHUP | POLLERR)) == 0 || relay_move(i);
	close(relay.ends[0]);
	close(relay.ends[1]);
	return arg;
}

/* Connects a with b, by the relay. */
static void
connect_by_relay(void)
{
	struct rnic_remote rb;
	struct sockaddr_in at;
	socklen_t len = sizeof(at);
	pthread_t thread;

	end_qp(&a, 64, 16, TOKEN);
	end_qp(&b, 64, 16, TOKEN);
	rb = remote(&b);
	relay.to = rb.mpa_port;
	relay.listener = tcp_socket(0, true);
	ck_assert_int_eq(getsockname(relay.listener, (struct sockaddr *)&at, &len), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, relay_run, NULL), 0);
	ck_assert_int_eq(pthread_detach(thread), 0);
	rb.mpa_port = ntohs(at.sin_port);
	ck_assert_int_eq(b.dev->ops->qp_expect(b.qp), 0);
	ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &rb), 0);
	claim_link();
	ck_assert(a.connected == 1 && b.connected == 1);
}

static void
write_marks(const char *mark, size_t len)
{
	for (size_t i = 0; i + len <= 300000; i += len)
		memcpy(a.buf + i, mark, len);
	post(&a, RNIC_WR_WRITE, 1, 0, 0, 300000, &b, 0);
	post(&a, RNIC_WR_SEND, 2, RNIC_SIGNALED, 0, 44, &b, 0);
}

START_TEST(no_byte_in_clear_and_a_recorded_connection_is_refused)
{
	static const char mark[] = "the marker of a program's data";
	struct siw_config c = config();

	open_both(&c, &c);
	connect_by_relay();
	post_recv(&b, 1, 500000, 100);
	write_marks(mark, sizeof(mark));
	UNTIL(a.wc_cnt == 1 && b.wc_cnt == 1);
	ck_assert_mem_eq(a.buf, b.buf, 300000);
	ck_assert_uint_gt(relay.seen_len[0], 300000);
	for (int way = 0; way < 2; way++) {
		ck_assert_uint_gt(relay.seen_len[way], 300);
		ck_assert_ptr_null(memmem(relay.seen[way], relay.seen_len[way], mark, sizeof(mark) - 1));
		ck_assert_ptr_null(memmem(relay.seen[way], relay.seen_len[way], "MPA ID", 6));
	}
	/* Its key is used up: the same bytes reach no queue pair, and this link does not notice. */
	int fd = tcp_socket(relay.to, false);
	ck_assert_int_eq(write(fd, relay.seen[0], 2000), 2000);
	UNTIL(stats(&b).mpa_bad == 1);
	close(fd);
	post_recv(&b, 2, 500000, 100);
	post(&a, RNIC_WR_SEND, 3, RNIC_SIGNALED, 0, 44, &b, 0);
	UNTIL(b.wc_cnt == 2);
	ck_assert_uint_eq(a.errors + b.errors, 0);
}

/* The link ends, and nothing of the record in question is placed twice, or at all. */
START_LOOP_TEST(harm_on_the_path_ends_the_link, CHANGED, CUT + 1)
{
	struct siw_config c = config();

	open_both(&c, &c);
	connect_by_relay();
	memset(b.buf, 0, 300000);
	relay.harm = _i;
	relay.change_at = relay.seen_len[0] + 30;
	write_marks("x", 1);
	UNTIL(b.errors == 1 && a.errors == 1);
	ck_assert(_i == TWICE || b.buf[0] == 0);
	ck_assert(b.wc_cnt == 0);
	ck_assert_ptr_nonnull(strstr(b.why, "TLS"));
}

/* The active end's hello at a port of its own (RFC 9257 4.1, Selfie), while its queue pair waits there, too. */
START_TEST(a_reflected_hello_meets_no_queue_pair)
{
	struct siw_config c = config();

	open_both(&c, &c);
	connect_by_relay();
	struct rnic_qp *first = a.qp;
	end_qp(&a, 64, 16, TOKEN);
	ck_assert_int_eq(a.dev->ops->qp_expect(a.qp), 0);
	int fd = tcp_socket(remote(&a).mpa_port, false);
	ck_assert_int_eq(write(fd, relay.seen[0], 2000), 2000);
	UNTIL(stats(&a).mpa_bad == 1);
	close(fd);
	a.dev->ops->qp_destroy(a.qp);
	a.qp = first;
	post_recv(&b, 2, 500000, 100);
	post(&a, RNIC_WR_SEND, 3, RNIC_SIGNALED, 0, 44, &b, 0);
	UNTIL(b.wc_cnt == 1);
	ck_assert_uint_eq(a.errors + b.errors, 0);
}

/* 0: two secrets; 1: the passive end is in clear; 2: the active one. */
START_LOOP_TEST(ends_with_other_keys_do_not_meet, 0, 3)
{
	struct siw_config c = config();

	open_both(&c, &c);
	end_secret = _i == 2 ? NULL : secrets[1];
	end_qp(&a, 64, 16, TOKEN);
	end_secret = _i == 1 ? NULL : secrets[0];
	end_qp(&b, 64, 16, TOKEN);
	ask_for_link();
	UNTIL(a.failed == 1);
	UNTIL(stats(&b).mpa_bad + stats(&b).mpa_refused_token == 1);
	ck_assert_uint_eq(b.connected, 0);
	ck_assert_uint_eq(stats(&b).mpa_refused_token, _i == 2);
	if (_i < 2)
		ck_assert_str_eq(a.why,
		    _i == 0 ? "no TLS with the peer's MPA port: see what its log says"
		            : "the peer's MPA port ended the TLS handshake: see what its log says");
}

/* The key is that of one queue pair: it opens no other one of its group. */
START_TEST(the_key_of_another_queue_pair_opens_none)
{
	struct siw_config c = config();
	struct rnic_qp *other;
	struct rnic_remote rb;

	open_both(&c, &c);
	end_qp(&b, 64, 16, TOKEN);
	other = b.qp;
	end_qp(&b, 64, 16, TOKEN);
	end_qp(&a, 64, 16, TOKEN);
	rb = remote(&b);
	rb.psn ^= 1;
	ck_assert_int_eq(b.dev->ops->qp_expect(b.qp), 0);
	ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &rb), 0);
	UNTIL(a.failed == 1);
	ck_assert_uint_eq(stats(&b).mpa_bad, 1);
	b.dev->ops->qp_destroy(other);
}

/* Each byte of a ClientHello alone, then the end; and one that stops: the port goes on, a link comes up. */
START_TEST(hellos_that_end_early_are_dropped)
{
	struct siw_config c = config();
	uint8_t hello[600];
	size_t len;

	open_both(&c, &c);
	connect_by_relay();
	len = relay.seen_len[0] < sizeof(hello) ? relay.seen_len[0] : sizeof(hello);
	memcpy(hello, relay.seen[0], len);
	for (size_t cut = 1; cut < len; cut += 7) {
		int fd = tcp_socket(relay.to, false);

		ck_assert_int_eq(write(fd, hello, cut), (ssize_t)cut);
		run_ms(1);
		close(fd);
	}
	UNTIL(stats(&b).mpa_bad >= len / 7);
	post_recv(&b, 2, 500000, 100);
	post(&a, RNIC_WR_SEND, 3, RNIC_SIGNALED, 0, 44, &b, 0);
	UNTIL(b.wc_cnt == 1);
}
