/* SMC-R's TCP option (RFC 7609 A.1) on connections of this host: kind 254 in SYN and SYN/ACK. It shows both ends that
 * the other speaks SMC-R before a byte is sent. A program cannot write TCP options, but the kernel (Linux 5.10) runs a
 * BPF program that does (net/tcp_option_bpf.c). It is attached to the daemon's own cgroup and handles only marked
 * sockets. Opened at start, while the process has CAP_BPF and CAP_NET_ADMIN; later only the descriptor of the map is
 * used. The kernel removes all of it when the daemon ends. Owned by smcrd.c. */
#pragma once

#include "base/span.h"

#define TCP_OPTION_WHY_MAX 160

struct tcp_option {
	int map, link;    /* descriptors; -1: not usable */
	bool keeps_right; /* the kernel refuses the map without CAP_BPF: the right is needed while the daemon runs */
	bool lacks_right; /* and the process lacked that right at start, but had others that allow opening it */
	char why[TCP_OPTION_WHY_MAX]; /* the reason why it is not usable; "" when it is */
};

/* The option on an established connection. */
enum tcp_option_state {
	TCP_OPTION_UNKNOWN, /* our own SYN or SYN/ACK had no option, so the peer's has no meaning */
	TCP_OPTION_MISSING, /* the peer's SYN or SYN/ACK had no option */
	TCP_OPTION_AGREED,  /* both had it */
	TCP_OPTION_STATE_CNT,
};

/* Marks it not usable for this reason; opens nothing. */
void tcp_option_init(struct tcp_option *, const char *why);
/* After tcp_option_init, in a process of one thread: usable, or `why` has the kernel's reason. */
void tcp_option_open(struct tcp_option *);
/* The process drops its rights, except CAP_BPF if that is kept: not usable when that is not enough. */
void tcp_option_confined(struct tcp_option *, bool confined);
void tcp_option_close(struct tcp_option *);
/* NULL is allowed here and below: not usable. */
static inline bool
tcp_option_usable(const struct tcp_option *opt)
{
	return opt != NULL && opt->map >= 0;
}

/* Puts the option into the SYN of this TCP socket, made in our cgroup; before connect(). No effect if not usable. */
void tcp_option_mark(const struct tcp_option *, int fd);
/* ... into its SYN/ACKs when the SYN has it; before listen(). Also keeps SYNs for tcp_option_syn_had_it. */
void tcp_option_mark_listener(const struct tcp_option *, int fd);
/* Is the socket, or was its listening socket, marked? */
bool tcp_option_is_marked(const struct tcp_option *, int fd);
/* For a socket after a successful connect(), or an accepted one. Both ends get the same answer, AGREED or not, as long
 * as no middlebox changes options of SYN/ACKs. */
enum tcp_option_state tcp_option_read(const struct tcp_option *, int fd);
/* Had the SYN of an accepted connection the option, whatever our SYN/ACK had? Only once, as the kernel then drops the
 * SYN. For messages only: without the option in the SYN/ACK the client sends no CLC message. */
bool tcp_option_syn_had_it(int fd);
/* The same for a saved SYN, from the IP header on. */
bool tcp_option_in_segment(struct span segment);
