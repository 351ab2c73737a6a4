/* iWARP cards: connecting by librdmacm, receive depth, confirming Reads, the end in every order. */
#include "base/addr.h"
#include "rnic/mpa_pdata.h"
#include "verbs_ends.h"

#include "fake_rdmacm.h"

#define TOKEN 0x1122334455667788ull
#define DEPTH_A 16
#define DEPTH_B 8

static void
setup_iwarp(void)
{
	setup();
	fake_make_iwarp(&fake.devs[0]);
	fake_make_iwarp(&fake.devs[1]);
}

static struct verbs_config
iwarp_config(unsigned n)
{
	struct verbs_config c = config(n);
	char text[32];

	memset(&c.gid, 0, sizeof(c.gid));
	snprintf(text, sizeof(text), "10.0.%u.1", n);
	ck_assert_int_eq(addr_parse(text, &c.addr), 0);
	return c;
}

static uint32_t connect_ms = 30000; /* a busy machine may take its time to start a thread */

static void
open_cards(void)
{
	struct verbs_config ca = iwarp_config(0), cb = iwarp_config(1);

	ca.connect_ms = cb.connect_ms = connect_ms;
	end_open(&a, &ca);
	end_open(&b, &cb);
}

static void
make_qp(struct end *e, uint32_t sq, uint32_t rq, uint64_t token)
{
	const struct rnic_qp_attr attr = { .ctx = e, .sq_depth = sq, .rq_depth = rq, .token = token };

	ck_assert_int_eq(e->dev->ops->qp_create(e->pd, &attr, &e->qp), 0);
}

static void
make_qps(void)
{
	open_cards();
	make_qp(&a, 64, DEPTH_A, TOKEN);
	make_qp(&b, 64, DEPTH_B, TOKEN);
}

static void
expect(struct end *e)
{
	ck_assert_int_eq(e->dev->ops->qp_expect(e->qp), 0);
}

static int
go_active(void)
{
	const struct rnic_remote rb = remote(&b);

	return a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &rb);
}

static int
go_passive(void)
{
	const struct rnic_remote ra = remote(&a);

	return b.dev->ops->qp_connect(b.qp, RNIC_PASSIVE, &ra);
}

static void
open_linked(void)
{
	int64_t start = poll_loop_now();

	make_qps();
	expect(&b);
	ck_assert_int_eq(go_active(), 0);
	ck_assert_int_eq(go_passive(), 0);
	UNTIL((a.connected == 1 && b.connected == 1) || a.failed || b.failed);
	ck_assert_msg(
	    a.failed + b.failed == 0, "%s, %s, after %d ms", a.why, b.why, (int)((poll_loop_now() - start) / 1000000));
}

/* A thread may still be on its way out: the last one frees the device then. */
static void
post_recvs(struct end *e, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		post_recv(e, 100 + i, 64 * i, 64);
}

/* The request of a link of a's, as its kernel would bring it. */
static void
request_pd(struct mpa_pdata *d, uint8_t out[MPA_PDATA_LEN])
{
	*d = (struct mpa_pdata){
		.recv_depth = 5,
		.qpn = b.qp->qpn,
		.psn = b.qp->psn,
		.token = TOKEN,
		.from_qpn = a.qp->qpn,
	};
	mpa_pdata_encode(d, out);
}

static unsigned
verdict_of(int handle)
{
	unsigned verdict;

	UNTIL(fake_cm_answer(handle, &verdict) == 1);
	return verdict;
}

UNIT_FIXTURE(setup_iwarp, teardown);

/* -- connecting -- */

START_LOOP_TEST(both_sides_connect, 0, 3)
{
	struct rnic_info ia, ib;

	fake_cm.ord = _i == 0 ? 8 : _i == 1 ? 1 : 0; /* 0: not named, MPA revision 1 */
	make_qps();
	ia = rnic_query(a.dev);
	ib = rnic_query(b.dev);
	ck_assert_int_eq(ib.transport, RNIC_TRANSPORT_IWARP);
	ck_assert_int_eq(ib.gid_type, RNIC_GID_NONE);
	ck_assert_uint_ne(ib.mpa_port, 0);
	ck_assert_uint_eq(ib.gid.b[10], 0xff);
	ck_assert_uint_eq(ib.gid.b[14], 1); /* its address, not what stands in the GID table */
	ck_assert_uint_eq(ia.gid.b[14], 0);
	ck_assert_uint_eq(room(&a).wrs, 0);
	expect(&b);
	ck_assert_int_eq(b.dev->ops->qp_expect(b.qp), -EINVAL);
	ck_assert_int_eq(go_active(), 0);
	ck_assert_int_eq(go_active(), -EINVAL);
	ck_assert_int_eq(go_passive(), 0);
	UNTIL(a.connected == 1 && b.connected == 1);
	ck_assert_int_eq(a.dev->ops->qp_rts(a.qp), 0);
	ck_assert_uint_eq(hw(&b)->reads_in, 1); /* the active side's first message */
	ck_assert_uint_eq(hw(&b)->read_len, MPA_FENCE_LEN);
	ck_assert_uint_eq(hw(&a)->reads_in, 0);
	ck_assert_uint_eq(room(&a).sends, DEPTH_B);
	ck_assert_uint_eq(room(&b).sends, DEPTH_A);
	ck_assert_uint_eq(a.failed + b.failed + a.errors + b.errors, 0);
}

