#include <stdio.h>
#include <string.h>

#include "addrs.h"
#include "base/addr.h"
#include "daemon/config/config_int.h"
#define SERVICE "ingress"
#include "one_parsed.h"
#include "unit.h"

#define TO "to = \"original\"; "
#define VIA(nets) TO "via = ( { nets = [ " nets " ]; peer = \"*:15000\"; } );"

static struct sockaddr_storage
place(const char *text)
{
	struct sockaddr_storage ss;

	ck_assert_int_eq(addr_parse_port(text, &ss), 0);
	return ss;
}

/* The peer of a destination; "": no entry. */
static const char *
way(const struct config *cfg, const char *to)
{
	static char buf[ADDR_STR_MAX];
	const struct sockaddr_storage ss = place(to);
	struct sockaddr_storage peer;

	if (config_via_find(&cfg->services[0], &ss, &peer) == NULL)
		return "";
	return addr_format_port(&peer, buf, sizeof(buf));
}

START_TEST(the_closest_net_names_the_peer)
{
	struct config *cfg = parse_ok(TO
	    "via = ( { nets = [ \"0.0.0.0/0\" ]; peer = \"192.0.2.1:1\"; },"
	    "{ nets = [ \"10.0.0.0/8\" ]; peer = \"192.0.2.1:2\"; },"
	    "{ nets = [ \"10.0.5.0/24:5432\", \"10.0.5.7\" ]; peer = \"192.0.2.1:3\"; },"
	    "{ nets = [ \"10.0.5.0/24:5000-6000\" ]; peer = \"*:4\"; } );");

	ck_assert_str_eq(way(cfg, "192.0.2.200:80"), "192.0.2.1:1");
	ck_assert_str_eq(way(cfg, "10.9.9.9:80"), "192.0.2.1:2");
	ck_assert_str_eq(way(cfg, "10.0.5.6:5432"), "192.0.2.1:3");
	ck_assert_str_eq(way(cfg, "10.0.5.7:80"), "192.0.2.1:3");
	ck_assert_str_eq(way(cfg, "10.0.5.6:5000"), "10.0.5.6:4");
	ck_assert_str_eq(way(cfg, "10.0.5.6:6000"), "10.0.5.6:4");
	ck_assert_str_eq(way(cfg, "10.0.5.6:6001"), "192.0.2.1:2");
	ck_assert_str_eq(way(cfg, "[2001:db8::1]:80"), "");
	config_free(cfg);
}

START_TEST(ipv6_and_ipv4_are_apart)
{
	struct config *cfg = parse_ok(VIA("\"[2001:db8::/32]:443\", \"fd00::/8\", \"::1\""));
	ck_assert_str_eq(way(cfg, "[2001:db8::5]:443"), "[2001:db8::5]:15000");
	ck_assert_str_eq(way(cfg, "[2001:db8::5]:444"), "");
	ck_assert_str_eq(way(cfg, "[fd00::1]:1"), "[fd00::1]:15000");
	config_free(cfg);
	cfg = parse_ok(VIA("\"::/0\""));
	ck_assert_str_eq(way(cfg, "192.0.2.1:1"), "");
	ck_assert_str_eq(way(cfg, "[2001:db8::5]:444"), "[2001:db8::5]:15000");
	config_free(cfg);
}

START_TEST(wrong_nets_and_peers_are_refused)
{
	static const char *const nets[] = { "", "x", "10.0.0.0/8:", "10.0.0.0/8:0", "10.0.0.0/8:65536",
		"10.0.0.0/8:9-1", "10.0.0.0/33", "10.0.0.1/8", "[10.0.0.0/8]:80", "[2001:db8::/32]",
		"[2001:db8::/32]80", "[2001:db8::/32:80", "2001:db8::/129", "::ffff:10.0.0.0/104", "10.0.0.0/8:80:80",
		"10.0.0.0/8 :80", "fe80::1%lo", "[fe80::1%lo]:1", "::/0:1" };
	static const char *const peers[] = { "", "*", "*:", "*:0", "*:x", "x:1", "0.0.0.0:1", "[::]:1", "224.0.0.1:1",
		"192.0.2.1", "unix:/s", "**:1", "*:65536" };
	char text[256];

	for (size_t i = 0; i < sizeof(nets) / sizeof(nets[0]); i++) {
		snprintf(text, sizeof(text), TO "via = ( { nets = [ \"%s\" ]; peer = \"*:15000\"; } );", nets[i]);
		refused(text, "ingress.via.nets");
	}
	for (size_t i = 0; i < sizeof(peers) / sizeof(peers[0]); i++) {
		snprintf(text, sizeof(text), TO "via = ( { nets = [ \"10.0.0.0/8\" ]; peer = \"%s\"; } );", peers[i]);
		refused(text, "ingress.via.peer");
	}
	refused(TO "via = ( { nets = [ ]; peer = \"*:1\"; } );", "ingress.via.nets is empty");
	refused(TO "via = ( { peer = \"*:1\"; } );", "ingress.via.nets is missing");
	refused(TO "via = ( { nets = [ \"10.0.0.0/8\" ]; } );", "ingress.via.peer is missing");
	refused(TO "via = ( { nets = [ \"10.0.0.0/8\" ]; peer = \"*:1\"; peers = 1; } );",
	    "unknown key ingress.via.peers, did you mean \"peer\"?");
	refused(TO "via = ( );", "ingress.via is empty");
	refused(TO "via = ( 1 );", "ingress.via must have only groups");
	refused(
	    TO "via = \"10.0.0.0/8\";", "ingress.via must be a list of groups, ( { ... }, ... ), not \"10.0.0.0/8\"");
}

