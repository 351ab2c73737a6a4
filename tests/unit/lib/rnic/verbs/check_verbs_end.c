/* The end of a verbs queue pair: disconnecting, lingering, and ends that come while it is being connected. */
#include "verbs_ends.h"

UNIT_FIXTURE(setup, teardown);

START_TEST(a_disconnect_flushes)
{
	for (unsigned graceful = 0; graceful < 2; graceful++) {
		setup();
		open_connected();
		post_recv(&a, 9, 0, 64);
		post_recv(&a, 10, 0, 64);
		a.dev->ops->qp_disconnect(a.qp, graceful != 0);
		ck_assert_int_eq(hw(&a)->qp.state, IBV_QPS_ERR); /* now: nothing is placed any more */
		ck_assert_int_eq(try_post(&a, RNIC_WR_WRITE, 3, 0, 0, 10, &b, 0), -ENOTCONN);
		ck_assert_int_eq(try_recv(&a, 3, 0, 10), -ENOTCONN);
		collect(&a);
		ck_assert_uint_eq(a.wc_cnt, 0); /* the card has them still */
		turns();
		ck_assert_uint_eq(a.wc_cnt, 2);
		check_wc(&a, 0, 9, RNIC_WC_RECV, RNIC_WC_FLUSHED);
		check_wc(&a, 1, 10, RNIC_WC_RECV, RNIC_WC_FLUSHED);
		ck_assert_uint_eq(a.errors, 0);
		a.dev->ops->qp_disconnect(a.qp, graceful == 0); /* twice is nothing */
		close_both();
	}
}

/* No event of before the end comes after it. */
START_TEST(a_disconnect_takes_events_back)
{
	open_connected();
	hw(&a)->fail_at = 0;
	hw(&a)->fail_status = IBV_WC_RETRY_EXC_ERR;
	post(&a, RNIC_WR_WRITE, 1, 0, 0, 10, &b, 0);
	for (unsigned i = 0; i < 6; i++) {
		struct rnic_wc wc[8];

		fake_run();
		poll_loop_turn(&a.loop, &a.dev, 1, 0);
		(void)a.dev->ops->poll(a.dev, wc, 8);
	}
	a.dev->ops->qp_disconnect(a.qp, false);
	collect(&a);
	ck_assert_uint_eq(a.errors, 0);
}

/* Completions and their event are there, unread: with the queue pair they are gone. */
START_TEST(nothing_of_a_queue_pair_outlives_it)
{
	struct rnic_qp *qp;

	open_connected();
	qp = a.qp;
	end_qp(&a, 8, 8); /* somebody else's, who goes on */
	for (unsigned round = 0; round < 3; round++) {
		struct rnic_qp *mine = a.qp;

		a.qp = qp;
		post_recv(&a, 9, 0, 64);
		post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 10, &b, 0);
		a.dev->ops->flush(a.dev);
		fake_run();
		if (round > 0)
			poll_loop_turn(&a.loop, &a.dev, 1, 0); /* the event was read */
		if (round > 1)
			fake_async_qp(hw(&a), IBV_EVENT_QP_FATAL);
		a.dev->ops->qp_destroy(a.qp);
		a.qp = NULL;
		ck_assert_int_eq(a.dev->ops->deadline(a.dev), INT64_MAX);
		turns();
		ck_assert_uint_eq(a.wc_cnt, 0);
		ck_assert_uint_eq(a.errors, 0);
		a.dev->ops->qp_destroy(mine);
		UNTIL(fake_live(&fake.qp_cnt) == 1);
		close_both();
		setup();
		open_connected();
		qp = a.qp;
		end_qp(&a, 8, 8);
	}
	a.dev->ops->qp_destroy(qp);
}

