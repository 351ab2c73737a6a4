/* Soft iWARP and the ways of cards and kernels, played by a peer made by hand: what they need, and how they end. */
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "base/addr.h"
#include "own_netns.h"
#include "siw_raw_peer.h"

/* -- the device's calls of the socket, seen -- */

static unsigned frames; /* start-up frames that went whole in one call */
static unsigned frame_parts;
static unsigned writes, writes_with_eor; /* while counting */
static bool counting;
static int mss; /* what the kernel is made to say; 0 = the truth */

static void
look_for_frame(struct span s)
{
	struct mpa_frame f;

	if (s.len < 1 || memcmp(s.ptr, "MPA ID R", s.len < 8 ? s.len : 8) != 0)
		return;
	frame_parts++;
	frames += mpa_frame_decode(s, MPA_REQUEST, &f) == (int)s.len ||
	    mpa_frame_decode(s, MPA_REPLY, &f) == (int)s.len;
}

ssize_t
sendmsg(int fd, const struct msghdr *msg, int flags)
{
	ssize_t n = syscall(SYS_sendmsg, fd, msg, flags);

	if (msg->msg_iovlen > 0)
		look_for_frame((struct span){ msg->msg_iov[0].iov_base, msg->msg_iov[0].iov_len });
	if (counting && n > 0) {
		writes++;
		writes_with_eor += (flags & MSG_EOR) != 0;
	}
	return n;
}

int
getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	if (level == IPPROTO_TCP && name == TCP_MAXSEG && mss > 0) {
		memcpy(value, &mss, sizeof(mss));
		return 0;
	}
	return (int)syscall(SYS_getsockopt, fd, level, name, value, len);
}

UNIT_FIXTURE(setup, teardown);

/* -- start-up -- */

START_TEST(a_start_up_frame_goes_in_one_piece)
{
	struct siw_config c = config();

	open_connected(&c);
	ck_assert_uint_eq(frames, 2); /* Request and Reply */
	ck_assert_uint_eq(frame_parts, 2);
}

/* A card that sends the RTR Read by itself and does not count it: its user's first Read comes on top. */
START_LOOP_TEST(an_rtr_read_may_come_on_top, 0, 2)
{
	struct siw_config c = config();
	struct mpa_frame f = raw_frame(MPA_REQUEST);
	struct ddp_hdr h = { .last = true, .ulp_ctrl = 0x41, .qn = RDMAP_QN_READ };
	const struct rdmap_read rd = { .sink_stag = 1, .src_stag = 1 };
	uint8_t body[RDMAP_READ_LEN];

	if (_i == 1)
		c.ird = 1;
	open_for_raw(&c);
	raw_open(&b, 0);
	struct mpa_pdata d = raw_pdata();
	f.enh.ird = f.enh.ord = 1;
	raw_send_frame(f, &d);
	ck_assert_uint_eq(raw_reply(&d).enh.ird, 1);
	rdmap_read_encode(&rd, body);
	for (h.msn = 1; h.msn <= 2; h.msn++)
		raw_fpdu(&h, body, sizeof(body));
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_uint_eq(raw_next().ulp_ctrl, 0x42);
		raw_drop();
	}
	ck_assert_uint_eq(b.connected, 1);
	raw_close();
}

/* Linux's siw answers a Read of nothing with more than that while it is sending: so each side says what may be read. */
START_LOOP_TEST(a_confirming_read_reads_what_the_peer_names, 0, 2)
{
	struct siw_config c = config();
	struct ddp_hdr h = { .last = true, .ulp_ctrl = 0x41, .qn = RDMAP_QN_READ, .msn = 1 };
	struct rdmap_read rd = { .sink_stag = 9, .sink_to = 1000, .size = MPA_FENCE_LEN };
	uint8_t body[RDMAP_READ_LEN];

	c.fence_ms = 1;
	open_for_raw(&c);
	raw_open(&b, 0);
	struct mpa_pdata d = raw_pdata();
	d.read_stag = _i == 0 ? 0 : 0xcafe00;
	d.read_to = 4096;
	raw_send_frame(raw_frame(MPA_REQUEST), &d);
	(void)raw_reply(&d);
	raw_fpdu(&rtr_write, "", 0);
	UNTIL(b.connected == 1);
	/* ours, of theirs */
	rd.src_stag = d.read_stag;
	rd.src_to = d.read_to;
	rdmap_read_encode(&rd, body);
	raw_fpdu(&h, body, sizeof(body));
	ck_assert_uint_eq(raw_next().ulp_ctrl, 0x42);
	ck_assert_uint_eq(raw_ulpdu.len, MPA_FENCE_LEN);
	raw_drop();
	/* theirs, of ours */
	post(&b, RNIC_WR_SEND, 7, RNIC_SIGNALED, 0, 10, &b, 0);
	ck_assert_uint_eq(raw_next().ulp_ctrl, 0x43);
	raw_drop();
	ck_assert_uint_eq(raw_next().ulp_ctrl, 0x41);
	ck_assert_int_gt(rdmap_read_decode(raw_ulpdu, &rd), 0);
	ck_assert_uint_eq(rd.size, _i == 0 ? 0 : MPA_FENCE_LEN);
	ck_assert_uint_eq(rd.src_stag, _i == 0 ? 1 : 0xcafe00);
	ck_assert_uint_eq(rd.src_to, _i == 0 ? 0 : 4096);
	raw_drop();
	h = (struct ddp_hdr){ .tagged = true, .last = true, .ulp_ctrl = 0x42, .stag = rd.sink_stag, .to = rd.sink_to };
	raw_fpdu(&h, "ours", rd.size);
	UNTIL(b.wc_cnt == 1);
	ck_assert_uint_eq(b.errors, 0);
	raw_close();
}

