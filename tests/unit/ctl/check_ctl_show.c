/* Text out of the very JSON that check_report.c holds the daemon to. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/show.h"
#include "control/counters.h"
#include "ctl/text.h"
#include "golden.h"
#include "unit.h"
#include "wire/clc.h"

static json_t *
load(const char *golden)
{
	char *text = golden_read(golden);
	json_error_t err;
	json_t *root = json_loads(text, 0, &err);

	ck_assert_msg(root != NULL, "%s: %s", golden, err.text);
	free(text);
	return root;
}

static void
compare(enum control_command command, const json_t *data, bool detail, const char *golden)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	show_answer(f, command, data, detail);
	fclose(f);
	golden_compare(golden, text);
	free(text);
}

static const struct {
	const char *json;
	enum control_command command;
	const char *text, *detail;
} shown[] = {
	{ "control/status.json", CONTROL_STATUS, "control/status.txt", "control/status-detail.txt" },
	{ "control/status-idle.json", CONTROL_STATUS, "control/status-idle.txt", NULL },
	{ "control/service.json", CONTROL_SERVICE, "control/service.txt", NULL },
	{ "control/devices.json", CONTROL_DEVICES, "control/devices.txt", "control/devices-detail.txt" },
	{ "control/groups.json", CONTROL_GROUPS, "control/groups.txt", "control/groups-detail.txt" },
	{ "control/links.json", CONTROL_LINKS, "control/links.txt", "control/links-detail.txt" },
	{ "control/connections.json", CONTROL_CONNECTIONS, "control/connections.txt",
	    "control/connections-detail.txt" },
	{ "control/connections-idle.json", CONTROL_CONNECTIONS, "control/connections-idle.txt", NULL },
	{ "control/rmbs.json", CONTROL_RMBS, "control/rmbs.txt", NULL },
	{ "control/stats.json", CONTROL_STATS, "control/stats.txt", NULL },
	{ "control/stats-idle.json", CONTROL_STATS, "control/stats-idle.txt", NULL },
	{ "control/history.json", CONTROL_HISTORY, "control/history.txt", NULL },
	{ "control/history-idle.json", CONTROL_HISTORY, "control/history-idle.txt", NULL },
	{ "control/drain.json", CONTROL_DRAIN, "control/drain.txt", NULL },
};

START_LOOP_TEST(text_is_as_always, 0, sizeof(shown) / sizeof(shown[0]))
{
	json_t *root = load(shown[_i].json), *data = json_object_get(root, "data");

	compare(shown[_i].command, data, false, shown[_i].text);
	if (shown[_i].detail != NULL)
		compare(shown[_i].command, data, true, shown[_i].detail);
	json_decref(root);
}

static void
prints(enum control_command command, const char *json, const char *want)
{
	json_t *data = json_loads(json, 0, NULL);
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	ck_assert_ptr_nonnull(data);
	show_answer(f, command, data, false);
	fclose(f);
	ck_assert_str_eq(text, want);
	free(text);
	json_decref(data);
}

START_TEST(answers_of_commands)
{
	prints(CONTROL_RELOAD, "{\"messages\":\"\"}", "the configuration was reloaded\n");
	prints(CONTROL_RELOAD, "{\"messages\":\"a.conf:1: odd\\u001b[2J\\n\"}",
	    "the configuration was reloaded\na.conf:1: odd?[2J\n");
	prints(CONTROL_CHECK,
	    "{\"peer\":\"192.0.2.1:80\",\"possible\":true,\"text\":\"yes: SMC-R to 192.0.2.1:80 works\"}",
	    "yes: SMC-R to 192.0.2.1:80 works\n");
	prints(CONTROL_CLOSE, "{\"closed\":3}", "connections closed: 3\n");
	prints(CONTROL_DISABLE, "{\"service\":\"w\\u001b\",\"disabled\":true}",
	    "service w? is disabled: new connections are refused, those that it has go on\n");
	prints(CONTROL_ENABLE, "{\"service\":\"web\",\"disabled\":false}", "service web is enabled\n");
	prints(CONTROL_LINK_ADD, "{\"group\":3}", "another link is asked for in link group 3\n");
	prints(CONTROL_RETRY, "{\"peers\":2,\"links\":1,\"prewarms\":4,\"targets\":5,\"devices\":3,\"names\":6}",
	    "peers held off no longer: 2\nlink groups that ask for a link now: 1\nlink groups that are made ahead now: 4\n"
	    "failed targets that are tried now: 5\nmissing devices that are looked for now: 3\n"
	    "names that are looked up now: 6\n");
	prints(CONTROL_RETRY, "{\"peers\":0,\"links\":0,\"prewarms\":0,\"targets\":1,\"devices\":0,\"names\":0}",
	    "failed targets that are tried now: 1\n");
	prints(CONTROL_LOG_LEVEL, "{\"level\":\"debug\",\"configured\":\"notice\",\"set\":true}",
	    "debug, until smcrd ends; configured: notice\n");
	prints(CONTROL_LOG_LEVEL, "{\"level\":\"info\",\"configured\":\"info\",\"set\":false}", "info\n");
	prints(CONTROL_UNDRAIN, "{\"draining\":false,\"connections\":{\"smcr\":1,\"tcp\":2,\"setup\":0}}",
	    "drains no longer; connections 3: 1 on SMC-R, 2 on TCP, 0 in set-up\n");
	prints(CONTROL_SERVICE,
	    "{\"name\":\"w\",\"kind\":\"egress\",\"to\":\"h:1\",\"disabled\":true,\"refused_disabled\":4}",
	    "egress w, DISABLED\nConnections  0: 0 on SMC-R, 0 on TCP, 0 in set-up\n"
	    "Accepted     0, gone to TCP 0, ended by a reset 0\n"
	    "Refused      not allowed 0, too many 0, too many of one 0, far end not reached 0, no SMC-R 0, disabled 4\n"
	    "Far end      h:1\n\nSettings\n");
	prints(CONTROL_CHECK,
	    "{\"possible\":false,\"text\":\"no\\u001b\",\"held_off_ms\":42000,\"steps\":["
	    "{\"step\":\"tcp\",\"result\":\"ok\",\"took_us\":310,\"text\":\"\"},"
	    "{\"step\":\"clc\",\"result\":\"failed\",\"took_us\":2000000,\"text\":\"no\"},"
	    "{\"step\":\"connect\",\"result\":\"skipped\",\"took_us\":0,\"text\":\"there was one\"},"
	    "{\"step\":\"teleport\",\"result\":\"not-reached\",\"took_us\":0,\"text\":\"\"}]}",
	    "no?\n"
	    "  TCP connect           310us  ok\n"
	    "  CLC                    2.0s  failed\n"
	    "  queue pair connect        -  skipped: there was one\n"
	    "  teleport                  -  not-reached\n"
	    "It was held off after failures for another 42.0s.\n");
	prints(CONTROL_CHECK,
	    "{\"possible\":true,\"text\":\"yes\",\"bulk\":["
	    "{\"path\":\"smcr\",\"direction\":\"out\",\"bytes\":33554432,\"took_us\":16000},"
	    "{\"path\":\"smcr\",\"direction\":\"back\",\"bytes\":999,\"took_us\":1000000},"
	    "{\"path\":\"tcp\",\"direction\":\"back\",\"bytes\":33554432,\"took_us\":0}],"
	    "\"bulk_text\":\"half of it\"}",
	    "yes\n"
	    "  SMC-R, to peer       1.9GiB/s  32MiB in 16.0ms\n"
	    "  SMC-R, from peer       999B/s  999B in 1.0s\n"
	    "  TCP, from peer            -    32MiB in less than 1us\n"
	    "Not measured: half of it\n");
	prints(CONTROL_DOCTOR,
	    "{\"verdict\":\"problem\",\"findings\":["
	    "{\"level\":\"ok\",\"area\":\"limits\",\"what\":\"enough\",\"advice\":\"\"},"
	    "{\"level\":\"problem\",\"area\":\"check\",\"what\":\"x\\u001b: no\",\"advice\":\"look\"},"
	    "{\"level\":\"problem\",\"area\":\"check\",\"what\":\"firewall?\",\"advice\":\"open it\"}]}",
	    "ok       limits    enough\n"
	    "problem  check     x?: no. To do: look\n"
	    "problem  check     firewall? To do: open it\n");
	prints(CONTROL_REBALANCE, "{\"moving\":12}", "connections to be moved: 12\n");
	prints(CONTROL_LINK_DELETE, "{\"group\":3,\"link\":2}", "link 2 of link group 3 is being taken out\n");
}

/* What a peer says that holds us off reads like something else. */
START_TEST(a_hold_off_of_the_peer_is_hinted_at)
{
	static const char hint[] = "peer: no active link in the link group (an smcrd that holds us off after failures";
	static const char *const codes[] = { "0x030a0000", "0x03030000" };

	for (unsigned i = 0; i < 2; i++) {
		json_t *data = json_pack("{s:[{s:s, s:{s:s, s:s, s:s, s:s}}]}", "connections", "mode", "tcp", "reason",
		    "local_code", "0x00000000", "peer_code", codes[i], "local_text", "", "peer_text",
		    "no active link in the link group");
		char *text = NULL;
		size_t len;
		FILE *f = open_memstream(&text, &len);

		ck_assert_ptr_nonnull(data);
		show_answer(f, CONTROL_CONNECTIONS, data, false);
		fclose(f);
		ck_assert_msg((strstr(text, hint) != NULL) == (i == 0), "%s", text);
		free(text);
		json_decref(data);
	}
}