/* The answer to DELETE LINK is the last thing posted: it arrives, and with it what lay before it. */
START_TEST(what_was_posted_goes_out)
{
	open_connected();
	post_recv(&b, 1, 0, 64);
	memset(a.buf, 'w', 44);
	post(&a, RNIC_WR_WRITE, 1, 0, 100, 10, &b, 5000);
	post(&a, RNIC_WR_SEND, 2, RNIC_INLINE | RNIC_SIGNALED, 0, 44, &b, 0);
	a.dev->ops->qp_disconnect(a.qp, true);
	ck_assert_uint_eq(hw(&a)->sq_head, 2);
	a.dev->ops->qp_destroy(a.qp);
	a.qp = NULL;
	collect(&a);
	ck_assert_uint_eq(rnic_query(a.dev).qp_cnt, 1); /* the card still works on it */
	ck_assert_uint_eq(a.freed, 0);
	turns();
	check_wc(&b, 0, 1, RNIC_WC_RECV, RNIC_WC_OK);
	ck_assert_int_eq(b.buf[43], 'w');
	ck_assert_int_eq(fake_live(&fake.qp_cnt), 1);
	ck_assert_uint_eq(rnic_query(a.dev).qp_cnt, 0);
	ck_assert_uint_eq(a.freed, 1);
	ck_assert_uint_eq(a.wc_cnt, 0);
}

/* Meanwhile nothing is placed. */
START_TEST(nothing_is_placed_while_it_lingers)
{
	open_connected();
	hw(&a)->hold = true;
	post(&a, RNIC_WR_SEND, 2, RNIC_INLINE | RNIC_SIGNALED, 0, 44, &b, 0);
	a.dev->ops->qp_disconnect(a.qp, true);
	post(&b, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 44, &a, 0);
	b.buf[0] = 'x';
	turns();
	check_wc(&b, 0, 1, RNIC_WC_WRITE, RNIC_WC_REMOTE_ERR);
	ck_assert_int_eq(a.buf[0], 0);
	ck_assert_uint_eq(a.errors, 0);
}

/* Its user lets it live: the completions are as they are. */
START_TEST(requests_complete_while_it_lingers)
{
	open_connected();
	post_recv(&b, 1, 0, 64);
	post_recv(&a, 8, 0, 64);
	post(&a, RNIC_WR_SEND, 2, RNIC_INLINE | RNIC_SIGNALED, 0, 44, &b, 0);
	a.dev->ops->qp_disconnect(a.qp, true);
	turns();
	ck_assert_uint_eq(a.wc_cnt, 2);
	check_wc(&a, 0, 2, RNIC_WC_SEND, RNIC_WC_OK);
	check_wc(&a, 1, 8, RNIC_WC_RECV, RNIC_WC_FLUSHED);
	ck_assert_uint_eq(a.errors, 0);
}

/* Who does not take them is not waited for. */
START_TEST(lingering_is_limited_in_time)
{
	for (unsigned destroyed = 0; destroyed < 2; destroyed++) {
		int64_t at;

		setup();
		open_connected(); /* b posts no receive */
		post(&a, RNIC_WR_SEND, 2, RNIC_INLINE | RNIC_SIGNALED, 0, 44, &b, 0);
		a.dev->ops->qp_disconnect(a.qp, true);
		if (destroyed) {
			a.dev->ops->qp_destroy(a.qp);
			a.qp = NULL;
		}
		turns();
		at = a.dev->ops->deadline(a.dev);
		ck_assert_int_gt(at, poll_loop_now() + 1000000000);
		ck_assert_int_lt(at, poll_loop_now() + 3000000000);
		ck_assert_int_eq(fake_live(&fake.qp_cnt), 2);
		pass_deadline(&a);
		turns();
		if (destroyed) {
			ck_assert_int_eq(fake_live(&fake.qp_cnt), 1);
		} else {
			ck_assert_uint_eq(a.wc_cnt, 1);
			check_wc(&a, 0, 2, RNIC_WC_SEND, RNIC_WC_FLUSHED);
		}
		close_both();
	}
}

/* The peer was quicker: its end breaks ours, nobody is told. */
START_TEST(lingering_ends_when_the_peer_breaks_the_link)
{
	open_connected();
	b.dev->ops->qp_disconnect(b.qp, false);
	post(&a, RNIC_WR_SEND, 2, RNIC_INLINE | RNIC_SIGNALED, 0, 44, &b, 0);
	a.dev->ops->qp_disconnect(a.qp, true);
	turns();
	ck_assert_uint_eq(a.wc_cnt, 1);
	check_wc(&a, 0, 2, RNIC_WC_SEND, RNIC_WC_RETRY_EXC);
	ck_assert_uint_eq(a.errors, 0);
}

