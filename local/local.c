/* libsmcrd-local.so, a preload for programs that know only TCP: connect() to an address where an ingress also listens on a UNIX
 * socket becomes a connection to that socket, which is ADDRESS:PORT ([ADDRESS]:PORT for IPv6) in the directory SMCRD_LOCAL, by
 * default /run/smcrd. Without the file, or a listener behind it, the connection is TCP. What programs ask of a TCP socket is
 * answered as for the TCP connection.
 * Such sockets are recognised by their peer's name, at each call: dup(), fork(), exec() and close() need no attention. What the name
 * does not tell is kept by socket cookie in two tables of fixed size, without locks; a lost entry costs exact answers only. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define SLOTS 1024
#define PORT_FIRST 32768 /* local ports are made up in Linux's default range */
#define PORT_CNT 28232
#define BUF_LOCKED 72 /* SO_BUF_LOCK: 1 the send buffer, 2 the receive buffer was set by the program */

/* Options of TCP that are kept; others that take an int are accepted, and read as 0. */
static const int kept_options[] = { TCP_NODELAY, TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT, TCP_USER_TIMEOUT };
#define KEPT_CNT (sizeof(kept_options) / sizeof(kept_options[0]))

struct known {
	uint64_t cookie; /* 0: unused, or being written */
	struct sockaddr_storage peer;
	socklen_t peer_len;
	int option[KEPT_CNT];
};

/* A descriptor that was added to an epoll instance before connect(). */
struct watched {
	uint64_t cookie;
	int epfd;
	struct epoll_event event;
};

static struct known known[SLOTS];
static struct watched watched[SLOTS];
static int watched_cnt;
static const char *directory = RUNSTATEDIR "/smcrd";

static int (*real_connect)(int, const struct sockaddr *, socklen_t);
static int (*real_getpeername)(int, struct sockaddr *, socklen_t *);
static int (*real_getsockname)(int, struct sockaddr *, socklen_t *);
static int (*real_setsockopt)(int, int, int, const void *, socklen_t);
static int (*real_getsockopt)(int, int, int, void *, socklen_t *);
static int (*real_epoll_ctl)(int, int, int, struct epoll_event *);

#define FIND(name) real_##name = (__typeof__(real_##name))dlsym(RTLD_NEXT, #name)

/* Other constructors may have used sockets before. */
static void
find_real(void)
{
	if (real_epoll_ctl != NULL)
		return;
	const char *dir = secure_getenv("SMCRD_LOCAL");

	if (dir != NULL && dir[0] == '/')
		directory = dir;
	FIND(connect);
	FIND(getpeername);
	FIND(getsockname);
	FIND(setsockopt);
	FIND(getsockopt);
	FIND(epoll_ctl);
}

__attribute__((constructor)) static void
start(void)
{
	find_real();
}

static uint64_t
cookie_of(int fd)
{
	uint64_t cookie;
	socklen_t len = sizeof(cookie);

	return real_getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len) == 0 ? cookie : 0;
}

static bool
int_option(int fd, int level, int name, int *value)
{
	socklen_t len = sizeof(*value);

	return real_getsockopt(fd, level, name, value, &len) == 0;
}

/* -- addresses and names -- */

/* "ADDRESS:PORT"; false: no address of TCP. IPv4 mapped into IPv6 is IPv4. */
static bool
name_of(const struct sockaddr *at, socklen_t len, char *name, size_t cap)
{
	const struct sockaddr_in *in = (const void *)at;
	const struct sockaddr_in6 *in6 = (const void *)at;
	char text[INET6_ADDRSTRLEN];

	if (at != NULL && len >= sizeof(*in) && at->sa_family == AF_INET) {
		inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text));
		snprintf(name, cap, "%s:%u", text, ntohs(in->sin_port));
		return true;
	}
	if (at == NULL || len < sizeof(*in6) || at->sa_family != AF_INET6)
		return false;
	bool mapped = IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr);
	if (mapped)
		inet_ntop(AF_INET, &in6->sin6_addr.s6_addr[12], text, sizeof(text));
	else
		inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof(text));
	snprintf(name, cap, mapped ? "%s:%u" : "[%s]:%u", text, ntohs(in6->sin6_port));
	return true;
}

