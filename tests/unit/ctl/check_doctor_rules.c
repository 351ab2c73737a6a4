/* What smcrctl doctor makes of the daemon's answers. */
#include "ctl/doctor.h"

#include <string.h>

#include "ctl/show.h"
#include "golden.h"
#include "unit.h"

#define GOOD_STATUS                                                                                           \
	"{\"version\":\"1.2.3\",\"uptime_ms\":61000,\"draining\":false,\"open_files_max\":1048576,"           \
	"\"locked_bytes_max\":65536,\"rmb_bytes\":899,\"rmb_bytes_max\":1000,"                                \
	"\"sndbuf_bytes\":749,\"sndbuf_bytes_max\":1000,"                                                     \
	"\"confinement\":{\"mode\":\"auto\"},\"tcp_option\":{\"services\":0,\"usable\":false,\"text\":\"\"}," \
	"\"services\":[{\"name\":\"x\",\"connections_max\":1000}]}"
#define GOOD_DEVICES                                                                                                     \
	"{\"devices\":[{\"name\":\"siw0\",\"transport\":\"iwarp\",\"port\":\"up\",\"interface\":\"eth0\",\"card\":\"\"," \
	"\"interface_mtu\":1500,\"mpa_port\":7471,\"stats\":{\"mpa_bad\":0,\"fpdus_sent\":9}}]}"
#define GOOD_SERVICE                                                                                             \
	"[{\"name\":\"x\",\"kind\":\"ingress\",\"to\":\"h:1\",\"listen\":\"127.0.0.1:1\",\"listens_here\":true," \
	"\"held_off_ms\":0,\"connections\":1,\"connections_max\":1000,\"outage\":{\"text\":\"\"}}]"
#define GOOD_CHECK                                                                                                  \
	"[{\"services\":[\"x\"],\"peer\":\"192.0.2.2:1\",\"possible\":true,\"finding\":\"possible\",\"text\":\"\"," \
	"\"steps\":[{\"step\":\"round-trip\",\"took_us\":85}]}]"
#define GOOD_LINKS                                                                                         \
	"{\"links\":[{\"group\":1,\"number\":2,\"device\":\"siw0\",\"paths\":[{\"address\":\"192.0.2.2\"," \
	"\"mtu\":1500}]}]}"
#define GOOD_GROUPS "{\"groups\":[{\"id\":1,\"peer\":\"192.0.2.2:1\",\"links\":1,\"type\":\"single\"}]}"

enum { STATUS, DEVICES, GROUPS, LINKS, STATS, SERVICES, CHECKS, PARTS };

static const char *const good[PARTS] = {
	[STATUS] = GOOD_STATUS,
	[DEVICES] = GOOD_DEVICES,
	[GROUPS] = GOOD_GROUPS,
	[LINKS] = GOOD_LINKS,
	[STATS] = "{\"counters\":{\"turns\":5}}",
	[SERVICES] = GOOD_SERVICE,
	[CHECKS] = GOOD_CHECK,
};

static enum doctor_level verdict; /* of the last findings */

/* Facts when one part is another. */
static json_t *
facts_of(int part, const char *json, int64_t left_out)
{
	static const char *const names[PARTS] = { "status", "devices", "groups", "links", "stats", "services",
		"checks" };
	json_t *facts = json_pack("{s:I}", "left_out", (json_int_t)left_out);

	for (int i = 0; i < PARTS; i++) {
		json_t *answer = json_loads(i == part ? json : good[i], 0, NULL);

		ck_assert_ptr_nonnull(answer);
		json_object_set_new(facts, names[i], answer);
	}
	return facts;
}

/* Findings of these facts, which are freed. */
static json_t *
findings_of(json_t *facts)
{
	json_t *found = doctor_findings(facts, &verdict);

	json_decref(facts);
	return found;
}

static json_t *
findings(int part, const char *json, int64_t left_out)
{
	return findings_of(facts_of(part, json, left_out));
}

START_TEST(all_is_well)
{
	static const char *const areas[] = { "daemon", "limits", "memory", "devices", "mtu", "links", "services",
		"reasons", "check" };
	json_t *found = findings(-1, NULL, 0);

	ck_assert_int_eq(verdict, DOCTOR_OK);
	ck_assert_uint_eq(json_array_size(found), sizeof(areas) / sizeof(areas[0]));
	for (size_t i = 0; i < json_array_size(found); i++) {
		ck_assert_str_eq(get_string(json_array_get(found, i), "area"), areas[i]);
		ck_assert_str_eq(get_string(json_array_get(found, i), "advice"), "");
		ck_assert_uint_gt(strlen(get_string(json_array_get(found, i), "what")), 10);
	}
	json_decref(found);
}

