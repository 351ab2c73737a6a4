/* Addresses, networks, users and groups as values of settings; see config_value.h. Looks up no names. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/addr.h"
#include "daemon/config/config.h"
#include "daemon/config/config_value.h"

#define ID_MAX (UINT32_MAX - 1) /* the last one means "unset" to the kernel */

static int
set_unix(const struct config_value *v, struct sockaddr_storage *out, char why[CONFIG_WHY_MAX])
{
	int rc = addr_parse_unix(v->text, out);

	if (rc == -EPERM)
		return value_bad(why, "must be a path, not %s: abstract sockets have no owner and no mode", v->shown);
	if (rc == -ENAMETOOLONG)
		return value_bad(why, "has a path longer than %zu bytes, the most that a socket's may have: %s",
		    sizeof(((struct sockaddr_un *)0)->sun_path) - 1, v->shown);
	if (rc != 0)
		return value_bad(why, "must have an absolute path without blanks and quotes, not %s", v->shown);
	return 0;
}

/* A host name, but not a wrong IPv4 address such as 10.0.0.300. */
static bool
is_host_name(const char *text)
{
	const char *dot = strrchr(text, '.');
	const char *last = dot != NULL ? dot + 1 : text;

	for (const char *p = text; *p != '\0'; p++)
		if (!value_is_name_char(*p) || (p[0] == '.' && (p == text || p[1] == '.')))
			return false;
	return text[0] != '\0' && strspn(last, "0123456789") < strlen(last);
}

/* Is only the port wrong, a number out of range? */
static bool
is_bad_port(const char *text)
{
	char host[CONFIG_HOST_MAX], probe[CONFIG_HOST_MAX];
	const char *colon = strrchr(text, ':');
	uint16_t port;

	if (colon == NULL || colon[1] == '\0' || colon[1 + strspn(colon + 1, "0123456789")] != '\0' ||
	    addr_split(text, host, sizeof(host), &port) == 0)
		return false;
	return snprintf(probe, sizeof(probe), "%.*s:1", (int)(colon - text), text) < (int)sizeof(probe) &&
	    addr_split(probe, host, sizeof(host), &port) == 0;
}

/* A host or address, and nothing behind it. IPv6 without brackets may have a port. */
static bool
lacks_port(const char *text)
{
	struct sockaddr_storage ss;

	return (text[0] == '[' || strchr(text, ':') == NULL) && (addr_parse(text, &ss) == 0 || is_host_name(text));
}

/* Does this host have the interface, by name or number? */
static bool
has_interface(const char *name)
{
	char text[CONFIG_HOST_MAX];
	struct sockaddr_storage ss;

	return snprintf(text, sizeof(text), "fe80::1%%%s", name) < (int)sizeof(text) && addr_parse(text, &ss) == 0;
}

/* Reports the missing interface of "fe80::1%eth9" or "[fe80::1%eth9]:80", which would otherwise be an IPv6 address. */
static int
bad_interface(const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	const char *name = strchr(v->text, '%');
	size_t len = name != NULL ? strcspn(name + 1, "]") : 0;
	char text[CONFIG_HOST_MAX];
	struct sockaddr_storage ss;

	if (len == 0 || strlen(v->text) >= sizeof(text))
		return VALUE_BAD_TYPE;
	snprintf(text, sizeof(text), "%.*s%s", (int)(name - v->text), v->text, name + 1 + len);
	if ((addr_parse(text, &ss) != 0 && addr_parse_port(text, &ss) != 0) || ss.ss_family != AF_INET6)
		return VALUE_BAD_TYPE;
	snprintf(text, sizeof(text), "%.*s", (int)len, name + 1);
	if (has_interface(text))
		return VALUE_BAD_TYPE;
	return value_bad(why, "has %s, but there is no interface %s here", v->shown, config_value_text(text).shown);
}

/* Neither an address with a port nor a path. */
static int
bad_listen(const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	char host[CONFIG_HOST_MAX];
	uint16_t port;

	if (is_bad_port(v->text))
		return value_bad(why, "must have a port from 1 to 65535, not %s", v->shown);
	if (lacks_port(v->text))
		return value_bad(why, "has %s: the port is missing", v->shown);
	if (v->text[0] != '\0' && strspn(v->text, "0123456789") == strlen(v->text))
		return value_bad(why, "has %s: the address before the port is missing", v->shown);
	if (addr_split(v->text, host, sizeof(host), &port) != 0 || !is_host_name(host))
		return bad_interface(v, why);
	return value_bad(why, "must be an IP address and a port, names are only for \"to\", not %s", v->shown);
}

