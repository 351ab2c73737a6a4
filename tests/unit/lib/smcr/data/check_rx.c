/* The receive direction: what a peer may claim, reading in place, window updates. */
#include <string.h>

#include "host.h"
#include "unit.h"

#define ELEM 16384u

static struct cdc_msg
msg(uint16_t seq, uint32_t prod, uint32_t cons)
{
	return (struct cdc_msg){
		.seq = seq,
		.prod = { (uint16_t)(prod / ELEM), prod % ELEM },
		.cons = { (uint16_t)(cons / ELEM), cons % ELEM },
	};
}

static void
rx(uint16_t seq, uint32_t prod, uint32_t cons, uint8_t prod_flags, uint8_t conn_flags)
{
	struct cdc_msg m = msg(seq, prod, cons);

	m.prod_flags = prod_flags;
	m.conn_flags = conn_flags;
	host_rx(&a, ca, &m);
}

static void
expect_protocol_error(const char *why)
{
	const char *detail;

	ck_assert_uint_eq(host_events(ca), SMCR_EV_CLOSED);
	ck_assert_int_eq(smcr_closed(ca, &detail), SMCR_R_PROTOCOL);
	ck_assert_str_eq(detail, why);
	ck_assert_str_eq(host_last_log(&a), why);
	ck_assert_uint_eq(a.eng.ctr.bad_cdc, 1);
	ck_assert_int_eq(ca->state, CONN_PEER_ABORT_WAIT);
	ck_assert_uint_eq(ca->rmb->units[ca->elem_idx - 1].dirty, ELEM);
	/* Nothing else suffers. */
	ck_assert_int_eq(a.link->state, LINK_ACTIVE);
}

UNIT_CASE(hosts_case(tc, ELEM, false));

/* -- what a message may not say -- */

START_TEST(producer_beyond_the_window)
{
	rx(1, ELEM + 1, 0, 0, 0);
	expect_protocol_error("producer cursor outside the window");
	ck_assert_uint_eq(ca->rx.head, 0);
}

START_TEST(producer_beyond_the_window_that_we_advertised_though_it_is_consumed)
{
	rx(1, 1000, 0, 0, 0);
	memset(ca->rmb->units[ca->elem_idx - 1].mem, 0, 1000);
	smcr_rx_consume(ca, 1000); /* not worth an update */
	ck_assert_uint_eq(ca->rx.announced, 0);
	host_events(ca);
	rx(2, ELEM + 1, 0, 0, 0);
	expect_protocol_error("producer cursor outside the window");
}

START_TEST(producer_outside_the_element)
{
	struct cdc_msg m = msg(1, 0, 0);

	m.prod.count = ELEM;
	host_rx(&a, ca, &m);
	expect_protocol_error("producer cursor outside the window");
}

START_TEST(consumer_beyond_what_was_sent)
{
	host_write(ca, 100, false);
	host_flush(&a);
	rx(1, 50, 101, 0, 0);
	expect_protocol_error("consumer cursor beyond what was sent");
	ck_assert_uint_eq(ca->rx.head, 0); /* nothing of such a message counts */
}

START_TEST(consumer_of_what_was_written_but_not_posted)
{
	host_write(ca, 100, false);
	rx(1, 0, 100, 0, 0);
	expect_protocol_error("consumer cursor beyond what was sent");
}

START_TEST(data_after_the_end_of_data)
{
	rx(1, 10, 0, 0, CDC_SENDING_DONE);
	host_events(ca);
	rx(2, 10, 0, 0, CDC_SENDING_DONE);
	ck_assert_uint_eq(host_events(ca), 0);
	rx(3, 11, 0, 0, CDC_SENDING_DONE);
	expect_protocol_error("data after the end of data");
}

UNIT_CASE(hosts_case(tc, ELEM, true));

START_TEST(rfc_offsets_skip_the_eye_catcher)
{
	struct cdc_msg m = { .seq = 1, .prod = { 0, 3 }, .cons = { 0, 4 } };

	host_rx(&a, ca, &m);
	expect_protocol_error("producer cursor outside the window");
}

