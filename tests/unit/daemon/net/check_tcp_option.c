/* SMC-R's TCP option on real connections over loopback, in a network namespace of the test's own: bytes on the wire, what
 * both ends come to know. Where the kernel takes no BPF program from us only what needs none is tested. */
#include "daemon/net/tcp_option.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "own_netns.h"
#include "unit.h"

static struct tcp_option opt, second;
static int sniffer = -1;

/* False, and said why, where this machine has no program for us. */
static bool
opened(struct tcp_option *o)
{
	tcp_option_init(o, "not opened");
	tcp_option_open(o);
	if (!tcp_option_usable(o))
		fprintf(stderr, "# not tested here: %s\n", o->why);
	return tcp_option_usable(o);
}

/* Program, namespace, and a socket that sees all packets. */
static bool
ready(void)
{
	if (!opened(&opt) || !own_netns("link set lo up\n"))
		return false;
	sniffer = socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_ALL));
	ck_assert_int_ge(sniffer, 0);
	return true;
}

/* -- connections -- */

enum {
	MARK_CLIENT = 1 << 0,
	MARK_LISTENER = 1 << 1,
	IPV6 = 1 << 2,
};

struct conn {
	int listener, client, server;
};

static void
address(int flags, struct sockaddr_storage *ss, socklen_t *len)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback };

	*len = (flags & IPV6) != 0 ? sizeof(in6) : sizeof(in);
	memcpy(ss, (flags & IPV6) != 0 ? (void *)&in6 : (void *)&in, *len);
}

/* Connects and says a word each way, so that there are segments with data. */
static struct conn
connect_pair(int flags, const struct tcp_option *of_client, const struct tcp_option *of_listener)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t len;
	struct conn c;
	char buf[8];

	address(flags, &ss, &len);
	c.listener = socket(ss.ss_family, SOCK_STREAM, 0);
	c.client = socket(ss.ss_family, SOCK_STREAM, 0);
	if ((flags & MARK_LISTENER) != 0)
		tcp_option_mark_listener(of_listener, c.listener);
	ck_assert_int_eq(bind(c.listener, (struct sockaddr *)&ss, len), 0);
	ck_assert_int_eq(listen(c.listener, 10), 0);
	ck_assert_int_eq(getsockname(c.listener, (struct sockaddr *)&ss, &len), 0);
	if ((flags & MARK_CLIENT) != 0)
		tcp_option_mark(of_client, c.client);
	ck_assert_int_eq(connect(c.client, (struct sockaddr *)&ss, len), 0);
	c.server = accept(c.listener, NULL, NULL);
	ck_assert_int_ge(c.server, 0);
	ck_assert_int_eq(send(c.client, "hello", 5, 0), 5);
	ck_assert_int_eq(recv(c.server, buf, sizeof(buf), 0), 5);
	ck_assert_int_eq(send(c.server, "world", 5, 0), 5);
	ck_assert_int_eq(recv(c.client, buf, sizeof(buf), 0), 5);
	return c;
}

static void
hang_up(struct conn c)
{
	close(c.listener);
	close(c.client);
	close(c.server);
}

/* -- what was on the wire -- */

struct seen {
	unsigned syn, syn_with, syn_ack, syn_ack_with, others, others_with;
};

/* Each packet passes the loopback interface twice; outgoing ones count. */
static struct seen
look(void)
{
	struct seen s = { 0 };
	uint8_t p[2048];

	for (;;) {
		struct sockaddr_ll from;
		socklen_t len = sizeof(from);
		ssize_t n = recvfrom(sniffer, p, sizeof(p), MSG_DONTWAIT, (struct sockaddr *)&from, &len);

		if (n < 0)
			return s;
		bool v4 = p[0] >> 4 == 4;
		size_t head = v4 ? (p[0] & 0xfu) * 4 : 40;
		/* Hosts say more than TCP: ARP, neighbours and routers of IPv6. */
		if (from.sll_pkttype != PACKET_OUTGOING || (v4 ? p[9] : p[6]) != IPPROTO_TCP)
			continue;
		uint8_t flags = p[head + 13];
		bool with = tcp_option_in_segment((struct span){ p, (size_t)n });
		if ((flags & 0x12) == 0x02) {
			s.syn++;
			s.syn_with += with;
		} else if ((flags & 0x12) == 0x12) {
			s.syn_ack++;
			s.syn_ack_with += with;
		} else {
			s.others++;
			s.others_with += with;
		}
	}
}

/* -- tests -- */

UNIT_CASE(tcase_set_timeout(tc, 30));

