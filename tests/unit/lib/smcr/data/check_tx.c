/* The send direction: rings, steps, what is released when, urgent data; the scenarios of 4.7 are in check_scenarios. */
#include <errno.h>
#include <string.h>

#include "host.h"
#include "unit.h"

#define ELEM 65536u

static const struct rnic_send_wr *
posted(unsigned i)
{
	ck_assert_uint_lt(i, a.dev.cnt);
	return &a.dev.posted[i].wr;
}

UNIT_CASE(hosts_case(tc, ELEM, false));

/* -- rings -- */

START_TEST(a_ring_is_lent_while_bytes_are_in_flight)
{
	struct iovec iov[2];

	ck_assert_ptr_null(ca->tx.sndbuf);
	ck_assert_uint_eq(host_write(ca, 100, false), 100);
	ck_assert_ptr_nonnull(ca->tx.sndbuf);
	ck_assert_uint_eq(a.lgr.sndbuf_lent, 1);
	hosts_carry(&a, &b);
	ck_assert_ptr_nonnull(ca->tx.sndbuf); /* sent is not delivered */
	host_complete(&a);
	ck_assert_ptr_null(ca->tx.sndbuf);
	ck_assert_uint_eq(a.lgr.sndbuf_lent, 0);
	/* Last in, first out, from its start, in one piece. */
	ck_assert_uint_eq(smcr_tx_space(ca, iov), 65536);
	ck_assert_uint_eq(iov[0].iov_len, 65536);
	ck_assert_ptr_eq(iov[0].iov_base, ca->tx.sndbuf->buf);
	host_flush(&a);
}

START_TEST(a_ring_that_was_not_used_goes_back_with_the_turn)
{
	struct iovec iov[2];

	ck_assert_uint_eq(smcr_tx_space(ca, iov), 65536);
	smcr_tx_commit(ca, 0, false);
	host_flush(&a);
	ck_assert_ptr_null(ca->tx.sndbuf);
	ck_assert_uint_eq(a.dev.cnt, 0);
}

START_TEST(the_peers_cursor_releases_as_well)
{
	host_write(ca, 40000, false);
	hosts_carry(&a, &b);
	host_read(cb, ELEM, NULL);
	hosts_carry(&a, &b);
	ck_assert_uint_eq(ca->tx.done, 0);
	ck_assert_ptr_null(ca->tx.sndbuf);
}

START_TEST(nothing_is_overwritten_before_it_is_released)
{
	struct iovec iov[2];

	ck_assert_uint_eq(host_write(ca, 65536, false), 65536);
	ck_assert_uint_eq(smcr_tx_space(ca, iov), 0);
	ck_assert_uint_eq(a.eng.ctr.sndbuf_full, 1);
	hosts_carry(&a, &b);
	ck_assert_uint_eq(smcr_tx_space(ca, iov), 0);
	ck_assert_uint_eq(a.dev.confirms, 1);
	ck_assert_uint_eq(host_events(ca), 0);
	host_complete(&a);
	ck_assert_uint_eq(host_events(ca), SMCR_EV_WRITABLE);
	ck_assert_uint_eq(smcr_tx_space(ca, iov), 65536);
	host_flush(&a);
}

START_TEST(far_away_writable_is_raised_again_when_a_sixteenth_is_free)
{
	struct iovec iov[2];

	ca->rx.far = true;
	host_write(ca, 65536, false);
	smcr_tx_space(ca, iov);
	hosts_carry(&a, &b);
	host_rx(&a, ca, &(struct cdc_msg){ .seq = 1, .cons = { 0, 4095 } });
	ck_assert_uint_eq(host_events(ca), 0);
	host_rx(&a, ca, &(struct cdc_msg){ .seq = 2, .cons = { 0, 4096 } });
	ck_assert_uint_eq(host_events(ca), SMCR_EV_WRITABLE);
}

