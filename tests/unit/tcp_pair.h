/* Two connected TCP sockets on loopback for unit tests; the second one does not block. */
#pragma once

#include <arpa/inet.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "checks.h"

static inline void
tcp_pair(int sv[2])
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(sin);
	int ls = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_eq(bind(ls, (struct sockaddr *)&sin, sizeof(sin)), 0);
	ck_assert_int_eq(listen(ls, 1), 0);
	ck_assert_int_eq(getsockname(ls, (struct sockaddr *)&sin, &len), 0);
	sv[0] = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(sv[0], (struct sockaddr *)&sin, sizeof(sin)), 0);
	sv[1] = accept4(ls, NULL, NULL, SOCK_NONBLOCK);
	ck_assert_int_ge(sv[1], 0);
	close(ls);
}

/* From now on nothing reaches this socket, so that its TCP acknowledges nothing: as if its host was gone. */
static inline void
tcp_vanish(int fd)
{
	struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog prog = { 1, &drop };

	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)), 0);
}

static inline void
tcp_come_back(int fd)
{
	const int none = 0;

	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof(none)), 0);
}
