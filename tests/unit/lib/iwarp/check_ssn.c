#include "iwarp/ssn.h"

#include <errno.h>
#include <sys/mman.h>

#include "sweep.h"
#include "tests/ssn_world.h"
#include "unit.h"

#define SEVEN 7

static const struct ssn_config usual = { .first = 0, .held_max = 8, .held_len = 256 };
static const uint8_t text[] = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
static struct world w, in_order;
static struct world_msg msg[SEVEN];
static const char *why;

static void
teardown(void)
{
	world_fini(&w);
}

static void
setup(void)
{
	world_init(&w, &usual);
	why = NULL;
}

static int
come(const struct world_msg *m, uint16_t number)
{
	return world_in(&w, m->kind, number, (struct span){ m->bytes, m->len }, &why);
}

static void
expect_refused(int rc, const char *words)
{
	ck_assert_int_eq(rc, -EPROTO);
	ck_assert_ptr_nonnull(why);
	ck_assert_msg(strstr(why, words) != NULL, "%s", why);
}

static struct world_msg
a_write(uint32_t off)
{
	struct world_msg m;

	world_msg_write(&w, &m, WORLD_RW, off, text, 16);
	return m;
}

static struct world_msg
a_send(uint32_t msn)
{
	struct world_msg m;

	world_msg_send(&m, msn, 0, true, text + msn, 5);
	return m;
}

/* -- every order of seven messages -- */

/* Sets of messages in the order in which they are sent. */
static void
prepare(unsigned set)
{
	switch (set) {
	case 0: /* all is well, and the last word is the peer's */
		world_msg_write(&w, &msg[0], WORLD_RW, 100, text, 16);
		world_msg_send(&msg[1], 1, 0, false, "abc", 3);
		world_msg_write(&w, &msg[2], WORLD_RW, 116, text + 9, 20);
		world_msg_send(&msg[3], 1, 3, true, "de", 2);
		world_msg_read(&w, &msg[4], 1, 24, 30);
		world_msg_write(&w, &msg[5], WORLD_RW, 200, text + 3, 7);
		world_msg_terminate(&msg[6]);
		break;
	case 1: /* a session from its Accept to its end */
		world_msg_control(&msg[0], 2, "private", 7);
		world_msg_send(&msg[1], 1, 0, true, "first", 5);
		world_msg_read(&w, &msg[2], 1, 0, 0);
		world_msg_read(&w, &msg[3], 2, 8, 8);
		world_msg_send(&msg[4], 2, 0, true, "second", 6);
		world_msg_write(&w, &msg[5], WORLD_RW, 1000, text, 0);
		world_msg_control(&msg[6], 4, "", 0);
		break;
	case 2: /* our Reads are answered, in pieces */
		world_msg_write(&w, &msg[0], WORLD_RW, 512, text, 30);
		world_msg_answer(&w, &msg[1], 0, true, "", 0);
		world_msg_answer(&w, &msg[2], 0, false, text, 24);
		world_msg_send(&msg[3], 1, 0, true, "between", 7);
		world_msg_answer(&w, &msg[4], 24, true, text + 24, 16);
		world_msg_send(&msg[5], 2, 0, true, "behind", 6);
		world_msg_write(&w, &msg[6], WORLD_RW, 600, text, 30);
		break;
	case 3: /* several errors: a Write that is refused, a wrong MSN, a Write outside, a Terminate */
		world_msg_write(&w, &msg[0], WORLD_RW, 300, text, 10);
		world_msg_send(&msg[1], 1, 0, true, "good", 4);
		world_msg_write(&w, &msg[2], WORLD_FOREIGN, 0, text, 10);
		world_msg_send(&msg[3], 5, 0, true, "bad", 3);
		world_msg_write(&w, &msg[4], WORLD_RW, 400, text, 10);
		world_msg_write(&w, &msg[5], WORLD_RW, WORLD_MEM, text, 1);
		world_msg_terminate(&msg[6]);
		break;
	case 4: /* the error of an untagged one is first, and that of a Write behind it */
		world_msg_write(&w, &msg[0], WORLD_RW, 300, text, 10);
		world_msg_read(&w, &msg[1], 1, WORLD_MEM - 4, 5);
		world_msg_write(&w, &msg[2], WORLD_RO, 0, text, 10);
		world_msg_send(&msg[3], 1, 0, true, "unheard", 7);
		world_msg_write(&w, &msg[4], WORLD_RW, 400, text, 10);
		world_msg_control(&msg[5], 4, "", 0);
		world_msg_write(&w, &msg[6], WORLD_RW, 500, text, 10);
		break;
	}
}

