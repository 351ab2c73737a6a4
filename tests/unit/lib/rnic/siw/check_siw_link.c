/* Soft iWARP: options of the wire, and permitted peers. */
#include "siw_ends.h"

/* -- the wire's options -- */

static void
soak(unsigned rounds, unsigned seed)
{
	uint64_t x = seed * 2654435761u + 1;
	unsigned sent_a = 0, sent_b = 0;
	size_t off = 0;

	fill(a.buf, BUF, seed);
	fill(b.buf + BUF / 2, BUF / 2, seed + 1);
	for (unsigned i = 0; i < 16; i++) {
		post_recv(&a, i, 0, 0);
		post_recv(&b, i, 0, 0);
	}
	a.wc_cnt = b.wc_cnt = 0;
	for (unsigned r = 0; r < rounds; r++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		uint32_t len = (uint32_t)(x >> 40) % (x & 0x100 ? 50000 : 300);
		if (off + len > BUF / 2)
			off = 0;
		UNTIL(room(&a).wrs > 1 && room(&a).sends > 0 && room(&b).sends > 0);
		post(&a, RNIC_WR_WRITE, 1000 + r, 0, off, len, &b, off);
		post(&b, RNIC_WR_WRITE, 1000 + r, 0, BUF / 2 + off, len, &a, BUF / 2 + off);
		post(&a, RNIC_WR_SEND, r, RNIC_SIGNALED, 0, 0, &b, 0);
		post(&b, RNIC_WR_SEND, r, RNIC_SIGNALED, 0, 0, &a, 0);
		off += len;
		turn();
		for (struct end *e = &a; e != NULL; e = e == &a ? &b : NULL) {
			for (unsigned i = 0; i < e->wc_cnt; i++) {
				ck_assert_int_eq(e->wc[i].status, RNIC_WC_OK);
				if (e->wc[i].op == RNIC_WC_RECV)
					post_recv(e, e->wc[i].wr_id, 0, 0);
				else
					ck_assert_uint_eq(e->wc[i].wr_id, e == &a ? sent_a++ : sent_b++);
			}
			e->wc_cnt = 0;
		}
	}
	while (sent_a < rounds || sent_b < rounds) {
		UNTIL(a.wc_cnt > 0 || b.wc_cnt > 0);
		for (unsigned i = 0; i < a.wc_cnt; i++)
			sent_a += a.wc[i].op == RNIC_WC_SEND;
		for (unsigned i = 0; i < b.wc_cnt; i++)
			sent_b += b.wc[i].op == RNIC_WC_SEND;
		a.wc_cnt = b.wc_cnt = 0;
	}
	ck_assert_mem_eq(a.buf + BUF / 2, b.buf + BUF / 2, off);
	ck_assert_mem_eq(a.buf, b.buf, off);
	ck_assert_uint_eq(a.errors + b.errors, 0);
	ck_assert_uint_eq(stats(&a).crc_errors + stats(&b).crc_errors, 0);
}

UNIT_FIXTURE(setup, teardown);

/* CRC on and off, markers in each direction, all FPDU sizes: bulk and small, both ways at once. */
START_LOOP_TEST(every_option_carries_data, 0, 40)
{
	static const uint32_t fpdu[] = { 0, 128, 1000, 16384, 64768 };
	struct siw_config ca = config(), cb = config();

	ca.crc = cb.crc = _i & 1;
	ca.markers = _i & 2;
	cb.markers = _i & 4;
	ca.fpdu_max = fpdu[_i / 8];
	cb.fpdu_max = 64768;
	open_both(&ca, &cb);
	connect_ends();
	soak(200, (unsigned)_i);
}

START_LOOP_TEST(every_rtr_kind, 0, 6)
{
	static const unsigned kinds[] = { RTR_SEND, RTR_WRITE, RTR_READ };
	struct siw_config ca = config(), cb = config();

	ca.rtr = kinds[_i % 3];
	if (_i >= 3)
		cb.rtr = kinds[_i % 3];
	cb.markers = true;
	open_both(&ca, &cb);
	end_qp(&b, 64, 16, TOKEN);
	post_recv(&b, 99, 0, 100);
	connect_ends();
	ck_assert_uint_eq(a.connected, 1);
	ck_assert_uint_eq(b.connected, 1);
	ck_assert_uint_eq(stats(&b).reads_served, ca.rtr == RTR_READ);
	/* an RTR Send took no receive, and counts for nothing */
	ck_assert_uint_eq(b.wc_cnt, 0);
	ck_assert_uint_eq(room(&a).sends, 16);
	post(&a, RNIC_WR_SEND, 1, RNIC_SIGNALED, 0, 10, &b, 0);
	UNTIL(b.wc_cnt == 1 && a.wc_cnt == 1);
	check_wc(&b, 0, 99, RNIC_WC_RECV, RNIC_WC_OK);
	b.wc_cnt = 0;
	soak(50, 3);
}

