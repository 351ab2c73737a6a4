#include <errno.h>

#include "base/rng.h"
#include "smcr/state/cursor.h"
#include "unit.h"
#include "tests/seeded_rng.h"

#define LINUX cursor_space(65536, false)
#define RFC cursor_space(10000, true)

static struct cdc_cursor
cur(uint16_t wrap, uint32_t count)
{
	return (struct cdc_cursor){ wrap, count };
}

START_TEST(both_readings_of_the_start_and_of_the_wrap)
{
	struct cdc_cursor c = cursor_encode(LINUX, 0);

	ck_assert_uint_eq(c.wrap, 0);
	ck_assert_uint_eq(c.count, 0);
	c = cursor_encode(LINUX, 65536);
	ck_assert_uint_eq(c.wrap, 1);
	ck_assert_uint_eq(c.count, 0);
	c = cursor_encode(RFC, 0);
	ck_assert_uint_eq(c.wrap, 0);
	ck_assert_uint_eq(c.count, 4);
	c = cursor_encode(RFC, 9995);
	ck_assert_uint_eq(c.wrap, 0);
	ck_assert_uint_eq(c.count, 9999);
	c = cursor_encode(RFC, 9996);
	ck_assert_uint_eq(c.wrap, 1);
	ck_assert_uint_eq(c.count, 4);
	/* Figure 19: wrap 1, 1004. */
	c = cursor_encode(RFC, 9996 + 1000);
	ck_assert_uint_eq(c.wrap, 1);
	ck_assert_uint_eq(c.count, 1004);
}

START_TEST(wrap_counts_are_modulo_65536)
{
	uint64_t pos = 0, at = 65536ULL * 65535 + 7;

	ck_assert_uint_eq(cursor_encode(LINUX, at).wrap, 65535);
	ck_assert_int_eq(cursor_decode(LINUX, cur(0, 3), at, at + 65536, &pos), 0);
	ck_assert_uint_eq(pos, 65536ULL * 65536 + 3);
	at = 65536ULL * 65536 * 5 + 9;
	ck_assert_int_eq(cursor_decode(LINUX, cur(65535, 3), at, at + 100, &pos), -ESTALE);
	ck_assert_int_eq(cursor_decode(LINUX, cur(0, 10), at, at + 100, &pos), 0);
	ck_assert_uint_eq(pos, at + 1);
}

START_TEST(what_is_skipped_counts_in_the_element_alone)
{
	struct cursor_space s = RFC;
	uint64_t pos = 0;

	cursor_start_over(&s, 0);
	ck_assert_uint_eq(s.skipped, 0);
	cursor_start_over(&s, 1000);
	ck_assert_uint_eq(s.skipped, 8996);
	ck_assert_uint_eq(cursor_offset(s, 1000), 4);
	ck_assert_uint_eq(cursor_encode(s, 1010).wrap, 1);
	ck_assert_uint_eq(cursor_encode(s, 1010).count, 14);
	ck_assert_int_eq(cursor_decode(s, cur(1, 14), 1000, 1000 + 9996, &pos), 0);
	ck_assert_uint_eq(pos, 1010);
	ck_assert_int_eq(cursor_decode(s, cur(0, 1004), 1000, 1000 + 9996, &pos), -ESTALE);
	/* Once a message, and so on for ever. */
	s = LINUX;
	pos = 0;
	for (unsigned i = 1; i < 200000; i++) {
		cursor_start_over(&s, ++pos);
		ck_assert_uint_eq(cursor_encode(s, pos).wrap, (uint16_t)i);
		ck_assert_int_eq(cursor_decode(s, cur((uint16_t)i, 1), pos, pos + 65536, &pos), 0);
		pos--;
	}
}

START_TEST(a_full_window_is_not_an_empty_one)
{
	uint64_t pos = 99;

	ck_assert_int_eq(cursor_decode(RFC, cur(0, 4), 0, 9996, &pos), 0);
	ck_assert_uint_eq(pos, 0);
	ck_assert_int_eq(cursor_decode(RFC, cur(1, 4), 0, 9996, &pos), 0);
	ck_assert_uint_eq(pos, 9996);
	ck_assert_int_eq(cursor_decode(RFC, cur(1, 5), 0, 9996, &pos), -EPROTO);
}

START_TEST(hostile_cursors_leave_the_output_alone)
{
	static const struct {
		uint16_t wrap;
		uint32_t count;
		int err;
	} bad[] = {
		{ 0, 0, -EPROTO },
		{ 0, 3, -EPROTO },
		{ 0, 10000, -EPROTO },
		{ 0, 0xffffffff, -EPROTO },
		{ 2, 4, -EPROTO },
		{ 32767, 4, -EPROTO },
		{ 0, 103, -ESTALE },
		{ 65535, 9999, -ESTALE },
		{ 32769, 4, -ESTALE },
		{ 1, 105, -EPROTO },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint64_t pos = 12345;

		ck_assert_int_eq(cursor_decode(RFC, cur(bad[i].wrap, bad[i].count), 100, 100 + 9996, &pos), bad[i].err);
		ck_assert_uint_eq(pos, 12345);
	}
}

START_TEST(every_position_in_a_window_comes_back)
{
	struct rng r;

	rng_init_seeded(&r, 3);
	for (int i = 0; i < 100000; i++) {
		struct cursor_space s = cursor_space(16384u << rng_below(&r, 6), rng_below(&r, 2) == 1);
		uint64_t low = rng_u64(&r) >> (16 + rng_below(&r, 40)), high = low + s.usable;
		uint64_t at = low + rng_below(&r, s.usable + 1), pos = 0;

		ck_assert_int_eq(cursor_decode(s, cursor_encode(s, at), low, high, &pos), 0);
		ck_assert_uint_eq(pos, at);
		ck_assert_uint_eq(cursor_offset(s, at), cursor_encode(s, at).count);
	}
}
