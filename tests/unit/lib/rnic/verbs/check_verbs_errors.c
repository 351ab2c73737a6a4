/*
 * Whatever goes wrong on a verbs device, each request ends exactly once: the
 * failed one with its error, those before it well, all behind it as flushed;
 * and none ends before the card is done with its buffer.
 */
#include "verbs_ends.h"

#define RECVS 10
#define ID_SEND 1000
#define ID_RECV 5000

/* -- how a case goes -- */

enum how {
	HOW_RETRY, /* completions with an error, by status */
	HOW_RNR,
	HOW_ACCESS,
	HOW_LOCAL,
	HOW_FLUSH,    /* the first that is seen is a flushed one */
	HOW_REFUSED,  /* posting fails part way */
	HOW_QP_FATAL, /* the card says so by an event */
	HOW_STOP,     /* our user disconnects */
	HOW_UNPLUG,   /* the card is taken away, and says so */
	HOW_VANISH,   /* ... or not */
	HOW_CNT,
};

struct plan {
	enum how how;
	unsigned cnt;     /* requests posted */
	unsigned at;      /* the one that fails */
	unsigned signals; /* each so-manieth is signaled; 0: none */
	unsigned done;    /* the card has done so many before the rest is posted */
	unsigned poll_max;
};

static const char *
text(const struct plan *p)
{
	static char s[128];

	(void)snprintf(s, sizeof(s), "how %d, %u requests, at %u, signals %u, done %u, poll %u", (int)p->how, p->cnt,
	    p->at, p->signals, p->done, p->poll_max);
	return s;
}

static bool
is_signaled(const struct plan *p, unsigned i)
{
	return p->signals != 0 && (i + 1) % p->signals == 0;
}

static void
post_one(const struct plan *p, unsigned i)
{
	enum rnic_wr_op op = i % 3 == 2 ? RNIC_WR_SEND : RNIC_WR_WRITE;
	unsigned flags = (is_signaled(p, i) ? RNIC_SIGNALED : 0u) | (op == RNIC_WR_SEND ? RNIC_INLINE : 0u);

	post(&a, op, ID_SEND + i, flags, i * 64, op == RNIC_WR_SEND ? 44 : 1000, &b, 0);
}

static void
spoil(const struct plan *p)
{
	static const enum ibv_wc_status status[] = {
		[HOW_RETRY] = IBV_WC_RETRY_EXC_ERR,
		[HOW_RNR] = IBV_WC_RNR_RETRY_EXC_ERR,
		[HOW_ACCESS] = IBV_WC_REM_ACCESS_ERR,
		[HOW_LOCAL] = IBV_WC_LOC_PROT_ERR,
		[HOW_FLUSH] = IBV_WC_WR_FLUSH_ERR,
	};

	if (p->how <= HOW_FLUSH) {
		hw(&a)->fail_at = p->at;
		hw(&a)->fail_status = status[p->how];
	} else if (p->how == HOW_REFUSED) {
		hw(&a)->refuse_send_at = p->at;
		hw(&a)->refuse_on = p->signals == 2;
	}
}

static enum rnic_wc_status
expected(const struct plan *p)
{
	switch (p->how) {
	case HOW_RETRY:
		return RNIC_WC_RETRY_EXC;
	case HOW_RNR:
	case HOW_ACCESS:
		return RNIC_WC_REMOTE_ERR;
	case HOW_LOCAL:
		return RNIC_WC_LOCAL_ERR;
	case HOW_FLUSH:
	case HOW_REFUSED:
	case HOW_QP_FATAL:
	case HOW_STOP:
	case HOW_UNPLUG:
	case HOW_VANISH:
	case HOW_CNT:
		break;
	}
	return RNIC_WC_FLUSHED;
}

/* -- the books -- */

static unsigned ends[256]; /* of sends, by index */
static unsigned recv_ends[RECVS];
static unsigned first_bad, bad_cnt;
static enum rnic_wc_status bad_status;
static unsigned last_pos; /* of the sends reported, one behind */