int
value_parse_listen(const struct config_value *v, void *out, char why[CONFIG_WHY_MAX])
{
	if (addr_is_unix_text(v->text))
		return set_unix(v, out, why);
	return addr_parse_port(v->text, out) == 0 ? 0 : bad_listen(v, why);
}

int
value_parse_one_addr(const struct config_value *v, void *out, char why[CONFIG_WHY_MAX])
{
	return addr_parse(v->text, out) == 0 ? 0 : bad_interface(v, why);
}

int
value_parse_addr(const struct config_value *v, void *out, char why[CONFIG_WHY_MAX])
{
	int rc = value_parse_one_addr(v, out, why);

	return rc == 0 && addr_is_any(out) ? value_bad(why, "has %s: a wildcard is not an address", v->shown) : rc;
}

#define SRV_PREFIX "srv:"

static int
set_srv(struct config_target *out, const char *name, char why[CONFIG_WHY_MAX])
{
	if (!config_names_wait())
		return value_bad(
		    why, "has \"%s\": SRV records need c-ares, which this smcrd was built without", SRV_PREFIX);
	if (strlen(name) >= sizeof(out->host) || !is_host_name(name) || strchr(name, '.') == NULL)
		return value_bad(
		    why, "must have the name of SRV records, like \"%s_postgres._tcp.example.com\"", SRV_PREFIX);
	strcpy(out->host, name);
	out->srv = true;
	return 0;
}

/* A target without a look-up. */
static int
set_one(struct config_target *out, const struct sockaddr_storage *ss, char why[CONFIG_WHY_MAX])
{
	out->addrs = malloc(sizeof(*out->addrs));
	if (out->addrs == NULL) {
		value_bad(why, "out of memory");
		return -ENOMEM;
	}
	addr_format(ss, out->host, sizeof(out->host));
	out->port = addr_port(ss);
	out->addrs[0] = *ss;
	out->addr_cnt = 1;
	return 0;
}

static int
parse_target(const struct config_value *v, struct config_target *out, char why[CONFIG_WHY_MAX])
{
	struct sockaddr_storage ss;
	char host[CONFIG_HOST_MAX];
	uint16_t port;

	if (strncmp(v->text, SRV_PREFIX, strlen(SRV_PREFIX)) == 0)
		return set_srv(out, v->text + strlen(SRV_PREFIX), why);
	if (addr_is_unix_text(v->text)) {
		int rc = set_unix(v, &ss, why);

		return rc == 0 ? set_one(out, &ss, why) : rc;
	}
	if (is_bad_port(v->text))
		return value_bad(why, "must have a port from 1 to 65535, not %s", v->shown);
	if (lacks_port(v->text))
		return value_bad(why, "has %s: the port is missing", v->shown);
	if (addr_split(v->text, host, sizeof(host), &port) != 0)
		return VALUE_BAD_TYPE;
	if (addr_parse(host, &ss) != 0) {
		if (!is_host_name(host))
			return bad_interface(v, why);
		strcpy(out->host, host);
		out->port = port;
		return 0;
	}
	if (addr_is_any(&ss))
		return value_bad(why, "must name a host to connect to, not \"%s\"", host);
	addr_set_port(&ss, port);
	return set_one(out, &ss, why);
}

int
value_parse_target(const struct config_value *v, void *at, char why[CONFIG_WHY_MAX])
{
	const size_t len = strlen(v->text), tail_len = strlen(CONFIG_BACKUP);
	struct config_target *out = at;
	char text[CONFIG_TARGET_STR_MAX];

	if (len < tail_len || len >= sizeof(text) || strcmp(v->text + len - tail_len, CONFIG_BACKUP) != 0)
		return parse_target(v, out, why);
	memcpy(text, v->text, len - tail_len);
	text[len - tail_len] = '\0';
	const struct config_value place = config_value_text(text);
	int rc = parse_target(&place, out, why);
	out->backup = rc == 0;
	return rc;
}

