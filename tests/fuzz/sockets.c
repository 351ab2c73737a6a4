/* See sockets.h. */
#include "sockets.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"

#define FIRST_FD 100000
#define BACKLOG 256

enum kind {
	NONE,
	FRESH,
	LISTENING,
	CONNECTING,
	OPEN,
	DEAD, /* reset: reports `err` once, then nothing */
};

struct sock {
	enum kind kind;
	uint16_t port;
	int peer; /* index, -1 = gone */
	bool ours;
	uint8_t *buf;     /* what has arrived, SOCKET_BUF bytes */
	size_t len, seen; /* seen: how much of it the owner may read by now */
	uint32_t pieces, window;
	bool fin, fin_seen, shut, starved;
	int err;
	int backlog[BACKLOG];
	unsigned backlog_cnt;
	rnic_io_cb cb;
	void *arg;
	unsigned ready;
};

static struct sock socks[SOCKETS_MAX];
static uint16_t next_port;

static struct {
	unsigned what, after;
	int err;
} failing;

int __wrap_socket(int domain, int type, int protocol);
int __wrap_bind(int fd, const struct sockaddr *addr, socklen_t len);
int __wrap_listen(int fd, int backlog);
int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len);
int __wrap_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags);
int __wrap_getpeername(int fd, struct sockaddr *addr, socklen_t *len);
int __wrap_getsockname(int fd, struct sockaddr *addr, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int name, void *val, socklen_t *len);
int __wrap_setsockopt(int fd, int level, int name, const void *val, socklen_t len);
ssize_t __wrap_send(int fd, const void *p, size_t len, int flags);
ssize_t __wrap_recv(int fd, void *p, size_t len, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags);
int __wrap_shutdown(int fd, int how);
int __wrap_close(int fd);
int __real_close(int fd);
int __wrap_getifaddrs(struct ifaddrs **list);

static bool
fails(unsigned what)
{
	if ((failing.what & what) == 0)
		return false;
	if (failing.after > 0) {
		failing.after--;
		return false;
	}
	failing.what &= ~what;
	errno = failing.err;
	return true;
}

void
sockets_fail(unsigned what, unsigned after, int err)
{
	failing.what = what;
	failing.after = after;
	failing.err = err;
}

void
sockets_init(void)
{
	memset(socks, 0, sizeof(socks));
	next_port = 20000;
	sockets_fail(0, 0, 0);
}

void
sockets_fini(void)
{
	for (unsigned i = 0; i < SOCKETS_MAX; i++)
		FUZZ_CHECK(socks[i].kind == NONE);
}

static struct sock *
sock_of(int fd)
{
	FUZZ_CHECK(fd >= FIRST_FD && fd < FIRST_FD + SOCKETS_MAX && socks[fd - FIRST_FD].kind != NONE);
	return &socks[fd - FIRST_FD];
}

static int
fd_of(const struct sock *s)
{
	return FIRST_FD + (int)(s - socks);
}

static struct sock *
sock_new(void)
{
	for (unsigned i = 0; i < SOCKETS_MAX; i++) {
		if (socks[i].kind != NONE)
			continue;
		socks[i] = (struct sock){ .kind = FRESH, .peer = -1, .window = SOCKET_BUF };
		/* Not by malloc, which may fail for the device. */
		socks[i].buf = aligned_alloc(64, SOCKET_BUF);
		FUZZ_CHECK(socks[i].buf != NULL);
		return &socks[i];
	}
	return NULL;
}

static struct sock *
peer_of(const struct sock *s)
{
	return s->peer >= 0 ? &socks[s->peer] : NULL;
}

static void
join(struct sock *a, struct sock *b)
{
	a->peer = (int)(b - socks);
	b->peer = (int)(a - socks);
	a->kind = b->kind = OPEN;
	a->ready |= RNIC_IO_WRITE;
	b->ready |= RNIC_IO_WRITE;
}

/* The connection is reset: the other end hears of it, and what it has not read is gone. */
static void
reset(struct sock *s)
{
	struct sock *p = peer_of(s);

	s->peer = -1;
	if (p == NULL)
		return;
	p->peer = -1;
	p->kind = DEAD;
	p->err = ECONNRESET;
	p->len = p->seen = 0;
	p->ready |= RNIC_IO_READ | RNIC_IO_WRITE | RNIC_IO_HUP;
}