/* Refused before any queue pair had a say: the depths of the Reply keep to RFC 6581 9.1 nevertheless. */
START_LOOP_TEST(an_early_reject_has_depths_that_fit, 0, 4)
{
	static const uint16_t depth[][4] = {
		/* asked: ird, ord; answered: ird, ord */
		{ 1, 1, 1, 1 },
		{ 0, 4, 4, 0 },
		{ 40, 40, 16, 16 },
		{ DEPTH_NONE, DEPTH_NONE, DEPTH_NONE, DEPTH_NONE },
	};
	struct siw_config c = config();
	struct mpa_frame f = raw_frame(MPA_REQUEST);

	open_for_raw(&c);
	raw_open(&b, 0);
	struct mpa_pdata d = raw_pdata();
	d.token++;
	f.enh.ird = depth[_i][0];
	f.enh.ord = depth[_i][1];
	raw_send_frame(f, &d);
	f = raw_reply(&d);
	ck_assert_uint_eq(f.flags, MPA_REJECT | MPA_ENHANCED);
	ck_assert_uint_eq(d.verdict, MPA_BAD_TOKEN);
	ck_assert_uint_eq(f.enh.model, ENHANCED_P2P | RTR_ANY);
	ck_assert_uint_eq(f.enh.ird, depth[_i][2]);
	ck_assert_uint_eq(f.enh.ord, depth[_i][3]);
	raw_close();
}

/* A responder that missed the first FPDU looks again when another one comes. */
START_LOOP_TEST(a_silent_responder_hears_a_second_word, 0, 2)
{
	struct siw_config c = config();
	struct mpa_pdata d = raw_serve(&c);
	struct mpa_frame f = raw_frame(MPA_REPLY);

	f.enh.model = ENHANCED_P2P | RTR_WRITE;
	raw_send_frame(f, &d);
	ck_assert_uint_eq(raw_next().ulp_ctrl, 0x40);
	raw_drop();
	int64_t start = a.dev->now_ns;
	if (_i == 1) {
		post_recv(&a, 1, 0, 10);
		raw_fpdu(&(struct ddp_hdr){ .last = true, .ulp_ctrl = 0x43, .msn = 1 }, "x", 1);
		run_ms(300);
		ck_assert(!raw_has_fpdu());
	} else {
		ck_assert_uint_eq(raw_next().ulp_ctrl, 0x40);
		ck_assert_uint_eq(raw_ulpdu.len, 0);
		ck_assert_int_ge(poll_loop_now() - start, 80000000);
		raw_drop();
		run_ms(300);
		ck_assert(!raw_has_fpdu()); /* and no third one */
	}
	ck_assert_uint_eq(a.connected, 1);
	raw_close();
	close(listener);
}

/* -- who may come -- */

/* From that address, to b's at `to`. */
static int
connect_between(const char *addr, const char *at)
{
	struct sockaddr_storage from, to;

	ck_assert_int_eq(addr_parse(addr, &from), 0);
	ck_assert_int_eq(addr_parse(at, &to), 0);
	addr_set_port(&to, rnic_query(b.dev).mpa_port);
	int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&from, addr_len(&from)), 0);
	/* A worker of the kernel makes the way to a new IPv6 address, some time after `ip addr add` has returned. */
	int64_t end = poll_loop_now() + 20000000000;
	while (connect(fd, (struct sockaddr *)&to, addr_len(&to)) != 0) {
		ck_assert_msg(errno == ENETUNREACH && poll_loop_now() < end, "%s to %s: %m", addr, at);
		usleep(1000);
	}
	return fd;
}

