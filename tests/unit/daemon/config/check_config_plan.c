#include <stdio.h>
#include <string.h>

#include "daemon/config/config_int.h"
#include "daemon/config/config_value.h"
#include "unit.h"

static char *text; /* of the last plan */
static struct config *old, *next;

static struct config *
parse(const char *file)
{
	struct config *cfg;

	ck_assert_msg(config_parse("t.conf", file, strlen(file), CONFIG_NO_LOOKUP, stderr, &cfg) == 0, "%s", file);
	return cfg;
}

static struct config_plan
plan(const struct config *from, const struct config *to)
{
	struct config_plan p;
	size_t len;

	free(text);
	FILE *f = open_memstream(&text, &len);
	config_plan(from, to, &p, f);
	fclose(f);
	return p;
}

static void
forget(void)
{
	config_free(old);
	config_free(next);
	old = next = NULL;
}

/* Between two files, which are in old and next then. */
static struct config_plan
plan_of(const char *old_file, const char *next_file)
{
	forget();
	old = parse(old_file);
	next = parse(next_file);
	return plan(old, next);
}

#define SVC(name, port, more) "{ name = \"" name "\"; listen = \"127.0.0.1:" port "\"; to = \"b:80\"; " more " }"

UNIT_FIXTURE(NULL, forget);

START_TEST(nothing_changed)
{
	static const char file[] = "ingress = ( " SVC("a", "80", "allow = [ \"::1\" ];") " );\n"
	    "devices = ( { type = \"siw\"; address = \"::1\"; } );";
	struct config_plan p = plan_of(file, file);

	ck_assert_str_eq(text, "");
	ck_assert(p.added + p.removed + p.changed + p.settings + p.fixed == 0);
}

/* The first ones have lines of their own, whatever happened to them. */
START_TEST(hundreds_of_services_are_counted)
{
	struct config_plan p = plan_of(
	    "ingress = ( { name = \"a\"; listen = \"127.0.0.1:8000-8199\"; to = \"b:8000-8199\"; } );",
	    "ingress = ( { name = \"b\"; listen = \"127.0.0.1:8000-8199\"; to = \"b:8000-8199\"; } );");
	unsigned lines = 0;

	for (const char *c = text; *c != '\0'; c++)
		lines += *c == '\n';
	ck_assert_uint_eq(lines, 20 + 1);
	ck_assert_ptr_nonnull(strstr(text, "\nin all: 200 services added, 0 changed, 200 removed\n"));
	ck_assert_uint_eq(p.added + p.removed, 400);
}

START_TEST(names_what_changed)
{
	struct config_plan p = plan_of("smcr = { clc_timeout = \"1s\"; };\n"
	    "ingress = ( " SVC("keep", "80", "") "," SVC("gone", "81", "") "," SVC("moved", "82", "") " );\n"
	    "egress = ( " SVC("turned", "83", "") " );",
	    "drain_timeout = 5;\n"
	    "ingress = ( " SVC("new", "81", "") "," SVC("moved", "85", "allow = [ \"::1\" ]; prewarm = true;") "," SVC(
	        "keep", "80", "") "," SVC("turned", "83", "") " );");

	ck_assert_str_eq(text,
	    "service new added\n"
	    "service moved changed: listen, allow, prewarm\n"
	    "service turned changed: from egress to ingress\n"
	    "service gone removed\n"
	    "setting drain_timeout changed\n"
	    "setting smcr.clc_timeout changed\n");
	ck_assert_uint_eq(p.added, 1);
	ck_assert_uint_eq(p.removed, 1);
	ck_assert_uint_eq(p.changed, 2);
	ck_assert_uint_eq(p.settings, 2);
	ck_assert_uint_eq(p.fixed, 0);
}

/* A list in another order is another one. */
START_TEST(versions_and_ueids_follow_a_reload)
{
	struct config_plan p = plan_of(
	    "smcr = { ueids = [ \"A\", \"B\" ]; };", "smcr = { ueids = [ \"B\", \"A\" ]; smc_version = 2; };");

	ck_assert_str_eq(text, "setting smcr.smc_version changed\nsetting smcr.ueids changed\n");
	ck_assert_uint_eq(p.settings, 2);
	ck_assert_uint_eq(p.fixed, 0);
}

START_TEST(what_needs_a_take_over_is_named_and_stays)
{
	struct config_plan p = plan_of(
	    "control = { path = \"/old\"; };\n"
	    "devices = ( { type = \"siw\"; address = \"::1\"; } );",
	    "control = { path = \"/new\"; mode = \"0600\"; }; drain_timeout = 5;\n"
	    "devices = ( { type = \"siw\"; address = \"::1\"; crc = false; } );");

	ck_assert_str_eq(text,
	    "setting drain_timeout changed\n"
	    "warning: control.path cannot be changed by a reload: " CONFIG_BY_TAKE_OVER
	    "\n"
	    "warning: control.mode cannot be changed by a reload: " CONFIG_BY_TAKE_OVER
	    "\n"
	    "warning: device at ::1 cannot be changed by a reload: " CONFIG_BY_TAKE_OVER "\n");
	ck_assert_uint_eq(p.fixed, 3);
	ck_assert_int_eq(config_keep_fixed(old, next), 0);
	ck_assert_str_eq(next->control_path, "/old");
	ck_assert_uint_eq(next->control_mode, 0660);
	ck_assert_uint_eq(next->drain_ms, 5000);
	ck_assert_uint_eq(next->device_cnt, 1);
	ck_assert(next->devices[0].siw.crc);
	p = plan(old, next);
	ck_assert_uint_eq(p.fixed, 0);
}