START_TEST(events_are_lines)
{
	setenv("TZ", "UTC", 1);
	tzset();
	prints(CONTROL_EVENTS,
	    "{\"event\":\"change\",\"time_us\":1763719200120123,\"dropped\":0,\"level\":\"warning\",\"left_out\":0,"
	    "\"text\":\"link down: group=1\\u001b[2J\"}",
	    "2025-11-21 10:00:00.120 warning: link down: group=1?[2J\n");
	prints(CONTROL_EVENTS,
	    "{\"event\":\"change\",\"time_us\":1763719200120123,\"dropped\":3,\"level\":\"notice\",\"left_out\":7,"
	    "\"text\":\"link up\"}",
	    "2025-11-21 10:00:00.120 -- 3 events left out, the reader is too slow\n"
	    "2025-11-21 10:00:00.120 notice: link up (and 7 like it before, too many)\n");
	prints(CONTROL_EVENTS, "{\"event\":\"end\",\"time_us\":1763719200120123,\"dropped\":0}", "");
}

START_TEST(trace_lines)
{
	setenv("TZ", "UTC", 1);
	tzset();
	prints(CONTROL_TRACE,
	    "{\"event\":\"message\",\"time_us\":1763719200000123,\"dropped\":0,\"direction\":\"sent\","
	    "\"kind\":\"llc\",\"group\":1,\"link\":2,\"token\":\"0x00000000\",\"bytes\":44,\"text\":\"LLC TEST LINK\"}",
	    "10:00:00.000123 > 1/2 LLC TEST LINK\n");
	prints(CONTROL_TRACE,
	    "{\"event\":\"message\",\"time_us\":1763719200999999,\"dropped\":3,\"direction\":\"received\","
	    "\"kind\":\"clc\",\"group\":0,\"link\":0,\"token\":\"0x0000002a\",\"bytes\":44,\"text\":\"CLC Decline\\u001bx\"}",
	    "10:00:00.999999 -- 3 messages left out, the reader is too slow\n"
	    "10:00:00.999999 < 0x0000002a CLC Decline?x\n");
	prints(CONTROL_TRACE, "{\"event\":\"dropped\",\"time_us\":1763719200000000,\"dropped\":7,\"text\":\"\"}",
	    "10:00:00.000000 -- 7 messages left out, the reader is too slow\n");
}

