/* Soft iWARP over SCTP on a bad network: datagrams are lost, doubled, swapped and damaged on their way. And strangers that send
 * what they like. */
#define OVER_SCTP 1
#include "own_netns.h"
#include "siw_ends.h"

#include <fcntl.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include "rnic/unit.h"
#include "wire/mpa.h"
#include "tests/seeded_rng.h"

#define ROUNDS 80
#define AREA 20000

/* Of a hundred datagrams. */
static struct {
	unsigned lost, doubled, swapped, damaged;
	unsigned way_ms; /* each takes so long */
} bad;

static struct rng dice;

static struct {
	int fd;
	size_t len;
	uint8_t bytes[65536];
	struct sockaddr_storage to;
	socklen_t to_len;
} kept; /* goes behind the next one */

static size_t longest;    /* packet since this was set to 0 */
static unsigned together; /* calls of the kernel with several packets */

ssize_t __real_sendmsg(int, const struct msghdr *, int);
ssize_t __wrap_sendmsg(int, const struct msghdr *, int);

static bool
goes(int fd, const void *buf, size_t len, const struct sockaddr *to, socklen_t to_len)
{
	return sendto(fd, buf, len, MSG_DONTWAIT | MSG_NOSIGNAL, to, to_len) >= 0;
}

static bool
one_goes(int fd, const void *buf, size_t len, const struct sockaddr *to, socklen_t to_len)
{
	unsigned d = rng_below(&dice, 100);
	uint8_t other[65536];

	longest = len > longest ? len : longest;
	if (d < bad.lost)
		return true;
	d -= bad.lost;
	if (d < bad.damaged) {
		memcpy(other, buf, len);
		other[rng_below(&dice, (uint32_t)len)] ^= 0x10;
		return goes(fd, other, len, to, to_len);
	}
	d -= bad.damaged;
	if (d < bad.swapped && kept.len == 0) {
		kept.fd = fd;
		kept.len = len;
		memcpy(kept.bytes, buf, len);
		memcpy(&kept.to, to, to_len);
		kept.to_len = to_len;
		return true;
	}
	d -= bad.swapped;
	if (!goes(fd, buf, len, to, to_len))
		return false;
	if (d < bad.doubled)
		(void)goes(fd, buf, len, to, to_len);
	if (kept.len > 0) {
		(void)goes(kept.fd, kept.bytes, kept.len, (struct sockaddr *)&kept.to, kept.to_len);
		kept.len = 0;
	}
	return true;
}

static size_t
each_of(const struct msghdr *msg)
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	uint16_t each = 0;

	if (c == NULL)
		return msg->msg_iov->iov_len;
	ck_assert_int_eq(c->cmsg_type, UDP_SEGMENT);
	memcpy(&each, CMSG_DATA(c), sizeof(each));
	return each;
}

/* What goes together is cut apart here, and not by the kernel: but for a good network. */
ssize_t
__wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	const struct timespec way = { .tv_nsec = bad.way_ms * 1000000 };
	const uint8_t *bytes = msg->msg_iov->iov_base;
	size_t len = msg->msg_iov->iov_len, each = each_of(msg);

	if (bad.way_ms > 0)
		(void)nanosleep(&way, NULL);
	together += len > each;
	if (bad.lost + bad.doubled + bad.swapped + bad.damaged == 0) {
		longest = each > longest ? each : longest;
		return __real_sendmsg(fd, msg, flags);
	}
	for (size_t off = 0; off < len; off += each)
		if (!one_goes(fd, bytes + off, len - off < each ? len - off : each, msg->msg_name, msg->msg_namelen))
			return -1;
	return (ssize_t)len;
}

static void
good_network(void)
{
	setup();
	rng_init_seeded(&dice, 77);
	memset(&bad, 0, sizeof(bad));
	kept.len = 0;
}

UNIT_FIXTURE(good_network, teardown);

static void
open_pair(const struct siw_config *ca, const struct siw_config *cb)
{
	open_both(ca, cb);
	end_qp(&a, 1024, 32, TOKEN);
	end_qp(&b, 64, 32, TOKEN);
	connect_ends();
}