/* Every completion that is there; those that failed only when the card has nothing left. */
static void
book(const struct plan *p, const struct fake_qp *card)
{
	struct rnic_wc wc[64];
	unsigned n;

	do {
		n = a.dev->ops->poll(a.dev, wc, p->poll_max);
		for (unsigned i = 0; i < n; i++) {
			bool recv = wc[i].op == RNIC_WC_RECV;
			unsigned pos = (unsigned)wc[i].wr_id - (recv ? ID_RECV : ID_SEND);

			ck_assert_ptr_eq(wc[i].qp, a.qp);
			if (wc[i].status != RNIC_WC_OK && fake_qp_of(a.qp->qpn) == card && card != NULL) {
				ck_assert_msg(fake_sends_left(card) == 0, "too early: %s", text(p));
				ck_assert_uint_eq(fake_recvs_left(card), 0);
			}
			if (recv) {
				ck_assert_uint_lt(pos, RECVS);
				ck_assert_int_eq(wc[i].status, RNIC_WC_FLUSHED);
				ck_assert_uint_eq(wc[i].len, 0);
				recv_ends[pos]++;
				continue;
			}
			ck_assert_uint_lt(pos, p->cnt);
			ck_assert_int_eq(wc[i].op, pos % 3 == 2 ? RNIC_WC_SEND : RNIC_WC_WRITE);
			ck_assert_msg(pos >= last_pos, "out of order: %s", text(p));
			last_pos = pos + 1;
			ends[pos]++;
			if (wc[i].status == RNIC_WC_OK) {
				ck_assert_msg(is_signaled(p, pos), "not asked for: %s", text(p));
				ck_assert_uint_eq(bad_cnt, 0);
				for (unsigned k = 0; k < pos; k++)
					ends[k] = ends[k] == 0 ? 1 : ends[k]; /* done, too */
				continue;
			}
			if (bad_cnt++ == 0) {
				first_bad = pos;
				bad_status = wc[i].status;
			} else {
				ck_assert_int_eq(wc[i].status, RNIC_WC_FLUSHED);
			}
		}
	} while (n > 0);
}

/* The engine's view: a failed request says that all before it are done (lib/smcr/data/link_tx.c). */
static void
balance(const struct plan *p)
{
	unsigned from = bad_cnt > 0 ? first_bad : p->cnt;

	for (unsigned i = 0; i < p->cnt; i++) {
		unsigned n = ends[i] == 0 && i < from ? 1 : ends[i];

		ck_assert_msg(n == 1, "request %u ended %u times: %s", i, n, text(p));
	}
	ck_assert_msg(
	    bad_cnt == 0 || bad_cnt == p->cnt - first_bad, "%u of %u: %s", bad_cnt, p->cnt - first_bad, text(p));
	for (unsigned i = 0; i < RECVS; i++)
		ck_assert_msg(recv_ends[i] == 1, "receive %u ended %u times: %s", i, recv_ends[i], text(p));
}

static void
events(const struct plan *p)
{
	unsigned n = a.errors;

	collect(&a);
	ck_assert_uint_eq(a.wc_cnt, 0); /* all had been polled */
	if (p->how == HOW_STOP)
		ck_assert_uint_eq(a.errors, 0);
	else if (a.errors == 1 && n == 0)
		ck_assert_ptr_nonnull(a.why);
	ck_assert_uint_le(a.errors, 1);
}

static void
happen(const struct plan *p, struct fake_qp *card)
{
	if (p->how == HOW_QP_FATAL)
		fake_async_qp(card, IBV_EVENT_QP_FATAL);
	else if (p->how == HOW_STOP)
		a.dev->ops->qp_disconnect(a.qp, false);
	else if (p->how == HOW_UNPLUG || p->how == HOW_VANISH)
		fake_unplug(card->dev, p->how == HOW_UNPLUG);
}

static void
run_plan(const struct plan *p)
{
	struct fake_qp *card;

	setup();
	fake.destroy_cleans = p->cnt % 2 == 0;
	open_both();
	end_qp(&a, 64, RECVS);
	end_qp(&b, 64, 64);
	for (unsigned i = 0; i < 64; i++)
		post_recv(&b, i, BUF / 2 + i * 64, 64);
	for (unsigned i = 0; i < RECVS; i++)
		post_recv(&a, ID_RECV + i, BUF / 2 + i * 64, 64);
	connect_ends();
	memset(ends, 0, sizeof(ends));
	memset(recv_ends, 0, sizeof(recv_ends));
	bad_cnt = last_pos = 0;
	card = hw(&a);
	spoil(p);
	for (unsigned i = 0; i < p->cnt; i++) {
		if (i == p->done) {
			a.dev->ops->flush(a.dev);
			fake_run();
			if (a.dev->ops->poll != NULL && hw(&a) != NULL && p->at >= p->done)
				card->hold = p->how > HOW_REFUSED;
		}
		if (room(&a).wrs == 0)
			break; /* broke already */
		post_one(p, i);
	}
	a.dev->ops->flush(a.dev);
	happen(p, card);
	for (unsigned i = 0; i < 8 || is_ending(&a); i++) {
		poll_loop_turn(&a.loop, &a.dev, 1, i < 8 ? 0 : 10);
		book(p, card);
		events(p);
		if (i > 0)
			fake_run();
	}
	balance(p);
	if (p->how <= HOW_LOCAL) {
		ck_assert_msg(bad_cnt > 0 && first_bad == p->at, "%u: %s", first_bad, text(p));
		ck_assert_int_eq(bad_status, expected(p));
	}
	if (p->how != HOW_STOP)
		ck_assert_msg(a.errors == 1, "no word of it: %s", text(p));
	ck_assert_int_eq(try_post(&a, RNIC_WR_WRITE, 1, 0, 0, 1, &b, 0), -ENOTCONN);
	ck_assert_int_eq(try_recv(&a, 1, 0, 1), -ENOTCONN);
	ck_assert_uint_eq(room(&a).wrs, 0);
	close_both();
}