/* All is well, and this is said of it. */
static void
tells(int part, const char *json, const char *what)
{
	json_t *found = findings(part, json, 0);
	bool told = false;

	ck_assert_int_eq(verdict, DOCTOR_OK);
	for (size_t i = 0; i < json_array_size(found); i++)
		told = told || strcmp(get_string(json_array_get(found, i), "what"), what) == 0;
	ck_assert_msg(told, "%s", what);
	json_decref(found);
}

/* The daemon's numbers (control/files.h). Bounds that nobody reaches at once are no reason to warn where the limit is ample. */
START_TEST(an_ample_limit_of_open_files_is_well)
{
	tells(STATUS,
	    "{\"open_files_max\":65536,\"workers\":[{},{}],\"services\":[{\"connections_max\":40000},{\"connections_max\":1}]}",
	    "65536 open files are ample; all services at their max_connections at once would need about 80118");
}

/* 0 is that of an address which is no interface's. */
START_TEST(an_mtu_that_is_not_known_is_no_number)
{
	tells(-1, NULL, "1500 bytes on the interfaces of devices");
	tells(DEVICES, "{\"devices\":[{\"name\":\"a\",\"port\":\"up\",\"interface_mtu\":0}]}",
	    "not known of any device's interface");
	tells(DEVICES,
	    "{\"devices\":[{\"name\":\"a\",\"port\":\"up\",\"interface_mtu\":0},"
	    "{\"name\":\"b\",\"port\":\"up\",\"interface_mtu\":1500}]}",
	    "1500 bytes on the interfaces of devices, not known of 1 device");
	tells(DEVICES,
	    "{\"devices\":[{\"name\":\"a\",\"port\":\"up\"},{\"name\":\"b\",\"port\":\"up\",\"interface_mtu\":9000},"
	    "{\"name\":\"c\",\"port\":\"up\",\"interface_mtu\":1500},{\"name\":\"d\",\"port\":\"up\"}]}",
	    "1500 to 9000 bytes on the interfaces of devices, not known of 2 devices");
}

#define NO_ALLOW "\"settings\":[{\"name\":\"allow\",\"value\":\"\"}]"

/* Nobody else reaches it, it has a list, or nothing is known of one. */
START_TEST(services_that_need_no_allow_list)
{
	static const char *const fine[] = { "[{\"name\":\"x\",\"listen\":\"127.0.0.3:1\"," NO_ALLOW "}]",
		"[{\"name\":\"x\",\"listen\":\"[::1]:1\"," NO_ALLOW "}]",
		"[{\"name\":\"x\",\"listen\":\"unix:/s\"," NO_ALLOW "}]",
		"[{\"name\":\"x\",\"listen\":\"no address\"," NO_ALLOW "}]",
		"[{\"name\":\"x\",\"listen\":\"0.0.0.0:1\",\"settings\":[{\"name\":\"allow\",\"value\":\"[ \\\"::/0\\\" ]\"}]}]",
		"[{\"name\":\"x\",\"listen\":\"0.0.0.0:1\",\"settings\":[{\"name\":\"allow_users\",\"value\":\"\"}]}]",
		"[{\"name\":\"x\",\"listen\":\"0.0.0.0:1\"}]" };

	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
		tells(SERVICES, fine[i], "1, and no connection was refused or has gone to TCP");
}

START_TEST(both_kinds_of_buffers_are_reported)
{
	tells(-1, NULL,
	    "receive buffers take 899 of at most 1000, send buffers 749 of at most 1000, and nothing was refused for "
	    "want of room");
	/* A daemon that does not tell the limit of send buffers. */
	tells(STATUS, "{\"rmb_bytes\":899,\"rmb_bytes_max\":1000,\"sndbuf_bytes\":749}",
	    "receive buffers take 899 of at most 1000, and nothing was refused for want of room");
}