/* Writes of any length and a Send behind each: all there, in order, when the Send is. */
START_LOOP_TEST(what_the_network_does_is_made_good, 0, 2)
{
	struct siw_config c = config();

	c.sctp_profile = _i == 1 ? SCTP_DDP_DRAFT00 : SCTP_DDP_RFC5043;
	c.answer_ms = 20000;
	open_pair(&c, &c);
	bad.lost = 5;
	bad.doubled = bad.swapped = 5;
	bad.damaged = 2;
	for (unsigned i = 0; i < ROUNDS; i++) {
		size_t len = 1 + rng_below(&rng, AREA), at = i % 8 * AREA;

		/* What confirms Sends may be lost as well. */
		UNTIL(room(&a).wrs >= 2 && room(&a).sends > 0);
		post_recv(&b, i, BUF - 100, 100);
		fill(a.buf + at, len, i);
		post(&a, RNIC_WR_WRITE, 2 * i, 0, at, (uint32_t)len, &b, at);
		post(&a, RNIC_WR_SEND, 2 * i + 1, i % 4 == 3 ? RNIC_SIGNALED : 0, at, 44, &b, 0);
		UNTIL(b.wc_cnt == i + 1);
		check_wc(&b, i, i, RNIC_WC_RECV, RNIC_WC_OK);
		ck_assert_mem_eq(b.buf + at, a.buf + at, len);
		ck_assert_mem_eq(b.buf + BUF - 100, a.buf + at, 44);
		ck_assert_uint_eq(a.errors + b.errors, 0);
	}
	memset(&bad, 0, sizeof(bad));
	UNTIL(a.wc_cnt == ROUNDS / 4);
	ck_assert_uint_gt(stats(&a).crc_errors + stats(&b).crc_errors, 0);
	ck_assert_uint_gt(stats(&a).sctp_retransmits, 0);
}

/* A Write that overtakes another message is placed before its turn: over an older one that was left where it arrived. */
START_TEST(a_write_before_its_turn_is_newer_than_what_was_left)
{
	static struct rnic_unit left[2];
	struct siw_config c = config();

	open_pair(&c, &c);
	b.mr->deny_unit = BUF / 2;
	b.mr->units = left;
	left[0].mem = b.buf;
	left[1].mem = b.buf + BUF / 2;
	fill(a.buf, 1000, 1);
	post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 300, &b, 0);
	UNTIL(a.wc_cnt == 1);
	ck_assert_uint_eq(left[0].len, 300);
	bad.swapped = 100;
	post(&a, RNIC_WR_WRITE, 2, 0, 0, 10, &b, BUF / 2);
	turn_one(&a, 0);
	ck_assert_uint_gt(kept.len, 0);
	post(&a, RNIC_WR_WRITE, 3, 0, 500, 200, &b, 50);
	turn_one(&a, 0);
	bad.swapped = 0;
	UNTIL(left[1].len == 10);
	rnic_unit_place(&left[0]);
	ck_assert_mem_eq(b.buf, a.buf, 50);
	ck_assert_mem_eq(b.buf + 50, a.buf + 500, 200);
	ck_assert_mem_eq(b.buf + 250, a.buf + 250, 50);
	rnic_unit_drop(&left[1]);
}

/* One that may not be placed before its turn waits elsewhere, and cannot stay there. */
START_TEST(a_write_that_waited_for_its_turn_is_placed)
{
	static struct rnic_unit left[2];
	struct siw_config c = config();

	open_pair(&c, &c);
	left[0].mem = b.buf;
	left[1].mem = b.buf + BUF / 2;
	b.mr->deny_unit = BUF / 2;
	b.mr->units = left;
	b.mr->deny[0] = 1;
	fill(a.buf, 1000, 1);
	bad.swapped = 100;
	post(&a, RNIC_WR_WRITE, 1, 0, 0, 10, &b, BUF / 2);
	turn_one(&a, 0);
	bad.swapped = 0;
	ck_assert_uint_gt(kept.len, 0);
	uint64_t before = stats(&b).bytes_received;
	post(&a, RNIC_WR_WRITE, 2, 0, 500, 200, &b, 50);
	UNTIL(stats(&b).bytes_received > before);
	ck_assert_uint_eq(left[0].placed + left[1].placed, 0);
	b.mr->deny[0] = 0;
	ck_assert(goes(kept.fd, kept.bytes, kept.len, (struct sockaddr *)&kept.to, kept.to_len));
	UNTIL(left[0].placed == 200);
	ck_assert_uint_eq(left[0].len, 0);
	ck_assert_mem_eq(b.buf + 50, a.buf + 500, 200);
	rnic_unit_drop(&left[1]);
}

