#include <string.h>

#include "base/addr.h"
#include "base/log.h"
#include "daemon/control/control_request.h"
#include "daemon/event/event_kinds.h"
#include "unit.h"

static struct control_request req;
static struct control_error err;

static int
parse(const char *line)
{
	memset(&req, 0xa5, sizeof(req));
	memset(&err, 0, sizeof(err));
	return control_request_parse(line, strlen(line), &req, &err);
}

START_TEST(every_command_is_known_by_its_name)
{
	char line[64];

	for (int c = 0; c < CONTROL_COMMAND_CNT; c++) {
		if (control_commands[c].needs != 0 || control_commands[c].needs_any != 0 ||
		    control_commands[c].kind == CONTROL_LOCAL)
			continue;
		snprintf(line, sizeof(line), "{\"command\":\"%s\"}", control_commands[c].name);
		ck_assert_int_eq(parse(line), 0);
		ck_assert_int_eq(req.command, c);
		ck_assert_str_eq(req.service, "");
		ck_assert_uint_eq(req.group, 0);
		ck_assert_uint_eq(req.modes, ~0u);
		ck_assert_uint_eq(req.kinds, ~0u);
	}
}

START_TEST(filters_are_taken)
{
	ck_assert_int_eq(parse(" { \"mode\":\"tcp\", \"service\":\"a\\\"b\",\"group\":4294967295,"
	                       "\"version\":1,\"command\":\"connections\"}\r"),
	    0);
	ck_assert_uint_eq(req.modes, 1u << SESSION_TCP);
	ck_assert_str_eq(req.service, "a\"b");
	ck_assert_uint_eq(req.group, UINT32_MAX);
	ck_assert_int_eq(parse("{\"command\":\"trace\",\"kinds\":[\"llc\",\"cdc\"],\"token\":17,\"group\":2}"), 0);
	ck_assert_uint_eq(req.kinds, 1u << SMCR_TRACE_LLC | 1u << SMCR_TRACE_CDC);
	ck_assert_uint_eq(req.token, 17);
	ck_assert_int_eq(parse("{\"command\":\"events\",\"kind\":\"link-down\",\"follow\":true}"), 0);
	ck_assert_uint_eq(req.event_kinds, 1u << EVENT_LINK_DOWN);
	ck_assert(req.follow);
	ck_assert_int_eq(parse("{\"command\":\"events\",\"follow\":false}"), 0);
	ck_assert_uint_eq(req.event_kinds, ~0u);
	ck_assert(!req.follow);
}

START_TEST(groups_and_links_are_named)
{
	ck_assert_int_eq(parse("{\"command\":\"rebalance\",\"group\":3}"), 0);
	ck_assert_int_eq(req.command, CONTROL_REBALANCE);
	ck_assert_uint_eq(req.group, 3);
	ck_assert_int_eq(parse("{\"command\":\"link-delete\",\"link\":255,\"group\":3}"), 0);
	ck_assert_int_eq(req.command, CONTROL_LINK_DELETE);
	ck_assert_uint_eq(req.group, 3);
	ck_assert_uint_eq(req.link, 255);
}

START_TEST(check_takes_a_numeric_address)
{
	char text[ADDR_STR_MAX];

	ck_assert_int_eq(parse("{\"command\":\"check\",\"peer\":\"[2001:db8::1]:443\",\"timeout_ms\":500}"), 0);
	ck_assert_str_eq(addr_format_port(&req.peer, text, sizeof(text)), "[2001:db8::1]:443");
	ck_assert_uint_eq(req.timeout_ms, 500);
	ck_assert_int_eq(parse("{\"command\":\"check\",\"peer\":\"192.0.2.1:1\"}"), 0);
	ck_assert_uint_eq(req.timeout_ms, CONTROL_CHECK_MS);
}

START_TEST(an_address_of_a_peer_may_have_a_port)
{
	char text[ADDR_STR_MAX];

	ck_assert_int_eq(parse("{\"command\":\"close\",\"peer\":\"192.0.2.1\"}"), 0);
	ck_assert_str_eq(addr_format(&req.peer, text, sizeof(text)), "192.0.2.1");
	ck_assert_uint_eq(addr_port(&req.peer), 0);
	ck_assert_int_eq(parse("{\"command\":\"retry\",\"peer\":\"[2001:db8::1]:80\"}"), 0);
	ck_assert_str_eq(addr_format_port(&req.peer, text, sizeof(text)), "[2001:db8::1]:80");
	ck_assert_int_eq(parse("{\"command\":\"retry\"}"), 0);
	ck_assert_int_eq(req.peer.ss_family, AF_UNSPEC);
}