static int
connect_from(const char *addr)
{
	return connect_between(addr, "127.0.0.1");
}

static bool
only_odd_ones(void *ctx, const struct rnic_gid *from)
{
	ck_assert_ptr_eq(ctx, &mss);
	ck_assert_uint_eq(from->b[11], 0xff);
	return from->b[15] % 2 == 1;
}

/* Not a byte is read from an address that may not connect, and nobody has to make place for it. */
START_TEST(an_address_that_may_not_connect_is_turned_away)
{
	struct siw_config c = config();
	int fd[200];
	char byte;

	c.may_connect = only_odd_ones;
	c.may_connect_ctx = &mss;
	open_for_raw(&c);
	raw_open(&b, 0); /* 127.0.0.1, slow */
	run_ms(20);
	for (unsigned i = 0; i < 200; i++) {
		fd[i] = connect_from("127.0.0.2");
		turn_one(&b, 0);
	}
	UNTIL(stats(&b).mpa_refused_address == 200);
	ck_assert_str_eq(rnic_last_refused(b.dev, "mpa_refused_address"), name_of(fd[199]));
	ck_assert_int_eq(recv(fd[0], &byte, 1, 0), -1);
	ck_assert_int_eq(errno, ECONNRESET);
	struct mpa_pdata d = raw_pdata();
	raw_send_frame(raw_frame(MPA_REQUEST), &d);
	ck_assert_uint_eq(raw_reply(&d).flags, MPA_ENHANCED | MPA_CRC);
	ck_assert_uint_eq(stats(&b).mpa_bad, 0);
	ck_assert_str_eq(rnic_last_refused(b.dev, "mpa_bad"), "nobody");
	for (unsigned i = 0; i < 200; i++)
		close(fd[i]);
	raw_close();
}

/* A Request from this socket for no link that b expects; b has looked at it when this returns. */
static void
ask_early(int fd)
{
	struct mpa_pdata d = raw_pdata();
	int left = 1;

	raw.fd = fd;
	raw_send_frame(raw_frame(MPA_REQUEST), &d);
	UNTIL(ioctl(fd, SIOCOUTQ, &left) == 0 && left == 0);
	/* all of it is there: accepted in one turn, read in the next */
	for (unsigned t = 0; t < 3; t++)
		turn_one(&b, 1);
}

/* Requests that nobody expects yet: one address cannot fill the places, all together have 64. */
START_TEST(early_requests_of_one_address_leave_room)
{
	static const char *const from[] = { "127.0.0.2", "127.0.0.3", "127.0.0.4" };
	static const unsigned refused[] = { 1, 1, 2 }; /* after 33, then 32, then one more requests */
	struct siw_config c = config();
	int fd[66];
	unsigned n = 0;

	open_both(&c, &c);
	end_qp(&b, 16, 8, TOKEN); /* it expects nobody */
	b.loop.stands_ns = poll_loop_now();
	for (unsigned i = 0; i < 3; i++) {
		for (unsigned k = i == 0 ? 33 : i == 1 ? 32 : 1; k > 0; k--) {
			fd[n] = connect_from(from[i]);
			ask_early(fd[n++]);
		}
		ck_assert_uint_eq(stats(&b).mpa_refused_parked, refused[i]);
		ck_assert_str_eq(rnic_last_refused(b.dev, "mpa_refused_parked"), name_of(fd[i == 1 ? 32 : n - 1]));
	}
	b.loop.stands_ns = 0;
	while (n > 0)
		close(fd[--n]);
}

/* Requests for no link that b has, from these two in turn: how many were refused at once. */
static uint64_t
refused_of(unsigned cnt, const char *one, const char *other)
{
	uint64_t before = stats(&b).mpa_refused_parked;

	for (unsigned i = 0; i < cnt; i++)
		ask_early(connect_between(i % 2 == 0 ? one : other, "fd09:1::1"));
	return stats(&b).mpa_refused_parked - before;
}

START_TEST(an_ipv6_network_is_one_source)
{
	struct siw_config c = config();

	if (!own_netns(
	        "link set lo up\naddr add fd09:1::1 dev lo nodad\naddr add fd09:1::2 dev lo nodad\naddr add fd09:1::3 dev lo nodad\n"
	        "addr add fd09:2::1 dev lo nodad\naddr add fd09:2::2 dev lo nodad\n"))
		return;
	ck_assert_int_eq(addr_parse("fd09:1::1", &c.addr), 0);
	end_open(&b, &c);
	end_qp(&b, 16, 8, TOKEN); /* it expects nobody */
	b.loop.stands_ns = poll_loop_now();
	ck_assert_uint_eq(refused_of(34, "fd09:1::2", "fd09:1::3"), 2);
	ck_assert_uint_eq(refused_of(32, "fd09:2::1", "fd09:2::2"), 0);
	ck_assert_uint_eq(refused_of(1, "fd09:2::1", NULL), 1);
	b.loop.stands_ns = 0;
	end_close(&b);
}

