/* The verbs device keeps to rnic.h: connecting, posting, completions, memory. */
#include "verbs_ends.h"

#include <sys/resource.h>

UNIT_FIXTURE(setup, teardown);

START_TEST(connects_writes_sends_both_ways)
{
	open_both();
	end_qp(&b, 64, 16);
	post_recv(&b, 7, 0, 100);
	connect_ends();
	ck_assert_uint_eq(a.connected, 1);
	ck_assert_uint_eq(b.connected, 1);
	fill(a.buf, 300000, 0);
	post(&a, RNIC_WR_WRITE, 1, 0, 0, 300000, &b, 1000);
	post(&a, RNIC_WR_SEND, 2, RNIC_SIGNALED | RNIC_SOLICITED, 5, 44, &b, 0);
	turns();
	ck_assert_uint_eq(a.wc_cnt, 1);
	check_wc(&a, 0, 2, RNIC_WC_SEND, RNIC_WC_OK);
	ck_assert_uint_eq(b.wc_cnt, 1);
	check_wc(&b, 0, 7, RNIC_WC_RECV, RNIC_WC_OK);
	ck_assert_uint_eq(b.wc[0].len, 44);
	ck_assert_mem_eq(b.buf, a.buf + 5, 44);
	ck_assert_mem_eq(b.buf + 1000, a.buf, 300000);
	post_recv(&a, 8, 500000, 100);
	post(&b, RNIC_WR_SEND, 3, RNIC_SIGNALED | RNIC_INLINE, 0, 44, &a, 0);
	turns();
	check_wc(&a, 1, 8, RNIC_WC_RECV, RNIC_WC_OK);
	check_wc(&b, 1, 3, RNIC_WC_SEND, RNIC_WC_OK);
	ck_assert_uint_eq(a.errors + b.errors, 0);
	ck_assert_uint_eq(fake.solicited, 1);
	ck_assert_uint_eq(fake.inlined, 1);
}

START_TEST(attributes_are_those_of_smcr)
{
	struct verbs_config c = config(0), cb = config(1);
	const struct fake_qp *qa, *qb;

	c.traffic_class = 104;
	c.service_level = 3;
	c.hop_limit = 9;
	c.timeout = 17;
	c.retry_cnt = 4;
	c.min_rnr_timer = 12;
	fake.devs[1].ports[0].mtu = IBV_MTU_1024;
	end_open(&a, &c);
	end_open(&b, &cb);
	connect_ends();
	qa = hw(&a);
	qb = hw(&b);
	ck_assert_uint_eq(qa->init.qp_access_flags, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	ck_assert_uint_eq(qa->init.port_num, 1);
	ck_assert_uint_eq(qa->init.pkey_index, 0);
	/* the smaller of both MTUs */
	ck_assert_int_eq(qa->rtr.path_mtu, IBV_MTU_1024);
	ck_assert_int_eq(qb->rtr.path_mtu, IBV_MTU_1024);
	ck_assert_uint_eq(qa->rtr.dest_qp_num, b.qp->qpn);
	ck_assert_uint_eq(qa->rtr.rq_psn, b.qp->psn);
	ck_assert_uint_eq(qa->rtr.max_dest_rd_atomic, 1);
	ck_assert_uint_eq(qa->rtr.min_rnr_timer, 12);
	ck_assert_uint_eq(qa->rtr.ah_attr.is_global, 1);
	ck_assert_mem_eq(qa->rtr.ah_attr.grh.dgid.raw, cb.gid.b, 16);
	ck_assert_uint_eq(qa->rtr.ah_attr.grh.sgid_index, 3);
	ck_assert_int_eq(rnic_query(a.dev).gid_type, RNIC_GID_ROCE_V2);
	ck_assert_uint_eq(qa->rtr.ah_attr.grh.hop_limit, 9);
	ck_assert_uint_eq(qa->rtr.ah_attr.grh.traffic_class, 104);
	ck_assert_uint_eq(qa->rtr.ah_attr.sl, 3);
	ck_assert_uint_eq(qa->rtr.ah_attr.port_num, 1);
	ck_assert_uint_eq(qa->rts.timeout, 17);
	ck_assert_uint_eq(qa->rts.retry_cnt, 4);
	ck_assert_uint_eq(qa->rts.rnr_retry, 7);
	ck_assert_uint_eq(qa->rts.sq_psn, a.qp->psn);
	ck_assert_uint_eq(qa->rts.max_rd_atomic, 1);
	ck_assert_uint_eq(qb->rts.timeout, 15);
	ck_assert_uint_eq(qb->rts.retry_cnt, 6);
	ck_assert_uint_lt(a.qp->psn, 1u << 24);
	ck_assert_uint_ne(a.qp->psn, b.qp->psn);
}

/* The same address stands in the table for both kinds of RoCE; the old kind is not routed. */
START_TEST(a_port_under_a_roce_v1_gid)
{
	struct verbs_config c = config(0), cb = config(1);

	c.gid_type = cb.gid_type = RNIC_GID_ROCE_V1;
	end_open(&a, &c);
	end_open(&b, &cb);
	connect_ends();
	ck_assert_int_eq(rnic_query(a.dev).gid_type, RNIC_GID_ROCE_V1);
	ck_assert_mem_eq(rnic_query(a.dev).gid.b, c.gid.b, 16);
	ck_assert_uint_eq(hw(&a)->rtr.ah_attr.grh.sgid_index, 2);
	ck_assert_uint_eq(hw(&a)->rtr.ah_attr.grh.hop_limit, 1);
}

START_TEST(the_active_side_speaks_when_it_is_asked_to)
{
	struct rnic_remote ra, rb;

	open_both();
	end_qp(&a, 8, 8);
	end_qp(&b, 8, 8);
	ra = remote(&a);
	rb = remote(&b);
	ck_assert_int_eq(try_post(&a, RNIC_WR_WRITE, 1, 0, 0, 1, &b, 0), -ENOTCONN);
	ck_assert_int_eq(a.dev->ops->qp_rts(a.qp), -ENOTCONN);
	ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &rb), 0);
	ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &rb), -EINVAL); /* once */
	UNTIL(a.connected == 1);
	ck_assert_int_eq(hw(&a)->qp.state, IBV_QPS_RTR);
	ck_assert_int_eq(try_post(&a, RNIC_WR_WRITE, 1, 0, 0, 1, &b, 0), -ENOTCONN);
	ck_assert_uint_eq(room(&a).wrs, 0);
	/* the passive side may at once */
	ck_assert_int_eq(b.dev->ops->qp_connect(b.qp, RNIC_PASSIVE, &ra), 0);
	UNTIL(b.connected == 1);
	post_recv(&a, 5, 0, 64);
	post(&b, RNIC_WR_SEND, 6, RNIC_SIGNALED | RNIC_INLINE, 0, 44, &a, 0);
	turns();
	check_wc(&a, 0, 5, RNIC_WC_RECV, RNIC_WC_OK);
	ck_assert_int_eq(a.dev->ops->qp_rts(a.qp), 0);
	ck_assert_int_eq(a.dev->ops->qp_rts(a.qp), 0);
	post(&a, RNIC_WR_WRITE, 7, RNIC_SIGNALED, 0, 1, &b, 0);
	turns();
	check_wc(&a, 1, 7, RNIC_WC_WRITE, RNIC_WC_OK);
}