static void
fin(struct sock *s)
{
	struct sock *p = peer_of(s);

	s->shut = true;
	if (p == NULL)
		return;
	p->fin = true;
	if (p->seen == p->len) {
		p->fin_seen = true;
		p->ready |= RNIC_IO_READ | RNIC_IO_HUP;
	}
}

static void
drop(struct sock *s)
{
	free(s->buf);
	*s = (struct sock){ .kind = NONE };
}

static void
shut_down(struct sock *s)
{
	/* As the kernel does: unread bytes make it a reset. */
	if (s->len > 0)
		reset(s);
	else
		fin(s);
	if (s->peer >= 0)
		socks[s->peer].peer = -1;
	for (unsigned i = 0; i < s->backlog_cnt; i++)
		if (socks[s->backlog[i]].kind != NONE)
			shut_down(&socks[s->backlog[i]]);
	drop(s);
}

/* What `to` has in its buffer may be read as far as pieces allow. */
static void
reveal(struct sock *to, uint32_t pieces)
{
	size_t more = to->len - to->seen, least = more / 1024 + 1; /* a bounded number of turns */

	if (pieces > 0 && more > pieces)
		more = pieces > least ? pieces : least;
	to->seen += more;
	if (more > 0)
		to->ready |= RNIC_IO_READ;
	if (to->fin && !to->fin_seen && to->seen == to->len) {
		to->fin_seen = true;
		to->ready |= RNIC_IO_READ | RNIC_IO_HUP;
	}
}

static ssize_t
put(struct sock *s, const void *bytes, size_t len)
{
	struct sock *p = peer_of(s);

	if (s->kind == DEAD || s->shut || (p == NULL && s->kind == OPEN)) {
		errno = s->err != 0 ? s->err : EPIPE;
		s->err = 0;
		return -1;
	}
	if (p == NULL) {
		errno = ENOTCONN;
		return -1;
	}
	size_t room = p->window > p->len ? p->window - p->len : 0;
	if (len > room)
		len = room;
	if (len == 0) {
		s->starved = true;
		errno = EAGAIN;
		return -1;
	}
	memcpy(p->buf + p->len, bytes, len);
	p->len += len;
	if (s->pieces == 0)
		reveal(p, 0);
	return (ssize_t)len;
}

static ssize_t
get(struct sock *s, void *bytes, size_t len)
{
	struct sock *p = peer_of(s);

	if (s->seen == 0 && s->err != 0) {
		errno = s->err;
		s->err = 0;
		return -1;
	}
	if (s->seen == 0 && s->len == 0 && (s->fin_seen || s->kind == DEAD || p == NULL))
		return 0;
	if (s->seen == 0) {
		errno = EAGAIN;
		return -1;
	}
	if (len > s->seen)
		len = s->seen;
	memcpy(bytes, s->buf, len);
	memmove(s->buf, s->buf + len, s->len - len);
	s->len -= len;
	s->seen -= len;
	if (p != NULL && p->starved && s->len < s->window) {
		p->starved = false;
		p->ready |= RNIC_IO_WRITE;
	}
	return (ssize_t)len;
}

/* -- the devices' calls -- */

int
__wrap_socket(int domain, int type, int protocol)
{
	(void)domain;
	(void)type;
	(void)protocol;
	if (fails(SOCKETS_FAIL_SOCKET))
		return -1;
	struct sock *s = sock_new();
	if (s != NULL)
		return fd_of(s);
	errno = EMFILE;
	return -1;
}

int
__wrap_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct sock *s = sock_of(fd);

	(void)len;
	s->port = ntohs(((const struct sockaddr_in *)(const void *)addr)->sin_port);
	if (s->port == 0)
		s->port = next_port++;
	return 0;
}

int
__wrap_listen(int fd, int backlog)
{
	(void)backlog;
	sock_of(fd)->kind = LISTENING;
	return 0;
}

static struct sock *
listener(uint16_t port)
{
	for (unsigned i = 0; i < SOCKETS_MAX; i++)
		if (socks[i].kind == LISTENING && socks[i].port == port)
			return &socks[i];
	return NULL;
}

/* A new end in the listener's queue. */
static bool
enqueue(struct sock *from, struct sock *to)
{
	struct sock *s = to->backlog_cnt < BACKLOG ? sock_new() : NULL;

	if (s == NULL)
		return false;
	join(from, s);
	to->backlog[to->backlog_cnt++] = (int)(s - socks);
	to->ready |= RNIC_IO_READ;
	return true;
}

