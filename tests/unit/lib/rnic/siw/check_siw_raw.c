/* Soft iWARP against a peer made by hand: old, careless and hostile ones. */
#include <sys/resource.h>

#include "rnic/unit.h"
#include "siw_raw_peer.h"

static void
expect_depths(const struct end *e, int ird, int ord)
{
	struct rnic_depths d = e->dev->ops->peer_depths(e->qp);

	ck_assert_int_eq(d.ird, ird);
	ck_assert_int_eq(d.ord, ord);
}

UNIT_FIXTURE(setup, teardown);

START_TEST(passive_side_answers_as_the_rfc_wants)
{
	struct siw_config c = config();

	c.ird = 6;
	c.ord = 2;
	c.rtr = RTR_WRITE | RTR_READ;
	open_for_raw(&c);
	raw_open(&b, 0);
	struct mpa_pdata d = raw_pdata();
	raw_send_frame(raw_frame(MPA_REQUEST), &d);
	struct mpa_frame f = raw_reply(&d);
	ck_assert_uint_eq(f.rev, 2);
	ck_assert_uint_eq(f.flags, MPA_ENHANCED | MPA_CRC);
	ck_assert_uint_eq(f.enh.model, ENHANCED_P2P | RTR_WRITE | RTR_READ);
	ck_assert_uint_eq(f.enh.ird, 4);
	ck_assert_uint_eq(f.enh.ord, 2);
	ck_assert_uint_eq(d.verdict, MPA_ACCEPTED);
	ck_assert_uint_eq(d.from_qpn, b.qp->qpn);
	ck_assert_uint_eq(d.qpn, 77);
	ck_assert_uint_eq(d.recv_depth, 8);
	ck_assert_uint_eq(d.token, 0);
	ck_assert_uint_eq(b.connected, 0);
	raw_close();
	UNTIL(b.failed == 1);
}

/* Initiator first: also with a peer that knows no RTR (RFC 5044 7.1.2, rule 4). */
START_LOOP_TEST(passive_side_waits_for_the_first_fpdu, 0, 2)
{
	struct siw_config c = config();
	struct mpa_frame f = { .kind = MPA_REQUEST, .rev = 1, .flags = MPA_CRC };
	uint8_t small = 1;

	c.fence_ms = 1;
	open_for_raw(&c);
	raw_open(&b, 0);
	struct mpa_pdata d = raw_pdata();
	raw_send_frame(_i == 0 ? f : raw_frame(MPA_REQUEST), &d);
	f = raw_reply(&d);
	ck_assert_uint_eq(f.rev, _i == 0 ? 1 : 2);
	ck_assert_uint_eq(f.flags, _i == 0 ? MPA_CRC : MPA_CRC | MPA_ENHANCED);
	ck_assert_int_eq(try_post(&b, RNIC_WR_SEND, 1, RNIC_SIGNALED, 0, 10, &b, 0), -ENOTCONN);
	ck_assert_uint_eq(room(&b).wrs, 0);
	run_ms(50);
	raw_read();
	ck_assert_uint_eq(raw.len, 0);
	ck_assert_uint_eq(b.connected, 0);
	raw_fpdu(
	    &(struct ddp_hdr){ .tagged = true, .last = true, .ulp_ctrl = 0x40, .stag = b.mr->rkey, .to = b.mr->addr },
	    &small, 1);
	UNTIL(b.connected == 1);
	expect_depths(&b, _i == 0 ? -1 : 4, _i == 0 ? -1 : 4);
	ck_assert_uint_eq(b.buf[0], 1);
	post(&b, RNIC_WR_SEND, 1, RNIC_SIGNALED, 0, 10, &b, 0);
	ck_assert_uint_eq(raw_next().ulp_ctrl, 0x43);
	raw_close();
	UNTIL(b.errors == 1);
}

