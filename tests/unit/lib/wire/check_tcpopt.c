#include "wire/tcpopt.h"

#include <errno.h>

#include "unit.h"
#include "vectors.h"

static int
find(const char *hex)
{
	uint8_t b[64];
	size_t len = unhex(hex, b, sizeof(b));

	return tcpopt_find_smcr((struct span){ b, len });
}

static unsigned with, without;

static void
check_vector(const char *name, struct span in)
{
	int found = tcpopt_find_smcr(in);

	ck_assert_msg(found >= 0, "%s", name);
	*(found > 0 ? &with : &without) += 1;
}

/* e4: a plain TCP server, then a plain TCP client. */
START_TEST(found_in_the_captures)
{
	ck_assert_uint_ge(vectors_each("tcpopt", check_vector), 5);
	ck_assert_uint_ge(with, 3);
	ck_assert_uint_ge(without, 2);
}

START_TEST(found_and_not_found)
{
	ck_assert_int_eq(find("fe06e2d4c3d9"), 1);
	ck_assert_int_eq(find("020405b4 0101 fe06e2d4c3d9"), 1);
	ck_assert_int_eq(find("fe08e2d4c3d90000 fe06e2d4c3d9"), 1); /* another user of 254 first */
	ck_assert_int_eq(find(""), 0);
	ck_assert_int_eq(find("010101"), 0);
	ck_assert_int_eq(find("fe06e2d4c3c4"), 0);
	ck_assert_int_eq(find("fd06e2d4c3d9"), 0);
	ck_assert_int_eq(find("fe08e2d4c3d90000"), 0);
	ck_assert_int_eq(find("fe04e2d4"), 0);
	ck_assert_int_eq(find("fe02"), 0);
	ck_assert_int_eq(find("00 fe06e2d4c3d9"), 0); /* behind the end of the list */
}

START_TEST(lengths_at_their_limits)
{
	static const char *const bad[] = { "fe", "fe00e2d4c3d9", "fe01e2d4c3d9", "fe07e2d4c3d9", "feffe2d4c3d9", "0200",
		"02ff0101fe06e2d4c3d9" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(find(bad[i]) == -EBADMSG, "%s", bad[i]);
}

START_TEST(every_truncation)
{
	static const uint8_t opt[] = { 1, 1, 0xfe, 6, 0xe2, 0xd4, 0xc3, 0xd9 };

	for (size_t len = 0; len < sizeof(opt); len++)
		ck_assert_int_eq(tcpopt_find_smcr((struct span){ opt, len }), len <= 2 ? 0 : -EBADMSG);
}
