/* PROXY headers against lines and bytes written down from the protocol's document. */
#include "daemon/session/proxy.h"

#include <string.h>

#include "base/addr.h"
#include "unit.h"

static union net_addr
addr(const char *text)
{
	struct sockaddr_storage ss;
	union net_addr a;

	ck_assert_int_eq(addr_parse_port(text, &ss), 0);
	net_addr_set(&a, &ss);
	return a;
}

static const struct {
	const char *src, *dst, *line;
} v1_cases[] = {
	{ "192.0.2.1:56324", "192.0.2.2:443", "PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n" },
	{ "255.255.255.255:65535", "255.255.255.255:65535",
	    "PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n" },
	{ "[2001:db8::1]:1", "[2001:db8::2]:80", "PROXY TCP6 2001:db8::1 2001:db8::2 1 80\r\n" },
	{ "192.0.2.1:1", "[2001:db8::2]:80", "PROXY TCP6 ::ffff:192.0.2.1 2001:db8::2 1 80\r\n" },
	{ "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535", "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535",
	    "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
	    "65535 65535\r\n" },
};

START_TEST(version_1_is_a_line)
{
	union net_addr src = addr(v1_cases[_i].src), dst = addr(v1_cases[_i].dst);
	uint8_t buf[PROXY_HEADER_MAX];
	size_t len = proxy_header(CONFIG_PROXY_V1, &src, &dst, buf);

	ck_assert_uint_eq(len, strlen(v1_cases[_i].line));
	ck_assert_mem_eq(buf, v1_cases[_i].line, len);
}

END_TEST

#define SIGNATURE "\x0d\x0a\x0d\x0a\x00\x0d\x0a\x51\x55\x49\x54\x0a"

START_TEST(version_2_is_binary_ipv4)
{
	static const char want[] = SIGNATURE
	    "\x21\x11\x00\x0c"
	    "\xc0\x00\x02\x01"
	    "\xc0\x00\x02\x02"
	    "\xdc\x04"
	    "\x01\xbb";
	union net_addr src = addr("192.0.2.1:56324"), dst = addr("192.0.2.2:443");
	uint8_t buf[PROXY_HEADER_MAX];

	ck_assert_uint_eq(proxy_header(CONFIG_PROXY_V2, &src, &dst, buf), 28);
	ck_assert_mem_eq(buf, want, 28);
}

END_TEST

START_TEST(version_2_is_binary_ipv6)
{
	static const char want[] = SIGNATURE
	    "\x21\x21\x00\x24"
	    "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01"
	    "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\x00\x02\x02"
	    "\x00\x01"
	    "\x00\x50";
	union net_addr src = addr("[2001:db8::1]:1"), dst = addr("192.0.2.2:80");
	uint8_t buf[PROXY_HEADER_MAX];

	ck_assert_uint_eq(proxy_header(CONFIG_PROXY_V2, &src, &dst, buf), 52);
	ck_assert_mem_eq(buf, want, 52);
}

END_TEST

START_TEST(a_mapped_address_is_ipv4)
{
	struct sockaddr_storage ss = { 0 };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
		.sin6_port = htons(7),
		.sin6_addr.s6_addr = { [10] = 0xff, [11] = 0xff, [12] = 192, [14] = 2, [15] = 9 } };
	union net_addr src, dst = addr("192.0.2.2:443");
	uint8_t buf[PROXY_HEADER_MAX];
	static const char want[] = "PROXY TCP4 192.0.2.9 192.0.2.2 7 443\r\n";

	memcpy(&ss, &in6, sizeof(in6));
	net_addr_set(&src, &ss);
	ck_assert_uint_eq(proxy_header(CONFIG_PROXY_V1, &src, &dst, buf), strlen(want));
	ck_assert_mem_eq(buf, want, strlen(want));
}

END_TEST

START_TEST(off_is_nothing)
{
	union net_addr a = addr("192.0.2.2:443");
	uint8_t buf[PROXY_HEADER_MAX];

	ck_assert_uint_eq(proxy_header(CONFIG_PROXY_OFF, &a, &a, buf), 0);
}

END_TEST

START_TEST(an_address_that_was_never_set_is_none)
{
	const union net_addr unset = { 0 };
	char buf[ADDR_STR_MAX];

	ck_assert_str_eq(net_addr_str(&unset, buf, sizeof(buf)), "none");
}

END_TEST

static void
proxy_case(TCase *tc)
{
	tcase_add_loop_test(tc, version_1_is_a_line, 0, 5);
	tcase_add_test(tc, version_2_is_binary_ipv4);
	tcase_add_test(tc, version_2_is_binary_ipv6);
	tcase_add_test(tc, a_mapped_address_is_ipv4);
	tcase_add_test(tc, off_is_nothing);
	tcase_add_test(tc, an_address_that_was_never_set_is_none);
}

UNIT_MAIN("proxy", proxy_case)