static bool
next_order(unsigned order[SEVEN])
{
	unsigned i = SEVEN - 1, j = SEVEN - 1;

	while (i > 0 && order[i - 1] > order[i])
		i--;
	if (i == 0)
		return false;
	while (order[j] < order[i - 1])
		j--;
	unsigned t = order[i - 1];
	order[i - 1] = order[j];
	order[j] = t;
	for (unsigned a = i, b = SEVEN - 1; a < b; a++, b--) {
		t = order[a];
		order[a] = order[b];
		order[b] = t;
	}
	return true;
}

/* In this order, with so many receives; the others are posted when all messages are there. */
static void
run_order(const unsigned order[SEVEN], const struct ssn_config *cfg, unsigned recvs)
{
	world_init(&w, cfg);
	for (unsigned i = 0; i < recvs; i++)
		world_post(&w);
	for (unsigned i = 0; i < SEVEN && !w.over; i++)
		ck_assert_int_eq(come(&msg[order[i]], (uint16_t)(cfg->first + order[i])), 0);
	while (w.waits) {
		world_post(&w);
		world_drive(&w);
	}
	ck_assert_ptr_null(world_differs(&in_order, &w, msg, SEVEN));
	/* Nothing is left, unless the stream ended before. */
	ck_assert(w.over || (w.ssn.ahead == 0 && w.ssn.held == 0));
	ck_assert(w.over || w.ssn.next == (uint16_t)(cfg->first + SEVEN));
	world_fini(&w);
}

static const struct order_row {
	unsigned set, recvs;
	uint16_t first;
} order_rows[] = {
	{ 0, 4, 0 },
	{ 0, 0, 1 },
	{ 1, 4, 0 },
	{ 1, 1, 65533 },
	{ 1, 0, 32765 },
	{ 2, 4, 65535 },
	{ 2, 0, 32767 },
	{ 3, 4, 0 },
	{ 3, 0, 65530 },
	{ 4, 4, 1 },
};

START_LOOP_TEST(all_orders_of_seven, 0, sizeof(order_rows) / sizeof(order_rows[0]))
{
	const struct order_row *r = &order_rows[_i];
	const struct ssn_config cfg = { .first = r->first, .held_max = SEVEN, .held_len = 256 };
	unsigned order[SEVEN] = { 0, 1, 2, 3, 4, 5, 6 }, orders = 0;

	world_init(&w, &cfg); /* STags are the same in each */
	prepare(r->set);
	world_fini(&w);
	world_init(&in_order, &cfg);
	for (unsigned i = 0; i < 4; i++)
		world_post(&in_order);
	for (unsigned i = 0; i < SEVEN && !in_order.over; i++)
		ck_assert(world_turn(&in_order, msg[i].kind, (struct span){ msg[i].bytes, msg[i].len }));
	/* The sets are what they say they are. */
	ck_assert_uint_eq(in_order.turns, r->set == 3 ? 3 : r->set == 4 ? 2 : SEVEN);
	ck_assert_int_eq(in_order.over, r->set != 1 && r->set != 2);
	do {
		run_order(order, &cfg, r->recvs);
		orders++;
	} while (next_order(order));
	ck_assert_uint_eq(orders, 5040);
	world_fini(&in_order);
}