/* By who is marked, in IPv4 and IPv6. */
START_LOOP_TEST(both_ends_know_what_was_on_the_wire, 0, 8)
{
	bool client = (_i & MARK_CLIENT) != 0, listener = (_i & MARK_LISTENER) != 0;

	if (!ready())
		return;
	struct conn c = connect_pair(_i, &opt, &opt);
	struct seen s = look();

	ck_assert_uint_eq(s.syn, 1);
	ck_assert_uint_eq(s.syn_with, client);
	ck_assert_uint_eq(s.syn_ack_with, client && listener);
	ck_assert_uint_ge(s.others, 3);
	ck_assert_uint_eq(s.others_with, 0);
	ck_assert_int_eq(tcp_option_read(&opt, c.client),
	    !client        ? TCP_OPTION_UNKNOWN
	        : listener ? TCP_OPTION_AGREED
	                   : TCP_OPTION_MISSING);
	ck_assert_int_eq(tcp_option_read(&opt, c.server),
	    !listener    ? TCP_OPTION_UNKNOWN
	        : client ? TCP_OPTION_AGREED
	                 : TCP_OPTION_MISSING);
	ck_assert(tcp_option_is_marked(&opt, c.listener) == listener);
	ck_assert(tcp_option_is_marked(&opt, c.server) == listener);
	/* TCP_SAVE_SYN is set with the mark. The kernel tells once. */
	ck_assert(tcp_option_syn_had_it(c.server) == (client && listener));
	ck_assert(!tcp_option_syn_had_it(c.server));
	hang_up(c);
}

/* As Linux's kernel looks for them: kind 254, length 6, magic; the rest of the header is as without. */
START_TEST(these_are_the_bytes)
{
	uint8_t p[256];
	ssize_t n;

	if (!ready())
		return;
	struct conn c = connect_pair(MARK_CLIENT | MARK_LISTENER, &opt, &opt);
	n = recv(sniffer, p, sizeof(p), 0);
	ck_assert_int_gt(n, 40);
	ck_assert_ptr_nonnull(memmem(p, (size_t)n, "\xfe\x06\xe2\xd4\xc3\xd9", 6));
	/* 20 bytes of IP, 20 of TCP, 20 of Linux's own options, ours with two NOPs. */
	ck_assert_int_eq(n, 68);
	hang_up(c);
}

/* Two daemons in one cgroup: each looks at its own sockets, and each connection has one option. */
START_LOOP_TEST(another_daemon_in_the_cgroup_does_no_harm, 0, 4)
{
	if (!ready() || !opened(&second))
		return;
	struct conn c = connect_pair(
	    MARK_CLIENT | MARK_LISTENER, _i % 2 == 0 ? &opt : &second, _i / 2 == 0 ? &opt : &second);
	struct seen s = look();

	ck_assert_uint_eq(s.syn_with, 1);
	ck_assert_uint_eq(s.syn_ack_with, 1);
	ck_assert_uint_eq(s.others_with, 0);
	for (int k = 0; k < 2; k++) {
		const struct tcp_option *o = k == 0 ? &opt : &second;

		ck_assert_int_eq(tcp_option_read(o, c.client), _i % 2 == k ? TCP_OPTION_AGREED : TCP_OPTION_UNKNOWN);
		ck_assert_int_eq(tcp_option_read(o, c.server), _i / 2 == k ? TCP_OPTION_AGREED : TCP_OPTION_UNKNOWN);
	}
	hang_up(c);
	tcp_option_close(&second);
}

/* The kernel keeps nothing of the SYN, so both ends have to do without. */
START_TEST(syn_cookies_are_without)
{
	FILE *f;

	if (!ready())
		return;
	f = fopen("/proc/sys/net/ipv4/tcp_syncookies", "w");
	if (f == NULL || fputs("2\n", f) < 0 || fclose(f) != 0) {
		fprintf(stderr, "# no SYN cookies: not tested here\n");
		return;
	}
	struct conn c = connect_pair(MARK_CLIENT | MARK_LISTENER, &opt, &opt);
	struct seen s = look();
	ck_assert_uint_eq(s.syn_with, 1);
	ck_assert_uint_eq(s.syn_ack_with, 0);
	ck_assert_int_eq(tcp_option_read(&opt, c.client), TCP_OPTION_MISSING);
	ck_assert_int_eq(tcp_option_read(&opt, c.server), TCP_OPTION_MISSING);
	hang_up(c);
}