UNIT_FIXTURE(setup, teardown);

/* Orders, positions and patterns, for each way to fail. */
START_LOOP_TEST(each_request_ends_once, 0, HOW_CNT)
{
	static const unsigned signals[] = { 0, 1, 2, 5, 12 }, done[] = { 0, 3, 7 }, polls[] = { 1, 5, 64 };
	unsigned n = 0;

	for (unsigned cnt = 1; cnt <= 12; cnt += cnt < 3 ? 1 : 3)
		for (unsigned at = 0; at < cnt; at++)
			for (unsigned s = 0; s < 5; s++)
				for (unsigned d = 0; d < 3; d++) {
					const struct plan p = {
						.how = (enum how)_i,
						.cnt = cnt,
						.at = at,
						.signals = signals[s],
						.done = done[d],
						.poll_max = polls[n++ % 3],
					};

					if (done[d] <= at)
						run_plan(&p);
				}
}

/* -- one by one -- */

/* The reason comes in the same turn as the failed request. */
START_TEST(the_reason_comes_with_the_failure)
{
	static const struct {
		enum ibv_wc_status status;
		enum rnic_wc_status ours;
		const char *why;
	} cases[] = {
		{ IBV_WC_RETRY_EXC_ERR, RNIC_WC_RETRY_EXC, "the peer does not answer" },
		{ IBV_WC_RESP_TIMEOUT_ERR, RNIC_WC_RETRY_EXC, "the peer does not answer" },
		{ IBV_WC_RNR_RETRY_EXC_ERR, RNIC_WC_REMOTE_ERR, "the peer has no receive posted" },
		{ IBV_WC_REM_ACCESS_ERR, RNIC_WC_REMOTE_ERR, "the peer refused a write: no access to its memory" },
		{ IBV_WC_REM_INV_REQ_ERR, RNIC_WC_REMOTE_ERR, "the peer refused a request" },
		{ IBV_WC_REM_OP_ERR, RNIC_WC_REMOTE_ERR, "the peer refused a request" },
		{ IBV_WC_LOC_PROT_ERR, RNIC_WC_LOCAL_ERR, "the RDMA device has no access to our memory" },
		{ IBV_WC_LOC_QP_OP_ERR, RNIC_WC_LOCAL_ERR, "the RDMA device reports a local error" },
		{ IBV_WC_GENERAL_ERR, RNIC_WC_LOCAL_ERR, "the RDMA device reports a local error" },
		{ IBV_WC_WR_FLUSH_ERR, RNIC_WC_FLUSHED, "the queue pair went to the error state" },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		setup();
		open_connected();
		hw(&a)->fail_at = 0;
		hw(&a)->fail_status = cases[i].status;
		post(&a, RNIC_WR_WRITE, 1, 0, 0, 10, &b, 0);
		while (a.wc_cnt == 0) {
			ck_assert_uint_eq(a.errors, 0);
			turn();
		}
		check_wc(&a, 0, 1, RNIC_WC_WRITE, cases[i].ours);
		ck_assert_uint_eq(a.errors, 1);
		ck_assert_str_eq(a.why, cases[i].why);
		ck_assert_int_eq(a.silent, cases[i].ours == RNIC_WC_RETRY_EXC);
		close_both();
	}
}