START_TEST(writable_is_raised_again_when_a_quarter_is_free)
{
	struct iovec iov[2];

	host_write(ca, 65536, false);
	smcr_tx_space(ca, iov);
	hosts_carry(&a, &b);
	host_rx(&a, ca, &(struct cdc_msg){ .seq = 1, .cons = { 0, 16383 } });
	ck_assert_uint_eq(host_events(ca), 0);
	host_rx(&a, ca, &(struct cdc_msg){ .seq = 2, .cons = { 0, 16384 } });
	ck_assert_uint_eq(host_events(ca), SMCR_EV_WRITABLE);
	/* The free part wraps. */
	host_rx(&a, ca, &(struct cdc_msg){ .seq = 3, .cons = { 0, 20000 } });
	host_write(ca, 10000, false);
	host_rx(&a, ca, &(struct cdc_msg){ .seq = 4, .cons = { 0, 20001 } });
	ck_assert_uint_eq(smcr_tx_space(ca, iov), 10001);
	ck_assert_ptr_eq(iov[0].iov_base, ca->tx.sndbuf->buf + 10000);
}

START_TEST(no_memory_for_a_ring_while_others_have_one)
{
	struct smcr_conn *c[5], *d[5];
	struct iovec iov[2];

	for (int i = 0; i < 5; i++) {
		hosts_pair(&a, &b, ELEM, &c[i], &d[i]);
	}
	for (int i = 0; i < 4; i++)
		host_write(c[i], 10, false);
	a.dev.reg_err = -ENOMEM;
	ck_assert_uint_eq(smcr_tx_space(c[4], iov), 0);
	ck_assert_uint_eq(a.eng.ctr.sndbuf_short, 1);
	ck_assert_uint_eq(host_events(c[4]), 0);
	hosts_carry(&a, &b);
	host_complete(&a);
	ck_assert_uint_eq(host_events(c[4]), SMCR_EV_WRITABLE);
	ck_assert_uint_eq(smcr_tx_space(c[4], iov), 65536);
	a.dev.reg_err = 0;
	host_flush(&a);
}

START_LOOP_TEST(a_group_has_no_more_rings_than_connections, 0, 2)
{
	struct smcr_conn *c[2], *d;
	struct iovec iov[2];

	a.eng.cfg.conns_per_group = 2;
	for (int i = 0; i < 2; i++) {
		hosts_pair(&a, &b, ELEM, &c[i], &d);
		host_write(c[i], 10, false);
		host_flush(&a);
		/* Parked, as the device is not through with it: a peer may do so to one connection after the other. */
		smcr_abort(c[i], SMCR_R_APP_RESET);
	}
	ck_assert_uint_eq(a.lgr.sndbuf_bytes, 2 * 65536);
	ck_assert_uint_eq(smcr_tx_space(ca, iov), 0);
	ck_assert_uint_eq(a.lgr.sndbuf_bytes, 2 * 65536);
	ck_assert_uint_eq(a.eng.ctr.sndbuf_short, 1);
	ck_assert_uint_eq(host_events(ca), 0);
	if (_i == 0) {
		hosts_carry(&a, &b);
		host_complete(&a);
	} else {
		/* The link is lost, with all that its device had to do. */
		sndbuf_deregister_all(&a.lgr, a.link);
		ck_assert_int_eq(sndbuf_register_all(&a.lgr, a.link), 0);
	}
	ck_assert_uint_eq(host_events(ca), SMCR_EV_WRITABLE);
	ck_assert_uint_eq(smcr_tx_space(ca, iov), 65536);
	host_flush(&a);
}

START_TEST(no_memory_for_the_only_ring_ends_the_connection)
{
	struct iovec iov[2];

	a.dev.reg_err = -ENOMEM;
	ck_assert_uint_eq(smcr_tx_space(ca, iov), 0);
	ck_assert_uint_eq(host_events(ca), SMCR_EV_CLOSED);
	ck_assert_int_eq(smcr_closed(ca, NULL), SMCR_R_NO_MEMORY);
	a.dev.reg_err = 0;
}