START_TEST(a_transition_to_rts_that_fails_is_reported)
{
	struct rnic_remote rb;

	open_both();
	end_qp(&a, 8, 8);
	end_qp(&b, 8, 8);
	rb = remote(&b);
	hw(&a)->rts_err = EINVAL;
	ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &rb), 0);
	UNTIL(a.connected == 1);
	ck_assert_int_eq(a.dev->ops->qp_rts(a.qp), -EINVAL);
	/* the passive side hears of it as of any other failure */
	hw(&b)->rts_err = EINVAL;
	rb = remote(&a);
	ck_assert_int_eq(b.dev->ops->qp_connect(b.qp, RNIC_PASSIVE, &rb), 0);
	UNTIL(b.failed == 1);
	ck_assert_str_eq(b.why, "the RDMA device rejected the connection's attributes");
	ck_assert_uint_eq(b.connected, 0);
}

START_TEST(a_far_end_out_of_range_is_refused)
{
	struct rnic_remote r;

	open_both();
	end_qp(&a, 8, 8);
	end_qp(&b, 8, 8);
	for (unsigned i = 0; i < 4; i++) {
		r = remote(&b);
		if (i == 0)
			r.mtu_code = 0;
		if (i == 1)
			r.mtu_code = 6;
		if (i == 2)
			r.qpn = 1u << 24;
		if (i == 3)
			r.psn = 1u << 24;
		ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &r), -EINVAL);
	}
}