/* The first FPDU shows that the link is not the claimed one; the second came with it, and is nobody's any more. */
START_LOOP_TEST(nothing_is_placed_behind_a_start_that_failed, 0, 2)
{
	struct siw_config c = config();
	const struct ddp_hdr send = { .last = true, .ulp_ctrl = 0x43, .msn = 1 };
	const struct rnic_remote other = { .qpn = 76 };
	struct ddp_hdr write = rtr_write;
	const uint8_t one = 1;

	open_both(&c, &c);
	end_qp(&b, 16, 8, TOKEN);
	ck_assert_int_eq(b.dev->ops->qp_expect(b.qp), 0);
	raw_open(&b, 0);
	struct mpa_pdata d = raw_pdata();
	raw_send_frame(raw_frame(MPA_REQUEST), &d);
	(void)raw_reply(&d);
	ck_assert_int_eq(b.dev->ops->qp_connect(b.qp, RNIC_PASSIVE, &other), 0);
	if (_i == 0)
		raw_fpdu(&rtr_write, NULL, 0);
	else
		raw_fpdu(&send, &one, 1); /* waits for a receive */
	write.stag = b.mr->rkey;
	write.to = b.mr->addr + 100;
	raw_fpdu(&write, &one, 1);
	run_ms(20);
	ck_assert_uint_eq(b.failed, _i == 0);
	if (_i == 1)
		post_recv(&b, 5, 0, 10);
	UNTIL(b.failed == 1);
	run_ms(20);
	ck_assert_str_eq(b.why, "the link was taken over by another QP of the peer");
	ck_assert_uint_eq(b.failed, 1);
	ck_assert_uint_eq(b.buf[100], 0);
	raw_close();
}

START_TEST(initiator_with_ird_0_is_rejected)
{
	struct siw_config c = config();

	open_for_raw(&c);
	raw_open(&b, 0);
	struct mpa_frame f = raw_frame(MPA_REQUEST);
	f.enh.ird = 0;
	struct mpa_pdata d = raw_pdata();
	raw_send_frame(f, &d);
	f = raw_reply(&d);
	ck_assert_uint_eq(f.flags, MPA_ENHANCED | MPA_CRC | MPA_REJECT);
	ck_assert_uint_eq(f.enh.ord, 1);
	ck_assert_uint_eq(d.verdict, MPA_READ_DEPTH);
	UNTIL(raw_read(), raw.eof);
	UNTIL(b.failed == 1);
	ck_assert_str_eq(b.why, "the peer's IRD is too small");
	expect_depths(&b, 0, 4);
	raw_close();
}

START_LOOP_TEST(strangers_are_refused, 0, 4)
{
	struct siw_config c = config();
	struct mpa_frame f = raw_frame(MPA_REQUEST);
	static const uint8_t other[40] = "rping";
	uint8_t pd[MPA_PDATA_LEN];

	open_for_raw(&c);
	raw_open(&b, 0);
	struct mpa_pdata d = raw_pdata();
	d.recv_depth = 0;
	mpa_pdata_encode(&d, pd);
	if (_i == 3)
		f.pd = (struct span){ pd, sizeof(pd) };
	if (_i == 0)
		f.pd = (struct span){ other, sizeof(other) };
	if (_i == 2)
		f = (struct mpa_frame){ .kind = MPA_REQUEST, .rev = 1 };
	raw_send_frame(f, NULL);
	f = raw_reply(&d);
	ck_assert_uint_eq(f.flags, _i == 2 ? MPA_REJECT : MPA_REJECT | MPA_ENHANCED);
	ck_assert_uint_eq(f.rev, _i == 2 ? 1 : 2);
	ck_assert_uint_eq(d.verdict, MPA_UNKNOWN_PEER);
	ck_assert_uint_eq(d.from_qpn, 0);
	ck_assert_uint_eq(d.token, 0);
	UNTIL(raw_read(), raw.eof);
	ck_assert_uint_eq(stats(&b).mpa_refused_token, 1);
	ck_assert_uint_eq(b.failed + b.connected, 0);
	raw_close();
}