/* Who is refused and does not go away keeps a socket for a while; so many of them may. */
START_TEST(lingering_refused_peers_are_bounded)
{
	struct siw_config c = config();
	struct mpa_pdata d;
	int fd[70];

	open_for_raw(&c);
	b.loop.stands_ns = poll_loop_now();
	for (unsigned i = 0; i < 70; i++) {
		raw.fd = fd[i] = connect_from("127.0.0.2");
		d = raw_pdata();
		d.recv_depth = 0;
		raw_send_frame(raw_frame(MPA_REQUEST), &d);
		UNTIL(stats(&b).mpa_refused_token == i + 1);
		ck_assert_str_eq(rnic_last_refused(b.dev, "mpa_refused_token"), name_of(fd[i]));
	}
	ck_assert_uint_eq(stats(&b).linger_refused, 6);
	b.loop.stands_ns = 0;
	for (unsigned i = 0; i < 70; i++)
		close(fd[i]);
}

/* -- hardware's segments -- */

/* 20 Sends and a large Write, first to a peer that is no software of ours, then to one that is. */
START_LOOP_TEST(each_fpdu_is_a_write_for_hardware, 0, 2)
{
	struct siw_config c = config();

	raw_connect(&c, 0, _i == 0 ? 0 : 16384);
	counting = true;
	unsigned fpdus = (unsigned)stats(&b).fpdus_sent;
	post(&b, RNIC_WR_WRITE, 1, 0, 0, 100000, &b, 0);
	for (unsigned i = 0; i < 8; i++)
		post(&b, RNIC_WR_SEND, 1, 0, 0, 44, &b, 0);
	run_ms(50);
	fpdus = (unsigned)stats(&b).fpdus_sent - fpdus;
	if (_i == 0) {
		ck_assert_uint_eq(writes, fpdus);
		ck_assert_uint_eq(writes_with_eor, writes);
	} else {
		ck_assert_uint_lt(writes, fpdus);
		ck_assert_uint_eq(writes_with_eor, 0);
	}
	raw_close();
}

/* The path's MTU falls, and rises again. */
START_TEST(fpdus_follow_the_mss)
{
	static const int path[] = { 1400, 500, 1460 };
	struct siw_config c = config();

	raw_connect(&c, 1460, 0);
	for (unsigned i = 0; i < 3; i++) {
		size_t total = 0, largest = 0;

		mss = path[i];
		post(&b, RNIC_WR_WRITE, 1, 0, 0, 10000, &b, 0);
		while (total < 10000) {
			size_t len;

			ck_assert_uint_eq(raw_next().ulp_ctrl, 0x40);
			len = mpa_fpdu_len(raw_ulpdu.len + DDP_TAGGED_LEN);
			largest = len > largest ? len : largest;
			total += raw_ulpdu.len;
			raw_drop();
		}
		ck_assert_uint_le(largest, (size_t)mss);
		ck_assert_uint_gt(largest, (size_t)mss - 100);
	}
	raw_close();
}

/* -- the end -- */