START_TEST(no_rtr_kind_in_common)
{
	struct siw_config ca = config(), cb = config();

	ca.rtr = RTR_SEND;
	cb.rtr = RTR_WRITE | RTR_READ;
	open_both(&ca, &cb);
	connect_ends();
	ck_assert_uint_eq(a.failed, 1);
	ck_assert_str_eq(a.why, "no RTR kind in common");
	ck_assert_uint_eq(stats(&a).terminates_sent, 1);
	UNTIL(b.failed == 1);
	ck_assert_str_eq(b.why, "MPA: no matching RTR option");
	ck_assert_uint_eq(b.connected, 0);
}

START_TEST(revision_1_initiator)
{
	struct siw_config ca = config(), cb = config();

	ca.mpa_rev = 1;
	open_both(&ca, &cb);
	connect_ends();
	ck_assert_uint_eq(a.connected, 1);
	ck_assert_uint_eq(b.connected, 1);
	soak(50, 3);
}

START_TEST(no_listener)
{
	struct siw_config c = config();

	open_both(&c, &c);
	end_qp(&a, 8, 8, TOKEN);
	end_qp(&b, 8, 8, TOKEN);
	struct rnic_remote r = remote(&b);
	end_close(&b);
	run_b = NULL;
	ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &r), 0);
	UNTIL(a.failed == 1);
	ck_assert_str_eq(a.why, "the peer's MPA port refuses connections");
	ck_assert(!a.silent);
	ck_assert_int_eq(try_post(&a, RNIC_WR_WRITE, 1, 0, 0, 0, &a, 0), -ENOTCONN);
	ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &r), -EINVAL);
	end_close(&a);
	run_b = &b;
}

/* SYNs get no answer where the backlog is full, as where a firewall drops them. */
START_TEST(a_port_that_does_not_answer)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int full = socket(AF_INET, SOCK_STREAM, 0), filler = socket(AF_INET, SOCK_STREAM, 0);
	struct siw_config c = config();

	ck_assert_int_eq(bind(full, (struct sockaddr *)&at, len), 0);
	ck_assert_int_eq(listen(full, 0), 0);
	ck_assert_int_eq(getsockname(full, (struct sockaddr *)&at, &len), 0);
	ck_assert_int_eq(connect(filler, (struct sockaddr *)&at, len), 0);
	c.connect_ms = 100;
	open_both(&c, &c);
	end_qp(&a, 8, 8, TOKEN);
	end_qp(&b, 8, 8, TOKEN);
	struct rnic_remote r = remote(&b);
	r.mpa_port = ntohs(at.sin_port);
	ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &r), 0);
	UNTIL(a.failed == 1);
	ck_assert_str_eq(a.why, "the peer's MPA port does not answer");
	ck_assert(a.silent);
	close(filler);
	close(full);
}

START_TEST(wrong_address_family)
{
	struct siw_config c = config();

	open_both(&c, &c);
	end_qp(&a, 8, 8, TOKEN);
	struct rnic_remote r = (struct rnic_remote){ .gid = { { 0xfe, 0x80, [15] = 1 } }, .qpn = 2, .mpa_port = 1 };
	ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &r), 0);
	UNTIL(a.failed == 1);
	ck_assert_str_eq(a.why, "the peer's RNIC has an address of another family");
}

static void
attempt(struct rnic_remote r, uint64_t token, const char *why)
{
	if (a.qp != NULL)
		a.dev->ops->qp_destroy(a.qp);
	end_qp(&a, 8, 8, token);
	a.failed = a.connected = 0;
	ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &r), 0);
	UNTIL(a.failed + a.connected == 1);
	if (why == NULL)
		ck_assert_uint_eq(a.connected, 1);
	else
		ck_assert_str_eq(a.why, why);
}

START_TEST(token_binds_the_link)
{
	struct siw_config c = config();

	open_both(&c, &c);
	end_qp(&b, 8, 8, TOKEN);
	ck_assert_int_eq(b.dev->ops->qp_expect(b.qp), 0);
	struct rnic_remote r = remote(&b);
	attempt(r, TOKEN + 1, "rejected by the peer: wrong token");
	struct rnic_remote wrong = r;
	wrong.psn ^= 1;
	attempt(wrong, TOKEN, "rejected by the peer: wrong token");
	ck_assert_uint_eq(stats(&b).mpa_refused_token, 2);
	ck_assert_ptr_nonnull(strstr(rnic_last_refused(b.dev, "mpa_refused_token"), "127.0.0.1:"));
	attempt(r, TOKEN, NULL);
	/* the second one with the right token comes too late */
	{
		struct rnic_qp *first = a.qp;

		a.qp = NULL;
		attempt(r, TOKEN, "rejected by the peer: link already connected");
		ck_assert_uint_eq(stats(&b).mpa_refused_token, 3);
		a.dev->ops->qp_destroy(first);
	}
}

