/* Destinations, and ways to them, of services without targets: text form, choice and rules; see config.h. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "daemon/config/config_int.h"
#include "daemon/config/config_value.h"

static bool
is_v4(const uint8_t addr[16], unsigned prefix_len)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return prefix_len >= 96 && memcmp(addr, mapped, sizeof(mapped)) == 0;
}

const char *
config_net_str(const struct config_net *net, char *buf)
{
	const bool v4 = is_v4(net->addr, net->prefix_len);

	inet_ntop(v4 ? AF_INET : AF_INET6, net->addr + (v4 ? 12 : 0), buf, INET6_ADDRSTRLEN);
	sprintf(buf + strlen(buf), "/%u", net->prefix_len - (v4 ? 96u : 0u));
	return buf;
}

const char *
config_dest_str(const struct config_dest *d, char *buf)
{
	const bool v4 = is_v4(d->addr, d->prefix_len), ports = d->port_min != 1 || d->port_max != UINT16_MAX;
	struct config_net net = { .prefix_len = d->prefix_len };
	char text[CONFIG_DEST_STR_MAX];

	memcpy(net.addr, d->addr, sizeof(net.addr));
	config_net_str(&net, text);
	if (!ports)
		strcpy(buf, text);
	else if (d->port_min == d->port_max)
		snprintf(buf, CONFIG_DEST_STR_MAX, v4 ? "%s:%u" : "[%s]:%u", text, d->port_min);
	else
		snprintf(buf, CONFIG_DEST_STR_MAX, v4 ? "%s:%u-%u" : "[%s]:%u-%u", text, d->port_min, d->port_max);
	return buf;
}

int
config_dest_rank(const struct config_dest *d, const uint8_t addr[16], uint16_t port)
{
	/* ::/0 has no IPv4. */
	if (is_v4(d->addr, d->prefix_len) != is_v4(addr, 128) || !addr_same_prefix(d->addr, addr, d->prefix_len) ||
	    port < d->port_min || port > d->port_max)
		return -1;
	return d->prefix_len << 16 | (UINT16_MAX - (d->port_max - d->port_min));
}

/* The closest of cnt entries, if it is closer than *rank. */
static const struct config_dest *
closer(const struct config_dest *list, unsigned cnt, const uint8_t addr[16], uint16_t port, int *rank)
{
	const struct config_dest *best = NULL;

	for (unsigned i = 0; i < cnt; i++) {
		const int r = config_dest_rank(&list[i], addr, port);

		if (r > *rank) {
			*rank = r;
			best = &list[i];
		}
	}
	return best;
}

const struct config_dest *
config_dest_find(const struct config_dest *list, unsigned cnt, const uint8_t addr[16], uint16_t port)
{
	int rank = -1;

	return closer(list, cnt, addr, port, &rank);
}

static bool
is_link_local(const uint8_t addr[16])
{
	static const uint8_t v4[16] = { [10] = 0xff, [11] = 0xff, [12] = 169, [13] = 254 }, v6[16] = { 0xfe, 0x80 };

	return addr_same_prefix(addr, v4, 96 + 16) || addr_same_prefix(addr, v6, 10);
}

/* No server has such an address, and the kernel takes some of them for this host. */
static bool
is_nobodys(const struct sockaddr_storage *ss, const uint8_t addr[16])
{
	return addr_is_any(ss) || addr_is_multicast(ss) || (is_v4(addr, 128) && addr[12] == 0);
}

const char *
config_dest_objection(const struct config_dest *list, unsigned cnt, const struct sockaddr_storage *to)
{
	const uint16_t port = addr_port(to);
	int longest = -1;
	bool has_port = false;
	uint8_t addr[16];

	addr_to_v6(to, addr);
	if (is_nobodys(to, addr) || port == 0)
		return "no server can have this address";
	for (const struct config_dest *d = list; d < list + cnt; d++) {
		if (d->prefix_len < longest || config_dest_rank(d, addr, d->port_min) < 0)
			continue;
		has_port = (d->prefix_len == longest && has_port) || config_dest_rank(d, addr, port) >= 0;
		longest = d->prefix_len;
	}
	if (!has_port)
		return longest < 0 ? "its address is not in to_allow" : "its port is not in to_allow";
	if (longest == 128)
		return NULL;
	return is_link_local(addr) ? "it is link-local, and to_allow does not name it"
	    : addr_is_loopback(to) ? "it is a loopback address, and to_allow does not name it"
	                           : NULL;
}

