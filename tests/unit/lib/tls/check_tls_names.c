#include "tls/tls.h"

#include "unit.h"

START_TEST(lists_match_exactly)
{
	static const char list[] = "spiffe://a/gw/*\nuri:https://b/x\ndns:gw-c.example\npsk:d\nspiffe://e";
	static const struct {
		const char *kind, *name;
		bool has;
	} cases[] = {
		{ "uri", "spiffe://a/gw/1", true },
		{ "uri", "spiffe://a/gw/", false },
		{ "uri", "spiffe://a/gw", false },
		{ "uri", "spiffe://a/gwx/1", false },
		{ "uri", "https://b/x", true },
		{ "uri", "https://b/x/", false },
		{ "uri", "spiffe://e", true },
		{ "uri", "spiffe://E", false },
		{ "uri", "spiffe://ee", false },
		{ "uri", "dns:gw-c.example", false },
		{ "dns", "gw-c.example", true },
		{ "dns", "GW-C.example", true },
		{ "dns", "c.example", false },
		{ "dns", "d", false },
		{ "psk", "d", true },
		{ "psk", "D", false },
		{ "psk", "", false },
		{ "psk", "gw-c.example", false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_msg(tls_names_have(list, cases[i].kind, cases[i].name) == cases[i].has, "%s", cases[i].name);
	ck_assert(!tls_names_have("", "uri", ""));
	ck_assert(tls_names_have("dns:x\n*", "psk", "any"));
}

START_TEST(entries_are_checked)
{
	static const struct {
		const char *entry;
		bool psk, cert; /* no error where PSKs, certificates are used */
	} cases[] = {
		{ "*", true, true },
		{ "psk:gw-a", true, false },
		{ "psk:", false, false },
		{ "dns:gw-a", false, true },
		{ "dns:", false, false },
		{ "dns:*.example", false, false },
		{ "psk:*", false, false },
		{ "spiffe://a/b", false, true },
		{ "spiffe://a/*", false, true },
		{ "spiffe://*/b", false, false },
		{ "spiffe://a*", false, false },
		{ "uri:spiffe://a/b", false, true },
		{ "gw-a", false, false },
		{ "", false, false },
		{ "spiffe://a b", false, false },
		{ "**", false, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_msg((tls_name_error(cases[i].entry, true) == NULL) == cases[i].psk, "%s", cases[i].entry);
		ck_assert_msg((tls_name_error(cases[i].entry, false) == NULL) == cases[i].cert, "%s", cases[i].entry);
	}
}