static void
raw_reset(void)
{
	const struct linger now = { .l_onoff = 1 };

	ck_assert_int_eq(setsockopt(raw.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	close(raw.fd);
	raw.fd = -1;
}

static void
raw_terminate(void)
{
	const struct rdmap_term t = { .layer = RDMAP_LAYER_LLP, .code = 2 };
	uint8_t body[RDMAP_TERM_MAX];
	int len = rdmap_term_encode(&t, body);

	raw_fpdu(&(struct ddp_hdr){ .last = true, .ulp_ctrl = 0x47, .qn = 2, .msn = 1 }, body, (size_t)len);
}

/* The reset is seen first: the Terminate tells its reason all the same, and nothing is placed. */
START_LOOP_TEST(a_terminate_before_a_reset_is_heard, 0, 3)
{
	struct siw_config c = config();
	struct ddp_hdr h = { .tagged = true, .last = true, .ulp_ctrl = 0x40 };

	raw_connect(&c, 0, 16384);
	run_ms(20);
	h.stag = b.mr->rkey;
	h.to = b.mr->addr;
	raw_fpdu(&h, "late", 4);
	if (_i != 1)
		raw_terminate();
	if (_i == 2)
		raw_fpdu(&h, "later", 5);
	raw_reset();
	UNTIL(b.errors == 1);
	ck_assert_str_eq(b.why, _i != 1 ? "MPA: CRC error" : "the peer reset the connection");
	ck_assert_uint_eq(stats(&b).terminates_received, _i != 1);
	ck_assert_uint_eq(b.buf[0], 0);
	txq_fini(&raw.txq);
}

/* The same with half a Write before it that is read straight into place. */
START_TEST(a_terminate_behind_half_a_write_is_heard)
{
	struct siw_config c = config();
	struct mpa_frame f = raw_frame(MPA_REQUEST);
	struct ddp_hdr h = { .tagged = true, .last = true, .ulp_ctrl = 0x40 };
	static uint8_t data[40000];
	struct iovec iov[8];
	struct txq_payload p = { .cnt = 1, .len = sizeof(data), .v = { { data, sizeof(data) } } };
	uint8_t flat[50000];
	size_t len = 0;

	c.crc = false;
	open_for_raw(&c);
	raw_open(&b, 0);
	struct mpa_pdata d = raw_pdata();
	f.flags = MPA_ENHANCED;
	raw_send_frame(f, &d);
	(void)raw_reply(&d);
	txq_start(&raw.txq, false, false);
	raw_fpdu(&rtr_write, "", 0);
	UNTIL(b.connected == 1);
	memset(data, 0x55, sizeof(data));
	h.stag = b.mr->rkey;
	h.to = b.mr->addr;
	txq_put(&raw.txq, &h, &p);
	for (unsigned i = 0, n = txq_gather(&raw.txq, iov, 8); i < n; i++) {
		memcpy(flat + len, iov[i].iov_base, iov[i].iov_len);
		len += iov[i].iov_len;
	}
	txq_sent(&raw.txq, len);
	raw_send(flat, 10000);
	while (b.buf[9000] == 0)
		turn();
	raw_send(flat + 10000, len - 10000);
	raw_terminate();
	raw_reset();
	UNTIL(b.errors == 1);
	ck_assert_str_eq(b.why, "MPA: CRC error");
	ck_assert_uint_eq(b.buf[20000], 0);
	txq_fini(&raw.txq);
}

/* A peer that ends in order sees an end in order, unless there is something that it did not take. */
START_LOOP_TEST(a_fin_is_answered_by_a_fin, 0, 2)
{
	struct siw_config c = config();
	uint8_t byte;
	ssize_t n = -1;

	raw_connect(&c, 0, 16384);
	if (_i == 1)
		while (room(&b).bytes > 0 && room(&b).wrs > 0) {
			post(&b, RNIC_WR_WRITE, 1, 0, 0, BUF, &b, 0);
			turn_one(&b, 0);
		}
	shutdown(raw.fd, SHUT_WR);
	UNTIL(b.errors == 1);
	ck_assert_str_eq(b.why, "the peer closed the connection");
	do
		n = recv(raw.fd, &byte, 1, MSG_DONTWAIT);
	while (n > 0 || (n < 0 && errno == EAGAIN));
	if (_i == 0)
		ck_assert_int_eq(n, 0);
	else
		ck_assert(n < 0 && errno == ECONNRESET);
	raw_close();
}

/* CRC off: half of a Write is placed when its place is closed. Nothing is written there any more, not even one byte where the
 * first one of the rest would still be allowed, and the link ends. */
START_TEST(a_place_that_closes_half_way_ends_the_link)
{
	struct siw_config c = config();
	size_t placed;

	c.crc = false;
	c.fpdu_max = 60000;
	open_connected(&c);
	b.mr->deny_unit = 1000;
	memset(a.buf, 0x77, BUF);
	post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 200000, &b, 0);
	while (b.buf[0] == 0)
		turn();
	for (placed = 0; placed < 200000 && b.buf[placed] != 0; placed++)
		;
	ck_assert_uint_lt(placed, 190000);
	/* all but the unit that the next byte belongs to */
	memset(b.mr->deny, 0xff, sizeof(b.mr->deny));
	b.mr->deny[placed / 1000 / 64] &= ~(1ull << placed / 1000 % 64);
	UNTIL(a.errors == 1 && b.errors == 1);
	ck_assert_str_eq(b.why, "iWARP protocol violation by the peer");
	ck_assert_str_eq(a.why, "DDP tagged buffer: base or bounds");
	for (; placed < 200000; placed++)
		ck_assert_uint_eq(b.buf[placed], 0);
}