/* Each is found, once, and nothing else with it; with what to do. */
static const struct {
	int part;
	const char *json;
	enum doctor_level level;
	const char *area, *what;
} ills[] = {
	{ STATUS, "{\"draining\":true,\"open_files_max\":-1}", DOCTOR_WARNING, "daemon", "drains" },
	{ STATUS, "{\"confinement\":{\"mode\":\"off\"},\"open_files_max\":-1}", DOCTOR_WARNING, "daemon",
	    "not confined" },
	{ STATUS, "{\"tcp_option\":{\"services\":1,\"usable\":false,\"text\":\"no CAP_BPF\"}}", DOCTOR_WARNING,
	    "daemon", "no CAP_BPF" },
	{ STATUS, "{\"open_files_max\":1024,\"services\":[{\"connections_max\":1000}]}", DOCTOR_WARNING, "limits",
	    "1024 open files are allowed, and max_connections of all services may need about 2105" },
	{ STATUS, "{\"open_files_max\":65535,\"services\":[{\"connections_max\":40000}]}", DOCTOR_WARNING, "limits",
	    "may need about 80105" },
	{ STATUS, "{\"rmb_bytes\":900,\"rmb_bytes_max\":1000}", DOCTOR_WARNING, "memory",
	    "receive buffers take 900 of at most 1000" },
	{ STATUS, "{\"sndbuf_bytes\":750,\"sndbuf_bytes_max\":1000}", DOCTOR_WARNING, "memory",
	    "send buffers take 750 of at most 1000: further ones are small" },
	{ STATS, "{\"counters\":{\"accept_pauses\":3}}", DOCTOR_PROBLEM, "limits", "paused 3 times" },
	{ STATS, "{\"counters\":{\"refused_rmb_memory\":4}}", DOCTOR_WARNING, "memory", "4 receive buffers refused" },
	{ STATS, "{\"fallback_reasons_local\":[{\"code\":\"0x09990002\",\"text\":\"queue pair\",\"count\":6}]}",
	    DOCTOR_WARNING, "reasons", "ours: queue pair (0x09990002), 6 times" },
	{ DEVICES, "{\"devices\":[]}", DOCTOR_PROBLEM, "devices", "no RDMA device" },
	{ DEVICES, "{\"devices\":[{\"name\":\"a\",\"transport\":\"iwarp\",\"port\":\"up\",\"mpa_port\":0}]}",
	    DOCTOR_PROBLEM, "devices", "a does not listen" },
	{ DEVICES, "{\"devices\":[{\"name\":\"a\",\"transport\":\"roce\",\"port\":\"up\",\"card\":\"mlx5_0\"}]}",
	    DOCTOR_WARNING, "limits", "65536 bytes" },
	{ DEVICES, "{\"devices\":[{\"name\":\"a\",\"port\":\"up\",\"stats\":{\"crc_errors\":7}}]}", DOCTOR_WARNING,
	    "devices", "a: 7 frames" },
	{ DEVICES,
	    "{\"devices\":[{\"name\":\"a\",\"port\":\"up\"},{\"name\":\"b\",\"port\":\"down\",\"interface\":\"eth1\"}]}",
	    DOCTOR_WARNING, "devices", "port of b on eth1 is down" },
	{ LINKS,
	    "{\"links\":[{\"group\":1,\"number\":2,\"device\":\"siw0\",\"paths\":[{\"address\":\"192.0.2.2\",\"mtu\":1400}]}]}",
	    DOCTOR_WARNING, "mtu",
	    "link 1/2: the path to 192.0.2.2 takes packets of 1400 bytes, eth0 sends up to 1500" },
	{ GROUPS, "{\"groups\":[{\"id\":7,\"links\":0,\"state\":\"dead\"}]}", DOCTOR_WARNING, "links", "7" },
	{ GROUPS, "{\"groups\":[{\"id\":7,\"links\":2,\"type\":\"asymmetric peer\"}]}", DOCTOR_WARNING, "links",
	    "asymmetric peer" },
	{ SERVICES, "[]", DOCTOR_WARNING, "services", "nothing to do" },
	{ SERVICES, "[{\"name\":\"x\",\"listen\":\"0.0.0.0:1\",\"to\":\"h:2\"," NO_ALLOW "}]", DOCTOR_WARNING,
	    "services", "x: it has no allow list: any host that reaches 0.0.0.0:1 can connect to h:2" },
	{ SERVICES, "[{\"name\":\"x\",\"listen\":\"[2001:db8::1]:1\"," NO_ALLOW "}]", DOCTOR_WARNING, "services",
	    "any host that reaches [2001:db8::1]:1" },
	{ SERVICES, "[{\"name\":\"x\",\"disabled\":true}]", DOCTOR_WARNING, "services",
	    "x: it is disabled: new connections are refused" },
	{ SERVICES, "[{\"name\":\"x\",\"refused_allow\":5}]", DOCTOR_WARNING, "services",
	    "x: 5 connections refused: not on" },
	{ SERVICES, "[{\"name\":\"x\",\"refused_allow\":1}]", DOCTOR_WARNING, "services", "x: 1 connection refused" },
	{ SERVICES,
	    "[{\"name\":\"x\",\"targets\":[{\"target\":\"srv:_a._tcp.example\",\"name_error\":\"no such name\"}],"
	    "\"addresses\":[],\"outage\":{\"text\":\"waiting for the name\"}}]",
	    DOCTOR_PROBLEM, "services",
	    "x: the name of srv:_a._tcp.example is not found: no such name; the service waits for it" },
	{ SERVICES,
	    "[{\"name\":\"x\",\"targets\":[{\"target\":\"a:1\",\"name_error\":\"\"},"
	    "{\"target\":\"b:1\",\"name_error\":\"no such name\"}],\"addresses\":[{\"address\":\"192.0.2.1:1\"}]}]",
	    DOCTOR_WARNING, "services", "x: the name of b:1 is not found: no such name" },
	{ SERVICES, "[{\"name\":\"x\",\"connections\":9,\"connections_max\":10}]", DOCTOR_WARNING, "services",
	    "9 connections of at most 10" },
	{ SERVICES, "[{\"name\":\"x\",\"listens_here\":false,\"listen\":\"192.0.2.9:1\"}]", DOCTOR_WARNING, "services",
	    "no interface has its address, 192.0.2.9:1" },
	{ SERVICES, "[{\"name\":\"x\",\"held_off_ms\":42000}]", DOCTOR_WARNING, "services", "held off after failures" },
	{ SERVICES, "[{\"name\":\"x\",\"to\":\"h:1\",\"outage\":{\"text\":\"cannot be connected\"}}]", DOCTOR_PROBLEM,
	    "services", "x: h:1 cannot be connected" },
	{ CHECKS,
	    "[{\"services\":[\"x\"],\"possible\":false,\"finding\":\"link-failed\",\"text\":\"the device's words\"}]",
	    DOCTOR_PROBLEM, "check", "x: the device's words" },
	{ CHECKS, "[{\"services\":[\"x\"],\"possible\":false,\"finding\":\"no-option\",\"text\":\"plain\"}]",
	    DOCTOR_WARNING, "check", "x: plain" },
	{ CHECKS, "[{\"services\":[\"x\"],\"possible\":false,\"finding\":\"of a newer daemon\",\"text\":\"new\"}]",
	    DOCTOR_PROBLEM, "check", "x: new" },
	{ CHECKS,
	    "[{\"services\":[\"x\"],\"possible\":false,\"finding\":\"unreachable\",\"text\":\"one\"},"
	    "{\"services\":[\"x\"],\"possible\":true,\"peer\":\"b:1\"}]",
	    DOCTOR_WARNING, "check", "x: one" },
	/* Services that share addresses: each has one that works, or one has not. */
	{ CHECKS,
	    "[{\"services\":[\"x\",\"y\"],\"possible\":false,\"finding\":\"unreachable\",\"text\":\"one\"},"
	    "{\"services\":[\"x\",\"y\"],\"possible\":true,\"peer\":\"b:1\"}]",
	    DOCTOR_WARNING, "check", "x, y: one" },
	{ CHECKS,
	    "[{\"services\":[\"x\",\"y\"],\"possible\":false,\"finding\":\"unreachable\",\"text\":\"one\"},"
	    "{\"services\":[\"x\"],\"possible\":true,\"peer\":\"b:1\"}]",
	    DOCTOR_PROBLEM, "check", "x, y: one" },
};

