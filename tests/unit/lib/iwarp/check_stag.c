#include "iwarp/stag.h"

#include <string.h>

#include "unit.h"
#include "tests/seeded_rng.h"

static struct rng rng;
static struct stag_table t;
static uint8_t mem[4096];
static int pd1, pd2;

static void
setup(void)
{
	rng_init_seeded(&rng, 7);
	ck_assert_int_eq(stag_table_init(&t, 16), 0);
}

static void
teardown(void)
{
	stag_table_fini(&t);
}

static struct stag_region
region(unsigned access)
{
	return (struct stag_region){ .buf = mem, .len = sizeof(mem), .access = access, .pd = &pd1 };
}

UNIT_FIXTURE(setup, teardown);

START_TEST(exact_range)
{
	struct stag_region r = region(STAG_WRITE);
	uint8_t *at = NULL;

	stag_add(&t, &r, &rng);
	uint64_t end = r.base + sizeof(mem);
	ck_assert_int_eq(stag_check(&t, &pd1, STAG_WRITE, r.stag, r.base, 1, NULL, &at), STAG_OK);
	ck_assert_ptr_eq(at, mem);
	ck_assert_int_eq(stag_check(&t, &pd1, STAG_WRITE, r.stag, end - 1, 1, NULL, &at), STAG_OK);
	ck_assert_ptr_eq(at, mem + sizeof(mem) - 1);
	ck_assert_int_eq(stag_check(&t, &pd1, STAG_WRITE, r.stag, r.base, sizeof(mem), NULL, &at), STAG_OK);
	ck_assert_int_eq(stag_check(&t, &pd1, STAG_WRITE, r.stag, r.base, sizeof(mem) + 1, NULL, &at), STAG_BOUNDS);
	ck_assert_int_eq(stag_check(&t, &pd1, STAG_WRITE, r.stag, r.base - 1, 1, NULL, &at), STAG_BOUNDS);
	ck_assert_int_eq(stag_check(&t, &pd1, STAG_WRITE, r.stag, end, 1, NULL, &at), STAG_BOUNDS);
	ck_assert_int_eq(stag_check(&t, &pd1, STAG_WRITE, r.stag, end - 1, 2, NULL, &at), STAG_BOUNDS);
	ck_assert_int_eq(stag_check(&t, &pd1, STAG_WRITE, r.stag, end + 5, 0, NULL, &at), STAG_BOUNDS);
	ck_assert_int_eq(stag_check(&t, &pd1, STAG_WRITE, r.stag, 0, 1, NULL, &at), STAG_BOUNDS);
	ck_assert_int_eq(stag_check(&t, &pd1, STAG_WRITE, r.stag, UINT64_MAX, 1, NULL, &at), STAG_WRAP);
	ck_assert_int_eq(stag_check(&t, &pd1, STAG_WRITE, r.stag, r.base, UINT64_MAX, NULL, &at), STAG_WRAP);
	ck_assert_int_eq(stag_check(&t, &pd1, STAG_WRITE, r.stag, UINT64_MAX, UINT64_MAX, NULL, &at), STAG_WRAP);
	stag_remove(&t, &r);
}

START_TEST(rights_domain_and_revocation)
{
	struct stag_region r = region(STAG_WRITE);
	uint32_t stag;
	uint8_t *at;

	stag_add(&t, &r, &rng);
	stag = r.stag;
	ck_assert_int_eq(stag_check(&t, &pd2, STAG_WRITE, stag, r.base, 1, NULL, &at), STAG_WRONG_PD);
	ck_assert_int_eq(stag_check(&t, &pd1, STAG_READ, stag, r.base, 1, NULL, &at), STAG_NO_ACCESS);
	ck_assert_int_eq(stag_check(&t, &pd1, STAG_READ | STAG_WRITE, stag, r.base, 1, NULL, &at), STAG_NO_ACCESS);
	ck_assert_int_eq(stag_check(&t, &pd1, 0, stag, r.base, 1, NULL, &at), STAG_OK);
	ck_assert_int_eq(stag_check(&t, &pd1, STAG_WRITE, stag ^ 1, r.base, 1, NULL, &at), STAG_INVALID);
	ck_assert_int_eq(stag_check(&t, &pd1, STAG_WRITE, 0, r.base, 1, NULL, &at), STAG_INVALID);
	stag_remove(&t, &r);
	ck_assert_int_eq(stag_check(&t, &pd1, STAG_WRITE, stag, r.base, 1, NULL, &at), STAG_INVALID);
	stag_remove(&t, &r); /* twice is harmless */
	ck_assert_uint_eq(t.cnt, 0);
}

