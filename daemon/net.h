/*
 * Socket helpers for TCP: what the daemon's listeners, dials and sessions have
 * in common. No state. Addresses of connections are kept as union net_addr, 28
 * bytes instead of sockaddr_storage's 128.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "daemon/config/config.h"
#include "daemon/smcopt.h"

union net_addr {
	struct sockaddr sa;
	struct sockaddr_in in4;
	struct sockaddr_in6 in6;
};

/* An IPv4-mapped IPv6 address, as a dual-stack listener gives it, becomes IPv4. */
void net_addr_set(union net_addr *, const struct sockaddr_storage *);
void net_addr_get(const union net_addr *, struct sockaddr_storage *);
/* "address:port", or "none" of an address that was never set, of at least ADDR_STR_MAX bytes; returns buf. */
char *net_addr_str(const union net_addr *, char *buf, size_t cap);

/* A non-blocking listener: the descriptor or -errno. "[::]" takes IPv4 too, whatever the system's default.
 * share: beside sockets for which net_share_port() is on. SYN/ACKs have SMC-R's option unless it is NULL. */
int net_listen(const struct sockaddr_storage *, bool share, const struct smcopt *);
/* May another socket of this user listen on an address that covers this one's? */
void net_share_port(int fd, bool on);
/* Starts connecting without blocking: the descriptor or -errno; how it ended, net_error() says once writable. The SYN has
 * SMC-R's option unless it is NULL. */
int net_connect(const struct sockaddr_storage *, const struct config_keepalive *, const struct smcopt *);
/* Options of every leg: no delay, urgent bytes in line, keepalive. Accepted sockets inherit them from the listener. */
void net_tune(int fd, const struct config_keepalive *);
/* The middle of a connection whose data is on SMC-R: keepalive no more often than it may be there. */
void net_tune_idle_middle(int fd, const struct config_keepalive *);
/* The pending error of a socket, cleared by asking: 0 or an errno. */
int net_error(int fd);
/* Close with RST instead of FIN. */
void net_reset(int fd);
/* Is the address in one of the blocks? True when there are none. */
bool net_allowed(const struct config_net *, unsigned cnt, const struct sockaddr_storage *);
