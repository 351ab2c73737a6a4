#include <stdlib.h>
#include <string.h>

#include "ctl/options.h"
#include "unit.h"

static struct options o;
static char said[4096]; /* on out and err */

/* Parses a command line given as one text with single blanks. */
static enum options_result
parse(const char *line)
{
	static char copy[512];
	char *argv[16] = { "smcrctl" };
	int argc = 1;
	FILE *f = fmemopen(said, sizeof(said), "w");

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *w = strtok(copy, " "); w != NULL; w = strtok(NULL, " "))
		argv[argc++] = w;
	/* getopt itself talks to stderr */
	enum options_result r = options_parse(argc, argv, &o, f, f);
	fclose(f);
	return r;
}

static void
requests(const char *line, const char *want)
{
	ck_assert_msg(parse(line) == OPTIONS_RUN, "%s: %s", line, said);
	char *text = options_request(&o, strncmp(line, "check", 5) == 0 ? "192.0.2.1:80" : NULL);
	ck_assert_str_eq(text, want);
	free(text);
}

START_TEST(command_lines_become_requests)
{
	requests("status", "{\"command\":\"status\",\"version\":1}");
	requests("connections --service web --tcp --group 0x10",
	    "{\"command\":\"connections\",\"version\":1,\"service\":\"web\",\"mode\":\"tcp\",\"group\":16}");
	requests("--smcr connections", "{\"command\":\"connections\",\"version\":1,\"mode\":\"smcr\"}");
	requests("connections --setup", "{\"command\":\"connections\",\"version\":1,\"mode\":\"setup\"}");
	requests("trace --clc --cdc --token=0x0001000a",
	    "{\"command\":\"trace\",\"version\":1,\"token\":65546,\"kinds\":[\"clc\",\"cdc\"]}");
	requests("service web", "{\"command\":\"service\",\"version\":1,\"service\":\"web\"}");
	requests("trace", "{\"command\":\"trace\",\"version\":1}");
	requests("events", "{\"command\":\"events\",\"version\":1}");
	requests("events -f --service web --group 3 --kind link-up",
	    "{\"command\":\"events\",\"version\":1,\"service\":\"web\",\"group\":3,\"kind\":\"link-up\",\"follow\":true}");
	requests("events --follow", "{\"command\":\"events\",\"version\":1,\"follow\":true}");
	requests("drain", "{\"command\":\"drain\",\"version\":1}");
	requests("drain --then-exit --timeout 0.5",
	    "{\"command\":\"drain\",\"version\":1,\"then_exit\":true,\"timeout_ms\":500}");
	requests("drain --then-exit", "{\"command\":\"drain\",\"version\":1,\"then_exit\":true}");
	requests("rebalance", "{\"command\":\"rebalance\",\"version\":1}");
	requests("rebalance 7", "{\"command\":\"rebalance\",\"version\":1,\"group\":7}");
	requests("link delete 0x10 255", "{\"command\":\"link-delete\",\"version\":1,\"group\":16,\"link\":255}");
	requests("link --json delete 2 3", "{\"command\":\"link-delete\",\"version\":1,\"group\":2,\"link\":3}");
	requests("check host.example:80 --bulk=16M",
	    "{\"command\":\"check\",\"version\":1,\"peer\":\"192.0.2.1:80\",\"timeout_ms\":10000,\"bulk_bytes\":16777216}");
	requests("check host.example:80 --bulk",
	    "{\"command\":\"check\",\"version\":1,\"peer\":\"192.0.2.1:80\",\"timeout_ms\":10000,\"bulk_bytes\":33554432}");
	requests("check host.example:80 --timeout 2.5",
	    "{\"command\":\"check\",\"version\":1,\"peer\":\"192.0.2.1:80\",\"timeout_ms\":2500}");
}

