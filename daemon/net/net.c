/* Socket helpers; see net/net.h. */
#include "daemon/net/net.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/addr.h"

void
net_addr_set(union net_addr *a, const struct sockaddr_storage *ss)
{
	const struct sockaddr_in6 *in6 = (const void *)ss;

	memset(a, 0, sizeof(*a));
	if (ss->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
		a->in4.sin_family = AF_INET;
		a->in4.sin_port = in6->sin6_port;
		memcpy(&a->in4.sin_addr, &in6->sin6_addr.s6_addr[12], 4);
	} else if (ss->ss_family == AF_INET6) {
		a->in6 = *in6;
	} else if (ss->ss_family == AF_INET) {
		memcpy(&a->in4, ss, sizeof(a->in4));
	} else if (ss->ss_family == AF_UNIX) {
		const char *path = addr_path(ss);

		a->un = (struct net_unix){ .family = AF_UNIX, .uid = (uid_t)-1, .path = path[0] != '\0' ? path : NULL };
	}
}

void
net_addr_set_client(union net_addr *a, int fd)
{
	memset(a, 0, sizeof(*a));
	a->un = (struct net_unix){ .family = AF_UNIX, .uid = (uid_t)-1 };
	net_addr_add_peer(a, fd);
}

void
net_addr_add_peer(union net_addr *a, int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
		return;
	a->un.uid = cred.uid;
	a->un.pid = cred.pid;
}

struct sockaddr_storage
net_addr_get(const union net_addr *a)
{
	struct sockaddr_storage ss = { 0 };

	memcpy(&ss, a, sizeof(*a));
	return ss;
}

struct sockaddr_storage
net_local_addr(int fd)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t len = sizeof(ss);

	(void)getsockname(fd, (struct sockaddr *)&ss, &len);
	return ss;
}

#define ORIGINAL_DST 80 /* SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST of linux/netfilter */

bool
net_original_dest(int fd, int family, struct sockaddr_storage *to)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t len = sizeof(ss);

	if (getsockopt(fd, family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6, ORIGINAL_DST, &ss, &len) != 0 ||
	    ss.ss_family != family || addr_port(&ss) == 0)
		return false;
	*to = ss;
	return true;
}

char *
net_addr_str(const union net_addr *a, char *buf, size_t cap)
{
	if (a->sa.sa_family == AF_UNSPEC) {
		(void)snprintf(buf, cap, "none");
		return buf;
	}
	if (a->sa.sa_family == AF_UNIX) {
		if (a->un.path != NULL)
			(void)snprintf(buf, cap, ADDR_UNIX "%s", a->un.path);
		else
			(void)snprintf(buf, cap, ADDR_UNIX "uid=%u,pid=%d", (unsigned)a->un.uid, (int)a->un.pid);
		return buf;
	}
	const struct sockaddr_storage ss = net_addr_get(a);
	return addr_format_port(&ss, buf, cap);
}

static void
net_set_int(int fd, int level, int name, int value)
{
	/* A failure (odd kernels) does not matter. */
	(void)setsockopt(fd, level, name, &value, sizeof(value));
}

int
net_option(int fd, int level, int name)
{
	int value = 0;
	socklen_t len = sizeof(value);

	return getsockopt(fd, level, name, &value, &len) == 0 ? value : 0;
}

void
net_share_port(int fd, bool on)
{
	net_set_int(fd, SOL_SOCKET, SO_REUSEPORT, on);
}

enum net_share
net_share_of(unsigned nr, unsigned cnt)
{
	return cnt == 1 ? NET_ALONE : nr == 0 ? NET_FIRST : NET_BESIDE;
}