/* The other way; 0: not such a name. */
static socklen_t
address_of(const char *name, struct sockaddr_storage *at)
{
	struct sockaddr_in *in = (void *)at;
	struct sockaddr_in6 *in6 = (void *)at;
	char text[INET6_ADDRSTRLEN + 2];
	const char *colon = strrchr(name, ':');

	memset(at, 0, sizeof(*at));
	if (colon == NULL || (size_t)(colon - name) >= sizeof(text))
		return 0;
	memcpy(text, name, (size_t)(colon - name));
	text[colon - name] = '\0';
	uint16_t port = htons((uint16_t)atoi(colon + 1));
	if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = port;
		return sizeof(*in);
	}
	if (text[0] != '[' || text[strlen(text) - 1] != ']')
		return 0;
	text[strlen(text) - 1] = '\0';
	if (inet_pton(AF_INET6, text + 1, &in6->sin6_addr) != 1)
		return 0;
	in6->sin6_family = AF_INET6;
	in6->sin6_port = port;
	return sizeof(*in6);
}

/* The socket is one of ours: *out as far as known. */
static bool
is_ours(int fd, struct known *out)
{
	struct sockaddr_un un = { 0 };
	socklen_t len = sizeof(un);
	size_t dir_len = strlen(directory);

	if (real_getpeername(fd, (struct sockaddr *)&un, &len) < 0 || un.sun_family != AF_UNIX ||
	    strncmp(un.sun_path, directory, dir_len) != 0 || un.sun_path[dir_len] != '/')
		return false;
	uint64_t cookie = cookie_of(fd);
	const struct known *k = &known[cookie % SLOTS];
	*out = *k;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (cookie != 0 && out->cookie == cookie && __atomic_load_n(&k->cookie, __ATOMIC_RELAXED) == cookie)
		return true;
	*out = (struct known){ .cookie = cookie };
	un.sun_path[sizeof(un.sun_path) - 1] = '\0';
	out->peer_len = address_of(un.sun_path + dir_len + 1, &out->peer);
	return out->peer_len > 0;
}

/* Of fd, a TCP socket, which becomes the one with this cookie. */
static void
remember(uint64_t cookie, int fd, const struct sockaddr *at, socklen_t len)
{
	struct known *k = &known[cookie % SLOTS];

	__atomic_store_n(&k->cookie, 0, __ATOMIC_RELEASE);
	memset(&k->peer, 0, sizeof(k->peer));
	k->peer_len = at->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	memcpy(&k->peer, at, len < k->peer_len ? len : k->peer_len);
	for (size_t i = 0; i < KEPT_CNT; i++)
		if (!int_option(fd, IPPROTO_TCP, kept_options[i], &k->option[i]))
			k->option[i] = 0;
	__atomic_store_n(&k->cookie, cookie, __ATOMIC_RELEASE);
}

/* -- connecting -- */

/* A TCP socket that is neither bound nor connected. */
static bool
is_fresh(int fd)
{
	struct sockaddr_storage at = { 0 };
	socklen_t len = sizeof(at);
	int protocol;

	return int_option(fd, SOL_SOCKET, SO_PROTOCOL, &protocol) && protocol == IPPROTO_TCP &&
	    real_getsockname(fd, (struct sockaddr *)&at, &len) == 0 && ((struct sockaddr_in *)&at)->sin_port == 0;
}

static void
copy_option(int from, int to, int name)
{
	struct timeval value; /* the longest; also a struct linger or an int */
	socklen_t len = sizeof(value);

	if (real_getsockopt(from, SOL_SOCKET, name, &value, &len) == 0)
		(void)real_setsockopt(to, SOL_SOCKET, name, &value, len);
}