/* Windows go by the round trip of the path. The stack's own figure rises with acknowledgements that wait for a second message. */
START_TEST(the_round_trip_is_that_of_the_path)
{
	struct siw_config c = config();
	int64_t rtt[2];

	bad.way_ms = 5;
	open_pair(&c, &c);
	rtt[0] = a.dev->ops->path_rtt(a.qp);
	rtt[1] = b.dev->ops->path_rtt(b.qp);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_ge(rtt[i], 10000000);
		ck_assert_int_lt(rtt[i], 5000000000);
	}
	for (unsigned i = 0; i < 8; i++) {
		post_recv(&b, i, 0, 100);
		post(&a, RNIC_WR_SEND, i, 0, 0, 44, &b, 0);
		UNTIL(b.wc_cnt == i + 1);
		UNTIL(rnic_conn_info(a.qp).unacked == 0);
	}
	run_ms(1000); /* so long an answer is good */
	int64_t later = a.dev->ops->path_rtt(a.qp);
	ck_assert_int_le(later, rtt[0]);
	ck_assert_uint_ge(rnic_conn_info(a.qp).paths[0].rtt_us * 1000, (uint64_t)later);
}

/* Each profile is a language of its own. */
START_TEST(profiles_do_not_mix)
{
	struct siw_config ca = config(), cb = config();

	ca.sctp_profile = SCTP_DDP_DRAFT00;
	open_both(&ca, &cb);
	ask_for_link();
	UNTIL(a.failed == 1);
	ck_assert_uint_eq(a.connected + b.connected, 0);
}

/* No message of session control could go in one packet there. */
START_TEST(a_path_that_is_too_narrow_is_refused)
{
	struct siw_config c = config();
	struct poll_loop loop;
	struct rnic_dev *dev;
	const char *err;

	if (!own_netns("link set lo up mtu 560\n"))
		return;
	poll_loop_init(&loop);
	struct rnic_loop l = poll_loop_rnic(&loop);
	ck_assert_int_eq(siw_open(&c, &l, &rng, &dev, &err), -EMSGSIZE);
	ck_assert_str_eq(err, "SCTP: the MTU of the interface is too small");
	poll_loop_fini(&loop);
}

static void
write_some(unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++) {
		size_t len = 1 + rng_below(&rng, AREA), at = i % 8 * AREA;
		unsigned before = b.wc_cnt;

		post_recv(&b, i, BUF - 100, 100);
		fill(a.buf + at, len, i + rounds);
		post(&a, RNIC_WR_WRITE, 2 * i, 0, at, (uint32_t)len, &b, at);
		post(&a, RNIC_WR_SEND, 2 * i + 1, 0, at, 44, &b, 0);
		UNTIL(b.wc_cnt == before + 1);
		ck_assert_mem_eq(b.buf + at, a.buf + at, len);
		ck_assert_uint_eq(a.errors + b.errors, 0);
	}
}

/* What is under way then goes in fragments, what comes after it in shorter messages: no packet is fragmented any more. */
START_TEST(a_path_that_gets_narrower_is_followed)
{
	struct siw_config c = config();
	int64_t begun;

	if (!own_netns("link set lo up mtu 1500\n"))
		return;
	open_pair(&c, &c);
	longest = 0;
	write_some(20);
	ck_assert_uint_gt(longest, 1400);
	ck_assert_uint_le(longest, 1500 - 28);
	ck_assert(ip_batch("link set lo mtu 1000\n"));
	begun = poll_loop_now();
	write_some(40); /* each would take a time-out otherwise */
	ck_assert_int_lt(poll_loop_now() - begun, 4 * (int64_t)1000000000);
	longest = 0;
	write_some(20);
	ck_assert_uint_gt(longest, 900);
	ck_assert_uint_le(longest, 1000 - 28);
	/* And once more, to less than a message of session control may have. */
	ck_assert(ip_batch("link set lo mtu 400\n"));
	write_some(20);
	longest = 0;
	write_some(20);
	ck_assert_uint_gt(longest, 500);
	ck_assert_uint_le(longest, 560);
}

