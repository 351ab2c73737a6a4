/* What a lower room tells a higher one is acted on when nothing is under way: the engine does not re-enter itself. */
#include "duo.h"
#include "smcr/data/link_tx.h"
#include "unit.h"

enum cause { DRAIN, END_WANTED, QUARANTINE_FULL, IDLE, CAUSES };

static void
give_cause(struct lgr *lgr, int cause)
{
	if (cause == DRAIN)
		smcr_drain(lgr->eng, true);
	else if (cause == END_WANTED)
		lgr->end_wanted = true;
	else if (cause == QUARANTINE_FULL)
		lgr->eng->cfg.quarantine_max = 0;
}

UNIT_CASE(duo_case(tc, 2000));

/* The last connection ends with its C, as the peer's is in already, and the group with it, for each reason that a group has. */
START_LOOP_TEST(the_last_connection_ends_while_its_link_is_flushed, 0, CAUSES)
{
	duo_begin(NULL);
	smcr_close(c[0].conn);
	duo_run(20);
	ck_assert_uint_ne(s[0].conn->close.rx_flags & CDC_CLOSED, 0);
	struct lgr *lgr = duo_lgr(B);
	struct link *link = duo_link(B);
	give_cause(lgr, _i);
	smcr_close(s[0].conn);
	uint64_t head = link->wr_head;
	smcr_flush(d.eng[B]);
	ck_assert_int_eq(s[0].conn->state, CONN_CLOSED);
	ck_assert_uint_eq(lgr->conn_cnt, 0);
	/* What was to be posted is posted, and nobody has touched the group or the link. */
	ck_assert_uint_eq(link->wr_head, head + 1);
	ck_assert(!link->has_held);
	ck_assert_int_eq(lgr->state, LGR_ACTIVE);
	ck_assert_int_eq(link->state, LINK_ACTIVE);
	ck_assert(lgr->marks.conn_left);
	smcr_poll(d.eng[B], d.now_ns);
	ck_assert_int_eq(lgr->state, _i == IDLE ? LGR_ACTIVE : LGR_DELETING);
	ck_assert(timer_armed(&lgr->idle) == (_i == IDLE));
	duo_run(100);
	duo_expect_groups(_i == IDLE);
	ck_assert(IS(c[0], CLOSED) && c[0].reason == SMCR_OK);
	ck_assert_uint_eq(duo_count(B, "DELETE LINK"), _i != IDLE);
	ck_assert_uint_eq(smcr_counters(d.eng[A])->bad_llc + smcr_counters(d.eng[A])->bad_cdc, 0);
}

/* The window of a blocked sender opens: what waits for it goes before the user is served. When nobody has waited nothing goes. */
START_TEST(what_waits_for_a_window_does_not_wait_for_the_user)
{
	struct smcr *eng;

	duo_begin(NULL);
	eng = d.eng[A];
	while (duo_write(&c[0], 10000) > 0)
		duo_run(5);
	ck_assert(c[0].conn->tx.blocked);
	uint64_t written = smcr_counters(eng)->writes;
	duo_read(&s[0]);
	(void)smcr_flush(d.eng[B]);
	d.now_ns += 1000000;
	sim_run(d.fab, d.now_ns);
	ck_assert_uint_eq(smcr_counters(eng)->writes, written);
	smcr_poll(eng, d.now_ns);
	ck_assert_uint_gt(smcr_counters(eng)->writes, written);
	ck_assert(!eng->unblocked);
}

static uint64_t
counts(const struct histogram *h)
{
	uint64_t n = 0;

	for (unsigned i = 0; i <= HISTOGRAM_BOUNDS; i++)
		n += h->cnt[i];
	return n;
}

/* Each write once, by its size; each time that the peer's buffer was full once, for as long as it was, when it is over: by room
 * (0), or by the end of the connection (1). */
START_LOOP_TEST(writes_and_waits_are_counted, 0, 2)
{
	const struct smcr_histograms *h;

	duo_begin(NULL);
	h = smcr_histograms(d.eng[A]);
	while (duo_write(&c[0], 10000) > 0)
		duo_run(5);
	ck_assert(c[0].conn->tx.blocked);
	ck_assert_uint_eq(counts(&h->blocked), smcr_counters(d.eng[A])->writer_blocked - 1);
	uint64_t before = h->blocked.sum;
	duo_run(1000);
	if (_i == 1)
		smcr_abort(c[0].conn, SMCR_R_APP_RESET);
	for (int i = 0; i < 10; i++) {
		if (_i == 0)
			duo_read(&s[0]);
		duo_run(10);
	}
	ck_assert_uint_eq(counts(&h->blocked), smcr_counters(d.eng[A])->writer_blocked);
	ck_assert_uint_ge(h->blocked.sum - before, UINT64_C(1000000000));
	ck_assert_uint_lt(h->blocked.sum - before, UINT64_C(1200000000));
	ck_assert_uint_eq(counts(&h->write_size), smcr_counters(d.eng[A])->writes);
	ck_assert_uint_eq(h->write_size.sum, smcr_counters(d.eng[A])->bytes_sent);
}

/* A link that posting finds broken is lost with the next look at marks, whatever else waits for the flush. */
START_TEST(a_link_that_fails_in_a_flush_is_lost_afterwards)
{
	struct llc_msg test = { .type = LLC_DELETE_RKEY,
		.response = true,
		.delete_rkey = { .cnt = 1, .rkeys = (const uint8_t[LLC_RKEY_LEN]){ 0 } } };

	duo_begin(NULL);
	struct link *link = duo_link(B);
	while (link->failed == NULL)
		(void)link_send_llc(link, &test);
	ck_assert_int_eq(link->state, LINK_ACTIVE);
	ck_assert(smcr_flush(d.eng[B]));
	ck_assert_int_eq(link->state, LINK_ACTIVE);
	smcr_poll(d.eng[B], d.now_ns);
	ck_assert_ptr_null(duo_lgr(B));
	duo_run(100);
	ck_assert(IS(s[0], CLOSED) && s[0].reason == SMCR_R_LINK_LOST);
}

/* The first mark of a connection or of first contact counts, but for the end of the group itself. */
START_TEST(marks_do_not_overwrite_each_other)
{
	duo_begin(NULL);
	struct lgr *lgr = duo_lgr(A);
	mark_contact(lgr, CONTACT_READY, 0, SMCR_OK, NULL);
	mark_contact(lgr, CONTACT_FAILED, 1, SMCR_R_PROTOCOL, "test");
	ck_assert_int_eq(lgr->marks.contact, CONTACT_READY);
	mark_contact(lgr, CONTACT_BROKEN, 0, SMCR_R_LLC_TIMEOUT, "test");
	ck_assert_int_eq(lgr->marks.contact, CONTACT_BROKEN);
	mark_link_failed(duo_link(A), "first");
	mark_link_failed(duo_link(A), "second");
	ck_assert_str_eq(duo_link(A)->failed, "first");
	duo_run(100);
	ck_assert(IS(c[0], CLOSED));
}
