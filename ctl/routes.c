/* Routes; see routes.h. */
#include "ctl/routes.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/addr.h"
#include "ctl/show.h"
#include "ctl/text.h"

#define TABLE 123 /* of routing */
#define MARK 0x5d

static const char chain[] =
    "nft add table inet smcrd\n"
    "nft 'add chain inet smcrd answers { type filter hook prerouting priority mangle; }'\n";

enum routes_place
routes_place_of(const struct sockaddr_storage *server)
{
	int fd = addr_is_loopback(server) ? -1 : socket(server->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_storage own = { 0 };
	socklen_t len = sizeof(own);

	/* The kernel connects to a local address from the same address. */
	bool here = fd >= 0 && connect(fd, (const struct sockaddr *)server, addr_len(server)) == 0 &&
	    getsockname(fd, (struct sockaddr *)&own, &len) == 0 && addr_same_host(server, &own);
	if (fd >= 0)
		close(fd);
	return addr_is_loopback(server) ? ROUTES_LOOPBACK : here ? ROUTES_HERE : ROUTES_THERE;
}

/* The lines of one family, made once each. */
struct lines {
	FILE *out;
	const char *ip;     /* the program, with the family */
	const char *others; /* all addresses */
	const char *name;   /* of the family's addresses in nft */
	const char *sysctl; /* the family's name there, and as nft's nfproto */
	bool route, loopback, fwmark, far;
};

static void
routes_begin(struct lines *l, const char *text, const char *what)
{
	fprintf(l->out, "# %s: %s\n", text, what);
	if (!l->route)
		fprintf(l->out, "%s route replace local %s dev lo table %d\n", l->ip, l->others, TABLE);
	l->route = true;
}

static void
routes_loopback(struct lines *l, const char *text, const struct sockaddr_storage *server)
{
	routes_begin(l, text, "a server on the loopback interface");
	if (!l->loopback)
		fprintf(l->out, "%s rule add from %s iif lo lookup %d\n", l->ip,
		    server->ss_family == AF_INET6 ? "::1" : "127.0.0.0/8", TABLE);
	l->loopback = true;
}

/* A server's sockets take the mark of the connection, and so do its answers; and the kernel's resets that of their SYN. */
static void
routes_keep_mark(struct lines *l)
{
	if (!l->fwmark)
		fprintf(l->out, "sysctl -qw net.ipv4.tcp_fwmark_accept=1 net.%s.fwmark_reflect=1\n", l->sysctl);
	l->fwmark = true;
}

static void
routes_here(struct lines *l, const char *text, const struct sockaddr_storage *server, uint32_t mark)
{
	char host[ADDR_STR_MAX], fwmark[20] = "";

	addr_format(server, host, sizeof(host));
	if (mark == 0) {
		routes_begin(l, text, "a server of this host, whose clients all come by smcrd");
		fprintf(l->out,
		    "# Others that connect to it lose their answers: then set socket_mark, and load its lines instead.\n");
	} else {
		routes_begin(l, text, "a server of this host, by the mark of smcrd's connections");
		routes_keep_mark(l);
		snprintf(fwmark, sizeof(fwmark), " fwmark 0x%x", mark);
	}
	fprintf(l->out, "%s rule add from %s iif lo%s ipproto tcp sport %u lookup %d\n", l->ip, host, fwmark,
	    addr_port(server), TABLE);
}

/* Another one than that of smcrd's connections, which must not come back here themselves. */
static unsigned
mark_of_answers(uint32_t mark)
{
	return mark == MARK ? MARK + 1 : MARK;
}

static void
routes_there(struct lines *l, const char *text, const struct sockaddr_storage *server, uint32_t mark)
{
	const unsigned ours = mark_of_answers(mark);
	char host[ADDR_STR_MAX];

	addr_format(server, host, sizeof(host));
	routes_begin(l, text, "a server on another host, whose way to the clients leads over this one");
	if (!l->far)
		fprintf(l->out, "%s rule add fwmark 0x%x lookup %d\n%s", l->ip, ours, TABLE, chain);
	l->far = true;
	fprintf(l->out,
	    "nft add rule inet smcrd answers %s saddr %s tcp sport %u socket transparent 1 meta mark set 0x%x\n",
	    l->name, host, addr_port(server), ours);
}

/* Servers that peers name may be at each place. smcrd's own connections to other hosts have its mark, too, but the addresses of
 * clients. */
static void
routes_anywhere(struct lines *l, const char *loopback, uint32_t mark)
{
	const unsigned ours = mark_of_answers(mark);
	struct sockaddr_storage ss;

	(void)addr_parse(loopback, &ss);
	routes_loopback(l, loopback, &ss);
	routes_begin(l, "other hosts", "servers whose way to the clients leads over this one");
	fprintf(l->out, "%s rule add fwmark 0x%x lookup %d\n", l->ip, ours, TABLE);
	fprintf(l->out,
	    "%snft add rule inet smcrd answers meta nfproto %s iifname != lo meta l4proto tcp socket transparent 1 meta mark set 0x%x\n",
	    chain, l->sysctl, ours);
	if (mark == 0)
		return;
	routes_begin(l, "other addresses of this host", "servers of this host, by the mark of smcrd's connections");
	routes_keep_mark(l);
	fprintf(l->out,
	    "nft 'add chain inet smcrd servers { type route hook output priority mangle; }'\n"
	    "nft add rule inet smcrd servers meta nfproto %s meta mark 0x%x fib saddr type local meta mark set 0x%x\n",
	    l->sysctl, mark, ours);
}

const char *
routes_print(FILE *out, const json_t *data, enum routes_place (*place)(const struct sockaddr_storage *))
{
	struct lines v4 = { .out = out, .ip = "ip", .others = "0.0.0.0/0", .name = "ip", .sysctl = "ipv4" },
	             v6 = { .out = out, .ip = "ip -6", .others = "::/0", .name = "ip6", .sysctl = "ipv6" };
	const uint32_t mark = (uint32_t)strtoul(get_setting(data, "socket_mark"), NULL, 0);
	const char *none = "its server has no address yet";
	const json_t *one;
	size_t i;

	if (strcmp(get_setting(data, "client_address"), "\"connect\"") != 0)
		return "it needs none: it is no egress with client_address \"connect\"";
	if (strcmp(get_setting(data, "to"), "\"requested\"") == 0) {
		routes_anywhere(&v4, "127.0.0.1", mark);
		routes_anywhere(&v6, "::1", mark);
		return NULL;
	}
	json_array_foreach(json_object_get(data, "addresses"), i, one)
	{
		struct sockaddr_storage server;
		char text[ADDR_STR_MAX];

		if (addr_parse_port(get_string(one, "address"), &server) != 0)
			continue;
		struct lines *l = server.ss_family == AF_INET6 ? &v6 : &v4;
		addr_format_port(&server, text, sizeof(text));
		switch (place(&server)) {
		case ROUTES_LOOPBACK:
			routes_loopback(l, text, &server);
			break;
		case ROUTES_HERE:
			routes_here(l, text, &server, mark);
			break;
		case ROUTES_THERE:
			routes_there(l, text, &server, mark);
			break;
		}
		none = NULL;
	}
	return none;
}
