/* Sizes of elements and rings, and memory that goes back. */
#include <string.h>

#include "base/pages.h"
#include "host.h"
#include "smcr/data/window.h"
#include "unit.h"

#define KIB 1024u
#define MIB (1024u * KIB)
#define WANT(size, hint, rtt) (&(struct smcr_open){ .elem_size = size, .rmb_size_hint = hint, .rtt_ns = rtt })
#define ANY WANT(0, 0, 0)

static int64_t rtt;

static int64_t
path_rtt(struct rnic_qp *qp)
{
	(void)qp;
	return rtt;
}

static struct rnic_ops ops;

static void
smcrds(struct host *h)
{
	h->lgr.dialect.starts_over = true;
	ops = *h->dev.dev.ops;
	ops.path_rtt = path_rtt;
	h->dev.dev.ops = &ops;
	h->eng.cfg.sndbuf_size = 0;
	h->eng.cfg.rmb_bytes_max = 4ull << 30;
}

static uint32_t
size_of(const struct smcr_open *want)
{
	return window_elem_size(&a.lgr, want, NULL);
}

UNIT_CASE(hosts_case(tc, 512 * KIB, false));

/* -- sizes -- */

START_TEST(what_is_set_holds)
{
	smcrds(&a);
	ck_assert_uint_eq(size_of(WANT(16 * KIB, MIB, 40 * MS)), 16 * KIB);
	ck_assert_uint_eq(size_of(WANT(4 * MIB, 0, 0)), 4 * MIB);
	a.eng.cfg.rmb_bytes_max = 1;
	ck_assert_uint_eq(size_of(WANT(4 * MIB, 0, 0)), 4 * MIB);
	/* RFC 7609 has no code for more. */
	a.lgr.dialect.foreign = true;
	ck_assert_uint_eq(size_of(WANT(4 * MIB, 0, 0)), 512 * KIB);
	a.eng.cfg.sndbuf_size = 5000;
	ck_assert_uint_eq(window_ring_size(ca), 5000);
}

START_TEST(the_path_decides)
{
	static const struct {
		int64_t rtt_ns;
		uint32_t size;
	} rows[] = {
		{ -1, 512 * KIB },
		{ 0, 512 * KIB },
		{ 50 * 1000, 512 * KIB },
		{ 2 * MS, 512 * KIB },
		{ 3 * MS, MIB },
		{ 10 * MS, 2 * MIB },
		{ 11 * MS, 4 * MIB },
		{ 40 * MS, 4 * MIB },
		{ INT64_MAX, 4 * MIB },
	};

	smcrds(&a);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		rtt = rows[i].rtt_ns;
		ck_assert_uint_eq(size_of(ANY), rows[i].size);
	}
}

/* The first connection of a group is ahead of what its links know; they know better. */
START_TEST(the_middle_tells_of_the_path_first)
{
	smcrds(&a);
	rtt = -1;
	ck_assert_uint_eq(size_of(WANT(0, 0, 50 * 1000)), 512 * KIB);
	ck_assert_uint_eq(size_of(WANT(0, 0, 10 * MS)), 2 * MIB);
	ck_assert_uint_eq(size_of(WANT(0, 0, INT64_MAX)), 4 * MIB);
	ck_assert_uint_eq(size_of(WANT(0, 4 * MIB, 50 * 1000)), 512 * KIB);
	rtt = 3 * MS;
	ck_assert_uint_eq(size_of(WANT(0, 0, 40 * MS)), MIB);
	rtt = 0;
	ck_assert_uint_eq(size_of(WANT(0, 0, 40 * MS)), 512 * KIB);
}

START_TEST(far_is_a_millisecond_between_two_smcrd)
{
	smcrds(&a);
	rtt = MS - 1;
	ck_assert(!window_is_far(&a.lgr));
	rtt = MS;
	ck_assert(window_is_far(&a.lgr));
	a.lgr.dialect.foreign = true;
	ck_assert(!window_is_far(&a.lgr));
	a.lgr.dialect.foreign = false;
	rtt = -1;
	ck_assert(!window_is_far(&a.lgr));
}

/* A reader waits for the path where the path is short, too: there it is the processors that are not free. */
START_TEST(a_need_is_no_more_than_the_path_can_hold)
{
	static const struct {
		int64_t rtt_ns;
		uint32_t need, size;
	} rows[] = {
		{ 0, 4 * MIB, 512 * KIB }, { 104 * 1000, 4 * MIB, 512 * KIB }, { 105 * 1000, 4 * MIB, MIB },
		{ 400 * 1000, MIB, MIB }, { 400 * 1000, 4 * MIB, 2 * MIB }, { MS, 4 * MIB, 4 * MIB },
		{ 3 * MS, 4 * MIB, 4 * MIB }, { 3 * MS, 64 * KIB, MIB }, { INT64_MAX, 4 * MIB, 4 * MIB },
		{ -1, 4 * MIB, 4 * MIB }, /* nothing is known of the path */
	};

	smcrds(&a);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		rtt = rows[i].rtt_ns;
		ck_assert_uint_eq(size_of(WANT(0, rows[i].need, 0)), rows[i].size);
	}
}