START_TEST(early_request_waits_for_its_qp)
{
	struct siw_config c = config();

	open_both(&c, &c);
	end_qp(&a, 8, 8, TOKEN);
	end_qp(&b, 8, 8, TOKEN);
	struct rnic_remote ra = remote(&a);
	struct rnic_remote rb = remote(&b);
	b.loop.stands_ns = poll_loop_now(); /* the request waits for one second only */
	ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &rb), 0);
	run_ms(100);
	ck_assert_uint_eq(a.connected + a.failed, 0);
	ck_assert_int_eq(b.dev->ops->qp_expect(b.qp), 0);
	UNTIL(a.connected == 1);
	ck_assert_uint_eq(b.connected, 0);
	ck_assert_int_eq(b.dev->ops->qp_connect(b.qp, RNIC_PASSIVE, &ra), 0);
	UNTIL(b.connected == 1);
}

START_TEST(early_request_waits_only_so_long)
{
	struct siw_config c = config();

	open_both(&c, &c);
	end_qp(&a, 8, 8, TOKEN);
	end_qp(&b, 8, 8, TOKEN);
	struct rnic_remote rb = remote(&b);
	ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &rb), 0);
	UNTIL(a.failed == 1);
	ck_assert_str_eq(a.why, "rejected by the peer: unexpected request");
	ck_assert_uint_eq(stats(&b).mpa_refused_parked, 1);
}

START_TEST(early_requests_are_bounded)
{
	struct siw_config c = config();
	struct rnic_qp *qps[33];

	open_both(&c, &c);
	b.loop.stands_ns = poll_loop_now();
	end_qp(&b, 8, 8, TOKEN);
	struct rnic_remote rb = remote(&b);
	for (unsigned i = 0; i < 33; i++) {
		end_qp(&a, 8, 8, TOKEN);
		qps[i] = a.qp;
		ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &rb), 0);
		run_ms(1);
	}
	UNTIL(a.failed == 1);
	ck_assert_str_eq(a.why, "rejected by the peer: too many pending requests");
	/* one of those that wait is taken, the others are told no */
	ck_assert_int_eq(b.dev->ops->qp_expect(b.qp), 0);
	UNTIL(a.connected == 1);
	b.loop.stands_ns = 0;
	UNTIL(a.failed == 32);
	ck_assert_uint_eq(stats(&b).mpa_refused_parked, 1 + 31);
	for (unsigned i = 0; i < 33; i++)
		a.dev->ops->qp_destroy(qps[i]);
	a.qp = NULL;
}

START_TEST(another_qp_of_the_peer_took_the_link)
{
	struct siw_config c = config();

	open_both(&c, &c);
	end_qp(&b, 8, 8, TOKEN);
	end_qp(&a, 8, 8, TOKEN);
	ask_for_link();
	UNTIL(a.connected == 1);
	struct rnic_remote r = remote(&a);
	r.qpn ^= 1; /* CLC says another one */
	ck_assert_int_eq(b.dev->ops->qp_connect(b.qp, RNIC_PASSIVE, &r), 0);
	UNTIL(b.failed == 1 && a.errors == 1);
	ck_assert_str_eq(b.why, "the link was taken over by another QP of the peer");
	ck_assert_str_eq(a.why, "MPA: local catastrophic error");
}

START_TEST(the_peer_never_comes)
{
	struct siw_config c = config();

	c.connect_ms = 100;
	open_both(&c, &c);
	end_qp(&a, 8, 8, TOKEN);
	end_qp(&b, 8, 8, TOKEN);
	struct rnic_remote ra = remote(&a);
	ck_assert_int_eq(b.dev->ops->qp_expect(b.qp), 0);
	ck_assert_int_eq(b.dev->ops->qp_connect(b.qp, RNIC_PASSIVE, &ra), 0);
	UNTIL(b.failed == 1);
	ck_assert_str_eq(b.why, "the peer did not open its MPA connection in time");
	ck_assert(!b.silent);
}