/* -- one by one -- */

UNIT_FIXTURE(setup, teardown);

START_TEST(what_is_in_order_is_not_copied)
{
	struct world_msg m = a_write(64), s = a_send(1);
	struct span at = { 0 };

	ck_assert_int_eq(ssn_next(&w.ssn, &at), SSN_NONE);
	ck_assert_int_eq(ssn_in(&w.ssn, &w.stream, SSN_SEGMENT, 0, (struct span){ m.bytes, m.len }, &why), 0);
	ck_assert_int_eq(ssn_next(&w.ssn, &at), SSN_SEGMENT);
	ck_assert_ptr_eq(at.ptr, m.bytes);
	ck_assert_uint_eq(at.len, m.len);
	ssn_advance(&w.ssn);
	ck_assert_int_eq(ssn_next(&w.ssn, &at), SSN_NONE);
	ck_assert_int_eq(ssn_settle(&w.ssn, &why), 0);
	ck_assert_int_eq(ssn_in(&w.ssn, &w.stream, SSN_CONTROL, 1, (struct span){ s.bytes, s.len }, &why), 0);
	ck_assert_int_eq(ssn_next(&w.ssn, &at), SSN_CONTROL);
	ck_assert_ptr_eq(at.ptr, s.bytes);
	ssn_advance(&w.ssn);
	ck_assert_int_eq(ssn_settle(&w.ssn, &why), 0);
	ck_assert_uint_eq(w.ssn.early_placed + w.ssn.early_held, 0);
	ck_assert_uint_eq(w.ssn.slot_cnt, 0);
}

START_TEST(an_early_write_is_placed_at_once_and_counted_once)
{
	struct world_msg m = a_write(64);

	ck_assert_int_eq(come(&m, 2), 0);
	ck_assert(world_is_placed(&w, &m));
	ck_assert_uint_eq(w.ssn.early_placed, 1);
	ck_assert_uint_eq(w.ssn.early_held, 0);
	/* but the stream knows nothing of it before its turn */
	ck_assert(!w.stream.started);
	ck_assert_uint_eq(w.turns, 0);
	m = a_write(80);
	ck_assert_int_eq(come(&m, 1), 0);
	m = a_write(96);
	ck_assert_int_eq(come(&m, 0), 0);
	ck_assert_uint_eq(w.turns, 3);
	ck_assert(w.stream.started);
	ck_assert_uint_eq(w.regions[WORLD_RW].accepted, 3);
}

START_TEST(nothing_is_placed_without_a_session)
{
	struct world_msg m = a_write(64);
	struct span at;

	/* no session yet */
	ck_assert_int_eq(ssn_in(&w.ssn, NULL, SSN_SEGMENT, 1, (struct span){ m.bytes, m.len }, &why), 0);
	ck_assert(!world_is_placed(&w, &m));
	ck_assert_int_eq(ssn_settle(&w.ssn, &why), 0);
	/* what looks like a Write, and is none */
	ck_assert_int_eq(ssn_in(&w.ssn, &w.stream, SSN_CONTROL, 2, (struct span){ m.bytes, m.len }, &why), 0);
	ck_assert(!world_is_placed(&w, &m));
	ck_assert_uint_eq(w.ssn.held, 2);
	ck_assert_int_eq(ssn_next(&w.ssn, &at), SSN_NONE);
	m = a_write(96);
	ck_assert_int_eq(come(&m, 0), 0);
	m = a_write(64);
	ck_assert(world_is_placed(&w, &m));
	ck_assert_uint_eq(w.event_cnt, 1);
	ck_assert_uint_eq(w.events[0].what, WORLD_CONTROL);
}