int
__wrap_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct sock *s = sock_of(fd);

	(void)len;
	if (fails(SOCKETS_FAIL_CONNECT))
		return -1;
	struct sock *to = listener(ntohs(((const struct sockaddr_in *)(const void *)addr)->sin_port));
	s->kind = CONNECTING;
	if (to != NULL && !enqueue(s, to)) {
		errno = ECONNREFUSED;
		return -1;
	}
	errno = EINPROGRESS;
	return -1;
}

int
__wrap_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	struct sock *s = sock_of(fd);

	(void)addr;
	(void)len;
	(void)flags;
	if (s->backlog_cnt == 0) {
		errno = EAGAIN;
		return -1;
	}
	if (fails(SOCKETS_FAIL_ACCEPT))
		return -1;
	int got = s->backlog[0];
	s->backlog_cnt--;
	memmove(&s->backlog[0], &s->backlog[1], s->backlog_cnt * sizeof(s->backlog[0]));
	return FIRST_FD + got;
}

int
__wrap_getpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
	if (sock_of(fd)->kind == OPEN) {
		memset(addr, 0, sizeof(struct sockaddr_in));
		((struct sockaddr_in *)(void *)addr)->sin_family = AF_INET;
		((struct sockaddr_in *)(void *)addr)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		*len = sizeof(struct sockaddr_in);
		return 0;
	}
	errno = ENOTCONN;
	return -1;
}

int
__wrap_getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct sockaddr_in *sin = (struct sockaddr_in *)(void *)addr;

	*sin = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(sock_of(fd)->port) };
	sin->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	*len = sizeof(*sin);
	return 0;
}

int
__wrap_getsockopt(int fd, int level, int name, void *val, socklen_t *len)
{
	struct sock *s = sock_of(fd);
	int n = 0;

	if (level == SOL_SOCKET && name == SO_ERROR) {
		n = s->err;
		s->err = 0;
	} else if (level == IPPROTO_TCP && name == TCP_MAXSEG) {
		n = 1448;
	}
	memcpy(val, &n, sizeof(n));
	*len = sizeof(n);
	return 0;
}

int
__wrap_setsockopt(int fd, int level, int name, const void *val, socklen_t len)
{
	/* A close that resets: nothing is left to be read or said. */
	if (level == SOL_SOCKET && name == SO_LINGER && len >= sizeof(struct linger))
		if (((const struct linger *)val)->l_onoff != 0 && ((const struct linger *)val)->l_linger == 0)
			reset(sock_of(fd));
	return 0;
}

ssize_t
__wrap_send(int fd, const void *p, size_t len, int flags)
{
	(void)flags;
	return fails(SOCKETS_FAIL_SEND) ? -1 : put(sock_of(fd), p, len);
}

ssize_t
__wrap_recv(int fd, void *p, size_t len, int flags)
{
	(void)flags;
	return fails(SOCKETS_FAIL_RECV) ? -1 : get(sock_of(fd), p, len);
}

ssize_t
__wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct sock *s = sock_of(fd);
	ssize_t sum = 0;

	(void)flags;
	if (fails(SOCKETS_FAIL_SEND))
		return -1;
	for (size_t i = 0; i < (size_t)msg->msg_iovlen; i++) {
		if (msg->msg_iov[i].iov_len == 0)
			continue;
		ssize_t n = put(s, msg->msg_iov[i].iov_base, msg->msg_iov[i].iov_len);
		if (n < 0)
			return sum > 0 ? sum : -1;
		sum += n;
		if ((size_t)n < msg->msg_iov[i].iov_len)
			return sum;
	}
	return sum;
}

ssize_t
__wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct sock *s = sock_of(fd);
	ssize_t sum = 0;

	(void)flags;
	if (fails(SOCKETS_FAIL_RECV))
		return -1;
	for (size_t i = 0; i < (size_t)msg->msg_iovlen; i++) {
		ssize_t n = get(s, msg->msg_iov[i].iov_base, msg->msg_iov[i].iov_len);

		if (n <= 0)
			return sum > 0 ? sum : n;
		sum += n;
		if ((size_t)n < msg->msg_iov[i].iov_len || s->seen == 0)
			return sum;
	}
	return sum;
}

