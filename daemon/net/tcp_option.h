/*
 * SMC-R's TCP option (RFC 7609 A.1) on connections of this host: kind 254 in SYN
 * and SYN/ACK, by which two ends of a TCP connection know that both speak SMC-R
 * before a byte is sent. A program cannot write TCP options, but the kernel
 * (Linux 5.10) can be given a BPF program that does (net/tcp_option_bpf.c); it is
 * attached to the daemon's own cgroup and touches marked sockets alone. Opened
 * at start, while the process has CAP_BPF and CAP_NET_ADMIN; afterwards only the
 * map's descriptor is used. The kernel ends it all when the daemon is gone.
 *
 * Owned by smcrd.c, read by net/net.c, sessions, probes and reports.
 */
#pragma once

#include <stdbool.h>

#include "base/span.h"

#define TCP_OPTION_WHY_MAX 160

struct tcp_option {
	int map, link;                /* descriptors; -1: it cannot be used */
	bool keeps_right;             /* the kernel lets nobody without CAP_BPF read the map: as long as it runs */
	bool lacks_right;             /* and the process never had that one, but others with which it could be opened */
	char why[TCP_OPTION_WHY_MAX]; /* in words, why it cannot be used; "" when it can */
};

/* What is known of a connection that is established. */
enum tcp_option_state {
	TCP_OPTION_UNKNOWN, /* our own SYN or SYN/ACK had no option, so the peer's says nothing */
	TCP_OPTION_MISSING, /* the peer's did not */
	TCP_OPTION_AGREED,  /* both had it */
	TCP_OPTION_STATE_CNT,
};

/* Not usable, for this reason; nothing is opened. */
void tcp_option_init(struct tcp_option *, const char *why);
/* After tcp_option_init, in a process of one thread: usable, or `why` has the kernel's reason. */
void tcp_option_open(struct tcp_option *);
/* The process has given up its rights, or is to, but CAP_BPF if that is kept: not usable when that is not enough. */
void tcp_option_confined(struct tcp_option *, bool confined);
void tcp_option_close(struct tcp_option *);
/* NULL is allowed here and below, and means that it cannot be used. */
static inline bool
tcp_option_usable(const struct tcp_option *opt)
{
	return opt != NULL && opt->map >= 0;
}

/* The option goes into the SYN of this TCP socket, to be called before connect(); harmless when it cannot be used. Sockets
 * belong to the cgroup that their maker was in. */
void tcp_option_mark(const struct tcp_option *, int fd);
/* ... into its SYN/ACKs, when the SYN has it, before listen(). Has the kernel keep SYNs, too, see tcp_option_syn_had_it. */
void tcp_option_mark_listener(const struct tcp_option *, int fd);
/* Is it, or was the listening socket that it was accepted from? */
bool tcp_option_is_marked(const struct tcp_option *, int fd);
/* Of a socket after its connect() has ended well, or an accepted one. Both ends come to the same answer: it is AGREED at
 * one when it is at the other, as long as no middlebox changes options of SYN/ACKs. */
enum tcp_option_state tcp_option_read(const struct tcp_option *, int fd);
/* Had the SYN of an accepted connection the option, whatever our SYN/ACK had? Once, as the kernel forgets it. For words
 * alone: without the option in the SYN/ACK the client sends no CLC message. */
bool tcp_option_syn_had_it(int fd);
/* The same of a SYN as it was saved, from the IP header on. */
bool tcp_option_in_segment(struct span segment);
