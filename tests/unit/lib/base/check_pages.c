#include "base/pages.h"
#include "unit.h"

#include <string.h>
#include <sys/mman.h>

START_TEST(zeroes_exactly_the_range)
{
	enum { LEN = 300000 };

	static const size_t ranges[][2] = { { 0, 10 }, { 5, 4096 }, { 100, 200000 }, { 0, LEN }, { 4096, 65536 } };
	unsigned char *p = pages_alloc(LEN);

	ck_assert_ptr_nonnull(p);
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		size_t from = ranges[i][0], to = from + ranges[i][1] > LEN ? LEN : from + ranges[i][1];

		memset(p, 0xaa, LEN);
		pages_zero(p + from, to - from);
		for (size_t k = 0; k < LEN; k++)
			if (p[k] != (k >= from && k < to ? 0 : 0xaa))
				ck_abort_msg("byte %zu of range %zu..%zu", k, from, to);
	}
	pages_free(p, LEN);
}

START_TEST(a_buffer_that_rests_is_given_back)
{
	enum { LEN = 64 * 4096 };

	struct pages_use use = { 0 };
	unsigned char *p = pages_alloc(LEN), there[64];

	ck_assert_ptr_nonnull(p);
	memset(p, 1, LEN / 2);
	pages_touch(&use, LEN / 2);
	pages_rest(&use, p); /* it was used meanwhile */
	ck_assert_uint_eq(p[LEN / 2 - 1], 1);
	pages_touch(&use, 4096);
	pages_rest(&use, p);
	ck_assert_int_eq(mincore(p, LEN, there), 0);
	for (unsigned i = 0; i < sizeof(there); i++)
		ck_assert_uint_eq(there[i] & 1, i == 0);
	ck_assert_uint_eq(p[4095], 1);
	/* And again, when more was touched. */
	p[10 * 4096] = 1;
	pages_touch(&use, 10 * 4096 + 1);
	pages_rest(&use, p);
	ck_assert_uint_eq(p[10 * 4096], 1);
	pages_rest(&use, p);
	ck_assert_uint_eq(p[10 * 4096], 0);
	pages_free(p, LEN);
}
