/* The way out of SCTP packets: what goes together, and what does not. The kernel is a script here. */
#include "rnic/siw/sctp/siw_sctp_udp_tx.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>

#include "base/addr.h"
#include "unit.h"

#define CALLS 64

static struct {
	unsigned cnt;
	size_t len[CALLS], each[CALLS];
	uint16_t port[CALLS];
	uint8_t bytes[CALLS][70000];
	size_t path; /* the longest packet that goes in one piece; 0: any */
	int err;     /* of several packets together */
	bool in_fragments;
} kernel;

static struct siw_udp_tx tx;
static struct sockaddr_storage to[2];
static size_t too_long[2];
static uint8_t packet[70000];

ssize_t __wrap_sendmsg(int, const struct msghdr *, int);
int __wrap_setsockopt(int, int, int, const void *, socklen_t);

ssize_t
__wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	size_t len = msg->msg_iov->iov_len;
	uint16_t each = 0;

	(void)fd;
	(void)flags;
	ck_assert_uint_lt(kernel.cnt, CALLS);
	if (c != NULL) {
		ck_assert_int_eq(c->cmsg_level, SOL_UDP);
		ck_assert_int_eq(c->cmsg_type, UDP_SEGMENT);
		memcpy(&each, CMSG_DATA(c), sizeof(each));
	}
	if (kernel.err != 0 && each != 0) {
		errno = kernel.err;
		return -1;
	}
	if (kernel.path != 0 && (each != 0 ? each : len) > kernel.path && !kernel.in_fragments) {
		errno = each != 0 ? EINVAL : EMSGSIZE;
		return -1;
	}
	kernel.len[kernel.cnt] = len;
	kernel.each[kernel.cnt] = each;
	kernel.port[kernel.cnt] = addr_port(msg->msg_name);
	memcpy(kernel.bytes[kernel.cnt++], msg->msg_iov->iov_base, len);
	return (ssize_t)len;
}

int
__wrap_setsockopt(int fd, int level, int name, const void *val, socklen_t len)
{
	int value;

	(void)fd;
	ck_assert_int_eq(level, IPPROTO_IP);
	ck_assert_int_eq(name, IP_MTU_DISCOVER);
	ck_assert_uint_eq(len, sizeof(value));
	memcpy(&value, val, sizeof(value));
	kernel.in_fragments = value == IP_PMTUDISC_DONT;
	return 0;
}

static void
setup(void)
{
	memset(&kernel, 0, sizeof(kernel));
	memset(too_long, 0, sizeof(too_long));
	for (size_t i = 0; i < sizeof(packet); i++)
		packet[i] = (uint8_t)(i / 7 + i);
	ck_assert_int_eq(addr_parse_port("192.0.2.1:1000", &to[0]), 0);
	ck_assert_int_eq(addr_parse_port("192.0.2.2:2000", &to[1]), 0);
	kernel.in_fragments = true;
	ck_assert_int_eq(siw_udp_tx_init(&tx, 5, AF_INET), 0);
	ck_assert(!kernel.in_fragments);
}

static void
teardown(void)
{
	siw_udp_tx_fini(&tx);
}

static void
put(unsigned peer, size_t len)
{
	siw_udp_tx_gather(&tx, &to[peer], &too_long[peer], packet, len);
}

/* The call n of the kernel had so many bytes to this peer, in packets of `each`; 0: one packet. */
static void
went(unsigned n, unsigned peer, size_t len, size_t each)
{
	ck_assert_uint_lt(n, kernel.cnt);
	ck_assert_uint_eq(kernel.len[n], len);
	ck_assert_uint_eq(kernel.each[n], each);
	ck_assert_uint_eq(kernel.port[n], peer == 0 ? 1000 : 2000);
	for (size_t off = 0; off < len; off += each != 0 ? each : len)
		ck_assert_mem_eq(
		    kernel.bytes[n] + off, packet, each != 0 ? (len - off < each ? len - off : each) : len);
}

UNIT_FIXTURE(setup, teardown);

START_TEST(packets_of_one_length_go_together)
{
	for (unsigned i = 0; i < 3; i++)
		put(0, 1472);
	put(0, 100); /* the last one may be shorter */
	ck_assert_uint_eq(kernel.cnt, 0);
	siw_udp_tx_flush(&tx);
	ck_assert_uint_eq(kernel.cnt, 1);
	went(0, 0, 3 * 1472 + 100, 1472);
	siw_udp_tx_flush(&tx);
	ck_assert_uint_eq(kernel.cnt, 1);
}

START_TEST(one_packet_goes_as_ever)
{
	put(0, 1472);
	siw_udp_tx_flush(&tx);
	ck_assert_uint_eq(kernel.cnt, 1);
	went(0, 0, 1472, 0);
}