/* The kernel's siw does not see a first message that comes while it is about to listen for it. */
START_TEST(a_first_message_that_is_missed_is_followed_by_another)
{
	make_qps();
	expect(&b);
	hw(&b)->misses = true;
	ck_assert_int_eq(go_passive(), 0);
	ck_assert_int_eq(go_active(), 0);
	UNTIL(a.connected == 1 && b.connected == 1);
	ck_assert(!hw(&b)->misses);
	ck_assert_uint_eq(hw(&b)->reads_in, 1);
	turns();
	/* and is not taken for one of ours */
	post_recvs(&b, 1);
	post(&a, RNIC_WR_SEND, 3, RNIC_SIGNALED, 0, 10, &b, 0);
	UNTIL(a.wc_cnt == 1 && b.wc_cnt == 1);
	ck_assert_uint_eq(a.wc[0].wr_id, 3);
	ck_assert_int_eq(a.wc[0].status, RNIC_WC_OK);
	ck_assert_uint_eq(a.failed + b.failed + a.errors + b.errors, 0);
}

/* The passive user hears of the peer's QP (CLC Confirm) when the connection is there already. */
START_TEST(the_connection_may_come_before_its_user)
{
	make_qps();
	expect(&b);
	ck_assert_int_eq(go_active(), 0);
	UNTIL(a.connected == 1);
	turns();
	ck_assert_uint_eq(b.connected, 0);
	ck_assert_int_eq(try_post(&b, RNIC_WR_WRITE, 1, 0, 0, 10, &a, 0), -ENOTCONN);
	ck_assert_int_eq(go_passive(), 0);
	turns();
	ck_assert_uint_eq(b.connected, 1);
}

/* And may be gone again. */
START_TEST(the_connection_may_break_before_its_user)
{
	make_qps();
	expect(&b);
	post_recvs(&b, 2);
	ck_assert_int_eq(go_active(), 0);
	UNTIL(a.connected == 1);
	a.dev->ops->qp_disconnect(a.qp, false);
	UNTIL(b.wc_cnt == 2);
	ck_assert_uint_eq(b.failed + b.errors, 0);
	ck_assert_int_eq(go_passive(), 0);
	turns();
	ck_assert_uint_eq(b.failed, 1);
	ck_assert_uint_eq(b.connected + b.errors, 0);
}

START_TEST(the_link_is_for_the_qp_that_was_named)
{
	struct rnic_remote ra;

	make_qps();
	expect(&b);
	ck_assert_int_eq(go_active(), 0);
	ra = remote(&a);
	ra.qpn++;
	ck_assert_int_eq(b.dev->ops->qp_connect(b.qp, RNIC_PASSIVE, &ra), 0);
	UNTIL(b.failed == 1);
	ck_assert_str_eq(b.why, "the link was taken over by another QP of the peer");
	ck_assert_uint_eq(b.connected, 0);
	UNTIL(a.errors + a.failed == 1);
}

START_TEST(refused_by_its_private_data)
{
	static const struct {
		unsigned off;
		uint8_t flip;
		enum mpa_verdict verdict;
	} cases[] = {
		{ 0, 0x20, MPA_UNKNOWN_PEER }, { 4, 1, MPA_UNKNOWN_PEER },                         /* version */
		{ 15, 1, MPA_BAD_TOKEN },                                                          /* PSN */
		{ 16, 0x80, MPA_BAD_TOKEN }, { 23, 1, MPA_BAD_TOKEN }, { 7, 5, MPA_UNKNOWN_PEER }, /* no receives */
	};

	make_qps();
	expect(&b);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t pd[MPA_PDATA_LEN];
		struct mpa_pdata d;

		request_pd(&d, pd);
		pd[cases[i].off] ^= cases[i].flip;
		ck_assert_uint_eq(verdict_of(fake_cm_request(1, pd, sizeof(pd))), cases[i].verdict);
		ck_assert_uint_eq(stats(&b).mpa_refused_token, i + 1);
		ck_assert_str_eq(rnic_last_refused(b.dev, "mpa_refused_token"), "192.0.2.9:40009");
	}
	for (uint8_t len = 0; len < MPA_PDATA_MIN; len++) {
		uint8_t pd[MPA_PDATA_LEN];
		struct mpa_pdata d;

		request_pd(&d, pd);
		ck_assert_uint_eq(verdict_of(fake_cm_request(1, pd, len)), MPA_UNKNOWN_PEER);
	}
	/* None of this harmed it. */
	ck_assert_int_eq(go_active(), 0);
	ck_assert_int_eq(go_passive(), 0);
	UNTIL(a.connected == 1 && b.connected == 1);
}

START_TEST(a_link_is_taken_once)
{
	uint8_t pd[MPA_PDATA_LEN];
	struct mpa_pdata d;

	open_linked();
	request_pd(&d, pd);
	ck_assert_uint_eq(verdict_of(fake_cm_request(1, pd, sizeof(pd))), MPA_USED);
	b.dev->ops->qp_disconnect(b.qp, false);
	ck_assert_uint_eq(verdict_of(fake_cm_request(1, pd, sizeof(pd))), MPA_GONE);
	ck_assert_uint_eq(stats(&b).mpa_refused_token, 2);
}