START_TEST(a_refused_write_is_judged_in_its_turn)
{
	struct world_msg m = a_write(64);

	/* refused when it comes, welcome when it has its turn */
	w.regions[WORLD_RW].closed = true;
	ck_assert_int_eq(come(&m, 1), 0);
	ck_assert(!world_is_placed(&w, &m));
	ck_assert_uint_eq(w.ssn.held, 1);
	w.regions[WORLD_RW].closed = false;
	m = a_write(80);
	ck_assert_int_eq(come(&m, 0), 0);
	ck_assert(!w.over);
	ck_assert_uint_eq(w.turns, 2);
	m = a_write(64);
	ck_assert(world_is_placed(&w, &m));
	/* placed before its turn: what is closed then does not matter any more */
	m = a_write(96);
	ck_assert_int_eq(come(&m, 3), 0);
	w.regions[WORLD_RW].closed = true;
	world_msg_control(&m, 4, "", 0);
	ck_assert_int_eq(come(&m, 2), 0);
	ck_assert(!w.over);
	ck_assert_uint_eq(w.turns, 4);
	/* refused still */
	m = a_write(112);
	ck_assert_int_eq(come(&m, 5), 0);
	ck_assert(!w.over);
	world_msg_control(&m, 4, "", 0);
	ck_assert_int_eq(come(&m, 4), 0);
	ck_assert(w.over);
	ck_assert_uint_eq(w.events[w.event_cnt - 1].what, STREAM_RX_ERROR);
	m = a_write(112);
	ck_assert(!world_is_placed(&w, &m));
}

START_LOOP_TEST(the_window, 0, 4)
{
	static const uint16_t firsts[] = { 0, 1, 32768, 65535 };
	const struct ssn_config cfg = { .first = firsts[_i], .held_max = 2, .held_len = 256 };
	struct world_msg m = a_write(64), c;

	world_fini(&w);
	world_init(&w, &cfg);
	world_msg_control(&c, 4, "", 0);
	expect_refused(come(&m, (uint16_t)(cfg.first + 32768)), "outside the window");
	expect_refused(come(&m, (uint16_t)(cfg.first + 40000)), "outside the window");
	expect_refused(come(&m, (uint16_t)(cfg.first - 1)), "outside the window");
	ck_assert(!world_is_placed(&w, &m));
	ck_assert_int_eq(come(&m, (uint16_t)(cfg.first + 32767)), 0);
	ck_assert(world_is_placed(&w, &m));
	ck_assert_int_eq(come(&c, (uint16_t)(cfg.first + 32766)), 0);
	/* the window moves on with each turn, and by one only */
	ck_assert_int_eq(come(&c, cfg.first), 0);
	m = a_write(96);
	expect_refused(come(&m, (uint16_t)(cfg.first + 32769)), "outside the window");
	ck_assert_int_eq(come(&m, (uint16_t)(cfg.first + 32768)), 0);
	ck_assert_uint_eq(w.ssn.ahead, 3);
}

/* Something is ahead all the time, so that the window is looked at: what was there a round before is gone. */
START_TEST(numbers_wrap_many_times)
{
	struct world_msg a = a_write(64), b = a_write(96), c;

	world_msg_control(&c, 4, "", 0);
	ck_assert_int_eq(come(&b, 1), 0);
	for (unsigned i = 0; i < 200000; i += 2) {
		ck_assert_int_eq(come(i / 2 % 3 == 0 ? &c : &b, (uint16_t)(i + 3)), 0);
		ck_assert_int_eq(come(&a, (uint16_t)i), 0);
		ck_assert_uint_eq(w.turns, i + 2);
		ck_assert_uint_eq(w.ssn.ahead, 1);
		w.event_cnt = 0;
	}
	ck_assert_uint_eq(w.ssn.early_placed, 1 + 100000 - 33334);
	ck_assert_uint_eq(w.ssn.early_held, 33334);
}

