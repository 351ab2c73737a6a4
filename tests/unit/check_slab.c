#include "base/slab.h"

#include <stdint.h>
#include <string.h>

#include "unit.h"

START_TEST(objects_are_apart_aligned_and_zeroed)
{
	enum { N = 100, SIZE = 37 };
	struct slab s;
	unsigned char *p[N];

	slab_init(&s, SIZE, 8);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < N; i++) {
			p[i] = slab_get(&s);
			ck_assert_ptr_nonnull(p[i]);
			ck_assert_uint_eq((uintptr_t)p[i] % _Alignof(max_align_t), 0);
			for (int b = 0; b < SIZE; b++)
				ck_assert_uint_eq(p[i][b], 0);
			memset(p[i], i + 1, SIZE);
		}
		for (int i = 0; i < N; i++) {
			ck_assert_uint_eq(p[i][0], i + 1);
			ck_assert_uint_eq(p[i][SIZE - 1], i + 1);
			slab_put(&s, p[i]);
		}
	}
	ck_assert_uint_eq(s.used, 0);
	slab_fini(&s);
}
END_TEST

START_TEST(the_last_one_freed_is_the_first_one_given)
{
	struct slab s;
	void *a, *b;

	slab_init(&s, 64, 4);
	a = slab_get(&s);
	b = slab_get(&s);
	slab_put(&s, a);
	slab_put(&s, b);
	ck_assert_ptr_eq(slab_get(&s), b);
	ck_assert_ptr_eq(slab_get(&s), a);
	slab_fini(&s);
}
END_TEST

static void
slab_case(TCase *tc)
{
	tcase_add_test(tc, objects_are_apart_aligned_and_zeroed);
	tcase_add_test(tc, the_last_one_freed_is_the_first_one_given);
}

UNIT_MAIN("slab", slab_case)