START_TEST(an_early_request_waits)
{
	for (unsigned known = 0; known < 2; known++) {
		struct rnic_remote rb;

		setup_iwarp();
		open_cards();
		make_qp(&a, 64, DEPTH_A, TOKEN);
		if (known)
			make_qp(&b, 64, DEPTH_B, TOKEN);
		rb = (struct rnic_remote){
			.gid = rnic_query(b.dev).gid,
			.mpa_port = rnic_query(b.dev).mpa_port,
			.qpn = known ? b.qp->qpn : a.qp->qpn + 1,
			.psn = known ? b.qp->psn : 0,
		};
		ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &rb), 0);
		UNTIL(fake_cm.connects == 1);
		turns();
		ck_assert_uint_eq(fake_cm.accepts + fake_cm.rejects, 0);
		if (known) {
			expect(&b);
			ck_assert_uint_eq(fake_cm.accepts, 1);
			UNTIL(a.connected == 1);
		} else {
			UNTIL(b.dev->ops->deadline(b.dev) != INT64_MAX);
			pass_deadline(&b); /* nobody came */
			UNTIL(a.failed == 1);
			ck_assert_str_eq(a.why, mpa_verdict_str(MPA_NOT_EXPECTED));
			ck_assert_uint_eq(stats(&b).mpa_refused_parked, 1);
			ck_assert_str_eq(rnic_last_refused(b.dev, "mpa_refused_parked"), "192.0.2.9:40009");
		}
		teardown();
	}
}

START_TEST(early_requests_are_bounded)
{
	int handles[70];
	unsigned verdict, busy = 0, waiting = 0;
	uint8_t pd[MPA_PDATA_LEN];
	struct mpa_pdata d;

	make_qps();
	for (unsigned i = 0; i < 70; i++) {
		request_pd(&d, pd);
		pd[11] ^= (uint8_t)(i + 1) | 0x80; /* to nobody */
		handles[i] = fake_cm_request(1, pd, sizeof(pd));
	}
	turns();
	for (unsigned i = 0; i < 70; i++) {
		waiting += fake_cm_answer(handles[i], &verdict) == -1;
		busy += fake_cm_answer(handles[i], &verdict) == 1 && verdict == MPA_BUSY;
	}
	ck_assert_uint_eq(waiting, 64);
	ck_assert_uint_eq(busy, 6);
	fake_cm_request_close(handles[0]); /* makes a place */
	turns();
	handles[69] = fake_cm_request(1, pd, sizeof(pd));
	turns();
	ck_assert_int_eq(fake_cm_answer(handles[69], &verdict), -1);
}

/* One that is not ours, or of another QP, or to whom nothing could be sent. */
START_TEST(a_wrong_reply_is_refused)
{
	for (unsigned i = 1; i <= 4; i++) {
		setup_iwarp();
		make_qps();
		fake_cm.reply_spoilt = i;
		expect(&b);
		ck_assert_int_eq(go_active(), 0);
		ck_assert_int_eq(go_passive(), 0);
		UNTIL(a.failed == 1);
		ck_assert_str_eq(a.why, "the MPA Reply is not from the peer's link");
		UNTIL(b.errors == 1);
		teardown();
	}
}

static void
active_fails(const char *why)
{
	expect(&b);
	post_recvs(&a, 3);
	ck_assert_int_eq(go_active(), 0);
	UNTIL(a.failed == 1);
	ck_assert_str_eq(a.why, why);
	ck_assert_int_eq(a.silent, fake_cm.unreachable == ETIMEDOUT);
	ck_assert_uint_eq(a.connected + a.errors, 0);
	ck_assert_uint_eq(a.wc_cnt, 3);
	for (unsigned i = 0; i < 3; i++)
		check_wc(&a, i, 100 + i, RNIC_WC_RECV, RNIC_WC_FLUSHED);
	turns();
	ck_assert_uint_eq(a.failed, 1);
	teardown();
}

START_TEST(a_connection_that_fails_says_why)
{
	for (unsigned i = 0; i < 9; i++) {
		static const char *const why[] = {
			"no route to the peer's RNIC",
			"no route to the peer's RNIC",
			"the peer's MPA port refuses connections",
			"the peer's MPA port does not answer",
			"the route to the peer's RNIC does not use this card",
			"out of resources",
			"the MPA connection failed",
			"no route to the peer's RNIC",
			"rejected by the peer: wrong token",
		};

		setup_iwarp();
		make_qps();
		fake_cm.addr_event_err = i == 0 ? EHOSTUNREACH : 0;
		fake_cm.route_event_err = i == 1 ? ENETUNREACH : 0;
		fake_cm.unreachable = i == 3 ? ETIMEDOUT : 0;
		fake_cm.foreign_dev = i == 4;
		fake_cm.create_err = i == 5 ? ENOMEM : 0;
		fake_cm.route_err = i == 6 ? EIO : 0;
		if (i == 2) {
			struct verbs_config cb = iwarp_config(1);

			end_close(&b); /* its port is another one now */
			end_open(&b, &cb);
			make_qp(&b, 64, DEPTH_B, TOKEN);
			fake_cm.listen_err = 0;
			expect(&b);
			post_recvs(&a, 3);
			{
				struct rnic_remote rb = remote(&b);

				rb.mpa_port = 1;
				ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &rb), 0);
			}
			UNTIL(a.failed == 1);
			ck_assert_str_eq(a.why, why[i]);
			teardown();
			continue;
		}
		if (i == 7) {
			fake_cm.connect_waits = true;
			expect(&b);
			ck_assert_int_eq(go_active(), 0);
			for (unsigned t = 0; t < 4; t++)
				turn();
			ck_assert_uint_eq(fake_cm_waiting(1), 1);
			fake_cm_go(EHOSTUNREACH);
			UNTIL(a.failed == 1);
			ck_assert_str_eq(a.why, why[i]);
			teardown();
			continue;
		}
		if (i == 8) {
			b.dev->ops->qp_destroy(b.qp);
			make_qp(&b, 64, DEPTH_B, TOKEN + 1);
		}
		active_fails(why[i]);
	}
}

