/* The nft file of "smcrctl capture"; see capture.h. */
#include "ctl/capture.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "ctl/show.h"

#define MARK "0x5e"
#define TABLE "124"
#define WORD_MAX 512
#define PORTS (1 << 16)
#define CONNECT "tcp flags & (fin | syn | rst | ack) == syn "

/* Destinations of one family. */
struct dest {
	uint8_t addr[16]; /* IPv4 as mapped */
	unsigned bits;
	uint16_t min, max;
};

struct rules {
	FILE *out;
	const char *service;
	char table[WORD_MAX], from[WORD_MAX];
	unsigned user;
	bool tproxy, v4, v6, any; /* any: the ingress listens on all addresses */
	bool forwards;            /* connections of other hosts */
	char listen[ADDR_STR_MAX];
	uint16_t port;
	struct dest *dests;
	size_t cnt;
};

static int
capture_refuse(FILE *err, const char *why, const char *what)
{
	fprintf(err, "smcrctl: %s%s\n", why, what);
	return -EINVAL;
}

/* -- destinations -- */

static bool
dest_is_v4(const struct dest *d)
{
	struct sockaddr_storage ss;

	addr_from_v6(d->addr, 0, &ss);
	return ss.ss_family == AF_INET && d->bits >= 96;
}

/* False: no network of ours; the daemon is of another version. */
static bool
take_dest(struct rules *r, const char *net, int64_t min, int64_t max)
{
	char text[INET6_ADDRSTRLEN];
	const size_t len = strcspn(net, "/");
	struct sockaddr_storage ss;
	struct dest *d = &r->dests[r->cnt];

	if (len >= sizeof(text) || net[len] != '/' || min < 1 || max < min || max >= PORTS)
		return false;
	memcpy(text, net, len);
	text[len] = '\0';
	if (addr_parse(text, &ss) != 0)
		return false;
	addr_to_v6(&ss, d->addr);
	d->bits = (unsigned)atoi(net + len + 1) + (ss.ss_family == AF_INET ? 96 : 0);
	d->min = (uint16_t)min;
	d->max = (uint16_t)max;
	r->cnt++;
	return d->bits <= 128;
}

static bool
contains(const struct dest *outer, const struct dest *inner)
{
	return outer->bits <= inner->bits && dest_is_v4(outer) == dest_is_v4(inner) &&
	    addr_same_prefix(outer->addr, inner->addr, outer->bits);
}

/* The elements of one network: an interval set takes no overlaps. So each network, once, has the ports that no network
 * around it has. */
static void
print_elements(const struct rules *r, size_t nr, bool *first)
{
	static char ports[PORTS + 1];
	const struct dest *d = &r->dests[nr];
	struct sockaddr_storage ss;
	char text[ADDR_STR_MAX];

	for (size_t i = 0; i < nr; i++)
		if (r->dests[i].bits == d->bits && contains(&r->dests[i], d))
			return;
	memset(ports, 0, sizeof(ports));
	for (size_t i = nr; i < r->cnt; i++)
		if (r->dests[i].bits == d->bits && contains(&r->dests[i], d))
			memset(ports + r->dests[i].min, 1, (size_t)(r->dests[i].max - r->dests[i].min) + 1);
	for (size_t i = 0; i < r->cnt; i++)
		if (r->dests[i].bits < d->bits && contains(&r->dests[i], d))
			memset(ports + r->dests[i].min, 0, (size_t)(r->dests[i].max - r->dests[i].min) + 1);
	addr_from_v6(d->addr, 0, &ss);
	for (unsigned from = 0, to; from < PORTS; from = to + 1) {
		for (to = from; ports[from] != 0 && ports[to + 1] != 0; to++)
			;
		if (ports[from] == 0)
			continue;
		fprintf(r->out, "%s\n\t\t\t%s/%u . %u-%u", *first ? "" : ",", addr_format(&ss, text, sizeof(text)),
		    d->bits - (dest_is_v4(d) ? 96 : 0), from, to);
		*first = false;
	}
}

static void
print_set(const struct rules *r, bool v4)
{
	bool first = true;

	fprintf(r->out, "\tset %s {\n\t\ttype %s . inet_service; flags interval\n\t\telements = {",
	    v4 ? "via4" : "via6", v4 ? "ipv4_addr" : "ipv6_addr");
	for (size_t i = 0; i < r->cnt; i++)
		if (dest_is_v4(&r->dests[i]) == v4)
			print_elements(r, i, &first);
	fputs("\n\t\t}\n\t}\n", r->out);
}

/* -- rules -- */

static void
print_table(const struct rules *r, const char *more)
{
	/* Loading replaces it at once: a table that is deleted has to be there. */
	fprintf(r->out, "\ntable inet %s%s\ndelete table inet %s%s\ntable inet %s%s {\n", r->table, more, r->table,
	    more, r->table, more);
	if (r->v4)
		print_set(r, true);
	if (r->v6)
		print_set(r, false);
}

