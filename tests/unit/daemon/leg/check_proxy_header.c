/* PROXY headers against lines and bytes written down from the protocol's document. */
#include "daemon/leg/proxy_header.h"

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

#define SIGNATURE "\x0d\x0a\x0d\x0a\x00\x0d\x0a\x51\x55\x49\x54\x0a"
#define BYTES(text) text, sizeof(text) - 1

static const struct {
	enum config_proxy proxy;
	const char *src, *dst, *bytes;
	size_t len;
} headers[] = {
	{ CONFIG_PROXY_OFF, "192.0.2.2:443", "192.0.2.2:443", BYTES("") },
	{ CONFIG_PROXY_V1, "192.0.2.1:56324", "192.0.2.2:443", BYTES("PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n") },
	{ CONFIG_PROXY_V1, "255.255.255.255:65535", "255.255.255.255:65535",
	    BYTES("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n") },
	{ CONFIG_PROXY_V1, "[2001:db8::1]:1", "[2001:db8::2]:80",
	    BYTES("PROXY TCP6 2001:db8::1 2001:db8::2 1 80\r\n") },
	{ CONFIG_PROXY_V1, "192.0.2.1:1", "[2001:db8::2]:80",
	    BYTES("PROXY TCP6 ::ffff:192.0.2.1 2001:db8::2 1 80\r\n") },
	{ CONFIG_PROXY_V1, "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535",
	    "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535",
	    BYTES("PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
	          "65535 65535\r\n") },
	{ CONFIG_PROXY_V2, "192.0.2.1:56324", "192.0.2.2:443",
	    BYTES(SIGNATURE "\x21\x11\x00\x0c"
	                    "\xc0\x00\x02\x01"
	                    "\xc0\x00\x02\x02"
	                    "\xdc\x04"
	                    "\x01\xbb") },
	{ CONFIG_PROXY_V2, "[2001:db8::1]:1", "192.0.2.2:80",
	    BYTES(SIGNATURE "\x21\x21\x00\x24"
	                    "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01"
	                    "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\x00\x02\x02"
	                    "\x00\x01"
	                    "\x00\x50") },
};

START_LOOP_TEST(headers_are_as_the_document_says, 0, sizeof(headers) / sizeof(headers[0]))
{
	union net_addr src = addr(headers[_i].src), dst = addr(headers[_i].dst);
	uint8_t buf[PROXY_HEADER_MAX];

	ck_assert_uint_eq(proxy_header(headers[_i].proxy, &src, &dst, buf), headers[_i].len);
	ck_assert_mem_eq(buf, headers[_i].bytes, headers[_i].len);
}

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

/* As haproxy says it. */
START_TEST(a_client_on_a_unix_socket_has_no_address)
{
	const union net_addr src = { .un = { .family = AF_UNIX, .uid = 1000, .pid = 1 } };
	const union net_addr dst = { .un = { .family = AF_UNIX, .path = "/run/s" } };
	static const char v1[] = "PROXY UNKNOWN\r\n", v2[] = SIGNATURE "\x20\x00\x00\x00";
	uint8_t buf[PROXY_HEADER_MAX];
	char text[ADDR_STR_MAX];

	ck_assert_uint_eq(proxy_header(CONFIG_PROXY_OFF, &src, &dst, buf), 0);
	ck_assert_uint_eq(proxy_header(CONFIG_PROXY_V1, &src, &dst, buf), sizeof(v1) - 1);
	ck_assert_mem_eq(buf, v1, sizeof(v1) - 1);
	ck_assert_uint_eq(proxy_header(CONFIG_PROXY_V2, &src, &dst, buf), sizeof(v2) - 1);
	ck_assert_mem_eq(buf, v2, sizeof(v2) - 1);
	ck_assert_str_eq(net_addr_str(&src, text, sizeof(text)), "unix:uid=1000,pid=1");
	ck_assert_str_eq(net_addr_str(&dst, text, sizeof(text)), "unix:/run/s");
}

START_TEST(an_address_that_was_never_set_is_none)
{
	const union net_addr unset = { 0 };
	char buf[ADDR_STR_MAX];

	ck_assert_str_eq(net_addr_str(&unset, buf, sizeof(buf)), "none");
}