static bool
refuses_from_100_to_199(
    const struct stag_region *r, size_t off, size_t len, bool rest, const uint8_t *from, uint8_t **at)
{
	(void)r;
	(void)rest;
	if (from != NULL)
		*at = NULL;
	return off < 200 && off + len > 100;
}

/* The owner has the last word on writes, and may keep what is in memory. It is asked about nothing else. */
START_TEST(the_owner_may_refuse_writes)
{
	struct stag_region r = region(STAG_WRITE | STAG_READ);
	uint8_t *at = NULL;

	r.refuses = refuses_from_100_to_199;
	stag_add(&t, &r, &rng);
	ck_assert_int_eq(stag_check(&t, &pd1, STAG_WRITE, r.stag, r.base + 100, 1, NULL, &at), STAG_REFUSED);
	ck_assert_int_eq(stag_check(&t, &pd1, STAG_WRITE, r.stag, r.base, sizeof(mem), NULL, &at), STAG_REFUSED);
	ck_assert_int_eq(stag_check(&t, &pd1, STAG_WRITE, r.stag, r.base, sizeof(mem) + 1, NULL, &at), STAG_BOUNDS);
	ck_assert_ptr_null(at);
	ck_assert_int_eq(stag_check(&t, &pd1, STAG_WRITE, r.stag, r.base, 100, NULL, &at), STAG_OK);
	ck_assert_int_eq(stag_check(&t, &pd1, STAG_WRITE, r.stag, r.base + 200, 1, NULL, &at), STAG_OK);
	ck_assert_int_eq(stag_check(&t, &pd1, STAG_WRITE, r.stag, r.base + 150, 0, NULL, &at), STAG_OK);
	ck_assert_int_eq(stag_check(&t, &pd1, STAG_READ, r.stag, r.base + 150, 1, NULL, &at), STAG_OK);
	ck_assert_int_eq(stag_check(&t, &pd1, 0, r.stag, r.base + 150, 1, mem, &at), STAG_OK);
	ck_assert_ptr_eq(at, mem + 150);
	ck_assert_int_eq(stag_check(&t, &pd1, STAG_WRITE, r.stag, r.base + 150, 1, mem, &at), STAG_REFUSED);
	ck_assert_ptr_eq(at, mem + 150);
	ck_assert_int_eq(stag_check(&t, &pd1, STAG_WRITE, r.stag, r.base, 1, mem, &at), STAG_OK);
	ck_assert_ptr_null(at);
	stag_remove(&t, &r);
}

START_TEST(numbers_are_spread_and_say_nothing)
{
	static struct stag_region r[1000];
	unsigned high[16] = { 0 };

	for (unsigned i = 0; i < 1000; i++) {
		r[i] = region(STAG_WRITE);
		stag_add(&t, &r[i], &rng);
		ck_assert_uint_gt(r[i].stag, 1);
		ck_assert_uint_ge(r[i].base, 0x1000);
		ck_assert_uint_lt(r[i].base, UINT64_MAX / 2 + 0x2000);
		ck_assert_uint_ne(r[i].base, (uintptr_t)mem);
		high[r[i].stag >> 28]++;
		for (unsigned k = 0; k < i; k++)
			ck_assert_uint_ne(r[k].stag, r[i].stag);
	}
	for (unsigned i = 0; i < 16; i++)
		ck_assert_uint_gt(high[i], 20);
	for (unsigned i = 0; i < 1000; i++) {
		unsigned k = i * 7 % 1000;

		ck_assert_ptr_eq(stag_find(&t, r[k].stag), &r[k]);
		stag_remove(&t, &r[k]);
	}
	ck_assert_uint_eq(t.cnt, 0);
}