START_TEST(query_tells_the_device)
{
	struct rnic_info info;
	const struct verbs_port *p;

	open_both();
	end_qp(&a, 8, 8);
	info = rnic_query(a.dev);
	ck_assert_str_eq(info.name, "verbs0");
	ck_assert_str_eq(info.provider, "rxe");
	ck_assert_int_eq(info.transport, RNIC_TRANSPORT_ROCE);
	ck_assert_int_eq(info.port, RNIC_PORT_UP);
	ck_assert_uint_eq(info.mpa_port, 0);
	ck_assert_uint_eq(info.mtu_code, 5);
	ck_assert_mem_eq(info.gid.b, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\1", 16);
	ck_assert_uint_eq(info.max_qp, 1000);
	ck_assert_uint_eq(info.max_mr, 10000);
	ck_assert_uint_eq(info.max_sq, 16383);
	ck_assert_uint_eq(info.max_rq, 16384);
	ck_assert_uint_eq(info.max_sge, RNIC_SGE_MAX);
	ck_assert_uint_ge(info.max_inline, 44);
	ck_assert_uint_eq(info.qp_cnt, 1);
	ck_assert_uint_eq(info.mr_cnt, 1);
	ck_assert_uint_eq(info.mr_bytes, BUF);
	ck_assert_uint_eq(a.mr->addr, (uintptr_t)a.buf);
	p = verbs_port_of(a.dev);
	ck_assert_str_eq(p->dev, "fake0");
	ck_assert_uint_eq(p->gid_cnt, 4);
	ck_assert(verbs_gid_present(a.dev));
	ck_assert_int_eq(a.dev->ops->deadline(a.dev), INT64_MAX);
}

/* -- posting -- */

START_TEST(a_turn_rings_once)
{
	open_connected();
	for (unsigned i = 0; i < 10; i++)
		post(&a, RNIC_WR_WRITE, i, 0, 0, 10, &b, 0);
	ck_assert_uint_eq(hw(&a)->sq_head, 0);
	a.dev->ops->flush(a.dev);
	ck_assert_uint_eq(hw(&a)->sq_head, 10);
	ck_assert_uint_eq(stats(&a).doorbells, 1);
	a.dev->ops->flush(a.dev);
	ck_assert_uint_eq(stats(&a).doorbells, 1);
	ck_assert_uint_eq(stats(&a).writes_posted, 10);
}

/* A copy is taken when it is posted, not when the card gets it. */
START_TEST(inline_data_is_copied_at_once)
{
	open_connected();
	post_recv(&b, 1, 0, 64);
	post_recv(&b, 2, 64, 64);
	memset(a.buf, 'x', 44);
	post(&a, RNIC_WR_SEND, 1, RNIC_INLINE, 0, 44, &b, 0);
	memset(a.buf, 'y', 44);
	post(&a, RNIC_WR_SEND, 2, RNIC_INLINE | RNIC_SIGNALED, 0, 44, &b, 0);
	memset(a.buf, 'z', 44);
	turns();
	ck_assert_uint_eq(b.wc_cnt, 2);
	ck_assert_int_eq(b.buf[0], 'x');
	ck_assert_int_eq(b.buf[43], 'x');
	ck_assert_int_eq(b.buf[64], 'y');
}

/* Its bytes go with the request, in one piece, wherever they come from; those of a longer one the card fetches. */
START_TEST(a_short_write_is_inline)
{
	struct rnic_send_wr wr = {
		.op = RNIC_WR_WRITE,
		.sge_cnt = 2,
	};

	open_connected();
	for (size_t i = 0; i < 200; i++)
		a.buf[i] = (uint8_t)(i + 1);
	wr.sge[0] = (struct rnic_sge){ .mr = a.mr, .ptr = a.buf + 100, .len = 3 };
	wr.sge[1] = (struct rnic_sge){ .mr = a.mr, .ptr = a.buf, .len = 61 };
	wr.raddr = b.mr->addr + 1000;
	wr.rkey = b.mr->rkey;
	ck_assert_int_eq(a.dev->ops->post_send(a.qp, &wr), 0);
	turns();
	ck_assert_uint_eq(fake.inlined, 1);
	ck_assert_mem_eq(b.buf + 1000, a.buf + 100, 3);
	ck_assert_mem_eq(b.buf + 1003, a.buf, 61);
	wr.sge[1].len++;
	ck_assert_int_eq(a.dev->ops->post_send(a.qp, &wr), 0);
	turns();
	ck_assert_uint_eq(fake.inlined, 1);
	ck_assert_mem_eq(b.buf + 1003, a.buf, 62);
}

/* More than one chain, over the ends of all rings. */
START_TEST(a_card_without_inline_data_gets_it_from_memory)
{
	uint8_t msg[44];

	fake.devs[0].max_inline = 16;
	open_connected();
	ck_assert_uint_ge(rnic_query(a.dev).max_inline, 44);
	ck_assert_uint_eq(rnic_query(a.dev).mr_cnt, 1); /* those of its user */
	for (unsigned round = 0; round < 40; round++) {
		for (unsigned i = 0; i < 16; i++)
			post_recv(&b, i, i * 64, 64);
		for (unsigned i = 0; i < 16; i++) {
			memset(a.buf, (int)(round + i), 44);
			post(&a, RNIC_WR_SEND, i, RNIC_INLINE | (i == 15 ? RNIC_SIGNALED : 0u), 0, 44, &b, 0);
		}
		memset(a.buf, 0xee, 44);
		a.wc_cnt = b.wc_cnt = 0;
		turns();
		ck_assert_uint_eq(a.wc_cnt, 1);
		ck_assert_uint_eq(b.wc_cnt, 16);
		for (unsigned i = 0; i < 16; i++) {
			memset(msg, (int)(round + i), 44);
			ck_assert_mem_eq(b.buf + i * 64, msg, 44);
		}
	}
	ck_assert_uint_eq(fake.inlined, 0);
}

START_TEST(requests_gather)
{
	struct rnic_send_wr wr = {
		.wr_id = 4,
		.op = RNIC_WR_WRITE,
		.flags = RNIC_SIGNALED,
		.sge_cnt = RNIC_SGE_MAX,
	};

	open_connected();
	fill(a.buf, 4000, 3);
	for (unsigned i = 0; i < RNIC_SGE_MAX; i++)
		wr.sge[i] = (struct rnic_sge){ .mr = a.mr, .ptr = a.buf + 3000 - i * 1000, .len = 1000 };
	wr.raddr = b.mr->addr;
	wr.rkey = b.mr->rkey;
	ck_assert_int_eq(a.dev->ops->post_send(a.qp, &wr), 0);
	turns();
	for (unsigned i = 0; i < RNIC_SGE_MAX; i++)
		ck_assert_mem_eq(b.buf + i * 1000, a.buf + 3000 - i * 1000, 1000);
	wr.sge_cnt = RNIC_SGE_MAX + 1;
	ck_assert_int_eq(a.dev->ops->post_send(a.qp, &wr), -EINVAL);
}

START_TEST(only_own_memory_may_be_named)
{
	struct rnic_pd *pd;
	struct rnic_mr *mr, *mine;
	struct rnic_recv_wr rwr;

	open_connected();
	ck_assert_int_eq(try_post(&a, RNIC_WR_WRITE, 1, 0, BUF - 9, 10, &b, 0), -EINVAL);
	ck_assert_int_eq(try_recv(&a, 1, BUF - 9, 10), -EINVAL);
	ck_assert_int_eq(try_post(&a, RNIC_WR_SEND, 1, RNIC_INLINE, 0, 65, &b, 0), -EINVAL);
	ck_assert_int_eq(a.dev->ops->pd_alloc(a.dev, &pd), 0);
	ck_assert_int_eq(a.dev->ops->mr_reg(pd, a.buf, 100, 0, &mr), 0);
	mine = a.mr;
	a.mr = mr; /* of another domain */
	ck_assert_int_eq(try_post(&a, RNIC_WR_WRITE, 1, 0, 0, 10, &b, 0), -EINVAL);
	ck_assert_int_eq(try_recv(&a, 1, 0, 10), -EINVAL);
	a.mr = mine;
	rwr = (struct rnic_recv_wr){ .ptr = a.buf, .len = 1 };
	ck_assert_int_eq(a.dev->ops->post_recv(a.qp, &rwr, 1), -EINVAL);
	a.dev->ops->mr_dereg(mr);
	a.dev->ops->pd_free(pd);
	ck_assert_uint_eq(room(&a).wrs, 64);
	ck_assert_uint_eq(hw(&a)->rq_head, 0);
}

START_TEST(room_is_the_send_queue)
{
	open_connected();
	hw(&a)->hold = true;
	for (unsigned i = 0; i < 64; i++) {
		ck_assert_uint_eq(room(&a).wrs, 64 - i);
		ck_assert_uint_eq(room(&a).sends, 64 - i);
		post(&a, RNIC_WR_WRITE, i, i == 63 ? RNIC_SIGNALED : 0u, 0, 10, &b, 0);
	}
	ck_assert_int_eq(try_post(&a, RNIC_WR_WRITE, 1, 0, 0, 10, &b, 0), -ENOBUFS);
	turns();
	ck_assert_uint_eq(a.rooms, 0);
	hw(&a)->hold = false;
	turns();
	ck_assert_uint_eq(a.rooms, 1);
	ck_assert_uint_eq(room(&a).wrs, 64);
	ck_assert_uint_eq(a.wc_cnt, 1);
	/* and none without need */
	post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 10, &b, 0);
	turns();
	ck_assert_uint_eq(a.rooms, 1);
}

