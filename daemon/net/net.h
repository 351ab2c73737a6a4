/* Socket helpers shared by the daemon's listeners, dials and sessions. No state. Addresses of connections are kept as
 * union net_addr, 28 bytes instead of sockaddr_storage's 128. */
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include "daemon/config/config.h"
#include "daemon/net/worker_port.h"
#include "daemon/net/tcp_option.h"

#define NET_BACKLOG 4096 /* of the listening sockets of services */

/* The process at the other end of a UNIX socket: of a client at its connect(), of a server at its listen(). */
struct net_unix {
	sa_family_t family; /* AF_UNIX */
	uid_t uid;          /* -1 = unknown */
	pid_t pid;          /* 0 = unknown, or of another PID namespace */
	const char *path;   /* of a server: in its configured address, which outlives this; NULL: a client */
};

union net_addr {
	struct sockaddr sa;
	struct net_unix un;
	struct sockaddr_in in4;
	struct sockaddr_in6 in6;
};

/* An IPv4-mapped IPv6 address, as a dual-stack listener returns it, becomes IPv4. A UNIX path is not copied. */
void net_addr_set(union net_addr *, const struct sockaddr_storage *);
/* The client of an accepted UNIX socket. */
void net_addr_set_client(union net_addr *, int fd);
/* Adds the process at the other end of this connection to the address of a UNIX socket. */
void net_addr_add_peer(union net_addr *, int fd);
/* For IPv4 and IPv6. */
struct sockaddr_storage net_addr_get(const union net_addr *);
/* "address:port", "unix:/path", "unix:uid=1000,pid=4711" for a client on a UNIX socket, or "none" for an address that
 * was never set. buf has at least ADDR_STR_MAX bytes and is returned. */
char *net_addr_str(const union net_addr *, char *buf, size_t cap);

/* How a listener shares its port. */
enum net_share {
	NET_ALONE,
	NET_FIRST,  /* no other socket has it; then sharing is on as after net_share_port */
	NET_BESIDE, /* net_share_port is on; sockets of the same address each get a part of the connections */
};

/* For the listener of worker nr, where each of cnt workers opens one, in order. */
enum net_share net_share_of(unsigned nr, unsigned cnt);

/* A non-blocking listener: the descriptor or -errno. "[::]" takes IPv4 as well, whatever the system's default. With
 * freebind this host need not have the address yet. SYN/ACKs have SMC-R's option unless it is NULL. */
int net_listen(const struct sockaddr_storage *, enum net_share, bool freebind, const struct tcp_option *);
/* A listener also takes connections to addresses that this host does not have, as rules bring them: takes CAP_NET_RAW
 * unless it does so already. 0 or -errno. */
int net_listen_transparent(int fd);
/* Would net_listen() have the address now? Binds as it does, and closes without listening, which disturbs no other process:
 * sockets that do not listen share a port. 0 or -errno. */
int net_try_bind(const struct sockaddr_storage *, bool freebind);
/* A socket option that is a number or flag; 0 on failure. SO_ACCEPTCONN is 0 before listen() and after a shutdown;
 * TCP_SAVE_SYN is set when this or another process enabled SMC-R's option. */
int net_option(int fd, int level, int name);
/* May another socket of this user listen on an address that covers this one's? */
void net_share_port(int fd, bool on);
/* A connection by an address that this host need not have (IP_TRANSPARENT): takes CAP_NET_RAW. */
struct net_source {
	const union net_addr *addr; /* IPv4 or IPv6; its port is not used. NULL: our own address */
	uint32_t mark;              /* of its packets (SO_MARK); 0: none */
};

/* May this thread connect so? 0 or -errno. */
int net_try_source(void);
/* Starts connecting without blocking: the descriptor or -errno. Once it is writable, net_error() returns the result.
 * The SYN has SMC-R's option unless it is NULL; the source port is one of these unless they are NULL, and the
 * source an address of its own unless that is NULL. -EAGAIN: the backlog of a UNIX socket is full, and no event reports its end. */
int net_connect(const struct sockaddr_storage *, struct worker_ports *, const struct config_keepalive *,
    const struct tcp_option *, const struct net_source *);
/* Options of every leg: urgent bytes in line, and over TCP no delay and keepalive, inherited from its listener. NULL: a
 * UNIX socket, which inherits none. */
void net_tune(int fd, const struct config_keepalive *);
/* The CLC connection of a session whose data is on SMC-R: keepalive is no more frequent than RFC 7609 allows there. */
void net_tune_idle_middle(int fd, const struct config_keepalive *);
/* How long sent data may stay unacknowledged, in seconds; 0: as long as TCP retries. */
uint32_t net_ack_limit_s(const struct config_keepalive *);
struct net_unacked {
	bool sent;         /* data was sent since the last acknowledgment; otherwise TCP waits before it sends again */
	uint32_t probes;   /* consecutive probes of a closed window without an answer */
	uint32_t quiet_ms; /* since the last acknowledgment */
};
/* False: no acknowledgment and no window is pending. */
bool net_unacked(int fd, struct net_unacked *);
/* The round trip of a TCP connection, measured in its handshake; 0: unknown. */
int64_t net_rtt_ns(int fd);
/* Has the peer's TCP acknowledged all sent data? */
bool net_is_acked(int fd);
/* The local address of a socket; family 0: unknown. */
struct sockaddr_storage net_local_addr(int fd);
/* Where an accepted IPv4 or IPv6 connection was addressed to before the host's rules changed that; false: not known. */
bool net_original_dest(int fd, int family, struct sockaddr_storage *);
/* The pending error of a socket, which is then cleared: 0 or an errno. */
int net_error(int fd);
/* Closes with RST. A UNIX socket has no RST: the kernel resets its peer when close() finds unread bytes. */
void net_reset(int fd);
/* Is the user in the list? True for an empty list. */
bool net_allowed_user(const struct config_id *, unsigned cnt, uid_t uid);
/* Is the address in one of the blocks? True for an empty list. */
bool net_allowed(const struct config_net *, unsigned cnt, const struct sockaddr_storage *);
