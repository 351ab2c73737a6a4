#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/addr.h"
#include "unit.h"

static const struct {
	const char *text;
	const char *canonical; /* NULL = has to be refused */
} with_port[] = {
	{ "127.0.0.1:80", "127.0.0.1:80" },
	{ "0.0.0.0:65535", "0.0.0.0:65535" },
	{ "[::]:1", "[::]:1" },
	{ "[2001:DB8:0::1]:443", "[2001:db8::1]:443" },
	{ "[::ffff:192.0.2.1]:80", "192.0.2.1:80" },
	{ "[fe80::1%lo]:80", "[fe80::1%lo]:80" },
	{ "[fe80::1%4294967295]:80", "[fe80::1%4294967295]:80" },
	{ "[127.0.0.1]:80", NULL },
	{ "127.0.0.1", NULL },
	{ "127.0.0.1:", NULL },
	{ "127.0.0.1:0", NULL },
	{ "127.0.0.1:65536", NULL },
	{ "127.0.0.1:99999999999999999999", NULL },
	{ "127.0.0.1:+80", NULL },
	{ "127.0.0.1: 80", NULL },
	{ "127.0.0.1:80 ", NULL },
	{ "127.1:80", NULL },
	{ "0x7f.0.0.1:80", NULL },
	{ "256.0.0.1:80", NULL },
	{ "::1:80", NULL },
	{ "[::1:80", NULL },
	{ "::1]:80", NULL },
	{ "[]:80", NULL },
	{ "[::1%]:80", NULL },
	{ "[::1%nosuchif]:80", NULL },
	{ "[::1%4294967296]:80", NULL },
	{ ":80", NULL },
	{ ":", NULL },
	{ "", NULL },
	{ "localhost:80", NULL },
	{ "[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]:80", NULL },
};

START_LOOP_TEST(parses_and_formats, 0, sizeof(with_port) / sizeof(with_port[0]))
{
	struct sockaddr_storage untouched;
	char buf[ADDR_STR_MAX];

	memset(&untouched, 0xaa, sizeof(untouched));
	struct sockaddr_storage ss = untouched;
	if (with_port[_i].canonical == NULL) {
		ck_assert_int_eq(addr_parse_port(with_port[_i].text, &ss), -EINVAL);
		return;
	}
	ck_assert_int_eq(addr_parse_port(with_port[_i].text, &ss), 0);
	ck_assert_str_eq(addr_format_port(&ss, buf, sizeof(buf)), with_port[_i].canonical);
}

START_TEST(splits_names)
{
	char host[16];
	uint16_t port = 7;

	ck_assert_int_eq(addr_split("db.example:5432", host, sizeof(host), &port), 0);
	ck_assert_str_eq(host, "db.example");
	ck_assert_uint_eq(port, 5432);
	ck_assert_int_eq(addr_split("a-name-that-is-too-long:1", host, sizeof(host), &port), -EINVAL);
	ck_assert_str_eq(host, "db.example");
	ck_assert_uint_eq(port, 5432);
}