static void
copy_options(int from, int to)
{
	static const int names[] = { SO_RCVTIMEO, SO_SNDTIMEO, SO_LINGER, SO_KEEPALIVE, SO_OOBINLINE, SO_RCVLOWAT };
	int locks, size;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		copy_option(from, to, names[i]);
	if (!int_option(from, SOL_SOCKET, BUF_LOCKED, &locks))
		return;
	/* The kernel reports twice what was set. */
	if ((locks & 1) != 0 && int_option(from, SOL_SOCKET, SO_SNDBUF, &size))
		(void)real_setsockopt(to, SOL_SOCKET, SO_SNDBUF, &(int){ size / 2 }, sizeof(int));
	if ((locks & 2) != 0 && int_option(from, SOL_SOCKET, SO_RCVBUF, &size))
		(void)real_setsockopt(to, SOL_SOCKET, SO_RCVBUF, &(int){ size / 2 }, sizeof(int));
}

static void
drop_watched(struct watched *w)
{
	if (__atomic_exchange_n(&w->cookie, 0, __ATOMIC_ACQ_REL) != 0)
		__atomic_sub_fetch(&watched_cnt, 1, __ATOMIC_RELAXED);
}

/* fd is a connection to the UNIX socket afterwards; false: as it was. */
static bool
connect_local(int fd, const struct sockaddr *at, socklen_t len)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	char name[INET6_ADDRSTRLEN + 10];
	int flags = fcntl(fd, F_GETFL), cloexec = fcntl(fd, F_GETFD) & FD_CLOEXEC;

	if (!name_of(at, len, name, sizeof(name)) ||
	    (size_t)snprintf(un.sun_path, sizeof(un.sun_path), "%s/%s", directory, name) >= sizeof(un.sun_path) ||
	    access(un.sun_path, W_OK) < 0 || flags < 0 || !is_fresh(fd))
		return false;
	int local = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | ((flags & O_NONBLOCK) != 0 ? SOCK_NONBLOCK : 0), 0);
	if (local < 0)
		return false;
	copy_options(fd, local);
	uint64_t was = cookie_of(fd), cookie = cookie_of(local);
	if (cookie == 0 || real_connect(local, (struct sockaddr *)&un, sizeof(un)) < 0) {
		close(local);
		return false;
	}
	remember(cookie, fd, at, len);
	int rc = dup3(local, fd, cloexec ? O_CLOEXEC : 0);
	close(local);
	if (rc < 0)
		return false;
	/* The descriptor's registration went with the TCP socket. */
	struct watched *w = &watched[was % SLOTS];
	if (was != 0 && w->cookie == was && real_epoll_ctl(w->epfd, EPOLL_CTL_ADD, fd, &w->event) == 0)
		drop_watched(w);
	return true;
}

EXPORT int
connect(int fd, const struct sockaddr *at, socklen_t len)
{
	struct known k;
	int before = errno;

	find_real();
	if (at != NULL && (at->sa_family == AF_INET || at->sa_family == AF_INET6)) {
		if (is_ours(fd, &k)) {
			errno = EISCONN;
			return -1;
		}
		bool done = connect_local(fd, at, len);
		errno = before;
		if (done)
			return 0;
	}
	return real_connect(fd, at, len);
}

static bool
is_unconnected(int fd)
{
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);
	int protocol;

	return int_option(fd, SOL_SOCKET, SO_PROTOCOL, &protocol) && protocol == IPPROTO_TCP &&
	    real_getpeername(fd, (struct sockaddr *)&at, &len) < 0 && errno == ENOTCONN;
}

/* Programs call it several times a request: an added descriptor costs one more call of the kernel, another none. */
EXPORT int
epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	find_real();
	int rc = real_epoll_ctl(epfd, op, fd, event), before = errno;
	bool any = op == EPOLL_CTL_ADD || __atomic_load_n(&watched_cnt, __ATOMIC_RELAXED) > 0;
	if (rc == 0 && any && is_unconnected(fd)) {
		uint64_t cookie = cookie_of(fd);
		struct watched *w = &watched[cookie % SLOTS];

		drop_watched(w);
		if (op != EPOLL_CTL_DEL && cookie != 0) {
			w->epfd = epfd;
			w->event = *event;
			__atomic_add_fetch(
			    &watched_cnt, 1, __ATOMIC_RELAXED); /* first, so that it is never too small */
			__atomic_store_n(&w->cookie, cookie, __ATOMIC_RELEASE);
		}
	}
	errno = before;
	return rc;
}