START_TEST(addresses_of_two_families_do_not_meet)
{
	struct rnic_remote rb;

	make_qps();
	rb = remote(&b);
	rb.gid = (struct rnic_gid){ .b = { 0x20, 1 } };
	ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &rb), 0);
	UNTIL(a.failed == 1);
	ck_assert_str_eq(a.why, "the peer's RNIC has an address of another family");
	rb.mpa_port = 0;
	b.dev->ops->qp_destroy(b.qp);
	make_qp(&b, 64, DEPTH_B, TOKEN);
	ck_assert_int_eq(b.dev->ops->qp_connect(b.qp, RNIC_ACTIVE, &rb), -EINVAL);
}

/* Two seconds, whoever is silent, and at which step. */
START_TEST(silence_ends_it)
{
	static const char *const why[] = {
		"the peer's RNIC cannot be found",
		"the peer did not answer the MPA Request in time",
		"the peer did not open its MPA connection in time",
		"the peer's first message did not arrive in time",
		"the peer does not answer on the new connection",
	};

	for (unsigned i = 0; i < 5; i++) {
		struct end *e = i == 2 || i == 3 ? &b : &a;
		int64_t now;

		setup_iwarp();
		connect_ms = 2000;
		make_qps();
		post_recvs(e, 1);
		expect(&b);
		fake_cm.hold_addr = i == 0;
		fake_cm.lose_requests = i == 1;
		fake_cm.lose_first = i == 3;
		hw(&b)->no_answer = i == 4;
		ck_assert_int_eq(go_passive(), 0);
		if (i != 2)
			ck_assert_int_eq(go_active(), 0);
		if (i == 1 || i == 3 || i == 4)
			UNTIL(fake_cm.connects == 1);
		if (i >= 3)
			UNTIL(fake_cm.accepts == 1);
		turns();
		if (i == 4)
			pass_deadline(e); /* for the second word */
		now = poll_loop_now();
		ck_assert_int_gt(e->dev->ops->deadline(e->dev), now + 1000000000);
		ck_assert_int_lt(e->dev->ops->deadline(e->dev), now + 2100000000);
		pass_deadline(e);
		UNTIL(e->failed == 1);
		ck_assert_str_eq(e->why, why[i]);
		ck_assert_int_eq(e->silent, i == 4);
		ck_assert_uint_eq(e->wc_cnt, 1);
		check_wc(e, 0, 100, RNIC_WC_RECV, RNIC_WC_FLUSHED);
		fake_cm_event_all(0, RDMA_CM_EVENT_CONNECT_ERROR);
		fake_cm_event_all(1, RDMA_CM_EVENT_CONNECT_ERROR);
		teardown();
	}
}

/* -- while it is being connected -- */

static void
connect_waits(void)
{
	make_qps();
	post_recvs(&a, 2);
	fake_cm.connect_waits = true;
	expect(&b);
	ck_assert_int_eq(go_active(), 0);
	for (unsigned i = 0; i < 4; i++)
		turn();
	ck_assert_uint_eq(fake_cm_waiting(1), 1);
}

/* The loop goes on, and so does the next link. */
START_TEST(connecting_blocks_no_other)
{
	struct rnic_qp *first_a, *first_b;

	connect_waits();
	first_a = a.qp;
	first_b = b.qp;
	make_qp(&a, 8, 8, 7);
	make_qp(&b, 8, 8, 7);
	expect(&b);
	fake_cm.connect_waits = false;
	ck_assert_int_eq(go_active(), 0);
	ck_assert_int_eq(go_passive(), 0);
	UNTIL(a.connected == 1 && b.connected == 1);
	fake_cm_go(0);
	UNTIL(a.connected == 2);
	a.dev->ops->qp_destroy(first_a);
	b.dev->ops->qp_destroy(first_b);
}

/* The kernel takes the queue pair to the error state before it says why. */
START_TEST(what_the_kernel_flushes_while_connecting_is_not_the_reason)
{
	connect_waits();
	hw(&a)->qp.state = IBV_QPS_ERR;
	turns();
	ck_assert_uint_eq(a.failed, 0);
	ck_assert_uint_eq(a.wc_cnt, 0);
	fake_cm_go(EHOSTUNREACH);
	UNTIL(a.failed == 1);
	ck_assert_str_eq(a.why, "no route to the peer's RNIC");
	ck_assert_uint_eq(a.wc_cnt, 2);
	check_wc(&a, 0, 100, RNIC_WC_RECV, RNIC_WC_FLUSHED);
}