const struct config_via *
config_via_find(const struct config_service *svc, const struct sockaddr_storage *to, struct sockaddr_storage *peer)
{
	const struct config_via *best = NULL;
	uint8_t addr[16];
	int rank = -1;

	addr_to_v6(to, addr);
	for (unsigned i = 0; i < svc->via_cnt; i++)
		if (closer(svc->via[i].nets, svc->via[i].net_cnt, addr, addr_port(to), &rank) != NULL)
			best = &svc->via[i];
	if (best == NULL)
		return NULL;
	*peer = addr_is_any(&best->peer) ? *to : best->peer;
	addr_set_port(peer, addr_port(&best->peer));
	return best;
}

void
config_vias_free(struct config_via *via, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++)
		free(via[i].nets);
	free(via);
}

/* The list, and the number of its entries behind the pointer. */
static const struct config_via *
vias_at(const void *at, unsigned *cnt)
{
	const struct config_via *via;

	memcpy(&via, at, sizeof(via));
	memcpy(cnt, (const char *)at + sizeof(via), sizeof(*cnt));
	return via;
}

void
value_print_vias(const struct config_key *key, const void *at, FILE *out)
{
	unsigned cnt;
	const struct config_via *via = vias_at(at, &cnt);

	fputs("( ", out);
	for (unsigned i = 0; i < cnt; i++) {
		fputs(i > 0 ? ", " : "", out);
		value_print_inner(key, &via[i], out);
	}
	fputs(" )", out);
}

bool
value_vias_equal(const struct config_key *key, const void *at_a, const void *at_b)
{
	unsigned a_cnt, b_cnt;
	const struct config_via *a = vias_at(at_a, &a_cnt), *b = vias_at(at_b, &b_cnt);
	bool same = a_cnt == b_cnt;

	for (unsigned i = 0; same && i < a_cnt; i++)
		for (const struct config_key *k = config_keys; k->name != NULL; k++)
			same = same && ((k->where & key->max) == 0 || config_value_equal(k, &a[i], &b[i]));
	return same;
}

bool
config_via_leads_to(const struct config_service *svc, const struct sockaddr_storage *peer)
{
	for (unsigned i = 0; i < svc->via_cnt; i++)
		if (addr_same_place(&svc->via[i].peer, peer) ||
		    (addr_is_any(&svc->via[i].peer) && addr_port(&svc->via[i].peer) == addr_port(peer)))
			return true;
	return false;
}

bool
config_via_equal(const struct config_service *a, const struct config_service *b)
{
	return config_value_equal(config_key_find(CONFIG_AT_INGRESS, "via"), a, b);
}

/* -- rules -- */

/* Both name some destinations, none of them closer. */
static bool
is_ambiguous(const struct config_dest *a, const struct config_dest *b)
{
	return a->prefix_len == b->prefix_len && memcmp(a->addr, b->addr, sizeof(a->addr)) == 0 &&
	    a->port_max - a->port_min == b->port_max - b->port_min && a->port_min <= b->port_max &&
	    b->port_min <= a->port_max;
}

static const struct config_dest *
find_ambiguous(const struct config_service *svc, unsigned before, const struct config_dest *end)
{
	for (unsigned i = 0; i <= before; i++)
		for (const struct config_dest *d = svc->via[i].nets; d < svc->via[i].nets + svc->via[i].net_cnt; d++) {
			if (d == end)
				return NULL;
			if (is_ambiguous(d, end))
				return d;
		}
	return NULL;
}

static void
check_nets(struct config_build *b, const struct config_service *svc, const config_setting_t *src)
{
	const unsigned line = config_line(src, "via");
	char one[CONFIG_DEST_STR_MAX], other[CONFIG_DEST_STR_MAX];
	unsigned cnt = 0;

	for (unsigned i = 0; i < svc->via_cnt; i++)
		cnt += svc->via[i].net_cnt;
	if (cnt > CONFIG_ITEMS_MAX)
		config_error(b, line, "ingress.via has more than %u nets", CONFIG_ITEMS_MAX);
	for (unsigned i = 0; i < svc->via_cnt && cnt <= CONFIG_ITEMS_MAX; i++) {
		const struct config_via *via = &svc->via[i];

		for (unsigned k = 0; k < via->net_cnt; k++) {
			const struct config_dest *d = find_ambiguous(svc, i, &via->nets[k]);

			if (d != NULL)
				config_error(b, line, "ingress.via has %s and %s: no destination may be in both",
				    config_dest_str(d, one), config_dest_str(&via->nets[k], other));
		}
		if (via->peer.ss_family != 0 && config_leads_to(&via->peer, &svc->listen))
			config_error(b, line, "ingress.via.peer is the service's own listen address");
	}
}