/* Each kind, in front of its turn, or behind it, or while it waits for a receive. */
START_LOOP_TEST(twice, 0, 16)
{
	struct world_msg m, first = a_write(64);
	unsigned kind = (unsigned)_i % 4, when = (unsigned)_i / 4;

	if (when != 3)
		world_post(&w);
	if (kind == 0)
		m = a_write(96);
	else if (kind == 1)
		m = a_send(1);
	else if (kind == 2)
		world_msg_read(&w, &m, 1, 0, 10);
	else
		world_msg_control(&m, 2, "abc", 3);
	switch (when) {
	case 0: /* both are ahead */
		ck_assert_int_eq(come(&m, 5), 0);
		expect_refused(come(&m, 5), "duplicate");
		/* whatever the second is, it leaves no trace */
		first = a_write(128);
		expect_refused(come(&first, 5), "duplicate");
		ck_assert(!world_is_placed(&w, &first));
		break;
	case 1: /* the second comes behind its turn, which came at once */
		ck_assert_int_eq(come(&m, 0), 0);
		ck_assert_uint_eq(w.turns, 1);
		expect_refused(come(&m, 0), "outside the window");
		break;
	case 2: /* the same, held until then */
		ck_assert_int_eq(come(&m, 1), 0);
		ck_assert_int_eq(come(&first, 0), 0);
		ck_assert_uint_eq(w.turns, 2);
		expect_refused(come(&m, 1), "outside the window");
		break;
	default: /* the next one waits for a receive, or what comes again is behind that */
		first = a_send(1);
		ck_assert_int_eq(come(&first, 0), 0);
		ck_assert(w.waits);
		expect_refused(come(&m, 0), "duplicate");
		if (kind == 1)
			break;
		ck_assert_int_eq(come(&m, 1), 0);
		expect_refused(come(&m, 1), "duplicate");
	}
	ck_assert_uint_le(w.event_cnt, 2);
}

START_TEST(so_many_are_held)
{
	struct world_msg m, c;

	world_msg_control(&c, 4, "", 0);
	for (uint16_t i = 0; i < usual.held_max; i++)
		ck_assert_int_eq(come(&c, (uint16_t)(10 + i)), 0);
	expect_refused(come(&c, 9), "too many out-of-order");
	/* Writes are not of them, unless they are refused or have nothing */
	m = a_write(64);
	ck_assert_int_eq(come(&m, 8), 0);
	world_msg_write(&w, &m, WORLD_FOREIGN, 0, text, 4);
	expect_refused(come(&m, 7), "too many out-of-order");
	world_msg_write(&w, &m, WORLD_RW, 0, text, 0);
	expect_refused(come(&m, 7), "too many out-of-order");
	ck_assert_uint_eq(w.ssn.held, usual.held_max);
	/* what is in order is, and one that has to wait then */
	m = a_write(64);
	ck_assert_int_eq(come(&m, 0), 0);
	m = a_send(1);
	ck_assert_int_eq(come(&m, 1), 0);
	ck_assert(w.waits);
	ck_assert_uint_eq(w.ssn.held, usual.held_max + 1);
	expect_refused(come(&c, 9), "too many out-of-order");
	world_post(&w);
	world_drive(&w);
	ck_assert_uint_eq(w.turns, 2);
	/* one place for the next */
	for (uint16_t i = 2; i < 8; i++)
		ck_assert_int_eq(come(&c, i), 0);
	ck_assert_int_eq(come(&c, 9), 0);
	ck_assert_uint_eq(w.ssn.held, 0);
	ck_assert_uint_eq(w.turns, 18);
	ck_assert_uint_eq(w.ssn.slot_cnt, usual.held_max + 1);
}