START_TEST(another_version_of_the_daemon_is_shown_as_far_as_known)
{
	prints(CONTROL_CONNECTIONS, "{\"connections\":[{\"id\":1,\"new\":[1]}]}",
	    "ID  SERVICE  ROLE  APPLICATION  PEER  MODE  STATE  GROUP/LINK  VERSION  FROM-APP  TO-APP  AGE  REASON (LOCAL/PEER)\n"
	    " 1  -        -     -            -     -     -      -           -               -       -    -  -\n");
	prints(CONTROL_RMBS, "{}", "GROUP  RMB  SIDE  STATE  ELEMENT  ELEMENTS  USED  QUARANTINED\n");
	prints(CONTROL_STATS, "{\"counters\":{\"turns\":1234567,\"warp_cores\":2}}",
	    "Daemon\n       1,234,567  turns of the event loop\nOther\n               2  warp_cores\n");
}

/* In all detail: a link and devices as they were before there was SCTP, and members of other types than ours. */
START_TEST(old_and_strange_lists_have_no_parts)
{
	static const struct {
		enum control_command command;
		const char *json, *has;
	} lists[] = {
		{ CONTROL_LINKS, "{\"links\":[{\"group\":1,\"number\":2,\"device\":\"siw0\",\"rtt_us\":-1}]}", "siw0" },
		{ CONTROL_LINKS, "{\"links\":[{\"device\":\"x0\",\"paths\":{}}, {\"paths\":[1, null, []]}, 7, []]}",
		    "x0" },
		{ CONTROL_LINKS, "{\"links\":[{\"device\":\"x1\",\"retransmits\":\"many\",\"paths\":null}]}", "x1" },
		{ CONTROL_DEVICES,
		    "{\"devices\":[{\"name\":\"siw0\",\"card\":\"\",\"transport\":\"iwarp\",\"gids\":[]}]}", "siw0" },
		{ CONTROL_DEVICES, "{\"devices\":[{\"name\":\"x2\",\"addresses\":[1,null],\"stats\":4,\"gids\":{}}]}",
		    "x2" },
	};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		json_t *data = json_loads(lists[i].json, 0, NULL);
		char *text = NULL;
		size_t len;
		FILE *f = open_memstream(&text, &len);

		ck_assert_ptr_nonnull(data);
		show_answer(f, lists[i].command, data, true);
		fclose(f);
		ck_assert_msg(strstr(text, lists[i].has) != NULL, "%s", text);
		free(text);
		json_decref(data);
	}
}