START_TEST(failures_are_counted)
{
	static const enum ibv_wc_status s[] = { IBV_WC_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_REM_ACCESS_ERR,
		IBV_WC_LOC_QP_OP_ERR };

	for (unsigned i = 0; i < 4; i++) {
		struct verbs_stats st;

		setup();
		open_connected();
		hw(&a)->fail_at = 1;
		hw(&a)->fail_status = s[i];
		for (unsigned k = 0; k < 5; k++)
			post(&a, RNIC_WR_WRITE, k, 0, 0, 10, &b, 0);
		turns();
		st = stats(&a);
		ck_assert_uint_eq(st.retry_exc, i == 0);
		ck_assert_uint_eq(st.rnr_retry_exc, i == 1);
		ck_assert_uint_eq(st.remote_access_errs, i == 2);
		ck_assert_uint_eq(st.other_errs, i == 3);
		ck_assert_uint_eq(st.flushed, 3);
		close_both();
	}
}

/* What came before the break still counts, however it lies among the failures. */
START_TEST(what_arrived_before_the_break_is_given)
{
	open_both();
	end_qp(&a, 64, 16);
	for (unsigned i = 0; i < 16; i++)
		post_recv(&a, i, i * 64, 64);
	connect_ends();
	hw(&a)->fail_at = 0;
	hw(&a)->fail_status = IBV_WC_RETRY_EXC_ERR;
	for (unsigned i = 0; i < 10; i++)
		post(&b, RNIC_WR_SEND, i, RNIC_INLINE, 0, 44, &a, 0);
	b.dev->ops->flush(b.dev);
	fake_run();
	post(&a, RNIC_WR_WRITE, 99, 0, 0, 10, &b, 0);
	turns();
	ck_assert_uint_eq(a.wc_cnt, 17);
	for (unsigned i = 0, ok = 0, bad = 0; i < 17; i++) {
		if (a.wc[i].op != RNIC_WC_RECV)
			continue;
		if (a.wc[i].status == RNIC_WC_OK)
			ck_assert_uint_eq(a.wc[i].wr_id, ok++);
		else
			ck_assert_uint_eq(a.wc[i].wr_id, 10 + bad++);
		ck_assert_uint_le(ok, 10);
	}
}

/* A failed send in front of what arrived, in one batch of completions, on a card that cannot be stopped: taking it from
 * the card must not lose the rest of the batch. */
START_TEST(a_batch_is_read_to_its_end)
{
	unsigned ok = 0;

	open_both();
	end_qp(&a, 64, 16);
	for (unsigned i = 0; i < 16; i++)
		post_recv(&a, i, i * 64, 64);
	connect_ends();
	post(&a, RNIC_WR_WRITE, 98, 0, 0, 10, &b, 0);
	post(&a, RNIC_WR_WRITE, 99, 0, 0, 10, &b, 0);
	for (unsigned i = 0; i < 10; i++)
		post(&b, RNIC_WR_SEND, i, RNIC_INLINE, 0, 44, &a, 0);
	a.dev->ops->flush(a.dev);
	b.dev->ops->flush(b.dev);
	hw(&a)->fail_at = 0;
	hw(&a)->fail_status = IBV_WC_LOC_QP_OP_ERR;
	hw(&a)->no_flush = true;
	/* First our failure, then, before the card has stopped, the peer's messages. */
	hw(&b)->hold = true;
	fake_run();
	hw(&a)->qp.state = IBV_QPS_RTS;
	hw(&a)->hold = true;
	hw(&b)->hold = false;
	fake_run();
	hw(&a)->to_err_err = EIO;
	turns();
	for (unsigned i = 0; i < a.wc_cnt; i++)
		ok += a.wc[i].op == RNIC_WC_RECV && a.wc[i].status == RNIC_WC_OK;
	ck_assert_uint_eq(a.wc_cnt, 18);
	ck_assert_uint_eq(ok, 10);
	ck_assert_uint_eq(a.errors, 1);
}

START_TEST(a_message_that_is_too_long_breaks_both)
{
	open_connected();
	post_recv(&b, 1, 0, 40);
	post_recv(&b, 2, 64, 64);
	post(&a, RNIC_WR_SEND, 1, RNIC_INLINE, 0, 44, &b, 0);
	turns();
	check_wc(&a, 0, 1, RNIC_WC_SEND, RNIC_WC_REMOTE_ERR);
	ck_assert_uint_eq(b.wc_cnt, 2);
	check_wc(&b, 0, 1, RNIC_WC_RECV, RNIC_WC_LOCAL_ERR);
	check_wc(&b, 1, 2, RNIC_WC_RECV, RNIC_WC_FLUSHED);
	ck_assert_str_eq(b.why, "the peer sent a message that is too long");
}

