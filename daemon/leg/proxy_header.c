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

static const uint8_t v2_signature[12] = "\r\n\r\n\0\r\nQUIT\n";

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