START_TEST(an_overwritten_eye_catcher_is_noticed_with_the_next_message)
{
	struct cdc_msg m = { .seq = 1, .prod = { 0, 14 }, .cons = { 0, 4 } };

	ca->rmb->units[ca->elem_idx - 1].mem[2] = 0;
	host_rx(&a, ca, &m);
	expect_protocol_error("eye catcher of the RMB element overwritten");
}

/* As a device does it: these bytes for the element from off on stay at the same offset of its buffer. */
static struct list_node buffer = { &buffer, &buffer };
static uint8_t arrived[ELEM];

static const struct rnic_unit *
leave(uint32_t off, const char *bytes)
{
	const struct rnic_mr *mr = ca->rmb->mr[a.link->slot];
	size_t at = mr->deny_unit * (ca->elem_idx - 1u) + off;
	uint8_t *place = mr->buf + at;

	memcpy(arrived + off, bytes, strlen(bytes));
	ck_assert(!rnic_mr_refuses(mr, at, strlen(bytes), false, arrived + off, &buffer, &place));
	ck_assert_ptr_null(place);
	return &ca->rmb->units[ca->elem_idx - 1];
}

START_TEST(an_eye_catcher_is_overwritten_where_the_write_arrived)
{
	struct cdc_msg m = { .seq = 1, .prod = { 0, 14 }, .cons = { 0, 4 } };

	leave(3, "0123456789");
	host_rx(&a, ca, &m);
	expect_protocol_error("eye catcher of the RMB element overwritten");
}

START_TEST(an_overwritten_eye_catcher_is_noticed_when_reading)
{
	struct cdc_msg m = { .seq = 1, .prod = { 0, 14 }, .cons = { 0, 4 } };
	struct iovec iov[2];
	bool urgent;

	host_rx(&a, ca, &m);
	ck_assert_uint_eq(smcr_rx_data(ca, iov, &urgent), 10);
	ca->rmb->units[ca->elem_idx - 1].mem[0] = 0;
	host_events(ca);
	ck_assert_uint_eq(smcr_rx_data(ca, iov, &urgent), 0);
	expect_protocol_error("eye catcher of the RMB element overwritten");
}

UNIT_CASE(hosts_case(tc, ELEM, false));

START_TEST(a_protocol_error_before_establishment_ends_the_rendezvous)
{
	struct smcr_conn *c = host_conn(&a, ELEM, 4);
	struct cdc_msg m = msg(1, 0, 0);

	m.prod.count = 0xffffffff;
	host_rx(&a, c, &m);
	ck_assert_int_eq(c->reason, SMCR_R_PROTOCOL);
	ck_assert_int_eq(c->state, CONN_CLOSED);
}

/* -- messages that are not for us -- */

START_TEST(old_messages_are_ignored)
{
	rx(5, 100, 0, 0, 0);
	host_events(ca);
	rx(4, 300, 0, 0, CDC_ABORT);
	ck_assert_uint_eq(ca->rx.head, 100);
	ck_assert_uint_eq(host_events(ca), 0);
	ck_assert_uint_eq(a.eng.ctr.cdc_stale, 1);
	/* The same number again is processed (Linux), cursors that go backwards are not. */
	rx(5, 50, 0, 0, 0);
	ck_assert_uint_eq(ca->rx.head, 100);
	ck_assert_uint_eq(a.eng.ctr.bad_cdc, 0);
	/* The number wraps through 0. */
	rx(32772, 101, 0, 0, 0);
	rx(65535, 102, 0, 0, 0);
	rx(0, 103, 0, 0, 0);
	rx(65535, 104, 0, 0, 0);
	ck_assert_uint_eq(ca->rx.head, 103);
	ck_assert_uint_eq(a.eng.ctr.cdc_stale, 2);
}