/* Two Ethernet interfaces joined: behind the second one is a host that only the test plays. */
static const char silent_host[] =
    "link set lo up\n"
    "link add e1 type veth peer name p1\n"
    "link set e1 address 02:00:00:00:00:01\nlink set e1 up\nlink set p1 up\n"
    "addr add 10.9.1.1/24 dev e1\n"
    "neigh add 10.9.1.9 lladdr 02:00:00:00:00:09 dev e1 nud permanent\n";

/* A SYN from 10.9.1.9 port 9 to 10.9.1.1, with SMC-R's option alone. */
static void
send_syn(int fd, uint16_t port)
{
	uint8_t p[48] =
	    "\x45\0\0\x30\0\1\0\0\x40\6\0\0\x0a\x09\1\x09\x0a\x09\1\1" /* IP */
	    "\0\x09\0\0\0\0\0\1\0\0\0\0\x70\x02\xff\xff\0\0\0\0";      /* TCP */
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_IP),
		.sll_ifindex = (int)if_nametoindex("p1"),
		.sll_halen = 6,
		.sll_addr = { 2, 0, 0, 0, 0, 1 },
	};
	uint32_t ip = 0, tcp = 6 + 28; /* protocol and length, of the pseudo header */

	p[22] = (uint8_t)(port >> 8);
	p[23] = (uint8_t)port;
	memcpy(p + 40, "\1\1\xfe\6\xe2\xd4\xc3\xd9", 8);
	for (int i = 0; i < 20; i += 2)
		ip += (unsigned)p[i] << 8 | p[i + 1];
	for (int i = 12; i < 48; i += 2)
		tcp += (unsigned)p[i] << 8 | p[i + 1];
	ip = ~(ip % 0xffff) & 0xffff;
	tcp = ~(tcp % 0xffff) & 0xffff;
	p[10] = (uint8_t)(ip >> 8);
	p[11] = (uint8_t)ip;
	p[36] = (uint8_t)(tcp >> 8);
	p[37] = (uint8_t)tcp;
	ck_assert_int_eq(sendto(fd, p, sizeof(p), 0, (struct sockaddr *)&to, sizeof(to)), sizeof(p));
}

START_TEST(a_syn_ack_that_is_sent_again_has_it)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a090101) };
	socklen_t len = sizeof(at);
	struct seen all = { 0 };

	if (!opened(&opt) || !own_netns(silent_host))
		return;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	sniffer = socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_ALL));
	tcp_option_mark_listener(&opt, fd);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, len), 0);
	ck_assert_int_eq(listen(fd, 10), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	send_syn(sniffer, ntohs(at.sin_port));
	for (int ms = 0; all.syn_ack < 2 && ms < 10000; ms += 20) {
		struct seen s = look();

		all.syn_ack += s.syn_ack;
		all.syn_ack_with += s.syn_ack_with;
		(void)poll(NULL, 0, 20);
	}
	ck_assert_uint_ge(all.syn_ack, 2); /* a process that did not run for seconds sees more */
	ck_assert_uint_eq(all.syn_ack_with, all.syn_ack);
	close(fd);
}

/* The link's end is the option's end, also for a socket that listens. */
START_TEST(it_ends_with_the_daemon)
{
	if (!ready())
		return;
	struct conn c = connect_pair(MARK_CLIENT | MARK_LISTENER, &opt, &opt);
	hang_up(c);
	(void)look();
	tcp_option_close(&opt);
	ck_assert(!tcp_option_usable(&opt));
	c = connect_pair(MARK_CLIENT | MARK_LISTENER, &opt, &opt);
	struct seen s = look();
	ck_assert_uint_eq(s.syn_with + s.syn_ack_with, 0);
	hang_up(c);
}

static void
drop_rights(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };

	ck_assert_int_eq(syscall(SYS_capset, &head, none), 0);
}

START_TEST(it_works_on_when_the_rights_are_gone)
{
	if (!ready() || opt.keeps_right)
		return;
	drop_rights();
	struct conn c = connect_pair(MARK_CLIENT | MARK_LISTENER, &opt, &opt);
	ck_assert_int_eq(tcp_option_read(&opt, c.client), TCP_OPTION_AGREED);
	ck_assert_int_eq(tcp_option_read(&opt, c.server), TCP_OPTION_AGREED);
	hang_up(c);
}