START_LOOP_TEST(what_is_wrong_is_found, 0, sizeof(ills) / sizeof(ills[0]))
{
	json_t *found = findings(ills[_i].part, ills[_i].json, 0);
	unsigned cnt = 0;

	for (size_t i = 0; i < json_array_size(found); i++) {
		const json_t *one = json_array_get(found, i);

		if (strcmp(get_string(one, "level"), "ok") == 0)
			continue;
		cnt++;
		ck_assert_str_eq(get_string(one, "level"), doctor_level_words[ills[_i].level]);
		ck_assert_str_eq(get_string(one, "area"), ills[_i].area);
		ck_assert_msg(strstr(get_string(one, "what"), ills[_i].what) != NULL, "%s", get_string(one, "what"));
		ck_assert_str_ne(get_string(one, "advice"), "");
	}
	ck_assert_uint_eq(cnt, 1);
	ck_assert_int_eq(verdict, ills[_i].level);
	json_decref(found);
}

/* The advice of the only finding that is not well. */
static void
advises(int part, const char *json, const char *advice)
{
	json_t *found = findings(part, json, 0);
	bool seen = false;

	for (size_t i = 0; i < json_array_size(found); i++)
		seen = seen || strstr(get_string(json_array_get(found, i), "advice"), advice) != NULL;
	ck_assert_msg(seen, "%s", advice);
	json_decref(found);
}