/* A rule for each family: before, the match of destinations, and after, where % stands for the family's "ip" or "ip6". */
static void
print_rules(const struct rules *r, const char *before, const char *after)
{
	static const char *const words[][2] = { { "ip", "via4" }, { "ip6", "via6" } };

	for (unsigned i = 0; i < 2; i++) {
		if (!(i == 0 ? r->v4 : r->v6))
			continue;
		fprintf(r->out, "\t\t%s%s daddr . tcp dport @%s ", before, words[i][0], words[i][1]);
		for (const char *p = after; *p != '\0'; p++)
			*p == '%' ? (void)fputs(words[i][0], r->out) : (void)fputc(*p, r->out);
		fputc('\n', r->out);
	}
}

static void
print_chain(const struct rules *r, const char *name, const char *hook)
{
	fprintf(r->out, "\tchain %s {\n\t\ttype %s; policy accept\n", name, hook);
	if (strstr(hook, "output") != NULL)
		fprintf(r->out, "\t\tmeta skuid %u return\n", r->user);
}

static void
print_redirect(const struct rules *r)
{
	char to[ADDR_STR_MAX + 32];

	if (r->any)
		snprintf(to, sizeof(to), "redirect to :%u", r->port);
	else
		snprintf(to, sizeof(to), "dnat %% to %s", r->listen);
	print_chain(r, r->forwards ? "pre" : "out",
	    r->forwards ? "nat hook prerouting priority -100" : "nat hook output priority -100");
	print_rules(r, r->from, to);
	fputs("\t}\n", r->out);
}

static void
print_tproxy(const struct rules *r)
{
	char to[ADDR_STR_MAX + 64];

	snprintf(to, sizeof(to), "tproxy %% to %s%s accept", r->listen, r->forwards ? " meta mark set " MARK : "");
	if (!r->forwards) {
		print_chain(r, "out", "route hook output priority -150");
		print_rules(r, r->from, "meta mark set " MARK);
		fputs("\t}\n", r->out);
	}
	print_chain(r, "pre", "filter hook prerouting priority -150");
	print_rules(r, r->forwards ? r->from : "iif \"lo\" meta mark " MARK " ", to);
	fputs("\t}\n", r->out);
}

/* A table of its own, so that it stays when the other one goes. The path of a cgroup that was created again no longer matches,
 * so here everybody's connections do. */
static void
print_strict(const struct rules *r, const struct capture *c)
{
	char before[WORD_MAX + sizeof(CONNECT)];

	snprintf(before, sizeof(before), "%s" CONNECT, c->uid != NULL || c->interface != NULL ? r->from : "");
	print_table(r, "_strict");
	print_chain(r, r->forwards ? "forward" : "out",
	    r->forwards ? "filter hook forward priority 0" : "filter hook output priority 0");
	if (r->tproxy && !r->forwards)
		fputs("\t\tmeta mark " MARK " accept\n", r->out);
	print_rules(r, before, "reject with tcp reset");
	fputs("\t}\n}\n", r->out);
}

static void
print_all(const struct rules *r, const struct capture *c)
{
	fprintf(r->out,
	    "#!/usr/sbin/nft -f\n# Leads connections to the ingress \"%s\". Loading it again replaces it; to remove it:\n"
	    "# nft delete table inet %s\n",
	    r->table + strlen("smcrd_"), r->table);
	if (c->strict)
		fprintf(r->out, "# nft delete table inet %s_strict\n", r->table);
	if (r->tproxy && r->v4)
		fputs("# It needs: ip rule add fwmark " MARK " lookup " TABLE
		      "\n"
		      "#           ip route replace local default dev lo table " TABLE "\n",
		    r->out);
	if (r->tproxy && r->v6)
		fputs("# It needs: ip -6 rule add fwmark " MARK " lookup " TABLE
		      "\n"
		      "#           ip -6 route replace local default dev lo table " TABLE "\n",
		    r->out);
	print_table(r, "");
	if (r->tproxy)
		print_tproxy(r);
	else
		print_redirect(r);
	fputs("}\n", r->out);
	if (c->strict)
		print_strict(r, c);
}

/* -- what they are made of -- */

/* A name that nft takes: letters, digits, '_', '-' and '.'; others as their code. */
static void
take_name(struct rules *r, const char *service)
{
	size_t len = (size_t)sprintf(r->table, "smcrd_");

	for (const char *p = service; *p != '\0' && len + 4 < sizeof(r->table); p++)
		if (isalnum((unsigned char)*p) || strchr("_-.", *p) != NULL)
			r->table[len++] = *p;
		else
			len += (size_t)sprintf(r->table + len, "_%02x", (unsigned char)*p);
	r->table[len] = '\0';
}

/* A text in quotes has no escapes. */
static bool
is_quotable(const char *text, size_t max)
{
	for (const char *p = text; *p != '\0'; p++)
		if ((unsigned char)*p < ' ' || *p == '"')
			return false;
	return text[0] != '\0' && strlen(text) <= max;
}

