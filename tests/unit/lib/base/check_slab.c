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

START_TEST(the_last_one_freed_is_the_first_one_given)
{
	struct slab s;

	slab_init(&s, 64, 4);
	void *a = slab_get(&s);
	void *b = slab_get(&s);
	slab_put(&s, a);
	slab_put(&s, b);
	ck_assert_ptr_eq(slab_get(&s), b);
	ck_assert_ptr_eq(slab_get(&s), a);
	slab_fini(&s);
}

START_TEST(a_burst_leaves_little_behind)
{
	enum { N = 100 };
	struct slab s;
	void *p[N];

	slab_init(&s, 100, 8);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < N; i++)
			p[i] = slab_get(&s);
		ck_assert_uint_eq(s.chunk_cnt, (N + 7) / 8);
		/* In no order of chunks. */
		for (int i = 0; i < N; i++)
			slab_put(&s, p[i * 37 % N]);
		ck_assert_uint_eq(s.chunk_cnt, SLAB_EMPTY_MAX);
	}
	/* What is kept serves again before there is more, and one above it comes and goes at no cost. */
	for (int i = 0; i < 8 * SLAB_EMPTY_MAX; i++) {
		p[i] = slab_get(&s);
		ck_assert_uint_eq(s.chunk_cnt, SLAB_EMPTY_MAX);
	}
	for (int i = 0; i < 10; i++) {
		slab_put(&s, slab_get(&s));
		ck_assert_uint_eq(s.chunk_cnt, SLAB_EMPTY_MAX + 1);
	}
	slab_fini(&s);
	ck_assert_uint_eq(s.chunk_cnt, 0);
}

START_TEST(full_chunks_come_first)
{
	struct slab s;
	void *p[8];

	/* A chunk that is nearly empty is left alone while another has room, so that it may run empty. */
	slab_init(&s, 64, 4);
	for (int i = 0; i < 8; i++)
		p[i] = slab_get(&s);
	for (int i = 0; i < 4; i++)
		slab_put(&s, p[i]);
	slab_put(&s, p[4]);
	ck_assert_ptr_eq(slab_get(&s), p[4]);
	ck_assert_uint_eq(s.chunk_cnt, 2);
	slab_fini(&s);
}
