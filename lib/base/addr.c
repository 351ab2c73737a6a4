/* Socket addresses as text; see addr.h. */
#include "base/addr.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

/* Digits only, no sign or blank; at most max. */
static int
parse_number(const char *text, unsigned long long max, unsigned long long *out)
{
	unsigned long long v = strtoull(text, NULL, 10);

	if (*text == '\0' || text[strspn(text, "0123456789")] != '\0' || v > max)
		return -EINVAL;
	*out = v;
	return 0;
}

int
addr_parse(const char *text, struct sockaddr_storage *out)
{
	uint8_t addr[16] = { [10] = 0xff, [11] = 0xff };
	size_t len = strlen(text);
	char buf[ADDR_STR_MAX], *scope;
	unsigned long long id = 0;

	if (inet_pton(AF_INET, text, addr + 12) == 1) {
		addr_from_v6(addr, 0, out);
		return 0;
	}
	if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	}
	if (len >= sizeof(buf))
		return -EINVAL;
	memcpy(buf, text, len);
	buf[len] = '\0';
	scope = strchr(buf, '%');
	if (scope != NULL)
		*scope++ = '\0';
	if (inet_pton(AF_INET6, buf, addr) != 1)
		return -EINVAL;
	if (scope != NULL) {
		id = if_nametoindex(scope);
		if (id == 0 && parse_number(scope, UINT32_MAX, &id) != 0)
			return -EINVAL;
	}
	addr_from_v6(addr, 0, out);
	if (out->ss_family == AF_INET6)
		((struct sockaddr_in6 *)(void *)out)->sin6_scope_id = (uint32_t)id;
	return 0;
}

int
addr_split(const char *text, char *host, size_t host_cap, uint16_t *port)
{
	const char *colon = strrchr(text, ':');
	unsigned long long v;
	size_t len;

	if (colon == NULL || parse_number(colon + 1, UINT16_MAX, &v) != 0 || v == 0)
		return -EINVAL;
	len = (size_t)(colon - text);
	if (len == 0 || len >= host_cap)
		return -EINVAL;
	/* An IPv6 address must be in brackets. */
	if (memchr(text, ':', len) != NULL && (text[0] != '[' || text[len - 1] != ']'))
		return -EINVAL;
	memcpy(host, text, len);
	host[len] = '\0';
	*port = (uint16_t)v;
	return 0;
}

int
addr_parse_port(const char *text, struct sockaddr_storage *out)
{
	char host[ADDR_STR_MAX];
	uint16_t port;

	if (addr_split(text, host, sizeof(host), &port) != 0 || addr_parse(host, out) != 0)
		return -EINVAL;
	addr_set_port(out, port);
	return 0;
}

bool
addr_is_unix_text(const char *text)
{
	return strncmp(text, ADDR_UNIX, sizeof(ADDR_UNIX) - 1) == 0;
}

int
addr_parse_unix(const char *text, struct sockaddr_storage *out)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	const char *path = text + sizeof(ADDR_UNIX) - 1;

	if (!addr_is_unix_text(text))
		return -EINVAL;
	if (path[0] == '@')
		return -EPERM;
	/* The path appears in log lines and inside quotes. */
	for (const char *p = path; *p != '\0'; p++)
		if (iscntrl((unsigned char)*p) || strchr(" \"\\", *p) != NULL)
			return -EINVAL;
	/* A trailing slash names a directory. */
	if (path[0] != '/' || path[strlen(path) - 1] == '/')
		return -EINVAL;
	if (strlen(path) >= sizeof(sun.sun_path))
		return -ENAMETOOLONG;
	strcpy(sun.sun_path, path);
	memset(out, 0, sizeof(*out));
	memcpy(out, &sun, sizeof(sun));
	return 0;
}

/* NUL-terminated within the storage, even if sun_path is full. */
const char *
addr_path(const struct sockaddr_storage *ss)
{
	return ss->ss_family == AF_UNIX ? (const char *)ss + offsetof(struct sockaddr_un, sun_path) : "";
}

static const struct sockaddr_in *
as_v4(const struct sockaddr_storage *ss)
{
	return (const struct sockaddr_in *)(const void *)ss;
}

static const struct sockaddr_in6 *
as_v6(const struct sockaddr_storage *ss)
{
	return (const struct sockaddr_in6 *)(const void *)ss;
}

char *
addr_format(const struct sockaddr_storage *ss, char *buf, size_t cap)
{
	uint32_t scope = ss->ss_family == AF_INET6 ? as_v6(ss)->sin6_scope_id : 0;
	char addr[INET6_ADDRSTRLEN] = "?", ifname[IF_NAMESIZE];

	if (ss->ss_family == AF_UNIX) {
		snprintf(buf, cap, ADDR_UNIX "%s", addr_path(ss));
		return buf;
	}
	if (ss->ss_family == AF_INET)
		inet_ntop(AF_INET, &as_v4(ss)->sin_addr, addr, sizeof(addr));
	else if (ss->ss_family == AF_INET6)
		inet_ntop(AF_INET6, &as_v6(ss)->sin6_addr, addr, sizeof(addr));
	if (scope == 0)
		snprintf(buf, cap, "%s", addr);
	else if (if_indextoname(scope, ifname) != NULL)
		snprintf(buf, cap, "%s%%%s", addr, ifname);
	else
		snprintf(buf, cap, "%s%%%u", addr, scope);
	return buf;
}

