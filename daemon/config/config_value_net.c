/* Values of settings that are addresses, networks and ports: see config_value.h. Looks nothing up. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "daemon/config/config.h"
#include "daemon/config/config_value_int.h"

int
value_set_addr(const struct config_key *key, void *base, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	struct sockaddr_storage *out = (void *)((char *)base + key->off);

	if (v->kind != CONFIG_V_TEXT || addr_parse(v->text, out) != 0)
		return value_bad_type(key, v, why);
	return 0;
}

int
value_set_listen(const struct config_key *key, void *base, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	struct sockaddr_storage *out = (void *)((char *)base + key->off);

	if (v->kind != CONFIG_V_TEXT || addr_parse_port(v->text, out) != 0)
		return value_bad_type(key, v, why);
	return 0;
}

/* A host name; not something that was meant as an IPv4 address, like 10.0.0.300. */
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

int
value_set_target(const struct config_key *key, void *base, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	struct config_target *out = (void *)((char *)base + key->off);
	struct sockaddr_storage ss;
	char host[CONFIG_HOST_MAX];
	uint16_t port;

	if (v->kind != CONFIG_V_TEXT || addr_split(v->text, host, sizeof(host), &port) != 0)
		return value_bad_type(key, v, why);
	if (addr_parse(host, &ss) != 0) {
		if (!is_host_name(host))
			return value_bad_type(key, v, why);
		strcpy(out->host, host);
		out->port = port;
		return 0;
	}
	if (addr_is_any(&ss))
		return value_bad(why, "must name a host to connect to, not \"%s\"", host);
	out->addrs = malloc(sizeof(*out->addrs));
	if (out->addrs == NULL) {
		value_bad(why, "out of memory");
		return -ENOMEM;
	}
	addr_set_port(&ss, port);
	addr_format(&ss, out->host, sizeof(out->host));
	out->port = port;
	out->addrs[0] = ss;
	out->addr_cnt = 1;
	return 0;
}

/* "address" or "address/prefix"; bits behind the prefix have to be 0, a typing error otherwise. */
static int
parse_net(const char *text, struct config_net *out, char why[CONFIG_WHY_MAX])
{
	const struct config_value v = { .kind = CONFIG_V_TEXT, .text = text };
	char host[ADDR_STR_MAX], buf[VALUE_SHOW_MAX];
	const char *slash = strchr(text, '/');
	size_t len = slash != NULL ? (size_t)(slash - text) : strlen(text);
	struct sockaddr_storage ss;
	struct config_net net;
	uint64_t prefix;
	unsigned base;

	if (len >= sizeof(host))
		return value_bad(why, "has %s, which is no address", value_show(&v, buf));
	memcpy(host, text, len);
	host[len] = '\0';
	if (addr_parse(host, &ss) != 0 || strchr(host, '%') != NULL || strchr(host, '[') != NULL)
		return value_bad(why, "has %s, which is no address", value_show(&v, buf));
	base = ss.ss_family == AF_INET ? 96 : 0;
	prefix = 128 - base;
	/* ::ffff:10.0.0.0/104 would be ambiguous */
	if (base != 0 && strchr(host, ':') != NULL)
		return value_bad(why, "has %s: write it as an IPv4 address", value_show(&v, buf));
	if (slash != NULL && (value_parse_uint(slash + 1, &prefix) != 0 || prefix > 128 - base))
		return value_bad(why, "has %s, whose prefix is not 0..%u", value_show(&v, buf), 128 - base);
	addr_to_v6(&ss, net.addr);
	net.prefix_len = (uint8_t)(base + prefix);
	for (unsigned bit = net.prefix_len; bit < 128; bit++)
		if ((net.addr[bit / 8] & 0x80 >> bit % 8) != 0)
			return value_bad(why, "has %s, which has address bits behind its prefix", value_show(&v, buf));
	*out = net;
	return 0;
}

int
value_set_nets(const struct config_key *key, void *base, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	char *at = (char *)base + key->off;
	unsigned cnt = v->item_cnt;
	struct config_net *nets;

	if (v->kind != CONFIG_V_LIST)
		return value_bad_type(key, v, why);
	/* An empty list means "everybody" in struct config_service; somebody who writes [] means the opposite. */
	if (cnt == 0)
		return value_bad(why, "is empty: leave it out to allow everybody");
	if (cnt > CONFIG_NETS_MAX)
		return value_bad(why, "has more than %u entries", CONFIG_NETS_MAX);
	nets = calloc(cnt, sizeof(*nets));
	if (nets == NULL) {
		value_bad(why, "out of memory");
		return -ENOMEM;
	}
	for (unsigned i = 0; i < cnt; i++) {
		if (parse_net(v->items[i], &nets[i], why) != 0) {
			free(nets);
			return -EINVAL;
		}
	}
	memcpy(at, &nets, sizeof(nets));
	memcpy(at + sizeof(nets), &cnt, sizeof(cnt));
	return 0;
}

/* -- ports -- */

int
value_set_ports(const struct config_key *key, void *base, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	uint64_t first, last;
	uint16_t range[2];
	char buf[VALUE_SHOW_MAX], text[32];
	char *dash;

	if (v->kind == CONFIG_V_INT && (v->num < 0 || v->num > 65535))
		return value_bad_range(key, v, why);
	if (v->kind == CONFIG_V_INT)
		snprintf(text, sizeof(text), "%lld", v->num);
	else if (v->kind == CONFIG_V_TEXT && strlen(v->text) < sizeof(text))
		strcpy(text, v->text);
	else
		return value_bad_type(key, v, why);
	dash = strchr(text, '-');
	if (dash != NULL)
		*dash++ = '\0';
	if (value_parse_uint(text, &first) != 0)
		return value_bad_type(key, v, why);
	last = first;
	if (dash != NULL && value_parse_uint(dash, &last) != 0)
		return value_bad_type(key, v, why);
	if (last > 65535 || (first == 0 && last != 0))
		return value_bad(why, "must have ports from 1 to 65535 (or be 0 for any), not %s", value_show(v, buf));
	if (first > last)
		return value_bad(why, "must have the lower port first, not %s", value_show(v, buf));
	range[0] = (uint16_t)first;
	range[1] = (uint16_t)last;
	memcpy((char *)base + key->off, range, sizeof(range));
	return 0;
}