#define NO_NAME(heading)
#define NAME(source, field, words) CONTROL_COUNTER_KEY(source, field),

static const char *const counters[] = { CONTROL_COUNTERS(NO_NAME, NAME) };

/* Whatever the daemon counts has words here, and nothing has that it does not count. */
START_TEST(every_counter_has_words)
{
	json_t *root = load("control/stats.json");
	json_t *found = json_object_get(json_object_get(root, "data"), "counters");
	const char *key;
	json_t *v;

	ck_assert_uint_eq(json_object_size(found), sizeof(counters) / sizeof(counters[0]));
	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		ck_assert_msg(json_object_get(found, counters[i]) != NULL, "%s", counters[i]);
	json_object_foreach(found, key, v) ck_assert(json_is_integer(v));
	json_decref(root);
}

START_TEST(every_counter_is_documented)
{
	char *doc = golden_read("../../../doc/json-fields.md");
	char quoted[80];

	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
		snprintf(quoted, sizeof(quoted), "`counters.%s`", counters[i]);
		ck_assert_msg(strstr(doc, quoted) != NULL, "doc/json-fields.md does not have %s", counters[i]);
	}
	free(doc);
}

#define REASON(name, number, words) { number, words },

static const struct {
	uint32_t code;
	const char *words;
} reasons[] = { CLC_DIAGS(REASON) };

START_TEST(every_reason_is_documented)
{
	char *doc = golden_read("../../../doc/linux.md"), row[160];

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		snprintf(row, sizeof(row), "\n| 0x%08x | %s |", reasons[i].code, reasons[i].words);
		ck_assert_msg(strstr(doc, row) != NULL, "doc/linux.md does not have %s", row + 1);
	}
	free(doc);
}