START_TEST(a_device_ends_behind_a_queue_pair_that_lingers)
{
	open_connected();
	post(&a, RNIC_WR_SEND, 2, RNIC_INLINE | RNIC_SIGNALED, 0, 44, &b, 0);
	a.dev->ops->qp_disconnect(a.qp, true);
}

/* There are not ever more of them. */
START_TEST(queue_pairs_that_linger_are_bounded)
{
	struct rnic_remote ra, rb;

	open_both();
	a.loop.stands_ns = poll_loop_now(); /* else the first ones end by their time where 64 take longer */
	for (int i = 0; i < 100; i++) {
		a.qp = b.qp = NULL;
		a.connected = b.connected = 0;
		end_qp(&a, 8, 8);
		end_qp(&b, 8, 8);
		ra = remote(&a);
		rb = remote(&b);
		ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_PASSIVE, &rb), 0);
		ck_assert_int_eq(b.dev->ops->qp_connect(b.qp, RNIC_PASSIVE, &ra), 0);
		UNTIL(a.connected == 1 && b.connected == 1);
		hw(&a)->hold = true;
		post(&a, RNIC_WR_SEND, 2, RNIC_INLINE | RNIC_SIGNALED, 0, 44, &b, 0);
		a.dev->ops->qp_disconnect(a.qp, true);
		a.dev->ops->qp_destroy(a.qp);
		b.dev->ops->qp_destroy(b.qp);
		UNTIL(fake_live(&fake.qp_cnt) == (i < 64 ? i + 1 : 64));
	}
	a.loop.stands_ns = 0;
	a.qp = b.qp = NULL;
}

/* -- while it is being connected -- */

static void
connect_waits(void)
{
	struct rnic_remote rb;

	fake.rtr_waits = true;
	open_both();
	end_qp(&a, 8, 8);
	end_qp(&b, 8, 8);
	post_recv(&a, 5, 0, 64);
	rb = remote(&b);
	ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &rb), 0);
	ck_assert_uint_eq(fake_rtr_waiting(1), 1);
}

/* The loop goes on while the kernel asks for an address. */
START_TEST(connecting_blocks_no_other)
{
	struct rnic_remote ra;

	connect_waits();
	for (unsigned i = 0; i < 100; i++)
		turn();
	ck_assert_uint_eq(a.connected + a.failed, 0);
	ra = remote(&a);
	ck_assert_int_eq(b.dev->ops->qp_connect(b.qp, RNIC_PASSIVE, &ra), 0);
	ck_assert_uint_eq(fake_rtr_waiting(2), 2); /* a thread for each device */
	fake_rtr_go(0);
	UNTIL(a.connected == 1 && b.connected == 1);
	ck_assert_int_eq(hw(&b)->qp.state, IBV_QPS_RTS);
}

START_TEST(a_connection_that_fails_says_why)
{
	static const struct {
		int err;
		const char *why;
	} cases[] = {
		{ ETIMEDOUT, "the peer's address does not answer" },
		{ EHOSTUNREACH, "the peer's address does not answer" },
		{ ENETUNREACH, "the peer's address does not answer" },
		{ EINVAL, "the RDMA device rejected the connection's attributes" },
		{ EIO, "the RDMA device could not connect the queue pair" },
	};

	for (unsigned i = 0; i < 5; i++) {
		setup();
		connect_waits();
		fake_rtr_go(cases[i].err);
		UNTIL(a.failed == 1);
		ck_assert_str_eq(a.why, cases[i].why);
		ck_assert_int_eq(a.silent, i < 3);
		ck_assert_uint_eq(a.connected, 0);
		ck_assert_uint_eq(a.wc_cnt, 1); /* with it, the receives end */
		check_wc(&a, 0, 5, RNIC_WC_RECV, RNIC_WC_FLUSHED);
		close_both();
	}
}

