/* Both ends of a measurement against each other, and a peer that violates the protocol. */
#include "daemon/probe/measure.h"

#include <errno.h>
#include <string.h>

#include "unit.h"

static struct measure ask, serve;

/* What one end has to send goes to the other, in pieces of up to cap bytes: how many. */
static uint64_t
move(struct measure *from, struct measure *to, size_t cap, int64_t now_ns)
{
	const uint8_t *at;
	uint64_t moved = 0;
	size_t n;

	while ((n = measure_piece(from, &at)) > 0) {
		uint8_t copy[65536];

		n = n < cap ? n : cap;
		memcpy(copy, at, n);
		ck_assert_int_eq(measure_sent(from, n, now_ns), 0);
		ck_assert_int_eq(measure_received(to, copy, n, now_ns), 0);
		moved += n;
	}
	return moved;
}

static const size_t caps[] = { 1, 7, 24, 4096, 65536 };

START_LOOP_TEST(both_ways_and_once_more, 0, sizeof(caps) / sizeof(caps[0]))
{
	measure_serve(&serve);
	for (unsigned round = 0; round < 3; round++) {
		measure_ask(&ask, 10000, 70001, 100);
		ck_assert_uint_eq(move(&serve, &ask, caps[_i], 150), 0);
		ck_assert_uint_eq(move(&ask, &serve, caps[_i], 200), MEASURE_HDR_LEN + 10000);
		ck_assert_int_eq(ask.phase, MEASURE_ANSWER);
		ck_assert_uint_eq(move(&serve, &ask, caps[_i], 300), MEASURE_HDR_LEN + 70001);
		ck_assert_int_eq(ask.phase, MEASURE_DONE);
		ck_assert_int_eq(ask.begun_ns, 100);
		ck_assert_int_eq(ask.turned_ns, 300);
		ck_assert_int_eq(ask.done_ns, 300);
		ck_assert_uint_eq(move(&ask, &serve, caps[_i], 400), 0);
	}
}

/* Nothing but zeros goes out, whatever was in a buffer before. */
START_TEST(data_are_zeros)
{
	const uint8_t *at;

	measure_ask(&ask, 100, 1, 0);
	ck_assert_uint_eq(measure_piece(&ask, &at), MEASURE_HDR_LEN);
	ck_assert_mem_eq(at, "smrM\0\0\0\1\0\0\0\0\0\0\0\144\0\0\0\0\0\0\0\1", MEASURE_HDR_LEN);
	ck_assert_int_eq(measure_sent(&ask, MEASURE_HDR_LEN, 0), 0);
	ck_assert_uint_eq(measure_piece(&ask, &at), 100);
	for (unsigned i = 0; i < 100; i++)
		ck_assert_uint_eq(at[i], 0);
}

static const struct {
	uint8_t at, value;
} wrong[] = {
	{ 0, 'x' }, /* magic */
	{ 7, 2 },   /* version */
	{ 8, 1 },   /* out: too many */
	{ 12, 0x20 },
	{ 16, 0xff }, /* back */
	{ 20, 0x20 },
};

START_LOOP_TEST(requests_that_are_none, 0, sizeof(wrong) / sizeof(wrong[0]))
{
	uint8_t hdr[MEASURE_HDR_LEN] = "smrM\0\0\0\1\0\0\0\0\0\0\0\144\0\0\0\0\0\0\0\144";

	measure_serve(&serve);
	ck_assert_int_eq(measure_received(&serve, hdr, sizeof(hdr), 0), 0);
	hdr[wrong[_i].at] = wrong[_i].value;
	measure_serve(&serve);
	ck_assert_int_eq(measure_received(&serve, hdr, sizeof(hdr), 0), -EPROTO);
}

START_TEST(sizes_of_nothing)
{
	static const uint8_t none[2][MEASURE_HDR_LEN] = { "smrM\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1",
		"smrM\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0" };

	for (unsigned i = 0; i < 2; i++) {
		measure_serve(&serve);
		ck_assert_int_eq(measure_received(&serve, none[i], MEASURE_HDR_LEN, 0), -EPROTO);
	}
}

/* More than was announced, before it is one's turn, an answer to something else. */
START_TEST(bytes_out_of_turn)
{
	uint8_t hdr[MEASURE_HDR_LEN] = "smrM\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\1", more[3] = { 0 };

	measure_serve(&serve);
	ck_assert_int_eq(measure_received(&serve, hdr, sizeof(hdr), 0), 0);
	ck_assert_int_eq(measure_received(&serve, more, sizeof(more), 0), -EPROTO);
	measure_ask(&ask, 2, 1, 0);
	ck_assert_int_eq(measure_received(&ask, more, 1, 0), -EPROTO);
	measure_serve(&serve);
	measure_ask(&ask, 2, 1, 0);
	ck_assert_uint_gt(move(&ask, &serve, 65536, 0), 0);
	hdr[15] = 3;
	ck_assert_int_eq(measure_received(&ask, hdr, sizeof(hdr), 0), -EPROTO);
	measure_serve(&serve);
	measure_ask(&ask, 2, 1, 0);
	ck_assert_uint_gt(move(&ask, &serve, 65536, 0), 0);
	ck_assert_uint_gt(move(&serve, &ask, 65536, 0), 0);
	ck_assert_int_eq(measure_received(&ask, more, 1, 0), -EPROTO);
}