START_LOOP_TEST(pinned_memory_and_peers_that_do_not_start_over_get_what_others_needed, 0, 3)
{
	smcrds(&a);
	rtt = 40 * MS;
	a.link->info.pins = _i == 0;
	a.lgr.dialect.starts_over = _i == 0;
	a.lgr.dialect.foreign = _i == 2;
	ck_assert_uint_eq(size_of(ANY), 64 * KIB);
	ck_assert_uint_eq(size_of(WANT(0, 16 * KIB, 0)), 64 * KIB);
	ck_assert_uint_eq(size_of(WANT(0, 256 * KIB, 0)), 256 * KIB);
	ck_assert_uint_eq(size_of(WANT(0, 4 * MIB, 0)), _i == 2 ? 512 * KIB : 4 * MIB);
}

START_TEST(elements_shrink_before_memory_is_out)
{
	struct smcr_open want = { 0 };
	bool less = true;

	smcrds(&a);
	rtt = 10 * MS;
	/* 8 elements of the first RMB are a quarter of what is left of three quarters. */
	ck_assert_uint_eq(a.eng.rmb_bytes, 2 * MIB);
	a.eng.cfg.rmb_bytes_max = 88 * MIB;
	ck_assert_uint_eq(window_elem_size(&a.lgr, &want, &less), 2 * MIB);
	ck_assert(!less);
	a.eng.cfg.rmb_bytes_max -= 4;
	ck_assert_uint_eq(window_elem_size(&a.lgr, &want, &less), MIB);
	ck_assert(less);
	a.eng.cfg.rmb_bytes_max = a.eng.rmb_bytes;
	ck_assert_uint_eq(window_elem_size(&a.lgr, &want, &less), 64 * KIB);
	/* The group's own limit, which its rings share. */
	a.eng.cfg.rmb_bytes_max = 4ull << 30;
	a.eng.cfg.group_bytes_max = 88 * MIB;
	ck_assert_uint_eq(size_of(&want), 2 * MIB);
	a.lgr.sndbuf_bytes += 33 * MIB;
	ck_assert_uint_eq(size_of(&want), 256 * KIB); /* it has 8 elements of 512 KiB, and the next would be 32 */
	a.lgr.sndbuf_bytes = 0;
}

START_TEST(a_larger_element_that_is_there_is_taken)
{
	struct rmb *rmb, *small;

	smcrds(&a);
	rtt = 0;
	rmb = rmb_new(&a.lgr, MIB, 1);
	small = rmb_new(&a.lgr, 64 * KIB, 1);
	ck_assert(rmb != NULL && small != NULL);
	rmb->state = small->state = RMB_CONFIRMED;
	while (rmb_find_place(&a.lgr, ANY) == ca->rmb)
		rmb_elem_get_from(ca->rmb);
	ck_assert_ptr_eq(rmb_find_place(&a.lgr, ANY), rmb);
	/* What is set is meant. */
	ck_assert_ptr_null(rmb_find_place(&a.lgr, WANT(512 * KIB, 0, 0)));
	ck_assert_ptr_eq(rmb_find_place(&a.lgr, WANT(64 * KIB, 0, 0)), small);
}

START_TEST(rings_hold_two_windows_of_the_peer)
{
	smcrds(&a);
	ck_assert_uint_eq(window_ring_size(ca), MIB);
	ca->peer_elem_size = 16 * KIB;
	ck_assert_uint_eq(window_ring_size(ca), 64 * KIB);
	ca->peer_elem_size = 512 * MIB; /* code 15 */
	ck_assert_uint_eq(window_ring_size(ca), 8 * MIB);
	ca->peer_elem_size = 512 * KIB;
	a.eng.cfg.sndbuf_bytes_max = 4 * MIB; /* a quarter of three quarters */
	ck_assert_uint_eq(window_ring_size(ca), MIB);
	ck_assert_uint_eq(window_ring_fits(&a.lgr, MIB), 512 * KIB);
	a.eng.cfg.sndbuf_bytes_max = 0;
	ck_assert_uint_eq(window_ring_fits(&a.lgr, MIB), 64 * KIB);
	a.eng.cfg.sndbuf_size = 256 * KIB; /* what is set is meant */
	ck_assert_uint_eq(window_ring_fits(&a.lgr, 256 * KIB), 256 * KIB);
}

/* -- rings of several sizes -- */