/* All places are used again, in whatever order they were given back. */
START_TEST(places_are_used_again)
{
	struct world_msg c;
	uint16_t base = 0;

	for (unsigned round = 0; round < 500; round++) {
		unsigned n = 1 + round % usual.held_max;

		for (unsigned i = n; i > 0; i--) {
			uint8_t id[3] = { (uint8_t)round, (uint8_t)i, 7 };

			world_msg_control(&c, 1, id, sizeof(id));
			ck_assert_int_eq(come(&c, (uint16_t)(base + (round & 1 ? i : n + 1 - i))), 0);
		}
		world_msg_control(&c, 3, "", 0);
		w.event_cnt = 0;
		ck_assert_int_eq(come(&c, base), 0);
		ck_assert_uint_eq(w.event_cnt, n + 1);
		for (unsigned i = 1; i <= n; i++) {
			ck_assert_uint_eq(w.events[i].bytes[2], round & 0xff);
			ck_assert_uint_eq(w.events[i].bytes[3], round & 1 ? i : n + 1 - i);
		}
		base = (uint16_t)(base + n + 1);
	}
	ck_assert_uint_le(w.ssn.slot_cnt, usual.held_max);
}

static unsigned
pages_there(void *p, size_t len)
{
	unsigned char there[32];
	unsigned cnt = 0;

	ck_assert_uint_le(len, sizeof(there) * 4096);
	ck_assert_int_eq(mincore(p, len, there), 0);
	for (size_t i = 0; i * 4096 < len; i++)
		cnt += there[i] & 1;
	return cnt;
}

/* Not what is in use, and not at once; the first page of each stays, and what it says of places that were used is forgotten. */
START_TEST(memory_is_given_back)
{
	enum { N = 60 };

	const struct ssn_config cfg = { .first = 4000, .held_max = N, .held_len = 1000 };
	uint8_t body[500] = { 0 };
	struct span bytes = { body, sizeof(body) };

	world_fini(&w);
	world_init(&w, &cfg);
	for (unsigned round = 0; round < 3; round++) {
		uint16_t base = (uint16_t)(cfg.first + round * (N + 1));

		for (uint16_t i = N; i > 0; i--) {
			body[2] = (uint8_t)(round * N + i);
			ck_assert_int_eq(world_in(&w, SSN_CONTROL, (uint16_t)(base + i), bytes, &why), 0);
		}
		ssn_rest(&w.ssn);
		ssn_rest(&w.ssn);
		w.event_cnt = 0;
		ck_assert_int_eq(world_in(&w, SSN_CONTROL, base, bytes, &why), 0);
		ck_assert_uint_eq(w.event_cnt, N + 1);
		for (unsigned i = 1; i <= N; i++)
			ck_assert_uint_eq(w.events[i].bytes[2], (uint8_t)(round * N + i));
		ssn_rest(&w.ssn);
		ck_assert_uint_gt(pages_there(w.ssn.slots, N * cfg.held_len), 8);
		ck_assert_uint_ge(pages_there(w.ssn.window, SSN_WINDOW * sizeof(uint16_t)), 1);
		ssn_rest(&w.ssn);
		ck_assert_uint_eq(pages_there(w.ssn.slots, N * cfg.held_len), 0);
		ck_assert_uint_eq(pages_there(w.ssn.window, SSN_WINDOW * sizeof(uint16_t)), 0);
	}
}

START_LOOP_TEST(so_long, 0, 2)
{
	uint8_t big[258] = { 0x41, 0x43 };
	struct span bytes = { big, 256 + (size_t)_i };

	/* ahead of its turn */
	if (_i == 0)
		ck_assert_int_eq(world_in(&w, SSN_CONTROL, 3, bytes, &why), 0);
	else
		expect_refused(world_in(&w, SSN_CONTROL, 3, bytes, &why), "too long to hold");
	/* in order nobody minds */
	ck_assert_int_eq(world_in(&w, SSN_CONTROL, 0, bytes, &why), 0);
	ck_assert_uint_eq(w.turns, 1);
	/* unless it has to wait */
	big[13] = 1; /* MSN */
	if (_i == 0)
		ck_assert_int_eq(world_in(&w, SSN_SEGMENT, 1, bytes, &why), 0);
	else
		expect_refused(world_in(&w, SSN_SEGMENT, 1, bytes, &why), "too long");
	ck_assert(w.waits);
}