/* "address" or "address/prefix"; address bits after the prefix are a typing error. */
int
value_parse_net(const struct config_value *v, void *out, char why[CONFIG_WHY_MAX])
{
	char host[ADDR_STR_MAX];
	size_t len = strcspn(v->text, "/");
	struct sockaddr_storage ss;
	struct config_net net;
	uint64_t prefix;
	unsigned base;

	snprintf(host, sizeof(host), "%.*s", (int)len, v->text);
	if (len >= sizeof(host) || strpbrk(host, "%[") != NULL || addr_parse(host, &ss) != 0)
		return VALUE_BAD_TYPE;
	base = ss.ss_family == AF_INET ? 96 : 0;
	prefix = 128 - base;
	/* ::ffff:10.0.0.0/104 would be ambiguous */
	if (base != 0 && strchr(host, ':') != NULL)
		return value_bad(why, "has %s: write it as an IPv4 address", v->shown);
	if (v->text[len] == '/' && (value_parse_uint(v->text + len + 1, &prefix) != 0 || prefix > 128 - base))
		return value_bad(why, "has %s, whose prefix is not 0..%u", v->shown, 128 - base);
	addr_to_v6(&ss, net.addr);
	net.prefix_len = (uint8_t)(base + prefix);
	for (unsigned bit = net.prefix_len; bit < 128; bit++)
		if ((net.addr[bit / 8] & 0x80 >> bit % 8) != 0)
			return value_bad(why, "has %s, which has address bits behind its prefix", v->shown);
	memcpy(out, &net, sizeof(net));
	return 0;
}

/* "NET:PORTS", "[NET]:PORTS" for IPv6, or a net alone. */
int
value_parse_dest(const struct config_value *v, void *out, char why[CONFIG_WHY_MAX])
{
	const char *end = v->text[0] == '[' ? strchr(v->text, ']') : strchr(v->text, ':');
	const bool bare6 = v->text[0] != '[' && end != NULL && strchr(end + 1, ':') != NULL;
	const char *net = v->text + (v->text[0] == '['), *colon = v->text[0] == '[' && end != NULL ? end + 1 : end;
	const struct config_key ports = { .len = sizeof(uint16_t) };
	char text[ADDR_STR_MAX];
	struct config_dest dest;
	struct config_net of;
	uint16_t range[2];

	if (bare6 || end == NULL)
		colon = end = v->text + strlen(v->text);
	if (end - net >= (ptrdiff_t)sizeof(text) || (*colon != ':' && *colon != '\0') ||
	    (*colon == '\0' && net != v->text))
		return VALUE_BAD_TYPE;
	snprintf(text, sizeof(text), "%.*s", (int)(end - net), net);
	const struct config_value one = config_value_text(text);
	int rc = value_parse_net(&one, &of, why);
	if (rc == 0 && net != v->text && strchr(text, ':') == NULL)
		rc = VALUE_BAD_TYPE;
	if (rc != 0)
		return rc;
	memset(&dest, 0, sizeof(dest)); /* entries are compared as a whole */
	dest.port_min = 1;
	dest.port_max = UINT16_MAX;
	if (*colon == ':') {
		const struct config_value p = config_value_text(colon + 1);

		rc = value_set_ports(&ports, range, &p, why);
		if (rc == 0 && range[0] == 0)
			rc = VALUE_BAD_TYPE;
		if (rc != 0)
			return rc;
		dest.port_min = range[0];
		dest.port_max = range[1];
	}
	memcpy(dest.addr, of.addr, sizeof(dest.addr));
	dest.prefix_len = of.prefix_len;
	memcpy(out, &dest, sizeof(dest));
	return 0;
}

/* "*:PORT" is stored as an unspecified address. */
int
value_parse_peer_addr(const struct config_value *v, void *out, char why[CONFIG_WHY_MAX])
{
	char text[ADDR_STR_MAX] = "";
	struct sockaddr_storage ss;
	const bool wild = v->text[0] == '*';

	if (wild && strlen(v->text) < sizeof(text) - sizeof("0.0.0.0"))
		snprintf(text, sizeof(text), "0.0.0.0%s", v->text + 1);
	if (addr_parse_port(wild ? text : v->text, &ss) != 0)
		return wild ? VALUE_BAD_TYPE : bad_listen(v, why);
	if (!wild && (addr_is_any(&ss) || addr_is_multicast(&ss)))
		return value_bad(why, "must be an address to connect to, not %s", v->shown);
	memcpy(out, &ss, sizeof(ss));
	return 0;
}

int
value_parse_user(const struct config_value *v, void *out, char why[CONFIG_WHY_MAX])
{
	struct config_id id = { .id = UINT32_MAX };
	uint64_t n;

	(void)why;
	if (v->text[0] == '\0' || v->text[0] == '-' || strlen(v->text) >= sizeof(id.name))
		return VALUE_BAD_TYPE;
	for (const char *p = v->text; *p != '\0'; p++)
		if (!value_is_name_char(*p) && strchr("$@", *p) == NULL)
			return VALUE_BAD_TYPE;
	if (v->text[strspn(v->text, "0123456789")] == '\0') {
		if (value_parse_uint(v->text, &n) != 0 || n > ID_MAX)
			return VALUE_BAD_TYPE;
		id.id = (uint32_t)n;
	}
	strcpy(id.name, v->text);
	memcpy(out, &id, sizeof(id));
	return 0;
}
