/* See datagrams.h. */
#include "datagrams.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"

#define FIRST_FD 100000
#define SOCKETS 16
#define QUEUE 1024
#define FIRST_PORT 20000

struct datagram {
	uint16_t from;
	size_t len;
	uint8_t *bytes;
};

struct sock {
	bool open;
	uint16_t port; /* 0: not bound */
	struct datagram queue[QUEUE];
	unsigned head, cnt;
	rnic_io_cb cb;
	void *arg;
};

struct failing {
	unsigned after;
	int err; /* 0: none */
};

static struct {
	struct sock sock[SOCKETS];
	uint16_t next_port;
	datagrams_sink sink;
	void *ctx;
	struct failing socket, send;
	bool narrow;
} net;

int __wrap_socket(int domain, int type, int protocol);
int __wrap_bind(int fd, const struct sockaddr *addr, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len);
int __wrap_getsockopt(int fd, int level, int name, void *val, socklen_t *len);
int __wrap_getsockname(int fd, struct sockaddr *addr, socklen_t *len);
int __wrap_setsockopt(int fd, int level, int name, const void *val, socklen_t len);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *, int flags);
int __wrap_close(int fd);
int __real_close(int fd);
int __wrap_getifaddrs(struct ifaddrs **list);

static bool
fails(struct failing *f)
{
	if (f->err == 0 || f->after-- > 0)
		return false;
	errno = f->err;
	f->err = 0;
	return true;
}

void
datagrams_fail_socket(unsigned after, int err)
{
	net.socket = (struct failing){ after, err };
}

void
datagrams_fail_send(unsigned after, int err)
{
	net.send = (struct failing){ after, err };
}

bool
datagrams_path_is_narrow(void)
{
	return net.narrow;
}

void
datagrams_init(datagrams_sink sink, void *ctx)
{
	memset(&net, 0, sizeof(net));
	net.next_port = FIRST_PORT;
	net.sink = sink;
	net.ctx = ctx;
}

void
datagrams_fini(void)
{
	for (unsigned i = 0; i < SOCKETS; i++)
		FUZZ_CHECK(!net.sock[i].open);
}

static struct sock *
sock_of(int fd)
{
	FUZZ_CHECK(fd >= FIRST_FD && fd < FIRST_FD + SOCKETS && net.sock[fd - FIRST_FD].open);
	return &net.sock[fd - FIRST_FD];
}

static struct sock *
sock_at(uint16_t port)
{
	for (unsigned i = 0; i < SOCKETS; i++)
		if (net.sock[i].open && net.sock[i].port == port)
			return &net.sock[i];
	return NULL;
}

static void
deliver(struct sock *to, uint16_t from, const void *bytes, size_t len)
{
	struct datagram *d = &to->queue[(to->head + to->cnt) % QUEUE];

	if (to->cnt == QUEUE)
		return;
	/* Not by malloc, which may fail for the device. */
	*d = (struct datagram){ .from = from, .len = len, .bytes = aligned_alloc(8, (len + 15) / 8 * 8) };
	FUZZ_CHECK(d->bytes != NULL);
	memcpy(d->bytes, bytes, len);
	to->cnt++;
}

static void
drop_first(struct sock *s)
{
	free(s->queue[s->head].bytes);
	s->head = (s->head + 1) % QUEUE;
	s->cnt--;
}

static struct sockaddr_in
address(uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)
	};
}

static uint16_t
port_of(const struct sockaddr *addr)
{
	return ntohs(((const struct sockaddr_in *)(const void *)addr)->sin_port);
}

/* -- the devices' calls -- */

int
__wrap_socket(int domain, int type, int protocol)
{
	(void)domain;
	(void)type;
	(void)protocol;
	if (fails(&net.socket))
		return -1;
	for (unsigned i = 0; i < SOCKETS; i++)
		if (!net.sock[i].open) {
			memset(&net.sock[i], 0, sizeof(net.sock[i]));
			net.sock[i].open = true;
			return FIRST_FD + (int)i;
		}
	errno = EMFILE;
	return -1;
}

int
__wrap_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	uint16_t port = port_of(addr);

	(void)len;
	sock_of(fd)->port = port != 0 ? port : net.next_port++;
	return 0;
}