START_TEST(advice_fits_the_service)
{
	advises(SERVICES, "[{\"name\":\"x\",\"listen\":\"127.0.0.1:1\",\"refused_allow\":1}]", "add them to allow if");
	advises(SERVICES, "[{\"name\":\"x\",\"listen\":\"unix:/run/x\",\"refused_allow\":1}]", "allow_users");
	advises(CHECKS, "[{\"services\":[\"x\"],\"possible\":false,\"finding\":\"closed\",\"text\":\"one\"}]",
	    "is `to` the listen address of an egress");
	advises(CHECKS, "[{\"services\":[\"x\"],\"possible\":false,\"finding\":\"server-down\",\"text\":\"one\"}]",
	    "start the server behind it");
	advises(CHECKS, "[{\"services\":[\"x\"],\"possible\":false,\"finding\":\"no-tls\",\"text\":\"one\"}]",
	    "peer_names");
	advises(SERVICES, "[{\"name\":\"x\",\"targets\":[{\"target\":\"a:1\",\"name_error\":\"no\"}]}]", "DNS");
}

#define OUT(health, failed)                                                                                          \
	"[{\"name\":\"x\",\"health\":\"" health "\",\"outage\":{\"text\":\"cannot be connected\",\"failed\":" failed \
	"}}]"
/* Of a service without probes, by what the check says. */
START_TEST(a_check_shows_that_an_outage_is_over)
{
	for (int works = 0; works < 2; works++) {
		json_t *facts = facts_of(SERVICES, OUT("", "5"), 0);

		json_object_set_new(facts, "before", facts_of(SERVICES, OUT("", "5"), 0));
		json_object_set_new(facts, "checks",
		    json_pack("[{s:[s], s:b, s:s}]", "services", works ? "x" : "y", "possible", 1, "peer", "h:1"));
		json_decref(findings_of(facts));
		ck_assert_int_eq(verdict, works ? DOCTOR_OK : DOCTOR_PROBLEM);
	}
}