/* Disconnected, or destroyed, in mid-air; it then succeeds, or fails. */
START_TEST(the_end_may_come_while_connecting)
{
	for (unsigned i = 0; i < 4; i++) {
		setup_iwarp();
		connect_waits();
		a.dev->ops->qp_disconnect(a.qp, false);
		UNTIL(a.wc_cnt == 2); /* the buffers are back at once */
		if (i >= 2) {
			a.dev->ops->qp_destroy(a.qp);
			a.qp = NULL;
			ck_assert_uint_eq(rnic_query(a.dev).qp_cnt, 1);
		}
		turns();
		ck_assert_int_eq(fake_live(&fake.qp_cnt), 2);
		fake_cm_go(i % 2 == 0 ? 0 : ETIMEDOUT);
		if (i >= 2)
			UNTIL(fake_live(&fake.qp_cnt) == 1);
		else
			UNTIL(fake_cm.id_cnt == 2);
		ck_assert_uint_eq(a.connected + a.failed + a.errors, 0);
		teardown();
	}
}

START_TEST(a_device_may_be_freed_while_connecting)
{
	connect_waits();
	a.dev->ops->qp_destroy(a.qp);
	a.qp = NULL;
	a.dev->ops->free(a.dev);
	turns();
	ck_assert_uint_eq(a.freed, 0);
	fake_cm_go(ETIMEDOUT);
	UNTIL(a.freed == 1);
}

/* An acceptance under way holds the device, too. */
START_TEST(a_device_may_be_freed_while_accepting)
{
	uint8_t pd[MPA_PDATA_LEN];
	struct mpa_pdata d;

	make_qps();
	expect(&b);
	request_pd(&d, pd);
	(void)fake_cm_request(1, pd, sizeof(pd));
	UNTIL(fake_cm.accepts == 1);
	b.dev->ops->qp_destroy(b.qp);
	b.qp = NULL;
	b.dev->ops->free(b.dev);
	turns();
	ck_assert_uint_eq(b.freed, 0);
	fake_cm_event_all(1, RDMA_CM_EVENT_CONNECT_ERROR);
	UNTIL(b.freed == 1);
}

/* -- receive depth and confirmation -- */

START_TEST(no_more_sends_than_receives)
{
	open_linked();
	post_recvs(&b, DEPTH_B);
	hw(&b)->no_answer = true;
	for (unsigned i = 0; i < DEPTH_B; i++) {
		ck_assert_uint_eq(room(&a).sends, DEPTH_B - i);
		post(&a, RNIC_WR_SEND, i, RNIC_INLINE, 0, 10, &b, 0);
	}
	ck_assert_int_eq(try_post(&a, RNIC_WR_SEND, 99, RNIC_INLINE, 0, 10, &b, 0), -ENOBUFS);
	post(&a, RNIC_WR_WRITE, 98, 0, 0, 10, &b, 5000); /* needs none */
	turns();
	ck_assert_uint_eq(b.wc_cnt, DEPTH_B);
	ck_assert_uint_eq(room(&a).sends, 0); /* the card said that they are gone; that is not enough */
	ck_assert_uint_eq(a.rooms, 0);
	hw(&b)->no_answer = false;
	post_recvs(&b, DEPTH_B);
	turns();
	ck_assert_uint_eq(a.rooms, 1);
	ck_assert_uint_ge(room(&a).sends, DEPTH_B);
}

START_TEST(complete_is_what_a_read_confirmed)
{
	open_linked();
	post_recvs(&b, 2);
	hw(&b)->swallows = true;
	hw(&b)->no_answer = true;
	fill(a.buf, 1000, 3);
	post(&a, RNIC_WR_WRITE, 1, 0, 0, 1000, &b, 2000);
	post(&a, RNIC_WR_SEND, 2, RNIC_SIGNALED | RNIC_INLINE, 0, 44, &b, 0);
	a.dev->ops->fence(a.qp);
	turns();
	ck_assert_uint_eq(fake_sends_left(hw(&a)), 1); /* only the Read: TCP has the rest */
	ck_assert_uint_eq(a.wc_cnt, 0);
	ck_assert_uint_eq(stats(&a).reads_sent, 2);
	hw(&b)->no_answer = false;
	turns();
	ck_assert_uint_eq(a.wc_cnt, 1);
	check_wc(&a, 0, 2, RNIC_WC_SEND, RNIC_WC_OK);
	ck_assert_uint_eq(room(&a).wrs, 64);
	turns();
	ck_assert_uint_eq(stats(&a).reads_sent, 2); /* nothing left to confirm */
}

/* One Read at a time; what was posted behind it has one of its own. */
START_TEST(one_read_at_a_time)
{
	open_linked();
	hw(&b)->no_answer = true;
	post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 10, &b, 0);
	a.dev->ops->fence(a.qp);
	turns();
	post(&a, RNIC_WR_WRITE, 2, RNIC_SIGNALED, 0, 10, &b, 0);
	a.dev->ops->fence(a.qp);
	turns();
	ck_assert_uint_eq(stats(&a).reads_sent, 2);
	hw(&b)->no_answer = false;
	fake_run();
	hw(&b)->no_answer = true;
	UNTIL(a.wc_cnt == 1);
	check_wc(&a, 0, 1, RNIC_WC_WRITE, RNIC_WC_OK);
	turns();
	ck_assert_uint_eq(stats(&a).reads_sent, 3);
	ck_assert_uint_eq(a.wc_cnt, 1);
	hw(&b)->no_answer = false;
	UNTIL(a.wc_cnt == 2);
}

