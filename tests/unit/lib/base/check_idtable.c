#include "base/idtable.h"
#include "unit.h"

START_TEST(finds_what_was_added_until_deleted)
{
	struct idtable t;
	int a, b;

	idtable_init(&t, 100);
	uint32_t ia = idtable_add(&t, &a);
	uint32_t ib = idtable_add(&t, &b);
	ck_assert_uint_ne(ia, 0);
	ck_assert_uint_ne(ia, ib);
	ck_assert_ptr_eq(idtable_get(&t, ia), &a);
	idtable_del(&t, ia);
	ck_assert_ptr_null(idtable_get(&t, ia));
	ck_assert_ptr_eq(idtable_get(&t, ib), &b);
	ck_assert_ptr_null(idtable_get(&t, 0));
	ck_assert_ptr_null(idtable_get(&t, UINT32_MAX));
	idtable_fini(&t);
}

START_TEST(old_id_never_finds_a_new_object)
{
	struct idtable t;
	int a;
	uint32_t old, cur;

	idtable_init(&t, 1);
	old = cur = idtable_add(&t, &a);
	for (int i = 0; i < 4000; i++) {
		idtable_del(&t, cur);
		cur = idtable_add(&t, &a);
		ck_assert_uint_ne(cur, old);
		ck_assert_ptr_null(idtable_get(&t, old));
	}
	idtable_fini(&t);
}

START_TEST(full_table_refuses)
{
	struct idtable t;
	int a;

	idtable_init(&t, 20);
	for (int i = 0; i < 20; i++)
		ck_assert_uint_ne(idtable_add(&t, &a), 0);
	ck_assert_uint_eq(idtable_add(&t, &a), 0);
	ck_assert_uint_eq(t.used, 20);
	idtable_fini(&t);
}

START_TEST(walk_meets_each_object_once)
{
	struct idtable t;
	int v[5];
	uint32_t id[5], pos = 0;
	int met = 0;

	idtable_init(&t, 8);
	for (int i = 0; i < 5; i++)
		id[i] = idtable_add(&t, &v[i]);
	idtable_del(&t, id[2]);
	for (int *p; (p = idtable_next(&t, &pos)) != NULL; met++)
		ck_assert_ptr_ne(p, &v[2]);
	ck_assert_int_eq(met, 4);
	idtable_fini(&t);
}
