#include <string.h>

#include "base/str.h"
#include "unit.h"

START_TEST(pieces_stand_behind_each_other)
{
	char buf[16] = "";

	str_append(buf, sizeof(buf), "%s=%d", "a", 1);
	str_append(buf, sizeof(buf), "%s", "");
	str_append(buf, sizeof(buf), ", %c", 'b');
	ck_assert_str_eq(buf, "a=1, b");
}

/* What does not fit is cut off, and whatever comes behind it is left out. */
START_TEST(the_end_of_the_buffer_is_the_end)
{
	char buf[8];

	memset(buf, '#', sizeof(buf));
	buf[0] = '\0';
	str_append(buf, 5, "%s", "abc");
	str_append(buf, 5, "%s", "def");
	ck_assert_str_eq(buf, "abcd");
	str_append(buf, 5, "%s", "g");
	ck_assert_str_eq(buf, "abcd");
	ck_assert_mem_eq(buf + 5, "###", 3);
}