int
__wrap_shutdown(int fd, int how)
{
	struct sock *s = sock_of(fd);

	(void)how;
	if (s->kind != OPEN) {
		errno = ENOTCONN;
		return -1;
	}
	fin(s);
	return 0;
}

int
__wrap_close(int fd)
{
	if (fd < FIRST_FD)
		return __real_close(fd);
	FUZZ_CHECK(sock_of(fd)->cb == NULL); /* unwatched before */
	shut_down(sock_of(fd));
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
	if (fails(SOCKETS_FAIL_WATCH))
		return -ENOMEM;
	FUZZ_CHECK(s->cb == NULL);
	s->cb = cb;
	s->arg = arg;
	s->ready = (s->kind == OPEN ? RNIC_IO_WRITE : 0u) | (s->seen > 0 || s->backlog_cnt > 0 ? RNIC_IO_READ : 0u) |
	    (s->fin_seen || s->kind == DEAD ? RNIC_IO_READ | RNIC_IO_HUP : 0u);
	return 0;
}

static void
unwatch(void *ctx, int fd)
{
	(void)ctx;
	sock_of(fd)->cb = NULL;
}

struct rnic_loop
sockets_loop(void)
{
	return (struct rnic_loop){ .watch = watch, .unwatch = unwatch };
}

bool
sockets_turn(void)
{
	bool news = false;

	for (unsigned i = 0; i < SOCKETS_MAX; i++) {
		struct sock *s = &socks[i];
		unsigned ready;

		if (s->kind == NONE)
			continue;
		if (s->seen < s->len || (s->fin && !s->fin_seen)) {
			reveal(s, s->peer >= 0 ? socks[s->peer].pieces : 0);
			news = true;
		}
		ready = s->ready;
		if (ready == 0 || s->cb == NULL)
			continue;
		s->ready = 0;
		s->cb(s->arg, ready);
		news = true;
	}
	return news;
}

/* -- the program's ends -- */

int
sockets_dial(uint16_t port)
{
	struct sock *to = listener(port);

	if (to == NULL)
		return -1;
	struct sock *s = sock_new();
	if (s == NULL)
		return -1;
	s->ours = true;
	if (enqueue(s, to))
		return fd_of(s);
	drop(s);
	return -1;
}

static struct sock *
waiting(void)
{
	for (unsigned i = 0; i < SOCKETS_MAX; i++)
		if (socks[i].kind == CONNECTING)
			return &socks[i];
	return NULL;
}

int
sockets_take(void)
{
	struct sock *from = waiting();

	if (from == NULL)
		return -1;
	struct sock *s = sock_new();
	if (s == NULL)
		return -1;
	s->ours = true;
	join(from, s);
	return fd_of(s);
}

void
sockets_refuse(void)
{
	struct sock *s = waiting();

	if (s == NULL)
		return;
	s->kind = DEAD;
	s->err = ECONNREFUSED;
	s->ready |= RNIC_IO_READ | RNIC_IO_WRITE | RNIC_IO_HUP;
}

size_t
sockets_send(int fd, const void *bytes, size_t len)
{
	ssize_t n = put(sock_of(fd), bytes, len);

	return n > 0 ? (size_t)n : 0;
}

size_t
sockets_recv(int fd, void *bytes, size_t cap)
{
	ssize_t n = get(sock_of(fd), bytes, cap);

	return n > 0 ? (size_t)n : 0;
}

void
sockets_pieces(int fd, uint32_t len)
{
	sock_of(fd)->pieces = len;
}

void
sockets_window(int fd, uint32_t len)
{
	struct sock *s = sock_of(fd), *p = peer_of(s);

	s->window = len < SOCKET_BUF ? len : SOCKET_BUF;
	if (p != NULL && p->starved && s->len < s->window) {
		p->starved = false;
		p->ready |= RNIC_IO_WRITE;
	}
}

void
sockets_fin(int fd)
{
	fin(sock_of(fd));
}

void
sockets_reset(int fd)
{
	reset(sock_of(fd));
	sock_of(fd)->kind = DEAD;
}

bool
sockets_over(int fd)
{
	const struct sock *s = sock_of(fd);

	return s->kind == DEAD || s->peer < 0 || s->fin_seen;
}

void
sockets_close(int fd)
{
	shut_down(sock_of(fd));
}
