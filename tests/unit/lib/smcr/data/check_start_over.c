/* A writer of which everything was consumed goes on at the start of the peer's element (CDC_STARTED_OVER). */
#include "host.h"
#include "unit.h"

#define ELEM 65536u

static void
both_know(struct smcr_conn *x, struct smcr_conn *y)
{
	x->lgr->dialect.starts_over = y->lgr->dialect.starts_over = true;
}

/* len bytes from ca to cb, which are read there and known to be. */
static void
round_of(uint32_t len)
{
	ck_assert_uint_eq(host_write(ca, len, false), len);
	hosts_carry(&a, &b);
	ck_assert_uint_eq(host_read(cb, len, NULL), len);
	host_write(cb, 1, false); /* brings the cursor */
	hosts_carry(&a, &b);
	ck_assert_uint_eq(host_read(ca, 1, NULL), 1);
	host_complete(&a);
	host_complete(&b);
}

UNIT_CASE(hosts_case(tc, ELEM, false));

START_TEST(a_consumed_element_is_written_from_its_start)
{
	both_know(ca, cb);
	round_of(1000);
	host_forget(&a);
	host_write(ca, 10, false);
	hosts_carry(&a, &b);
	host_saw(&a, 0, "W 0:9", "C prod=1/10 cons=0/1 S");
	ck_assert_uint_eq(host_read(cb, 100, NULL), 10);
	/* It is said until something behind was consumed. */
	host_write(ca, 5, false);
	hosts_carry(&a, &b);
	host_saw(&a, 2, "W 10:14", "C prod=1/15 cons=0/1 S");
	ck_assert_uint_eq(host_read(cb, 100, NULL), 5);
	host_write(cb, 1, false);
	hosts_carry(&a, &b);
	host_write(ca, 7, false);
	host_forget(&a);
	hosts_carry(&a, &b);
	host_saw(&a, 0, "W 0:6", "C prod=2/7 cons=1/0 S");
	ck_assert_uint_eq(host_read(cb, 100, NULL), 7);
	ck_assert_uint_eq(a.eng.ctr.started_over, 2);
}

START_TEST(the_start_is_behind_an_eye_catcher)
{
	hosts_restart(true);
	hosts_pair(&a, &b, ELEM, &ca, &cb);
	both_know(ca, cb);
	round_of(1000);
	host_forget(&a);
	host_write(ca, 10, false);
	hosts_carry(&a, &b);
	host_saw(&a, 0, "W 4:13", "C prod=1/14 cons=0/5 S");
	ck_assert_uint_eq(host_read(cb, 100, NULL), 10);
}

START_TEST(a_peer_that_does_not_know_it_reads_on)
{
	ca->lgr->dialect.starts_over = false;
	round_of(1000);
	host_forget(&a);
	host_write(ca, 10, false);
	hosts_carry(&a, &b);
	host_saw(&a, 0, "W 1000:1009", "C prod=0/1010 cons=0/1");
	ck_assert_uint_eq(host_read(cb, 100, NULL), 10);
}

/* The flag is reserved for such a peer, who may send what it likes in it. */
START_TEST(the_flag_of_a_peer_that_does_not_know_it_says_nothing)
{
	round_of(1000);
	cb->lgr->dialect.starts_over = false;
	host_rx(&b, cb, &(struct cdc_msg){ .seq = 9, .prod = { 0, 1010 }, .prod_flags = CDC_STARTED_OVER });
	ck_assert_uint_eq(cb->rx.head, 1010);
	ck_assert(conn_is_open(cb));
}

/* The end of the first lap would read as the start of the next one. */
START_TEST(the_last_byte_of_the_first_lap_is_left)
{
	both_know(ca, cb);
	round_of(1000);
	ck_assert_uint_eq(host_write(ca, ELEM, false), ELEM);
	host_forget(&a);
	hosts_carry(&a, &b);
	host_saw(&a, 0, "W 0:65534", "C prod=1/65535 cons=0/1 BS");
	/* It follows when the peer has consumed something. */
	ck_assert_uint_eq(host_read(cb, 40000, NULL), 40000);
	hosts_carry(&a, &b);
	host_saw(&a, 2, "W 65535:65535", "C prod=2/0 cons=0/1");
	ck_assert_uint_eq(host_read(cb, ELEM, NULL), ELEM - 40000);
}

START_TEST(a_writer_with_data_in_flight_continues_behind_it)
{
	both_know(ca, cb);
	round_of(1000);
	host_write(ca, 10, false);
	hosts_carry(&a, &b);
	host_forget(&a);
	host_write(ca, 10, false);
	hosts_carry(&a, &b);
	host_saw(&a, 0, "W 10:19", "C prod=1/20 cons=0/1 S");
	ck_assert_uint_eq(host_read(cb, 100, NULL), 20);
}

/* What a lost link may still bring would be placed at the start, too; so would a repetition, were its link lost as well. */
START_LOOP_TEST(no_writer_starts_over_while_old_data_may_be_placed, 0, 2)
{
	both_know(ca, cb);
	round_of(1000);
	if (_i == 0)
		ca->tx.late = 500;
	else
		ca->tx.replay = 1001;
	host_forget(&a);
	host_write(ca, 10, false);
	hosts_carry(&a, &b);
	host_saw(&a, 0, "W 1000:1009", "C prod=0/1010 cons=0/1");
	ck_assert_uint_eq(host_read(cb, 100, NULL), 10);
}