/* What was counted before the earlier look is a note, what has risen since is wrong now; what is no counter always is. */
static const struct {
	int part;
	const char *before, *now;
	enum doctor_level level, verdict;
} counted[] = {
	{ STATS, "{\"counters\":{\"refused_rmb_memory\":4}}", "{\"counters\":{\"refused_rmb_memory\":4}}", DOCTOR_NOTE,
	    DOCTOR_OK },
	{ STATS, "{\"counters\":{\"refused_rmb_memory\":4}}", "{\"counters\":{\"refused_rmb_memory\":5}}",
	    DOCTOR_WARNING, DOCTOR_WARNING },
	{ STATS, "{\"counters\":{\"accept_pauses\":4}}", "{\"counters\":{\"accept_pauses\":4}}", DOCTOR_NOTE,
	    DOCTOR_OK },
	{ STATS, "{\"fallback_reasons_peer\":[{\"code\":\"1\",\"text\":\"a\",\"count\":6}]}",
	    "{\"fallback_reasons_peer\":[{\"code\":\"1\",\"text\":\"a\",\"count\":6}]}", DOCTOR_NOTE, DOCTOR_OK },
	{ STATS, "{\"fallback_reasons_local\":[{\"code\":\"2\",\"text\":\"a\",\"count\":6}]}",
	    "{\"fallback_reasons_local\":[{\"code\":\"1\",\"text\":\"a\",\"count\":1}]}", DOCTOR_WARNING,
	    DOCTOR_WARNING },
	{ DEVICES, "{\"devices\":[{\"name\":\"a\",\"port\":\"up\",\"stats\":{\"crc_errors\":7}}]}",
	    "{\"devices\":[{\"name\":\"a\",\"port\":\"up\",\"stats\":{\"crc_errors\":7}}]}", DOCTOR_NOTE, DOCTOR_OK },
	{ DEVICES, "{\"devices\":[{\"name\":\"a\",\"port\":\"up\",\"stats\":{\"crc_errors\":7}}]}",
	    "{\"devices\":[{\"name\":\"a\",\"port\":\"up\",\"stats\":{\"crc_errors\":8}}]}", DOCTOR_WARNING,
	    DOCTOR_WARNING },
	{ SERVICES, "[{\"name\":\"y\"},{\"name\":\"x\",\"refused_allow\":5}]", "[{\"name\":\"x\",\"refused_allow\":5}]",
	    DOCTOR_NOTE, DOCTOR_OK },
	{ SERVICES, "[{\"name\":\"x\",\"refused_allow\":5}]", "[{\"name\":\"x\",\"refused_allow\":6}]", DOCTOR_WARNING,
	    DOCTOR_WARNING },
	{ SERVICES, "[{\"name\":\"x\",\"fallbacks\":5}]", "[{\"name\":\"x\",\"fallbacks\":5}]", DOCTOR_NOTE,
	    DOCTOR_OK },
	{ SERVICES, OUT("up", "5"), OUT("up", "5"), DOCTOR_NOTE, DOCTOR_OK },
	{ SERVICES, OUT("up", "5"), OUT("up", "6"), DOCTOR_PROBLEM, DOCTOR_PROBLEM },
	{ SERVICES, OUT("down", "5"), OUT("down", "5"), DOCTOR_PROBLEM, DOCTOR_PROBLEM },
	{ SERVICES, "[{\"name\":\"x\",\"modes\":{\"tcp\":2}}]", "[{\"name\":\"x\",\"modes\":{\"tcp\":2}}]",
	    DOCTOR_WARNING, DOCTOR_WARNING },
	{ SERVICES, "[{\"name\":\"x\",\"connections\":9,\"connections_max\":10}]",
	    "[{\"name\":\"x\",\"connections\":9,\"connections_max\":10}]", DOCTOR_WARNING, DOCTOR_WARNING },
};

START_LOOP_TEST(what_was_counted_earlier_is_a_note, 0, sizeof(counted) / sizeof(counted[0]))
{
	json_t *facts = facts_of(counted[_i].part, counted[_i].now, 0);
	unsigned cnt = 0;

	json_object_set_new(facts, "before", facts_of(counted[_i].part, counted[_i].before, 0));
	json_t *found = findings_of(facts);
	for (size_t i = 0; i < json_array_size(found); i++) {
		const char *level = get_string(json_array_get(found, i), "level");

		if (strcmp(level, "ok") != 0) {
			ck_assert_str_eq(level, doctor_level_words[counted[_i].level]);
			cnt++;
		}
	}
	ck_assert_uint_eq(cnt, 1);
	ck_assert_int_eq(verdict, counted[_i].verdict);
	json_decref(found);
}