START_TEST(room_is_bytes_too)
{
	size_t most;
	unsigned n = 0;

	open_connected();
	hw(&a)->hold = true;
	most = room(&a).bytes;
	ck_assert_uint_ge(most, 1u << 20);
	for (; room(&a).bytes > 0; n++)
		post(&a, RNIC_WR_WRITE, n, 0, 0, 200000, &b, 0);
	ck_assert_uint_eq(n, most / 200000 + 1);
	/* messages go all the same, even when none of the writes asked for a completion */
	post(&a, RNIC_WR_SEND, n, RNIC_INLINE, 0, 44, &b, 0);
	post_recv(&b, 1, 0, 64);
	hw(&a)->hold = false;
	turns();
	ck_assert_uint_eq(a.rooms, 1);
	ck_assert_uint_eq(a.wc_cnt, 0);
	ck_assert_uint_eq(room(&a).bytes, most);
}

/* Nobody ever asks for a completion: the queue is not stuck, and nothing is reported. */
START_TEST(unsignaled_requests_do_not_fill_the_queue_for_good)
{
	uint32_t before;

	open_connected();
	before = fake.signaled;
	for (unsigned i = 0; i < 1000; i++) {
		post(&a, RNIC_WR_WRITE, i, 0, 0, 10, &b, 0);
		if (i % 16 == 15)
			turns();
	}
	ck_assert_uint_eq(a.wc_cnt, 0);
	ck_assert_uint_lt(fake.signaled - before, 1000 / 16);
}

