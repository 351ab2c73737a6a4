/* Posting on a link: the request that is held back, signals, turns, completions. */
#include <errno.h>
#include <string.h>

#include "host.h"
#include "unit.h"

#define ELEM 65536u

static struct llc_msg
test_link(bool response)
{
	return (struct llc_msg){ .type = LLC_TEST_LINK, .response = response };
}

static int
send_llc(bool response)
{
	struct llc_msg msg = test_link(response);

	return link_send_llc(a.link, &msg);
}

static bool
signaled(unsigned i)
{
	return (a.dev.posted[i].wr.flags & RNIC_SIGNALED) != 0;
}

static void
wc(uint64_t id, enum rnic_wc_status status)
{
	link_wc(a.link, &(struct rnic_wc){ .wr_id = id, .qp = &a.dev.qp, .status = status });
}

UNIT_CASE(hosts_case(tc, ELEM, false));

START_TEST(the_last_of_a_burst_is_signaled)
{
	host_write(ca, 100, false);
	ck_assert_int_eq(send_llc(false), 0);
	host_flush(&a);
	ck_assert_uint_eq(a.dev.cnt, 3);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_uint_eq(a.dev.posted[i].wr.wr_id, i);
		ck_assert_int_eq(signaled(i), i == 2);
	}
	/* LLC first. */
	ck_assert_uint_eq(a.dev.posted[0].data[0], LLC_TEST_LINK);
	ck_assert_uint_eq(a.dev.posted[0].wr.flags, RNIC_INLINE | RNIC_SOLICITED);
	ck_assert(!a.link->has_held);
}

START_TEST(at_least_every_64th_is_signaled)
{
	struct link_wr what = { .kind = LINK_WR_WRITE };
	struct rnic_send_wr wr = { .op = RNIC_WR_WRITE };
	unsigned run = 0;

	for (int i = 0; i < 200; i++)
		ck_assert_int_eq(link_post(a.link, &wr, NULL, &what), 0);
	ck_assert_uint_eq(a.dev.cnt, 199);
	for (unsigned i = 0; i < a.dev.cnt; i++) {
		run = signaled(i) ? 0 : run + 1;
		ck_assert_uint_lt(run, LINK_SIGNAL_EVERY);
	}
	link_post_end(a.link);
	ck_assert(signaled(199));
	link_post_end(a.link);
	ck_assert_uint_eq(a.dev.cnt, 200);
	/* One completion speaks for all before it. */
	wc(150, RNIC_WC_OK);
	ck_assert_uint_eq(a.link->wr_tail, 151);
	wc(199, RNIC_WC_OK);
	ck_assert_uint_eq(a.link->wr_tail, a.link->wr_head);
}

START_TEST(no_more_is_posted_than_is_remembered)
{
	struct link_wr what = { .kind = LINK_WR_WRITE };
	struct rnic_send_wr wr = { .op = RNIC_WR_WRITE };
	struct rnic_credits room;

	for (uint32_t i = 0; i < a.link->wr_cap; i++) {
		room = link_credits(a.link);
		ck_assert_uint_eq(room.wrs, a.link->wr_cap - i);
		ck_assert_int_eq(link_post(a.link, &wr, NULL, &what), 0);
	}
	room = link_credits(a.link);
	ck_assert_uint_eq(room.wrs, 0);
	ck_assert_uint_eq(room.sends, 0);
	ck_assert_int_eq(link_post(a.link, &wr, NULL, &what), -ENOBUFS);
	wc(0, RNIC_WC_OK);
	ck_assert_int_eq(link_post(a.link, &wr, NULL, &what), 0);
}