START_LOOP_TEST(malformed_requests_are_dropped, 0, 8)
{
	static const struct {
		size_t at, len;
		uint8_t bytes[2]; /* that stand there */
	} rows[] = {
		{ 0, 1, { 'm', 'P' } }, { 9, 20, { 'p', ' ' } }, /* an initiator meets an initiator's peer: a Reply */
		{ 18, 20, { 2, 1 } },                            /* private data too long */
		{ 18, 21, { 0, 0 } },                            /* a byte behind the frame */
		{ 16, 20, { 0x40, 3 } },                         /* the revision */
		{ 16, 20, { 0x40, 0 } }, { 18, 19, { 0, 0 } },   /* never complete */
		{ 18, 0, { 0, 0 } },                             /* nothing at all */
	};
	struct siw_config c = config();
	uint8_t buf[MPA_FRAME_MAX + 10] = "MPA ID Req Frame\x40\x01";

	c.connect_ms = 200;
	open_both(&c, &c);
	end_qp(&b, 8, 8, TOKEN);
	memcpy(buf + rows[_i].at, rows[_i].bytes, 2);
	raw_open(&b, 0);
	raw_send(buf, rows[_i].len);
	UNTIL(raw_read(), raw.eof);
	ck_assert_uint_eq(raw.len, 0);
	ck_assert_uint_eq(stats(&b).mpa_bad, 1);
	ck_assert_str_eq(rnic_last_refused(b.dev, "mpa_bad"), name_of(raw.fd));
	raw_close();
}

START_TEST(silent_connections_do_not_keep_others_out)
{
	struct siw_config c = config();
	int fds[140];

	open_both(&c, &c);
	for (unsigned i = 0; i < 140; i++) {
		raw_open(&b, 0);
		fds[i] = raw.fd;
		txq_fini(&raw.txq);
		turn();
	}
	UNTIL(stats(&b).mpa_bad == 12);
	ck_assert_str_eq(rnic_last_refused(b.dev, "mpa_bad"), name_of(fds[11]));
	connect_ends();
	ck_assert_uint_eq(b.connected, 1);
	for (unsigned i = 0; i < 140; i++)
		close(fds[i]);
}

START_TEST(a_crc_error_is_reported_and_ends_the_link)
{
	struct siw_config c = config();
	static const uint8_t bad[] = { 0x00, 0x12, 0xc1, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 'a', 'b', 'c', 'd',
		1, 2, 3, 4 };

	raw_connect(&c, 0, 16384);
	post_recv(&b, 5, 0, 10);
	post(&b, RNIC_WR_WRITE, 6, 0, 0, 0, &b, 0);
	raw_send(bad, sizeof(bad));
	while (raw_next().ulp_ctrl != 0x47)
		raw_drop();
	raw.rx.pos -= (uint32_t)mpa_fpdu_len((size_t)raw.in[0] << 8 | raw.in[1]);
	expect_terminate(2, 0, 2);
	UNTIL(b.errors == 1);
	ck_assert_str_eq(b.why, "CRC error");
	check_wc(&b, 0, 6, RNIC_WC_WRITE, RNIC_WC_LOCAL_ERR);
	check_wc(&b, 1, 5, RNIC_WC_RECV, RNIC_WC_FLUSHED);
	struct siw_stats st = stats(&b);
	ck_assert_uint_eq(st.crc_errors, 1);
	ck_assert_uint_eq(st.terminates_sent, 1);
	raw_close();
}

/* Nothing may be said before the initiator's first good FPDU, not even that it was a bad one. */
START_TEST(a_bad_first_fpdu_gets_no_answer)
{
	struct siw_config c = config();
	static const uint8_t bad[20] = { 0x00, 0x0e, 0xc1, 0x40 };

	open_for_raw(&c);
	raw_open(&b, 0);
	struct mpa_pdata d = raw_pdata();
	raw_send_frame(raw_frame(MPA_REQUEST), &d);
	raw_reply(&d);
	raw_send(bad, sizeof(bad));
	UNTIL(raw_read(), raw.eof);
	ck_assert_uint_eq(raw.len, 0);
	UNTIL(b.failed == 1);
	ck_assert_str_eq(b.why, "CRC error");
	ck_assert_uint_eq(stats(&b).terminates_sent, 0);
	raw_close();
}

