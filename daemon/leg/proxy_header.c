/* PROXY protocol headers; see proxy_header.h. */
#include "daemon/leg/proxy_header.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "base/addr.h"
#include "base/span.h"

#define V2_PROXY_STREAM 0x21 /* version 2, command PROXY */
#define V2_LOCAL 0x20
#define V2_UNSPEC 0x00
#define V2_TCP4 0x11
#define V2_TCP6 0x21
#define V2_LEN4 12
#define V2_LEN6 36

static const char v1_unknown[] = "PROXY UNKNOWN\r\n";
static const uint8_t v2_signature[12] = "\r\n\r\n\0\r\nQUIT\n";

struct end {
	uint8_t v6[16];
	uint16_t port;
};

static struct end
proxy_header_end_of(const union net_addr *a)
{
	struct sockaddr_storage ss;
	struct end e;

	net_addr_get(a, &ss);
	addr_to_v6(&ss, e.v6);
	e.port = addr_port(&ss);
	return e;
}

static size_t
anonymous_header(enum config_proxy proxy, uint8_t *buf)
{
	struct wcur w = wcur_make(buf, PROXY_HEADER_MAX);

	if (proxy == CONFIG_PROXY_V1) {
		wcur_bytes(&w, v1_unknown, sizeof(v1_unknown) - 1);
	} else if (proxy == CONFIG_PROXY_V2) {
		wcur_bytes(&w, v2_signature, sizeof(v2_signature));
		wcur_u8(&w, V2_LOCAL);
		wcur_u8(&w, V2_UNSPEC);
		wcur_be16(&w, 0);
	}
	return (size_t)(w.p - buf);
}

size_t
proxy_header(enum config_proxy proxy, const union net_addr *src, const union net_addr *dst, uint8_t *buf)
{
	bool v4 = src->sa.sa_family == AF_INET && dst->sa.sa_family == AF_INET;
	struct end s = proxy_header_end_of(src), d = proxy_header_end_of(dst);
	const size_t skip = v4 ? 12 : 0;
	struct wcur w = wcur_make(buf, PROXY_HEADER_MAX);

	if (src->sa.sa_family == AF_UNIX)
		return anonymous_header(proxy, buf);
	if (proxy == CONFIG_PROXY_V1) {
		char from[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN];

		inet_ntop(v4 ? AF_INET : AF_INET6, s.v6 + skip, from, sizeof(from));
		inet_ntop(v4 ? AF_INET : AF_INET6, d.v6 + skip, to, sizeof(to));
		return (size_t)snprintf((char *)buf, PROXY_HEADER_MAX, "PROXY %s %s %s %u %u\r\n", v4 ? "TCP4" : "TCP6",
		    from, to, s.port, d.port);
	}
	if (proxy == CONFIG_PROXY_V2) {
		wcur_bytes(&w, v2_signature, sizeof(v2_signature));
		wcur_u8(&w, V2_PROXY_STREAM);
		wcur_u8(&w, v4 ? V2_TCP4 : V2_TCP6);
		wcur_be16(&w, v4 ? V2_LEN4 : V2_LEN6);
		wcur_bytes(&w, s.v6 + skip, sizeof(s.v6) - skip);
		wcur_bytes(&w, d.v6 + skip, sizeof(d.v6) - skip);
		wcur_be16(&w, s.port);
		wcur_be16(&w, d.port);
	}
	return (size_t)(w.p - buf);
}