START_TEST(receives_are_bounded_and_all_or_none)
{
	struct rnic_recv_wr wr[64];

	open_both();
	end_qp(&b, 8, 40);
	for (unsigned i = 0; i < 64; i++)
		wr[i] = (struct rnic_recv_wr){ .wr_id = i, .mr = b.mr, .ptr = b.buf + i * 64, .len = 64 };
	ck_assert_int_eq(b.dev->ops->post_recv(b.qp, wr, 41), -ENOBUFS);
	ck_assert_uint_eq(hw(&b)->rq_head, 0);
	wr[38].len = BUF;
	ck_assert_int_eq(b.dev->ops->post_recv(b.qp, wr, 39), -EINVAL);
	ck_assert_uint_eq(hw(&b)->rq_head, 0);
	wr[38].len = 64;
	ck_assert_int_eq(b.dev->ops->post_recv(b.qp, wr, 39), 0);
	ck_assert_int_eq(b.dev->ops->post_recv(b.qp, wr, 2), -ENOBUFS);
	ck_assert_int_eq(b.dev->ops->post_recv(b.qp, wr + 39, 1), 0);
	ck_assert_uint_eq(hw(&b)->rq_head, 40);
	connect_ends();
	for (unsigned i = 0; i < 40; i++) {
		a.buf[0] = (uint8_t)i;
		post(&a, RNIC_WR_SEND, i, RNIC_INLINE | RNIC_SIGNALED, 0, 44, &b, 0);
	}
	turns();
	ck_assert_uint_eq(b.wc_cnt, 40);
	for (unsigned i = 0; i < 40; i++) {
		check_wc(&b, i, i, RNIC_WC_RECV, RNIC_WC_OK);
		ck_assert_uint_eq(b.buf[i * 64], i);
	}
}

/* -- completions -- */

/* One at a time, and never is anything left behind without a word of it. */
START_TEST(completions_come_however_few_are_taken)
{
	struct rnic_wc wc[1];
	unsigned got = 0;

	open_connected();
	for (unsigned i = 0; i < 50; i++)
		post(&a, RNIC_WR_WRITE, i, i % 3 == 0 ? RNIC_SIGNALED : 0u, 0, 10, &b, 0);
	a.dev->ops->flush(a.dev);
	fake_run();
	poll_loop_turn(&a.loop, &a.dev, 1, 0);
	while (a.dev->ops->deadline(a.dev) <= poll_loop_now()) {
		unsigned n = a.dev->ops->poll(a.dev, wc, 1);

		ck_assert_uint_le(n, 1);
		if (n == 1)
			ck_assert_uint_eq(wc[0].wr_id, got++ * 3);
	}
	ck_assert_uint_eq(got, 17);
}

/* Events are acknowledged in batches, and the rest before the CQ goes (which the fake looks at). */
START_TEST(events_are_acknowledged_in_batches)
{
	open_connected();
	for (unsigned i = 0; i < 200; i++) {
		post(&a, RNIC_WR_WRITE, i, RNIC_SIGNALED, 0, 10, &b, 0);
		turn();
		turn();
	}
	ck_assert_uint_eq(a.wc_cnt, 200);
	ck_assert_uint_ge(stats(&a).wakeups, 100);
	ck_assert_uint_ge(fake.acks, 1);
	ck_assert_uint_le(fake.acks, 4);
}

/* The wire moves just before the CQ is armed, too late for an event: it is looked at once more. */
START_TEST(what_comes_while_it_is_armed_is_not_lost)
{
	open_connected();
	post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 10, &b, 0);
	turns();
	ck_assert_uint_eq(a.wc_cnt, 1);
	for (unsigned i = 2; i < 20; i += 2) {
		post(&a, RNIC_WR_WRITE, i, RNIC_SIGNALED, 0, 10, &b, 0);
		a.dev->ops->flush(a.dev);
		fake_run(); /* an event; while it is worked off, the next one completes */
		post(&a, RNIC_WR_WRITE, i + 1, RNIC_SIGNALED, 0, 10, &b, 0);
		fake.late = true;
		turns();
		fake.late = false;
		ck_assert_uint_eq(a.wc_cnt, i + 1);
	}
}

START_TEST(it_sleeps_when_nothing_is_there)
{
	uint64_t polls;

	open_connected();
	post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 10, &b, 0);
	turns();
	ck_assert_uint_eq(a.wc_cnt, 1);
	polls = stats(&a).polls;
	turns();
	ck_assert_uint_eq(stats(&a).polls, polls);
	ck_assert_int_eq(a.dev->ops->deadline(a.dev), INT64_MAX);
}

START_TEST(busy_polling_lasts_as_long_as_configured)
{
	struct verbs_config ca = config(0), cb = config(1);
	struct rnic_wc wc[8];
	int64_t t;
	uint64_t woken;

	ca.busy_poll_us = 500;
	end_open(&a, &ca);
	end_open(&b, &cb);
	connect_ends();
	post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 10, &b, 0);
	turn();
	UNTIL(a.wc_cnt == 1);
	t = poll_loop_now();
	a.dev->ops->progress(a.dev, t);
	post(&a, RNIC_WR_WRITE, 2, RNIC_SIGNALED, 0, 10, &b, 0);
	a.dev->ops->flush(a.dev);
	fake_run();
	woken = stats(&a).wakeups;
	ck_assert_int_le(a.dev->ops->deadline(a.dev), t);
	ck_assert_uint_eq(a.dev->ops->poll(a.dev, wc, 8), 1); /* without any event */
	ck_assert_uint_eq(stats(&a).wakeups, woken);
	a.dev->ops->progress(a.dev, t + 499000);
	ck_assert_uint_eq(a.dev->ops->poll(a.dev, wc, 8), 0);
	ck_assert_int_le(a.dev->ops->deadline(a.dev), t + 499000);
	a.dev->ops->progress(a.dev, t + 500000);
	ck_assert_uint_eq(a.dev->ops->poll(a.dev, wc, 8), 0);
	ck_assert_int_eq(a.dev->ops->deadline(a.dev), INT64_MAX);
	/* it hears again */
	post(&a, RNIC_WR_WRITE, 3, RNIC_SIGNALED, 0, 10, &b, 0);
	a.wc_cnt = 0;
	turns();
	ck_assert_uint_eq(a.wc_cnt, 1);
}