/* Nothing fails, it just waits: RNR is without end. */
START_TEST(a_missing_receive_holds_the_sender_back)
{
	open_connected();
	post(&a, RNIC_WR_SEND, 1, RNIC_INLINE | RNIC_SIGNALED, 0, 44, &b, 0);
	post(&a, RNIC_WR_WRITE, 2, RNIC_SIGNALED, 0, 44, &b, 0);
	turns();
	ck_assert_uint_eq(a.wc_cnt, 0);
	post_recv(&b, 1, 0, 64);
	turns();
	ck_assert_uint_eq(a.wc_cnt, 2);
	ck_assert_uint_eq(a.errors, 0);
}

/* The request that the card did not take is the one that failed, when nothing else had. */
START_TEST(a_refused_request_has_a_local_error)
{
	open_connected();
	hw(&a)->refuse_send_at = 2;
	post(&a, RNIC_WR_WRITE, 0, RNIC_SIGNALED, 0, 10, &b, 0);
	post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 10, &b, 0);
	a.dev->ops->flush(a.dev);
	fake_run();
	post(&a, RNIC_WR_WRITE, 2, 0, 0, 10, &b, 0);
	post(&a, RNIC_WR_WRITE, 3, 0, 0, 10, &b, 0);
	turns();
	ck_assert_uint_eq(a.wc_cnt, 4);
	check_wc(&a, 1, 1, RNIC_WC_WRITE, RNIC_WC_OK);
	check_wc(&a, 2, 2, RNIC_WC_WRITE, RNIC_WC_LOCAL_ERR);
	check_wc(&a, 3, 3, RNIC_WC_WRITE, RNIC_WC_FLUSHED);
	ck_assert_str_eq(a.why, "the RDMA device rejected a work request");
}

/* It took those before: their buffers are its own until they are flushed. */
START_TEST(a_chain_is_refused_part_way)
{
	open_connected();
	hw(&a)->refuse_send_at = 2;
	for (unsigned i = 0; i < 4; i++)
		post(&a, RNIC_WR_WRITE, i, 0, 0, 10, &b, 0);
	for (unsigned i = 0; i < 3; i++)
		turn_one(&a, 0);
	ck_assert_uint_eq(fake_sends_left(hw(&a)), 3); /* and the one that comes last */
	ck_assert_uint_eq(a.wc_cnt + a.errors, 0);
	turns();
	ck_assert_uint_eq(a.wc_cnt, 4);
	for (unsigned i = 0; i < 4; i++)
		check_wc(&a, i, i, RNIC_WC_WRITE, RNIC_WC_FLUSHED);
	ck_assert_uint_eq(a.errors, 1);
}

/* Everything that can be posted is; there is room for the last request of all, and for all completions at once. */
START_TEST(full_queues_are_flushed)
{
	open_both();
	end_qp(&a, 64, 16);
	for (unsigned i = 0; i < 16; i++)
		post_recv(&a, i, i * 64, 64);
	connect_ends();
	hw(&a)->hold = true;
	for (unsigned i = 0; i < 64; i++)
		post(&a, RNIC_WR_WRITE, i, RNIC_SIGNALED, 0, 10, &b, 0);
	a.dev->ops->flush(a.dev);
	a.dev->ops->qp_disconnect(a.qp, false);
	turns();
	ck_assert_uint_eq(a.wc_cnt, 80);
}

START_TEST(receives_that_the_card_refuses_end_like_others)
{
	struct rnic_recv_wr wr[40];

	for (unsigned at = 0; at < 40; at += 13) {
		setup();
		open_both();
		end_qp(&a, 8, 64);
		connect_ends();
		hw(&a)->refuse_recv_at = at;
		for (unsigned i = 0; i < 40; i++)
			wr[i] = (struct rnic_recv_wr){ .wr_id = i, .mr = a.mr, .ptr = a.buf, .len = 64 };
		ck_assert_int_eq(a.dev->ops->post_recv(a.qp, wr, 40), 0);
		turns();
		ck_assert_uint_eq(a.errors, 1);
		ck_assert_uint_eq(a.wc_cnt, 40);
		for (unsigned i = 0; i < 40; i++)
			check_wc(&a, i, i, RNIC_WC_RECV, RNIC_WC_FLUSHED);
		close_both();
	}
}