/* -- what TCP programs ask -- */

/* As much as there is space for; *len: the bytes copied. */
static int
give(const void *value, socklen_t value_len, void *out, socklen_t *len)
{
	if (out == NULL || len == NULL) {
		errno = EFAULT;
		return -1;
	}
	*len = *len < value_len ? *len : value_len;
	memcpy(out, value, *len);
	return 0;
}

/* Likewise; *len: that of the whole address, as the kernel has it. */
static int
give_address(const struct known *k, struct sockaddr *at, socklen_t *len)
{
	int rc = give(&k->peer, k->peer_len, at, len);

	if (rc == 0)
		*len = k->peer_len;
	return rc;
}

EXPORT int
getpeername(int fd, struct sockaddr *at, socklen_t *len)
{
	struct known k;

	find_real();
	return is_ours(fd, &k) ? give_address(&k, at, len) : real_getpeername(fd, at, len);
}

EXPORT int
getsockname(int fd, struct sockaddr *at, socklen_t *len)
{
	struct known k;

	find_real();
	if (!is_ours(fd, &k))
		return real_getsockname(fd, at, len);
	/* The port is at the same place in both families. */
	((struct sockaddr_in *)&k.peer)->sin_port = htons((uint16_t)(PORT_FIRST + k.cookie % PORT_CNT));
	return give_address(&k, at, len);
}

static int
kept_at(int name)
{
	for (size_t i = 0; i < KEPT_CNT; i++)
		if (kept_options[i] == name)
			return (int)i;
	return -1;
}

/* Options that are no int, or change what the socket does. */
static bool
is_special(int level, int name)
{
	return level == IPPROTO_TCP &&
	    (name == TCP_MD5SIG || name == TCP_ULP || name == TCP_REPAIR || name == TCP_CONGESTION);
}

EXPORT int
setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	struct known k;

	find_real();
	if ((level != IPPROTO_TCP && level != IPPROTO_IP && level != IPPROTO_IPV6) || !is_ours(fd, &k))
		return real_setsockopt(fd, level, name, value, len);
	if (is_special(level, name) || value == NULL || len < sizeof(int)) {
		errno = is_special(level, name) ? ENOPROTOOPT : value == NULL ? EFAULT : EINVAL;
		return -1;
	}
	int i = level == IPPROTO_TCP ? kept_at(name) : -1;
	struct known *slot = &known[k.cookie % SLOTS];
	if (i >= 0 && __atomic_load_n(&slot->cookie, __ATOMIC_ACQUIRE) == k.cookie)
		memcpy(&slot->option[i], value, sizeof(int));
	return 0;
}

EXPORT int
getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	struct known k;
	int answer = 0;

	find_real();
	bool asks = level == IPPROTO_TCP || level == IPPROTO_IP || level == IPPROTO_IPV6 ||
	    (level == SOL_SOCKET && (name == SO_DOMAIN || name == SO_PROTOCOL));
	if (!asks || !is_ours(fd, &k))
		return real_getsockopt(fd, level, name, value, len);
	if (is_special(level, name)) {
		errno = ENOPROTOOPT;
		return -1;
	}
	if (level == IPPROTO_TCP && name == TCP_INFO) {
		const struct tcp_info info = { .tcpi_state = TCP_ESTABLISHED };

		return give(&info, sizeof(info), value, len);
	}
	if (level == SOL_SOCKET)
		answer = name == SO_DOMAIN ? k.peer.ss_family : IPPROTO_TCP;
	else if (level == IPPROTO_TCP && kept_at(name) >= 0)
		answer = k.option[kept_at(name)];
	return give(&answer, sizeof(answer), value, len);
}
