/* PROXY protocol headers; see proxy.h. */
#include "daemon/session/proxy.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/addr.h"
#include "base/span.h"

#define V2_PROXY_STREAM 0x21 /* version 2, command PROXY */
#define V2_TCP4 0x11
#define V2_TCP6 0x21
#define V2_LEN4 12
#define V2_LEN6 36

static const uint8_t v2_signature[12] = "\r\n\r\n\0\r\nQUIT\n";

/* One end as it stands in the header. */
struct end {
	uint8_t v6[16];
	uint16_t port;
};

static struct end
end_of(const union net_addr *a)
{
	struct sockaddr_storage ss;
	struct end e;

	net_addr_get(a, &ss);
	addr_to_v6(&ss, e.v6);
	e.port = addr_port(&ss);
	return e;
}

static size_t
header_v1(bool v4, const struct end *src, const struct end *dst, uint8_t *buf)
{
	char s[INET6_ADDRSTRLEN], d[INET6_ADDRSTRLEN], line[PROXY_HEADER_MAX + 1];
	int family = v4 ? AF_INET : AF_INET6, skip = v4 ? 12 : 0, len;

	inet_ntop(family, src->v6 + skip, s, sizeof(s));
	inet_ntop(family, dst->v6 + skip, d, sizeof(d));
	len = snprintf(
	    line, sizeof(line), "PROXY %s %s %s %u %u\r\n", v4 ? "TCP4" : "TCP6", s, d, src->port, dst->port);
	memcpy(buf, line, (size_t)len);
	return (size_t)len;
}

static size_t
header_v2(bool v4, const struct end *src, const struct end *dst, uint8_t *buf)
{
	struct wcur w = wcur_make(buf, PROXY_HEADER_MAX);
	size_t skip = v4 ? 12 : 0;

	wcur_bytes(&w, v2_signature, sizeof(v2_signature));
	wcur_u8(&w, V2_PROXY_STREAM);
	wcur_u8(&w, v4 ? V2_TCP4 : V2_TCP6);
	wcur_be16(&w, v4 ? V2_LEN4 : V2_LEN6);
	wcur_bytes(&w, src->v6 + skip, 16 - skip);
	wcur_bytes(&w, dst->v6 + skip, 16 - skip);
	wcur_be16(&w, src->port);
	wcur_be16(&w, dst->port);
	return (size_t)(w.p - buf);
}

size_t
proxy_header(enum config_proxy proxy, const union net_addr *src, const union net_addr *dst, uint8_t *buf)
{
	bool v4 = src->sa.sa_family == AF_INET && dst->sa.sa_family == AF_INET;
	struct end s = end_of(src), d = end_of(dst);

	switch (proxy) {
	case CONFIG_PROXY_V1:
		return header_v1(v4, &s, &d, buf);
	case CONFIG_PROXY_V2:
		return header_v2(v4, &s, &d, buf);
	case CONFIG_PROXY_OFF:
		break;
	}
	return 0;
}