/* It came and went before CLC asked for it. */
START_TEST(the_peer_left_before_it_was_claimed)
{
	struct siw_config c = config();

	open_both(&c, &c);
	end_qp(&a, 8, 8, TOKEN);
	end_qp(&b, 8, 8, TOKEN);
	struct rnic_remote ra = remote(&a);
	struct rnic_remote rb = remote(&b);
	ck_assert_int_eq(b.dev->ops->qp_expect(b.qp), 0);
	ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &rb), 0);
	UNTIL(a.connected == 1);
	a.dev->ops->qp_destroy(a.qp);
	a.qp = NULL;
	run_ms(50);
	ck_assert_uint_eq(b.failed + b.errors, 0);
	ck_assert_int_eq(b.dev->ops->qp_connect(b.qp, RNIC_PASSIVE, &ra), 0);
	UNTIL(b.failed == 1);
	ck_assert_str_eq(b.why, "the peer reset the connection");
}

START_TEST(bad_settings_are_named)
{
	struct siw_config good = config(), c;
	struct rnic_loop l = poll_loop_rnic(&a.loop);
	struct rnic_dev *dev = NULL;
	const char *err;

	c = good, c.ird = 0;
	ck_assert_int_eq(siw_open(&c, &l, &rng, &dev, &err), -EINVAL);
	ck_assert_str_eq(err, "inbound Read depth");
	c = good, c.ord = 0x3fff;
	ck_assert_int_eq(siw_open(&c, &l, &rng, &dev, &err), -EINVAL);
	ck_assert_str_eq(err, "outbound Read depth");
	c = good, c.rtr = 0;
	ck_assert_int_eq(siw_open(&c, &l, &rng, &dev, &err), -EINVAL);
	ck_assert_str_eq(err, "RTR kinds");
	c = good, c.fpdu_max = 127;
	ck_assert_int_eq(siw_open(&c, &l, &rng, &dev, &err), -EINVAL);
	ck_assert_str_eq(err, "largest FPDU");
	c = good, c.port_min = 2, c.port_max = 1;
	ck_assert_int_eq(siw_open(&c, &l, &rng, &dev, &err), -EINVAL);
	ck_assert_str_eq(err, "port range");
	c = good, c.addr.ss_family = AF_UNIX;
	ck_assert_int_eq(siw_open(&c, &l, &rng, &dev, &err), -EINVAL);
	ck_assert_str_eq(err, "address");
	/* an address that this host has not */
	c = good;
	ck_assert_int_eq(addr_parse("192.0.2.1", &c.addr), 0);
	ck_assert_int_eq(siw_open(&c, &l, &rng, &dev, &err), -EADDRNOTAVAIL);
	ck_assert_str_eq(err, "address");
	ck_assert_ptr_null(dev);
}

START_TEST(ports_come_from_the_range)
{
	struct siw_config c = config();
	struct rnic_dev *dev;
	const char *err;

	end_open(&a, &c);
	uint16_t port = rnic_query(a.dev).mpa_port;
	c.port_min = c.port_max = port;
	poll_loop_init(&b.loop);
	struct rnic_loop l = poll_loop_rnic(&b.loop);
	ck_assert_int_eq(siw_open(&c, &l, &rng, &dev, &err), -EADDRINUSE);
	ck_assert_str_eq(err, "no free port in the range");
	poll_loop_fini(&b.loop);
	c.port_max = (uint16_t)(port + 20);
	end_open(&b, &c);
	ck_assert_uint_gt(rnic_query(b.dev).mpa_port, port);
	ck_assert_uint_le(rnic_query(b.dev).mpa_port, port + 20);
	/* two that both take from a range */
	end_close(&a);
	end_open(&a, &c);
	ck_assert_uint_ne(rnic_query(b.dev).mpa_port, rnic_query(a.dev).mpa_port);
}

START_TEST(qps_are_bounded)
{
	struct siw_config c = config();
	const struct rnic_qp_attr attr = { .sq_depth = 4, .rq_depth = 4 };
	struct rnic_qp_attr bad = attr;
	struct rnic_qp *qp[3];

	c.max_qp = 2;
	open_both(&c, &c);
	ck_assert_int_eq(a.dev->ops->qp_create(a.pd, &attr, &qp[0]), 0);
	ck_assert_int_eq(a.dev->ops->qp_create(a.pd, &attr, &qp[1]), 0);
	ck_assert_int_eq(a.dev->ops->qp_create(a.pd, &attr, &qp[2]), -ENOSPC);
	a.dev->ops->qp_destroy(qp[0]);
	bad.sq_depth = 0;
	ck_assert_int_eq(a.dev->ops->qp_create(a.pd, &bad, &qp[2]), -EINVAL);
	ck_assert_int_eq(a.dev->ops->qp_create(a.pd, &attr, &qp[0]), 0);
	ck_assert_uint_ne(qp[0]->qpn, qp[1]->qpn);
	a.dev->ops->qp_destroy(qp[0]);
	a.dev->ops->qp_destroy(qp[1]);
}