/* A completion that comes between the last look and the arming is not lost: a hundred turns in all interleavings that the
 * fake's wire allows. */
START_TEST(traffic_both_ways)
{
	unsigned sent[2] = { 0 }, got[2] = { 0 };

	open_both();
	end_qp(&a, 32, 16);
	end_qp(&b, 32, 16);
	for (unsigned i = 0; i < 16; i++) {
		post_recv(&a, i, BUF / 2 + i * 64, 64);
		post_recv(&b, i, BUF / 2 + i * 64, 64);
	}
	connect_ends();
	a.wc_cnt = b.wc_cnt = 0;
	while (got[0] < 3000 || got[1] < 3000) {
		for (unsigned s = 0; s < 2; s++) {
			struct end *e = s == 0 ? &a : &b;

			while (sent[s] < 3000 && room(e).wrs > 1 && rng_below(&rng, 8) != 0) {
				post(e, RNIC_WR_WRITE, 1000, 0, 0, 100, s == 0 ? &b : &a, 0);
				memcpy(e->buf, &sent[s], 4);
				post(e, RNIC_WR_SEND, 1001, RNIC_INLINE | RNIC_SOLICITED | RNIC_SIGNALED, 0, 44, e, 0);
				sent[s]++;
			}
		}
		if (rng_below(&rng, 2) != 0)
			fake_run();
		turn_one(rng_below(&rng, 2) != 0 ? &a : &b, 0);
		for (unsigned s = 0; s < 2; s++) {
			struct end *e = s == 0 ? &a : &b;

			for (unsigned i = 0; i < e->wc_cnt; i++) {
				unsigned value;

				ck_assert_int_eq(e->wc[i].status, RNIC_WC_OK);
				if (e->wc[i].op != RNIC_WC_RECV)
					continue;
				memcpy(&value, e->buf + BUF / 2 + e->wc[i].wr_id * 64, 4);
				ck_assert_uint_eq(value, got[s]++);
				post_recv(e, e->wc[i].wr_id, BUF / 2 + e->wc[i].wr_id * 64, 64);
			}
			e->wc_cnt = 0;
		}
	}
	ck_assert_uint_eq(a.errors + b.errors, 0);
}

/* -- limits and failures of calls -- */

START_TEST(queues_keep_to_the_cards_limits)
{
	struct rnic_qp *none = (struct rnic_qp *)(void *)&rng, *qp = none, *made[3];
	struct rnic_qp_attr attr = { .sq_depth = 100, .rq_depth = 100 };
	struct verbs_config c = config(0);

	fake.devs[0].attr.max_qp_wr = 101;
	fake.devs[0].attr.max_cqe = 201;
	fake.devs[0].attr.max_sge = 2;
	c.max_qp = 3;
	end_open(&a, &c);
	ck_assert_uint_eq(rnic_query(a.dev).max_sq, 100);
	ck_assert_uint_eq(rnic_query(a.dev).max_rq, 100);
	ck_assert_uint_eq(rnic_query(a.dev).max_sge, 2);
	ck_assert_uint_eq(rnic_query(a.dev).max_qp, 3);
	for (unsigned i = 0; i < 4; i++) {
		static const struct rnic_qp_attr bad[] = { { NULL, 101, 100, 0, NULL }, { NULL, 0, 100, 0, NULL },
			{ NULL, 100, 101, 0, NULL }, { NULL, 100, 0, 0, NULL } };

		ck_assert_int_eq(a.dev->ops->qp_create(a.pd, &bad[i], &qp), -EINVAL);
	}
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(a.dev->ops->qp_create(a.pd, &attr, &made[i]), 0);
	ck_assert_int_eq(a.dev->ops->qp_create(a.pd, &attr, &qp), -ENOSPC);
	ck_assert_ptr_eq(qp, none);
	ck_assert_uint_eq(rnic_query(a.dev).qp_cnt, 3);
	for (unsigned i = 0; i < 3; i++)
		a.dev->ops->qp_destroy(made[i]);
	UNTIL(a.freed == 3);
	ck_assert_uint_eq(rnic_query(a.dev).qp_cnt, 0);
	end_close(&a);
	fake_check_clean();
}

