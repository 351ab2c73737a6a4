#include "base/pages.h"
#include "unit.h"

#include <string.h>

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
