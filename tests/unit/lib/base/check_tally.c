#include "base/tally.h"
#include "unit.h"

START_TEST(largest_come_first_equal_ones_by_key)
{
	struct tally t = { 0 };
	struct tally_entry top[8];

	ck_assert_uint_eq(tally_top(&t, top, 8), 0);
	tally_count(&t, 9);
	tally_count(&t, 7);
	for (int i = 0; i < 3; i++)
		tally_count(&t, 5);
	ck_assert_uint_eq(tally_top(&t, top, 8), 3);
	ck_assert_uint_eq(top[0].key, 5);
	ck_assert_uint_eq(top[0].cnt, 3);
	ck_assert_uint_eq(top[1].key, 7);
	ck_assert_uint_eq(top[2].key, 9);
	ck_assert_uint_eq(tally_top(&t, top, 2), 2);
}

START_TEST(more_keys_than_room_share_one_count)
{
	struct tally t = { 0 };
	struct tally_entry top[TALLY_KEYS + 1];

	for (uint32_t k = 0; k < TALLY_KEYS + 10; k++)
		tally_count(&t, k);
	tally_count(&t, 0);
	ck_assert_uint_eq(tally_top(&t, top, TALLY_KEYS + 1), TALLY_KEYS);
	ck_assert_uint_eq(t.other_cnt, 10);
	ck_assert_uint_eq(top[0].key, 0);
	ck_assert_uint_eq(top[0].cnt, 2);
}

START_TEST(counts_of_several_are_added)
{
	struct tally a = { 0 }, b = { 0 };
	struct tally_entry top[4];

	for (int i = 0; i < 3; i++) {
		tally_count(&a, 5);
		tally_count(&b, 7);
	}
	tally_count(&b, 5);
	for (uint32_t k = 0; k < TALLY_KEYS; k++)
		tally_count(&b, 1000 + k); /* two find no place */
	tally_merge(&a, &b);
	ck_assert_uint_eq(tally_top(&a, top, 4), 4);
	ck_assert(top[0].key == 5 && top[0].cnt == 4);
	ck_assert(top[1].key == 7 && top[1].cnt == 3);
	ck_assert_uint_eq(a.used, TALLY_KEYS);
	ck_assert_uint_eq(a.other_cnt, 2);
}