START_LOOP_TEST(protocol_errors_are_reported, 0, 4)
{
	static const struct {
		struct ddp_hdr h;
		size_t len;
		uint8_t layer, etype, code;
	} rows[] = {
		{ { .last = true, .ulp_ctrl = 0x43, .qn = 0, .msn = 1 }, 11, 1, 2, 5 },
		{ { .last = true, .ulp_ctrl = 0x43, .qn = 0, .msn = 2 }, 0, 1, 2, 3 },
		{ { .last = true, .ulp_ctrl = 0x48, .qn = 0, .msn = 1 }, 0, 0, 2, 6 },
		{ { .last = true, .ulp_ctrl = 0x43, .qn = 3, .msn = 1 }, 0, 1, 2, 1 },
	};
	struct siw_config c = config();

	raw_connect(&c, 0, 16384);
	post_recv(&b, 5, 0, 10);
	raw_fpdu(&rows[_i].h, "0123456789a", rows[_i].len);
	expect_terminate(rows[_i].layer, rows[_i].etype, rows[_i].code);
	UNTIL(b.errors == 1);
	ck_assert_str_eq(b.why, "iWARP protocol violation by the peer");
	raw_close();
}

/* A Read of our memory, larger than one segment, and the confirming Read of b in between. */
START_TEST(reads_are_served)
{
	struct siw_config c = config();
	struct ddp_hdr h = { .last = true, .ulp_ctrl = 0x41, .qn = 1, .msn = 1 };
	struct rdmap_read r = { .sink_stag = 9, .sink_to = 1000, .size = 5000 };
	uint8_t body[RDMAP_READ_LEN];
	size_t got = 0;

	c.fpdu_max = 600;
	raw_connect(&c, 0, 16384);
	fill(b.buf, BUF, 1);
	r.src_stag = b.mr->rkey;
	r.src_to = b.mr->addr + 17;
	rdmap_read_encode(&r, body);
	raw_fpdu(&h, body, sizeof(body));
	while (got < 5000) {
		h = raw_next();
		ck_assert_uint_eq(h.ulp_ctrl, 0x42);
		ck_assert_uint_eq(h.stag, 9);
		ck_assert_uint_eq(h.to, 1000 + got);
		ck_assert_uint_le(raw_ulpdu.len + DDP_TAGGED_LEN, 600);
		ck_assert_mem_eq(raw_ulpdu.ptr, b.buf + 17 + got, raw_ulpdu.len);
		got += raw_ulpdu.len;
		ck_assert_int_eq(h.last, got == 5000);
		raw_drop();
	}
	ck_assert_uint_eq(got, 5000);
	ck_assert_uint_eq(stats(&b).reads_served, 1);
	/* memory that is no more: RDMAP says so */
	r.src_stag ^= 0x10;
	rdmap_read_encode(&r, body);
	raw_fpdu(&(struct ddp_hdr){ .last = true, .ulp_ctrl = 0x41, .qn = 1, .msn = 2 }, body, sizeof(body));
	expect_terminate(0, 1, 0);
	raw_close();
}

/* A peer that names no FPDU size gets what fits a TCP segment. */
START_TEST(mulpdu_from_the_mss)
{
	struct siw_config c = config();
	int mss;
	socklen_t len = sizeof(mss);
	size_t total = 0;

	raw_connect(&c, 1400, 0);
	ck_assert_int_eq(getsockopt(raw.fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &len), 0);
	post(&b, RNIC_WR_WRITE, 1, 0, 0, 20000, &b, 0);
	while (total < 20000) {
		struct ddp_hdr h = raw_next();

		ck_assert_uint_eq(h.ulp_ctrl, 0x40);
		ck_assert_uint_le(mpa_fpdu_len(raw_ulpdu.len + DDP_TAGGED_LEN), (size_t)mss);
		ck_assert(h.last || raw_ulpdu.len > 1000);
		total += raw_ulpdu.len;
		raw_drop();
	}
	raw_close();
}