/* Nobody asks: a signaled request is confirmed soon all the same, others when half of a queue is used. */
START_TEST(confirmation_comes_by_itself)
{
	int64_t now;

	open_linked();
	post(&a, RNIC_WR_WRITE, 1, 0, 0, 10, &b, 0);
	turns();
	ck_assert_int_eq(a.dev->ops->deadline(a.dev), INT64_MAX);
	post(&a, RNIC_WR_WRITE, 2, RNIC_SIGNALED, 0, 10, &b, 0);
	now = poll_loop_now();
	a.dev->ops->flush(a.dev);
	ck_assert_int_lt(a.dev->ops->deadline(a.dev), now + 6000000);
	UNTIL(a.wc_cnt == 1);
	ck_assert_uint_eq(stats(&a).reads_sent, 2);
	for (unsigned i = 0; i < 64; i++) {
		post(&a, RNIC_WR_WRITE, 3, 0, 0, 10, &b, 0);
		turn();
	}
	turns();
	ck_assert_uint_ge(stats(&a).reads_sent, 3);
	ck_assert_uint_le(stats(&a).reads_sent, 6);
	ck_assert_uint_ge(room(&a).wrs, 32);
	ck_assert_uint_eq(a.wc_cnt, 1);
}

START_TEST(a_read_unanswered_is_reported)
{
	int64_t at;

	open_linked();
	post_recvs(&a, 1);
	hw(&b)->no_answer = true;
	post(&a, RNIC_WR_WRITE, 1, 0, 0, 10, &b, 0);
	post(&a, RNIC_WR_WRITE, 2, RNIC_SIGNALED, 0, 10, &b, 0);
	a.dev->ops->fence(a.qp);
	turns();
	at = a.dev->ops->deadline(a.dev);
	ck_assert_int_gt(at, poll_loop_now() + 4000000000);
	ck_assert_int_lt(at, poll_loop_now() + 5100000000);
	pass_deadline(&a);
	UNTIL(a.silences == 1);
	ck_assert_int_gt(a.dev->ops->deadline(a.dev), at);
	ck_assert_uint_eq(a.errors, 0);
	ck_assert_uint_eq(a.wc_cnt, 0);
	a.dev->ops->qp_disconnect(a.qp, false);
	turns();
	ck_assert_uint_eq(a.wc_cnt, 3);
	check_wc(&a, 0, 1, RNIC_WC_WRITE, RNIC_WC_FLUSHED);
	check_wc(&a, 1, 2, RNIC_WC_WRITE, RNIC_WC_FLUSHED);
	check_wc(&a, 2, 100, RNIC_WC_RECV, RNIC_WC_FLUSHED);
	UNTIL(b.errors == 1);
	ck_assert_str_eq(b.why, "the peer closed the connection");
}

/* A loop that was idle for long: the answer has its time from the turn on that asked for it, and no more. */
START_TEST(an_old_time_ends_nothing)
{
	int64_t now;

	open_linked();
	a.dev->ops->progress(a.dev, poll_loop_now() - 10000000000);
	a.dev->now_ns = now = poll_loop_now();
	post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 10, &b, 0);
	a.dev->ops->fence(a.qp);
	a.dev->ops->flush(a.dev);
	a.dev->ops->progress(a.dev, now + 1);
	ck_assert_int_eq(a.dev->ops->deadline(a.dev), now + 5000000000);
	turns();
	ck_assert_uint_eq(a.errors, 0);
	ck_assert_uint_eq(a.wc_cnt, 1);
}

/* The same for the time to connect. */
START_TEST(connecting_counts_from_its_turn)
{
	struct rnic_remote rb;
	int64_t now;

	connect_ms = 2000;
	make_qps();
	rb = remote(&b);
	expect(&b);
	a.dev->ops->progress(a.dev, poll_loop_now() - 10000000000);
	a.dev->now_ns = now = poll_loop_now();
	ck_assert_int_eq(a.dev->ops->qp_connect(a.qp, RNIC_ACTIVE, &rb), 0);
	a.dev->ops->progress(a.dev, now + 1);
	ck_assert_int_eq(a.dev->ops->deadline(a.dev), now + 2000000000);
}

START_TEST(many_bytes_arrive)
{
	uint64_t next = 0;

	open_linked();
	for (unsigned round = 0; round < 500; round++) {
		unsigned posted = 0;

		if (room(&a).wrs < 2 || room(&a).sends == 0) {
			UNTIL(room(&a).wrs >= 2 && room(&a).sends > 0);
		}
		post_recv(&b, round, 64 * (round % 8), 64);
		fill(a.buf + 4096, 3000, round);
		post(&a, RNIC_WR_WRITE, next++, 0, 4096, 3000, &b, 10000);
		post(&a, RNIC_WR_SEND, next++, RNIC_INLINE | RNIC_SIGNALED, 0, 44, &b, 0);
		turn();
		UNTIL(b.wc_cnt > 0);
		ck_assert_mem_eq(a.buf + 4096, b.buf + 10000, 3000);
		b.wc_cnt = 0;
		(void)posted;
	}
	UNTIL(a.wc_cnt == 500);
	for (unsigned i = 0; i < 500; i++)
		check_wc(&a, i, 2 * i + 1, RNIC_WC_SEND, RNIC_WC_OK);
}

