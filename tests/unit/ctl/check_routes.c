/* Routes for servers at each place, of both families. */
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "ctl/routes.h"
#include "unit.h"

/* Where the test says that servers are: at these addresses loopback and here, elsewhere there. */
static enum routes_place
place(const struct sockaddr_storage *server)
{
	char text[ADDR_STR_MAX];

	addr_format(server, text, sizeof(text));
	if (addr_is_loopback(server))
		return ROUTES_LOOPBACK;
	return strcmp(text, "192.0.2.2") == 0 || strcmp(text, "2001:db8::2") == 0 ? ROUTES_HERE : ROUTES_THERE;
}

static const char *
printed(const char *how, const char *mark, const char *addresses, char **out)
{
	char json[1000];
	size_t len;
	FILE *f = open_memstream(out, &len);

	snprintf(json, sizeof(json),
	    "{\"settings\":[{\"name\":\"client_address\",\"value\":\"\\\"%s\\\"\"},{\"name\":\"socket_mark\",\"value\":\"%s\"}],"
	    "\"addresses\":[%s]}",
	    how, mark, addresses);
	json_t *data = json_loads(json, 0, NULL);
	ck_assert_ptr_nonnull(data);
	const char *none = routes_print(f, data, place);
	fclose(f);
	json_decref(data);
	return none;
}

#define AT(addr) "{\"address\":\"" addr "\"}"

static const struct {
	const char *mark, *addresses, *want;
} rows[] = {
	{ "0", AT("127.0.0.1:5432") "," AT("127.0.0.2:5433"),
	    "# 127.0.0.1:5432: a server on the loopback interface\n"
	    "ip route replace local 0.0.0.0/0 dev lo table 123\n"
	    "ip rule add from 127.0.0.0/8 iif lo lookup 123\n"
	    "# 127.0.0.2:5433: a server on the loopback interface\n" },
	{ "93", AT("[::1]:5432"),
	    "# [::1]:5432: a server on the loopback interface\n"
	    "ip -6 route replace local ::/0 dev lo table 123\n"
	    "ip -6 rule add from ::1 iif lo lookup 123\n" },
	{ "0", AT("192.0.2.2:80"),
	    "# 192.0.2.2:80: a server of this host, whose clients all come by smcrd\n"
	    "ip route replace local 0.0.0.0/0 dev lo table 123\n"
	    "# Others that connect to it lose their answers: then set socket_mark, and load its lines instead.\n"
	    "ip rule add from 192.0.2.2 iif lo ipproto tcp sport 80 lookup 123\n" },
	{ "94", AT("[2001:db8::2]:80"),
	    "# [2001:db8::2]:80: a server of this host, by the mark of smcrd's connections\n"
	    "ip -6 route replace local ::/0 dev lo table 123\n"
	    "sysctl -qw net.ipv4.tcp_fwmark_accept=1 net.ipv6.fwmark_reflect=1\n"
	    "ip -6 rule add from 2001:db8::2 iif lo fwmark 0x5e ipproto tcp sport 80 lookup 123\n" },
	/* Connections to the second have the mark as well. */
	{ "94", AT("192.0.2.2:80") "," AT("192.0.2.2:81") "," AT("198.51.100.3:80"),
	    "# 192.0.2.2:80: a server of this host, by the mark of smcrd's connections\n"
	    "ip route replace local 0.0.0.0/0 dev lo table 123\n"
	    "sysctl -qw net.ipv4.tcp_fwmark_accept=1 net.ipv4.fwmark_reflect=1\n"
	    "ip rule add from 192.0.2.2 iif lo fwmark 0x5e ipproto tcp sport 80 lookup 123\n"
	    "# 192.0.2.2:81: a server of this host, by the mark of smcrd's connections\n"
	    "ip rule add from 192.0.2.2 iif lo fwmark 0x5e ipproto tcp sport 81 lookup 123\n"
	    "# 198.51.100.3:80: a server on another host, whose way to the clients leads over this one\n"
	    "ip rule add fwmark 0x5d lookup 123\n"
	    "nft add table inet smcrd\n"
	    "nft 'add chain inet smcrd answers { type filter hook prerouting priority mangle; }'\n"
	    "nft add rule inet smcrd answers ip saddr 198.51.100.3 tcp sport 80 socket transparent 1 meta mark set 0x5d\n" },
	{ "0", AT("198.51.100.3:80"),
	    "# 198.51.100.3:80: a server on another host, whose way to the clients leads over this one\n"
	    "ip route replace local 0.0.0.0/0 dev lo table 123\n"
	    "ip rule add fwmark 0x5d lookup 123\n"
	    "nft add table inet smcrd\n"
	    "nft 'add chain inet smcrd answers { type filter hook prerouting priority mangle; }'\n"
	    "nft add rule inet smcrd answers ip saddr 198.51.100.3 tcp sport 80 socket transparent 1 meta mark set 0x5d\n" },
	/* The mark of smcrd's own connections would bring them back. */
	{ "93", AT("[2001:db8::9]:80"),
	    "# [2001:db8::9]:80: a server on another host, whose way to the clients leads over this one\n"
	    "ip -6 route replace local ::/0 dev lo table 123\n"
	    "ip -6 rule add fwmark 0x5e lookup 123\n"
	    "nft add table inet smcrd\n"
	    "nft 'add chain inet smcrd answers { type filter hook prerouting priority mangle; }'\n"
	    "nft add rule inet smcrd answers ip6 saddr 2001:db8::9 tcp sport 80 socket transparent 1 meta mark set 0x5e\n" },
};

