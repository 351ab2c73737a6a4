/*
 * Socket helpers: what the daemon's listeners, dials and sessions have in
 * common. No state. Addresses of connections are kept as union net_addr, 28
 * bytes instead of sockaddr_storage's 128.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "daemon/config/config.h"
#include "daemon/net/worker_port.h"
#include "daemon/net/tcp_option.h"

#define NET_BACKLOG 4096 /* of every listening socket that is a service's */

/* The process at the other end of a UNIX socket, as the kernel knew it: a client at connect(), a server at listen(). */
struct net_unix {
	sa_family_t family; /* AF_UNIX */
	uid_t uid;          /* -1 = not known */
	pid_t pid;          /* 0 = not known, or of another PID namespace */
	const char *path; /* of a server: within its configured address, which has to outlive this; NULL of a client */
};

union net_addr {
	struct sockaddr sa;
	struct net_unix un;
	struct sockaddr_in in4;
	struct sockaddr_in6 in6;
};

/* An IPv4-mapped IPv6 address, as a dual-stack listener gives it, becomes IPv4. A UNIX socket's path stays where it is. */
void net_addr_set(union net_addr *, const struct sockaddr_storage *);
/* The client of an accepted UNIX socket. */
void net_addr_set_client(union net_addr *, int fd);
/* Adds to the address of a UNIX socket who is at the other end of this connection to it. */
void net_addr_add_peer(union net_addr *, int fd);
/* Of IPv4 and IPv6. */
void net_addr_get(const union net_addr *, struct sockaddr_storage *);
/* "address:port", "unix:/path", "unix:uid=1000,pid=4711" of a client on a UNIX socket, or "none" of an address that was never
 * set. buf has ADDR_STR_MAX bytes at least and is returned. */
char *net_addr_str(const union net_addr *, char *buf, size_t cap);

/* With whom a listener has its port. */
enum net_share {
	NET_ALONE,
	NET_FIRST, /* nobody has it yet; from then on as if by net_share_port */
	NET_BESIDE, /* sockets for which net_share_port is on; of those with the same address each gets a part of the connections */
};

/* Of the listener of worker nr, where cnt workers have one each and open them in their order. */
enum net_share net_share_of(unsigned nr, unsigned cnt);

/* A non-blocking listener: the descriptor or -errno. "[::]" takes IPv4 too, whatever the system's default. With freebind the
 * address need not be this host's yet. SYN/ACKs have SMC-R's option unless it is NULL. */
int net_listen(const struct sockaddr_storage *, enum net_share, bool freebind, const struct tcp_option *);
/* Does it listen? Not before listen(), nor once it was shut. */
bool net_is_listening(int fd);
/* May another socket of this user listen on an address that covers this one's? */
void net_share_port(int fd, bool on);
bool net_shares_port(int fd);
/* Was it armed for SMC-R's option, by this process or another one? */
bool net_saves_syn(int fd);
/* Starts connecting without blocking: the descriptor or -errno; how it ended, net_error() says once writable. The SYN has
 * SMC-R's option unless it is NULL; it comes from these ports unless they are NULL. -EAGAIN: the backlog of a UNIX socket is
 * full, which nothing tells the end of. */
int net_connect(
    const struct sockaddr_storage *, struct worker_ports *, const struct config_keepalive *, const struct tcp_option *);
/* Options of every TCP leg: no delay, urgent bytes in line, keepalive. Accepted sockets inherit them from the listener. */
void net_tune(int fd, const struct config_keepalive *);
/* Of a UNIX socket, which inherits nothing: urgent bytes in line. */
void net_tune_unix(int fd);
/* The middle of a connection whose data is on SMC-R: keepalive no more often than it may be there. */
void net_tune_idle_middle(int fd, const struct config_keepalive *);
/* How long sent data may stay unacknowledged, in seconds; 0: as long as TCP tries. */
uint32_t net_ack_limit_s(const struct config_keepalive *);
struct net_unacked {
	bool
	    sent; /* and something was sent since an acknowledgment came, of whatever; else TCP waits before it sends again */
	uint32_t probes;   /* of a closed window, one after the other, without an answer */
	uint32_t quiet_ms; /* since an acknowledgment came */
};
/* False: nothing waits for an acknowledgment, or for the window. */
bool net_unacked(int fd, struct net_unacked *);
/* The round trip of a TCP connection, as its handshake took; 0: not known. */
int64_t net_rtt_ns(int fd);
/* Has the other end's TCP acknowledged all that was sent? */
bool net_is_acked(int fd);
/* The pending error of a socket, cleared by asking: 0 or an errno. */
int net_error(int fd);
/* Close with RST instead of FIN. A UNIX socket has no RST: its peer gets ECONNRESET when bytes of it are unread, which is
 * the kernel's rule for close(). */
void net_reset(int fd);
/* Is the user in the list? True when there is none. */
bool net_allowed_user(const struct config_id *, unsigned cnt, uid_t uid);
/* Is the address in one of the blocks? True when there are none. */
bool net_allowed(const struct config_net *, unsigned cnt, const struct sockaddr_storage *);
