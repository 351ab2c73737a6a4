/* Destinations that an egress takes (to = "requested", to_allow). */
#include <stdio.h>
#include <string.h>

#include "addrs.h"
#include "base/addr.h"
#include "daemon/config/config_int.h"
#define SERVICE "egress"
#include "one_parsed.h"
#include "unit.h"

#define TO "to = \"requested\"; allow = [ \"192.0.2.1\" ]; "
#define ALLOW(list) TO "to_allow = [ " list " ]; "

/* "": taken. */
static const char *
objection(const struct config *cfg, const char *to)
{
	struct sockaddr_storage ss;

	ck_assert_int_eq(addr_parse_port(to, &ss), 0);
	const struct config_service *svc = cfg->services;
	while (svc->kind != CONFIG_EGRESS)
		svc++;
	const char *why = config_dest_objection(svc->to_allow, svc->to_allow_cnt, &ss);
	return why != NULL ? why : "";
}

#define TAKES(to) ck_assert_str_eq(objection(cfg, to), "")
#define REFUSES(to, why) ck_assert_msg(strstr(objection(cfg, to), why) != NULL, "%s: \"%s\"", to, objection(cfg, to))

START_TEST(the_longest_network_has_the_ports)
{
	struct config *cfg = parse_ok(
	    ALLOW("\"10.0.0.0/8\", \"10.0.5.0/24:5432\", \"10.0.5.0/24:6379-6390\", "
	          "\"10.0.5.9:22\", \"192.0.2.0/24:80\""));

	TAKES("10.1.2.3:1");
	TAKES("10.1.2.3:65535");
	TAKES("10.0.5.8:5432");
	TAKES("10.0.5.8:6379");
	TAKES("10.0.5.8:6390");
	REFUSES("10.0.5.8:6391", "its port is not in to_allow");
	REFUSES("10.0.5.8:22", "its port");
	TAKES("10.0.5.9:22");
	REFUSES("10.0.5.9:5432", "its port");
	TAKES("192.0.2.255:80");
	REFUSES("192.0.3.1:80", "its address is not in to_allow");
	REFUSES("127.0.0.1:80", "its address");
	REFUSES("[2001:db8::1]:80", "its address");
	config_free(cfg);
}

/* In any order of the list. */
START_TEST(a_shorter_network_behind_does_not_count)
{
	struct config *cfg = parse_ok(ALLOW("\"10.0.5.9:22\", \"10.0.5.0/24:5432\", \"10.0.0.0/8\""));

	TAKES("10.0.5.9:22");
	REFUSES("10.0.5.9:5432", "its port");
	REFUSES("10.0.5.8:80", "its port");
	TAKES("10.0.6.8:80");
	config_free(cfg);
}

START_TEST(addresses_without_a_server)
{
	struct config *cfg = parse_ok(ALLOW("\"0.0.0.0/0\", \"::/0\"")
	    "secure = \"required\"; peer_names = [ \"dns:a\" ]; } ); tls = { cert = \"/c\"; key = \"/k\"; ca = \"/a\"; };"
	    "ingress = ( { name = \"b\"; listen = \"127.0.0.1:1\"; to = \"127.0.0.1:2\"; ");

	TAKES("192.0.2.1:1");
	REFUSES("127.0.0.1:1", "loopback");
	TAKES("[2001:db8::1]:1");
	REFUSES("0.0.0.0:1", "no server");
	REFUSES("0.1.2.3:1", "no server");
	REFUSES("224.0.0.1:1", "no server");
	REFUSES("239.255.255.255:1", "no server");
	REFUSES("255.255.255.255:1", "no server");
	REFUSES("[::]:1", "no server");
	REFUSES("[ff02::1]:1", "no server");
	config_free(cfg);
}

/* Metadata services of clouds are there. */
START_TEST(link_local_addresses)
{
	struct config *cfg = parse_ok(ALLOW("\"169.254.0.0/16\", \"128.0.0.0/1\", \"fe80::/10\", \"fe80::5:80\""));

	REFUSES("169.254.169.254:80", "link-local");
	REFUSES("169.254.0.1:1", "link-local");
	TAKES("169.253.0.1:1");
	REFUSES("[fe80::1]:80", "link-local");
	REFUSES("[febf::1]:80", "link-local");
	TAKES("[fe80::5:80]:80");
	config_free(cfg);
	cfg = parse_ok(ALLOW("\"169.254.0.0/16\", \"169.254.169.254:80\""));
	TAKES("169.254.169.254:80");
	REFUSES("169.254.169.254:81", "its port");
	REFUSES("169.254.169.253:80", "link-local");
	config_free(cfg);
}

/* What listens there is for programs of this host. */
START_TEST(loopback_addresses)
{
	struct config *cfg = parse_ok(ALLOW("\"127.0.0.0/8\", \"::/1\", \"127.0.0.2:80\", \"[::1]:443\""));

	REFUSES("127.0.0.1:80", "loopback");
	TAKES("127.0.0.2:80");
	TAKES("[::1]:443");
	config_free(cfg);
	cfg = parse_ok(ALLOW("\"::/1\""));
	REFUSES("[::1]:443", "loopback");
	config_free(cfg);
}

START_TEST(ipv4_is_not_in_networks_of_ipv6)
{
	struct config *cfg = parse_ok(ALLOW("\"2001:db8::/32\", \"[fd00::1]:443\"") "peer_names = [ \"dns:a\" ];");

	REFUSES("192.0.2.1:1", "its address");
	TAKES("[2001:db8:1::1]:1");
	TAKES("[fd00::1]:443");
	REFUSES("[fd00::1]:444", "its port");
	REFUSES("[::1]:443", "its address");
	config_free(cfg);
}

START_TEST(settings_that_are_refused)
{
	refused(TO, "egress.to \"requested\" needs egress.to_allow");
	refused(ALLOW(""), "egress.to_allow is empty");
	refused(ALLOW("\"example.com:80\""), "egress.to_allow");
	refused(ALLOW("\"::ffff:10.0.0.0/104\""), "egress.to_allow");
	refused("to = \"requested\"; to_allow = [ \"192.0.2.1\" ];", "needs egress.allow, or egress.peer_names");
	/* A peer in clear has no name. */
	refused(
	    "to = \"requested\"; to_allow = [ \"192.0.2.1\" ]; peer_names = [ \"dns:a\" ];", "needs egress.allow, or");
	refused("to = \"requested\"; to_allow = [ \"192.0.2.1\" ]; peer_names = [ \"dns:a\" ]; secure = \"accept\";",
	    "needs egress.allow, or");
	refused(ALLOW("\"0.0.0.0/0\""), "needs egress.secure = \"required\"");
	refused(ALLOW("\"0.0.0.0/0:80\""), "needs egress.secure = \"required\"");
	refused(ALLOW("\"::/0\""), "needs egress.secure = \"required\"");
	refused(ALLOW("\"192.0.2.1\"") "peer = \"auto\";", "needs egress.peer = \"smcrd\"");
	refused(ALLOW("\"192.0.2.1\"") "probe = {};", "is for a service with targets");
	refused("to = \"127.0.0.1:1\"; to_allow = [ \"192.0.2.1\" ];", "needs egress.to = \"requested\"");
	refused("to = \"original\";", "egress.to \"original\" is for an ingress");
}