START_LOOP_TEST(lines_of_a_place, 0, sizeof(rows) / sizeof(rows[0]))
{
	char *got;

	ck_assert_ptr_null(printed("connect", rows[_i].mark, rows[_i].addresses, &got));
	ck_assert_str_eq(got, rows[_i].want);
	free(got);
}

/* Peers name the servers. */
START_TEST(lines_of_each_place)
{
	static const char *const lines[] = { "ip rule add from 127.0.0.0/8 iif lo", "ip -6 rule add from ::1 iif lo",
		"ip rule add fwmark 0x5e lookup 123\n", "ip -6 rule add fwmark 0x5e lookup 123\n",
		"nfproto ipv6 iifname != lo meta l4proto tcp socket transparent 1 meta mark set 0x5e\n",
		"sysctl -qw net.ipv4.tcp_fwmark_accept=1 net.ipv6.fwmark_reflect=1\n",
		"servers meta nfproto ipv4 meta mark 0x5d fib saddr type local meta mark set 0x5e\n" };
	json_t *data = json_pack("{s:[{s:s,s:s},{s:s,s:s},{s:s,s:s}],s:[]}", "settings", "name", "client_address",
	    "value", "\"connect\"", "name", "to", "value", "\"requested\"", "name", "socket_mark", "value", "93",
	    "addresses");
	char *got;
	size_t len;
	FILE *f = open_memstream(&got, &len);

	ck_assert_ptr_nonnull(data);
	ck_assert_ptr_null(routes_print(f, data, place));
	fclose(f);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		ck_assert_msg(strstr(got, lines[i]) != NULL, "%s in %s", lines[i], got);
	/* That rule would keep smcrd's own connections to other hosts here. */
	ck_assert_ptr_null(strstr(got, "add fwmark 0x5d"));
	free(got);
	json_decref(data);
}

START_TEST(none_for_others)
{
	char *got;

	ck_assert_ptr_nonnull(strstr(printed("proxy_v2", "0", AT("127.0.0.1:1"), &got), "client_address"));
	ck_assert_str_eq(got, "");
	free(got);
	ck_assert_ptr_nonnull(strstr(printed("connect", "0", AT("127.0.0.1;reboot:1"), &got), "no address"));
	ck_assert_str_eq(got, "");
	free(got);
}

START_TEST(the_kernel_says_where_a_server_is)
{
	struct sockaddr_storage ss;

	ck_assert_int_eq(addr_parse_port("127.0.0.5:80", &ss), 0);
	ck_assert_int_eq(routes_place_of(&ss), ROUTES_LOOPBACK);
	ck_assert_int_eq(addr_parse_port("[::1]:80", &ss), 0);
	ck_assert_int_eq(routes_place_of(&ss), ROUTES_LOOPBACK);
	ck_assert_int_eq(addr_parse_port("192.0.2.1:80", &ss), 0);
	ck_assert_int_eq(routes_place_of(&ss), ROUTES_THERE);
}
