/* Classes of source ports, on loopback's real sockets. */
#include "daemon/net/worker_port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/addr.h"
#include "daemon/net/net.h"
#include "unit.h"

#define WORKERS_MAX 3

static int listener[WORKERS_MAX];

/* cnt listeners that share a port, dealt by class; at is where. */
static void
listen_shared(const char *addr, unsigned cnt, bool deal, struct sockaddr_storage *at)
{
	socklen_t len = sizeof(*at);

	ck_assert_int_eq(addr_parse(addr, at), 0);
	for (unsigned i = 0; i < cnt; i++) {
		listener[i] = net_listen(at, i == 0 ? NET_FIRST : NET_BESIDE, false, NULL);
		ck_assert_int_ge(listener[i], 0);
		if (i == 0) {
			ck_assert_int_eq(getsockname(listener[0], (struct sockaddr *)at, &len), 0);
			if (deal)
				ck_assert_int_eq(worker_ports_deal(listener[0], cnt), 0);
		}
	}
}

static void
close_all(const int *fds, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++)
		close(fds[i]);
}

static unsigned
local_port(int fd)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t len = sizeof(ss);

	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&ss, &len), 0);
	return addr_port(&ss);
}

static int
connect_from(struct worker_ports *p, const struct sockaddr_storage *to)
{
	int fd = socket(to->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(worker_ports_connect(p, fd, to), 0);
	return fd;
}

/* Which listener has the connection? */
static unsigned
accept_any(unsigned cnt)
{
	struct pollfd p[WORKERS_MAX];

	for (unsigned i = 0; i < cnt; i++)
		p[i] = (struct pollfd){ .fd = listener[i], .events = POLLIN };
	ck_assert_int_eq(poll(p, cnt, 10000), 1);
	for (unsigned i = 0; i < cnt; i++)
		if (p[i].revents != 0) {
			close(accept(listener[i], NULL, NULL));
			return i;
		}
	return cnt;
}

/* Each worker's connections come to the worker of the same number, over IPv4, IPv6, and IPv4 to an IPv6 socket. */
START_LOOP_TEST(same_number, 0, 3)
{
	static const char *const addr[] = { "127.0.0.1", "::1", "::" };
	struct sockaddr_storage at;
	struct worker_ports p;

	listen_shared(addr[_i], WORKERS_MAX, true, &at);
	if (_i == 2) {
		struct sockaddr_in in4 = { .sin_family = AF_INET, .sin_port = htons((uint16_t)addr_port(&at)) };

		in4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		memset(&at, 0, sizeof(at));
		memcpy(&at, &in4, sizeof(in4));
	}
	for (unsigned nr = 0; nr < WORKERS_MAX; nr++) {
		int fd[20];

		worker_ports_init(&p, nr, WORKERS_MAX, 12345);
		for (unsigned i = 0; i < 20; i++) {
			fd[i] = connect_from(&p, &at);
			const unsigned came = accept_any(WORKERS_MAX);
			/* Before Linux 6.3 the kernel chooses, and each port is dealt as its number says. */
			if (p.cnt > 1)
				ck_assert_uint_eq(came, nr);
			ck_assert_uint_eq(local_port(fd[i]) / 2 % WORKERS_MAX, came);
		}
		close_all(fd, 20);
	}
	close_all(listener, WORKERS_MAX);
}

/* Ports that are taken are passed over; without a free one in the class the kernel chooses. */
START_TEST(taken)
{
	struct worker_ports p = { .low = 50000, .high = 50011, .nr = 1, .cnt = 2 };
	struct sockaddr_storage at;
	unsigned port[4];
	int fd[4];

	listen_shared("127.0.0.1", 1, false, &at);
	for (unsigned i = 0; i < 4; i++) {
		fd[i] = connect_from(&p, &at);
		port[i] = local_port(fd[i]);
	}
	for (unsigned i = 0; i < 3 && p.cnt > 1; i++)
		ck_assert_uint_eq(port[i], 50002 + 4 * i);
	if (p.cnt > 1)
		ck_assert(port[3] < 50000 || port[3] > 50011 || port[3] / 2 % 2 == 0);
	close_all(fd, 4);
	close_all(listener, 1);
}

/* One that fails does so as connect(2). */
START_TEST(refused)
{
	struct sockaddr_storage at;
	struct worker_ports p;

	listen_shared("127.0.0.1", 1, false, &at);
	close_all(listener, 1);
	worker_ports_init(&p, 0, 2, 1);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(worker_ports_connect(&p, fd, &at), -1);
	ck_assert_int_eq(errno, ECONNREFUSED);
	close(fd);
}

/* A socket that shares its port with nobody cannot deal. */
START_TEST(alone)
{
	struct sockaddr_storage at;

	ck_assert_int_eq(addr_parse("127.0.0.1", &at), 0);
	int fd = net_listen(&at, NET_ALONE, false, NULL);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(worker_ports_deal(fd, 2), -EINVAL);
	close(fd);
}