/* Of a daemon that is not there. */
static const struct {
	const char *unit, *what, *advice;
} downs[] = {
	{ "{}", "smcrd does not run, or listens elsewhere: no daemon at /run/x", "systemctl start smcrd" },
	{ "{\"LoadState\":\"not-found\",\"ActiveState\":\"inactive\",\"Result\":\"success\"}",
	    "smcrd does not run, or listens elsewhere: no daemon at /run/x", "--socket" },
	{ "{\"LoadState\":\"loaded\",\"ActiveState\":\"active\",\"Result\":\"success\"}",
	    "the unit smcrd.service is active, but there is no control socket at /run/x", "--socket" },
	{ "{\"LoadState\":\"loaded\",\"ActiveState\":\"inactive\",\"Result\":\"success\",\"ConditionResult\":\"yes\"}",
	    "smcrd does not run: smcrd.service is inactive", "systemctl start smcrd" },
	{ "{\"LoadState\":\"loaded\",\"ActiveState\":\"inactive\",\"Result\":\"success\",\"ConditionResult\":\"no\"}",
	    "smcrd does not run: a condition of smcrd.service does not hold, as there is no smcrd.conf", "write it" },
	{ "{\"LoadState\":\"loaded\",\"ActiveState\":\"failed\",\"Result\":\"exit-code\",\"ExecMainStatus\":\"1\","
	  "\"error\":\"cannot listen on 127.0.0.1:80\"}",
	    "smcrd does not run: smcrd.service ended with exit-code, exit status 1; its last error: cannot listen on "
	    "127.0.0.1:80",
	    "smcrd -t" },
	{ "{\"LoadState\":\"loaded\",\"ActiveState\":\"activating\",\"SubState\":\"auto-restart\",\"Result\":\"exit-code\","
	  "\"ExecMainStatus\":\"1\"}",
	    "smcrd does not run: smcrd.service ended with exit-code, exit status 1, and systemd tries again",
	    "smcrd -t" },
};

START_LOOP_TEST(no_daemon_has_its_reason, 0, sizeof(downs) / sizeof(downs[0]))
{
	json_t *unit = json_loads(downs[_i].unit, 0, NULL), *finding = doctor_down_finding("/run/x", NULL, unit);

	ck_assert_str_eq(get_string(finding, "level"), "problem");
	ck_assert_str_eq(get_string(finding, "what"), downs[_i].what);
	ck_assert_ptr_nonnull(strstr(get_string(finding, "advice"), downs[_i].advice));
	json_decref(finding);
	json_decref(unit);
}

START_TEST(an_instance_has_its_own_unit)
{
	json_t *unit = json_pack(
	    "{s:s, s:s, s:s}", "LoadState", "loaded", "ActiveState", "failed", "Result", "exit-code");
	json_t *finding = doctor_down_finding("/run/x", "db", unit);

	ck_assert_ptr_nonnull(strstr(get_string(finding, "what"), " smcrd@db.service ended"));
	ck_assert_ptr_nonnull(strstr(get_string(finding, "advice"), "smcrd -i db -t checks"));
	ck_assert_ptr_nonnull(strstr(get_string(finding, "advice"), "restart smcrd@db"));
	json_decref(finding);
	json_decref(unit);
}

/* A socket that takes no checks has not found that all is well. */
START_TEST(a_read_only_socket_is_reported)
{
	json_t *facts = json_pack("{s:b}", "read_only", true), *found = doctor_findings(facts, &verdict);
	unsigned told = 0;

	for (size_t i = 0; i < json_array_size(found); i++) {
		const json_t *one = json_array_get(found, i);

		if (strcmp(get_string(one, "area"), "check") != 0)
			continue;
		ck_assert_str_eq(get_string(one, "level"), "warning");
		ck_assert_ptr_nonnull(strstr(get_string(one, "what"), "no peer was checked"));
		told++;
	}
	ck_assert_uint_eq(told, 1);
	json_decref(found);
	json_decref(facts);
}

START_TEST(omitted_checks_are_reported)
{
	json_t *found = findings(CHECKS, "[]", 17);

	ck_assert_int_eq(verdict, DOCTOR_WARNING);
	json_decref(found);
}

/* Answers that were not had, or are of other types: nothing is found, and nothing breaks. */
START_TEST(strange_answers)
{
	static const char *const strange[] = { "{}", "[]", "[1,null,[]]",
		"{\"services\":7,\"devices\":{},\"links\":[1]}",
		"[{\"settings\":7,\"disabled\":7,\"listen\":{}},{\"listen\":\"0.0.0.0:1\",\"settings\":[1,{\"name\":\"allow\",\"value\":3}]}]",
		"{\"devices\":[1,{\"stats\":[]}],\"links\":[{\"paths\":[3]}],\"groups\":[0]}" };
	json_t *found = doctor_findings(NULL, &verdict);

	ck_assert_int_eq(verdict, DOCTOR_PROBLEM); /* no device */
	json_decref(found);
	for (int part = 0; part < PARTS; part++)
		for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++) {
			found = findings(part, strange[i], 0);
			ck_assert_uint_gt(json_array_size(found), 0);
			json_decref(found);
		}
}