START_TEST(ids_and_levels_are_taken)
{
	ck_assert_int_eq(parse("{\"command\":\"close\",\"id\":9223372036854775807}"), 0);
	ck_assert_uint_eq(req.id, INT64_MAX);
	ck_assert_int_eq(parse("{\"command\":\"log_level\"}"), 0);
	ck_assert_int_eq(req.level, CONTROL_LEVEL_ASK);
	ck_assert_int_eq(control_request_kind(&req), CONTROL_ASKS);
	ck_assert_int_eq(parse("{\"command\":\"log_level\",\"level\":\"info\"}"), 0);
	ck_assert_int_eq(req.level, LOG_LVL_INFO);
	ck_assert_int_eq(control_request_kind(&req), CONTROL_ORDERS);
	ck_assert_int_eq(parse("{\"command\":\"log_level\",\"level\":\"default\"}"), 0);
	ck_assert_int_eq(req.level, CONTROL_LEVEL_RESET);
	ck_assert_int_eq(control_request_kind(&req), CONTROL_ORDERS);
}

static const struct {
	const char *line, *code;
} bad[] = {
	{ "{\"command\":\"top\"}", "unknown-command" },
	{ "{\"command\":\"close\"}", "bad-request" },
	{ "{\"command\":\"close\",\"id\":0}", "bad-request" },
	{ "{\"command\":\"close\",\"id\":-3}", "bad-request" },
	{ "{\"command\":\"close\",\"id\":\"3\"}", "bad-request" },
	{ "{\"command\":\"close\",\"group\":3}", "unknown-field" },
	{ "{\"command\":\"close\",\"peer\":\"host.example\"}", "bad-request" },
	{ "{\"command\":\"close\",\"peer\":\"\"}", "bad-request" },
	{ "{\"command\":\"close\",\"peer\":7}", "bad-request" },
	{ "{\"command\":\"disable\"}", "bad-request" },
	{ "{\"command\":\"enable\",\"worker\":1,\"service\":\"web\"}", "unknown-field" },
	{ "{\"command\":\"link-add\"}", "bad-request" },
	{ "{\"command\":\"link-add\",\"group\":1,\"link\":1}", "unknown-field" },
	{ "{\"command\":\"log_level\",\"level\":\"loud\"}", "bad-request" },
	{ "{\"command\":\"log_level\",\"level\":3}", "bad-request" },
	{ "{\"command\":\"log-level\"}", "unknown-command" },
	{ "{\"command\":\"undrain\",\"then_exit\":true}", "unknown-field" },
	{ "{\"command\":\"drain\",\"then_exit\":1}", "bad-request" },
	{ "", "bad-json" },
	{ " ", "bad-json" },
	{ "{", "bad-json" },
	{ "{\"command\":\"status\"", "bad-json" },
	{ "{\"command\":\"status\"}x", "bad-json" },
	{ "{\"command\":\"status\",\"command\":\"links\"}", "bad-json" },
	{ "{\"command\":\"\\u0000status\"}", "bad-json" },
	{ "{\"command\":\"\xff\"}", "bad-json" },
	{ "{\"command\":\"connections\",\"group\":99999999999999999999}", "bad-json" },
	{ "[]", "bad-request" },
	{ "[\"status\"]", "bad-request" },
	{ "{}", "bad-request" },
	{ "{\"command\":null}", "bad-request" },
	{ "{\"command\":7}", "bad-request" },
	{ "{\"command\":[\"status\"]}", "bad-request" },
	{ "{\"command\":\"\"}", "unknown-command" },
	{ "{\"command\":\"Status\"}", "unknown-command" },
	{ "{\"command\":\"statu\"}", "unknown-command" },
	{ "{\"command\":\"status\",\"version\":2}", "unsupported-version" },
	{ "{\"command\":\"status\",\"version\":0}", "unsupported-version" },
	{ "{\"command\":\"status\",\"version\":\"1\"}", "unsupported-version" },
	{ "{\"command\":\"status\",\"version\":1.0}", "unsupported-version" },
	{ "{\"command\":\"status\",\"group\":1}", "unknown-field" },
	{ "{\"command\":\"links\",\"mode\":\"tcp\"}", "unknown-field" },
	{ "{\"command\":\"connections\",\"\":1}", "unknown-field" },
	{ "{\"command\":\"connections\",\"service\":\"\"}", "bad-request" },
	{ "{\"command\":\"connections\",\"service\":1}", "bad-request" },
	{ "{\"command\":\"connections\",\"service\":"
	  "\"0123456789012345678901234567890123456789012345678901234567890123\"}",
	    "bad-request" },
	{ "{\"command\":\"connections\",\"mode\":\"rdma\"}", "bad-request" },
	{ "{\"command\":\"connections\",\"mode\":{}}", "bad-request" },
	{ "{\"command\":\"connections\",\"group\":0}", "bad-request" },
	{ "{\"command\":\"connections\",\"group\":-1}", "bad-request" },
	{ "{\"command\":\"connections\",\"group\":4294967296}", "bad-request" },
	{ "{\"command\":\"connections\",\"group\":1.5}", "bad-request" },
	{ "{\"command\":\"connections\",\"group\":true}", "bad-request" },
	{ "{\"command\":\"trace\",\"kinds\":[]}", "bad-request" },
	{ "{\"command\":\"trace\",\"kinds\":\"clc\"}", "bad-request" },
	{ "{\"command\":\"trace\",\"kinds\":[\"clc\",1]}", "bad-request" },
	{ "{\"command\":\"trace\",\"kinds\":[\"ipx\"]}", "bad-request" },
	{ "{\"command\":\"events\",\"kind\":\"weather\"}", "bad-request" },
	{ "{\"command\":\"events\",\"kind\":[\"link-up\"]}", "bad-request" },
	{ "{\"command\":\"events\",\"follow\":1}", "bad-request" },
	{ "{\"command\":\"trace\",\"follow\":true}", "unknown-field" },
	{ "{\"command\":\"check\"}", "bad-request" },
	{ "{\"command\":\"doctor\"}", "unknown-command" },
	{ "{\"command\":\"check\",\"peer\":\"192.0.2.1:1\",\"bulk_bytes\":0}", "bad-request" },
	{ "{\"command\":\"check\",\"peer\":\"192.0.2.1:1\",\"bulk_bytes\":268435457}", "bad-request" },
	{ "{\"command\":\"rebalance\",\"link\":1}", "unknown-field" },
	{ "{\"command\":\"rebalance\",\"group\":0}", "bad-request" },
	{ "{\"command\":\"links\",\"link\":1}", "unknown-field" },
	{ "{\"command\":\"link-delete\"}", "bad-request" },
	{ "{\"command\":\"link-delete\",\"group\":1}", "bad-request" },
	{ "{\"command\":\"link-delete\",\"link\":1}", "bad-request" },
	{ "{\"command\":\"link-delete\",\"group\":1,\"link\":0}", "bad-request" },
	{ "{\"command\":\"link-delete\",\"group\":1,\"link\":256}", "bad-request" },
	{ "{\"command\":\"link-delete\",\"group\":1,\"link\":\"1\"}", "bad-request" },
	{ "{\"command\":\"check\",\"peer\":\"server.example:1\"}", "bad-request" },
	{ "{\"command\":\"check\",\"peer\":\"192.0.2.1\"}", "bad-request" },
	{ "{\"command\":\"check\",\"peer\":\"192.0.2.1:0\"}", "bad-request" },
	{ "{\"command\":\"check\",\"peer\":\"192.0.2.1:70000\"}", "bad-request" },
	{ "{\"command\":\"check\",\"peer\":80}", "bad-request" },
	{ "{\"command\":\"check\",\"peer\":\"192.0.2.1:1\",\"timeout_ms\":0}", "bad-request" },
	{ "{\"command\":\"check\",\"peer\":\"192.0.2.1:1\",\"timeout_ms\":60001}", "bad-request" },
};

