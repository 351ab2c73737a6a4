/* PROXY headers against lines and bytes written down from the protocol's document. */
#include "daemon/leg/proxy_header.h"

#include <errno.h>
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

/* -- reading -- */

#define V4_PLACES "\xc0\x00\x02\x01\xc0\x00\x02\x02\xdc\x04\x01\xbb"
#define V6_PLACES "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x02\x00\x01\x00\x50"
#define X10(x) x x x x x x x x x x
#define UNIX_PLACES X10(X10("/r")) "123456789012abcd" /* 216 bytes */
#define FFFF "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"

/* client NULL: the sender itself; "": malformed */
static const struct {
	const char *bytes;
	size_t len;
	const char *client;
} readings[] = {
	{ BYTES("PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n"), "192.0.2.1:56324" },
	{ BYTES("PROXY TCP4 255.255.255.254 255.255.255.255 65535 65535\r\n"), "255.255.255.254:65535" },
	{ BYTES("PROXY TCP4 192.0.2.1 0.0.0.0 1 0\r\n"), "192.0.2.1:1" },
	{ BYTES("PROXY TCP6 2001:db8::1 2001:db8::2 1 80\r\n"), "[2001:db8::1]:1" },
	{ BYTES("PROXY TCP6 ::ffff:192.0.2.1 2001:db8::2 1 80\r\n"), "192.0.2.1:1" },
	{ BYTES("PROXY TCP6 fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff " FFFF " 65535 65535\r\n"),
	    "[fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535" },
	{ BYTES("PROXY UNKNOWN\r\n"), NULL },
	{ BYTES("PROXY UNKNOWN " FFFF " " FFFF " 65535 65535\r\n"), NULL }, /* the longest, of 107 bytes */
	{ BYTES("PROXY UNKNOWN " FFFF " " FFFF " 65535 655355\r\n"), "" },
	{ BYTES("PROXY UNKNOWN " FFFF " " FFFF " 65535 655355\n\r\n"), "" },
	{ BYTES("PROXY UNKNOWN\n"), "" },
	{ BYTES("PROXY UNKNOWN \x01\r\n"), "" },
	{ BYTES("PROXY UNKNOWNS\r\n"), "" },
	{ BYTES("PROXY \r\n"), "" },
	{ BYTES("PROXY TCP4\r\n"), "" },
	{ BYTES("PROXY  TCP4 192.0.2.1 192.0.2.2 1 443\r\n"), "" },
	{ BYTES("PROXY TCP4 192.0.2.1  192.0.2.2 1 443\r\n"), "" },
	{ BYTES("PROXY TCP4 192.0.2.1 192.0.2.2 1 443 \r\n"), "" },
	{ BYTES("PROXY TCP4 192.0.2.1 192.0.2.2 1 443 5\r\n"), "" },
	{ BYTES("PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n"), "" },
	{ BYTES("PROXY TCP4 192.0.2.1 192.0.2.2 0 443\r\n"), "" },
	{ BYTES("PROXY TCP4 192.0.2.1 192.0.2.2 01 443\r\n"), "" },
	{ BYTES("PROXY TCP4 192.0.2.1 192.0.2.2 +1 443\r\n"), "" },
	{ BYTES("PROXY TCP4 192.0.2.1 192.0.2.2 65536 443\r\n"), "" },
	{ BYTES("PROXY TCP4 192.0.2.1 192.0.2.2 1 65536\r\n"), "" },
	{ BYTES("PROXY TCP4 2001:db8::1 192.0.2.2 1 443\r\n"), "" },
	{ BYTES("PROXY TCP6 192.0.2.1 192.0.2.2 1 443\r\n"), "" },
	{ BYTES("PROXY TCP4 0.0.0.0 192.0.2.2 1 443\r\n"), "" },
	{ BYTES("PROXY TCP4 224.0.0.1 192.0.2.2 1 443\r\n"), "" },
	{ BYTES("PROXY TCP4 255.255.255.255 192.0.2.2 1 443\r\n"), "" },
	{ BYTES("PROXY TCP6 ::ffff:224.0.0.1 2001:db8::2 1 443\r\n"), "" },
	{ BYTES("PROXY TCP4 192.0.2.1%eth0 192.0.2.2 1 443\r\n"), "" },
	{ BYTES("PROXY tcp4 192.0.2.1 192.0.2.2 1 443\r\n"), "" },
	{ BYTES("proxy TCP4 192.0.2.1 192.0.2.2 1 443\r\n"), "" },
	{ BYTES("GET / HTTP/1.1\r\n\r\n"), "" },
	{ BYTES(SIGNATURE "\x21\x11\x00\x0c" V4_PLACES), "192.0.2.1:56324" },
	{ BYTES(SIGNATURE "\x21\x21\x00\x24" V6_PLACES), "[2001:db8::1]:1" },
	/* Padding, and ALPN. */
	{ BYTES(SIGNATURE "\x21\x11\x00\x17" V4_PLACES "\x04\x00\x03\0\0\0"
	                  "\x01\x00\x02h2"),
	    "192.0.2.1:56324" },
	{ BYTES(SIGNATURE "\x21\x11\x00\x0f" V4_PLACES "\x04\x00\x00"), "192.0.2.1:56324" },
	{ BYTES(SIGNATURE "\x21\x11\x00\x0e" V4_PLACES "\x04\x00"), "" },
	{ BYTES(SIGNATURE "\x21\x11\x00\x10" V4_PLACES "\x04\x00\x02x"), "" },
	{ BYTES(SIGNATURE "\x21\x11\x00\x0b" V4_PLACES), "" },
	{ BYTES(SIGNATURE "\x21\x11\x00\x00"), "" },
	{ BYTES(SIGNATURE "\x21\x21\x00\x0c" V4_PLACES), "" },
	{ BYTES(SIGNATURE "\x21\x31\x00\xd8" UNIX_PLACES), NULL },
	{ BYTES(SIGNATURE "\x21\x31\x00\x0c" V4_PLACES), "" },
	{ BYTES(SIGNATURE "\x20\x00\x00\x00"), NULL },
	{ BYTES(SIGNATURE "\x20\x11\x00\x0c" V4_PLACES), NULL },
	{ BYTES(SIGNATURE "\x20\x00\x00\x02xy"), NULL },
	{ BYTES(SIGNATURE "\x21\x00\x00\x02xy"), NULL },
	{ BYTES(SIGNATURE "\x21\x12\x00\x0c" V4_PLACES), "" },
	{ BYTES(SIGNATURE "\x21\x41\x00\x0c" V4_PLACES), "" },
	{ BYTES(SIGNATURE "\x21\x10\x00\x0c" V4_PLACES), "" },
	{ BYTES(SIGNATURE "\x11\x11\x00\x0c" V4_PLACES), "" },
	{ BYTES(SIGNATURE "\x22\x11\x00\x0c" V4_PLACES), "" },
	{ BYTES(SIGNATURE "\x21\x11\x00\x0c\x7f\xff\xff\xff\xc0\x00\x02\x02\x00\x00\x01\xbb"), "" },
	{ BYTES(SIGNATURE "\x21\x11\x00\x0c\x00\x00\x00\x00\xc0\x00\x02\x02\xdc\x04\x01\xbb"), "" },
	{ BYTES("\r\n\r\n\0\r\nQUIX\n"), "" },
};

