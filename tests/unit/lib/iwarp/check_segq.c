#include "iwarp/segq.h"

#include <errno.h>

#include "sweep.h"
#include "unit.h"
#include "wire/rdmap.h"

#define RING (3 * 4096)
#define BIG 20000

static struct segq q;
static struct iovec iov[SEGQ_IOV_MAX];
static uint8_t data[BIG], message[BIG + 64];

static const struct ddp_hdr write_hdr = {
	.tagged = true, .last = true, .version = 1, .ulp_ctrl = 0x40, .stag = 0x1234, .to = 0x10000
};
static const struct ddp_hdr send_hdr = { .last = true, .version = 1, .ulp_ctrl = 0x43, .msn = 9, .mo = 100 };

static void
setup(void)
{
	for (size_t i = 0; i < BIG; i++)
		data[i] = (uint8_t)(i * 7 + i / 256);
	ck_assert_int_eq(segq_init(&q, RING), 0);
}

static void
teardown(void)
{
	segq_fini(&q);
}

static struct txq_payload
one_piece(const void *p, size_t len)
{
	return (struct txq_payload){ .cnt = 1, .len = len, .v = { { (void *)(uintptr_t)p, len } } };
}

static void
put(const struct ddp_hdr *h, const void *p, size_t len)
{
	const struct txq_payload payload = one_piece(p, len);

	ck_assert(segq_room(&q, len));
	segq_put(&q, h, &payload);
}

/* The next message in `message`: its length. */
static size_t
peek(uint16_t number, size_t max)
{
	unsigned n = segq_peek(&q, number, max, iov);
	size_t len = 0;

	ck_assert_uint_le(n, SEGQ_IOV_MAX);
	for (unsigned i = 0; i < n; i++) {
		ck_assert_uint_gt(iov[i].iov_len, 0);
		memcpy(message + len, iov[i].iov_base, iov[i].iov_len);
		len += iov[i].iov_len;
	}
	ck_assert_uint_le(len, max);
	return len;
}

/* The next message is sent: its header, and its payload, which is *len bytes. */
static const uint8_t *
sent(uint16_t number, size_t max, struct ddp_hdr *h, size_t *len)
{
	size_t total = peek(number, max);
	int n;

	ck_assert_uint_gt(total, SEGQ_SSN_LEN);
	ck_assert_uint_eq(be16_get(message), number);
	n = ddp_decode((struct span){ message + SEGQ_SSN_LEN, total - SEGQ_SSN_LEN }, h);
	ck_assert_int_gt(n, 0);
	*len = total - SEGQ_SSN_LEN - (size_t)n;
	segq_sent(&q);
	return message + SEGQ_SSN_LEN + n;
}

UNIT_FIXTURE(setup, teardown);

START_TEST(messages_on_the_wire)
{
	static const uint8_t send[] = { 0x00, 0x01, 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 'h',
		'e', 'l', 'l', 'o' };
	const struct ddp_hdr h = { .last = true, .ulp_ctrl = 0x43, .msn = 1 };

	put(&h, "hello", 5);
	ck_assert_uint_eq(q.bytes, 5);
	ck_assert_uint_eq(peek(1, 600), sizeof(send));
	ck_assert_mem_eq(message, send, sizeof(send));
	segq_sent(&q);
	ck_assert(segq_empty(&q));
	ck_assert_uint_eq(q.bytes, 0);
	ck_assert_uint_eq(segq_peek(&q, 6, 600, iov), 0);
}

START_TEST(a_number_is_given_when_it_is_sent)
{
	struct ddp_hdr h;
	size_t len;

	put(&write_hdr, data, 10);
	put(&write_hdr, data, 20);
	ck_assert_uint_eq(peek(7, 600), 26);
	/* SCTP took nothing: the same again, and all of it */
	ck_assert_uint_eq(peek(65535, 600), 26);
	(void)sent(65535, 600, &h, &len);
	ck_assert_uint_eq(len, 10);
	(void)sent(0, 600, &h, &len);
	ck_assert_uint_eq(len, 20);
	ck_assert(segq_empty(&q));
}

START_TEST(small_payload_is_copied)
{
	uint8_t bytes[SEGQ_COPY_MAX + 1];
	struct ddp_hdr h;
	size_t len;
	const uint8_t *p;

	memcpy(bytes, data, sizeof(bytes));
	put(&send_hdr, bytes, SEGQ_COPY_MAX);
	put(&write_hdr, bytes, SEGQ_COPY_MAX + 1);
	memset(bytes, 0, sizeof(bytes));
	p = sent(0, 2000, &h, &len);
	ck_assert_uint_eq(len, SEGQ_COPY_MAX);
	ck_assert_mem_eq(p, data, len);
	/* larger payload is not */
	ck_assert_uint_eq(peek(1, 2000), 16 + SEGQ_COPY_MAX + 1);
	ck_assert_ptr_eq(iov[1].iov_base, bytes);
	segq_sent(&q);
}