START_TEST(a_ring_of_another_size_is_better_than_none)
{
	struct iovec iov[2];
	struct sndbuf *large = sndbuf_get(&a.lgr, MIB), *other;

	ck_assert_uint_eq(large->size, MIB);
	sndbuf_put(&a.lgr, large, NULL, 0);
	other = sndbuf_get(&a.lgr, 64 * KIB);
	ck_assert_uint_eq(other->size, 64 * KIB);
	sndbuf_put(&a.lgr, other, NULL, 0);
	a.eng.cfg.sndbuf_bytes_max = 0;
	a.eng.cfg.sndbuf_size = 256 * KIB;
	ck_assert_uint_eq(a.eng.ctr.refused_send_memory, 0);
	other = sndbuf_get(&a.lgr, 256 * KIB);
	ck_assert_uint_eq(a.eng.ctr.refused_send_memory, 1);
	ck_assert_uint_eq(other->size, MIB);
	sndbuf_put(&a.lgr, other, NULL, 0);
	/* Memory does not matter to one that is there. */
	a.eng.cfg.sndbuf_size = 0;
	ck_assert_uint_eq(smcr_tx_space(ca, iov), MIB);
	host_flush(&a);
}

START_TEST(large_rings_have_a_limit_and_everybody_gets_a_small_one)
{
	struct sndbuf *sb;
	unsigned large = 0;

	a.eng.cfg.sndbuf_bytes_max = 8 * MIB;
	a.eng.cfg.sndbuf_size = MIB;
	for (int i = 0; i < 50; i++) {
		sb = sndbuf_get(&a.lgr, MIB);
		ck_assert_ptr_nonnull(sb);
		ck_assert(sb->size == MIB || sb->size == WINDOW_SMALL);
		large += sb->size == MIB;
	}
	ck_assert_uint_eq(large, 6);
	ck_assert_uint_ge(a.eng.ctr.refused_send_memory, 1);
	ck_assert_uint_eq(a.lgr.sndbuf_bytes, a.eng.sndbuf_bytes);
	a.lgr.sndbuf_lent = 0;
}

START_TEST(a_stream_that_memory_gave_a_small_ring_gets_a_large_one_later)
{
	struct iovec iov[2];
	struct sndbuf *large[4];

	smcrds(&a);
	for (int i = 0; i < 4; i++)
		large[i] = sndbuf_get(&a.lgr, MIB);
	ck_assert_uint_eq(large[3]->size, MIB);
	a.eng.cfg.sndbuf_bytes_max = 0;
	ck_assert_uint_eq(host_write(ca, 64 * KIB, false), 64 * KIB);
	host_advance(&a, 1000);
	ck_assert_uint_eq(smcr_tx_space(ca, iov), 0);
	ck_assert(!ca->tx.outgrown); /* no other has a larger one */
	hosts_carry(&a, &b);
	host_complete(&a);
	ck_assert_uint_eq(host_events(ca), SMCR_EV_WRITABLE);
	ck_assert_uint_eq(host_write(ca, 64 * KIB, false), 64 * KIB);
	sndbuf_put(&a.lgr, large[0], NULL, 0);
	ck_assert_uint_eq(smcr_tx_space(ca, iov), 0);
	ck_assert(!ca->tx.outgrown); /* not so soon */
	host_advance(&a, 1000);
	ck_assert_uint_eq(smcr_tx_space(ca, iov), 0);
	ck_assert(ca->tx.outgrown);
	hosts_carry(&a, &b);
	ca->tx.done = ca->tx.sent - 1000; /* part of it */
	ck_assert_uint_eq(smcr_tx_space(ca, iov), 0);
	host_complete(&a);
	ck_assert_uint_eq(host_events(ca), SMCR_EV_WRITABLE);
	ck_assert_uint_eq(smcr_tx_space(ca, iov), MIB);
	host_flush(&a);
	a.lgr.sndbuf_lent = 0;
}

/* -- what goes back -- */

static uint8_t *
element(void)
{
	return cb->rmb->units[cb->elem_idx - 1].mem;
}

/* As a device that counts places it. */
static void
arrives(uint32_t len)
{
	host_write(ca, len, false);
	hosts_carry(&a, &b);
	cb->rmb->units[cb->elem_idx - 1].placed += len;
}

static void
idle_time(void)
{
	rmb_give_back(&b.lgr);
	rmb_give_back(&b.lgr);
}

