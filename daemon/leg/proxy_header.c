/* PROXY protocol headers; see proxy_header.h. */
#include "daemon/leg/proxy_header.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/addr.h"

#define V2_PROXY_STREAM 0x21 /* version 2, command PROXY */
#define V2_LOCAL 0x20
#define V2_UNSPEC 0x00
#define V2_TCP4 0x11
#define V2_TCP6 0x21
#define V2_LEN4 12
#define V2_LEN6 36
#define V2_UNIX 0x31
#define V2_LEN_UNIX 216
#define V2_FIXED_LEN 16
#define V1_LINE_MAX 107

static const uint8_t v2_signature[12] = "\r\n\r\n\0\r\nQUIT\n";
static const uint8_t v1_word[6] = "PROXY ";

/* Address and port; returns the port. */
static uint16_t
proxy_header_end(const union net_addr *a, uint8_t v6[16])
{
	const struct sockaddr_storage ss = net_addr_get(a);

	addr_to_v6(&ss, v6);
	return addr_port(&ss);
}

size_t
proxy_header(enum config_proxy proxy, const union net_addr *src, const union net_addr *dst, uint8_t *buf)
{
	bool local = src->sa.sa_family == AF_UNIX;
	bool v4 = src->sa.sa_family == AF_INET && dst->sa.sa_family == AF_INET;
	uint8_t from[16], to[16];
	uint16_t from_port = proxy_header_end(src, from), to_port = proxy_header_end(dst, to);
	const size_t skip = v4 ? 12 : 0;
	struct wcur w = wcur_make(buf, PROXY_HEADER_MAX);

	if (proxy == CONFIG_PROXY_V1 && local)
		return (size_t)snprintf((char *)buf, PROXY_HEADER_MAX, "PROXY UNKNOWN\r\n");
	if (proxy == CONFIG_PROXY_V1) {
		char from_str[INET6_ADDRSTRLEN], to_str[INET6_ADDRSTRLEN];

		inet_ntop(v4 ? AF_INET : AF_INET6, from + skip, from_str, sizeof(from_str));
		inet_ntop(v4 ? AF_INET : AF_INET6, to + skip, to_str, sizeof(to_str));
		return (size_t)snprintf((char *)buf, PROXY_HEADER_MAX, "PROXY %s %s %s %u %u\r\n", v4 ? "TCP4" : "TCP6",
		    from_str, to_str, from_port, to_port);
	}
	if (proxy == CONFIG_PROXY_OFF)
		return 0;
	wcur_bytes(&w, v2_signature, sizeof(v2_signature));
	wcur_u8(&w, local ? V2_LOCAL : V2_PROXY_STREAM);
	wcur_u8(&w, local ? V2_UNSPEC : v4 ? V2_TCP4 : V2_TCP6);
	wcur_be16(&w, local ? 0 : v4 ? V2_LEN4 : V2_LEN6);
	if (!local) {
		wcur_bytes(&w, from + skip, sizeof(from) - skip);
		wcur_bytes(&w, to + skip, sizeof(to) - skip);
		wcur_be16(&w, from_port);
		wcur_be16(&w, to_port);
	}
	return (size_t)(w.p - buf);
}

static int
bad_header(const char **why, const char *text)
{
	*why = text;
	return -EBADMSG;
}

/* 0 or -EBADMSG: an address that no client has. */
static int
take_client(const uint8_t *at, bool v4, uint16_t port, struct sockaddr_storage *out, const char **why)
{
	uint8_t v6[16] = { [10] = 0xff, [11] = 0xff };
	struct sockaddr_storage ss;

	memcpy(v4 ? v6 + 12 : v6, at, v4 ? 4 : sizeof(v6));
	addr_from_v6(v6, port, &ss);
	if (port == 0 || addr_is_any(&ss) || addr_is_multicast(&ss))
		return bad_header(why, "the PROXY header names a client with an address that none can have");
	*out = ss;
	return 0;
}

/* -- version 1 -- */

/* The next word of a line, ended by a space or the line's end. False: none, or longer than cap. */
static bool
line_word(const char **at, char *word, size_t cap)
{
	const size_t len = strcspn(*at, " ");

	if (len == 0 || len >= cap)
		return false;
	memcpy(word, *at, len);
	word[len] = '\0';
	*at += len + ((*at)[len] == ' ');
	return true;
}

static bool
line_port(const char **at, uint16_t *port)
{
	char word[6];
	uint32_t n = 0;

	if (!line_word(at, word, sizeof(word)) || (word[0] == '0' && word[1] != '\0'))
		return false;
	for (const char *p = word; *p != '\0'; p++) {
		if (*p < '0' || *p > '9')
			return false;
		n = 10 * n + (uint32_t)(*p - '0');
	}
	*port = (uint16_t)n;
	return n <= UINT16_MAX;
}

