/* Whom a device has refused last. */
#include "rnic/strangers.h"
#include "base/addr.h"
#include "unit.h"

#include <string.h>

static const char *
last(const struct strangers *s, const char *counter)
{
	static char text[ADDR_STR_MAX];
	struct sockaddr_storage ss;

	return strangers_last(s, counter, &ss) ? addr_format_port(&ss, text, sizeof(text)) : "nobody";
}

static void
note(struct strangers *s, enum stranger_kind kind, const char *from)
{
	struct sockaddr_storage ss;
	struct stranger who;

	ck_assert_int_eq(addr_parse_port(from, &ss), 0);
	who = stranger_of(&ss);
	strangers_note(s, kind, &who);
}

START_TEST(the_last_one_of_each_counter_is_known)
{
	static const char *const counters[] = { "mpa_refused_address", "mpa_bad", "mpa_refused_token",
		"mpa_refused_parked", "strangers_limited" };
	struct strangers s = { 0 };

	for (unsigned kind = 0; kind < STRANGER_KINDS; kind++) {
		ck_assert_str_eq(last(&s, counters[kind]), "nobody");
		note(&s, kind, "192.0.2.1:40000");
		ck_assert_str_eq(last(&s, counters[kind]), "192.0.2.1:40000");
	}
	note(&s, STRANGER_BAD, "[2001:db8::7]:65535");
	ck_assert_str_eq(last(&s, "mpa_bad"), "[2001:db8::7]:65535");
	ck_assert_str_eq(last(&s, "mpa_refused_token"), "192.0.2.1:40000");
}

START_TEST(of_other_counters_nobody_is_known)
{
	struct strangers s;
	struct sockaddr_storage ss, before;

	memset(&s, 0, sizeof(s));
	note(&s, STRANGER_BAD, "192.0.2.1:40000");
	memset(&ss, 7, sizeof(ss));
	before = ss;
	ck_assert(!strangers_last(&s, "crc_errors", &ss));
	ck_assert(!strangers_last(&s, "", &ss));
	ck_assert_int_eq(memcmp(&ss, &before, sizeof(ss)), 0);
}