char *
addr_format_port(const struct sockaddr_storage *ss, char *buf, size_t cap)
{
	char host[ADDR_STR_MAX];

	addr_format(ss, host, sizeof(host));
	if (ss->ss_family == AF_INET6)
		snprintf(buf, cap, "[%s]:%u", host, addr_port(ss));
	else if (ss->ss_family == AF_UNIX)
		snprintf(buf, cap, "%s", host);
	else
		snprintf(buf, cap, "%s:%u", host, addr_port(ss));
	return buf;
}

uint16_t
addr_port(const struct sockaddr_storage *ss)
{
	if (ss->ss_family == AF_INET)
		return ntohs(as_v4(ss)->sin_port);
	if (ss->ss_family == AF_INET6)
		return ntohs(as_v6(ss)->sin6_port);
	return 0;
}

void
addr_set_port(struct sockaddr_storage *ss, uint16_t port)
{
	if (ss->ss_family == AF_INET)
		((struct sockaddr_in *)(void *)ss)->sin_port = htons(port);
	else if (ss->ss_family == AF_INET6)
		((struct sockaddr_in6 *)(void *)ss)->sin6_port = htons(port);
}

socklen_t
addr_len(const struct sockaddr_storage *ss)
{
	if (ss->ss_family == AF_UNIX)
		return sizeof(struct sockaddr_un);
	return ss->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

bool
addr_is_any(const struct sockaddr_storage *ss)
{
	if (ss->ss_family == AF_INET)
		return as_v4(ss)->sin_addr.s_addr == htonl(INADDR_ANY);
	return ss->ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&as_v6(ss)->sin6_addr);
}

bool
addr_is_loopback(const struct sockaddr_storage *ss)
{
	if (ss->ss_family == AF_INET)
		return ntohl(as_v4(ss)->sin_addr.s_addr) >> 24 == 127;
	return ss->ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&as_v6(ss)->sin6_addr);
}

bool
addr_is_multicast(const struct sockaddr_storage *ss)
{
	if (ss->ss_family == AF_INET)
		return ntohl(as_v4(ss)->sin_addr.s_addr) >> 28 == 14 || as_v4(ss)->sin_addr.s_addr == INADDR_BROADCAST;
	return ss->ss_family == AF_INET6 && IN6_IS_ADDR_MULTICAST(&as_v6(ss)->sin6_addr);
}

bool
addr_is_exposed(const struct sockaddr_storage *ss)
{
	return (ss->ss_family == AF_INET || ss->ss_family == AF_INET6) && !addr_is_loopback(ss);
}

bool
addr_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	uint8_t va[16], vb[16];

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_UNIX)
		return strcmp(addr_path(a), addr_path(b)) == 0;
	if (a->ss_family == AF_INET6 && as_v6(a)->sin6_scope_id != as_v6(b)->sin6_scope_id)
		return false;
	addr_to_v6(a, va);
	addr_to_v6(b, vb);
	return memcmp(va, vb, sizeof(va)) == 0;
}

bool
addr_same_place(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	return addr_same_host(a, b) && addr_port(a) == addr_port(b);
}

bool
addr_overlaps(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	if (a->ss_family == 0 || b->ss_family == 0 || addr_port(a) != addr_port(b))
		return false;
	if (addr_same_host(a, b))
		return true;
	if (a->ss_family == AF_INET6 && addr_is_any(a))
		return true;
	if (b->ss_family == AF_INET6 && addr_is_any(b))
		return true;
	return a->ss_family == b->ss_family && (addr_is_any(a) || addr_is_any(b));
}

bool
addr_matches(const struct sockaddr_storage *pattern, const struct sockaddr_storage *ss)
{
	return addr_same_host(pattern, ss) && (addr_port(pattern) == 0 || addr_port(pattern) == addr_port(ss));
}

void
addr_to_v6(const struct sockaddr_storage *ss, uint8_t out[16])
{
	memset(out, 0, 16);
	if (ss->ss_family == AF_INET) {
		out[10] = out[11] = 0xff;
		memcpy(out + 12, &as_v4(ss)->sin_addr, 4);
	} else if (ss->ss_family == AF_INET6) {
		memcpy(out, &as_v6(ss)->sin6_addr, 16);
	}
}

unsigned
addr_source_bits(const uint8_t addr[16])
{
	struct in6_addr a6;

	memcpy(&a6, addr, sizeof(a6));
	return IN6_IS_ADDR_V4MAPPED(&a6) || IN6_IS_ADDR_LINKLOCAL(&a6) || IN6_IS_ADDR_LOOPBACK(&a6) ? 128 : 64;
}

bool
addr_same_prefix(const uint8_t *a, const uint8_t *b, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	if (memcmp(a, b, whole) != 0)
		return false;
	return rest == 0 || ((a[whole] ^ b[whole]) & (0xff << (8 - rest)) & 0xff) == 0;
}

void
addr_from_v6(const uint8_t addr[16], uint16_t port, struct sockaddr_storage *out)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	memset(out, 0, sizeof(*out));
	if (memcmp(addr, mapped, sizeof(mapped)) == 0) {
		out->ss_family = AF_INET;
		memcpy(&((struct sockaddr_in *)(void *)out)->sin_addr, addr + 12, 4);
	} else {
		out->ss_family = AF_INET6;
		memcpy(&((struct sockaddr_in6 *)(void *)out)->sin6_addr, addr, 16);
	}
	addr_set_port(out, port);
}