START_TEST(options_of_all_commands)
{
	ck_assert_int_eq(parse("-j -d -w -s /tmp/x stats"), OPTIONS_RUN);
	ck_assert(o.json && o.detail);
	ck_assert_int_eq(o.watch_ms, 2000);
	ck_assert_str_eq(o.socket, "/tmp/x");
	ck_assert_int_eq(parse("-s /tmp/x --pid 4711 stats"), OPTIONS_RUN);
	ck_assert_str_eq(o.socket, "/tmp/x.4711");
	ck_assert_int_eq(parse("stats"), OPTIONS_RUN);
	ck_assert_str_eq(o.socket, RUNSTATEDIR "/smcrd/control");
	ck_assert_int_eq(parse("-i db-1 stats"), OPTIONS_RUN);
	ck_assert_str_eq(o.socket, RUNSTATEDIR "/smcrd-db-1/control");
	ck_assert_int_eq(parse("stats --instance db-1 -p 4711"), OPTIONS_RUN);
	ck_assert_str_eq(o.socket, RUNSTATEDIR "/smcrd-db-1/control.4711");
	ck_assert_int_eq(parse("links --watch=0.5"), OPTIONS_RUN);
	ck_assert_int_eq(o.watch_ms, 500);
	ck_assert(!o.json);
	ck_assert_int_eq(parse("check [2001:db8::1]:443"), OPTIONS_RUN);
	ck_assert_str_eq(o.host, "2001:db8::1");
	ck_assert_uint_eq(o.port, 443);
	ck_assert_int_eq(parse("--help nonsense"), OPTIONS_DONE);
	ck_assert_ptr_nonnull(strstr(said, "Usage: smcrctl"));
	ck_assert_int_eq(parse("help"), OPTIONS_DONE);
	ck_assert_ptr_nonnull(strstr(said, "Usage: smcrctl"));
	ck_assert_int_eq(parse("--version"), OPTIONS_DONE);
	ck_assert_ptr_eq(strstr(said, "smcrctl "), said);
}

static const struct {
	const char *line, *request;
} orders[] = {
	{ "close 17", "{\"command\":\"close\",\"version\":1,\"id\":17}" },
	{ "close --service web --peer 192.0.2.1",
	    "{\"command\":\"close\",\"version\":1,\"service\":\"web\",\"peer\":\"192.0.2.1\"}" },
	{ "close --peer [2001:db8::1]:80", "{\"command\":\"close\",\"version\":1,\"peer\":\"[2001:db8::1]:80\"}" },
	{ "disable web", "{\"command\":\"disable\",\"version\":1,\"service\":\"web\"}" },
	{ "enable web", "{\"command\":\"enable\",\"version\":1,\"service\":\"web\"}" },
	{ "link add 7", "{\"command\":\"link-add\",\"version\":1,\"group\":7}" },
	{ "retry", "{\"command\":\"retry\",\"version\":1}" },
	{ "retry 2001:db8::1", "{\"command\":\"retry\",\"version\":1,\"peer\":\"2001:db8::1\"}" },
	{ "log-level", "{\"command\":\"log_level\",\"version\":1}" },
	{ "log-level debug", "{\"command\":\"log_level\",\"version\":1,\"level\":\"debug\"}" },
	{ "log-level default", "{\"command\":\"log_level\",\"version\":1,\"level\":\"default\"}" },
	{ "undrain", "{\"command\":\"undrain\",\"version\":1}" },
	{ "history --service web", "{\"command\":\"history\",\"version\":1,\"service\":\"web\"}" },
	{ "top --history --service web --json", "{\"command\":\"history\",\"version\":1,\"service\":\"web\"}" },
	{ "stats --delta -w3", "{\"command\":\"stats\",\"version\":1}" },
};

START_LOOP_TEST(orders_are_what_they_say, 0, sizeof(orders) / sizeof(orders[0]))
{
	ck_assert_msg(parse(orders[_i].line) == OPTIONS_RUN, "%s: %s", orders[_i].line, said);
	char *request = options_request(&o, NULL);
	ck_assert_str_eq(request, orders[_i].request);
	free(request);
}