START_TEST(unknown_tokens_and_other_groups_connections)
{
	struct lgr other = { .eng = &a.eng };
	struct link link = { .lgr = &other };
	struct cdc_msg m = msg(1, 100, 0);
	uint8_t buf[CDC_LEN];

	m.token = ca->id ^ 1;
	host_rx(&a, ca, &m);
	m.token = ca->id;
	m.conn_flags = CDC_ABORT;
	ck_assert_int_eq(cdc_encode(&m, buf, sizeof(buf)), CDC_LEN);
	conn_rx_cdc(&link, buf, sizeof(buf), true);
	ck_assert_uint_eq(a.eng.ctr.cdc_unknown, 2);
	ck_assert_uint_eq(ca->rx.head, 0);
	ck_assert_uint_eq(host_events(ca), 0);
	/* Shorter or longer than a CDC message. */
	conn_rx_cdc(a.link, buf, sizeof(buf) - 1, true);
	ck_assert_uint_eq(a.eng.ctr.bad_cdc, 1);
	ck_assert_uint_eq(ca->rx.head, 0);
}

START_TEST(failover_validation_asks_for_the_sequence_alone)
{
	rx(7, 100, 0, 0, 0);
	host_events(ca);
	rx(7, 0, 0, CDC_FAILOVER, 0);
	rx(6, 0, 0, CDC_FAILOVER, 0);
	ck_assert_uint_eq(host_events(ca), 0);
	rx(8, 0, 0, CDC_FAILOVER, 0);
	expect_protocol_error("data lost in a failover");
}

START_TEST(what_overtakes_the_confirm_waits)
{
	struct smcr_conn *c = host_conn(&a, ELEM, 4);
	struct cdc_msg m = msg(1, 10, 0);
	struct iovec iov[2];
	bool urgent;

	m.conn_flags = CDC_SENDING_DONE;
	host_rx(&a, c, &m);
	ck_assert_uint_eq(host_events(c), 0);
	ck_assert_uint_eq(smcr_rx_data(c, iov, &urgent), 0);
	ck_assert(!smcr_rx_eof(c));
	hosts_join(&a, c, &b, cb);
	conn_establish(c);
	ck_assert_uint_eq(host_events(c), SMCR_EV_ESTABLISHED | SMCR_EV_READABLE);
	ck_assert_int_eq(c->state, CONN_APP_CLOSE_WAIT1);
	ck_assert_uint_eq(smcr_rx_data(c, iov, &urgent), 10);
	smcr_rx_consume(c, 10);
	ck_assert(smcr_rx_eof(c));
}

START_TEST(an_abort_that_overtakes_the_confirm)
{
	struct smcr_conn *c = host_conn(&a, ELEM, 4);
	struct cdc_msg m = msg(1, 0, 0);

	m.conn_flags = CDC_ABORT;
	host_rx(&a, c, &m);
	ck_assert_int_eq(c->state, CONN_RENDEZVOUS);
	hosts_join(&a, c, &b, cb);
	conn_establish(c);
	ck_assert_uint_eq(host_events(c), SMCR_EV_ESTABLISHED | SMCR_EV_CLOSED);
	ck_assert_int_eq(c->state, CONN_PROCESS_ABORT);
	ck_assert_int_eq(smcr_closed(c, NULL), SMCR_R_PEER_ABORT);
}

/* -- reading -- */

START_TEST(data_that_pass_the_end_come_in_two_pieces)
{
	struct iovec iov[2];
	bool urgent;

	rx(1, ELEM - 100, 0, 0, 0);
	smcr_rx_consume(ca, ELEM - 100);
	host_flush(&a);
	rx(2, ELEM + 200, 0, 0, 0);
	ck_assert_uint_eq(smcr_rx_data(ca, iov, &urgent), 300);
	ck_assert_uint_eq(iov[0].iov_len, 100);
	ck_assert_ptr_eq(iov[0].iov_base, ca->rmb->units[ca->elem_idx - 1].mem + ELEM - 100);
	ck_assert_uint_eq(iov[1].iov_len, 200);
	ck_assert_ptr_eq(iov[1].iov_base, ca->rmb->units[ca->elem_idx - 1].mem);
	smcr_rx_consume(ca, 150);
	ck_assert_uint_eq(smcr_rx_data(ca, iov, &urgent), 150);
	ck_assert_uint_eq(iov[0].iov_len, 150);
	ck_assert_uint_eq(iov[1].iov_len, 0);
}

