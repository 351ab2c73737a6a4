#include "base/span.h"
#include "unit.h"

START_TEST(reads_big_endian)
{
	static const uint8_t in[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
	struct rcur r = rcur_make(in, sizeof(in));

	ck_assert_uint_eq(rcur_u8(&r), 1);
	ck_assert_uint_eq(rcur_be16(&r), 0x0203);
	ck_assert_uint_eq(rcur_be24(&r), 0x040506);
	ck_assert_uint_eq(rcur_be32(&r), 0x0708090a);
	ck_assert(!r.failed);
	ck_assert_uint_eq(rcur_left(&r), 0);
}

START_TEST(crossing_the_end_fails_and_stays_failed)
{
	static const uint8_t in[] = { 1, 2, 3 };
	struct rcur r = rcur_make(in, sizeof(in));

	ck_assert_uint_eq(rcur_be32(&r), 0);
	ck_assert(r.failed);
	ck_assert_uint_eq(rcur_u8(&r), 0);
	ck_assert_uint_eq(rcur_left(&r), 0);
}

START_TEST(sub_reader_is_bounded)
{
	static const uint8_t in[] = { 1, 2, 3, 4 };
	struct rcur r = rcur_make(in, sizeof(in));
	struct rcur sub = rcur_sub(&r, 2);

	ck_assert_uint_eq(rcur_be16(&sub), 0x0102);
	ck_assert_uint_eq(rcur_u8(&sub), 0);
	ck_assert(sub.failed);
	ck_assert(!r.failed);
	ck_assert_uint_eq(rcur_u8(&r), 3);
	sub = rcur_sub(&r, 2);
	ck_assert(sub.failed);
	ck_assert(r.failed);
}

START_TEST(writes_round_trip_and_stop_at_the_end)
{
	uint8_t out[18] = { 0 };
	struct wcur w = wcur_make(out, 17);

	wcur_be64(&w, 0x0102030405060708u);
	wcur_be32(&w, 0x090a0b0cu);
	wcur_be24(&w, 0x0d0e0f);
	wcur_be16(&w, 0x1011);
	ck_assert(!w.failed);
	wcur_u8(&w, 0xff);
	ck_assert(w.failed);
	ck_assert_uint_eq(out[17], 0);
	struct rcur r = rcur_make(out, 17);
	ck_assert_uint_eq(rcur_be64(&r), 0x0102030405060708u);
	ck_assert_uint_eq(rcur_be32(&r), 0x090a0b0cu);
	ck_assert_uint_eq(rcur_be24(&r), 0x0d0e0f);
	ck_assert_uint_eq(rcur_be16(&r), 0x1011);
}