/* A card that does not flush loses the QP; until then its buffers are not given back. */
START_TEST(a_card_that_does_not_flush_loses_the_qp)
{
	open_connected();
	post_recv(&a, 9, 0, 64);
	hw(&a)->hold = hw(&a)->no_flush = true;
	post(&a, RNIC_WR_WRITE, 1, 0, 0, 10, &b, 0);
	post(&a, RNIC_WR_WRITE, 2, RNIC_SIGNALED, 0, 10, &b, 0);
	turns();
	fake_async_qp(hw(&a), IBV_EVENT_QP_FATAL);
	turns();
	ck_assert_uint_eq(a.wc_cnt, 0);
	ck_assert_uint_eq(a.errors, 0);
	pass_deadline(&a);
	turns();
	ck_assert_ptr_null(hw(&a));
	ck_assert_uint_eq(a.wc_cnt, 3);
	check_wc(&a, 0, 1, RNIC_WC_WRITE, RNIC_WC_FLUSHED);
	check_wc(&a, 1, 2, RNIC_WC_WRITE, RNIC_WC_FLUSHED);
	check_wc(&a, 2, 9, RNIC_WC_RECV, RNIC_WC_FLUSHED);
	ck_assert_uint_eq(a.errors, 1);
	ck_assert_str_eq(a.why, "the RDMA device reported a fatal queue pair error");
}

/* The error state is out of reach, and so are its flushes: what is known of completions still counts. */
START_LOOP_TEST(a_card_that_cannot_be_stopped_loses_the_qp, 0, 2)
{
	fake.destroy_cleans = _i == 1;
	open_connected();
	post_recv(&a, 9, 0, 64);
	post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 10, &b, 0);
	a.dev->ops->flush(a.dev);
	fake_run();
	hw(&a)->hold = true;
	post(&a, RNIC_WR_WRITE, 2, RNIC_SIGNALED, 0, 10, &b, 0);
	a.dev->ops->flush(a.dev);
	hw(&a)->to_err_err = EIO;
	a.dev->ops->qp_disconnect(a.qp, false);
	turns();
	ck_assert_uint_eq(a.wc_cnt, 3);
	check_wc(&a, 0, 1, RNIC_WC_WRITE, RNIC_WC_OK);
	check_wc(&a, 1, 2, RNIC_WC_WRITE, RNIC_WC_FLUSHED);
	check_wc(&a, 2, 9, RNIC_WC_RECV, RNIC_WC_FLUSHED);
	ck_assert_uint_eq(a.errors, 0);
}

/* Completions of what was never posted, or has ended, change nothing. */
START_TEST(completions_of_nothing_are_ignored)
{
	static const uint64_t ids[] = { 1, 2, 77, UINT32_MAX, 1ull << 63, 1ull << 63 | 5 };

	open_connected();
	post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 10, &b, 0);
	turns();
	ck_assert_uint_eq(a.wc_cnt, 1);
	for (unsigned i = 0; i < 6; i++) {
		fake_bogus(hw(&a), ids[i], IBV_WC_SUCCESS);
		turns();
	}
	fake_bogus(hw(&a), 0, IBV_WC_SUCCESS); /* again */
	turns();
	ck_assert_uint_eq(a.wc_cnt, 1);
	post(&a, RNIC_WR_WRITE, 2, RNIC_SIGNALED, 0, 10, &b, 0);
	turns();
	ck_assert_uint_eq(a.wc_cnt, 2);
	check_wc(&a, 1, 2, RNIC_WC_WRITE, RNIC_WC_OK);
}

START_TEST(a_completion_queue_that_fails_ends_its_qp)
{
	for (unsigned how = 0; how < 3; how++) {
		setup();
		open_connected();
		post_recv(&a, 9, 0, 64);
		if (how == 0)
			hw(&a)->notify_err = true;
		if (how == 1)
			hw(&a)->poll_err = true;
		if (how == 2)
			hw(&a)->hold = true;
		post(&a, RNIC_WR_WRITE, 1, RNIC_SIGNALED, 0, 10, &b, 0);
		turn();
		if (how == 2)
			fake_async_cq(hw(&a), IBV_EVENT_CQ_ERR);
		turns();
		ck_assert_uint_eq(a.errors, 1);
		ck_assert_str_eq(a.why, "its completion queue failed");
		ck_assert_uint_eq(a.wc_cnt, 2);
		ck_assert_int_eq(a.wc[0].wr_id, 1);
		ck_assert_int_eq(a.wc[1].status, RNIC_WC_FLUSHED);
		close_both();
	}
}