START_TEST(room_counts_what_is_held)
{
	struct rnic_credits room;
	struct link_wr what = { .kind = LINK_WR_LLC, .llc = LLC_TEST_LINK };
	uint8_t msg[LINK_MSG_LEN] = { 7 };

	a.dev.room = (struct rnic_credits){ 10, 5, 100 };
	ck_assert_int_eq(link_post(a.link, NULL, msg, &what), 0);
	room = link_credits(a.link);
	ck_assert_uint_eq(room.wrs, 9);
	ck_assert_uint_eq(room.sends, 4);
	ck_assert_uint_eq(room.bytes, 100);
	a.link->state = LINK_DOWN;
	room = link_credits(a.link);
	ck_assert_uint_eq(room.wrs + room.sends, 0);
	ck_assert_int_eq(link_post(a.link, NULL, msg, &what), -ENOTCONN);
	ck_assert_int_eq(send_llc(false), -ENOTCONN);
	ck_assert(!link_flush(a.link));
	ck_assert_uint_eq(a.dev.cnt, 0);
}

START_TEST(the_llc_queue_is_bounded_and_waits_for_room)
{
	a.dev.room.sends = 0;
	for (int i = 0; i < LINK_LLC_QUEUE; i++)
		ck_assert_int_eq(send_llc(i % 2 == 1), 0);
	ck_assert_int_eq(send_llc(false), -ENOBUFS);
	host_write(ca, 10, false);
	host_flush(&a);
	ck_assert_uint_eq(a.dev.cnt, 0);
	/* As long as LLC waits, data do not pass it. */
	a.dev.room = (struct rnic_credits){ 6, 6, 1000 };
	link_schedule(a.link);
	host_flush(&a);
	ck_assert_uint_eq(a.dev.cnt, 6);
	ck_assert_uint_eq(a.link->llc_cnt, LINK_LLC_QUEUE - 6);
	a.dev.room = (struct rnic_credits){ 100, 100, 1000 };
	link_schedule(a.link);
	host_flush(&a);
	ck_assert_uint_eq(a.dev.cnt, LINK_LLC_QUEUE + 2);
	ck_assert_uint_eq(a.eng.ctr.llc_sent, LINK_LLC_QUEUE);
	host_complete(&a);
	ck_assert_uint_eq(a.link->wr_tail, a.link->wr_head);
}

/* An ADD LINK of version 2 with so many RTokens: 72 bytes, and 16 for each. */
static int
send_add_link(uint8_t pair_cnt, uint8_t fill)
{
	static uint8_t pairs[LLC_MAX_PAIRS * LLC_PAIR_LEN];
	struct llc_msg msg = { .type = LLC_ADD_LINK, .add_link = { .pair_cnt = pair_cnt, .pairs = pairs } };

	memset(pairs, fill, sizeof(pairs));
	return link_send_llc(a.link, &msg);
}

/* The memory that link_new would give a link of version 2. */
static void
give_long_buf(struct host *h)
{
	static uint8_t buf[LLC_MAX_LEN];

	h->lgr.version = LLC_VERSION_2;
	h->link->long_buf = buf;
	ck_assert_int_eq(
	    h->dev.dev.ops->mr_reg(h->link->pd, buf, sizeof(buf), RNIC_ACCESS_LOCAL, &h->link->recv_mr), 0);
}

static void
take_long_buf(struct host *h)
{
	h->dev.dev.ops->mr_dereg(h->link->recv_mr);
	h->link->recv_mr = NULL;
	h->link->long_buf = NULL;
}

/* They go from registered memory, one behind the other, in their place among the others; short ones are inline as ever. */
START_TEST(long_llc_messages_go_from_registered_memory)
{
	give_long_buf(&a);
	ck_assert_int_eq(send_add_link(3, 0x11), 0);
	ck_assert_int_eq(send_llc(true), 0);
	ck_assert_int_eq(send_add_link(4, 0x22), 0);
	host_flush(&a);
	ck_assert_uint_eq(a.dev.cnt, 3);
	const struct fake_wr *w = a.dev.posted;
	ck_assert_uint_eq(w[0].len, 72 + 3 * 16);
	ck_assert_uint_eq(w[1].len, LINK_MSG_LEN);
	ck_assert_uint_eq(w[2].len, 72 + 4 * 16);
	ck_assert_uint_eq(w[0].wr.flags, RNIC_SOLICITED);
	ck_assert_uint_eq(w[1].wr.flags, RNIC_SOLICITED | RNIC_INLINE);
	ck_assert_uint_eq(w[2].wr.flags, RNIC_SOLICITED | RNIC_SIGNALED);
	ck_assert_ptr_eq(w[0].wr.sge[0].mr, a.link->recv_mr);
	ck_assert_ptr_eq(w[2].wr.sge[0].ptr, w[0].wr.sge[0].ptr + w[0].len);
	ck_assert_uint_eq(w[0].data[72], 0x11);
	ck_assert_uint_eq(w[0].data[w[0].len - 1], 0x11);
	ck_assert_uint_eq(w[2].data[w[2].len - 1], 0x22);
	take_long_buf(&a);
}