/* As many Reads as can be asked for: what they may have ahead of its turn fits the window of DDP-SSNs all the same. */
START_TEST(the_most_reads_that_can_be_asked_for)
{
	struct siw_config c = config();

	c.ird = c.ord = 0x3ffe;
	open_pair(&c, &c);
	post_recv(&b, 1, 0, 100);
	post(&a, RNIC_WR_SEND, 1, RNIC_SIGNALED, 0, 44, &b, 0);
	UNTIL(a.wc_cnt == 1 && b.wc_cnt == 1);
}

/* The stack has no timer that wakes an idle daemon. */
START_TEST(an_idle_link_sleeps)
{
	struct siw_config c = config();

	open_pair(&c, &c);
	post_recv(&b, 1, 0, 100);
	post(&a, RNIC_WR_SEND, 1, RNIC_SIGNALED, 0, 44, &b, 0);
	UNTIL(a.wc_cnt == 1 && b.wc_cnt == 1);
	UNTIL(a.dev->ops->deadline(a.dev) == INT64_MAX && b.dev->ops->deadline(b.dev) == INT64_MAX);
	/* And goes on when it is asked to. */
	post_recv(&b, 2, 0, 100);
	post(&a, RNIC_WR_SEND, 2, RNIC_SIGNALED, 0, 44, &b, 0);
	UNTIL(a.wc_cnt == 2 && b.wc_cnt == 2);
}

/* What a stranger sends to the port costs the link of others nothing, nor memory. */
START_TEST(strangers_are_limited)
{
	enum { PACKETS = 5000 };

	struct siw_config c = config();
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	uint8_t init[40] = { 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 28, 1, 2, 3, 4, 0, 1, 0, 0, 0, 1, 0, 1, 1, 1,
		1, 1, 0xc0, 6, 0, 8, 0, 0, 0, 1 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	uint16_t port;
	uint32_t crc;
	unsigned answers = 0;

	open_pair(&c, &c);
	port = rnic_query(b.dev).mpa_port;
	to.sin_port = htons(port);
	init[2] = (uint8_t)(port >> 8);
	init[3] = (uint8_t)port;
	crc = mpa_crc_value(mpa_crc_update(MPA_CRC_INIT, init, sizeof(init)));
	mpa_crc_put(init + 8, crc);
	for (unsigned i = 0; i < PACKETS; i++) {
		uint8_t junk[64];

		rng.fill(&rng, junk, sizeof(junk));
		(void)sendto(fd, init, sizeof(init), 0, (struct sockaddr *)&to, sizeof(to));
		(void)sendto(fd, junk, rng_below(&rng, sizeof(junk)), 0, (struct sockaddr *)&to, sizeof(to));
		if (i % 16 == 0)
			turn();
		while (recv(fd, junk, sizeof(junk), 0) > 0)
			answers++;
	}
	char me[ADDR_STR_MAX];
	(void)snprintf(me, sizeof(me), "127.0.0.1%s", strrchr(name_of(fd), ':'));
	ck_assert_str_eq(rnic_last_refused(b.dev, "strangers_limited"), me);
	close(fd);
	ck_assert_uint_gt(answers, 0); /* one of them might have been a peer */
	ck_assert_uint_lt(answers, PACKETS / 2);
	ck_assert_uint_gt(stats(&b).strangers_limited, 0);
	ck_assert_uint_gt(stats(&b).crc_errors, 0);
	post_recv(&b, 1, 0, 100);
	post(&a, RNIC_WR_SEND, 1, RNIC_SIGNALED, 0, 44, &b, 0);
	UNTIL(a.wc_cnt == 1 && b.wc_cnt == 1);
	ck_assert_uint_eq(a.errors + b.errors, 0);
}
