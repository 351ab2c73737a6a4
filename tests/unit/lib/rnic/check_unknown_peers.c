/* Whom a device has refused last. */
#include "rnic/unknown_peers.h"
#include "base/addr.h"
#include "unit.h"

#include <string.h>

static const char *
last(const struct unknown_peers *s, const char *counter)
{
	static char text[ADDR_STR_MAX];
	struct sockaddr_storage ss;

	return unknown_peers_last(s, counter, &ss) ? addr_format_port(&ss, text, sizeof(text)) : "nobody";
}

static void
note(struct unknown_peers *s, enum unknown_peer_kind kind, const char *from)
{
	struct sockaddr_storage ss;
	struct unknown_peer who;

	ck_assert_int_eq(addr_parse_port(from, &ss), 0);
	who = unknown_peer_of(&ss);
	unknown_peers_note(s, kind, &who);
}

START_TEST(the_last_one_of_each_counter_is_known)
{
	static const char *const counters[] = { "mpa_refused_address", "mpa_bad", "mpa_refused_token",
		"mpa_refused_parked", "strangers_limited" };
	struct unknown_peers s = { 0 };

	for (unsigned kind = 0; kind < UNKNOWN_PEER_KINDS; kind++) {
		ck_assert_str_eq(last(&s, counters[kind]), "nobody");
		note(&s, kind, "192.0.2.1:40000");
		ck_assert_str_eq(last(&s, counters[kind]), "192.0.2.1:40000");
	}
	note(&s, UNKNOWN_PEER_BAD, "[2001:db8::7]:65535");
	ck_assert_str_eq(last(&s, "mpa_bad"), "[2001:db8::7]:65535");
	ck_assert_str_eq(last(&s, "mpa_refused_token"), "192.0.2.1:40000");
}

START_TEST(other_counters_have_no_peer)
{
	struct unknown_peers s;
	struct sockaddr_storage ss, before;

	memset(&s, 0, sizeof(s));
	note(&s, UNKNOWN_PEER_BAD, "192.0.2.1:40000");
	memset(&ss, 7, sizeof(ss));
	before = ss;
	ck_assert(!unknown_peers_last(&s, "crc_errors", &ss));
	ck_assert(!unknown_peers_last(&s, "", &ss));
	ck_assert_int_eq(memcmp(&ss, &before, sizeof(ss)), 0);
}