/* Disconnected, and perhaps destroyed, while the kernel still asks. */
START_TEST(the_end_may_come_while_connecting)
{
	for (unsigned i = 0; i < 4; i++) {
		setup();
		connect_waits();
		a.dev->ops->qp_disconnect(a.qp, false);
		if (i >= 2) {
			a.dev->ops->qp_destroy(a.qp);
			a.qp = NULL;
		}
		turns();
		ck_assert_uint_eq(a.wc_cnt, 0);
		ck_assert_uint_eq(a.freed, 0);
		fake_rtr_go(i % 2 == 0 ? 0 : ETIMEDOUT);
		/* Whether our loop turns or not: nothing is placed. */
		if (i < 2)
			ck_assert(fake_comes_to(hw(&a), IBV_QPS_ERR));
		if (i < 2) {
			UNTIL(a.wc_cnt == 1);
			check_wc(&a, 0, 5, RNIC_WC_RECV, RNIC_WC_FLUSHED);
			ck_assert_int_eq(hw(&a)->qp.state, IBV_QPS_ERR);
		} else {
			UNTIL(a.freed == 1);
			ck_assert_int_eq(fake_live(&fake.qp_cnt), 1);
		}
		ck_assert_uint_eq(a.connected + a.failed + a.errors, 0);
		close_both();
	}
}

/* Behind the one that waits: never started, gone at once. */
START_TEST(the_end_may_come_before_its_turn)
{
	struct rnic_qp *first;
	struct rnic_remote rb;

	connect_waits();
	first = a.qp;
	end_qp(&a, 8, 8);
	post_recv(&a, 6, 0, 64);
	rb = remote(&b);
	ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &rb), 0);
	a.dev->ops->qp_disconnect(a.qp, false);
	turns();
	ck_assert_uint_eq(a.wc_cnt, 1);
	check_wc(&a, 0, 6, RNIC_WC_RECV, RNIC_WC_FLUSHED);
	a.dev->ops->qp_destroy(a.qp);
	UNTIL(fake_live(&fake.qp_cnt) == 2);
	a.qp = first;
	fake_rtr_go(0);
	UNTIL(a.connected == 1);
}

/* The result is there, unread: it is not told any more. */
START_TEST(the_end_may_come_just_behind_it)
{
	for (unsigned i = 0; i < 2; i++) {
		setup();
		connect_waits();
		fake_rtr_go(i == 0 ? 0 : ETIMEDOUT);
		if (i == 0)
			ck_assert(fake_comes_to(hw(&a), IBV_QPS_RTR));
		while (fake_rtr_waiting(0) != 0)
			;
		a.dev->ops->qp_disconnect(a.qp, false);
		UNTIL(a.wc_cnt == 1);
		ck_assert_uint_eq(a.connected + a.failed, 0);
		close_both();
	}
}

START_TEST(the_card_may_go_while_connecting)
{
	connect_waits();
	fake_unplug(&fake.devs[0], true);
	turns();
	ck_assert_uint_eq(a.gones, 1);
	ck_assert_uint_eq(a.wc_cnt, 0);
	fake_rtr_go(EIO);
	UNTIL(a.wc_cnt == 1);
	check_wc(&a, 0, 5, RNIC_WC_RECV, RNIC_WC_FLUSHED);
	ck_assert_uint_eq(a.failed, 1);
}

/* The end of the device does not wait for the kernel either: the loop goes on, and hears of it. */
START_TEST(a_device_may_be_freed_while_connecting)
{
	connect_waits();
	a.dev->ops->qp_destroy(a.qp);
	a.qp = NULL;
	a.dev->ops->free(a.dev);
	turns();
	ck_assert_uint_eq(a.freed, 0);
	ck_assert_int_eq(fake_live(&fake.ctx_cnt), 2);
	fake_rtr_go(ETIMEDOUT);
	UNTIL(a.freed == 1);
}

/* -- while it is being destroyed -- */