/* The peer has told of a part of what came over the lost link, and has all of it. Were the rest written to the start, the peer
 * would take it for what follows. */
START_TEST(a_writer_that_went_back_starts_over_behind_all_that_it_ever_sent)
{
	both_know(ca, cb);
	round_of(1000);
	host_write(ca, 300, false);
	hosts_carry(&a, &b);
	ck_assert_uint_eq(cb->rx.head, 1300);
	/* What failover.c does; and the cursor of a part comes. */
	ca->tx.sent = ca->tx.floor = tx_released(&ca->tx);
	ca->tx.replay = ca->tx.high;
	ck_assert_uint_eq(ca->tx.sent, 1000);
	ck_assert_uint_eq(host_read(cb, 100, NULL), 100);
	host_write(cb, 1, false);
	hosts_carry(&b, &a);
	ca->tx.done = ca->tx.replay; /* no repetition is under way */
	conn_tx_schedule(ca);
	host_forget(&a);
	hosts_carry(&a, &b);
	ck_assert_uint_eq(host_read(cb, 1000, NULL), 200); /* each byte once, as host_read looks */
	ck_assert_uint_eq(a.eng.ctr.started_over, 1);
	ck_assert_uint_eq(host_read(ca, 1, NULL), 1);
}

/* The message that said so is lost with its link, and the next one says it, too. */
START_LOOP_TEST(a_failover_says_it_again, 0, 2)
{
	both_know(ca, cb);
	round_of(1000);
	host_write(ca, 10, false);
	host_flush(&a);
	if (_i == 0)
		a.carried = a.dev.cnt; /* nothing of it has arrived */
	else
		hosts_carry(&a, &b);
	ca->tx.sent = tx_released(&ca->tx);
	conn_tx_schedule(ca);
	host_forget(&a);
	hosts_carry(&a, &b);
	host_saw(&a, 0, "W 0:9", "C prod=1/10 cons=0/1 S");
	ck_assert_uint_eq(cb->rx.head, 1010);
	ck_assert_uint_eq(host_read(cb, 100, NULL), 10);
}

START_TEST(cursors_of_before_are_old_ones)
{
	both_know(ca, cb);
	round_of(1000);
	host_write(ca, 10, false);
	host_flush(&a);
	host_rx(&a, ca, &(struct cdc_msg){ .seq = 7, .prod = { 0, 1 }, .cons = { 0, 1000 } });
	ck_assert(conn_is_open(ca));
	ck_assert_uint_eq(ca->tx.acked, 1000);
	host_rx(&a, ca, &(struct cdc_msg){ .seq = 8, .prod = { 0, 1 }, .cons = { 1, 4 } });
	ck_assert_uint_eq(ca->tx.acked, 1004);
}

/* -- lies -- */

START_LOOP_TEST(what_was_not_said_to_be_consumed_cannot_be_started_over, 0, 2)
{
	both_know(ca, cb);
	ck_assert_uint_eq(host_write(ca, 1000, false), 1000);
	hosts_carry(&a, &b);
	if (_i == 1) /* consumed, but the peer cannot know */
		ck_assert_uint_eq(host_read(cb, 1000, NULL), 1000);
	host_rx(&b, cb, &(struct cdc_msg){ .seq = 2, .prod = { 1, 10 }, .prod_flags = CDC_STARTED_OVER });
	ck_assert(!conn_is_open(cb));
	ck_assert_uint_eq(b.eng.ctr.bad_cdc, 1);
	ck_assert_str_eq(host_last_log(&b), "started over before it was notified that all is consumed");
}

START_TEST(a_lap_too_many_is_outside_the_window)
{
	both_know(ca, cb);
	round_of(1000);
	host_rx(&b, cb, &(struct cdc_msg){ .seq = 9, .prod = { 2, 10 }, .prod_flags = CDC_STARTED_OVER });
	ck_assert(!conn_is_open(cb));
	ck_assert_uint_eq(b.eng.ctr.bad_cdc, 1);
}

START_TEST(without_the_flag_it_is_data)
{
	both_know(ca, cb);
	round_of(1000);
	host_rx(&b, cb, &(struct cdc_msg){ .seq = 9, .prod = { 1, 1001 } });
	ck_assert(!conn_is_open(cb));
	ck_assert_uint_eq(b.eng.ctr.bad_cdc, 1);
}

/* -- what it is for -- */

START_TEST(small_messages_stay_in_front)
{
	both_know(ca, cb);
	for (unsigned i = 0; i < 200; i++) {
		round_of(1000);
		host_forget_posted(&a);
		host_forget_posted(&b);
	}
	ck_assert_uint_eq(cb->rmb->units[cb->elem_idx - 1].dirty, 1000);
	ck_assert_uint_eq(a.eng.ctr.bytes_sent, 200 * 1000);
	ck_assert_uint_eq(b.eng.ctr.bytes_received, 200 * 1000);
}