START_TEST(the_ring_of_an_aborted_connection_waits_for_the_device)
{
	struct iovec iov[2];

	host_write(ca, 100, false);
	struct sndbuf *sb = ca->tx.sndbuf;
	host_flush(&a);
	smcr_abort(ca, SMCR_R_APP_RESET);
	ck_assert_ptr_eq(sb->parked_on, a.link);
	hosts_carry(&a, &b);
	for (int i = 0; i < 4; i++) {
		struct smcr_conn *c, *d;

		hosts_pair(&a, &b, ELEM, &c, &d);
		smcr_tx_space(c, iov);
		ck_assert_ptr_ne(c->tx.sndbuf, sb);
		smcr_tx_commit(c, 1, false);
	}
	host_flush(&a);
	host_complete(&a);
	ck_assert_uint_gt(sb->parked_on->wr_tail, sb->parked_until);
}

/* -- steps -- */

START_TEST(a_write_that_passes_both_ends_has_two_requests_and_two_pieces)
{
	/* The ring starts anew with each burst, the element goes on: bring them out of step. */
	host_write(ca, 60000, false);
	hosts_carry(&a, &b);
	host_read(cb, ELEM, NULL);
	hosts_carry(&a, &b);
	host_complete(&a);
	host_write(ca, 40000, false);
	hosts_carry(&a, &b);
	host_read(cb, 30000, NULL);
	cb->tx.pending = true;
	conn_tx_schedule(cb);
	hosts_carry(&a, &b);
	ck_assert_uint_eq(ca->tx.acked, 90000);
	uint32_t at = a.dev.cnt;
	ck_assert_uint_eq(host_write(ca, 50000, false), 50000);
	hosts_carry(&a, &b);
	/* Element: 100,000 % 65,536 = 34,464; ring: 40,000. */
	ck_assert_uint_eq(posted(at)->op, RNIC_WR_WRITE);
	ck_assert_uint_eq(posted(at)->sge_cnt, 2);
	ck_assert_uint_eq(posted(at)->sge[0].len, 25536);
	ck_assert_uint_eq(posted(at)->sge[1].len, 31072 - 25536);
	ck_assert_uint_eq(posted(at + 1)->sge_cnt, 1);
	ck_assert_uint_eq(posted(at + 1)->sge[0].len, 50000 - 31072);
	ck_assert_uint_eq(posted(at + 2)->op, RNIC_WR_SEND);
	ck_assert_uint_eq(posted(at + 2)->flags & RNIC_SOLICITED, RNIC_SOLICITED);
	ck_assert_uint_eq(a.dev.cnt, at + 3);
	ck_assert_uint_eq(host_read(cb, ELEM, NULL), 60000);
}

START_TEST(a_blocked_writer_says_so_once)
{
	host_write(ca, 65536, false);
	hosts_carry(&a, &b);
	host_saw(&a, 1, "C prod=1/0 cons=0/0");
	host_complete(&a);
	host_write(ca, 10, false);
	hosts_carry(&a, &b);
	host_saw(&a, 2, "C prod=1/0 cons=0/0 B");
	host_write(ca, 10, false);
	hosts_carry(&a, &b);
	ck_assert_uint_eq(a.steps, 3);
	ck_assert_uint_eq(a.eng.ctr.writer_blocked, 1);
	ck_assert(!a.eng.unblocked);
	host_read(cb, 15, NULL);
	hosts_carry(&a, &b);
	host_saw(&b, 0, "C prod=0/0 cons=0/15");
	host_saw(&a, 3, "W 0:14", "C prod=1/15 cons=0/0 B");
}

START_TEST(no_room_for_payload_does_not_hold_back_messages)
{
	struct smcr_conn *c2, *d2;

	hosts_pair(&a, &b, ELEM, &c2, &d2);
	host_write(ca, 1000, false);
	smcr_shutdown_wr(c2);
	a.dev.room.bytes = 0;
	hosts_carry(&a, &b);
	host_saw(&a, 0, "C prod=0/0 cons=0/0 D");
	ck_assert_uint_eq(a.steps, 1);
	a.dev.room.bytes = 600;
	link_schedule(a.link);
	host_carry_one(&a, &b);
	host_saw(&a, 1, "W 0:599");
	a.dev.room.bytes = 10000;
	link_schedule(a.link);
	hosts_carry(&a, &b);
	host_saw(&a, 2, "C prod=0/600 cons=0/0", "W 600:999");
	ck_assert_uint_eq(host_read(cb, ELEM, NULL), 1000);
}