/* Packets of a queue pair wait for an address: the loop does not, nor does who connects meanwhile. */
START_TEST(destroying_blocks_no_other)
{
	struct rnic_qp *second;

	open_connected();
	fake.destroy_waits = true;
	a.dev->ops->qp_destroy(a.qp);
	ck_assert_uint_eq(rnic_query(a.dev).qp_cnt, 1);
	ck_assert_uint_eq(fake_destroy_waiting(1), 1);
	for (unsigned i = 0; i < 100; i++)
		turn();
	second = b.qp;
	a.qp = b.qp = NULL;
	a.connected = b.connected = 0;
	connect_ends();
	post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 10, &b, 0);
	UNTIL(a.wc_cnt == 1);
	check_wc(&a, 0, 1, RNIC_WC_WRITE, RNIC_WC_OK);
	ck_assert_int_eq(fake_live(&fake.qp_cnt), 4);
	ck_assert_uint_eq(a.freed, 0);
	fake_destroy_go();
	UNTIL(a.freed == 1);
	ck_assert_int_eq(fake_live(&fake.qp_cnt), 3);
	b.dev->ops->qp_destroy(second);
}

/* The card does not flush, or is gone: until it is done with the buffers they are its own; destroyed by its user meanwhile,
 * it is gone for good afterwards. */
START_TEST(buffers_come_back_when_it_is_destroyed)
{
	for (unsigned i = 0; i < 6; i++) {
		setup();
		open_connected();
		post_recv(&a, 9, 0, 64);
		hw(&a)->hold = hw(&a)->no_flush = true;
		post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 10, &b, 0);
		turns();
		fake.destroy_waits = true;
		if (i % 2 == 0) {
			fake_async_qp(hw(&a), IBV_EVENT_QP_FATAL);
			turns();
			pass_deadline(&a);
		} else {
			fake_unplug(&fake.devs[0], true);
		}
		for (unsigned k = 0; k < 100; k++)
			turn();
		ck_assert_uint_eq(fake_destroy_waiting(1), 1);
		ck_assert_uint_eq(a.wc_cnt, 0);
		ck_assert_uint_eq(a.errors, 0);
		ck_assert_int_eq(try_recv(&a, 3, 0, 10), -ENOTCONN);
		if (i / 2 == 1)
			a.dev->ops->qp_disconnect(a.qp, false);
		if (i / 2 == 2) {
			a.dev->ops->qp_destroy(a.qp);
			a.qp = NULL;
		}
		turns();
		ck_assert_int_eq(fake_live(&fake.qp_cnt), 2);
		fake_destroy_go();
		UNTIL(!is_ending(&a) && fake_live(&fake.qp_cnt) == 1);
		turns();
		ck_assert_uint_eq(a.errors, i / 2 == 0);
		ck_assert_uint_eq(a.wc_cnt, i / 2 < 2 ? 2 : 0);
		if (i / 2 < 2) {
			check_wc(&a, 0, 1, RNIC_WC_WRITE, RNIC_WC_FLUSHED);
			check_wc(&a, 1, 9, RNIC_WC_RECV, RNIC_WC_FLUSHED);
		}
		close_both();
	}
}

/* Its CQ goes with it: an event that comes meanwhile is acknowledged, or destroying that would wait for ever. */
START_TEST(events_of_the_dying_are_acknowledged)
{
	open_connected();
	post_recv(&a, 9, 0, 64);
	fake.destroy_waits = true;
	a.dev->ops->qp_destroy(a.qp);
	a.qp = NULL;
	ck_assert_uint_eq(fake_destroy_waiting(1), 1);
	turns(); /* the receive is flushed, and the CQ was armed */
	ck_assert_uint_eq(stats(&a).wakeups, 1);
	fake_destroy_go();
	UNTIL(fake_live(&fake.cq_cnt) == 1);
}

/* Nobody waits for many of them, nor when their device is to end: it does behind the last of them. */
START_TEST(a_device_may_be_freed_while_destroying)
{
	open_both();
	fake.destroy_waits = true;
	for (unsigned i = 0; i < 100; i++) {
		end_qp(&a, 8, 8);
		a.dev->ops->qp_destroy(a.qp);
		turn();
	}
	a.qp = NULL;
	ck_assert_uint_eq(fake_destroy_waiting(1), 1); /* one at a time */
	a.dev->ops->free(a.dev);
	turns();
	ck_assert_uint_eq(a.freed, 0);
	ck_assert_int_eq(fake_live(&fake.qp_cnt), 100);
	fake_destroy_go();
	UNTIL(a.freed == 100);
}