START_LOOP_TEST(bad_requests_are_refused_with_a_reason, 0, sizeof(bad) / sizeof(bad[0]))
{
	struct control_request before;

	ck_assert_int_lt(parse(bad[_i].line), 0);
	ck_assert_str_eq(err.code, bad[_i].code);
	ck_assert_str_ne(err.text, "");
	memset(&before, 0xa5, sizeof(before));
	ck_assert(memcmp(&req, &before, sizeof(req)) == 0);
}

START_TEST(every_truncation_is_refused)
{
	const char *line = "{\"command\":\"check\",\"peer\":\"192.0.2.1:80\",\"timeout_ms\":10}";

	for (size_t n = 0; n < strlen(line); n++) {
		ck_assert_int_lt(control_request_parse(line, n, &req, &err), 0);
		ck_assert_str_eq(err.code, "bad-json");
	}
	ck_assert_int_eq(parse(line), 0);
}

START_TEST(nul_bytes_and_deep_nesting_are_refused)
{
	char line[4096];

	ck_assert_int_lt(control_request_parse("{\"command\":\0\"status\"}", 21, &req, &err), 0);
	ck_assert_int_lt(control_request_parse("{\"command\":\"sta\0us\"}", 20, &req, &err), 0);
	memset(line, '[', sizeof(line));
	ck_assert_int_lt(control_request_parse(line, sizeof(line), &req, &err), 0);
	ck_assert_str_eq(err.code, "bad-json");
	memset(line, 0, sizeof(line));
	ck_assert_int_lt(control_request_parse(line, sizeof(line), &req, &err), 0);
}