START_TEST(other_packets_start_a_new_batch)
{
	put(0, 100);
	put(0, 1472); /* longer than the first */
	put(0, 1472);
	put(1, 1472); /* to another peer */
	put(1, 90);
	put(1, 90); /* behind a shorter one */
	siw_udp_tx_flush(&tx);
	ck_assert_uint_eq(kernel.cnt, 4);
	went(0, 0, 100, 0);
	went(1, 0, 2 * 1472, 1472);
	went(2, 1, 1472 + 90, 1472);
	went(3, 1, 90, 0);
}

START_TEST(no_more_than_the_kernel_takes)
{
	for (unsigned i = 0; i < 65; i++)
		put(0, 100);
	siw_udp_tx_flush(&tx);
	ck_assert_uint_eq(kernel.cnt, 2);
	went(0, 0, 6400, 100);
	went(1, 0, 100, 0);
	for (unsigned i = 0; i < 8; i++)
		put(0, 9000);
	siw_udp_tx_flush(&tx);
	ck_assert_uint_eq(kernel.cnt, 4);
	went(2, 0, 63000, 9000);
	went(3, 0, 9000, 0);
	put(0, 65400); /* one that is too long to wait */
	ck_assert_uint_eq(kernel.cnt, 5);
	went(4, 0, 65400, 0);
}

/* In the order in which packets were given. */
START_TEST(packets_of_a_peer_that_takes_one_at_a_time)
{
	put(0, 200);
	for (unsigned i = 1; i <= 2; i++) {
		siw_udp_tx_put(&tx, &to[1], &too_long[1], packet, 200);
		ck_assert_uint_eq(kernel.cnt, 1 + i);
		went(i, 1, 200, 0);
	}
	went(0, 0, 200, 0);
	kernel.path = 100;
	siw_udp_tx_put(&tx, &to[1], &too_long[1], packet, 200);
	ck_assert_uint_eq(kernel.cnt, 4);
	ck_assert_uint_eq(too_long[1], 200);
	ck_assert(tx.narrow);
}

START_TEST(a_stranger_is_answered_at_once)
{
	put(0, 200);
	siw_udp_tx_put(&tx, &to[1], NULL, packet, 50);
	ck_assert_uint_eq(kernel.cnt, 2);
	went(0, 0, 200, 0);
	went(1, 1, 50, 0);
	kernel.path = 40;
	siw_udp_tx_put(&tx, &to[1], NULL, packet, 50);
	ck_assert_uint_eq(kernel.cnt, 2);
	ck_assert(!tx.narrow);
}

/* Together, and when each goes by itself: as many as fit go as they are, the others in fragments. */
START_TEST(what_is_too_long_goes_in_fragments)
{
	kernel.path = 1000;
	for (unsigned i = 0; i < 3; i++)
		put(0, 1472);
	put(0, 900);
	siw_udp_tx_flush(&tx);
	ck_assert_uint_eq(kernel.cnt, 4);
	for (unsigned i = 0; i < 3; i++)
		went(i, 0, 1472, 0);
	went(3, 0, 900, 0);
	ck_assert(tx.narrow);
	ck_assert(!kernel.in_fragments);
	ck_assert_uint_eq(too_long[0], 1472);
	put(0, 1200);
	put(1, 1300);
	siw_udp_tx_flush(&tx);
	ck_assert_uint_eq(too_long[0], 1200);
	ck_assert_uint_eq(too_long[1], 1300);
}

START_LOOP_TEST(without_the_kernels_help, 0, 2)
{
	kernel.err = _i == 0 ? EIO : EINVAL;
	for (unsigned round = 0; round < 2; round++) {
		put(0, 1472);
		put(0, 1472);
		put(0, 10);
		siw_udp_tx_flush(&tx);
	}
	ck_assert_uint_eq(kernel.cnt, 6);
	for (unsigned i = 0; i < 6; i++)
		went(i, 0, i % 3 == 2 ? 10 : 1472, 0);
	ck_assert(!tx.narrow);
}

/* The kernel has no room: they are lost, as on the way. */
START_LOOP_TEST(what_finds_no_room_is_lost, 0, 2)
{
	kernel.err = _i == 0 ? EAGAIN : ENOBUFS;
	put(0, 1472);
	put(0, 1472);
	siw_udp_tx_flush(&tx);
	ck_assert_uint_eq(kernel.cnt, 0);
	kernel.err = 0;
	put(0, 1472);
	siw_udp_tx_flush(&tx);
	ck_assert_uint_eq(kernel.cnt, 1);
}