/* -- the end -- */

/* Each request ends once, in order, whichever failed. */
static void
check_ends(struct end *e, unsigned sends, unsigned recvs)
{
	unsigned s = 0, r = 0;
	bool failed = false;

	ck_assert_uint_eq(e->wc_cnt, sends + recvs);
	for (unsigned i = 0; i < e->wc_cnt; i++) {
		if (e->wc[i].op == RNIC_WC_RECV)
			ck_assert_uint_eq(e->wc[i].wr_id, 100 + r++);
		else
			ck_assert_uint_eq(e->wc[i].wr_id, s++);
		ck_assert(!failed || e->wc[i].status == RNIC_WC_FLUSHED);
		failed = failed || e->wc[i].status != RNIC_WC_OK;
	}
	ck_assert_uint_eq(s, sends);
	ck_assert_uint_eq(r, recvs);
}

START_TEST(every_request_ends_once)
{
	/* Of the requests of a: number 0 is the Read of the connection, then five writes and the Read behind them. */
	for (unsigned at = 1; at <= 7; at++) {
		for (unsigned how = 0; how < 5; how++) {
			setup_iwarp();
			open_linked();
			post_recvs(&a, 3);
			if (how < 2) {
				hw(&a)->fail_at = at;
				hw(&a)->fail_status = how == 0 ? IBV_WC_REM_ACCESS_ERR : IBV_WC_LOC_PROT_ERR;
			}
			hw(&a)->refuse_send_at = how == 2 ? at : FAKE_NEVER;
			hw(&b)->no_answer = how > 2;
			for (unsigned i = 0; i < 5; i++)
				post(&a, RNIC_WR_WRITE, i, RNIC_SIGNALED, 0, 10, &b, 0);
			a.dev->ops->fence(a.qp);
			a.dev->ops->flush(a.dev);
			if (how == 3) {
				for (unsigned i = 0; i < at; i++)
					turn();
				b.dev->ops->qp_disconnect(b.qp, false);
			} else if (how == 4) {
				hw(&a)->hold = at % 2 == 0;
				turns();
				fake_async_qp(hw(&a), IBV_EVENT_QP_FATAL);
			}
			if (at == 7 && how < 3) {
				turns();
				ck_assert_uint_eq(a.errors, 0); /* there was no such request */
			} else {
				UNTIL(a.errors == 1);
				turns();
				ck_assert_uint_eq(a.errors, 1);
				check_ends(&a, 5, 3);
				ck_assert_int_eq(a.wc[0].status == RNIC_WC_OK, 0); /* nothing was confirmed */
				if (how == 0)
					ck_assert_int_eq(a.wc[0].status, RNIC_WC_REMOTE_ERR);
			}
			teardown();
		}
	}
}

/* What a Read confirmed stays good. */
START_TEST(the_confirmed_ones_stay_good)
{
	open_linked();
	post(&a, RNIC_WR_WRITE, 0, RNIC_SIGNALED, 0, 10, &b, 0);
	a.dev->ops->fence(a.qp);
	a.dev->ops->flush(a.dev);
	post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 10, &b, 0);
	hw(&a)->fail_at = 3;
	hw(&a)->fail_status = IBV_WC_REM_ACCESS_ERR;
	UNTIL(a.errors == 1);
	ck_assert_uint_eq(a.wc_cnt, 2);
	check_wc(&a, 0, 0, RNIC_WC_WRITE, RNIC_WC_OK);
	check_wc(&a, 1, 1, RNIC_WC_WRITE, RNIC_WC_REMOTE_ERR);
}

START_TEST(the_peer_disconnects)
{
	for (unsigned graceful = 0; graceful < 2; graceful++) {
		setup_iwarp();
		open_linked();
		post_recvs(&a, 2);
		b.dev->ops->qp_disconnect(b.qp, graceful != 0);
		UNTIL(a.errors == 1);
		ck_assert_str_eq(a.why, "the peer closed the connection");
		check_ends(&a, 0, 2);
		ck_assert_uint_eq(b.errors + b.failed, 0);
		teardown();
	}
}

/* What was posted is out when a Read says so; the end is in order then. */
START_TEST(what_was_posted_is_fenced)
{
	open_linked();
	post_recvs(&b, 1);
	hw(&b)->no_answer = true;
	memset(a.buf, 'w', 44);
	post(&a, RNIC_WR_SEND, 0, RNIC_INLINE, 0, 44, &b, 0);
	a.dev->ops->qp_disconnect(a.qp, true);
	a.dev->ops->qp_destroy(a.qp);
	a.qp = NULL;
	turns();
	ck_assert_int_eq(fake_live(&fake.qp_cnt), 2);
	check_wc(&b, 0, 100, RNIC_WC_RECV, RNIC_WC_OK);
	ck_assert_uint_eq(b.errors, 0);
	hw(&b)->no_answer = false;
	UNTIL(fake_live(&fake.qp_cnt) == 1);
	ck_assert_uint_eq(fake_cm.disconnects, 1);
	UNTIL(b.errors == 1);
}

