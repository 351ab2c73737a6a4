/* Addresses that a name may not stand for. */
#include "base/addr.h"
#include "daemon/config/config.h"
#include "unit.h"

static struct sockaddr_storage
at(const char *text)
{
	struct sockaddr_storage ss;

	ck_assert_msg(addr_parse_port(text, &ss) == 0, "%s", text);
	return ss;
}

START_TEST(special_addresses)
{
	static const char *const special[] = { "0.0.0.0:1", "0.1.2.3:1", "127.0.0.1:1", "127.255.255.255:1",
		"169.254.0.1:1", "169.254.255.255:1", "224.0.0.1:1", "239.255.255.255:1", "240.0.0.1:1",
		"255.255.255.255:1", "[::]:1", "[::1]:1", "[fe80::1]:1", "[febf::1]:1", "[ff02::1]:1",
		"[::ffff:127.0.0.1]:1" };
	static const char *const others[] = { "1.0.0.1:1", "10.0.0.1:1", "126.255.255.255:1", "128.0.0.1:1",
		"169.253.255.255:1", "169.255.0.1:1", "192.168.0.1:1", "223.255.255.255:1", "[::2]:1", "[fc00::1]:1",
		"[fec0::1]:1", "[2001:db8::1]:1", "[::ffff:192.0.2.1]:1" };

	for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++) {
		struct sockaddr_storage ss = at(special[i]);

		ck_assert_msg(config_addr_is_special(&ss), "%s", special[i]);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct sockaddr_storage ss = at(others[i]);

		ck_assert_msg(!config_addr_is_special(&ss), "%s", others[i]);
	}
}

START_TEST(names_of_this_host)
{
	ck_assert(config_name_is_this_hosts("localhost"));
	ck_assert(config_name_is_this_hosts("LocalHost."));
	ck_assert(config_name_is_this_hosts("db.localhost"));
	ck_assert(!config_name_is_this_hosts("notlocalhost"));
	ck_assert(!config_name_is_this_hosts("localhost.example"));
	ck_assert(!config_name_is_this_hosts("no-such-name.invalid"));
	ck_assert(!config_name_is_this_hosts(""));
}

START_TEST(listeners_match_addresses_and_wildcards)
{
	static const struct {
		const char *to, *listen;
		bool leads;
	} cases[] = {
		{ "192.0.2.1:80", "192.0.2.1:80", true }, { "192.0.2.1:80", "192.0.2.1:81", false },
		{ "192.0.2.1:80", "192.0.2.2:80", false }, { "127.0.0.5:80", "0.0.0.0:80", true },
		{ "127.0.0.5:80", "[::]:80", true }, { "127.0.0.5:80", "127.0.0.1:80", false },
		{ "[::1]:80", "[::]:80", true }, { "[::1]:80", "0.0.0.0:80", false },
		{ "192.0.2.1:80", "0.0.0.0:80", false }, /* nobody's, RFC 5737 */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sockaddr_storage to = at(cases[i].to), listen = at(cases[i].listen);

		ck_assert_msg(
		    config_leads_to(&to, &listen) == cases[i].leads, "%s to %s", cases[i].to, cases[i].listen);
	}
}