int
__wrap_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	(void)sock_of(fd);
	(void)addr;
	(void)len;
	return 0;
}

/* The path's MTU is unknown. */
int
__wrap_getsockopt(int fd, int level, int name, void *val, socklen_t *len)
{
	(void)sock_of(fd);
	(void)level;
	(void)name;
	(void)val;
	(void)len;
	errno = ENOTCONN;
	return -1;
}

int
__wrap_getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	*(struct sockaddr_in *)(void *)addr = address(sock_of(fd)->port);
	*len = sizeof(struct sockaddr_in);
	return 0;
}

int
__wrap_setsockopt(int fd, int level, int name, const void *val, socklen_t len)
{
	(void)sock_of(fd);
	(void)level;
	(void)name;
	(void)val;
	(void)len;
	return 0;
}

/* Of several packets, cut apart as the kernel does it. */
static size_t
each_of(const struct msghdr *msg)
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	uint16_t each = 0;

	if (c == NULL)
		return msg->msg_iov->iov_len;
	memcpy(&each, CMSG_DATA(c), sizeof(each));
	return each;
}

ssize_t
__wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	uint16_t from = sock_of(fd)->port, port = port_of(msg->msg_name);
	const uint8_t *bytes = msg->msg_iov->iov_base;
	size_t len = msg->msg_iov->iov_len, each = each_of(msg);
	struct sock *peer = sock_at(port);

	(void)flags;
	if (fails(&net.send)) {
		net.narrow = net.narrow || errno == EMSGSIZE;
		return -1;
	}
	for (size_t off = 0; off < len; off += each) {
		size_t n = len - off < each ? len - off : each;

		if (peer != NULL)
			deliver(peer, from, bytes + off, n);
		else
			net.sink(net.ctx, from, port, bytes + off, n);
	}
	return (ssize_t)len;
}

ssize_t
__wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct sock *s = sock_of(fd);
	const struct datagram *d = &s->queue[s->head];
	size_t n = d->len < msg->msg_iov->iov_len ? d->len : msg->msg_iov->iov_len;

	(void)flags;
	if (s->cnt == 0) {
		errno = EAGAIN;
		return -1;
	}
	memcpy(msg->msg_iov->iov_base, d->bytes, n);
	*(struct sockaddr_in *)msg->msg_name = address(d->from);
	msg->msg_namelen = sizeof(struct sockaddr_in);
	msg->msg_controllen = 0;
	drop_first(s);
	return (ssize_t)n;
}

int
__wrap_close(int fd)
{
	struct sock *s;

	if (fd < FIRST_FD)
		return __real_close(fd);
	s = sock_of(fd);
	FUZZ_CHECK(s->cb == NULL); /* unwatched before */
	while (s->cnt > 0)
		drop_first(s);
	s->open = false;
	return 0;
}

int
__wrap_getifaddrs(struct ifaddrs **list)
{
	*list = NULL;
	errno = ENOMEM;
	return -1;
}

/* -- the loop -- */

static int
watch(void *ctx, int fd, rnic_io_cb cb, void *arg)
{
	struct sock *s = sock_of(fd);

	(void)ctx;
	FUZZ_CHECK(s->cb == NULL);
	s->cb = cb;
	s->arg = arg;
	return 0;
}

static void
unwatch(void *ctx, int fd)
{
	(void)ctx;
	sock_of(fd)->cb = NULL;
}

struct rnic_loop
datagrams_loop(void)
{
	return (struct rnic_loop){ .watch = watch, .unwatch = unwatch };
}

bool
datagrams_turn(void)
{
	bool news = false;

	for (unsigned i = 0; i < SOCKETS; i++) {
		struct sock *s = &net.sock[i];

		if (!s->open || s->cb == NULL || s->cnt == 0)
			continue;
		s->cb(s->arg, RNIC_IO_READ);
		news = true;
	}
	return news;
}

void
datagrams_send(uint16_t from, uint16_t to, const void *bytes, size_t len)
{
	struct sock *peer = sock_at(to);

	if (peer != NULL)
		deliver(peer, from, bytes, len);
}