START_TEST(no_destination_is_in_two_entries_equally)
{
	refused(VIA("\"10.0.0.0/8\", \"10.0.0.0/8\""), "has 10.0.0.0/8 and 10.0.0.0/8: no destination may be in both");
	refused(VIA("\"10.0.0.0/8:1-10\", \"10.0.0.0/8:5-14\""), "has 10.0.0.0/8:1-10 and 10.0.0.0/8:5-14");
	refused(TO
	    "via = ( { nets = [ \"fd00::/8\" ]; peer = \"*:1\"; }, { nets = [ \"fd00::/8\" ]; peer = \"*:2\"; } );",
	    "has fd00::/8 and fd00::/8");
	config_free(parse_ok(VIA("\"10.0.0.0/8:1-10\", \"10.0.0.0/8:11-20\", \"10.0.0.0/8\"")));
}

START_TEST(settings_of_targets_are_refused)
{
	static const char *const settings[][2] = { { "policy", "\"spread\"" }, { "when_down", "\"close_listener\"" },
		{ "probe", "{ }" }, { "prewarm", "true" } };
	char text[256], words[128];

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		snprintf(text, sizeof(text), VIA("\"10.0.0.0/8\"") " %s = %s;", settings[i][0], settings[i][1]);
		snprintf(
		    words, sizeof(words), "ingress.%s is for a service with targets in ingress.to", settings[i][0]);
		refused(text, words);
	}
}

START_TEST(what_original_needs)
{
	refused(TO, "ingress.to \"original\" needs ingress.via");
	refused(VIA("\"10.0.0.0/8\"") "peer = \"auto\";", "needs ingress.peer = \"smcrd\"");
	refused(VIA("\"10.0.0.0/8\"") "capture = \"dnat\";", "must be one of \"redirect\", \"tproxy\"");
	refused("to = \"b:80\"; via = ( { nets = [ \"10.0.0.0/8\" ]; peer = \"*:1\"; } );",
	    "ingress.via needs ingress.to = \"original\"");
	refused("to = \"b:80\"; capture = \"tproxy\";", "ingress.capture needs ingress.to = \"original\"");
	refused(TO "via = ( { nets = [ \"10.0.0.0/8\" ]; peer = \"127.0.0.1:7000\"; } );",
	    "ingress.via.peer is the service's own listen address");
	refused("to = [ \"original\", \"b:80\" ];", "ingress.to has \"original\": the port is missing");
	refused("to = \"b:80\"; } ); egress = ( { name = \"b\"; listen = \"127.0.0.1:2\"; to = \"original\";",
	    "egress.to \"original\" is for an ingress");
	refused(VIA("\"10.0.0.0/8\"") "secure = \"required\";", "ingress.secure needs ingress.peer_names");
	struct config *cfg = NULL;
	static const char text[] = "ingress = ( { name = \"a\"; listen = \"unix:/s\"; " VIA("\"10.0.0.0/8\"") " } );";
	ck_assert_int_ne(config_parse("t.conf", text, strlen(text), CONFIG_NO_LOOKUP, stderr, &cfg), 0);
}

START_TEST(the_canonical_form_is_read_again)
{
	struct config *cfg = parse_ok(VIA(
	                  "\"10.0.5.0/24:5432\", \"[2001:db8::/32]:6379-6390\", \"fd00::/8\"") "capture = \"tproxy\";"),
	              *next = NULL;
	size_t len;
	char *text;
	FILE *f = open_memstream(&text, &len);

	config_print(cfg, f);
	fclose(f);
	ck_assert_ptr_nonnull(strstr(text,
	    "\t\tto = \"original\";\n\t\tcapture = \"tproxy\";\n\t\tvia = ( { nets = [ "
	    "\"10.0.5.0/24:5432\", \"[2001:db8::/32]:6379-6390\", \"fd00::/8\" ]; "
	    "peer = \"*:15000\"; } );\n"));
	ck_assert_int_eq(config_parse("t.conf", text, len, CONFIG_NO_LOOKUP, stderr, &next), 0);
	ck_assert(config_service_equal(&cfg->services[0], &next->services[0]));
	config_free(next);
	free(text);
	next = parse_ok(
	    VIA("\"10.0.5.0/24:5432\", \"[2001:db8::/32]:6379-6390\", \"fd00::/9\"") "capture = \"tproxy\";");
	ck_assert(!config_service_equal(&cfg->services[0], &next->services[0]));
	config_free(next);
	next = parse_ok("to = \"b:80\";");
	ck_assert(!config_service_equal(&cfg->services[0], &next->services[0]));
	config_free(next);
	config_free(cfg);
}
