/* What sockets say of themselves. */
#include "daemon/net/net.h"

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/addr.h"
#include "unit.h"

START_TEST(a_socket_listens_from_listen_until_it_is_shut)
{
	struct sockaddr_storage at;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_eq(addr_parse("127.0.0.1", &at), 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, addr_len(&at)), 0);
	ck_assert(!net_option(fd, SOL_SOCKET, SO_ACCEPTCONN));
	ck_assert_int_eq(listen(fd, 1), 0);
	ck_assert(net_option(fd, SOL_SOCKET, SO_ACCEPTCONN));
	ck_assert_int_eq(shutdown(fd, SHUT_RD), 0);
	ck_assert(!net_option(fd, SOL_SOCKET, SO_ACCEPTCONN));
	close(fd);
}

START_TEST(what_is_no_socket_does_not_listen)
{
	int fd[2];

	ck_assert_int_eq(pipe(fd), 0);
	ck_assert(!net_option(fd[0], SOL_SOCKET, SO_ACCEPTCONN) && !net_option(-1, SOL_SOCKET, SO_ACCEPTCONN));
	close(fd[0]);
	close(fd[1]);
}

START_TEST(a_port_is_shared_or_not)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert(!net_option(fd, SOL_SOCKET, SO_REUSEPORT) && !net_option(fd, IPPROTO_TCP, TCP_SAVE_SYN));
	net_share_port(fd, true);
	ck_assert(net_option(fd, SOL_SOCKET, SO_REUSEPORT));
	net_share_port(fd, false);
	ck_assert(!net_option(fd, SOL_SOCKET, SO_REUSEPORT));
	close(fd);
}
