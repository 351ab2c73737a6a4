#include "daemon/account/dest_tickets.h"

#include "unit.h"

static struct dest_tickets all;

static void
begin(void)
{
	dest_tickets_init(&all);
}

static void
end(void)
{
	dest_tickets_fini(&all);
}

UNIT_CASE(tcase_add_checked_fixture(tc, begin, end));

static struct clc_dest
dest(unsigned i)
{
	return (struct clc_dest){ .kind = CLC_DEST_V4, .port = 5432, .addr = { 10, 0, (uint8_t)(i >> 8), (uint8_t)i } };
}

static uint32_t
get(uint32_t service, unsigned i)
{
	const struct clc_dest d = dest(i);

	return dest_tickets_get(&all, service, &d);
}

static void
expect(uint32_t nr, uint32_t service, unsigned i)
{
	const struct clc_dest d = dest(i);
	struct clc_dest found;
	uint32_t of = 0;

	ck_assert(dest_tickets_find(&all, nr, &of, &found));
	ck_assert_uint_eq(of, service);
	ck_assert(clc_dest_same(&found, &d));
}

static void
expect_none(uint32_t nr)
{
	struct clc_dest found;
	uint32_t of;

	ck_assert(!dest_tickets_find(&all, nr, &of, &found));
}

START_TEST(each_service_and_destination_has_its_own)
{
	const uint32_t one = get(1, 1), other = get(1, 2), elsewhere = get(2, 1);
	struct clc_dest v6 = { .kind = CLC_DEST_V6, .port = 5432, .addr = { 10, 0, 0, 1 } }, port = dest(1);

	ck_assert(one != other && one != elsewhere && other != elsewhere);
	ck_assert((one & DEST_TICKET_BIT) != 0);
	ck_assert_uint_eq(get(1, 1), one);
	port.port = 5433;
	ck_assert(dest_tickets_get(&all, 1, &v6) != one && dest_tickets_get(&all, 1, &port) != one);
	expect(one, 1, 1);
	expect(other, 1, 2);
	expect(elsewhere, 2, 1);
}

START_TEST(what_was_never_given_stands_for_nothing)
{
	const uint32_t one = get(1, 1);

	expect_none(0);
	expect_none(1);
	expect_none(one + 1);
	expect_none(one ^ DEST_TICKET_BIT);
	ck_assert_uint_eq(get(0, 1), 0);
}

/* The table is full: the one that was not used for longest gives way, and its number returns to nobody. */
START_TEST(the_oldest_gives_way)
{
	uint32_t nr[DEST_TICKETS_MAX];

	for (unsigned i = 0; i < DEST_TICKETS_MAX; i++)
		nr[i] = get(1, i);
	expect(nr[0], 1, 0);
	const uint32_t late = get(1, DEST_TICKETS_MAX);
	expect(late, 1, DEST_TICKETS_MAX);
	expect_none(nr[1]);
	expect(nr[0], 1, 0);
	const uint32_t again = get(1, 1);
	expect_none(nr[2]);
	for (unsigned i = 0; i < DEST_TICKETS_MAX; i++)
		ck_assert(nr[i] != again && nr[i] != late);
}