/* One byte at a time. */
START_TEST(any_segmentation_is_taken)
{
	struct siw_config c = config();
	uint8_t data[100], out[400];
	struct iovec iov[8];
	struct txq_payload p = { .cnt = 1, .len = sizeof(data), .v = { { data, sizeof(data) } } };
	size_t len = 0;

	raw_connect(&c, 0, 16384);
	post_recv(&b, 5, 0, 200);
	fill(data, sizeof(data), 6);
	txq_put(&raw.txq,
	    &(struct ddp_hdr){
	        .tagged = true, .last = true, .ulp_ctrl = 0x40, .stag = b.mr->rkey, .to = b.mr->addr + 500 },
	    &p);
	txq_put(&raw.txq, &(struct ddp_hdr){ .last = true, .ulp_ctrl = 0x43, .msn = 1 }, &p);
	for (unsigned i = 0, n = txq_gather(&raw.txq, iov, 8); i < n; i++) {
		memcpy(out + len, iov[i].iov_base, iov[i].iov_len);
		len += iov[i].iov_len;
	}
	for (size_t i = 0; i < len; i++) {
		raw_send(out + i, 1);
		turn_one(&b, 0);
	}
	UNTIL(b.wc_cnt == 1);
	ck_assert_uint_eq(b.wc[0].len, 100);
	ck_assert_mem_eq(b.buf, data, 100);
	ck_assert_mem_eq(b.buf + 500, data, 100);
	raw_close();
}

START_LOOP_TEST(responder_with_ird_0_hears_terminate_6, 0, 2)
{
	struct siw_config c = config();
	struct mpa_pdata d = raw_serve(&c);
	struct mpa_frame f = raw_frame(MPA_REPLY);

	if (_i == 0)
		f.enh.ird = 0;
	else
		f.enh.ord = (uint16_t)(c.ird + 1);
	raw_send_frame(f, &d);
	expect_terminate(2, 0, 6);
	raw_serve_end(_i == 0 ? "the peer's IRD is too small" : "the peer's ORD exceeds our limit");
}

START_LOOP_TEST(bad_replies, 0, 12)
{
	static const char alien[] = "the MPA Reply is not from the peer's link";
	static const char *const why[12] = { "malformed MPA Reply", "malformed MPA Reply", "MPA revision not supported",
		"MPA Reply does not match the Request (enhanced block)", alien, alien, alien, alien,
		"the peer closed the MPA connection without a reply", "rejected by the peer",
		"the peer did not answer the MPA Request in time", "the peer did not answer the MPA Request in time" };
	struct siw_config c = config();
	struct mpa_frame f = raw_frame(_i == 0 ? MPA_REQUEST : MPA_REPLY);

	c.connect_ms = _i < 10 ? 10000 : 1000; /* only the last two wait for it */
	struct mpa_pdata d = raw_serve(&c);
	switch (_i) {
	case 1:
		raw_send_frame(f, &d);
		raw_send("x", 1);
		break;
	case 0:
	case 2:
	case 3:
		f.rev = _i == 2 ? 3 : f.rev;
		f.flags = _i == 3 ? MPA_CRC : f.flags;
		raw_send_frame(f, &d);
		if (_i == 3)
			expect_terminate(2, 0, 5);
		break;
	case 4:
	case 5:
	case 6:
	case 7:
		d.qpn ^= _i == 5;
		d.from_qpn ^= _i == 6;
		d.recv_depth = _i == 7 ? 0 : d.recv_depth;
		raw_send_frame(f, _i == 4 ? NULL : &d);
		expect_terminate(2, 0, 5);
		break;
	case 8:
		shutdown(raw.fd, SHUT_WR);
		break;
	case 9:
		f.flags |= MPA_REJECT;
		f.enh.ird = 3;
		f.enh.ord = DEPTH_NONE;
		raw_send_frame(f, NULL);
		UNTIL(a.failed == 1);
		expect_depths(&a, 3, -1);
		break;
	case 10:
		raw_send("MPA ID Rep Frame", 16);
		break;
	default: /* nothing at all */
		break;
	}
	raw_serve_end(why[_i]);
}