static int
take_user(struct rules *r, const char *name, FILE *err)
{
	char *end;
	const unsigned long uid = strtoul(name, &end, 10);
	const struct passwd *pw = getpwnam(name);

	if (pw == NULL && (*end != '\0' || end == name || name[0] == '-' || uid >= UINT32_MAX))
		return capture_refuse(err, "no such user: ", name);
	const unsigned id = pw != NULL ? pw->pw_uid : (unsigned)uid;
	if (id == r->user)
		return capture_refuse(
		    err, "smcrd itself runs as this user, and its connections would come back to it: ", name);
	snprintf(r->from, sizeof(r->from), "meta skuid %u ", id);
	return 0;
}

static int
take_cgroup(struct rules *r, const char *path, FILE *err)
{
	unsigned level = 1;
	size_t len;

	path += strspn(path, "/");
	len = strlen(path);
	while (len > 0 && path[len - 1] == '/')
		len--;
	for (size_t i = 1; i < len; i++)
		level += path[i] == '/' && path[i - 1] != '/';
	if (!is_quotable(path, WORD_MAX - 64))
		return capture_refuse(err, "--cgroup takes a path below /sys/fs/cgroup, without quotes: ", path);
	snprintf(r->from, sizeof(r->from), "socket cgroupv2 level %u \"%.*s\" ", level, (int)len, path);
	return 0;
}

static int
take_from(struct rules *r, const struct capture *c, FILE *err)
{
	if (c->uid != NULL)
		return take_user(r, c->uid, err);
	if (c->interface == NULL)
		return take_cgroup(r, c->cgroup != NULL ? c->cgroup : CAPTURE_SLICE, err);
	if (!is_quotable(c->interface, 15))
		return capture_refuse(err, "--interface takes the name of an interface: ", c->interface);
	snprintf(r->from, sizeof(r->from), "iifname \"%s\" ", c->interface);
	r->forwards = true;
	return 0;
}

static int
take_listen(struct rules *r, const char *text, FILE *err)
{
	struct sockaddr_storage ss;

	if (addr_parse_port(text, &ss) != 0)
		return capture_refuse(err, "no rules lead to ", text);
	r->any = addr_is_any(&ss);
	r->port = addr_port(&ss);
	r->v4 = ss.ss_family == AF_INET || r->any;
	r->v6 = ss.ss_family == AF_INET6;
	if (r->any)
		snprintf(r->listen, sizeof(r->listen), ":%u", r->port);
	else
		addr_format_port(&ss, r->listen, sizeof(r->listen));
	if (r->forwards && !r->tproxy && addr_is_loopback(&ss))
		return capture_refuse(err,
		    "connections of other hosts cannot be redirected to a loopback address: let it listen on another "
		    "one, or set capture = \"tproxy\": ",
		    text);
	return 0;
}

static int
take_dests(struct rules *r, const json_t *via, FILE *err)
{
	const json_t *v;
	size_t i;

	r->dests = calloc(json_array_size(via) + 2, sizeof(*r->dests));
	if (r->dests == NULL)
		return capture_refuse(err, "out of memory", "");
	(void)take_dest(r, CAPTURE_PROBE4 "/32", CAPTURE_PROBE_PORT, CAPTURE_PROBE_PORT);
	(void)take_dest(r, CAPTURE_PROBE6 "/128", CAPTURE_PROBE_PORT, CAPTURE_PROBE_PORT);
	json_array_foreach(via, i, v) if (!take_dest(r, get_string(v, "net"), get_int(v, "port_min"),
	                                      get_int(v, "port_max"))) return capture_refuse(err,
	    "cannot understand this destination: ", get_string(v, "net"));
	for (i = 2; i < r->cnt; i++)
		if (!(dest_is_v4(&r->dests[i]) ? r->v4 : r->v6))
			return capture_refuse(err,
			    "its listening address is of the other family than this destination: ",
			    get_string(json_array_get(via, i - 2), "net"));
	return 0;
}

int
capture_print(FILE *out, FILE *err, const json_t *service, const struct capture *c)
{
	struct rules r = { .out = out };
	int rc;

	if (strcmp(get_string(service, "to"), "original") != 0)
		return capture_refuse(err,
		    "its clients connect to it, and need no rules, as it has no to = \"original\": ",
		    get_string(service, "name"));
	r.user = (unsigned)get_int(service, "user");
	r.tproxy = strcmp(get_setting(service, "capture"), "\"tproxy\"") == 0;
	take_name(&r, get_string(service, "name"));
	rc = take_from(&r, c, err);
	if (rc == 0)
		rc = take_listen(&r, get_string(service, "listen"), err);
	if (rc == 0)
		rc = take_dests(&r, json_object_get(service, "via"), err);
	if (rc == 0)
		print_all(&r, c);
	if (rc == 0 && r.user == 0 && !r.forwards)
		fputs("smcrctl: smcrd runs as root: no program of root is captured\n", err);
	free(r.dests);
	return rc;
}