START_TEST(an_idle_connection_keeps_no_page)
{
	smcrds(&a);
	smcrds(&b);
	arrives(20000);
	ck_assert_uint_eq(host_read(cb, 20000, NULL), 20000);
	ck_assert_int_ne(element()[19999], 0);
	rmb_give_back(&b.lgr);
	ck_assert_int_ne(element()[19999], 0); /* it had data just now */
	rmb_give_back(&b.lgr);
	ck_assert_int_eq(element()[19999], 0);
	ck_assert_uint_eq(b.eng.ctr.pages_given_back, 20000);
	idle_time();
	ck_assert_uint_eq(b.eng.ctr.pages_given_back, 20000);
	/* And is used as before. */
	arrives(30000);
	ck_assert_uint_eq(host_read(cb, 30000, NULL), 30000);
}

START_LOOP_TEST(what_may_be_needed_stays, 0, 4)
{
	smcrds(&a);
	smcrds(&b);
	arrives(20000);
	if (_i != 0) /* 0: not consumed */
		ck_assert_uint_eq(host_read(cb, 20000, NULL), 20000);
	if (_i == 1) /* something was placed that no message has told of */
		cb->rmb->units[cb->elem_idx - 1].placed += 1;
	if (_i == 2) /* a card would go on writing to the old pages */
		b.link->info.pins = true;
	if (_i == 3) /* the peer goes on where it is, so the pages are used soon */
		b.lgr.dialect.starts_over = false;
	idle_time();
	ck_assert_int_ne(element()[19999], 0);
	ck_assert_uint_eq(b.eng.ctr.pages_given_back, 0);
	if (_i == 0)
		ck_assert_uint_eq(host_read(cb, 20000, NULL), 20000);
}

START_TEST(free_elements_keep_no_page)
{
	struct rmb *rmb = rmb_new(&b.lgr, 64 * KIB, 2);
	uint8_t idx = rmb_elem_get_from(rmb);

	memset(rmb->units[idx - 1].mem, 1, 30000);
	rmb_elem_dirty(rmb, idx, 30000);
	idle_time();
	ck_assert_int_eq(rmb->units[idx - 1].mem[29999], 1); /* in use, in its rendezvous say */
	rmb_elem_put(rmb, idx);
	idle_time();
	ck_assert_int_eq(rmb->units[idx - 1].mem[29999], 0);
	ck_assert_int_eq(rmb->units[idx - 1].mem[0], 0);
	ck_assert_uint_eq(rmb_elem_get_from(rmb), idx);
	rmb_elem_put(rmb, idx);
}

START_LOOP_TEST(unused_rings_keep_no_page, 0, 2)
{
	const struct sndbuf *sb;

	a.link->info.pins = _i == 1;
	host_write(ca, 20000, false);
	sb = ca->tx.sndbuf;
	hosts_carry(&a, &b);
	sndbuf_give_back(&a.lgr);
	sndbuf_give_back(&a.lgr); /* lent */
	ck_assert_int_ne(sb->buf[19999], 0);
	ck_assert_uint_eq(host_read(cb, 20000, NULL), 20000);
	host_complete(&a);
	ck_assert_ptr_null(ca->tx.sndbuf);
	sndbuf_give_back(&a.lgr);
	ck_assert_int_ne(sb->buf[19999], 0);
	sndbuf_give_back(&a.lgr);
	ck_assert_int_eq(sb->buf[19999] == 0, _i == 0);
}

/* -- what connections have needed -- */

START_TEST(a_reader_that_waits_for_a_full_window_needs_a_larger_one)
{
	ck_assert_uint_eq(smcr_elem_need(cb), 0);
	for (int i = 0; i < 20; i++) {
		cb->rx.head = cb->rx.tail = cb->rx.head + 512 * KIB;
		cb->rx.starved++;
	}
	ck_assert_uint_eq(smcr_elem_need(cb), MIB);
	cb->rx.starved = 1; /* the program here was slower than the path */
	ck_assert_uint_eq(smcr_elem_need(cb), 256 * KIB);
	ca->rx.head = ca->rx.tail = 7 * 512 * KIB; /* not enough to tell */
	ck_assert_uint_eq(smcr_elem_need(ca), 0);
}

START_TEST(a_program_that_waits_for_a_blocked_peer_is_counted)
{
	smcrds(&a);
	smcrds(&b);
	for (unsigned i = 0; i < 3; i++) {
		host_write(ca, 600 * KIB, false);
		hosts_carry(&a, &b);
		ck_assert(cb->rx.blocked);
		ck_assert_uint_eq(host_read(cb, 100 * KIB, NULL), 100 * KIB); /* a slow program does not wait */
		ck_assert_uint_eq(cb->rx.starved, i);
		ck_assert_uint_ge(host_read(cb, MIB, NULL), 400 * KIB);
		ck_assert_uint_eq(cb->rx.starved, i + 1);
		hosts_carry(&a, &b);
		ck_assert(!cb->rx.blocked);
		while (host_read(cb, MIB, NULL) > 0)
			hosts_carry(&a, &b);
		ck_assert_uint_eq(cb->rx.starved, i + 1);
		host_complete(&a);
	}
}