START_LOOP_TEST(headers_are_read, 0, sizeof(readings) / sizeof(readings[0]))
{
	static const char tail[] = "PROXY TCP4 data of the client\r\n";
	struct sockaddr_storage got = { .ss_family = 0xff }, want = { 0 };
	const char *why = NULL;
	const size_t len = readings[_i].len;
	uint8_t bytes[512];

	memcpy(bytes, readings[_i].bytes, len);
	memcpy(bytes + len, tail, sizeof(tail));
	if (readings[_i].client != NULL && readings[_i].client[0] == '\0') {
		ck_assert_int_eq(proxy_header_decode((struct span){ bytes, len + sizeof(tail) }, &got, &why), -EBADMSG);
		ck_assert_ptr_nonnull(why);
		ck_assert_uint_eq(got.ss_family, 0xff);
		return;
	}
	if (readings[_i].client != NULL)
		ck_assert_int_eq(addr_parse_port(readings[_i].client, &want), 0);
	for (size_t cut = 0; cut < len; cut++) {
		ck_assert_int_eq(proxy_header_decode((struct span){ bytes, cut }, &got, &why), 0);
		ck_assert_uint_eq(got.ss_family, 0xff);
	}
	for (size_t more = 0; more < sizeof(tail); more += sizeof(tail) - 1) {
		ck_assert_int_eq(proxy_header_decode((struct span){ bytes, len + more }, &got, &why), (int)len);
		ck_assert_mem_eq(&got, &want, sizeof(want));
	}
}

/* A byte that fits no header is refused at once: a client that sends less may wait for an answer. */
START_TEST(a_wrong_byte_needs_no_others)
{
	static const uint8_t v1[] = "PROXY TCP4 ", v2[] = SIGNATURE "\x21";
	struct sockaddr_storage got;
	const char *why;
	uint8_t bytes[sizeof(v2)];

	for (size_t i = 0; i < 6; i++) {
		memcpy(bytes, v1, i);
		bytes[i] = v1[i] ^ 0x20;
		ck_assert_int_eq(proxy_header_decode((struct span){ bytes, i + 1 }, &got, &why), -EBADMSG);
	}
	for (size_t i = 0; i < sizeof(v2) - 1; i++) {
		memcpy(bytes, v2, i);
		bytes[i] = v2[i] ^ 0x10;
		ck_assert_int_eq(proxy_header_decode((struct span){ bytes, i + 1 }, &got, &why), -EBADMSG);
	}
}

/* _i: 0: the longest that is taken; 1: longer */
START_LOOP_TEST(a_long_header_is_refused_by_its_length, 0, 2)
{
	static uint8_t bytes[PROXY_READ_MAX + 1] = SIGNATURE "\x21\x11\0\0" V4_PLACES "\x04\0\0";
	const size_t body = PROXY_READ_MAX - 16 + (size_t)_i, tlv = body - 12 - 3;
	struct sockaddr_storage got;
	const char *why;

	be16_put(bytes + 14, (uint16_t)body);
	be16_put(bytes + 29, (uint16_t)tlv);
	ck_assert_int_eq(proxy_header_decode((struct span){ bytes, _i == 0 ? sizeof(bytes) : 16 }, &got, &why),
	    _i == 0 ? PROXY_READ_MAX : -EBADMSG);
}