START_TEST(a_long_write_is_placed)
{
	static uint8_t segment[DDP_TAGGED_LEN + WORLD_MEM];
	const struct stag_region *r = &w.regions[WORLD_RW].region;
	struct ddp_hdr h = stream_tagged_hdr(RDMAP_WRITE, r->stag, r->base, true);

	memset(segment, 'l', sizeof(segment));
	(void)ddp_encode(&h, segment);
	ck_assert_int_eq(world_in(&w, SSN_SEGMENT, 9, (struct span){ segment, sizeof(segment) }, &why), 0);
	ck_assert_mem_eq(w.regions[WORLD_RW].mem, segment + DDP_TAGGED_LEN, WORLD_MEM);
	ck_assert(world_guarded(&w));
	/* one that is refused has to be held */
	h.to++;
	(void)ddp_encode(&h, segment);
	expect_refused(world_in(&w, SSN_SEGMENT, 8, (struct span){ segment, sizeof(segment) }, &why), "too long");
}

/* A Send without a receive stops what is behind it, but not the placing of Writes. */
START_TEST(receives_are_missing)
{
	struct world_msg m;
	uint16_t number = 0;

	m = a_send(1);
	ck_assert_int_eq(come(&m, number++), 0);
	ck_assert(w.waits);
	m = a_write(64);
	ck_assert_int_eq(come(&m, number++), 0);
	ck_assert(world_is_placed(&w, &m));
	m = a_send(2);
	ck_assert_int_eq(come(&m, number++), 0);
	world_msg_read(&w, &m, 1, 0, 4);
	ck_assert_int_eq(come(&m, number++), 0);
	ck_assert_uint_eq(w.turns, 0);
	world_drive(&w);
	ck_assert_uint_eq(w.turns, 0);
	/* one receive, one Send */
	world_post(&w);
	world_drive(&w);
	ck_assert_uint_eq(w.turns, 2);
	ck_assert_uint_eq(w.event_cnt, 1);
	ck_assert_mem_eq(w.recvs[0].mem, text + 1, 5);
	ck_assert(w.waits);
	world_post(&w);
	world_post(&w);
	world_drive(&w);
	ck_assert_uint_eq(w.turns, 4);
	ck_assert_uint_eq(w.events[1].what, STREAM_RX_RECV);
	ck_assert_mem_eq(w.recvs[1].mem, text + 2, 5);
	ck_assert_uint_eq(w.events[2].what, STREAM_RX_READ_REQ);
	m = a_send(3);
	ck_assert_int_eq(come(&m, number), 0);
	ck_assert_uint_eq(w.turns, 5);
	ck_assert_uint_eq(w.ssn.held, 0);
}

START_TEST(empty_messages)
{
	static const uint8_t none[1];

	ck_assert_int_eq(world_in(&w, SSN_CONTROL, 1, (struct span){ none, 0 }, &why), 0);
	ck_assert_int_eq(world_in(&w, SSN_CONTROL, 0, (struct span){ NULL, 0 }, &why), 0);
	ck_assert_uint_eq(w.turns, 2);
	ck_assert_int_eq(world_in(&w, SSN_SEGMENT, 3, (struct span){ NULL, 0 }, &why), 0);
	ck_assert(!w.over);
	/* no DDP segment at all: told in its turn, and not in the name of MPA */
	ck_assert_int_eq(world_in(&w, SSN_CONTROL, 2, (struct span){ NULL, 0 }, &why), 0);
	ck_assert(w.over);
	ck_assert_uint_eq(w.events[3].len, 4);
	ck_assert_mem_eq(w.events[3].bytes, "\x02\x07\0\0", 4);
}

UNIT_CASE((void)tc);

START_TEST(no_memory)
{
	for (struct sweep s = { 0 }; sweep_next(&s);) {
		struct ssn q;

		sweep_arm(&s);
		int rc = ssn_init(&q, &usual);
		ck_assert_int_eq(rc, sweep_over(&s) ? -ENOMEM : 0);
		ssn_fini(&q);
	}
}