START_TEST(the_dirty_mark_follows_the_producer)
{
	const struct rnic_unit *e = &ca->rmb->units[ca->elem_idx - 1];

	ck_assert_uint_eq(e->dirty, 0);
	rx(1, 100, 0, 0, 0);
	ck_assert_uint_eq(e->dirty, 100);
	rx(2, 150, 0, 0, 0);
	ck_assert_uint_eq(e->dirty, 150);
	smcr_rx_consume(ca, 150);
	rx(3, ELEM, 0, 0, 0);
	ck_assert_uint_eq(e->dirty, ELEM);
}

/* -- Writes that the device has left where they arrived -- */

/* Reads len bytes, which are at this place. */
static void
reads(const void *at, const char *bytes)
{
	struct iovec iov[2];
	bool urgent;

	ck_assert_uint_eq(smcr_rx_data(ca, iov, &urgent), strlen(bytes));
	ck_assert_ptr_eq(iov[0].iov_base, at);
	ck_assert_uint_eq(iov[0].iov_len, strlen(bytes));
	ck_assert_mem_eq(iov[0].iov_base, bytes, strlen(bytes));
}

START_TEST(a_write_is_read_where_it_arrived)
{
	const struct rnic_unit *u = leave(0, "hello");

	rx(1, 5, 0, 0, 0);
	reads(arrived, "hello");
	smcr_rx_consume(ca, 5);
	ck_assert_uint_eq(u->len, 0);
	ck_assert(list_empty(&buffer));
	ck_assert_uint_eq(*u->mem, 0);
	ck_assert_uint_eq(u->dirty, 0);
	leave(5, "world");
	rx(2, 10, 0, 0, 0);
	reads(arrived + 5, "world");
	smcr_rx_consume(ca, 2);
	reads(u->mem + 7, "rld"); /* the rest waits */
	ck_assert(list_empty(&buffer));
	ck_assert_uint_eq(u->dirty, 10);
}

/* The peer repeats after a failover what was read already, and then writes newer bytes there. */
START_TEST(a_repeated_write_is_older_than_the_next_lap)
{
	const struct rnic_mr *mr = ca->rmb->mr[a.link->slot];
	size_t at = mr->deny_unit * (ca->elem_idx - 1u);
	uint8_t *place = mr->buf + at;

	rx(1, ELEM, 0, 0, 0);
	smcr_rx_consume(ca, ELEM);
	host_flush(&a);
	leave(0, "old");
	ck_assert(
	    !rnic_mr_refuses(mr, at, 5, false, NULL, &buffer, &place)); /* as one that is read straight into place */
	memcpy(place, "fresh", 5);
	rx(2, ELEM + 5, 0, 0, 0);
	reads(place, "fresh");
}

/* Its buffer is reused: what has to wait is in the element, and zeroed before the next use. */
START_TEST(a_write_that_waits_is_placed)
{
	uint8_t *elem = ca->rmb->units[ca->elem_idx - 1].mem;

	leave(0, "abc");
	rx(1, 3, 0, 0, 0);
	rnic_unit_place_all(&buffer);
	ck_assert(list_empty(&buffer));
	memset(arrived, 'x', sizeof(arrived));
	reads(elem, "abc");
	smcr_rx_consume(ca, 3);
	rmb_elem_put(ca->rmb, ca->elem_idx);
	ck_assert_uint_eq(rmb_elem_get_from(ca->rmb), ca->elem_idx);
	ck_assert_uint_eq(*elem, 0);
}

START_TEST(several_writes_are_read_from_the_element)
{
	const uint8_t *elem = ca->rmb->units[ca->elem_idx - 1].mem;

	leave(0, "ab");
	leave(2, "cd");
	rx(1, 4, 0, 0, 0);
	ck_assert_uint_eq(ca->rmb->units[ca->elem_idx - 1].dirty, 4);
	reads(elem, "abcd");
	smcr_rx_consume(ca, 4);
	/* The last of them is not announced yet. */
	leave(4, "ef");
	rx(2, 6, 0, 0, 0);
	leave(6, "gh");
	reads(elem + 4, "ef");
	smcr_rx_consume(ca, 2);
	rx(3, 8, 0, 0, 0);
	reads(elem + 6, "gh");
}

