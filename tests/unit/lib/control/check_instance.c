#include "control/instance.h"

#include "unit.h"

START_TEST(names)
{
	static const char *const good[] = { "a", "db-1", "7", "East_2.v", "smcrd2",
		"abcdefghijklmnopqrstuvwxyz012345" };
	static const char *const bad[] = { "", "smcrd", ".", "..", "-a", "_a", "a/b", "../x", "a b", "a\n", "\xc3\xa4",
		"a%i", "abcdefghijklmnopqrstuvwxyz0123456" };

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		ck_assert_msg(instance_name_ok(good[i]), "%s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(!instance_name_ok(bad[i]), "%s", bad[i]);
}

START_TEST(paths)
{
	char buf[256], small[8];

	ck_assert_str_eq(instance_control_path(NULL, buf, sizeof(buf)), RUNSTATEDIR "/smcrd/control");
	ck_assert_str_eq(instance_control_path("db-1", buf, sizeof(buf)), RUNSTATEDIR "/smcrd-db-1/control");
	ck_assert_uint_eq(strlen(instance_control_path("db-1", small, sizeof(small))), sizeof(small) - 1);
}