/* The default configuration with another value of the key. */
static struct config *
parse_changed(const struct config_key *k)
{
	char file[128];

	if (k->type == CONFIG_T_NETS) { /* what is at the key's place is a pointer */
		snprintf(file, sizeof(file), "%s = { %s = [\"192.0.2.0/24\"]; };",
		    k->where == CONFIG_AT_METRICS ? "metrics" : "smcr", k->name);
		return parse(file);
	}
	struct config *cfg = parse("");
	*((unsigned char *)cfg + k->off) ^= 1;
	return cfg;
}

/* Every key is either applied by a reload (plan says changed) or named as one that needs a take-over. */
START_TEST(no_key_is_forgotten)
{
	for (const struct config_key *k = config_keys; k->name != NULL; k++) {
		if ((k->where &
		        (CONFIG_AT_TOP | CONFIG_AT_LOG | CONFIG_AT_CONTROL | CONFIG_AT_METRICS | CONFIG_AT_CONFINE |
		            CONFIG_AT_KEEPALIVE | CONFIG_AT_SMCR)) == 0 ||
		    (k->flags & CONFIG_NOT_PRINTED) != 0)
			continue;
		forget();
		old = parse("");
		next = parse_changed(k);
		struct config_plan p = plan(old, next);
		ck_assert_msg(strstr(text, k->name) != NULL, "%s not in: %s", k->name, text);
		ck_assert_uint_eq(p.settings, (k->flags & CONFIG_RELOAD) != 0);
		ck_assert_uint_eq(p.fixed, (k->flags & CONFIG_RELOAD) == 0);
	}
}

START_TEST(devices_are_added_and_stay)
{
	struct config_plan p = plan_of(
	    "devices = ( { type = \"siw\"; address = \"::1\"; },\n"
	    "{ type = \"siw\"; address = \"::2\"; name = \"b\"; } );",
	    "devices = ( { type = \"siw\"; address = \"::3\"; },\n"
	    "{ type = \"siw\"; interface = \"eth1\"; },\n"
	    "{ type = \"siw\"; address = \"::2\"; name = \"b\"; } );");

	ck_assert_str_eq(text,
	    "device at ::3 added\n"
	    "device at eth1 added\n"
	    "warning: device at ::1 cannot be removed by a reload: " CONFIG_BY_TAKE_OVER "\n");
	ck_assert_uint_eq(p.settings, 2);
	ck_assert_uint_eq(p.fixed, 1);
	ck_assert_int_eq(config_keep_fixed(old, next), 0);
	ck_assert_uint_eq(next->device_cnt, 4);
	ck_assert_str_eq(next->devices[0].name, "siw0");
	ck_assert_str_eq(next->devices[1].name, "b");
	ck_assert_str_eq(next->devices[2].name, "siw1"); /* it would have been siw0 */
	ck_assert_str_eq(next->devices[3].interface, "eth1");
	ck_assert_str_eq(next->devices[3].name, "");
}

START_TEST(cards_are_distinguished_by_name_and_port)
{
	struct config_plan p = plan_of(
	    "devices = ( { type = \"verbs\"; device = \"c\"; port = 1; },\n"
	    "{ type = \"siw\"; interface = \"eth1\"; }, { type = \"verbs\"; device = \"d\"; } );",
	    "devices = ( { type = \"verbs\"; device = \"c\"; port = 2; }, { type = \"verbs\"; interface = \"eth1\"; },\n"
	    "{ type = \"verbs\"; device = \"d\"; timeout = 20; } );");

	ck_assert_str_eq(text,
	    "device at c added\n"
	    "device at eth1 added\n"
	    "warning: device at d cannot be changed by a reload: " CONFIG_BY_TAKE_OVER
	    "\n"
	    "warning: device at c cannot be removed by a reload: " CONFIG_BY_TAKE_OVER
	    "\n"
	    "warning: device at eth1 cannot be removed by a reload: " CONFIG_BY_TAKE_OVER "\n");
	ck_assert_uint_eq(p.settings, 2);
	ck_assert_int_eq(config_keep_fixed(old, next), 0);
	ck_assert_uint_eq(next->device_cnt, 5);
	ck_assert_uint_eq(next->devices[2].verbs.timeout, 15);
}

START_TEST(default_devices_go_without_a_word)
{
	struct config_plan p = plan_of(
	    "devices = ( { type = \"siw\"; address = \"::1\"; }, { type = \"siw\"; address = \"::2\"; } );",
	    "devices = ( { type = \"siw\"; address = \"::2\"; } );");

	old->devices_default = next->devices_default = true;
	p = plan(old, next); /* siw1 is siw0 now, which is nobody's business */
	ck_assert_str_eq(text, "");
	p = plan(next, old);
	ck_assert_str_eq(text, "device at ::1 added\n");
	ck_assert_uint_eq(p.fixed, 0);
}