START_TEST(an_urgent_byte_within_such_a_write_comes_alone)
{
	const uint8_t *elem = ca->rmb->units[ca->elem_idx - 1].mem;
	struct iovec iov[2];
	bool urgent;

	leave(0, "abc");
	rx(1, 3, 0, CDC_URGENT_PENDING | CDC_URGENT_PRESENT, 0);
	reads(elem, "ab");
	smcr_rx_consume(ca, 2);
	ck_assert_uint_eq(smcr_rx_data(ca, iov, &urgent), 1);
	ck_assert(urgent);
	ck_assert_mem_eq(iov[0].iov_base, "c", 1);
}

START_TEST(a_write_to_an_ended_connection_is_dropped)
{
	uint8_t *elem = ca->rmb->units[ca->elem_idx - 1].mem;

	leave(0, "late");
	rmb_elem_put(ca->rmb, ca->elem_idx);
	ck_assert_uint_eq(rmb_elem_get_from(ca->rmb), ca->elem_idx);
	ck_assert(list_empty(&buffer));
	ck_assert_uint_eq(*elem, 0);
}

START_TEST(urgent_bytes_come_alone)
{
	struct iovec iov[2];
	bool urgent;

	rx(1, 11, 0, CDC_URGENT_PENDING | CDC_URGENT_PRESENT, 0);
	ck_assert_uint_eq(host_events(ca), SMCR_EV_READABLE);
	ck_assert_uint_eq(smcr_rx_data(ca, iov, &urgent), 10);
	ck_assert(!urgent);
	smcr_rx_consume(ca, 10);
	ck_assert_uint_eq(smcr_rx_data(ca, iov, &urgent), 1);
	ck_assert(urgent);
	smcr_rx_consume(ca, 1);
	ck_assert_uint_eq(smcr_rx_data(ca, iov, &urgent), 0);
	ck_assert(!urgent);
	/* The flags stay on until the peer writes on: no second urgent byte. */
	rx(2, 11, 0, CDC_URGENT_PENDING | CDC_URGENT_PRESENT, 0);
	ck_assert_uint_eq(host_events(ca), 0);
	ck_assert_uint_eq(a.eng.ctr.urgent_received, 1);
	/* Its position may come behind the data (then they were not consumed past it). */
	rx(3, 20, 0, 0, 0);
	rx(4, 20, 0, CDC_URGENT_PENDING | CDC_URGENT_PRESENT, 0);
	ck_assert_uint_eq(smcr_rx_data(ca, iov, &urgent), 8);
	ck_assert_uint_eq(a.eng.ctr.urgent_received, 2);
}

START_TEST(a_newer_urgent_byte_takes_the_olders_place)
{
	struct iovec iov[2];
	bool urgent;

	/* A peer that does not wait for us: as TCP does, the older one becomes an ordinary byte. */
	rx(1, 11, 0, CDC_URGENT_PRESENT, 0);
	rx(2, 20, 0, CDC_URGENT_PRESENT, 0);
	ck_assert_uint_eq(smcr_rx_data(ca, iov, &urgent), 19);
	smcr_rx_consume(ca, 19);
	ck_assert_uint_eq(smcr_rx_data(ca, iov, &urgent), 1);
	ck_assert(urgent);
}

START_TEST(pending_without_the_byte_is_nothing_yet)
{
	rx(1, 0, 0, CDC_URGENT_PENDING, 0);
	rx(2, 0, 0, CDC_URGENT_PENDING | CDC_URGENT_PRESENT, 0); /* a byte before the first one */
	ck_assert_uint_eq(host_events(ca), 0);
	ck_assert_uint_eq(a.eng.ctr.bad_cdc, 0);
}

/* -- window updates (4.5.1); elements of 16,384 bytes: half is 8,192, a tenth 1,638.4 -- */

static unsigned
updates(void)
{
	unsigned before = a.dev.cnt;

	host_flush(&a);
	return a.dev.cnt - before;
}

START_TEST(no_update_while_half_is_open)
{
	rx(1, 8192, 0, 0, 0);
	smcr_rx_consume(ca, 8192);
	ck_assert_uint_eq(updates(), 0);
}

