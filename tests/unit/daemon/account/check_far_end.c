#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/account/far_end.h"
#include "one_service.h"
#include "unit.h"

static struct far_ends all;

static struct sockaddr_storage
at_nr(unsigned nr)
{
	struct sockaddr_storage ss;
	char text[64];

	snprintf(text, sizeof(text), "10.0.%u.%u:15000", nr / 256, nr % 256);
	ck_assert_int_eq(addr_parse_port(text, &ss), 0);
	return ss;
}

static struct far_end *
get(unsigned nr)
{
	const struct sockaddr_storage at = at_nr(nr);

	return far_end_get(&all, &at);
}

static void
begin(void)
{
	one_service_begin();
	far_ends_init(&all);
}

static void
finish(void)
{
	far_ends_fini(&all);
	one_service_end();
}

UNIT_FIXTURE(begin, finish);

START_TEST(an_address_has_one)
{
	struct far_end *a = get(1), *b = get(2);
	const struct sockaddr_storage at = at_nr(1);

	ck_assert_ptr_ne(a, b);
	ck_assert_ptr_eq(get(1), a);
	ck_assert(addr_same_place(&a->at, &at));
	ck_assert_uint_eq(a->refs, 2);
	ck_assert_uint_eq(all.cnt, 2);
	far_end_put(&all, a);
	far_end_put(&all, a);
	far_end_put(&all, b);
	/* It stays, with its state. */
	ck_assert_ptr_eq(get(1), a);
	far_end_put(&all, a);
}

START_TEST(the_least_used_goes_and_none_with_connections)
{
	struct far_end *first = get(0), *kept[FAR_ENDS_MAX];

	for (unsigned i = 1; i < FAR_ENDS_MAX; i++)
		far_end_put(&all, get(i));
	far_end_put(&all, get(1)); /* used again: 2 is the oldest without connections */
	ck_assert_uint_eq(all.cnt, FAR_ENDS_MAX);
	struct far_end *more = get(FAR_ENDS_MAX);
	ck_assert_ptr_nonnull(more);
	ck_assert_uint_eq(all.cnt, FAR_ENDS_MAX);
	far_end_put(&all, more);
	ck_assert_ptr_eq(get(0), first);
	far_end_put(&all, first);
	LIST_EACH(struct far_end, f, &all.used, node) {
		const struct sockaddr_storage gone = at_nr(2);

		ck_assert(!addr_same_place(&f->at, &gone));
	}
	for (unsigned i = 1; i < FAR_ENDS_MAX; i++)
		ck_assert_ptr_nonnull(kept[i] = get(i));
	ck_assert_ptr_null(get(FAR_ENDS_MAX + 1));
	ck_assert_uint_eq(all.cnt, FAR_ENDS_MAX);
	far_end_put(&all, kept[5]);
	ck_assert_ptr_nonnull(kept[5] = get(FAR_ENDS_MAX + 1));
	for (unsigned i = 1; i < FAR_ENDS_MAX; i++)
		far_end_put(&all, kept[i]);
	far_end_put(&all, first);
}

START_TEST(each_has_its_own_outage)
{
	struct far_end *a = get(1), *b = get(2);
	struct outage_info info;

	ck_assert_uint_eq(far_ends_look(&all, &svc, &info), 0);
	outage_failed(&svc, &a->outage, OUTAGE_CONNECT, &far, "", ECONNREFUSED);
	outage_end(&svc, &b->outage, OUTAGE_ENDED_SMCR, &far);
	ck_assert_uint_eq(far_ends_look(&all, &svc, &info), 1);
	ck_assert_str_eq(info.text, "10.0.0.1:15000: cannot be connected: Connection refused");
	outage_failed(&svc, &b->outage, OUTAGE_SETUP, &far, "words", 0);
	ck_assert_uint_eq(far_ends_look(&all, &svc, &info), 2);
	ck_assert_str_eq(info.text, "10.0.0.2:15000: the set-up failed: words; and 1 more peers");
	/* Other settings: those without connections go, the others forget. */
	far_end_put(&all, a);
	far_ends_forget(&all);
	ck_assert_uint_eq(all.cnt, 1);
	ck_assert_uint_eq(far_ends_look(&all, &svc, &info), 0);
	far_end_put(&all, b);
}