START_TEST(numbers_for_people)
{
	char b[HUMAN_MAX];

	ck_assert_str_eq(human_bytes(b, 0), "0");
	ck_assert_str_eq(human_bytes(b, 1023), "1023");
	ck_assert_str_eq(human_bytes(b, 1024), "1K");
	ck_assert_str_eq(human_bytes(b, 1536), "1.5K");
	ck_assert_str_eq(human_bytes(b, 65536), "64K");
	ck_assert_str_eq(human_bytes(b, 10 << 20), "10M");
	ck_assert_str_eq(human_bytes(b, UINT64_MAX), "15E");
	ck_assert_str_eq(human_duration(b, -1), "-");
	ck_assert_str_eq(human_duration(b, 0), "0ms");
	ck_assert_str_eq(human_duration(b, 59999), "59.9s");
	ck_assert_str_eq(human_duration(b, 60000), "1m00s");
	ck_assert_str_eq(human_duration(b, 3599999), "59m59s");
	ck_assert_str_eq(human_duration(b, 86399999), "23h59m");
	ck_assert_str_eq(human_duration(b, 90061000), "1d01h");
	ck_assert_str_eq(human_duration(b, INT64_MAX), "106751991167d07h");
	ck_assert_str_eq(human_us(b, -1), "-");
	ck_assert_str_eq(human_us(b, 12), "12us");
	ck_assert_str_eq(human_us(b, 2500), "2.5ms");
	ck_assert_str_eq(human_us(b, 1200000), "1.2s");
	ck_assert_str_eq(human_count(b, 0), "0");
	ck_assert_str_eq(human_count(b, 999), "999");
	ck_assert_str_eq(human_count(b, 1000), "1,000");
	ck_assert_str_eq(human_count(b, UINT64_MAX), "18,446,744,073,709,551,615");
}

START_TEST(tables_align_utf8_and_hide_control_characters)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	static const struct column columns[] = { { LEFT, "NAME", "{name}" }, { RIGHT, "N", "{n:n}" },
		{ LEFT, "LAST", "{last}" }, { 0 } };
	json_t *list = json_pack("[{s:s, s:i, s:s}, {s:s, s:i, s:s}]", "name", "é€", "n", 1, "last", "", "name",
	    "\x1b]0;x\x07\x7f\xc2\x9b", "n", 100, "last", "end");

	show_columns(f, list, columns, false);
	json_decref(list);
	fclose(f);
	ck_assert_str_eq(text, "NAME        N  LAST\né€          1  -\n?]0;x???  100  end\n");
	free(text);
}

/* The longest line of a list's table, which is returned. */
static char *
narrow(const char *golden, const char *key, bool detail, unsigned columns, size_t *longest)
{
	json_t *root = load(golden);
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	show_set_width(columns);
	show_list(f, json_object_get(root, "data"), key, detail);
	show_set_width(0);
	fclose(f);
	json_decref(root);
	*longest = 0;
	for (const char *p = text; *p != '\0'; p += strcspn(p, "\n") + 1)
		if (strcspn(p, "\n") > *longest)
			*longest = strcspn(p, "\n");
	return text;
}

START_TEST(a_narrow_screen_leaves_columns_out)
{
	static const struct {
		const char *golden, *key;
	} lists[] = { { "control/groups.json", "groups" }, { "control/links.json", "links" },
		{ "control/devices.json", "devices" } };
	size_t longest;

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		char *text = narrow(lists[i].golden, lists[i].key, false, 100, &longest);

		ck_assert_msg(longest <= 100, "%s: %zu columns: %s", lists[i].key, longest, text);
		free(text);
	}
	char *wide = narrow("control/links.json", "links", false, 1000, &longest);
	char *some = narrow("control/links.json", "links", false, 110, &longest);
	ck_assert(strstr(wide, "PEER-QPN") != NULL && strstr(some, "PEER-QPN") == NULL);
	ck_assert(strstr(some, "STATE") != NULL && strstr(some, "RTT") != NULL);
	free(some);
	/* All of them on demand, whatever the width. */
	some = narrow("control/links.json", "links", true, 80, &longest);
	ck_assert(strstr(some, "PEER-QPN") != NULL && longest > 110);
	free(some);
	free(wide);
}

START_TEST(services_fit_eighty_columns)
{
	json_t *data = json_pack("{s:[{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i}]}", "services", "name", "postgres",
	    "kind", "ingress", "listen", "127.0.0.1:5432", "to", "192.0.2.2:15432", "connections", 12,
	    "connections_max", 1000, "accepted", 12345, "fallbacks", 3, "refused_max", 1);
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	show_set_width(80);
	show_list(f, data, "services", false);
	show_set_width(0);
	fclose(f);
	json_decref(data);
	ck_assert_msg(strcspn(text, "\n") <= 80 && strstr(text, "192.0.2.2:15432") != NULL, "%s", text);
	free(text);
}