START_TEST(lingering_is_limited_in_time)
{
	open_linked();
	post_recvs(&b, 1);
	hw(&b)->no_answer = true;
	post(&a, RNIC_WR_SEND, 0, RNIC_INLINE, 0, 44, &b, 0);
	a.dev->ops->qp_disconnect(a.qp, true);
	a.dev->ops->qp_destroy(a.qp);
	a.qp = NULL;
	turns();
	hw(&b)->no_answer = true;
	pass_deadline(&a);
	UNTIL(b.errors == 1 && fake_live(&fake.qp_cnt) == 1);
}

/* A card that is pulled: known from the connection manager, too. */
START_TEST(the_card_may_go)
{
	for (unsigned i = 0; i < 4; i++) {
		struct rnic_pd *pd;

		setup_iwarp();
		open_linked();
		post_recvs(&a, 2);
		hw(&b)->no_answer = true;
		post(&a, RNIC_WR_WRITE, 0, RNIC_SIGNALED, 0, 44, &b, 0);
		a.dev->ops->flush(a.dev);
		turn();
		if (i == 0)
			fake_unplug(&fake.devs[0], true);
		else if (i == 1)
			fake_cm_listen_event(0, RDMA_CM_EVENT_DEVICE_REMOVAL);
		else
			fake_cm_event_all(0, RDMA_CM_EVENT_DEVICE_REMOVAL);
		UNTIL(a.gones == 1 && a.errors == 1);
		if (i == 3)
			fake_cm_listen_event(0, RDMA_CM_EVENT_DEVICE_REMOVAL);
		turns();
		ck_assert_uint_eq(a.gones, 1);
		check_ends(&a, 1, 2);
		ck_assert_int_eq(a.dev->ops->pd_alloc(a.dev, &pd), -ENODEV);
		UNTIL(b.errors == 1);
		teardown();
	}
}

START_TEST(the_card_may_go_while_connecting)
{
	connect_waits();
	fake_cm_listen_event(0, RDMA_CM_EVENT_DEVICE_REMOVAL);
	UNTIL(a.gones == 1 && a.failed == 1);
	ck_assert_uint_eq(a.wc_cnt, 2);
	a.dev->ops->qp_destroy(a.qp);
	a.qp = NULL;
	ck_assert_int_eq(fake_live(&fake.qp_cnt), 2); /* the kernel is at it */
	fake_cm_go(ENODEV);
	UNTIL(fake_live(&fake.qp_cnt) == 1);
}

/* -- opening -- */

static void
open_fails(const struct verbs_config *c, int rc, const char *expected)
{
	const char *why = "?";
	struct rnic_loop l;

	poll_loop_init(&a.loop);
	l = poll_loop_rnic(&a.loop);
	ck_assert_int_eq(verbs_open(c, &l, &rng, &a.dev, &why), rc);
	ck_assert_str_eq(why, expected);
	poll_loop_fini(&a.loop);
	fake_check_clean();
}

START_TEST(opening_says_what_is_wrong)
{
	struct verbs_config c = iwarp_config(0);

	fake_cm.channel_err = ENODEV;
	open_fails(&c, -ENODEV, "the kernel's RDMA connection manager (module rdma_ucm) cannot be used");
	fake_cm.channel_err = 0;
	fake_cm.listen_err = EACCES;
	open_fails(&c, -EACCES, "cannot listen on the MPA port");
	fake_cm.listen_err = 0;
	fake_cm.foreign_dev = true;
	open_fails(&c, -ENODEV, "the iWARP card has no such IP address");
	fake_cm.foreign_dev = false;
	c.mpa_port_min = 7471;
	c.mpa_port_max = 7473;
	fake_cm.busy_ports = 3;
	open_fails(&c, -EADDRINUSE, "no free MPA port in the range");
	memset(&c.addr, 0, sizeof(c.addr)); /* of its interface: this machine has none like it */
	fake_cm.bind_err = EADDRNOTAVAIL;
	open_fails(&c, -ENODEV, "the iWARP card has no such IP address");
}

START_TEST(the_mpa_port_is_of_the_range)
{
	struct verbs_config c = iwarp_config(0);

	c.mpa_port_min = 7471;
	c.mpa_port_max = 7570;
	fake_cm.busy_ports = 2;
	end_open(&a, &c);
	ck_assert_uint_eq(rnic_query(a.dev).mpa_port, 7473);
	end_close(&a);
	fake_check_clean();
}

START_TEST(no_failed_call_leaks)
{
	for (uint32_t n = 0; n < 5; n++) {
		const struct rnic_qp_attr attr = { .sq_depth = 8, .rq_depth = 8 };
		struct rnic_qp *qp;

		setup_iwarp();
		open_cards();
		fake.fail_call = n;
		fake.fail_call_err = ENOMEM;
		if (a.dev->ops->qp_create(a.pd, &attr, &qp) == 0)
			a.dev->ops->qp_destroy(qp);
		else
			ck_assert_uint_lt(n, 3);
		teardown();
	}
}