/* Reply and first bytes of ours: the RTR is the first FPDU, then what was posted. */
START_LOOP_TEST(initiator_speaks_first, 0, 3)
{
	struct siw_config c = config();
	struct mpa_pdata d = raw_serve(&c);
	struct mpa_frame f = raw_frame(MPA_REPLY);

	f.enh.model = ENHANCED_P2P | (_i == 0 ? RTR_WRITE : _i == 1 ? RTR_READ : RTR_SEND);
	raw_send_frame(f, &d);
	UNTIL(a.connected == 1);
	post(&a, RNIC_WR_SEND, 1, RNIC_SOLICITED, 0, 10, &a, 0);
	struct ddp_hdr h = raw_next();
	ck_assert_uint_eq(h.ulp_ctrl, _i == 0 ? 0x40 : _i == 1 ? 0x41 : 0x43);
	ck_assert(h.last);
	if (_i == 2)
		ck_assert_uint_eq(h.msn, 1);
	ck_assert_uint_eq(raw_ulpdu.len, _i == 1 ? RDMAP_READ_LEN : 0);
	raw_drop();
	h = raw_next();
	ck_assert_uint_eq(h.ulp_ctrl, 0x45);
	ck_assert_uint_eq(h.msn, _i == 2 ? 2 : 1);
	raw_close();
	close(listener);
}

/* An accept queue that is full of descriptors does not lose the connection. */
START_TEST(out_of_descriptors)
{
	struct siw_config c = config();
	struct rlimit old;
	int spare = dup(0);

	open_for_raw(&c);
	ck_assert_int_ge(spare, 0);
	raw_open(&b, 0);
	getrlimit(RLIMIT_NOFILE, &old);
	struct rlimit tight = old;
	tight.rlim_cur = 3;
	setrlimit(RLIMIT_NOFILE, &tight);
	UNTIL(stats(&b).accept_pauses >= 2);
	setrlimit(RLIMIT_NOFILE, &old);
	{
		struct mpa_pdata d = raw_pdata();

		raw_send_frame(raw_frame(MPA_REQUEST), &d);
		ck_assert_uint_eq(raw_reply(&d).flags, MPA_ENHANCED | MPA_CRC);
	}
	close(spare);
	raw_close();
}

/* CRC off: a large Write is read straight into place, over older ones that were left where they arrived: in the buffer of its link and,
 * before the rest of it comes, in that of another one. */
START_TEST(a_write_straight_into_place_is_newer_than_what_was_left)
{
	static uint8_t old[100] = { 0x11 }, fresh[6000];
	static struct rnic_unit left[1];
	struct siw_config c = config();
	struct mpa_frame f = raw_frame(MPA_REQUEST);
	struct list_node buffer;
	struct iovec iov[8];
	uint8_t out[7000], *place;
	size_t len = 0;

	c.crc = false;
	f.flags = MPA_ENHANCED;
	open_for_raw(&c);
	raw_open(&b, 0);
	struct mpa_pdata d = raw_pdata();
	raw_send_frame(f, &d);
	ck_assert_uint_eq(raw_reply(&d).flags, MPA_ENHANCED);
	txq_start(&raw.txq, false, false);
	raw_fpdu(&rtr_write, "", 0);
	UNTIL(b.connected == 1);
	left[0].mem = b.buf;
	b.mr->deny_unit = BUF;
	b.mr->units = left;
	memset(fresh, 0x22, sizeof(fresh));
	struct ddp_hdr h = { .tagged = true, .last = true, .ulp_ctrl = 0x40, .stag = b.mr->rkey, .to = b.mr->addr };
	txq_put(&raw.txq, &h, &(struct txq_payload){ .cnt = 1, .len = sizeof(old), .v = { { old, sizeof(old) } } });
	txq_put(
	    &raw.txq, &h, &(struct txq_payload){ .cnt = 1, .len = sizeof(fresh), .v = { { fresh, sizeof(fresh) } } });
	for (unsigned i = 0, n = txq_gather(&raw.txq, iov, 8); i < n; i++) {
		memcpy(out + len, iov[i].iov_base, iov[i].iov_len);
		len += iov[i].iov_len;
	}
	raw_send(out, 3000);
	UNTIL(b.buf[2000] == 0x22);
	list_init(&buffer);
	ck_assert(!rnic_mr_refuses(b.mr, 5000, sizeof(old), false, old, &buffer, &place));
	raw_send(out + 3000, len - 3000);
	UNTIL(b.buf[sizeof(fresh) - 1] == 0x22);
	rnic_unit_place_all(&buffer);
	ck_assert_mem_eq(b.buf, fresh, sizeof(fresh));
	/* Both reads of it are one Write. */
	ck_assert_uint_eq(left[0].placed, 2 * sizeof(old) + sizeof(fresh));
	raw_close();
}