/* The line behind "PROXY ", without its end. */
static int
decode_line(const char *line, struct sockaddr_storage *client, const char **why)
{
	char family[8], from[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN];
	uint16_t from_port, to_port;
	uint8_t src[16], dst[16];
	const bool spaced = line[0] != '\0' && line[strlen(line) - 1] != ' ';

	*client = (struct sockaddr_storage){ 0 };
	if (!line_word(&line, family, sizeof(family)))
		return bad_header(why, "malformed PROXY header");
	if (strcmp(family, "UNKNOWN") == 0)
		return 0;
	const bool v4 = strcmp(family, "TCP4") == 0;
	const int af = v4 ? AF_INET : AF_INET6;
	if ((!v4 && strcmp(family, "TCP6") != 0) || !spaced || !line_word(&line, from, sizeof(from)) ||
	    !line_word(&line, to, sizeof(to)) || !line_port(&line, &from_port) || !line_port(&line, &to_port) ||
	    line[0] != '\0' || inet_pton(af, from, src) != 1 || inet_pton(af, to, dst) != 1)
		return bad_header(why, "malformed PROXY header");
	return take_client(src, v4, from_port, client, why);
}

static int
decode_v1(struct span in, struct sockaddr_storage *client, const char **why)
{
	const size_t max = in.len < V1_LINE_MAX ? in.len : V1_LINE_MAX;
	char line[V1_LINE_MAX];
	size_t n = sizeof(v1_word);

	while (n < max && in.ptr[n] >= ' ' && in.ptr[n] <= '~')
		n++;
	if (n >= max || (n + 1 == max && in.ptr[n] == '\r'))
		return in.len < V1_LINE_MAX ? 0 : bad_header(why, "the line of the PROXY header is too long");
	if (in.ptr[n] != '\r' || in.ptr[n + 1] != '\n')
		return bad_header(why, "malformed PROXY header");
	memcpy(line, in.ptr + sizeof(v1_word), n - sizeof(v1_word));
	line[n - sizeof(v1_word)] = '\0';
	const int rc = decode_line(line, client, why);
	return rc != 0 ? rc : (int)n + 2;
}

/* -- version 2 -- */

/* Addresses of PROXY, then TLVs to the end. */
static int
decode_addresses(struct rcur *r, uint8_t family, struct sockaddr_storage *client, const char **why)
{
	const bool v4 = family == V2_TCP4;
	const size_t size = v4 ? 4 : 16;

	*client = (struct sockaddr_storage){ 0 };
	if (family == V2_TCP4 || family == V2_TCP6) {
		const uint8_t *src = rcur_take(r, size);

		rcur_skip(r, size);
		const uint16_t port = rcur_be16(r);
		rcur_skip(r, sizeof(port));
		if (!r->failed && take_client(src, v4, port, client, why) != 0)
			return -EBADMSG;
	} else if (family == V2_UNIX) {
		rcur_skip(r, V2_LEN_UNIX);
	} else if (family != V2_UNSPEC) {
		return bad_header(why, "the PROXY header is not of a stream over IPv4, IPv6 or a UNIX socket");
	}
	while (family != V2_UNSPEC && rcur_left(r) > 0) {
		rcur_skip(r, 1);
		rcur_skip(r, rcur_be16(r));
	}
	return r->failed ? bad_header(why, "malformed PROXY header") : 0;
}

static int
decode_v2(struct span in, struct sockaddr_storage *client, const char **why)
{
	struct rcur r = rcur_make(in.ptr, in.len);

	rcur_skip(&r, sizeof(v2_signature));
	const uint8_t command = rcur_u8(&r), family = rcur_u8(&r);
	const size_t len = rcur_be16(&r);
	if (in.len > sizeof(v2_signature) && command != V2_PROXY_STREAM && command != V2_LOCAL)
		return bad_header(why, "unknown version or command of the PROXY header");
	if (r.failed)
		return 0;
	if (len > PROXY_READ_MAX - V2_FIXED_LEN)
		return bad_header(why, "the PROXY header is longer than 4096 bytes");
	if (rcur_left(&r) < len)
		return 0;
	struct rcur body = rcur_sub(&r, len);
	const int rc = decode_addresses(&body, command == V2_LOCAL ? V2_UNSPEC : family, client, why);
	return rc != 0 ? rc : V2_FIXED_LEN + (int)len;
}

int
proxy_header_decode(struct span in, struct sockaddr_storage *client, const char **why)
{
	struct sockaddr_storage got = { 0 };
	const bool v2 = in.len > 0 && in.ptr[0] == v2_signature[0];
	const uint8_t *start = v2 ? v2_signature : v1_word;
	const size_t start_len = v2 ? sizeof(v2_signature) : sizeof(v1_word);

	if (in.len > 0 && memcmp(in.ptr, start, in.len < start_len ? in.len : start_len) != 0)
		return bad_header(why, "no PROXY header");
	if (in.len < start_len)
		return 0;
	const int rc = v2 ? decode_v2(in, &got, why) : decode_v1(in, &got, why);
	if (rc > 0)
		*client = got;
	return rc;
}