/* A stream socket as a listener has it, before bind(): the descriptor or -errno. */
static int
new_listener(const struct sockaddr_storage *ss, bool freebind)
{
	int fd = socket(ss->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	net_set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (ss->ss_family == AF_INET6)
		net_set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	if (freebind)
		net_set_int(fd, IPPROTO_IP, IP_FREEBIND, 1); /* for IPv6 as well */
	return fd;
}

/* Sharing is enabled after bind(): a port that another process shares is refused, as it would get connections. */
static int
bind_and_listen(int fd, const struct sockaddr_storage *ss, enum net_share share)
{
	if (share == NET_BESIDE)
		net_share_port(fd, true);
	if (bind(fd, (const struct sockaddr *)ss, addr_len(ss)) != 0)
		return -errno;
	if (share == NET_FIRST)
		net_share_port(fd, true);
	return listen(fd, NET_BACKLOG) == 0 ? 0 : -errno;
}

int
net_listen(const struct sockaddr_storage *ss, enum net_share share, bool freebind, const struct tcp_option *opt)
{
	int fd = new_listener(ss, freebind);

	if (fd < 0)
		return fd;
	if (opt != NULL)
		tcp_option_mark_listener(opt, fd);
	int err = bind_and_listen(fd, ss, share);
	if (err != 0) {
		close(fd);
		return err;
	}
	return fd;
}

static int
set_transparent(int fd, int family)
{
	const int on = 1;

	return family == AF_INET6 ? setsockopt(fd, IPPROTO_IPV6, IPV6_TRANSPARENT, &on, sizeof(on))
	                          : setsockopt(fd, IPPROTO_IP, IP_TRANSPARENT, &on, sizeof(on));
}

int
net_listen_transparent(int fd)
{
	if (net_option(fd, IPPROTO_IP, IP_TRANSPARENT))
		return 0;
	return set_transparent(fd, net_local_addr(fd).ss_family) == 0 ? 0 : -errno;
}

int
net_try_bind(const struct sockaddr_storage *ss, bool freebind)
{
	int fd = new_listener(ss, freebind);

	if (fd < 0)
		return fd;
	int rc = bind(fd, (const struct sockaddr *)ss, addr_len(ss)) == 0 ? 0 : -errno;
	close(fd);
	return rc;
}

int
net_try_source(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	int rc = set_transparent(fd, AF_INET) == 0 ? 0 : -errno;
	close(fd);
	return rc;
}

/* Binds without a port: connect() finds one that is free for this server alone. 0, or -1 with errno. */
static int
take_source(int fd, const struct net_source *from)
{
	struct sockaddr_storage ss = net_addr_get(from->addr);

	addr_set_port(&ss, 0);
	if (set_transparent(fd, ss.ss_family) != 0)
		return -1;
	if (from->mark != 0 && setsockopt(fd, SOL_SOCKET, SO_MARK, &from->mark, sizeof(from->mark)) != 0)
		return -1;
	net_set_int(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1); /* for IPv6 as well */
	return bind(fd, (const struct sockaddr *)&ss, addr_len(&ss));
}

int
net_connect(const struct sockaddr_storage *ss, struct worker_ports *ports, const struct config_keepalive *ka,
    const struct tcp_option *opt, const struct net_source *from)
{
	int fd = socket(ss->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return -errno;
	if (ss->ss_family != AF_UNIX)
		net_tune(fd, ka);
	if (opt != NULL)
		tcp_option_mark(opt, fd);
	rc = from != NULL && from->addr != NULL ? take_source(fd, from) : 0;
	if (rc == 0)
		rc = ports != NULL ? worker_ports_connect(ports, fd, ss)
		                   : connect(fd, (const struct sockaddr *)ss, addr_len(ss));
	if (rc != 0 && errno != EINPROGRESS) {
		rc = -errno;
		close(fd);
		return rc;
	}
	return fd;
}

void
net_tune(int fd, const struct config_keepalive *ka)
{
	net_set_int(fd, SOL_SOCKET, SO_OOBINLINE, 1);
	if (ka == NULL)
		return;
	net_set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	net_set_int(fd, SOL_SOCKET, SO_KEEPALIVE, ka->enabled);
	if (!ka->enabled)
		return;
	net_set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, (int)ka->idle_s);
	net_set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, (int)ka->interval_s);
	net_set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, (int)ka->probes);
}

void
net_tune_idle_middle(int fd, const struct config_keepalive *ka)
{
	if (ka->enabled && ka->idle_s < ka->smcr_min_s)
		net_set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, (int)ka->smcr_min_s);
}

uint32_t
net_ack_limit_s(const struct config_keepalive *ka)
{
	return ka->ack_s > 0 ? ka->ack_s : ka->enabled ? ka->idle_s + ka->interval_s * ka->probes : 0;
}

bool
net_unacked(int fd, struct net_unacked *u)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);
	int bytes;

	if (ioctl(fd, SIOCOUTQ, &bytes) != 0 || bytes == 0 || getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
		return false;
	/* FIN counts as one byte, but its retransmissions do not count as data. A full buffer accepts it. */
	bool fin = bytes == 1 && info.tcpi_state != TCP_ESTABLISHED && info.tcpi_state != TCP_CLOSE_WAIT;
	*u = (struct net_unacked){
		.sent = info.tcpi_unacked > 0 && (fin || info.tcpi_last_data_sent < info.tcpi_last_ack_recv),
		.probes = info.tcpi_probes,
		.quiet_ms = info.tcpi_last_ack_recv,
	};
	return true;
}

int64_t
net_rtt_ns(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 ? info.tcpi_rtt * 1000LL : 0;
}

bool
net_is_acked(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 && info.tcpi_unacked == 0;
}

int
net_error(int fd)
{
	int err = 0;
	socklen_t len = sizeof(err);

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) == 0 ? err : errno;
}

void
net_reset(int fd)
{
	struct linger l = { .l_onoff = 1, .l_linger = 0 };

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
	close(fd);
}

bool
net_allowed_user(const struct config_id *users, unsigned cnt, uid_t uid)
{
	for (unsigned i = 0; i < cnt; i++)
		if (users[i].id == uid)
			return true;
	return cnt == 0;
}

bool
net_allowed(const struct config_net *nets, unsigned cnt, const struct sockaddr_storage *ss)
{
	uint8_t addr[16];

	if (cnt == 0)
		return true;
	addr_to_v6(ss, addr);
	for (unsigned i = 0; i < cnt; i++)
		if (addr_same_prefix(nets[i].addr, addr, nets[i].prefix_len))
			return true;
	return false;
}