START_TEST(compares)
{
	struct sockaddr_storage a, b;
	uint8_t v6[16];

	ck_assert_int_eq(addr_parse("127.0.0.1", &a), 0);
	ck_assert_int_eq(addr_parse("::ffff:127.0.0.1", &b), 0);
	addr_set_port(&b, 9);
	ck_assert(addr_same_host(&a, &b));
	ck_assert(addr_is_loopback(&a) && !addr_is_any(&a));
	addr_to_v6(&b, v6);
	ck_assert_mem_eq(v6, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\1", 16);
	addr_from_v6(v6, 80, &b);
	ck_assert(addr_same_host(&a, &b) && b.ss_family == AF_INET && addr_port(&b) == 80);
	ck_assert_int_eq(addr_parse("2001:db8::1", &a), 0);
	addr_to_v6(&a, v6);
	addr_from_v6(v6, 7, &b);
	ck_assert(addr_same_host(&a, &b) && b.ss_family == AF_INET6 && addr_port(&b) == 7);
	ck_assert_int_eq(addr_parse("127.0.0.1", &a), 0);
	ck_assert_int_eq(addr_parse("[::]", &b), 0);
	ck_assert(addr_is_any(&b) && !addr_same_host(&a, &b));
	ck_assert_int_eq(addr_parse("::1", &b), 0);
	ck_assert(addr_is_loopback(&b));
	ck_assert_int_eq(addr_parse("fe80::1%1", &a), 0);
	ck_assert_int_eq(addr_parse("fe80::1%2", &b), 0);
	ck_assert(!addr_same_host(&a, &b));
}

START_TEST(other_hosts_reach_some)
{
	static const char *const exposed[] = { "0.0.0.0:1", "192.0.2.1:1", "[::]:1", "[2001:db8::1]:1" };
	static const char *const own[] = { "127.0.0.1:1", "127.99.0.2:1", "[::1]:1", "[::ffff:127.0.0.1]:1" };
	struct sockaddr_storage at = { .ss_family = 0 };

	ck_assert(!addr_is_exposed(&at));
	for (size_t i = 0; i < sizeof(exposed) / sizeof(exposed[0]); i++)
		ck_assert_msg(addr_parse_port(exposed[i], &at) == 0 && addr_is_exposed(&at), "%s", exposed[i]);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		ck_assert_msg(addr_parse_port(own[i], &at) == 0 && !addr_is_exposed(&at), "%s", own[i]);
	ck_assert(addr_parse_unix("unix:/s", &at) == 0 && !addr_is_exposed(&at));
}

START_TEST(a_unix_socket_is_a_path)
{
	static const struct {
		const char *text;
		int rc;
	} bad[] = { { "", -EINVAL }, { "/run/s", -EINVAL }, { "unix", -EINVAL }, { "unix:", -EINVAL },
		{ "unix:s", -EINVAL }, { "unix:./s", -EINVAL }, { "unix:/", -EINVAL }, { "unix:/run/", -EINVAL },
		{ "UNIX:/run/s", -EINVAL }, { "unix:/a b", -EINVAL }, { "unix:/a\nb", -EINVAL },
		{ "unix:/a\"b", -EINVAL }, { "unix:/a\\b", -EINVAL }, { "unix:@s", -EPERM },
		{ "127.0.0.1:80", -EINVAL } };
	struct sockaddr_storage a, b = { .ss_family = 99 };
	char text[200], buf[ADDR_STR_MAX], host[16];
	uint16_t port;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(addr_parse_unix(bad[i].text, &b) == bad[i].rc, "%s", bad[i].text);
	/* 107 bytes fit with a NUL, 108 do not. */
	snprintf(text, sizeof(text), "unix:/%0107d", 1);
	ck_assert_int_eq(addr_parse_unix(text, &b), -ENAMETOOLONG);
	ck_assert_int_eq(b.ss_family, 99);
	text[strlen(text) - 1] = '\0';
	ck_assert_int_eq(addr_parse_unix(text, &a), 0);
	ck_assert_str_eq(addr_format_port(&a, buf, sizeof(buf)), text);
	ck_assert_str_eq(addr_format(&a, buf, sizeof(buf)), text);
	ck_assert_str_eq(addr_path(&a), text + strlen("unix:"));
	ck_assert_uint_eq(addr_port(&a), 0);
	ck_assert(!addr_is_any(&a) && !addr_is_loopback(&a));
	ck_assert(addr_is_unix_text("unix:") && !addr_is_unix_text("unix") && !addr_is_unix_text("localhost:1"));
	/* No port, so no host and no name either. */
	ck_assert_int_eq(addr_split("unix:/run/s", host, sizeof(host), &port), -EINVAL);
	ck_assert_int_eq(addr_parse_port("unix:/run/s", &b), -EINVAL);

	ck_assert_int_eq(addr_parse_unix("unix:/run/s", &a), 0);
	ck_assert_int_eq(addr_parse_unix("unix:/run/s", &b), 0);
	ck_assert(addr_same_host(&a, &b));
	ck_assert_int_eq(addr_parse_unix("unix:/run/t", &b), 0);
	ck_assert(!addr_same_host(&a, &b));
	ck_assert_int_eq(addr_parse("127.0.0.1", &b), 0);
	ck_assert(!addr_same_host(&a, &b));
}

START_LOOP_TEST(a_pattern_without_port_is_a_host, 0, 9)
{
	static const struct {
		const char *pattern, *ss;
		uint16_t pattern_port, port;
		bool matches;
	} row[] = {
		{ "192.0.2.1", "192.0.2.1", 80, 80, true },
		{ "192.0.2.1", "192.0.2.1", 80, 81, false },
		{ "192.0.2.1", "192.0.2.1", 0, 81, true },
		{ "192.0.2.1", "192.0.2.1", 80, 0, false }, /* only the pattern leaves it open */
		{ "192.0.2.1", "192.0.2.2", 80, 80, false },
		{ "192.0.2.1", "192.0.2.2", 0, 80, false },
		{ "2001:db8::1", "2001:db8::1", 0, 80, true },
		{ "2001:db8::1", "2001:db8::1", 81, 80, false },
		{ "2001:db8::1", "192.0.2.1", 0, 80, false },
	};
	struct sockaddr_storage pattern, ss;

	ck_assert_int_eq(addr_parse(row[_i].pattern, &pattern), 0);
	ck_assert_int_eq(addr_parse(row[_i].ss, &ss), 0);
	addr_set_port(&pattern, row[_i].pattern_port);
	addr_set_port(&ss, row[_i].port);
	ck_assert_int_eq(addr_matches(&pattern, &ss), row[_i].matches);
}

START_TEST(a_path_matches_itself)
{
	struct sockaddr_storage pattern, ss;

	ck_assert_int_eq(addr_parse_unix("unix:/run/s", &pattern), 0);
	ck_assert_int_eq(addr_parse_unix("unix:/run/s", &ss), 0);
	ck_assert(addr_matches(&pattern, &ss));
	ck_assert_int_eq(addr_parse_unix("unix:/run/t", &ss), 0);
	ck_assert(!addr_matches(&pattern, &ss));
}

START_TEST(prefixes_are_of_any_length)
{
	static const uint8_t one[16] = { 10, 0, 0x80, 1, [15] = 1 }, other[16] = { 10, 0, 0xc0, 1, [15] = 0 };

	for (unsigned bits = 0; bits <= 128; bits++) {
		ck_assert(addr_same_prefix(one, one, bits));
		ck_assert_int_eq(addr_same_prefix(one, other, bits), bits <= 17);
	}
	ck_assert(addr_same_prefix(one + 3, other + 3, 96));
	ck_assert(!addr_same_prefix(one + 3, other + 3, 104));
}

START_LOOP_TEST(a_source_is_a_host_or_an_ipv6_network, 0, 5)
{
	static const struct {
		const char *addr;
		unsigned bits;
	} row[] = { { "192.0.2.1", 128 }, { "::1", 128 }, { "fe80::1", 128 }, { "2001:db8::1", 64 },
		{ "fd00::1", 64 } };
	struct sockaddr_storage ss;
	uint8_t addr[16];

	ck_assert_int_eq(addr_parse(row[_i].addr, &ss), 0);
	addr_to_v6(&ss, addr);
	ck_assert_uint_eq(addr_source_bits(addr), row[_i].bits);
}