/* What is on its way is not written over: there is no room until all of it is complete. The link is well meanwhile. */
START_TEST(the_room_for_long_llc_messages_is_bounded)
{
	give_long_buf(&a);
	ck_assert_int_eq(send_add_link(LLC_MAX_PAIRS, 0x11), 0);
	host_flush(&a);
	ck_assert_int_eq(send_add_link(LLC_MAX_PAIRS, 0x22), -ENOBUFS);
	ck_assert_int_eq(send_add_link(1, 0x33), 0);
	ck_assert_int_eq(send_llc(true), 0);
	ck_assert(!a.link->failed);
	host_flush(&a);
	ck_assert_uint_eq(a.dev.cnt, 3);
	wc(0, RNIC_WC_OK);
	ck_assert_int_eq(send_add_link(LLC_MAX_PAIRS, 0x22), -ENOBUFS);
	wc(2, RNIC_WC_OK);
	ck_assert_int_eq(send_add_link(LLC_MAX_PAIRS, 0x22), 0);
	ck_assert_uint_eq(a.link->long_cnt, 1);
	take_long_buf(&a);
}

/* More links than version 2 has. */
START_TEST(what_cannot_be_said_is_not_queued)
{
	struct llc_msg msg = { .type = LLC_CONFIRM_RKEY, .confirm_rkey.other_cnt = 3 };

	give_long_buf(&a);
	ck_assert_int_eq(link_send_llc(a.link, &msg), -EINVAL);
	ck_assert_uint_eq(a.link->llc_cnt + a.link->long_cnt, 0);
	take_long_buf(&a);
}

START_TEST(data_leave_room_for_llc)
{
	host_write(ca, 1000, false);
	host_flush(&a);
	ck_assert_uint_eq(a.dev.cnt, 2);
	/* Something is outstanding, so a completion will come: the last entries are not for data. */
	host_write(ca, 1000, false);
	a.dev.room = (struct rnic_credits){ 4, 4, 1000000 };
	host_flush(&a);
	ck_assert_uint_eq(a.dev.cnt, 2);
	ck_assert_int_eq(send_llc(true), 0);
	host_flush(&a);
	ck_assert_uint_eq(a.dev.cnt, 3);
	/* Nothing outstanding: the little there is has to do. */
	host_complete(&a);
	a.dev.room = (struct rnic_credits){ 3, 1, 1000000 };
	host_flush(&a);
	ck_assert_uint_eq(a.dev.cnt, 5);
}

START_TEST(one_turn_is_bounded)
{
	static struct smcr_conn *c[20], *d[20];
	size_t bytes = 0;

	for (int i = 0; i < 20; i++) {
		c[i] = host_conn(&a, ELEM, 32);
		d[i] = host_conn(&b, ELEM, 32);
		hosts_join(&a, c[i], &b, d[i]);
		conn_establish(c[i]);
		host_write(c[i], ELEM, false);
	}
	list_remove(&a.link->eng_node);
	ck_assert(link_flush(a.link));
	for (unsigned i = 0; i < a.dev.cnt; i++)
		if (a.dev.posted[i].wr.op == RNIC_WR_WRITE)
			bytes += a.dev.posted[i].len;
	ck_assert_uint_eq(bytes, 1024 * 1024);
	ck_assert(!link_flush(a.link));
	ck_assert(list_empty(&a.link->ready));
	/* When the device had enough, it says itself when to come back. */
	host_write(ca, 10000, false);
	a.dev.room.bytes = 100;
	ck_assert(!link_flush(a.link));
	ck_assert(!list_empty(&a.link->ready));
}