/* Wrap 0 behind wrap 1 is taken for the one after 65535 by Linux. */
START_LOOP_TEST(a_repetition_tells_linux_no_cursor_of_the_wrap_before, 0, 2)
{
	if (_i == 1)
		dialect_no_extension(&ca->lgr->dialect);
	host_write(ca, 60000, false);
	hosts_carry(&a, &b);
	host_complete(&a);
	host_read(cb, ELEM, NULL);
	hosts_carry(&a, &b);
	ck_assert_uint_eq(ca->tx.acked, 60000);
	host_write(ca, 10000, false);
	host_flush(&a);
	/* A failover goes back. */
	ca->tx.floor = ca->tx.sent = 60000;
	ca->tx.replay = ca->tx.high;
	ca->tx.pending = true;
	a.steps = 0;
	a.dev.room.bytes = 3000;
	conn_tx_schedule(ca);
	for (unsigned i = 0; i < 5; i++) {
		link_schedule(a.link);
		hosts_carry(&a, &b);
	}
	for (unsigned i = 0; i < a.steps; i++)
		if (strncmp(a.step[i], "C prod=0/", 9) == 0)
			ck_assert_msg(_i == 0, "%s", a.step[i]);
	ck_assert_uint_eq(host_read(cb, ELEM, NULL), 10000);
	ck_assert_uint_eq(ca->tx.sent, 70000);
	ck_assert(!ca->tx.pending);
}

/* A has written all that it may, B has consumed it, and what B said of that went with a link: Linux says it with the next
 * message alone. F, and a lost link that the peers are through with, are when it may have moved. */
START_LOOP_TEST(linux_is_made_to_say_its_cursor_again, 0, 3)
{
	dialect_no_extension(&ca->lgr->dialect);
	host_write(ca, 65536, false);
	hosts_carry(&a, &b);
	host_saw(&a, 0, "W 0:65519", "C prod=0/65520 cons=0/0 B");
	host_complete(&a);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_uint_gt(host_read(cb, ELEM, NULL), 0);
		cb->rx.announced = cb->rx.tail;
		cb->tx.pending = false;
		hosts_carry(&a, &b);
		ck_assert_uint_eq(ca->tx.acked, 0);
		if (_i == 0)
			failover_settled(ca->lgr);
		else if (_i == 1)
			host_rx(&a, ca, &(struct cdc_msg){ .token = ca->id, .prod_flags = CDC_FAILOVER });
		else
			conn_tx_probe(ca);
		hosts_carry(&a, &b);
		ck_assert_uint_eq(ca->tx.sent, 65520 + i + 1);
	}
	host_saw(&a, 6, "W 65522:65522", "C prod=0/65523 cons=0/0 BR");
	ck_assert_uint_eq(host_read(cb, ELEM, NULL), 1);
	hosts_carry(&a, &b);
	ck_assert_uint_ge(ca->tx.acked, 65523);
	ck_assert_uint_eq(ca->tx.probes, 0);
	ck_assert_uint_eq(ca->tx.sent, 65536);
	/* Nothing is to be heard when all has been. */
	host_read(cb, ELEM, NULL);
	ca->tx.acked = ca->tx.sent;
	failover_settled(ca->lgr);
	ck_assert_uint_eq(ca->tx.probes, 0);
}

START_TEST(an_smcrd_may_be_written_to_the_last_byte)
{
	host_write(ca, 65536, false);
	failover_settled(ca->lgr);
	hosts_carry(&a, &b);
	host_saw(&a, 0, "W 0:65535", "C prod=1/0 cons=0/0");
	failover_settled(ca->lgr);
	ck_assert_uint_eq(ca->tx.probes, 0);
}