/* "0.0.0.0/0" or "::/0". */
static bool
has_everything(const struct config_dest *list, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++)
		if (list[i].prefix_len == (is_v4(list[i].addr, list[i].prefix_len) ? 96 : 0))
			return true;
	return false;
}

/* Without these an egress for many destinations is an open relay. */
static void
check_requested(struct config_build *b, const struct config_service *svc, const config_setting_t *src)
{
	const unsigned line = config_line(src, "to");

	if (svc->to_word != CONFIG_TO_REQUESTED) {
		if (svc->to_allow_cnt > 0)
			config_error(
			    b, config_line(src, "to_allow"), "egress.to_allow needs egress.to = \"requested\"");
		return;
	}
	if (config_member(src, "to_allow") == NULL && svc->to_allow_cnt == 0)
		config_error(
		    b, line, "egress.to \"requested\" needs egress.to_allow: the servers that a peer may want");
	const bool proven = svc->secure == CONFIG_SECURE_AUTH || svc->secure == CONFIG_SECURE_REQUIRED;
	if (svc->allow_cnt == 0 && (!proven || svc->peer_names[0] == '\0'))
		config_error(b, line,
		    "egress.to \"requested\" needs egress.allow, or egress.peer_names with egress.secure \"auth\" or \"required\"");
	if (svc->peer != SMCR_PEER_SMCRD)
		config_error(b, config_line(src, "peer"),
		    "egress.to \"requested\" needs egress.peer = \"smcrd\": no other peer sends destinations");
	if (has_everything(svc->to_allow, svc->to_allow_cnt) && svc->secure != CONFIG_SECURE_REQUIRED)
		config_error(b, config_line(src, "to_allow"),
		    "egress.to_allow with all addresses needs egress.secure = \"required\"");
}

void
config_check_via(struct config_build *b, const struct config_service *svc, const config_setting_t *src)
{
	const struct {
		const char *name;
		bool set;
	} of_targets[] = { { "policy", svc->policy != CONFIG_POLICY_FIRST },
		{ "when_down", svc->when_down != CONFIG_DOWN_ACCEPT }, { "probe", svc->probe.kind != CONFIG_PROBE_OFF },
		{ "prewarm", svc->prewarm } };
	const char *kind = config_kind_words[svc->kind];
	const bool original = svc->to_word == CONFIG_TO_ORIGINAL;

	if (svc->to_word != CONFIG_TO_TARGETS && original != (svc->kind == CONFIG_INGRESS))
		config_error(b, config_line(src, "to"), "%s.to \"%s\" is for an %s", kind,
		    config_to_words[svc->to_word], config_kind_words[original ? CONFIG_INGRESS : CONFIG_EGRESS]);
	for (size_t i = 0; svc->to_word != CONFIG_TO_TARGETS && i < sizeof(of_targets) / sizeof(of_targets[0]); i++)
		if (of_targets[i].set)
			config_error(b, config_line(src, of_targets[i].name),
			    "%s.%s is for a service with targets in %s.to", kind, of_targets[i].name, kind);
	if (svc->kind == CONFIG_EGRESS)
		check_requested(b, svc, src);
	if (!original) {
		if (svc->via_cnt > 0)
			config_error(b, config_line(src, "via"), "ingress.via needs ingress.to = \"original\"");
		if (svc->capture != CONFIG_CAPTURE_REDIRECT)
			config_error(b, config_line(src, "capture"), "ingress.capture needs ingress.to = \"original\"");
		return;
	}
	if (config_member(src, "via") == NULL && svc->via_cnt == 0)
		config_error(b, config_line(src, "to"), "ingress.to \"original\" needs ingress.via");
	if (svc->listen.ss_family == AF_UNIX)
		config_error(b, config_line(src, "listen"),
		    "ingress.listen must be an address and a port: on a UNIX socket no connection has a destination");
	if (svc->peer != SMCR_PEER_SMCRD)
		config_error(b, config_line(src, "peer"),
		    "ingress.to \"original\" needs ingress.peer = \"smcrd\": no other peer takes destinations");
	check_nets(b, svc, src);
}