START_TEST(without_rights_it_says_so)
{
	struct conn c;

	drop_rights();
	tcp_option_init(&opt, "");
	tcp_option_open(&opt);
	ck_assert(!tcp_option_usable(&opt));
	ck_assert_msg(strstr(opt.why, "Operation not permitted: CAP_BPF and CAP_NET_ADMIN are needed") != NULL ||
	        strstr(opt.why, "no bpf(2)") != NULL,
	    "%s", opt.why);
	/* Sockets are as they were. */
	c = connect_pair(MARK_CLIENT | MARK_LISTENER, &opt, NULL);
	ck_assert_int_eq(tcp_option_read(&opt, c.client), TCP_OPTION_UNKNOWN);
	ck_assert_int_eq(tcp_option_read(NULL, c.server), TCP_OPTION_UNKNOWN);
	ck_assert(!tcp_option_is_marked(&opt, c.listener));
	ck_assert(!tcp_option_syn_had_it(c.server));
	hang_up(c);
}

/* A kernel that lets nobody read the map without CAP_BPF: who has other rights to open it cannot keep that one. */
START_LOOP_TEST(what_cannot_be_kept_is_not_ready, 0, 8)
{
	bool keeps = (_i & 1) != 0, lacks = (_i & 2) != 0, confined = (_i & 4) != 0;

	opt = (struct tcp_option){ .map = dup(0), .link = dup(0), .keeps_right = keeps, .lacks_right = lacks };
	int map = opt.map;
	tcp_option_confined(&opt, confined);
	bool ends = keeps && lacks && confined;
	ck_assert(tcp_option_usable(&opt) == !ends);
	ck_assert((strstr(opt.why, "CAP_BPF") != NULL) == ends);
	ck_assert((fcntl(map, F_GETFD) < 0) == ends);
	tcp_option_close(&opt);
}

/* The option of a client is seen in its SYN, though our SYN/ACK could not have it. */
START_TEST(a_saved_syn_tells_of_an_offer)
{
	if (!ready())
		return;
	struct conn c = connect_pair(MARK_CLIENT | MARK_LISTENER, &opt, NULL);
	ck_assert_int_eq(tcp_option_read(&opt, c.server), TCP_OPTION_UNKNOWN);
	ck_assert_int_eq(tcp_option_read(&opt, c.client), TCP_OPTION_MISSING);
	ck_assert(tcp_option_syn_had_it(c.server));
	hang_up(c);
}

/* -- segments -- */

#define TCP_HEAD "\1\2\3\4\0\0\0\0\0\0\0\0"
#define REST "\x02\xff\xff\0\0\0\0"
#define OPTION "\1\1\xfe\6\xe2\xd4\xc3\xd9"
#define V4(ihl, proto) ihl "\0\0\x30\0\0\0\0\x40" proto "\0\0\x7f\0\0\1\x7f\0\0\1"
#define V6(next)                \
	"\x60\0\0\0\0\x1c" next \
	"\x40"                  \
	"0123456789abcdef0123456789abcdef"
#define SEGMENT(s, had)                                  \
	{                                                \
		(const uint8_t *)(s), sizeof(s) - 1, had \
	}

static const struct {
	const uint8_t *bytes;
	size_t len;
	bool had;
} segments[] = {
	SEGMENT(V4("\x45", "\6") TCP_HEAD "\x70" REST OPTION, true),
	SEGMENT(V4("\x46", "\6") "opts" TCP_HEAD "\x70" REST OPTION, true),
	SEGMENT(V6("\6") TCP_HEAD "\x70" REST OPTION, true),
	/* no option; one that is behind the header; not TCP; headers too short; of no protocol that is known */
	SEGMENT(V4("\x45", "\6") TCP_HEAD "\x50" REST, false),
	SEGMENT(V4("\x45", "\6") TCP_HEAD "\x50" REST OPTION, false),
	SEGMENT(V4("\x45", "\x11") TCP_HEAD "\x70" REST OPTION, false),
	SEGMENT(V6("\0") TCP_HEAD "\x70" REST OPTION, false),
	SEGMENT(V4("\x44", "\6") TCP_HEAD "\x70" REST OPTION, false),
	SEGMENT(V4("\x45", "\6") TCP_HEAD "\x40" REST OPTION, false),
	SEGMENT(V4("\x55", "\6") TCP_HEAD "\x70" REST OPTION, false),
};

/* Each of them, and cut off at each place. */
START_LOOP_TEST(segments_are_read_within_their_bounds, 0, sizeof(segments) / sizeof(segments[0]))
{
	for (size_t len = 0; len <= segments[_i].len; len++) {
		uint8_t *copy = malloc(len + 1);

		memcpy(copy, segments[_i].bytes, len);
		ck_assert(
		    tcp_option_in_segment((struct span){ copy, len }) == (segments[_i].had && len == segments[_i].len));
		free(copy);
	}
}