static const char *const wrong[] = {
	"",
	"service",
	"service a b",
	"service --service a",
	"dance",
	"status status",
	"status --tcp",
	"links --service web",
	"groups --group 1",
	"connections --group 0",
	"connections --group x",
	"connections --group -1",
	"connections --group 4294967296",
	"connections --smcr --tcp",
	"connections --token 1",
	"trace --token zz",
	"trace --watch",
	"trace --follow",
	"status -f",
	"events --watch",
	"events --clc",
	"events x",
	"reload --watch=3",
	"status --watch=0",
	"status --watch=never",
	"status --watch=nan",
	"status --watch=99999999",
	"check",
	"check host",
	"check host:0",
	"check host:80 --timeout 0",
	"check host:80 --bulk=0",
	"check host:80 --bulk=257M",
	"check host:80 --bulk=-1",
	"check host:80 --bulk=1MB",
	"check host:80 --bulk=18446744073709551616",
	"doctor --bulk",
	"doctor --watch",
	"doctor host:80",
	"check host:80 --timeout 61",
	"check 2001:db8::1",
	"check host:80 more",
	"rebalance 0",
	"rebalance all",
	"rebalance 1 2",
	"rebalance --group 1",
	"rebalance --watch",
	"link",
	"links delete 1 2",
	"link-delete 1 2",
	"link remove 1 2",
	"link delete",
	"link delete 1",
	"link delete x 1",
	"link delete 1 0",
	"link delete 1 256",
	"link delete 1 2 3",
	"link delete 1 2 --watch",
	"close",
	"close 0",
	"close -3",
	"close 12x",
	"close 9223372036854775808",
	"close 1 2",
	"close --peer host.example",
	"close --group 1",
	"close 1 --watch",
	"disable",
	"disable a b",
	"enable --service a",
	"link add",
	"link add 0",
	"link add 1 2",
	"retry host.example",
	"retry 192.0.2.1 192.0.2.2",
	"retry 192.0.2.1:70000",
	"log-level loud",
	"log-level info debug",
	"log_level",
	"log level",
	"undrain now",
	"top --json",
	"status --history",
	"history --history",
	"history web",
	"top --group 1",
	"status --delta",
	"status --problems",
	"connections --peer 192.0.2.1",
	"status --bogus",
	"--socket",
};

START_LOOP_TEST(wrong_command_lines_are_reported, 0, sizeof(wrong) / sizeof(wrong[0]))
{
	ck_assert_msg(parse(wrong[_i]) == OPTIONS_WRONG, "%s", wrong[_i]);
	ck_assert_ptr_nonnull(strstr(said, "--help"));
}

/* What is said, up to the end of the line. */
static const struct {
	const char *line, *says;
} explained[] = {
	{ "dance", "unknown command: dance" },
	{ "status -i ../x", "no name of an instance: ../x" },
	{ "status -i x -s /y", "--socket and --instance exclude each other" },
	{ "staus", "unknown command: staus; did you mean status?" },
	{ "log-levle", "unknown command: log-levle; did you mean log-level?" },
	{ "lnik", "unknown command: lnik; did you mean link?" },
	{ "-w 1 status", "unknown command: 1 (seconds stand right behind -w: -w1, or --watch=1)" },
	{ "1 status", "unknown command: 1" },
	{ "status --tcp", "status does not take --tcp" },
	{ "connections --llc", "connections does not take --llc" },
	{ "trace --service x --llc", "trace does not take --service" },
	{ "stats --peer 192.0.2.1", "stats does not take --peer" },
	{ "rebalance --group 1", "rebalance does not take --group" },
	{ "link add", "the number of a link group is needed" },
	{ "link add x", "the number of a link group is needed, not x" },
	{ "link delete 1", "the number of a link in its group is needed" },
	{ "link delete 1 256", "the number of a link in its group is needed, not 256" },
};

START_LOOP_TEST(what_is_wrong_is_named, 0, sizeof(explained) / sizeof(explained[0]))
{
	char want[256];

	snprintf(want, sizeof(want), "smcrctl: %s\nTry ", explained[_i].says);
	ck_assert_int_eq(parse(explained[_i].line), OPTIONS_WRONG);
	ck_assert_msg(strncmp(said, want, strlen(want)) == 0, "%s: %s", explained[_i].line, said);
}