START_TEST(little_room_for_requests)
{
	host_write(ca, 1000, false);
	a.dev.room = (struct rnic_credits){ 2, 2, 1 << 20 };
	hosts_carry(&a, &b);
	ck_assert_uint_eq(a.steps, 0); /* a step may need three */
	smcr_rx_consume(ca, 0);
	ca->tx.pending = true;
	link_schedule(a.link);
	hosts_carry(&a, &b);
	host_saw(&a, 0, "C prod=0/0 cons=0/0");
	a.dev.room = (struct rnic_credits){ 5, 0, 1 << 20 };
	link_schedule(a.link);
	hosts_carry(&a, &b);
	ck_assert_uint_eq(a.steps, 1);
	a.dev.room = (struct rnic_credits){ 5, 5, 1 << 20 };
	link_schedule(a.link);
	hosts_carry(&a, &b);
	ck_assert_uint_eq(host_read(cb, ELEM, NULL), 1000);
}

START_TEST(bulk_takes_turns_with_others)
{
	struct smcr_conn *c[3], *d[3];
	static const char *const order[] = { "W 0:65535", "C prod=1/0 cons=0/0 B", "W 0:9", "C prod=0/10 cons=0/0" };

	hosts_restart(false);
	a.eng.cfg.sndbuf_size = 256 * 1024;
	for (int i = 0; i < 3; i++) {
		hosts_pair(&a, &b, 4 * ELEM, &c[i], &d[i]);
	}
	host_write(c[0], 4 * ELEM, false);
	host_write(c[1], 10, false);
	host_write(c[2], 10, false);
	for (int i = 0; i < 4; i++)
		host_carry_one(&a, &b);
	host_saw(&a, 0, order[0]);
	host_saw(&a, 1, "C prod=0/65536 cons=0/0");
	host_saw(&a, 2, order[2]);
	host_saw(&a, 3, order[3]);
	hosts_carry(&a, &b);
	/* Two for each small one, four steps of 64 KiB for the large one. */
	ck_assert_uint_eq(a.steps, 2 + 2 + 8);
	ca = c[0];
	cb = d[0];
}

START_TEST(a_post_that_fails_changes_nothing)
{
	host_write(ca, 1000, false);
	a.dev.post_err = -ENOTCONN;
	host_flush(&a);
	ck_assert_uint_eq(ca->tx.sent, 0);
	ck_assert_uint_eq(ca->tx.seq, 0);
	ck_assert(!list_empty(&a.link->ready));
	a.dev.post_err = 0;
	link_schedule(a.link);
	hosts_carry(&a, &b);
	ck_assert_uint_eq(host_read(cb, ELEM, NULL), 1000);
}

START_TEST(a_post_that_fails_half_way_is_repeated)
{
	unsigned ok;

	host_write(ca, 60000, false);
	hosts_carry(&a, &b);
	host_read(cb, ELEM, NULL);
	hosts_carry(&a, &b);
	host_complete(&a);
	/* Two writes and a message; the post of each fails once. */
	for (ok = 0; ok < 3; ok++) {
		host_write(ca, 10000, false);
		a.dev.post_err = -ENOBUFS;
		a.dev.post_ok = ok;
		host_flush(&a);
		a.dev.post_err = 0;
		link_schedule(a.link);
		hosts_carry(&a, &b);
		ck_assert_uint_eq(host_read(cb, ELEM, NULL), 10000);
		hosts_carry(&a, &b);
		host_complete(&a);
		ck_assert_ptr_null(ca->tx.sndbuf);
		ca->tx.head = ca->tx.sent = ca->tx.done = ca->tx.acked = 60000;
		cb->rx.head = cb->rx.tail = cb->rx.announced = 60000;
	}
}

START_TEST(an_rmb_that_the_peer_took_back)
{
	host_write(ca, 1000, false);
	ca->peer_rmb->on[0].known = false;
	host_flush(&a);
	ck_assert_uint_eq(host_events(ca), SMCR_EV_CLOSED);
	ck_assert_int_eq(smcr_closed(ca, NULL), SMCR_R_PROTOCOL);
	for (unsigned i = 0; i < a.dev.cnt; i++)
		ck_assert_int_eq(posted(i)->op, RNIC_WR_SEND);
}