/* Whatever call fails while a device is opened: an error with words, nothing left behind, the output untouched. */
START_TEST(opening_fails_cleanly)
{
	struct verbs_config c = config(0);
	struct poll_loop loop;
	struct rnic_loop l;
	uint32_t k;

	poll_loop_init(&loop);
	l = poll_loop_rnic(&loop);
	for (k = 0; k < 50; k++) {
		struct rnic_dev *dev = (struct rnic_dev *)(void *)&rng;
		const char *why = NULL;
		int rc;

		fake.fail_call = k;
		fake.fail_call_err = EIO;
		rc = verbs_open(&c, &l, &rng, &dev, &why);
		if (fake.fail_call != FAKE_NEVER) { /* beyond the last call */
			ck_assert_int_eq(rc, 0);
			rnic_end(dev);
			fake_check_clean();
			break;
		}
		if (rc == 0) { /* it does without: inline data */
			rnic_end(dev);
			continue;
		}
		ck_assert_int_eq(rc, -EIO);
		ck_assert_ptr_eq(dev, (struct rnic_dev *)(void *)&rng);
		ck_assert_ptr_nonnull(why);
		ck_assert_uint_gt(strlen(why), 5);
		fake_check_clean();
	}
	ck_assert_uint_ge(k, 5);
	ck_assert_uint_lt(k, 50);
	poll_loop_fini(&loop);
}

START_TEST(making_things_fails_cleanly)
{
	const struct rnic_qp_attr attr = { .sq_depth = 8, .rq_depth = 8 };
	struct rnic_qp *qp = (struct rnic_qp *)(void *)&rng;
	struct rnic_pd *pd = (struct rnic_pd *)(void *)&rng;
	struct rnic_mr *mr = (struct rnic_mr *)(void *)&rng;

	fake.devs[0].max_inline = 0; /* there is one thing more to make */
	open_both();
	for (uint32_t k = 0; k < 3; k++) {
		fake.fail_call = k;
		fake.fail_call_err = ENOMEM;
		ck_assert_int_eq(a.dev->ops->qp_create(a.pd, &attr, &qp), -ENOMEM);
		ck_assert_uint_eq(rnic_query(a.dev).qp_cnt, 0);
		ck_assert_int_eq(fake_live(&fake.qp_cnt) + fake.cq_cnt, 0);
		ck_assert_int_eq(fake_live(&fake.mr_cnt), 2);
	}
	fake.fail_call = 0;
	ck_assert_int_eq(a.dev->ops->pd_alloc(a.dev, &pd), -ENOMEM);
	fake.fail_call = 0;
	ck_assert_int_eq(a.dev->ops->mr_reg(a.pd, a.buf, 100, 0, &mr), -ENOMEM);
	ck_assert_int_eq(a.dev->ops->mr_reg(a.pd, a.buf, 0, 0, &mr), -EINVAL);
	ck_assert_int_eq(a.dev->ops->mr_reg(a.pd, NULL, 10, 0, &mr), -EINVAL);
	ck_assert_uint_eq(rnic_query(a.dev).mr_cnt, 1);
	ck_assert_ptr_eq(qp, &rng);
	ck_assert_ptr_eq(pd, &rng);
	ck_assert_ptr_eq(mr, &rng);
	/* and then it works */
	end_qp(&a, 8, 8);
}

START_TEST(remote_access_is_what_was_asked_for)
{
	struct rnic_mr *ours;

	open_connected();
	ck_assert_int_eq(b.dev->ops->mr_reg(b.pd, b.buf, 100, RNIC_ACCESS_LOCAL, &ours), 0);
	ck_assert_uint_eq(rnic_query(b.dev).mr_bytes, BUF + 100);
	b.dev->ops->mr_dereg(b.mr);
	b.mr = ours;
	post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 10, &b, 0);
	turns();
	check_wc(&a, 0, 1, RNIC_WC_WRITE, RNIC_WC_REMOTE_ERR);
	ck_assert_str_eq(a.why, "the peer refused a write: no access to its memory");
	ck_assert_uint_eq(b.errors, 1);
	ck_assert_str_eq(b.why, "remote access violation by the peer");
}

START_TEST(opening_says_what_is_wrong)
{
	struct verbs_config c;
	struct poll_loop loop;
	struct rnic_loop l;
	struct rnic_dev *dev;
	const char *why;

	poll_loop_init(&loop);
	l = poll_loop_rnic(&loop);
#define EXPECT(rc, text)                                                    \
	do {                                                                \
		ck_assert_int_eq(verbs_open(&c, &l, &rng, &dev, &why), rc); \
		ck_assert_str_eq(why, text);                                \
		fake_check_clean();                                         \
	} while (0)
	c = config(0);
	(void)snprintf(c.dev, sizeof(c.dev), "mlx5_9");
	EXPECT(-ENODEV, "no RDMA device has this name");
	c = config(0);
	c.port = 2;
	EXPECT(-EINVAL, "the RDMA device has no such port");
	c = config(0);
	c.gid.b[15] = 77;
	EXPECT(-EADDRNOTAVAIL, "the port does not have this GID");
	c = config(0);
	c.gid_type = RNIC_GID_IB;
	EXPECT(-EADDRNOTAVAIL, "the port does not have this GID");
	c = config(0);
	fake.list_err = ENOSYS;
	EXPECT(-ENOSYS, "the kernel has no RDMA support (module ib_uverbs)");
	fake.list_err = 0;
	fake.devs[0].open_err = EACCES;
	EXPECT(-EACCES, "the RDMA device files (/dev/infiniband/uverbs*) may not be opened");
	fake.devs[0].open_err = 0;
	fake.devs[0].ports[0].link_layer = IBV_LINK_LAYER_INFINIBAND;
	EXPECT(-EOPNOTSUPP, "InfiniBand link layer: SMC-R is for RoCE");
	fake_reset();
	c.retry_cnt = 7; /* unlimited on rxe */
	EXPECT(-EINVAL, "retry count");
	c = config(0);
	c.timeout = 0;
	EXPECT(-EINVAL, "timeout");
	c.timeout = 32;
	EXPECT(-EINVAL, "timeout");
	c = config(0);
	c.service_level = 16;
	EXPECT(-EINVAL, "service level");
	c = config(0);
	c.min_rnr_timer = 32;
	EXPECT(-EINVAL, "RNR timer");
	c = config(0);
	c.hop_limit = 0;
	EXPECT(-EINVAL, "hop limit");
	c = config(0);
	c.port = 0;
	EXPECT(-EINVAL, "port");
	c = config(0);
	c.max_qp = 0;
	EXPECT(-EINVAL, "queue pairs");
	poll_loop_fini(&loop);
}