START_LOOP_TEST(nothing_to_carry, 0, 2)
{
	struct ddp_hdr h;
	size_t len;

	put(_i == 0 ? &write_hdr : &send_hdr, NULL, 0);
	ck_assert(!segq_empty(&q));
	ck_assert_uint_eq(q.bytes, 0);
	(void)sent(3, 600, &h, &len);
	ck_assert_uint_eq(len, 0);
	ck_assert(h.last);
	ck_assert_uint_eq(h.msn, _i == 0 ? 0 : send_hdr.msn);
	ck_assert(segq_empty(&q));
}

static const struct cut_row {
	const char *what;
	const struct ddp_hdr *h;
	size_t len;
	size_t max[4]; /* of the first messages; the last value goes on */
	unsigned messages;
} cut_rows[] = {
	{ "fits", &write_hdr, 500, { 516, 516, 516, 516 }, 1 },
	{ "one byte too long", &write_hdr, 501, { 516, 516, 516, 516 }, 2 },
	{ "a Send fits", &send_hdr, 496, { 516, 516, 516, 516 }, 1 },
	{ "a Send, one byte too long", &send_hdr, 497, { 516, 516, 516, 516 }, 2 },
	{ "copied", &write_hdr, SEGQ_COPY_MAX, { 516, 516, 516, 516 }, 3 },
	{ "in place", &write_hdr, 9000, { 1452, 1452, 1452, 1452 }, 7 },
	{ "exactly two", &write_hdr, 2872, { 1452, 1452, 1452, 1452 }, 2 },
	{ "the MTU falls again", &write_hdr, 9000, { 8000, 600, 516, 516 }, 3 },
	{ "it rises", &send_hdr, 9000, { 516, 1452, 9000, 9000 }, 3 },
};

/* In pieces of all kinds, some of them empty: the parts are the whole. */
START_LOOP_TEST(cut, 0, 4 * sizeof(cut_rows) / sizeof(cut_rows[0]))
{
	const struct cut_row *r = &cut_rows[_i / 4];
	size_t a = (size_t[]){ 0, 1, r->len / 3, r->len }[_i % 4], off = 0, len;
	const struct txq_payload p = {
		.cnt = 4,
		.len = r->len,
		.v = { { data, a }, { data + a, 0 }, { data + a, (r->len - a) / 2 },
		    { data + a + (r->len - a) / 2, r->len - a - (r->len - a) / 2 } },
	};
	struct ddp_hdr h = *r->h;
	unsigned n = 0;

	/* A message that goes on behind it, and one before. */
	put(&send_hdr, data, 3);
	h.last = _i & 1;
	segq_put(&q, &h, &p);
	put(&send_hdr, data, 4);
	(void)sent(0, 600, &h, &len);
	ck_assert_uint_eq(len, 3);
	while (off < r->len) {
		const uint8_t *at;

		ck_assert_uint_eq(q.bytes, r->len - off + 4);
		/* peeked at for a larger path, in vain */
		(void)peek(77, 10000);
		at = sent((uint16_t)(n + 1), r->max[n < 3 ? n : 3], &h, &len);
		ck_assert_uint_gt(len, 0);
		ck_assert_mem_eq(at, data + off, len);
		ck_assert_int_eq(h.tagged, r->h->tagged);
		if (h.tagged) {
			ck_assert_uint_eq(h.stag, r->h->stag);
			ck_assert_uint_eq(h.to, r->h->to + off);
		} else {
			ck_assert_uint_eq(h.msn, r->h->msn);
			ck_assert_uint_eq(h.mo, r->h->mo + off);
		}
		off += len;
		ck_assert_int_eq(h.last, off == r->len && (_i & 1));
		n++;
	}
	ck_assert_msg(n == r->messages, "%s: %u", r->what, n);
	(void)sent((uint16_t)n, 600, &h, &len);
	ck_assert_uint_eq(len, 4);
	ck_assert_uint_eq(h.mo, send_hdr.mo);
	ck_assert(h.last);
	ck_assert(segq_empty(&q));
	ck_assert_uint_eq(q.bytes, 0);
}