/* -- urgent data -- */

START_TEST(two_urgent_bytes_both_arrive_as_urgent)
{
	struct iovec iov[2];
	unsigned urgent = 0;

	host_write(ca, 1, true);
	host_write(ca, 1, true);
	/* Two are remembered; a third has to wait. */
	ck_assert_uint_eq(smcr_tx_space(ca, iov), 0);
	hosts_carry(&a, &b);
	host_saw(&a, 0, "W 0:0", "C prod=0/1 cons=0/0 PU");
	ck_assert_uint_eq(a.steps, 2);
	ck_assert_uint_eq(host_read(cb, 10, &urgent), 1);
	hosts_carry(&a, &b);
	host_saw(&a, 2, "W 1:1", "C prod=0/2 cons=0/0 PU");
	ck_assert_uint_eq(host_events(ca), SMCR_EV_WRITABLE);
	host_write(ca, 5, false);
	hosts_carry(&a, &b);
	ck_assert_uint_eq(a.steps, 4);
	ck_assert_uint_eq(host_read(cb, 10, &urgent), 1);
	ck_assert_uint_eq(urgent, 2);
	hosts_carry(&a, &b);
	host_saw(&a, 5, "C prod=0/7 cons=0/0");
	ck_assert_uint_eq(host_read(cb, 10, &urgent), 5);
	ck_assert_uint_eq(urgent, 2);
	ck_assert_uint_eq(a.eng.ctr.urgent_sent, 2);
	ck_assert_uint_eq(b.eng.ctr.urgent_received, 2);
}

START_TEST(a_message_of_our_own_keeps_the_urgent_flags)
{
	host_write(ca, 3, true);
	hosts_carry(&a, &b);
	ca->tx.pending = true;
	conn_tx_schedule(ca);
	hosts_carry(&a, &b);
	host_saw(&a, 2, "C prod=0/3 cons=0/0 PU");
	ck_assert_uint_eq(b.eng.ctr.urgent_received, 1);
}

START_TEST(urgent_bytes_beyond_a_step)
{
	unsigned urgent = 0;

	/* 50,000 fit, the urgent byte ends the step after them; P is set from the start. */
	a.dev.room.bytes = 50000;
	host_write(ca, 60000, true);
	host_flush(&a);
	a.dev.room.bytes = 1 << 20;
	link_schedule(a.link);
	hosts_carry(&a, &b);
	host_saw(&a, 0, "W 0:49999", "C prod=0/50000 cons=0/0 P", "W 50000:59999", "C prod=0/60000 cons=0/0 PU");
	ck_assert_uint_eq(host_read(cb, ELEM, &urgent), 60000);
	ck_assert_uint_eq(urgent, 1);
}

START_TEST(d_waits_for_the_urgent_byte_before_it)
{
	unsigned urgent = 0;

	host_write(ca, 1, true);
	host_write(ca, 10, false);
	smcr_shutdown_wr(ca);
	hosts_carry(&a, &b);
	ck_assert_int_eq(ca->state, CONN_ACTIVE);
	host_read(cb, 1, &urgent);
	hosts_carry(&a, &b);
	host_saw(&a, 3, "C prod=0/11 cons=0/0 D");
}

/* -- when completions are asked for -- */

START_TEST(small_exchanges_ask_for_nothing)
{
	for (int i = 0; i < 10; i++) {
		host_write(ca, 100, false);
		hosts_carry(&a, &b);
		host_read(cb, 100, NULL);
	}
	ck_assert_uint_eq(a.dev.confirms, 0);
}

START_TEST(a_ring_more_than_half_full_asks_once)
{
	host_write(ca, 30000, false);
	hosts_carry(&a, &b);
	ck_assert_uint_eq(a.dev.confirms, 0);
	host_write(ca, 10000, false);
	hosts_carry(&a, &b);
	ck_assert_uint_eq(a.dev.confirms, 1);
	link_schedule(a.link);
	host_flush(&a);
	ck_assert_uint_eq(a.dev.confirms, 1);
}