START_TEST(completions_resume_waiters_for_space)
{
	host_write(ca, 100, false);
	host_flush(&a);
	a.dev.room.wrs = 0;
	host_write(ca, 100, false);
	host_flush(&a);
	ck_assert(list_empty(&a.link->eng_node));
	ck_assert_uint_eq(a.dev.confirms, 1); /* and they are asked for */
	a.dev.room.wrs = 100;
	host_complete(&a);
	ck_assert(!list_empty(&a.link->eng_node));
	hosts_carry(&a, &b);
	ck_assert_uint_eq(host_read(cb, ELEM, NULL), 200);
}

START_TEST(few_sends_left_ask_for_completions)
{
	host_write(ca, 10, false);
	host_flush(&a);
	ck_assert_uint_eq(a.dev.confirms, 0);
	ck_assert_uint_eq(a.link->sends_max, 255 + 1 - 2);
	a.dev.room.sends = 60;
	host_write(ca, 10, false);
	host_flush(&a);
	ck_assert_uint_eq(a.dev.confirms, 1);
	/* Not again for the same requests. */
	link_schedule(a.link);
	host_flush(&a);
	ck_assert_uint_eq(a.dev.confirms, 1);
	/* Nothing outstanding, nothing to ask for. */
	host_complete(&a);
	a.link->want_fence = true;
	link_schedule(a.link);
	host_flush(&a);
	ck_assert_uint_eq(a.dev.confirms, 1);
}

START_TEST(a_failed_request_marks_the_link)
{
	host_write(ca, 100, false);
	ck_assert_int_eq(send_llc(true), 0);
	host_flush(&a);
	ck_assert(!a.link->failed);
	wc(1, RNIC_WC_RETRY_EXC);
	/* smcr_poll takes it down, after the device's event, which says why. */
	ck_assert(a.link->failed);
	ck_assert(a.eng.links_failed);
	ck_assert_int_eq(a.link->state, LINK_ACTIVE);
	ck_assert_uint_eq(a.link->wr_tail, 2); /* what was before the failed one is complete */
	ck_assert_uint_eq(ca->tx.done, 0);
	wc(2, RNIC_WC_FLUSHED);
	ck_assert_uint_eq(a.link->wr_tail, a.link->wr_head);
	ck_assert_uint_eq(ca->tx.done, 0);
}

START_TEST(the_end_of_a_delete_link_for_all_is_marked_and_an_arrived_confirm_link_noted)
{
	struct llc_msg msg = { .type = LLC_CONFIRM_LINK };

	ck_assert_int_eq(link_send_llc(a.link, &msg), 0);
	host_flush(&a);
	wc(0, RNIC_WC_FLUSHED);
	ck_assert(!a.lgr.contact.confirm_link_in);
	ck_assert_int_eq(link_send_llc(a.link, &msg), 0);
	msg = (struct llc_msg){ .type = LLC_DELETE_LINK, .delete_link.all = true };
	ck_assert_int_eq(link_send_llc(a.link, &msg), 0);
	host_flush(&a);
	wc(1, RNIC_WC_OK);
	ck_assert(a.lgr.contact.confirm_link_in);
	ck_assert(!a.lgr.marks.delete_sent);
	wc(2, RNIC_WC_FLUSHED); /* the client may have complied sooner than it arrived */
	ck_assert(a.lgr.marks.delete_sent);
}

START_TEST(completions_of_connections_that_are_gone)
{
	host_write(ca, 100, false);
	host_flush(&a);
	host_link_lost(ca);
	smcr_release(ca);
	host_flush(&a);
	host_complete(&a);
	ck_assert_uint_eq(a.link->wr_tail, 2);
}