START_TEST(room_for_so_many)
{
	struct ddp_hdr h;
	size_t len;

	for (unsigned i = 0; i < SEGQ_MSGS; i++)
		put(&write_hdr, data, 5000);
	ck_assert_uint_eq(q.bytes, SEGQ_MSGS * 5000);
	ck_assert(!segq_room(&q, 0));
	ck_assert(!segq_room(&q, 5000));
	(void)sent(0, 4000, &h, &len);
	ck_assert(!segq_room(&q, 5000)); /* a part of one is still one */
	(void)sent(1, 4000, &h, &len);
	ck_assert(segq_room(&q, 0));
	ck_assert(segq_room(&q, 5000));
}

START_TEST(room_for_so_much)
{
	struct ddp_hdr h;
	size_t len;

	for (unsigned i = 0; i < RING / 1000; i++)
		put(&send_hdr, data + i, 1000);
	ck_assert(!segq_room(&q, 1000));
	ck_assert(segq_room(&q, RING % 1000));
	ck_assert(segq_room(&q, SEGQ_COPY_MAX + 1)); /* which takes none of the ring */
	(void)sent(0, 600, &h, &len);
	ck_assert(!segq_room(&q, 999)); /* what is left of a message is still there */
	(void)sent(0, 600, &h, &len);
	/* a whole ring is not told from an empty one */
	ck_assert(!segq_room(&q, 1000));
	ck_assert(segq_room(&q, 999));
	put(&send_hdr, data + 50, 999);
	ck_assert(!segq_room(&q, 1));
	for (unsigned i = 1; i < RING / 1000; i++)
		ck_assert_mem_eq(sent(0, 2000, &h, &len), data + i, 1000);
	ck_assert_mem_eq(sent(0, 2000, &h, &len), data + 50, 999);
	ck_assert(segq_empty(&q));
	ck_assert(segq_room(&q, SEGQ_COPY_MAX));
}

START_TEST(memory_is_given_back)
{
	struct ddp_hdr h;
	size_t len;

	put(&send_hdr, data, 1000);
	for (unsigned i = 0; i < 12; i++) {
		/* not what is in use */
		put(&send_hdr, data + i + 1, 1000);
		segq_rest(&q);
		segq_rest(&q);
		ck_assert_mem_eq(sent(0, 2000, &h, &len), data + i, 1000);
	}
	(void)sent(0, 2000, &h, &len);
	q.ring.mem[RING - 1] = 1;
	segq_rest(&q); /* it was used meanwhile */
	ck_assert_uint_eq(q.ring.mem[RING - 1], 1);
	segq_rest(&q);
	ck_assert_uint_eq(q.ring.mem[RING - 1], 0);
}

/* Random messages and sizes of path: the ring goes round many times, no byte is lost or damaged, and room is told rightly. */
START_TEST(ring_goes_round)
{
	uint64_t seed = 4711;
	uint32_t msgs_put = 0, msgs_got = 0, offs[SEGQ_MSGS], lens[SEGQ_MSGS];
	size_t bytes = 0, got = 0;
	uint16_t number = 0;

	for (unsigned round = 0; round < 300000; round++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		uint32_t len = (uint32_t)(seed >> 33) % (seed & 1 << 20 ? 60 : 3000), off = len % 100;

		if ((seed >> 60) < 9 && segq_room(&q, len)) {
			offs[msgs_put % SEGQ_MSGS] = off;
			lens[msgs_put % SEGQ_MSGS] = len;
			put(&write_hdr, data + off, len);
			msgs_put++;
			bytes += len;
		} else if (msgs_got < msgs_put) {
			uint32_t want = lens[msgs_got % SEGQ_MSGS], part = 0;
			size_t total = peek(number, 516 + (seed >> 40) % 1500), front = 16;

			ck_assert_uint_eq(be16_get(message), number);
			part = (uint32_t)(total - front);
			ck_assert_mem_eq(message + front, data + offs[msgs_got % SEGQ_MSGS] + got, part);
			ck_assert_uint_eq(be64_get(message + 8), write_hdr.to + got);
			ck_assert_int_eq(message[2] >> 6 & 1, got + part == want);
			segq_sent(&q);
			number++;
			bytes -= part;
			got += part;
			if (got == want) {
				got = 0;
				msgs_got++;
			}
		}
		ck_assert_uint_eq(q.bytes, bytes);
		ck_assert_int_eq(segq_empty(&q), msgs_got == msgs_put);
	}
	ck_assert_uint_gt(msgs_got, 50000);
}

UNIT_CASE((void)tc);

START_TEST(no_memory)
{
	for (struct sweep s = { 0 }; sweep_next(&s);) {
		sweep_arm(&s);
		int rc = segq_init(&q, RING);
		ck_assert_int_eq(rc, sweep_over(&s) ? -ENOMEM : 0);
		segq_fini(&q);
	}
}
