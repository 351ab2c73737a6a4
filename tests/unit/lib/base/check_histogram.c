/* Each value falls into the range that the bounds say, at both sides of each bound. */
#include "base/histogram.h"
#include "unit.h"

static unsigned
only(const struct histogram *h)
{
	unsigned at = HISTOGRAM_BOUNDS + 1, cnt = 0;

	for (unsigned i = 0; i <= HISTOGRAM_BOUNDS; i++)
		if (h->cnt[i] != 0) {
			at = i;
			cnt += (unsigned)h->cnt[i];
		}
	ck_assert_uint_eq(cnt, 1);
	return at;
}

static unsigned
size_at(uint32_t len)
{
	struct histogram h = { 0 };

	histogram_add_size(&h, len);
	ck_assert_uint_eq(h.sum, len);
	return only(&h);
}

static unsigned
time_at(int64_t ns)
{
	struct histogram h = { 0 };

	histogram_add_time(&h, ns);
	ck_assert_uint_eq(h.sum, ns > 0 ? (uint64_t)ns : 0);
	return only(&h);
}

START_LOOP_TEST(sizes_on_both_sides_of_a_bound, 0, HISTOGRAM_BOUNDS)
{
	ck_assert_uint_eq(size_at((uint32_t)histogram_sizes[_i]), (unsigned)_i);
	ck_assert_uint_eq(size_at((uint32_t)histogram_sizes[_i] + 1), (unsigned)_i + 1);
}

START_LOOP_TEST(times_on_both_sides_of_a_bound, 0, HISTOGRAM_BOUNDS)
{
	const int64_t ns = (int64_t)histogram_times_us[_i] * 1000;

	ck_assert_uint_eq(time_at(ns), (unsigned)_i);
	ck_assert_uint_eq(time_at(ns + 1), (unsigned)_i + 1);
}

START_TEST(the_ends_of_what_can_be)
{
	ck_assert_uint_eq(size_at(0), 0);
	ck_assert_uint_eq(size_at(1), 0);
	ck_assert_uint_eq(size_at(UINT32_MAX), HISTOGRAM_BOUNDS);
	ck_assert_uint_eq(time_at(INT64_MIN), 0);
	ck_assert_uint_eq(time_at(0), 0);
	ck_assert_uint_eq(time_at(INT64_MAX), HISTOGRAM_BOUNDS);
}

START_TEST(merging_adds)
{
	struct histogram a = { .cnt = { 1, 2 }, .sum = 7 };
	const struct histogram b = { .cnt = { 10, [HISTOGRAM_BOUNDS] = 3 }, .sum = 5 };

	histogram_merge(&a, &b);
	ck_assert_uint_eq(a.cnt[0], 11);
	ck_assert_uint_eq(a.cnt[1], 2);
	ck_assert_uint_eq(a.cnt[HISTOGRAM_BOUNDS], 3);
	ck_assert_uint_eq(a.sum, 12);
}