START_TEST(the_memlock_limit_is_named)
{
	struct rlimit old, low = { .rlim_cur = 65536 };
	struct verbs_config c = config(0);
	struct poll_loop loop;
	struct rnic_loop l;
	struct rnic_dev *dev;
	const char *why;

	ck_assert_int_eq(getrlimit(RLIMIT_MEMLOCK, &old), 0);
	low.rlim_max = old.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &low), 0);
	poll_loop_init(&loop);
	l = poll_loop_rnic(&loop);
	fake.fail_call = 2; /* the first thing that pins memory */
	fake.fail_call_err = ENOMEM;
	ck_assert_int_eq(verbs_open(&c, &l, &rng, &dev, &why), -ENOMEM);
	ck_assert_ptr_nonnull(strstr(why, "RLIMIT_MEMLOCK"));
	ck_assert_ptr_nonnull(strstr(why, "LimitMEMLOCK=infinity"));
	fake_check_clean();
	poll_loop_fini(&loop);
	(void)setrlimit(RLIMIT_MEMLOCK, &old);
}

/* Whatever it is registered for: the engine only sees that it failed, the log gets the words. */
START_TEST(trouble_with_memory_is_reported_now_and_then)
{
	struct rlimit old, low = { .rlim_cur = 65536 };
	const struct rnic_qp_attr attr = { .sq_depth = 8, .rq_depth = 8 };
	struct rnic_qp *qp;
	struct rnic_mr *mr;

	ck_assert_int_eq(getrlimit(RLIMIT_MEMLOCK, &old), 0);
	low.rlim_max = old.rlim_max;
	open_both();
	turns();
	ck_assert_uint_eq(a.troubles, 0);
	fake.reg_mr_err = ENOSPC;
	ck_assert_int_eq(a.dev->ops->mr_reg(a.pd, a.buf, 10, 0, &mr), -ENOSPC);
	ck_assert_int_le(a.dev->ops->deadline(a.dev), poll_loop_now());
	turns();
	ck_assert_uint_eq(a.troubles, 1);
	ck_assert_str_eq(a.why, "the RDMA device cannot register more memory");
	ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &low), 0);
	fake.reg_mr_err = ENOMEM;
	for (unsigned i = 0; i < 5; i++) {
		ck_assert_int_eq(a.dev->ops->mr_reg(a.pd, a.buf, 10, 0, &mr), -ENOMEM);
		turns();
	}
	ck_assert_uint_eq(a.troubles, 2);
	ck_assert_ptr_nonnull(strstr(a.why, "RLIMIT_MEMLOCK"));
	ck_assert_uint_lt(strlen(a.why), 128); /* struct smcr_log */
	a.dev->ops->progress(a.dev, poll_loop_now() + 61000000000);
	ck_assert_int_eq(a.dev->ops->mr_reg(a.pd, a.buf, 10, 0, &mr), -ENOMEM);
	collect(&a);
	ck_assert_uint_eq(a.troubles, 3);
	(void)setrlimit(RLIMIT_MEMLOCK, &old);
	fake.fail_call = 0;
	fake.fail_call_err = EIO;
	ck_assert_int_eq(a.dev->ops->qp_create(a.pd, &attr, &qp), -EIO);
	collect(&a);
	ck_assert_uint_eq(a.troubles, 4);
	ck_assert_str_eq(a.why, "the RDMA device cannot create more queue pairs");
}

START_TEST(routes_tell_which_peers_are_reached)
{
	struct verbs_config c = config(0);
	struct rnic_gid to = { 0 };
	struct rnic_dev *dev;

	/* The GID of an address of this machine, on its loopback interface. */
	fake_gid(&fake.devs[0].ports[0], 1, 4, IBV_GID_TYPE_ROCE_V2, 1, "::ffff:127.0.0.1");
	c.gid.b[12] = 127;
	c.gid.b[15] = 1;
	end_open(&a, &c);
	dev = a.dev;
	memcpy(to.b, c.gid.b, 16);
	to.b[15] = 2;
	ck_assert_int_eq(dev->ops->reaches(dev, &to), RNIC_REACH_DIRECT);
	memset(to.b, 0, 16); /* another family */
	to.b[0] = 0x20;
	ck_assert_int_eq(dev->ops->reaches(dev, &to), RNIC_REACH_NONE);
	end_close(&a);
	fake_check_clean();
}