START_TEST(no_update_for_less_than_a_tenth)
{
	rx(1, 9000, 0, 0, 0);
	smcr_rx_consume(ca, 1638);
	ck_assert_uint_eq(updates(), 0);
	smcr_rx_consume(ca, 1);
	ck_assert_uint_eq(updates(), 1);
	ck_assert_uint_eq(ca->rx.announced, 1639);
	/* The window is open by more than half now. */
	smcr_rx_consume(ca, 7361);
	ck_assert_uint_eq(updates(), 0);
}

START_TEST(far_away_each_eighth_is_announced)
{
	ca->rx.far = true;
	rx(1, 6000, 0, 0, 0);
	smcr_rx_consume(ca, 2047);
	ck_assert_uint_eq(updates(), 0);
	smcr_rx_consume(ca, 1);
	ck_assert_uint_eq(updates(), 1);
	smcr_rx_consume(ca, 2047);
	ck_assert_uint_eq(updates(), 0);
	smcr_rx_consume(ca, 1);
	ck_assert_uint_eq(updates(), 1);
	ck_assert_uint_eq(ca->rx.announced, 4096);
}

START_TEST(arrival_alone_earns_no_update)
{
	rx(1, 8000, 0, 0, 0);
	smcr_rx_consume(ca, 8000);
	rx(2, 16000, 0, 0, 0);
	ck_assert_uint_eq(updates(), 0);
	smcr_rx_consume(ca, 1);
	ck_assert_uint_eq(updates(), 1);
}

START_TEST(a_blocked_writer_hears_of_every_byte)
{
	rx(1, ELEM, 0, CDC_WRITE_BLOCKED, 0);
	ck_assert_uint_eq(updates(), 0);
	for (int i = 0; i < 3; i++) {
		smcr_rx_consume(ca, 1);
		ck_assert_uint_eq(updates(), 1);
	}
	rx(2, ELEM, 0, 0, 0);
	smcr_rx_consume(ca, 1);
	ck_assert_uint_eq(updates(), 0);
}

START_TEST(a_writer_that_blocks_hears_what_it_does_not_know_yet)
{
	rx(1, ELEM, 0, 0, 0);
	smcr_rx_consume(ca, 5);
	ck_assert_uint_eq(updates(), 0);
	ck_assert(!ca->eng->unblocked);
	rx(2, ELEM, 0, CDC_WRITE_BLOCKED, 0);
	ck_assert(ca->eng->unblocked);
	ck_assert_uint_eq(updates(), 1);
	ck_assert_uint_eq(ca->rx.announced, 5);
}

START_TEST(update_requests_are_answered)
{
	rx(1, 100, 0, CDC_UPDATE_REQUESTED, 0);
	ck_assert_uint_eq(updates(), 0); /* it knows all there is to know */
	smcr_rx_consume(ca, 1);
	ck_assert_uint_eq(updates(), 1);
	rx(2, 100, 0, 0, 0);
	smcr_rx_consume(ca, 1);
	ck_assert_uint_eq(updates(), 0);
	rx(3, 100, 0, CDC_UPDATE_REQUESTED, 0);
	ck_assert_uint_eq(updates(), 1);
	ck_assert_uint_eq(ca->rx.announced, 2);
}

START_TEST(every_message_carries_the_cursor)
{
	rx(1, 100, 0, 0, 0);
	smcr_rx_consume(ca, 100);
	host_write(ca, 1, false);
	host_carry_one(&a, &b);
	host_carry_one(&a, &b);
	host_saw(&a, 1, "C prod=0/1 cons=0/100");
}

START_TEST(the_urgent_byte_always_earns_an_update)
{
	rx(1, 11, 0, CDC_URGENT_PENDING | CDC_URGENT_PRESENT, 0);
	smcr_rx_consume(ca, 10);
	ck_assert_uint_eq(updates(), 0);
	smcr_rx_consume(ca, 1);
	ck_assert_uint_eq(updates(), 1);
}

START_TEST(data_after_our_close_and_its_c_are_nobodys)
{
	smcr_close(ca);
	host_flush(&a);
	rx(1, 10, 0, 0, 0);
	ck_assert_int_eq(ca->state, CONN_PEER_CLOSE_WAIT1);
	smcr_rx_consume(ca, 10);
	ck_assert_uint_eq(updates(), 0); /* nothing may follow C */
}
