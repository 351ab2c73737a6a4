#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/addr.h"
#include "daemon/config/config.h"
#include "daemon/config/config_int.h"
#include "daemon/config/config_keys.h"
#include "daemon/config/config_value.h"
#include "smcr_help.h"
#include "unit.h"

static char *msgs; /* of the last parse() */

static struct config *
parse(const char *text)
{
	struct config *cfg = NULL;
	size_t len;

	free(msgs);
	FILE *err = open_memstream(&msgs, &len);
	int rc = config_parse("t.conf", text, strlen(text), CONFIG_NO_LOOKUP, err, &cfg);
	fclose(err);
	ck_assert_msg((rc == 0) == (cfg != NULL), "rc %d but cfg %p", rc, (void *)cfg);
	ck_assert_msg((rc != 0) <= (msgs[0] != '\0'), "failed without a message: %s", text);
	return cfg;
}

static struct config *
parse_ok(const char *text)
{
	struct config *cfg = parse(text);

	ck_assert_msg(cfg != NULL, "%s\nfor:\n%s", msgs, text);
	return cfg;
}

static void
parse_bad(const char *text, const char *msg)
{
	struct config *cfg = parse(text);

	ck_assert_msg(cfg == NULL, "accepted:\n%s", text);
	ck_assert_msg(strstr(msgs, msg) != NULL, "expected \"%s\" in:\n%s\nfor:\n%s", msg, msgs, text);
}

static char *
print(const struct config *cfg)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	config_print(cfg, f);
	fclose(f);
	return text;
}

/* -- each setting of the table -- */

#define SETTING_LINE 5

static bool
is_place(const char *name)
{
	return strcmp(name, "address") == 0 || strcmp(name, "interface") == 0 || strcmp(name, "device") == 0;
}

/* A file that is right but for `setting`, which stands in line SETTING_LINE. A device is of a type that has it. */
static void
make_file(
    char *buf, size_t cap, const struct config_section *sec, unsigned places, const char *name, const char *setting)
{
	const char *base[3] = { "", "", "" };
	bool siw = (places & CONFIG_AT_SIW) != 0;

	if (sec->place == CONFIG_AT_DEVICE) {
		base[0] = strcmp(name, "type") == 0 ? "" : siw ? "type = \"siw\";" : "type = \"verbs\";";
		base[1] = is_place(name) ? "" : siw ? "address = \"::1\";" : "device = \"card\";";
	} else if (sec->list_max > 0) {
		base[0] = strcmp(name, "name") != 0 ? "name = \"a\";" : "";
		base[1] = strcmp(name, "listen") != 0 ? "listen = \"127.0.0.1:1\";" : "";
		base[2] = strcmp(name, "to") != 0 ? "to = \"127.0.0.1:2\";" : "";
	}
	snprintf(buf, cap, "%s%s%s\n%s\n%s\n%s\n%s\n%s\n", sec->name, sec->name[0] == '\0' ? "" : " = ",
	    sec->list_max > 0          ? "( {"
	        : sec->name[0] == '\0' ? ""
	                               : "{",
	    base[0], base[1], base[2], setting,
	    sec->list_max > 0          ? "} );"
	        : sec->name[0] == '\0' ? ""
	                               : "};");
}

static void
try_setting(const struct config_section *sec, const struct config_key *key, const char *value, const char *why)
{
	char text[1024], setting[512], msg[512];
	struct config *cfg;

	snprintf(setting, sizeof(setting), "%s = %s;", key->name, value);
	make_file(text, sizeof(text), sec, key->where, key->name, setting);
	if (why == NULL) {
		cfg = parse_ok(text);
		config_free(cfg);
		return;
	}
	snprintf(msg, sizeof(msg), "t.conf:%d: %s%s%s %s", SETTING_LINE, sec->name, sec->name[0] != '\0' ? "." : "",
	    key->name, why);
	parse_bad(text, msg);
}

/* Every key in every section that has it. */
static void
each_key(void (*fn)(const struct config_section *, const struct config_key *))
{
	for (const struct config_section *s = config_sections; s->name != NULL; s++)
		for (const struct config_key *k = config_keys; k->name != NULL; k++)
			if ((k->where & s->place) != 0)
				fn(s, k);
}

static void
wrong_types(const struct config_section *sec, const struct config_key *key)
{
	static const char *const values[] = { "true", "7", "7L", "1.5", "\"~\"", "[ 1 ]", "[ 1.5 ]", "[ \"~\" ]",
		"( \"~\", 1 )", "( ( ) )", "{ x = 1; }", "\"\"" };

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		bool is_int = values[i][0] == '7', is_bool = values[i][0] == 't';

		if (key->type == CONFIG_T_BOOL && is_bool)
			continue;
		if (key->type == CONFIG_T_GROUP && is_int)
			continue;
		if (key->type == CONFIG_T_INNER && values[i][0] == '{')
			continue;
		if (key->type == CONFIG_T_UINT && is_int) {
			if (key->min <= 7 && key->max >= 7)
				continue;
			try_setting(sec, key, values[i],
			    (key->flags & CONFIG_AUTO) != 0 ? "must be \"auto\" or from " : "must be from ");
			continue;
		}
		if ((key->type == CONFIG_T_SIZE || key->type == CONFIG_T_MS || key->type == CONFIG_T_SECONDS ||
		        key->type == CONFIG_T_PORTS) &&
		    is_int)
			continue;
		try_setting(sec, key, values[i], "");
	}
}

START_TEST(refuses_wrong_types_for_every_key)
{
	each_key(wrong_types);
}

static bool
has_range(const struct config_key *key)
{
	return key->type == CONFIG_T_UINT || key->type == CONFIG_T_SIZE || key->type == CONFIG_T_MS ||
	    key->type == CONFIG_T_SECONDS || key->type == CONFIG_T_US;
}

static void
try_number(const struct config_section *sec, const struct config_key *key, unsigned long long n, const char *why)
{
	char value[64];

	snprintf(value, sizeof(value),
	    key->type == CONFIG_T_MS            ? "\"%llums\""
	        : key->type == CONFIG_T_US      ? "\"%lluus\""
	        : key->type == CONFIG_T_SECONDS ? "\"%llus\""
	        : n > INT32_MAX                 ? "%lluL"
	                                        : "%llu",
	    n);
	try_setting(sec, key, value, why);
}

static void
ranges(const struct config_section *sec, const struct config_key *key)
{
	if (!has_range(key))
		return;
	ck_assert_msg(key->max <= (key->len == 1          ? UINT8_MAX
	                                  : key->len == 2 ? UINT16_MAX
	                                  : key->len == 4 ? UINT32_MAX
	                                                  : INT64_MAX / 2),
	    "%s", key->name);
	try_number(sec, key, key->min, NULL);
	if ((key->flags & CONFIG_POW2) != 0)
		try_number(sec, key, key->min + 1, "must be a power of two");
	else if (key->max > key->min)
		try_number(sec, key, key->min + 1, NULL);
	try_number(sec, key, key->max, NULL);
	try_number(sec, key, key->max + 1, "must be ");
	if ((key->flags & CONFIG_OR_ZERO) != 0 || key->min == 0)
		try_number(sec, key, 0, NULL);
	else
		try_number(sec, key, key->min - 1, "must be ");
	try_setting(sec, key, "-1", "must be ");
	try_setting(sec, key, "9223372036854775807L", "must be ");
	if (key->type != CONFIG_T_UINT) {
		try_setting(sec, key, "\"99999999999999999999999999\"", "must be ");
		try_setting(sec, key, "\"-1\"", "must be ");
		try_setting(sec, key, "\"1x\"", "must be ");
		try_setting(sec, key, "\"K\"", "must be ");
		try_setting(sec, key, "\" 1\"", "must be ");
	}
}

START_TEST(keeps_ranges_of_every_key)
{
	each_key(ranges);
}

START_TEST(refuses_unknown_keys_everywhere)
{
	char text[1024], msg[128];

	for (const struct config_section *s = config_sections; s->name != NULL; s++) {
		make_file(text, sizeof(text), s, s->place, "nope", "nope = 1;");
		snprintf(msg, sizeof(msg), "t.conf:%d: unknown key %s%snope", SETTING_LINE, s->name,
		    s->name[0] != '\0' ? "." : "");
		parse_bad(text, msg);
	}
}

static void
missing(const struct config_section *sec, const struct config_key *key)
{
	char text[1024], msg[128];

	if ((key->flags & CONFIG_REQUIRED) == 0)
		return;
	make_file(text, sizeof(text), sec, key->where, key->name, "");
	snprintf(msg, sizeof(msg), "t.conf:1: %s.%s is missing", sec->name, key->name);
	parse_bad(text, msg);
}

START_TEST(names_every_missing_key)
{
	each_key(missing);
}

static void
default_is_valid(const struct config_section *sec, const struct config_key *key)
{
	struct config whole;
	struct config_service svc;
	struct config_device dev;
	void *base = sec->place == CONFIG_AT_DEVICE ? (void *)&dev : sec->list_max > 0 ? (void *)&svc : (void *)&whole;

	memset(&whole, 0, sizeof(whole));
	memset(&svc, 0, sizeof(svc));
	memset(&dev, 0, sizeof(dev));
	ck_assert_msg(config_value_set_default(key, base) == 0, "%s.%s", sec->name, key->name);
	ck_assert_msg((key->flags & CONFIG_REQUIRED) == 0 || key->def == NULL, "%s.%s", sec->name, key->name);
}

/* No gap of 4 bytes (more than padding) between the settings of `place` that lie in from..to: a field that somebody
 * adds to a struct must not stay 0 unnoticed. */
static void
every_field_has_a_key(enum config_place place, size_t from, size_t to)
{
	unsigned gap = 0;

	for (size_t at = from; at < to; at++) {
		bool covered = false;

		for (const struct config_key *k = config_keys; k->name != NULL; k++)
			if ((k->where & place) != 0 && at >= k->off && at < k->off + k->len)
				covered = true;
		gap = covered ? 0 : gap + 1;
		ck_assert_msg(gap < 4, "no key for the field at %zu", at - from);
	}
}

START_TEST(every_field_of_engine_and_device_has_a_key)
{
	size_t smcr = offsetof(struct config, smcr);
	/* Behind what devices.c fills in. */
	size_t siw = offsetof(struct config_device, siw.port_min);
	size_t verbs = offsetof(struct config_device, verbs.traffic_class);

	/* worker.c fills in the last ones. */
	every_field_has_a_key(CONFIG_AT_SMCR, smcr, smcr + offsetof(struct smcr_config, group_first));
	/* devices.c fills in the last ones, too. Before the addresses there is padding. */
	every_field_has_a_key(CONFIG_AT_SIW, siw, offsetof(struct config_device, siw.max_qp) + sizeof(uint32_t));
	every_field_has_a_key(CONFIG_AT_SIW, offsetof(struct config_device, siw.more_addrs),
	    offsetof(struct config_device, siw.may_connect));
	every_field_has_a_key(
	    CONFIG_AT_VERBS, verbs, offsetof(struct config_device, verbs) + sizeof(struct verbs_config));
}

START_TEST(device_defaults_are_those_of_the_device)
{
	struct config *cfg = parse_ok("devices = ( { type = \"siw\"; address = \"127.0.0.1\"; } );");
	struct config_device own = { .type = CONFIG_DEVICE_SIW, .name = "siw0" };

	siw_config_init(&own.siw);
	own.addr = cfg->devices[0].addr;
	/* It takes any port; the daemon a range that a firewall can open. */
	own.siw.port_min = cfg->devices[0].siw.port_min;
	own.siw.port_max = cfg->devices[0].siw.port_max;
	for (const struct config_key *k = config_keys; k->name != NULL; k++)
		if ((k->where & CONFIG_AT_SIW) != 0)
			ck_assert_msg(config_value_equal(k, &own, &cfg->devices[0]), "%s", k->name);
	config_free(cfg);
}

START_TEST(card_defaults_are_those_of_the_device)
{
	struct config *cfg = parse_ok("devices = ( { type = \"verbs\"; device = \"c\"; } );");
	struct config_device own = { .type = CONFIG_DEVICE_VERBS, .card = "c" };

	verbs_config_init(&own.verbs);
	own.verbs.mpa_port_min = cfg->devices[0].verbs.mpa_port_min;
	own.verbs.mpa_port_max = cfg->devices[0].verbs.mpa_port_max;
	/* Without libibverbs there is nothing to compare with. */
	for (const struct config_key *k = config_keys; own.verbs.max_qp != 0 && k->name != NULL; k++)
		if ((k->where & CONFIG_AT_VERBS) != 0)
			ck_assert_msg(config_value_equal(k, &own, &cfg->devices[0]), "%s", k->name);
	config_free(cfg);
}

START_TEST(engine_defaults_are_those_of_the_engine)
{
	struct config *cfg = parse_ok(""), own;

	memset(&own, 0, sizeof(own));
	smcr_config_init(&own.smcr);
	for (const struct config_key *k = config_keys; k->name != NULL; k++)
		if ((k->where & CONFIG_AT_SMCR) != 0 && strcmp(k->name, "reset_grace") != 0 && /* sessions' */
		    strcmp(k->name, "open_over_link") != 0) /* a feature (worker.c) */
			ck_assert_msg(config_value_equal(k, &own, cfg), "%s", k->name);
	config_free(cfg);
}

START_TEST(every_default_is_valid)
{
	each_key(default_is_valid);
}

/* -- errors with their places -- */

#define LONG_PATH \
	"123456789.123456789.123456789.123456789.123456789.123456789.123456789.123456789.123456789.123456789.1234567"
#define WEB(listen, to) "name = \"web\"; listen = \"" listen "\"; to = \"" to "\";"
#define TO(targets) "name = \"w\"; listen = \"127.0.0.1:80\"; to = " targets "; "

#define SCTP_DEVICE "devices = ( { type = \"siw\"; address = \"192.0.2.1\"; transport = \"sctp\"; "

#define RANGES(listen, to) "egress = ( { name = \"a\";\nlisten = \"" listen "\";\nto = " to "; } );\n"
#define RANGE(listen, to) "egress = ( { name = \"a\";\nlisten = \"" listen "\";\nto = \"" to "\"; } );\n"

static const struct {
	const char *text;
	const char *msg;
} errors[] = {
	{ "ingress = (\n{ name = \"a\"; listen = \"127.0.0.1:80\"; to = \"127.0.0.2:1\"; },\n"
	  "{\nname = \"a\"; listen = \"127.0.0.1:81\"; to = \"127.0.0.2:1\"; } );",
	    "t.conf:4: ingress.name \"a\" is already used in line 2" },
	{ "ingress = ( { name = \"a\"; listen = \"127.0.0.1:80\"; to = \"127.0.0.2:1\"; } );\n"
	  "egress = ( { name = \"a\"; listen = \"127.0.0.1:81\"; to = \"127.0.0.2:1\"; } );",
	    "t.conf:2: egress.name \"a\" is already used in line 1" },
	{ "ingress = ( { name = \"a\"; listen = \"127.0.0.1:80\"; to = \"127.0.0.2:1\"; } );\n"
	  "egress = ( { name = \"b\";\nlisten = \"127.0.0.1:80\"; to = \"127.0.0.2:1\"; } );",
	    "t.conf:3: egress.listen 127.0.0.1:80 is the same as 127.0.0.1:80 of \"a\" in line 1" },
	{ "ingress = ( { name = \"a\"; listen = \"0.0.0.0:80\"; to = \"127.0.0.2:1\"; },\n"
	  "{ name = \"b\"; listen = \"127.0.0.1:80\"; to = \"127.0.0.2:1\"; } );",
	    "t.conf:2: ingress.listen 127.0.0.1:80 overlaps 0.0.0.0:80 of \"a\" in line 1" },
	{ "ingress = ( { name = \"a\"; listen = \"127.0.0.1:80\"; to = \"127.0.0.2:1\"; },\n"
	  "{ name = \"b\"; listen = \"[::]:80\"; to = \"127.0.0.2:1\"; } );",
	    "t.conf:2: ingress.listen [::]:80 overlaps 127.0.0.1:80 of \"a\" in line 1" },
	{ "ingress = ( { name = \"a\"; listen = \"[::ffff:127.0.0.1]:80\"; to = \"127.0.0.2:1\"; },\n"
	  "{ name = \"b\"; listen = \"127.0.0.1:80\"; to = \"127.0.0.2:1\"; } );",
	    "t.conf:2: ingress.listen 127.0.0.1:80 is the same as " },
	{ "ingress = ( { name = \"a\"; listen = \"[::1]:80\"; to = \"127.0.0.2:1\"; },\n"
	  "{ name = \"b\"; listen = \"[::]:80\"; to = \"127.0.0.2:1\"; } );",
	    "t.conf:2: ingress.listen [::]:80 overlaps" },
	{ "egress = ( { name = \"a\"; listen = \"0.0.0.0:80\";\n to = \"127.0.0.1:80\"; } );",
	    "t.conf:2: egress.to is the service's own listen address" },
	{ "egress = ( { name = \"a\"; listen = \"[::]:80\";\n to = \"127.0.0.1:80\"; } );",
	    "t.conf:2: egress.to is the service's own listen address" },
	{ "ingress = ( {\n" WEB("127.0.0.1", "b:1") "} );",
	    "t.conf:2: ingress.listen has \"127.0.0.1\": the port is missing" },
	{ "ingress = ( {\n" WEB("localhost:80", "b:1") "} );",
	    "t.conf:2: ingress.listen must be an IP address and a port, names are only for \"to\", not \"localhost:80\"\n" },
	{ "ingress = ( {\n" WEB("host:0", "b:1") "} );", "t.conf:2: ingress.listen must have a port from 1 to 65535" },
	{ "ingress = ( {\n" WEB("127.0.0.1:0", "b:1") "} );",
	    "t.conf:2: ingress.listen must have a port from 1 to 65535, not \"127.0.0.1:0\"\n" },
	{ "ingress = ( {\n" WEB("[::1]:70000", "b:1") "} );",
	    "t.conf:2: ingress.listen must have a port from 1 to 65535, not \"[::1]:70000\"\n" },
	{ "ingress = ( {\n" WEB("127.0.0.1:99999999999999999999", "b:1") "} );", "must have a port from 1 to 65535" },
	{ "ingress = ( {\n" WEB("127.0.0.1:", "b:1") "} );",
	    "t.conf:2: ingress.listen must be a string \"address:port\"" },
	{ "ingress = ( {\n" WEB("::1:80000", "b:1") "} );",
	    "t.conf:2: ingress.listen must be a string \"address:port\"" },
	{ "ingress = ( {\n" WEB("10.0.0.300:80", "b:1") "} );",
	    "t.conf:2: ingress.listen must be a string \"address:port\"" },
	{ "metrics = {\nlisten = \"localhost:9471\"; };", "t.conf:2: metrics.listen must be an IP address and a port" },
	{ "egress = ( {\n" WEB("127.0.0.1:80", "b:0") "} );",
	    "t.conf:2: egress.to must have a port from 1 to 65535, not \"b:0\"\n" },
	{ "egress = ( {\n" TO("[ \"b:1\", \"c:65536\" ]") "} );",
	    "t.conf:2: egress.to must have a port from 1 to 65535, not \"c:65536\"\n" },
	{ "ingress = ( {\n" WEB("unix:run/s", "b:1") "} );",
	    "t.conf:2: ingress.listen must have an absolute path without blanks and quotes, not \"unix:run/s\"" },
	{ "ingress = ( {\n" WEB("unix:/run/a b", "b:1") "} );", "t.conf:2: ingress.listen must have an absolute path" },
	{ "ingress = ( {\n" WEB("unix:@s", "b:1") "} );",
	    "t.conf:2: ingress.listen must be a path, not \"unix:@s\": abstract sockets have no owner and no mode" },
	{ "ingress = ( {\n" WEB("unix:/" LONG_PATH, "b:1") "} );",
	    "t.conf:2: ingress.listen has a path longer than 107 bytes" },
	{ "egress = ( {\n" WEB("127.0.0.1:1", "unix:/" LONG_PATH) "} );",
	    "t.conf:2: egress.to has a path longer than 107 bytes" },
	{ "egress = ( {\n" WEB("127.0.0.1:1", "unix:@s") "} );", "t.conf:2: egress.to must be a path" },
	{ "ingress = ( {\n" WEB("unix:/s", "unix:/t") "} );",
	    "t.conf:2: ingress.to cannot be a UNIX socket: between the gateways SMC-R begins on TCP" },
	{ "egress = ( {\n" WEB("unix:/s", "unix:/t") "} );",
	    "t.conf:2: egress.listen cannot be a UNIX socket: between the gateways SMC-R begins on TCP" },
	{ "control = { path = \"/s\"; }; ingress = ( {\n" WEB("unix:/s", "b:1") "} );",
	    "t.conf:2: ingress.listen is the path of the control socket" },
	{ "control = { readonly = \"/s\"; }; ingress = ( {\n" WEB("unix:/s", "b:1") "} );",
	    "t.conf:2: ingress.listen is the path of the read-only control socket" },
	{ "control = { path = \"/s\";\nreadonly = \"/s\"; };",
	    "t.conf:2: control.readonly is control.path: they are two sockets" },
	{ "control = {\nreadonly = \"s\"; };", "t.conf:2: control.readonly must be a string, an absolute path" },
	{ "ingress = ( {\n" WEB("unix:/s", "b:1") "}, { name = \"b\";\nlisten = \"unix:/s\"; to = \"b:2\"; } );",
	    "t.conf:3: ingress.listen unix:/s is the same as unix:/s of \"web\" in line 2" },
	{ "ingress = ( {\n" WEB("unix:/s", "b:1") "\nallow = [ \"::1\" ]; } );",
	    "t.conf:3: ingress.allow is for TCP; for a UNIX socket use allow_users" },
	{ "ingress = ( {\n" WEB("unix:/s", "b:1") "\naccept_proxy = [ \"::1\" ]; } );",
	    "t.conf:3: ingress.accept_proxy is for a service that listens on TCP" },
	{ "ingress = ( {\n" WEB("127.0.0.1:80", "b:1") "\naccept_proxy = [ ]; } );",
	    "t.conf:3: ingress.accept_proxy is empty" },
	{ "ingress = ( {\n" WEB("127.0.0.1:80", "b:1") "\naccept_proxy = [ \"balancer\" ]; } );",
	    "t.conf:3: ingress.accept_proxy has \"balancer\", which is no address" },
	{ "egress = ( {\n" TO("\"b:1\"") "accept_proxy = [ \"::1\" ]; } );",
	    "t.conf:2: unknown key egress.accept_proxy" },
	{ "ingress = ( { name = \"a\";\nlisten = \"unix:/s\"; to = \"h:1\";\nfreebind = false; } );",
	    "t.conf:3: ingress.freebind is for a service that listens on TCP\n" },
	{ "ingress = ( { name = \"a\";\nlisten = \"unix:/s\"; to = \"h:1\";\nwhen_down = \"close_listener\"; } );",
	    "t.conf:3: ingress.when_down is for a service that listens on TCP\n" },
	{ "egress = ( {\n" TO("\"b:1\"") "when_down = \"reset\"; } );",
	    "t.conf:2: egress.when_down must be one of \"accept\", \"close_listener\"" },
	{ "ingress = ( {\n" WEB("127.0.0.1:80", "b:1") "\nallow_users = [ \"root\" ]; } );",
	    "t.conf:3: ingress.allow_users is for a service that listens on a UNIX socket" },
	{ "ingress = ( {\n" WEB("127.0.0.1:80", "b:1") "\nlisten_mode = \"0600\"; } );",
	    "t.conf:3: ingress.listen_mode is for a service that listens on a UNIX socket" },
	{ "ingress = ( {\n" WEB("unix:/s", "b:1") "\nlisten_mode = \"1777\"; } );",
	    "t.conf:3: ingress.listen_mode must be from 0000 to 0777, not \"1777\"" },
	{ "ingress = ( {\n" WEB("unix:/s", "b:1") "\nlisten_owner = \"a b\"; } );",
	    "t.conf:3: ingress.listen_owner must be a string or an integer, a user, not \"a b\"" },
	{ "ingress = ( {\n" WEB("unix:/s", "b:1") "\nlisten_group = -1; } );",
	    "t.conf:3: ingress.listen_group must be a string or an integer, a group, not -1" },
	{ "ingress = ( {\n" WEB("unix:/s", "b:1") "\nlisten_owner = 4294967295L; } );",
	    "t.conf:3: ingress.listen_owner" },
	{ "ingress = ( {\n" WEB("unix:/s", "b:1") "\nallow_users = [ ]; } );",
	    "t.conf:3: ingress.allow_users is empty" },
	{ "ingress = ( {\n" WEB("unix:/s", "b:1") "\nallow_users = ( \"a\", -5 ); } );",
	    "t.conf:3: ingress.allow_users has \"-5\", which is no user" },
	{ "ingress = ( {\n" WEB("unix:/s", "b:1") "\nallow_users = ( \"a\", 1.5 ); } );",
	    "t.conf:3: ingress.allow_users must be a list of users" },
	{ "ingress = ( {\n" WEB("unix:/s", "b:1") "\nallow_users = \"root\"; } );",
	    "t.conf:3: ingress.allow_users must be a list of users" },
	{ "egress = ( {\n" WEB("127.0.0.1:80", "b:80") "\nallow_users = [ \"root\" ]; } );",
	    "t.conf:3: unknown key egress.allow_users" },
	{ "ingress = ( {\n" WEB("127.0.0.1:80", "b") "} );", "t.conf:2: ingress.to has \"b\": the port is missing" },
	{ "ingress = ( {\n" WEB("127.0.0.1:80", "10.0.0.300:80") "} );", "t.conf:2: ingress.to must be" },
	{ "ingress = ( {\n" WEB("127.0.0.1:80", "a b:80") "} );", "t.conf:2: ingress.to must be" },
	{ "ingress = ( {\n" WEB("127.0.0.1:80", "::1:80") "} );", "t.conf:2: ingress.to must be" },
	{ "ingress = ( {\n" WEB("127.0.0.1:80", "[::1:80") "} );", "t.conf:2: ingress.to must be" },
	{ "ingress = ( {\n" WEB("127.0.0.1:80", "0.0.0.0:80") "} );", "t.conf:2: ingress.to must name a host" },
	{ "egress = ( {\n" TO("[ ]") "} );", "t.conf:2: egress.to is empty" },
	{ "egress = ( {\n" TO("[ \"b:1\", \"c\" ]") "} );", "t.conf:2: egress.to has \"c\": the port is missing" },
	{ "egress = ( {\n" TO("[ \"b:1\", \"b:2\", \"b:1\" ]") "} );", "t.conf:2: egress.to has \"b:1\" twice" },
	{ "egress = ( {\n" TO("( \"b:1\", 7 )") "} );", "t.conf:2: egress.to must be a string \"host:port\"" },
	{ "egress = ( {\n" TO("[ \"b:1\", \"127.0.0.1:80\" ]") "} );", "t.conf:2: egress.to is the service's own" },
	{ "ingress = ( {\n" TO("[ \"b:1\", \"unix:/s\" ]") "} );", "t.conf:2: ingress.to cannot be a UNIX socket" },
	{ "egress = ( {\n" TO(
	      "[ \"b:1\", \"b:2\", \"b:3\", \"b:4\", \"b:5\", \"b:6\", \"b:7\", \"b:8\", \"b:9\", \"b:10\", "
	      "\"b:11\", \"b:12\", \"b:13\", \"b:14\", \"b:15\", \"b:16\", \"b:17\" ]") "} );",
	    "t.conf:2: egress.to has more than 16 entries" },
	{ "egress = ( {\n" TO("\"srv:\"") "} );", "t.conf:2: egress.to " },
	{ "egress = ( {\n" TO("\"srv:_a._tcp.b:80\"") "} );", "t.conf:2: egress.to " },
	{ "egress = ( {\n" TO("\"srv:_a\"") "} );", "t.conf:2: egress.to " },
	{ "egress = ( {\n" TO("\"b:1\"") "policy = \"random\"; } );",
	    "t.conf:2: egress.policy must be one of \"first\", \"spread\"" },
	{ "egress = ( {\n" TO("\"b:1\"") "target_retry = \"999ms\"; } );",
	    "t.conf:2: egress.target_retry must be from 1s to 1h" },
	{ "ingress = ( {\n" WEB("127.0.0.1:80", "b:80") "\nallow = [ \"10.0.0.1/8\" ]; } );",
	    "t.conf:3: ingress.allow has \"10.0.0.1/8\", which has address bits behind its prefix" },
	{ "ingress = ( {\n" WEB("127.0.0.1:80", "b:80") "\nallow = [ \"10.0.0.0/33\" ]; } );",
	    "t.conf:3: ingress.allow has \"10.0.0.0/33\", whose prefix is not 0..32" },
	{ "ingress = ( {\n" WEB("127.0.0.1:80", "b:80") "\nallow = [ \"::/129\" ]; } );",
	    "whose prefix is not 0..128" },
	{ "ingress = ( {\n" WEB("127.0.0.1:80", "b:80") "\nallow = [ \"::/\" ]; } );", "whose prefix is not 0..128" },
	{ "ingress = ( {\n" WEB("127.0.0.1:80", "b:80") "\nallow = [ \"host\" ]; } );", "which is no address" },
	{ "smcr = {\nueids = [ \"LAB\", \"lab\" ]; };",
	    "t.conf:2: smcr.ueids has \"lab\", which is no UEID: 1 to 32 of A-Z, 0-9, '.' and '-', "
	    "a letter or digit first, no two dots together" },
	{ "smcr = {\nueids = [ \"\" ]; };", "t.conf:2: smcr.ueids has \"\", which is no UEID" },
	{ "smcr = {\nueids = [ \"A B\" ]; };", "t.conf:2: smcr.ueids has \"A B\", which is no UEID" },
	{ "smcr = {\nueids = [ \"A_B\" ]; };", "t.conf:2: smcr.ueids has \"A_B\", which is no UEID" },
	{ "smcr = {\nueids = [ \"-A\" ]; };", "t.conf:2: smcr.ueids has \"-A\", which is no UEID" },
	{ "smcr = {\nueids = [ \"A..B\" ]; };", "t.conf:2: smcr.ueids has \"A..B\", which is no UEID" },
	{ "smcr = {\nueids = [ \".A\" ]; };", "t.conf:2: smcr.ueids has \".A\", which is no UEID" },
	{ "smcr = {\nueids = [ \"0123456789ABCDEFGHIJKLMNOPQRSTUVW\" ]; };", "which is no UEID" },
	{ "smcr = { ueids = [\n\"A\", \"B\",\n\"A\" ]; };", "t.conf:1: smcr.ueids has \"A\" twice" },
	{ "smcr = {\nueids = [ \"1\", \"2\", \"3\", \"4\", \"5\", \"6\", \"7\", \"8\", \"9\" ]; };",
	    "t.conf:2: smcr.ueids has more than 8 entries" },
	{ "smcr = {\nueids = \"A\"; };",
	    "t.conf:2: smcr.ueids must be a list of strings, [ \"...\", ... ], not \"A\"" },
	{ "\nworkers = 0;", "t.conf:2: workers must be \"auto\" or from 1 to 64, not 0" },
	{ "\nworkers = 65;", "t.conf:2: workers must be \"auto\" or from 1 to 64, not 65" },
	{ "\nworkers = \"many\";", "t.conf:2: workers must be an integer, or \"auto\", not \"many\"" },
	{ "\nworkers = \"2\";", "t.conf:2: workers must be an integer, or \"auto\", not \"2\"" },
	{ "\nworkers = true;", "t.conf:2: workers must be an integer, or \"auto\", not true" },
	{ "smcr = {\nsmc_version = 3; };", "t.conf:2: smcr.smc_version must be one of \"any\", \"1\", \"2\", not 3" },
	{ "smcr = {\nsmc_version = \"v1\"; };",
	    "t.conf:2: smcr.smc_version must be one of \"any\", \"1\", \"2\", not \"v1\"" },
	{ "smcr = {\nsmc_version = 2; };", "t.conf:2: smcr.smc_version 2 needs an entry in smcr.ueids" },
	{ "smcr = { ueids = [ ];\nsmc_version = 2; };", "t.conf:2: smcr.smc_version 2 needs an entry in smcr.ueids" },
	{ "ingress = ( {\n" WEB("127.0.0.1:80", "b:80") "\nallow = [ \"::ffff:10.0.0.0/104\" ]; } );",
	    "write it as an IPv4 address" },
	{ "ingress = ( {\n" WEB("127.0.0.1:80", "b:80") "\nallow = [ ]; } );", "t.conf:3: ingress.allow is empty" },
	{ "ingress = ( {\n" WEB("127.0.0.1:80", "b:80") "\nrmb_element = \"48K\"; } );",
	    "t.conf:3: ingress.rmb_element must be a power of two, not \"48K\"" },
	{ "ingress = ( {\n" WEB("127.0.0.1:80", "b:80") "\nrmb_element = \"8M\"; } );",
	    "t.conf:3: ingress.rmb_element must be \"auto\" or from 16K to 4M, not \"8M\"" },
	{ "smcr = {\nsend_buffer = \"automatic\"; };",
	    "t.conf:2: smcr.send_buffer must be bytes as an integer, or a string like \"64K\", or \"auto\", not" },
	{ "smcr = {\nsend_memory_max = \"auto\"; };", "t.conf:2: smcr.send_memory_max must be bytes" },
	{ "ingress = ( {\n" WEB("127.0.0.1:80", "b:80") "\npeer = \"aix\"; } );",
	    "t.conf:3: ingress.peer must be one of \"smcrd\", \"linux\", \"auto\", not \"aix\"" },
	{ "ingress = ( {\n" WEB("127.0.0.1:80", "b:80") "\nfallback = \"udp\"; } );",
	    "t.conf:3: ingress.fallback must be one of \"tcp\", \"refuse\", not \"udp\"" },
	{ "ingress = ( {\n" WEB("127.0.0.1:80", "b:80") "\nprobe = {\nintervall = 1; }; } );",
	    "t.conf:4: unknown key ingress.probe.intervall, did you mean \"interval\"?" },
	{ "ingress = ( {\n" WEB("127.0.0.1:80", "b:80") "\nprobe = {\nrise = 0; }; } );",
	    "t.conf:4: ingress.probe.rise must be from 1 to 100, not 0" },
	{ "ingress = ( {\n" WEB("127.0.0.1:80", "b:80") "\nprobe = true; } );",
	    "t.conf:3: ingress.probe must be a group, { ... }, not true" },
	{ "ingress = ( {\n" WEB("127.0.0.1:80", "b:80") "\nprobe = { expect = \"+PONG\"; }; } );",
	    "t.conf:3: ingress.probe.send and expect are for an egress: the far end of an ingress is a gateway" },
	{ "ingress = ( {\n" WEB("127.0.0.1:80", "b:80") "\npeer = \"linux\"; probe = { kind = \"smcr\"; }; } );",
	    "t.conf:3: ingress.probe.kind \"smcr\" is for an ingress whose peer is an smcrd" },
	{ "egress = ( {\n" WEB("127.0.0.1:80", "b:80") "\nprobe = { kind = \"smcr\"; }; } );",
	    "t.conf:3: egress.probe.kind \"smcr\" is for an ingress whose peer is an smcrd" },
	{ "egress = ( {\n" WEB(
	      "127.0.0.1:80", "b:80") "\nprobe = { send = "
	                              "\"0123456789012345678901234567890123456789012345678901234567890123\"; }; } );",
	    "t.conf:3: egress.probe.send is longer than 63 characters" },
	{ "defaults = { egress = {\nprobe = { rise = 0; }; }; };\negress = ( { " WEB("127.0.0.1:80", "b:80") " } );",
	    "t.conf:2: defaults.egress.probe.rise must be from 1 to 100, not 0" },
	{ "egress = ( { name = \"x\"; listen = \"127.0.0.1:80\";\nto = \"b:80 backup\"; } );",
	    "t.conf:2: egress.to has only backup targets" },
	{ "egress = ( {\n" WEB("127.0.0.1:80", "b:80") "\nprewarm = true; } );",
	    "t.conf:3: unknown key egress.prewarm: it is a key of ingress\n" },
	{ "ingress = ( {\n" WEB("127.0.0.1:80", "b:1") "\nforward_client = \"on\"; peer = \"auto\"; } );",
	    "t.conf:3: ingress.forward_client needs ingress.peer = \"smcrd\": no other peer takes part" },
	{ "egress = ( {\n" WEB("127.0.0.1:80", "b:1") "\nclient_address = \"proxy_v1\"; peer = \"linux\"; } );",
	    "t.conf:3: egress.client_address needs egress.peer = \"smcrd\": no other peer takes part" },
	{ "egress = ( {\n" WEB("127.0.0.1:80", "127.0.0.1:1") "\nclient_address = \"connect\"; } );",
	    "t.conf:3: egress.client_address \"connect\" needs egress.clients: the clients whose addresses a peer may use" },
	{ "egress = ( {\n" WEB("127.0.0.1:80", "127.0.0.1:1") "\nclient_address = \"connect\"; clients = [ ]; } );",
	    "t.conf:3: egress.client_address \"connect\" needs egress.clients: the clients whose addresses a peer may use" },
	{ "egress = ( {\n" WEB(
	      "127.0.0.1:80", "unix:/run/x") "client_address = \"connect\"; clients = [ \"::/0\" ]; } );",
	    "t.conf:2: egress.to cannot be a UNIX socket with egress.client_address \"connect\"" },
	{ "egress = ( {\n" WEB("127.0.0.1:80", "127.0.0.1:1") "\nsocket_mark = 4294967296L; } );",
	    "t.conf:3: egress.socket_mark must be from 0 to 4294967295, not 4294967296" },
	{ "ingress = ( {\n" WEB("127.0.0.1:80", "b:1") "\nforward_client = \"on\"; proxy_protocol = \"v1\"; } );",
	    "t.conf:3: ingress.forward_client and ingress.proxy_protocol exclude each other: the server gets one header" },
	{ "egress = ( {\n" WEB("127.0.0.1:80", "b:80") "\nproxy_protocol = \"v1\"; } );",
	    "t.conf:3: unknown key egress.proxy_protocol: it is a key of ingress\n" },
	{ "egress = ( {\n" WEB("127.0.0.1:80", "b:80") "\nmaxconn = 5; } );",
	    "t.conf:3: unknown key egress.maxconn, \"max_connections\" is meant?\n" },
	{ "ingress = ( {\n" WEB("127.0.0.1:80", "b:80") "\nbind = \"127.0.0.1:81\"; } );",
	    "t.conf:3: unknown key ingress.bind, \"listen\" is meant?\n" },
	{ "smcr = {\nworkers = 3; };", "t.conf:2: unknown key smcr.workers: it is a key outside of sections\n" },
	{ "ingress = ( {\n" WEB("127.0.0.1", "b:80") "} );",
	    "t.conf:2: ingress.listen has \"127.0.0.1\": the port is missing" },
	{ "ingress = ( {\n" WEB("[::1]", "b:80") "} );",
	    "t.conf:2: ingress.listen has \"[::1]\": the port is missing" },
	{ "ingress = ( {\n" WEB("5432", "b:80") "} );",
	    "t.conf:2: ingress.listen has \"5432\": the address before the port is missing" },
	{ "ingress = ( {\n" WEB("127.0.0.1:80", "192.0.2.2") "} );",
	    "t.conf:2: ingress.to has \"192.0.2.2\": the port is missing" },
	{ "\ndrain_timeout = \"10min\";",
	    "t.conf:2: drain_timeout must be seconds as an integer, or a string in ms, s, m or h like \"500ms\", not \"10min\"\n" },
	{ "ingress = ( {\nname = \"a b\"; listen = \"127.0.0.1:80\"; to = \"b:80\"; } );",
	    "t.conf:2: ingress.name must be" },
	{ "ingress = ( {\nname = \"a123456789a123456789a123456789a123456789a123456789a123456789a123\"; } );",
	    "t.conf:2: ingress.name is longer than 63 characters" },
	{ "\ningress = { };", "t.conf:2: ingress must be a list" },
	{ "ingress = {\n" WEB("127.0.0.1:80", "b:80") "};", "t.conf:1: ingress must be a list" },
	{ "\ningress = 1;", "t.conf:2: ingress must be a list" },
	{ "ingress = (\n1 );", "t.conf:2: ingress must have only groups" },
	{ "\nsmcr = ( );", "t.conf:2: smcr must be a group" },
	{ "\nsmcr = 5;", "t.conf:2: smcr must be a group" },
	{ "\nsmcr = { hold_off = \"10s\";\nhold_off_max = \"5s\"; };", "t.conf:2: smcr.hold_off is larger than" },
	{ "smcr = { add_link_retry = \"11s\";\nadd_link_retry_max = \"10s\"; };",
	    "t.conf:1: smcr.add_link_retry is larger than" },
	{ "smcr = { links_max = 9; };", "t.conf:1: smcr.links_max must be from 1 to 8, not 9" },
	{ "devices = ( { type = \"siw\";\naddress = \"127.0.0.1:80\"; } );", "t.conf:2: devices.address must be" },
	{ "devices = ( { type = \"siw\";\naddress = \"0.0.0.0\"; } );", "t.conf:2: devices.address must be one local" },
	{ "devices = ( { type = \"siw\"; address = \"::1\"; },\n { type = \"siw\"; address = \"::1\"; } );",
	    "t.conf:2: devices.address \"::1\" is already used in line 1" },
	{ "devices = ( { type = \"siw\"; address = \"::1\"; transport = \"sctp\"; },\n"
	  "{ type = \"siw\"; address = \"::1\"; transport = \"sctp\"; } );",
	    "t.conf:2: devices.address \"::1\" is already used in line 1" },
	{ "devices = ( { type = \"siw\"; address = \"::1\";\ntransport = \"udp\"; } );",
	    "t.conf:2: devices.transport must be one of \"tcp\", \"sctp\", not" },
	{ "devices = ( { type = \"siw\"; address = \"::1\";\nsctp_profile = \"draft\"; } );",
	    "t.conf:2: devices.sctp_profile must be one of \"rfc5043\", \"draft-00\", not" },
	{ "workers = 2; devices = ( { type = \"siw\"; address = \"::1\";\ntransport = \"sctp\"; } );",
	    "t.conf:2: devices.transport \"sctp\" needs workers = 1, or devices.sctp_stack \"kernel\"" },
	{ SCTP_DEVICE "sctp_stack = \"kernel\";\nsctp_udp = 9899; } ); workers = 2;",
	    "t.conf:2: devices.sctp_udp needs workers = 1" },
	{ SCTP_DEVICE "\nsctp_stack = \"linux\"; } );",
	    "t.conf:2: devices.sctp_stack must be one of \"auto\", \"kernel\", \"user\", not" },
	{ SCTP_DEVICE "sctp_stack = \"user\";\naddresses = [ \"192.0.2.2\" ]; } );",
	    "t.conf:2: devices.addresses needs the kernel's SCTP: devices.sctp_stack is user" },
	{ SCTP_DEVICE "\naddresses = [ \"2001:db8::1\" ]; } );",
	    "t.conf:2: devices.addresses and devices.address must be all IPv4 or all IPv6" },
	{ SCTP_DEVICE "\naddresses = [ \"192.0.2.2\", \"192.0.2.1\" ]; } );",
	    "t.conf:2: devices.addresses has devices.address" },
	{ SCTP_DEVICE "\naddresses = [ \"192.0.2.2\", \"192.0.2.2\" ]; } );",
	    "t.conf:2: devices.addresses has \"192.0.2.2\" twice" },
	{ SCTP_DEVICE "\naddresses = [ \"192.0.2.2\", \"0.0.0.0\" ]; } );",
	    "t.conf:2: devices.addresses has \"0.0.0.0\": a wildcard is not an address" },
	{ SCTP_DEVICE "\naddresses = [ \"192.0.2.2/24\" ]; } );",
	    "t.conf:2: devices.addresses has \"192.0.2.2/24\", which is no address" },
	{ SCTP_DEVICE "\naddresses = [ \"192.0.2.2\", \"192.0.2.3\", \"192.0.2.4\", \"192.0.2.5\" ]; } );",
	    "t.conf:2: devices.addresses has more than 3 entries" },
	{ "devices = ( { type = \"siw\"; interface = \"eth0\"; transport = \"sctp\";\naddresses = [ \"::1\" ]; } );",
	    "t.conf:2: devices.addresses needs devices.address" },
	{ "devices = ( { type = \"siw\"; address = \"::1\"; name = \"siw1\"; },\n { type = \"siw\"; address = \"::2\"; } );",
	    "t.conf:2: devices.name \"siw1\" is already used in line 1" },
	{ "devices = ( { type = \"siw\"; address = \"::1\";\nmpa_ports = \"80-70\"; } );",
	    "t.conf:2: devices.mpa_ports must have the lower port first" },
	{ "devices = ( { type = \"siw\"; address = \"::1\"; },\n"
	  "{ type = \"verbs\"; address = \"::1\";\nmpa_ports = \"7500\"; } );",
	    "t.conf:3: devices.mpa_ports overlaps that of line 1, a device of another type on the same address" },
	{ "devices = ( { type = \"verbs\"; interface = \"eth1\"; },\n"
	  "{ type = \"siw\"; interface = \"eth1\";\nmpa_ports = \"7471-7571\"; } );",
	    "t.conf:3: devices.mpa_ports overlaps that of line 1, a device of another type on the same address" },
	{ "devices = ( { type = \"verbs\"; interface = \"eth1\"; mpa_ports = 7570; },\n"
	  "{ type = \"siw\"; interface = \"eth1\"; } );",
	    "t.conf:2: devices.mpa_ports overlaps that of line 1" },
	{ "devices = ( { type = \"siw\"; address = \"::1\";\nmpa_ports = \"0-70\"; } );",
	    "t.conf:2: devices.mpa_ports must" },
	{ "devices = ( { type = \"siw\"; address = \"::1\";\nmpa_ports = \"1-65536\"; } );",
	    "t.conf:2: devices.mpa_ports" },
	{ "devices = ( { type = \"siw\"; address = \"::1\";\nmpa_ports = 65536; } );", "t.conf:2: devices.mpa_ports" },
	{ "devices = ( { type = \"siw\"; address = \"::1\";\nrtr = [ ]; } );",
	    "t.conf:2: devices.rtr must not be empty" },
	{ "devices = (\n{ type = \"siw\"; } );", "t.conf:2: devices.address or devices.interface is missing" },
	{ "devices = ( { type = \"siw\"; address = \"::1\";\ninterface = \"eth0\"; } );",
	    "t.conf:2: devices.interface and devices.address exclude each other" },
	{ "devices = ( { type = \"siw\"; interface = \"eth1\"; },\n { type = \"siw\"; interface = \"eth1\"; } );",
	    "t.conf:2: devices.interface \"eth1\" is already used in line 1" },
	{ "devices = ( { type = \"siw\";\ninterface = \"an-interface-0\" \"xy\"; } );",
	    "t.conf:2: devices.interface is longer than 15 characters" },
	{ "devices = ( { type = \"siw\";\ninterface = \"eth*\"; } );",
	    "t.conf:2: devices.interface must be a string, the name of an interface or \"*\", not \"eth*\"" },
	{ "devices = ( { type = \"siw\";\ninterface = \"..\"; } );", "t.conf:2: devices.interface must be" },
	{ "devices = ( {\ntype = \"card\"; address = \"::1\"; } );",
	    "t.conf:2: devices.type must be one of \"siw\", \"verbs\", not \"card\"" },
	{ "devices = (\n{ type = \"verbs\"; } );",
	    "t.conf:2: devices.device, devices.interface or devices.address is missing" },
	{ "devices = ( { type = \"verbs\"; device = \"mlx5_0\";\ninterface = \"eth0\"; } );",
	    "t.conf:1: devices.device and devices.interface exclude each other" },
	{ "devices = ( { type = \"verbs\"; address = \"::1\";\ndevice = \"*\"; } );",
	    "t.conf:2: devices.device and devices.address exclude each other" },
	{ "devices = ( { type = \"verbs\"; device = \"mlx5_0\"; },\n { type = \"verbs\"; port = 2; device = \"mlx5_0\"; } );",
	    "t.conf:2: devices.device \"mlx5_0\" is already used in line 1" },
	{ "devices = ( { type = \"verbs\"; device = \"*\";\nport = 1; } );",
	    "t.conf:2: devices.port is for one card, named in devices.device" },
	{ "devices = ( { type = \"verbs\"; interface = \"eth1\";\nport = 1; } );",
	    "t.conf:2: devices.port is for one card, named in devices.device" },
	{ "devices = ( { type = \"verbs\";\ndevice = \"mlx5_0/1\"; } );",
	    "t.conf:2: devices.device must be a string, the name of an RDMA card or \"*\", not \"mlx5_0/1\"" },
	{ "devices = ( { type = \"verbs\"; device = \"a\";\nretry_count = 7; } );",
	    "t.conf:2: devices.retry_count must be from 0 to 6, not 7" },
	{ "devices = ( { type = \"verbs\"; device = \"a\";\nbusy_poll = \"11ms\"; } );",
	    "t.conf:2: devices.busy_poll must be from 0 to 10ms, not \"11ms\"" },
	{ "devices = ( { type = \"verbs\"; device = \"a\";\ncrc = false; } );",
	    "t.conf:2: devices.crc is not a setting of type \"verbs\"" },
	{ "devices = ( { type = \"siw\"; address = \"::1\";\nretry_count = 3; } );",
	    "t.conf:2: devices.retry_count is not a setting of type \"siw\"" },
	{ "devices = ( { type = \"siw\"; address = \"::1\"; name = \"a\"; },\n"
	  "{ type = \"verbs\"; device = \"*\"; name = \"a\"; } );",
	    "t.conf:2: devices.name \"a\" is already used in line 1" },
	{ "log_level = \"info\";\nspin = \"on\";",
	    "t.conf:2: spin must be a word, or a string like \"50us\" or \"1ms\", not \"on\"" },
	{ "log_level = \"info\";\nspin = \"2ms\";", "t.conf:2: spin must be from 1us to 1ms, not \"2ms\"" },
	{ "log_level = \"info\";\nspin = \"0us\";", "t.conf:2: spin must be from 1us to 1ms, not \"0us\"" },
	{ "control = {\npath = \"relative\"; };", "t.conf:2: control.path must be a string, an absolute path" },
	{ "control = {\npath = \"/a\\nb\"; };", "t.conf:2: control.path has a control character" },
	{ "control = {\nmode = \"0888\"; };", "t.conf:2: control.mode must be a string of octal digits" },
	{ "control = {\nmode = \"07777\"; };", "t.conf:2: control.mode must be from 0000 to 0777" },
	{ "metrics = {\nlisten = \"unix:" RUNSTATEDIR "/smcrd/control\"; };",
	    "t.conf:2: metrics.listen is the path of the control socket" },
	{ "control = { readonly = \"/r\"; }; metrics = {\nlisten = \"unix:/r\"; };",
	    "t.conf:2: metrics.listen is the path of the read-only control socket" },
	{ "metrics = {\nlisten = \"127.0.0.1:80\"; };\ningress = ( { name = \"a\"; listen = \"0.0.0.0:80\"; to = \"127.0.0.1:81\"; } );",
	    "t.conf:2: metrics.listen overlaps listen of \"a\"" },
	{ "metrics = { listen = \"unix:/s\";\nallow = [ \"::1\" ]; };",
	    "t.conf:2: metrics.allow is for TCP; metrics.mode is that of a UNIX socket" },
	{ "keepalive = {\nidle = \"10500ms\"; };", "t.conf:2: keepalive.idle must be whole seconds" },
	/* names that a group has twice */
	{ "log_level = \"info\";\nlog_level = \"info\";",
	    "t.conf:2: duplicate setting name at or just before log_level = \"info\";\n" },
	{ "egress = ( );\nlog_level = \"info\";\negress = ( );",
	    "t.conf:3: duplicate setting name at or just before egress = ( );\n" },
	{ "devices = ( );\ndevices : [ ];", "t.conf:2: duplicate setting name at or just before devices : [ ];\n" },
	{ "egress = ( { name = \"a\"; },\n{ name = \"b\";\nname = \"c\"; } );",
	    "t.conf:3: duplicate setting name at or just before name = \"c\"; } );\n" },
	{ "smcr = { ueids = [ \"A\" ]; };\ndefaults = { egress = { idle_timeout = 1;\nidle_timeout = 2; }; };",
	    "t.conf:3: duplicate setting name at or just before idle_timeout = 2; }; };\n" },
	{ "defaults = { egress = { };\negress = { }; };",
	    "t.conf:2: duplicate setting name at or just before egress = { }; };\n" },
	/* libconfig's own */
	{ "true = 1;", "t.conf:1: syntax error at or just before true = 1;\n" },
	{ "a = [ 1,\n\"x\" ];",
	    "t.conf:2: a list in [ ] has strings or numbers, not both: at or just before \"x\" ];\n" },
	/* what libconfig would let pass */
	{ "\nsmcr = { max_connections = 4294967297; };", "t.conf:2: number out of range: 4294967297\n" },
	{ "\nsmcr = { max_connections = 0x100000001; };", "t.conf:2: number out of range: 0x100000001\n" },
	{ "\nsmcr = { max_connections = 99999999999999999999L; };",
	    "t.conf:2: number out of range: 99999999999999999999L\n" },
	{ "\nsmcr = { max_connections = -2147483649; };", "t.conf:2: number out of range: 2147483649\n" },
	{ "a4294967297 = 1;", "t.conf:1: unknown key a4294967297\n" },
	{ "\nlog_level = \"info", "t.conf:2: string without end\n" },
	{ "\nlog_level = \"info\\\"", "t.conf:2: string without end\n" },
	{ "\nlog_level = \"info\\", "t.conf:2: string without end\n" },
	{ "\n/* ...\n\n", "t.conf:2: comment without end\n" },
	{ "\n@include \"other.conf\"\n", "t.conf:2: @include is not supported\n" },
	{ "\na = ((((((((((1))))))))));", "t.conf:2: unknown key a\n" },
	/* grammar: libconfig says where it stopped */
	{ "a = 1;\nb = = 2;", "t.conf:2: syntax error at or just before b = = 2;\n" },
	{ "a = [ 1,\n, 2 ]", "t.conf:2: syntax error at or just before , 2 ]\n" },
	{ "ingress = (\n{ name = \"a\"; }\n \tegress = ( );",
	    "t.conf:3: syntax error at or just before egress = ( );\n" },
	{ "ingress = (\n{ name = \"a\"; }\n{ name = \"b\"; } );",
	    "t.conf:3: syntax error at or just before { name = \"b\"; } );\n" },
	{ "a = [ 1\n2 ]", "t.conf:2: syntax error at or just before 2 ]\n" },
	{ "a = [ 1\n)\nb = 1;", "t.conf:2: syntax error at or just before )\n" },
	{ "\ningress = ( { name = \"a\"; }\n", "t.conf:3: syntax error at or just before the end of the file\n" },
	{ "a = (\n{ b = (\n1, 2", "t.conf:3: syntax error at or just before 1, 2\n" },
	{ "ingress = (\n{ name = \"a\";\n);", "t.conf:3: syntax error at or just before );\n" },
	{ "ingress = (\n{ name = \"a\"\n);", "t.conf:3: syntax error at or just before );\n" },
	{ "\n[web]\n", "t.conf:2: syntax error at or just before [web]\n" },
	{ "\n}", "t.conf:2: syntax error at or just before }\n" },
	{ "\na = 1;;", "t.conf:2: syntax error at or just before a = 1;;\n" },
	{ "a\n1", "t.conf:2: syntax error at or just before 1\n" },
	{ "log_level\n", "t.conf:2: syntax error at or just before the end of the file\n" },
	{ "\nlog_level =", "t.conf:2: syntax error at or just before log_level =\n" },
	{ "\nlog_level = debug;", "t.conf:2: syntax error at or just before log_level = debug;\n" },
	{ "\na = 127.0.0.1:80", "t.conf:2: syntax error at or just before a = 127.0.0.1:80\n" },
	{ "\na = 'b'", "t.conf:2: syntax error at or just before a = 'b'\n" },
	{ "\ningress = [ { name = \"a\"; } ];",
	    "t.conf:2: syntax error at or just before ingress = [ { name = \"a\"; } ];\n" },
	{ "a = [\n[ 1 ] ];", "t.conf:2: syntax error at or just before [ 1 ] ];\n" },
	{ "a = 1 2; /* \x1b[2J\xe2\x80\x9c */\r\n",
	    "t.conf:1: syntax error at or just before a = 1 2; /* ?[2J??? */\n" },
	{ "a = 1 2; # 3456789 123456789 123456789 123456789 123456789 123456789",
	    "t.conf:1: syntax error at or just before "
	    "a = 1 2; # 3456789 123456789 123456789 123456789 123456789 1234...\n" },
	/* characters that a reader would not see, or take for another */
	{ "\nlog_level = \u201cinfo\u201d;",
	    "t.conf:2: U+201C, left double quotation mark is allowed only in comments and \"strings\"\n" },
	{ "\nlog_level = \u00abinfo\u00bb;", "t.conf:2: U+00AB, left-pointing double angle quotation mark is " },
	{ "\n\u2018log_level\u2019 = 1;", "t.conf:2: U+2018, left single quotation mark is " },
	{ "\nlog_level\u2019 = 1;", "t.conf:2: U+2019, right single quotation mark is " },
	{ "smcr = { ueids = [ \"A\",\n\u201eB\u201f ]; };", "t.conf:2: U+201E, double low-9 quotation mark is " },
	{ "\nlog_level = 1\u201f;", "t.conf:2: U+201F, double high-reversed-9 quotation mark is " },
	{ "\nlog_level\u00a0 = 1;", "t.conf:2: U+00A0, no-break space is allowed only in comments and \"strings\"\n" },
	{ "\n\u00a0log_level = 1;", "t.conf:2: U+00A0, no-break space is " },
	{ "\nlog_level =\u00a01;", "t.conf:2: U+00A0, no-break space is " },
	{ "ingress = (\n{ name = \"a\";\u00a0} );", "t.conf:2: U+00A0, no-break space is " },
	{ "a = (\n1\u200b);", "t.conf:2: U+200B, zero width space is " },
	{ "\nworkers = \u20131;", "t.conf:2: U+2013, en dash is " },
	{ "\nworkers = 1\u037e", "t.conf:2: U+037E is allowed only in comments and \"strings\"\n" },
	{ "\nworkers = \U0001f600;", "t.conf:2: U+1F600 is " },
	{ "\n\ufeffworkers = 1;", "t.conf:2: U+FEFF, byte order mark is " },
	{ "\nlog_level = \xe2\x80", "t.conf:2: byte 0xE2 is allowed only in comments and \"strings\"\n" },
	{ "\nlog_level\xa0= 1", "t.conf:2: byte 0xA0 is " },
	{ "\nlog_level = \xc0\xa0", "t.conf:2: byte 0xC0 is " },
	{ "\nlog_level = \xed\xa0\x80", "t.conf:2: byte 0xED is " },
	{ "\nlog_level = \x01", "t.conf:2: byte 0x01 is " },
	{ "\nlog_level = \x7f", "t.conf:2: byte 0x7F is " },
	{ "\nlog_level = \xc2\x85", "t.conf:2: U+0085 is " },
	{ "\xff\xfel", "t.conf: is UTF-16: save it as UTF-8\n" },
	{ "devices = ( { type = \"siw\";\nretry_cout = 1; } )", "t.conf:2: unknown key devices.retry_cout\n" },
	{ "devices = ( { type = \"verbs\";\nretry_cout = 1; } )",
	    "t.conf:2: unknown key devices.retry_cout, did you mean \"retry_count\"?\n" },
	{ "\nlog_levelllllllllllllllllllllllllllllll = 1",
	    "t.conf:2: unknown key log_levelllllllllllllllllllllllllllllll\n" },
};

START_TEST(one_error_of_grammar_is_said_once)
{
	parse_bad("a = ( 1 2 3 } ] = \nb = = ;", "t.conf:1: syntax error at or just before a = ( 1 2 3 } ] = \n");
	ck_assert_ptr_eq(strchr(msgs, '\n'), strrchr(msgs, '\n'));
}

/* What libconfig takes, beyond what examples use. */
START_TEST(grammar_is_libconfigs)
{
	static const char *const texts[] = {
		"log_level : \"info\" workers = 1, drain_timeout = 3",
		"log_level = \"in\" \"fo\" /* x */ \"\"; smcr : { }",
		"keepalive = { enabled = TRUE; idle = 10LL };",
		"ingress = [ ]; egress = ( ); devices = ( { type = \"siw\", address = \"::1\" rtr = ( \"send\" ) } )",
		"\f\r\n",
		"\ufeffworkers = 1;\r\n",
		"# no\u00a0break, \xa0\nlog_level = \"info\" /* \u201c */ // \u2013\n",

		"\ufeff",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		config_free(parse_ok(texts[i]));
}

static void
is_nearest_to_itself(const struct config_section *sec, const struct config_key *key)
{
	char name[128];

	snprintf(name, sizeof(name), "%s", key->name);
	ck_assert_str_eq(config_nearest(sec->place, name), key->name);
	if (strlen(name) < 2)
		return;
	memmove(name, name + 1, strlen(name));
	ck_assert_ptr_nonnull(config_nearest(sec->place, name));
}

START_TEST(every_key_is_found_by_a_like_one)
{
	each_key(is_nearest_to_itself);
	ck_assert_ptr_null(config_nearest(CONFIG_AT_TOP, ""));
	ck_assert_ptr_null(config_nearest(CONFIG_AT_TOP, "zz"));
}

START_LOOP_TEST(says_file_line_and_what, 0, sizeof(errors) / sizeof(errors[0]))
{
	parse_bad(errors[_i].text, errors[_i].msg);
}

START_TEST(workers_are_a_number_or_as_many_as_processors)
{
	struct config *cfg = parse_ok("");

	ck_assert_uint_eq(cfg->workers, 1);
	config_free(cfg);
	cfg = parse_ok("workers = \"auto\";");
	ck_assert_uint_eq(cfg->workers, 0);
	config_free(cfg);
	cfg = parse_ok("workers = 64;");
	ck_assert_uint_eq(cfg->workers, 64);
	config_free(cfg);
}

START_TEST(reports_all_errors_at_once)
{
	parse_bad(
	    "log_level = 7;\n"
	    "smcr = { nope = 1; clc_timeout = \"1h\"; };\n"
	    "ingress = (\n"
	    "{ listen = \"127.0.0.1\"; },\n"
	    "{ name = \"b\"; listen = \"127.0.0.1:80\"; to = \"x:1\"; },\n"
	    "{ name = \"b\"; listen = \"127.0.0.1:80\"; to = \"x:1\"; } );\n",
	    "t.conf:1: log_level must be");
	ck_assert_str_eq(msgs,
	    "t.conf:1: log_level must be a string, not 7\n"
	    "t.conf:2: unknown key smcr.nope\n"
	    "t.conf:2: smcr.clc_timeout must be from 100ms to 1m, not \"1h\"\n"
	    "t.conf:4: ingress.name is missing\n"
	    "t.conf:4: ingress.listen has \"127.0.0.1\": the port is missing\n"
	    "t.conf:4: ingress.to is missing\n"
	    "t.conf:6: ingress.name \"b\" is already used in line 5\n"
	    "t.conf:6: ingress.listen 127.0.0.1:80 is the same as 127.0.0.1:80 of \"b\" in line 5\n");
}

/* The load looks at top-level settings, lists and unknown keys each in a turn of its own. */
START_TEST(messages_stand_in_the_order_of_the_file)
{
	parse_bad(
	    "egress = ( { name = \"e\"; listen = \"127.0.0.1:1\"; to = 7; } );\n"
	    "ingress = ( { name = 8; listen = \"127.0.0.1:2\"; to = \"h:1\";\n"
	    "nope = 1; allow = [ ]; } );\n"
	    "log_level = 7;\n",
	    "t.conf:1: egress.to must be");
	const char *at = msgs;
	for (unsigned line = 1; line <= 4; line++) {
		char begin[32];

		snprintf(begin, sizeof(begin), "t.conf:%u: ", line);
		ck_assert_msg(strncmp(at, begin, strlen(begin)) == 0, "line %u in:\n%s", line, msgs);
		at = strchr(at, '\n') + 1;
		if (line == 3) {
			ck_assert_msg(strncmp(at, begin, strlen(begin)) == 0, "line %u in:\n%s", line, msgs);
			at = strchr(at, '\n') + 1;
		}
	}
	ck_assert_str_eq(at, "");
}

START_TEST(all_bad_entries_of_a_list_are_reported)
{
	static const struct {
		const char *text, *says;
	} lists[] = {
		{ "ingress = ( {\n" WEB(
		      "127.0.0.1:80", "b:80") " allow = [ \"x\", \"::1\", \"10.0.0.1/8\", \"::/200\" ]; } );",
		    "t.conf:2: ingress.allow has \"x\", which is no address\n"
		    "t.conf:2: ingress.allow has \"10.0.0.1/8\", which has address bits behind its prefix\n"
		    "t.conf:2: ingress.allow has \"::/200\", whose prefix is not 0..128\n" },
		{ "egress = ( {\n" TO("[ \"b\", \"c:1\", \"d:0\", \"c:1\" ]") " } );",
		    "t.conf:2: egress.to has \"b\": the port is missing\n"
		    "t.conf:2: egress.to must have a port from 1 to 65535, not \"d:0\"\n"
		    "t.conf:2: egress.to has \"c:1\" twice\n" },
		{ "smcr = {\nueids = [ \"A\", \"-\", \"A\" ]; };",
		    "t.conf:2: smcr.ueids has \"-\", which is no UEID: 1 to 32 of A-Z, 0-9, '.' and '-', a letter or digit first, "
		    "no two dots together\n"
		    "t.conf:2: smcr.ueids has \"A\" twice\n" },
		{ "ingress = ( {\n" WEB("unix:/s", "b:1") " allow_users = ( \"a b\", \"c\", -5 ); } );",
		    "t.conf:2: ingress.allow_users has \"a b\", which is no user\n"
		    "t.conf:2: ingress.allow_users has \"-5\", which is no user\n" },
		{ "devices = ( { type = \"siw\"; address = \"192.0.2.1\"; transport = \"sctp\"; sctp_stack = \"kernel\";\n"
		  "addresses = [ \"x\", \"0.0.0.0\" ]; } );",
		    "t.conf:2: devices.addresses has \"x\", which is no address\n"
		    "t.conf:2: devices.addresses has \"0.0.0.0\": a wildcard is not an address\n" },
		{ "devices = ( { type = \"siw\"; address = \"::1\";\nrtr = [ \"push\", \"pull\" ]; } );",
		    "t.conf:2: devices.rtr must be one of \"send\", \"write\", \"read\", not \"push\"\n"
		    "t.conf:2: devices.rtr must be one of \"send\", \"write\", \"read\", not \"pull\"\n" },
	};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		parse_bad(lists[i].text, "t.conf:2: ");
		ck_assert_str_eq(msgs, lists[i].says);
	}
}

START_TEST(a_long_list_of_bad_entries_ends_with_a_word)
{
	char text[8192] = "ingress = ( { name = \"a\"; listen = \"127.0.0.1:1\"; to = \"b:1\"; allow = [";
	static const char last[] = "t.conf:1: ingress.allow has more errors\n";

	for (unsigned i = 0; i < 400; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s\"host%u\"", i > 0 ? "," : "", i);
	strcat(text, "]; } );");
	parse_bad(text, "ingress.allow has \"host7\", which is no address\n");
	ck_assert_msg(strlen(msgs) > strlen(last) && strcmp(msgs + strlen(msgs) - strlen(last), last) == 0, "%s", msgs);
}

START_TEST(refuses_text_with_nul)
{
	static const struct {
		const char *text;
		size_t len;
		const char *says;
	} cases[] = {
		{ "log_level = \"info\";\0 nope = 1;", 29, "t.conf: has a NUL byte: not a configuration file\n" },
		{ "\0\0", 2, "t.conf: has a NUL byte: not a configuration file\n" },
		{ "\xff\xfel\0=\0", 6, "t.conf: is UTF-16: save it as UTF-8\n" },
		{ "\xfe\xff\0l\0=", 6, "t.conf: is UTF-16: save it as UTF-8\n" },
		{ "l\0=\0", 4, "t.conf: is UTF-16: save it as UTF-8\n" },
		{ "\0l\0=", 4, "t.conf: is UTF-16: save it as UTF-8\n" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct config *cfg = NULL;
		char *said;
		size_t len;
		FILE *err = open_memstream(&said, &len);

		ck_assert_int_lt(config_parse("t.conf", cases[i].text, cases[i].len, CONFIG_NO_LOOKUP, err, &cfg), 0);
		fclose(err);
		ck_assert_ptr_null(cfg);
		ck_assert_str_eq(said, cases[i].says);
		free(said);
	}
}

/* -- what gets through -- */

static const char full[] =
    "# comment with \"quotes\" and 99999999999\n"
    "include = \"conf.d/*.conf\"; log_level = \"debug\"; workers = 7; drain_timeout = \"1500ms\"; spin = \"50us\";\n"
    "control = { path = \"/run/a \\\"b\\\\\"; mode = \"0600\"; admin_group = 0; readonly = \"/run/r\"; readonly_mode = \"0644\"; };\n"
    "log = { format = \"json\"; connections = true; };\n"
    "tls = { cert = \"/t/c\"; key = \"/t/k\"; ca = \"/t/ca\"; crl = \"/t/crl\"; suites = [ \"TLS_AES_256_GCM_SHA384\" ]; };\n"
    "keepalive: { enabled = false; idle = \"2h\"; interval = 75; probes = 9; ack_timeout = 42; smcr_idle_min = \"2m\"; };\n"
    "smcr = { max_connections = 0x100; rfc_cursors = true; test_link_interval = 0;\n"
    "  ueids = [ \"LAB-1.X\", \"0123456789ABCDEFGHIJKLMNOPQRSTU.\" ]; smc_version = 2;\n"
    "  mpa_peers = [ \"192.0.2.0/24\", \"2001:db8::1\" ]; mpa_clients = [ \"192.0.2.7\" ]; };\n"
    "devices = ( { type = \"siw\"; address = \"192.0.2.1\"; transport = \"sctp\"; sctp_stack = \"kernel\";\n"
    "    addresses = [ \"192.0.2.3\", \"198.51.100.3\" ]; crc = false; markers = true; rtr = [ \"write\" ];\n"
    "  ird = 16; mpa_ports = 7000; fpdu_max = \"16K\"; },\n"
    "  { type = \"siw\"; name = \"second\"; address = \"2001:db8::1\"; mpa_ports = 0; },\n"
    "  { type = \"siw\"; interface = \"eth1\"; }, { type = \"siw\"; interface = \"*\"; name = \"any\"; },\n"
    "  { type = \"verbs\"; device = \"mlx5_0\"; port = 2; gid_type = \"roce_v1\"; traffic_class = 104;\n"
    "  service_level = 3; hop_limit = 1; timeout = 18; retry_count = 2; rnr_timer = 0; busy_poll = \"50us\";\n"
    "  mpa_ports = 7100; max_qp = 8; }, { type = \"verbs\"; device = \"*\"; },\n"
    "  { type = \"verbs\"; interface = \"eth1\"; name = \"card1\"; busy_poll = 0; },\n"
    "  { type = \"verbs\"; address = \"192.0.2.1\"; } );\n"
    "ingress = ( { name = \"web\"; listen = \"[::]:8080\"; to = \"web.example:80\";\n"
    "  allow = [ \"127.0.0.0/8\", \"::1\", \"2001:db8::/32\", \"192.0.2.7\", \"0.0.0.0/0\" ]; max_connections = 5;\n"
    "  connect_timeout = \"500ms\"; idle_timeout = \"5m\"; fallback = \"refuse\"; rmb_element = 131072;\n"
    "  peer = \"auto\"; probe = { interval = \"500ms\"; fall = 5; };\n"
    "  prewarm = true; proxy_protocol = \"v2\"; tls_name = \"gw-b.example.org\";\n"
    "  accept_proxy = [ \"192.0.2.7\", \"2001:db8::/64\" ]; } );\n"
    "egress = ( { name = \"db\"; listen = \"192.0.2.1:5432\"; to = \"[::1]:5432\"; peer_names = [ \"*\" ];\n"
    "  client_address = \"connect\"; clients = [ \"10.1.0.0/16\" ];\n"
    "  client_fallback = true; socket_mark = 0x5d; } );\n";

/* The settings of a service that listens on a UNIX socket exclude some of one that listens on TCP. */
static const char local[] =
    "tls = { name = \"gw-a\"; psk = \"/t/psk\"; };\n"
    "ingress = ( { name = \"redis\"; listen = \"unix:/run/redis.sock\"; to = \"192.0.2.2:6379\"; listen_mode = \"0666\";\n"
    "  listen_owner = \"redis\"; listen_group = 33; allow_users = ( \"redis\", 0, \"1000\", 4294967294L ); },\n"
    "  { name = \"plain\"; listen = \"unix:/run/plain\"; to = \"192.0.2.2:1\"; } );\n"
    "egress = ( { name = \"db\"; listen = \"192.0.2.1:5432\"; to = \"unix:/run/postgresql/.s.PGSQL.5432\"; } );\n";

/* The settings of a service without targets exclude those of targets. */
static const char captured[] =
    "ingress = ( { name = \"all\"; listen = \"127.0.0.1:7000\"; to = \"original\";\n"
    "  via = ( { nets = [ \"10.0.0.0/8:80-90\" ]; peer = \"*:15000\"; } ); } );\n"
    "egress = ( { name = \"any\"; listen = \"127.0.0.1:7001\"; to = \"requested\"; allow = [ \"192.0.2.1\" ];\n"
    "  to_allow = [ \"10.0.0.0/8:80-90\", \"[2001:db8::/32]:443\", \"192.0.2.7\" ]; } );\n";

START_TEST(stores_what_is_written)
{
	struct config *cfg = parse_ok(full);
	const struct config_service *web = &cfg->services[0], *db = &cfg->services[1];
	const struct siw_config *dev = &cfg->devices[0].siw;
	const struct verbs_config *card = &cfg->devices[4].verbs;
	char text[ADDR_STR_MAX];

	ck_assert_str_eq(cfg->path, "t.conf");
	ck_assert_int_eq(cfg->log_level, 4);
	ck_assert_uint_eq(cfg->workers, 7);
	ck_assert_uint_eq(cfg->drain_ms, 1500);
	ck_assert_uint_eq(cfg->spin_us, 50);
	ck_assert_str_eq(cfg->control_path, "/run/a \"b\\");
	ck_assert_uint_eq(cfg->control_mode, 0600);
	ck_assert_str_eq(cfg->control_readonly, "/run/r");
	ck_assert_uint_eq(cfg->control_readonly_mode, 0644);
	ck_assert(!cfg->keepalive.enabled);
	ck_assert_uint_eq(cfg->keepalive.idle_s, 7200);
	ck_assert_uint_eq(cfg->keepalive.interval_s, 75);
	ck_assert_uint_eq(cfg->keepalive.probes, 9);
	ck_assert_uint_eq(cfg->keepalive.ack_s, 42);
	ck_assert_uint_eq(cfg->keepalive.smcr_min_s, 120);
	ck_assert_uint_eq(cfg->smcr.conns_max, 256);
	ck_assert(cfg->smcr.rfc_cursors);
	ck_assert_uint_eq(cfg->smcr.keepalive_ms, 0);
	ck_assert_uint_eq(cfg->smcr.smc_version, 2);
	ck_assert_uint_eq(cfg->smcr.ueid_cnt, 2);
	ck_assert_mem_eq(cfg->smcr.ueids[0].b, "LAB-1.X                         ", CLC_EID_LEN);
	ck_assert_mem_eq(cfg->smcr.ueids[1].b, "0123456789ABCDEFGHIJKLMNOPQRSTU.", CLC_EID_LEN);
	ck_assert_uint_eq(cfg->device_cnt, 8);
	ck_assert(!cfg->devices_default);
	ck_assert_str_eq(cfg->devices[0].name, "siw0");
	ck_assert_int_eq(dev->transport, SIW_SCTP);
	ck_assert_int_eq(dev->sctp_stack, SIW_STACK_KERNEL);
	ck_assert_uint_eq(dev->more_addrs.cnt, 2);
	ck_assert_str_eq(addr_format(&dev->more_addrs.at[1], text, sizeof(text)), "198.51.100.3");
	ck_assert_str_eq(cfg->devices[1].name, "second");
	ck_assert_str_eq(cfg->devices[1].interface, "");
	ck_assert_str_eq(cfg->devices[2].interface, "eth1");
	ck_assert_str_eq(cfg->devices[2].name, "");
	ck_assert_int_eq(cfg->devices[2].addr.ss_family, 0);
	ck_assert_str_eq(cfg->devices[3].interface, "*");
	ck_assert_str_eq(cfg->devices[3].name, "any");
	ck_assert(!dev->crc && dev->markers);
	ck_assert_uint_eq(dev->rtr, RTR_WRITE);
	ck_assert_uint_eq(dev->ird, 16);
	ck_assert_uint_eq(dev->port_min, 7000);
	ck_assert_uint_eq(dev->port_max, 7000);
	ck_assert_uint_eq(dev->fpdu_max, 16384);
	ck_assert_uint_eq(cfg->devices[1].siw.port_max, 0);
	ck_assert_int_eq(cfg->devices[4].type, CONFIG_DEVICE_VERBS);
	ck_assert_str_eq(cfg->devices[4].card, "mlx5_0");
	ck_assert_str_eq(cfg->devices[4].name, "");
	ck_assert_uint_eq(cfg->devices[4].port, 2);
	ck_assert_int_eq(cfg->devices[4].gid_type, CONFIG_GID_ROCE_V1);
	ck_assert_uint_eq(card->traffic_class, 104);
	ck_assert_uint_eq(card->service_level, 3);
	ck_assert_uint_eq(card->hop_limit, 1);
	ck_assert_uint_eq(card->timeout, 18);
	ck_assert_uint_eq(card->retry_cnt, 2);
	ck_assert_uint_eq(card->min_rnr_timer, 0);
	ck_assert_uint_eq(card->busy_poll_us, 50);
	ck_assert_uint_eq(card->mpa_port_min, 7100);
	ck_assert_uint_eq(card->mpa_port_max, 7100);
	ck_assert_uint_eq(card->max_qp, 8);
	ck_assert_uint_eq(cfg->mpa_peers_cnt, 2);
	ck_assert_uint_eq(cfg->mpa_peers[0].prefix_len, 120);
	ck_assert_uint_eq(cfg->mpa_peers[1].addr[3], 0xb8);
	ck_assert_str_eq(cfg->devices[5].card, "*");
	ck_assert_str_eq(cfg->devices[6].interface, "eth1");
	ck_assert_str_eq(cfg->devices[6].name, "card1");
	ck_assert_int_eq(cfg->devices[7].addr.ss_family, AF_INET);
	ck_assert_uint_eq(cfg->devices[7].verbs.mpa_port_min, 7571);
	ck_assert_uint_eq(cfg->service_cnt, 2);
	ck_assert_int_eq(web->kind, CONFIG_INGRESS);
	ck_assert_str_eq(web->name, "web");
	ck_assert_str_eq(web->to[0].host, "web.example");
	ck_assert_uint_eq(web->to[0].port, 80);
	ck_assert_uint_eq(web->allow_cnt, 5);
	ck_assert_uint_eq(web->allow[0].prefix_len, 104);
	ck_assert_uint_eq(web->allow[1].prefix_len, 128);
	ck_assert_uint_eq(web->allow[2].prefix_len, 32);
	ck_assert_uint_eq(web->allow[4].prefix_len, 96);
	ck_assert_uint_eq(web->max_connections, 5);
	ck_assert_uint_eq(web->connect_ms, 500);
	ck_assert_uint_eq(web->idle_ms, 300000);
	ck_assert_int_eq(web->fallback, CONFIG_FALLBACK_REFUSE);
	ck_assert_uint_eq(web->elem_size, 131072);
	ck_assert(web->prewarm);
	ck_assert_int_eq(web->proxy_protocol, CONFIG_PROXY_V2);
	ck_assert_uint_eq(web->accept_proxy_cnt, 2);
	ck_assert_int_eq(db->kind, CONFIG_EGRESS);
	ck_assert_int_eq(db->client_address, CONFIG_CLIENT_CONNECT);
	ck_assert(db->client_fallback);
	ck_assert_uint_eq(db->socket_mark, 0x5d);
	ck_assert_uint_eq(db->clients_cnt, 1);
	ck_assert_str_eq(db->to[0].host, "::1");
	ck_assert_uint_eq(db->to[0].addr_cnt, 1);
	ck_assert_uint_eq(db->elem_size, 0); /* auto */
	ck_assert_int_eq(web->peer, SMCR_PEER_AUTO);
	ck_assert_int_eq(db->peer, SMCR_PEER_SMCRD);
	config_free(cfg);
}

START_TEST(stores_several_targets)
{
	struct config *cfg = parse_ok("egress = ( { " TO(
	                  "[ \"pg1:5432\", \"192.0.2.1:5433\" ]") "policy = \"spread\"; target_retry = 3; } );"),
	              *other = parse_ok("egress = ( { " TO(
	                  "[ \"pg1:5432\", \"192.0.2.1:5434\" ]") "policy = \"spread\"; target_retry = 3; } );");
	const struct config_service *svc = &cfg->services[0];
	char buf[CONFIG_TO_STR_MAX];

	ck_assert_uint_eq(svc->to_cnt, 2);
	ck_assert(!config_target_is_literal(&svc->to[0]));
	ck_assert(config_target_is_literal(&svc->to[1]));
	ck_assert_uint_eq(svc->to[0].addr_cnt, 0);
	ck_assert_uint_eq(svc->to[1].addr_cnt, 1);
	ck_assert_int_eq(svc->policy, CONFIG_POLICY_SPREAD);
	ck_assert_uint_eq(svc->retry_ms, 3000);
	ck_assert_str_eq(config_to_str(svc, buf), "pg1:5432, 192.0.2.1:5433");
	ck_assert(!config_service_equal(svc, &other->services[0]));
	ck_assert(config_service_equal(svc, svc));
	config_free(cfg);
	config_free(other);
}

START_TEST(a_long_list_of_targets_is_cut_where_it_is_shown)
{
	struct config_target to[CONFIG_TARGETS_MAX] = { { .port = 0 } };
	const struct config_service svc = { .to = to, .to_cnt = CONFIG_TARGETS_MAX };
	char buf[CONFIG_TO_STR_MAX];

	for (unsigned i = 0; i < CONFIG_TARGETS_MAX; i++) {
		memset(to[i].host, 'a', 100);
		to[i].port = 65535;
	}
	ck_assert_uint_lt(strlen(config_to_str(&svc, buf)), sizeof(buf));
	ck_assert_str_eq(buf + strlen(buf) - 6, "5, ...");
}

START_TEST(stores_unix_sockets)
{
	struct config *cfg = parse_ok(local);
	const struct config_service *redis = &cfg->services[0], *plain = &cfg->services[1], *db = &cfg->services[2];
	char buf[CONFIG_TARGET_STR_MAX];

	ck_assert_int_eq(redis->listen.ss_family, AF_UNIX);
	ck_assert_str_eq(addr_path(&redis->listen), "/run/redis.sock");
	ck_assert_uint_eq(redis->listen_mode, 0666);
	ck_assert_str_eq(redis->listen_owner.name, "redis");
	ck_assert_uint_eq(redis->listen_owner.id, UINT32_MAX); /* not looked up here */
	ck_assert_uint_eq(redis->listen_group.id, 33);
	ck_assert_uint_eq(redis->allow_users_cnt, 4);
	ck_assert_uint_eq(redis->allow_users[1].id, 0);
	ck_assert_uint_eq(redis->allow_users[2].id, 1000);
	ck_assert_uint_eq(redis->allow_users[3].id, 4294967294u);
	ck_assert_uint_eq(plain->listen_mode, 0660);
	ck_assert_str_eq(plain->listen_owner.name, "");
	ck_assert_uint_eq(plain->allow_users_cnt, 0);
	ck_assert_uint_eq(db->to[0].addr_cnt, 1);
	ck_assert_str_eq(addr_path(&db->to[0].addrs[0]), "/run/postgresql/.s.PGSQL.5432");
	ck_assert_str_eq(config_target_str(db->to, buf), "unix:/run/postgresql/.s.PGSQL.5432");
	config_free(cfg);
}

static int
load(const char *text)
{
	struct config *cfg = NULL;
	size_t len;

	free(msgs);
	FILE *err = open_memstream(&msgs, &len);
	int rc = config_parse("t.conf", text, strlen(text), 0, err, &cfg);
	fclose(err);
	if (rc == 0)
		ck_assert_uint_eq(cfg->services[0].allow_users[0].id, 0);
	config_free(cfg);
	return rc;
}

#define USERS(owner, group, allow)                                                                       \
	"ingress = ( { name = \"a\"; listen = \"unix:/s\"; to = \"127.0.0.1:1\";\nlisten_owner = " owner \
	";\nlisten_group = " group ";\nallow_users = [ \"root\", " allow " ]; } );"

START_TEST(users_and_groups_are_looked_up)
{
	ck_assert_msg(load(USERS("\"root\"", "\"root\"", "\"root\"")) == 0, "%s", msgs);
	ck_assert_int_eq(load(USERS("\"no-such\"", "\"no-one\"", "\"nobody-else\"")), -EINVAL);
	ck_assert_ptr_nonnull(strstr(msgs, "t.conf:2: there is no user \"no-such\"\n"));
	ck_assert_ptr_nonnull(strstr(msgs, "t.conf:3: there is no group \"no-one\"\n"));
	ck_assert_ptr_nonnull(strstr(msgs, "t.conf:4: there is no user \"nobody-else\"\n"));
}

/* The configuration of a file with these settings of control. */
static struct config *
load_control(const char *settings)
{
	char text[256];
	struct config *cfg = NULL;
	size_t len;

	snprintf(text, sizeof(text), "control = {\n%s };", settings);
	free(msgs);
	FILE *err = open_memstream(&msgs, &len);
	(void)config_parse("t.conf", text, strlen(text), 0, err, &cfg);
	fclose(err);
	return cfg;
}

START_TEST(the_admin_group_is_looked_up)
{
	const bool exists = getgrnam(CONFIG_ADMIN_GROUP) != NULL;
	struct config *cfg = load_control("admin_group = \"root\"; mode = \"0666\";");

	ck_assert_msg(cfg != NULL && msgs[0] == '\0', "%s", msgs);
	ck_assert_int_eq(cfg->control_admins.orders, CONFIG_ORDERS_GROUP);
	ck_assert_uint_eq(cfg->control_admins.gid, 0);
	config_free(cfg);
	ck_assert_ptr_null(load_control("admin_group = \"no-one\";"));
	ck_assert_str_eq(msgs, "t.conf:2: there is no group \"no-one\"\n");
	/* By default: nobody without the usual group, also with the mode of a canonical form. What is looked up is no setting. */
	cfg = load_control("mode = \"0660\";");
	ck_assert_int_eq(cfg->control_admins.orders, exists ? CONFIG_ORDERS_GROUP : CONFIG_ORDERS_NONE);
	char *text = print(cfg);
	ck_assert_ptr_null(strstr(text, "admin_group"));
	free(text);
	config_free(cfg);
	/* An earlier version's file. */
	cfg = load_control("mode = \"0666\";");
	ck_assert_int_eq(cfg->control_admins.orders, exists ? CONFIG_ORDERS_GROUP : CONFIG_ORDERS_ALL);
	ck_assert_int_eq(strstr(msgs, "t.conf:2: warning: control.mode alone permits orders") == NULL, exists);
	config_free(cfg);
}

static bool
same_group(enum config_place place, const void *a, const void *b)
{
	for (const struct config_key *k = config_keys; k->name != NULL; k++)
		if ((k->where & place) != 0 && (k->flags & CONFIG_NOT_PRINTED) == 0 && !config_value_equal(k, a, b))
			return false;
	return true;
}

static void
round_trip(const char *text)
{
	struct config *a = parse_ok(text);
	char *once = print(a);

	struct config *b = parse_ok(once);
	char *twice = print(b);
	ck_assert_str_eq(once, twice);
	ck_assert(same_group(CONFIG_AT_TOP | CONFIG_AT_CONTROL | CONFIG_AT_METRICS | CONFIG_AT_CONFINE |
	        CONFIG_AT_KEEPALIVE | CONFIG_AT_SMCR,
	    a, b));
	ck_assert_uint_eq(a->service_cnt, b->service_cnt);
	for (unsigned i = 0; i < a->service_cnt; i++)
		ck_assert(same_group(CONFIG_AT_INGRESS, &a->services[i], &b->services[i]) &&
		    a->services[i].kind == b->services[i].kind);
	ck_assert_uint_eq(a->device_cnt, b->device_cnt);
	for (unsigned i = 0; i < a->device_cnt; i++)
		ck_assert(same_group(CONFIG_AT_DEVICE, &a->devices[i], &b->devices[i]));
	free(once);
	free(twice);
	config_free(a);
	config_free(b);
}

static void
name_is_printed(const struct config_section *sec, const struct config_key *key)
{
	if ((key->flags & CONFIG_NOT_PRINTED) != 0)
		return;
	const bool psk = sec->place == CONFIG_AT_TLS &&
	    (strcmp(key->name, "name") == 0 || strcmp(key->name, "psk") == 0);
	struct config *cfg = parse_ok(key->type == CONFIG_T_VIAS || key->type == CONFIG_T_DESTS ? captured
	        : (key->flags & CONFIG_UNIX_ONLY) != 0 || psk                                   ? local
	                                                                                        : full);
	char *text = print(cfg), setting[128];

	snprintf(setting, sizeof(setting), "\t%s = ", key->name);
	ck_assert_msg(strstr(text, sec->name[0] != '\0' ? setting : setting + 1) != NULL, "%s", key->name);
	free(text);
	config_free(cfg);
}

START_TEST(prints_canonical_form_that_parses_to_the_same)
{
	round_trip("");
	round_trip(full);
	round_trip(local);
	round_trip(captured);
	each_key(name_is_printed);
}

static const char with_defaults[] =
    "egress = ( { name = \"a\"; listen = \"127.0.0.1:1\"; to = \"127.0.0.1:5\"; },\n"
    "  { name = \"b\"; listen = \"127.0.0.1:2\"; to = \"127.0.0.1:5\"; allow = [ \"::1\" ]; fallback = \"tcp\"; } );\n"
    "ingress = ( { name = \"c\"; listen = \"127.0.0.1:3\"; to = \"127.0.0.1:5\"; },\n"
    "  { name = \"d\"; listen = \"unix:/d\"; to = \"127.0.0.1:5\"; } );\n"
    "defaults = {\n"
    "  egress = { allow = [ \"192.0.2.0/24\", \"2001:db8::/32\" ]; fallback = \"refuse\"; max_connections = 7; };\n"
    "  ingress = { allow = [ \"127.0.0.0/8\" ]; allow_users = [ \"root\" ]; listen_mode = \"0600\"; };\n"
    "};\n";

START_TEST(defaults_are_for_services_that_do_not_say_otherwise)
{
	struct config *cfg = parse_ok(with_defaults);
	const struct config_service *svc = cfg->services; /* ingress first */

	ck_assert_str_eq(msgs, "");
	ck_assert_str_eq(svc[0].name, "c");
	/* Only what is for the place that it listens on. */
	ck_assert_uint_eq(svc[0].allow_cnt, 1);
	ck_assert_uint_eq(svc[0].allow_users_cnt, 0);
	ck_assert_uint_eq(svc[0].max_connections, 4096);
	ck_assert_uint_eq(svc[1].allow_cnt, 0);
	ck_assert_uint_eq(svc[1].allow_users_cnt, 1);
	ck_assert_uint_eq(svc[1].listen_mode, 0600);
	ck_assert_uint_eq(svc[2].allow_cnt, 2);
	ck_assert_int_eq(svc[2].fallback, CONFIG_FALLBACK_REFUSE);
	ck_assert_uint_eq(svc[2].max_connections, 7);
	ck_assert_uint_eq(svc[3].allow_cnt, 1);
	ck_assert_int_eq(svc[3].fallback, CONFIG_FALLBACK_TCP);
	ck_assert_uint_eq(svc[3].max_connections, 7);
	config_free(cfg);
	round_trip(with_defaults);
}

static const char with_probes[] =
    "defaults = { egress = { probe = { rise = 7; }; }; };\n"
    "egress = ( { name = \"a\"; listen = \"127.0.0.1:1\"; to = [ \"127.0.0.1:5\", \"b:6 backup\" ]; },\n"
    "  { name = \"b\"; listen = \"127.0.0.1:2-3\"; to = [ \"[::1]:5-6\", \"c:7-8 backup\" ];\n"
    "    probe = { kind = \"connect\"; send = \"a\\r\\n\\\"\\\\\\xff\"; expect = \"+\"; }; } );\n";

START_TEST(probes_and_backups)
{
	struct config *cfg = parse_ok(with_probes);
	const struct config_service *svc = cfg->services;
	char text[CONFIG_TARGET_STR_MAX];

	ck_assert_str_eq(msgs, "");
	ck_assert_uint_eq(cfg->service_cnt, 3);
	ck_assert_uint_eq(svc[0].probe.rise, 7);
	ck_assert_uint_eq(svc[0].probe.interval_ms, 5000);
	ck_assert_int_eq(svc[0].probe.kind, CONFIG_PROBE_AUTO);
	ck_assert(!svc[0].to[0].backup && svc[0].to[1].backup);
	ck_assert_str_eq(svc[0].to[1].host, "b");
	ck_assert_uint_eq(svc[1].probe.rise, 2);
	ck_assert_str_eq(svc[1].probe.send, "a\r\n\"\\\xff");
	ck_assert_str_eq(config_target_str(&svc[2].to[1], text), "c:8 backup");
	ck_assert_str_eq(config_target_str(&svc[2].to[0], text), "[::1]:6");
	config_free(cfg);
	round_trip(with_probes);
}

START_TEST(an_error_in_defaults_is_reported_once)
{
	parse_bad(
	    "defaults = { egress = {\nmax_connections = 0; }; };\n"
	    "egress = ( { name = \"a\"; listen = \"127.0.0.1:1\"; to = \"127.0.0.1:5\"; },\n"
	    "{ name = \"b\"; listen = \"127.0.0.1:2\"; to = \"127.0.0.1:5\"; } );\n",
	    "t.conf:2: defaults.egress.max_connections must be from 1 to 1048576, not 0\n");
	ck_assert_ptr_eq(strchr(msgs, '\n'), strrchr(msgs, '\n'));
}

START_TEST(a_name_that_is_twice_is_found_among_many)
{
	char text[8192];
	size_t n = 0;

	for (unsigned i = 0; i <= 256; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "a%u = 1;\n", i);
	snprintf(text + n, sizeof(text) - n, "a256 = 1;\n");
	parse_bad(text, "t.conf:258: duplicate setting name at or just before a256 = 1;\n");
	snprintf(text + n, sizeof(text) - n, "a0 = 1;\n");
	parse_bad(text, "t.conf:258: duplicate setting name at or just before a0 = 1;\n");
}

START_TEST(brackets_deeper_than_the_stack_of_the_parser_are_refused)
{
	char text[100001] = "a = ";

	memset(text + 4, '(', sizeof(text) - 5);
	parse_bad(text, "t.conf:1: memory exhausted at or just before a = ((((");
}

/* libconfig counts in 16 bits. */
START_TEST(lines_are_as_many_as_libconfig_counts)
{
	char *text = calloc(1, 65002);

	memset(text, '\n', 65001);
	parse_bad(text, "t.conf: has more than 65000 lines\n");
	strcpy(text + 64999, "x");
	parse_bad(text, "t.conf:65000: syntax error at or just before x\n");
	free(text);
}

/* A comma behind the last entry is an error of libconfig 1.5; others take it. */
START_TEST(a_comma_too_many_is_refused_in_its_place_or_taken)
{
	static const char text[] = "smcr = { ueids = [ \"A\",\n\n] };";
	struct config *cfg = parse(text);

	if (cfg == NULL)
		ck_assert_str_eq(msgs, "t.conf:3: syntax error at or just before ] };\n");
	else
		ck_assert_uint_eq(cfg->smcr.ueid_cnt, 1);
	config_free(cfg);
}

START_TEST(a_range_of_ports_is_a_service_for_each)
{
	static const char text[] =
	    "ingress = ( { name = \"web\"; listen = \"[::1]:8000-8010\"; to = \"web.example:18000-18010\";\n"
	    "allow = [ \"::1\" ]; max_connections = 7; }, { name = \"one\"; listen = \"127.0.0.1:1-1\"; to = \"a:2-2\"; },\n"
	    "{ name = \"last\"; listen = \"unix:/run/a:1-b\"; to = \"a-b:3\"; } );";
	struct config *cfg = parse_ok(text);
	char buf[ADDR_STR_MAX], to[CONFIG_TARGET_STR_MAX];

	ck_assert_uint_eq(cfg->service_cnt, 13);
	for (unsigned i = 0; i < 11; i++) {
		const struct config_service *svc = &cfg->services[i];

		snprintf(buf, sizeof(buf), "web-%u", 8000 + i);
		ck_assert_str_eq(svc->name, buf);
		snprintf(buf, sizeof(buf), "web.example:%u", 18000 + i);
		ck_assert_str_eq(config_target_str(svc->to, to), buf);
		ck_assert_uint_eq(addr_port(&svc->listen), 8000 + i);
		ck_assert_int_eq(svc->listen.ss_family, AF_INET6);
		ck_assert_uint_eq(svc->allow_cnt, 1);
		ck_assert_uint_eq(svc->max_connections, 7);
	}
	ck_assert_str_eq(cfg->services[11].name, "one-1");
	ck_assert_str_eq(cfg->services[12].name, "last");
	config_free(cfg);
	round_trip(text);
	config_free(parse_ok(RANGE("127.0.0.1:1-1024", "h:64512-65535")));
}

START_TEST(a_range_of_ports_may_have_several_targets)
{
	static const char text[] =
	    "ingress = ( { name = \"web\"; listen = \"127.0.0.1:8000-8002\"; policy = \"spread\";\n"
	    "to = [ \"127.0.0.1:18000-18002\", \"h2:18100-18102\", \"[::1]:3-5\" ]; } );";
	struct config *cfg = parse_ok(text);
	char to[CONFIG_TO_STR_MAX], expected[128];

	ck_assert_uint_eq(cfg->service_cnt, 3);
	for (unsigned i = 0; i < 3; i++) {
		snprintf(expected, sizeof(expected), "127.0.0.1:%u, h2:%u, [::1]:%u", 18000 + i, 18100 + i, 3 + i);
		ck_assert_str_eq(config_to_str(&cfg->services[i], to), expected);
		ck_assert_uint_eq(addr_port(&cfg->services[i].listen), 8000 + i);
	}
	config_free(cfg);
	round_trip(text);
	cfg = parse_ok(RANGES("127.0.0.1:1-2", "[ \"h:3-4\" ]"));
	ck_assert_uint_eq(cfg->services[1].to_cnt, 1);
	ck_assert_str_eq(config_to_str(&cfg->services[1], to), "h:4");
	config_free(cfg);
}

/* All that is wrong with an entry is in one line: not the range as well, which is right. */
START_TEST(a_range_with_wrong_targets_is_reported_once)
{
	static const char *const wrong[] = {
		RANGES("127.0.0.1:1-2", "[ \"h:1-2\", \"i:1\" ]"),
		RANGES("127.0.0.1:1-2", "[ 1, 2 ]"),
		RANGES("127.0.0.1:1-2", "[ ]"),
		"egress = ( { name = \"a\"; listen = \"127.0.0.1:1-2\"; } );",
		"egress = ( { name = \"a\"; to = \"127.0.0.1:1-2\"; } );",
		"egress = ( { listen = \"127.0.0.1:1-2\"; to = \"h:1-2\"; } );",
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		parse_bad(wrong[i], "t.conf:");
		ck_assert_msg(strchr(msgs, '\n') == strrchr(msgs, '\n'), "%s", msgs);
	}
}

START_TEST(ranges_that_do_not_fit_are_named)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ RANGE("127.0.0.1:0-1", "h:1-2"),
		    "t.conf:2: egress.listen \"127.0.0.1:0-1\" must have ports from 1 to 65535\n" },
		{ RANGE("127.0.0.1:2-1", "h:1-2"),
		    "t.conf:2: egress.listen \"127.0.0.1:2-1\" must have the lower port first\n" },
		{ RANGE("127.0.0.1:1-2", "h:1"),
		    "t.conf:2: egress.listen has a range of ports, to \"h:1\" has none\n" },
		{ RANGE("127.0.0.1:1", "h:1-2"),
		    "t.conf:3: egress.to \"h:1-2\" has a range of ports, listen has none\n" },
		{ RANGE("127.0.0.1:1-2", "h:1-3"), "t.conf:3: egress.to \"h:1-3\" has 3 ports, listen 2\n" },
		{ RANGES("127.0.0.1:1-2", "[ \"h:1-2\",\n\"i:2-1\" ]"),
		    "t.conf:4: egress.to \"i:2-1\" must have the lower port first\n" },
		{ RANGE("127.0.0.1:1-1025", "h:1-1025"), "t.conf:1: egress has more than 1024 entries\n" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		parse_bad(cases[i].text, "t.conf:");
		ck_assert_str_eq(msgs, cases[i].says);
	}
}

/* A name without room for the port; once. */
START_TEST(an_error_in_a_range_is_reported_once)
{
	parse_bad(
	    "egress = ( { name = \"0123456789012345678901234567890123456789012345678901234567\";\n"
	    "listen = \"127.0.0.1:80000-80001\"; to = \"h:1-2\"; } );",
	    "t.conf:2: egress.listen \"127.0.0.1:80000-80001\" must have ports from 1 to 65535\n");
	parse_bad(
	    "egress = ( {\nname = \"01234567890123456789012345678901234567890123456789012345678\";\n"
	    "listen = \"127.0.0.1:8000-8001\"; to = \"h:1-2\"; } );",
	    "t.conf:2: egress.name is longer than 63 characters\n");
	ck_assert_ptr_eq(strchr(msgs, '\n'), strrchr(msgs, '\n'));
}

START_TEST(spinning_is_a_word_or_a_time)
{
	static const struct {
		const char *text;
		uint32_t us;
	} cases[] = { { "off", 0 }, { "auto", CONFIG_SPIN_AUTO }, { "1us", 1 }, { "1ms", 1000 }, { "70us", 70 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[64], *printed = NULL;
		size_t len;

		snprintf(text, sizeof(text), "spin = \"%s\";", cases[i].text);
		struct config *cfg = parse_ok(text);
		ck_assert_uint_eq(cfg->spin_us, cases[i].us);
		FILE *out = open_memstream(&printed, &len);
		config_print(cfg, out);
		fclose(out);
		ck_assert_ptr_nonnull(strstr(printed, text));
		free(printed);
		config_free(cfg);
	}
}

START_TEST(versions_of_smc_are_words_or_numbers)
{
	static const struct {
		const char *text;
		unsigned version, ueids;
	} ok[] = {
		{ "", 0, 0 },
		{ "smcr = { smc_version = \"any\"; ueids = [ ]; };", 0, 0 },
		{ "smcr = { smc_version = 1; };", 1, 0 },
		{ "smcr = { smc_version = \"1\"; };", 1, 0 },
		{ "smcr = { smc_version = 2L; ueids = ( \"A\" ); };", 2, 1 },
		{ "smcr = { ueids = [ \"1\", \"2\", \"3\", \"4\", \"5\", \"6\", \"7\", \"A-.-.8\" ]; };", 0, 8 },
	};

	for (size_t i = 0; i < sizeof(ok) / sizeof(ok[0]); i++) {
		struct config *cfg = parse_ok(ok[i].text);

		ck_assert_uint_eq(cfg->smcr.smc_version, ok[i].version);
		ck_assert_uint_eq(cfg->smcr.ueid_cnt, ok[i].ueids);
		config_free(cfg);
		round_trip(ok[i].text);
	}
}

START_TEST(an_empty_file_is_all_defaults)
{
	struct config *cfg = parse_ok("");

	ck_assert_uint_eq(cfg->service_cnt, 0);
	ck_assert_uint_eq(cfg->device_cnt, 0);
	ck_assert_str_eq(cfg->control_path, RUNSTATEDIR "/smcrd/control");
	ck_assert_str_eq(cfg->control_readonly, "");
	ck_assert_uint_eq(cfg->control_readonly_mode, 0666);
	ck_assert_uint_eq(cfg->drain_ms, 30000);
	ck_assert(cfg->keepalive.enabled);
	/* An idle CLC connection has its probe before common firewalls forget it, after 240 s or 350 s. */
	ck_assert_uint_le(cfg->keepalive.idle_s, 120);
	ck_assert_uint_le(cfg->keepalive.smcr_min_s, 120);
	config_free(cfg);
}

START_TEST(different_addresses_may_share_a_port)
{
	config_free(
	    parse_ok("ingress = ( { name = \"a\"; listen = \"127.0.0.1:80\"; to = \"127.0.0.2:80\"; },\n"
	             "{ name = \"b\"; listen = \"127.0.0.2:80\"; to = \"127.0.0.3:80\"; },\n"
	             "{ name = \"c\"; listen = \"[::1]:80\"; to = \"127.0.0.3:80\"; } );"));
	config_free(
	    parse_ok("ingress = ( { name = \"a\"; listen = \"0.0.0.0:80\"; to = \"127.0.0.2:81\"; },\n"
	             "{ name = \"b\"; listen = \"[::1]:80\"; to = \"127.0.0.3:81\"; } );"));
}

START_TEST(warns_without_failing)
{
	char file[512];

	config_free(parse_ok(
	    "smcr = { max_connections = 10; };\n"
	    "ingress = ( { name = \"a\"; listen = \"127.0.0.1:80\"; to = \"b:80\";\nmax_connections = 11; } );"));
	ck_assert_str_eq(msgs,
	    "t.conf:3: warning: ingress.max_connections 11 will not be reached: "
	    "smcr.max_connections is 10\n");
	config_free(parse_ok("smcr = { smc_version = 1;\nueids = [ \"A\" ]; };"));
	ck_assert_str_eq(msgs, "t.conf:2: warning: smcr.ueids has no effect: smcr.smc_version is 1\n");
	config_free(parse_ok("devices = ( { type = \"siw\"; address = \"::1\";\nsctp_profile = \"draft-00\"; } );"));
	ck_assert_str_eq(msgs, "t.conf:2: warning: devices.sctp_profile has no effect: devices.transport is tcp\n");
	config_free(parse_ok("devices = ( { type = \"siw\"; address = \"::1\";\nsctp_udp = 1; } );"));
	ck_assert_str_eq(msgs, "t.conf:2: warning: devices.sctp_udp has no effect: devices.transport is tcp\n");
	config_free(parse_ok("devices = ( { type = \"siw\"; address = \"::1\"; sctp_udp = 0; addresses = [ ]; } );"));
	ck_assert_str_eq(msgs, "");
	config_free(parse_ok(SCTP_DEVICE "sctp_udp = 9899; } );"));
	ck_assert_str_eq(msgs, "");
	config_free(parse_ok("workers = 4; " SCTP_DEVICE "sctp_stack = \"kernel\"; addresses = [ ]; } );"));
	ck_assert_str_eq(msgs, "");
	/* One address, all transports. */
	snprintf(file, sizeof(file),
	    "devices = ( { type = \"siw\"; address = \"::1\"; transport = \"sctp\"; sctp_stack = \"kernel\"; },\n"
	    "{ type = \"siw\"; address = \"::1\"; transport = \"sctp\"; sctp_stack = \"%s\"; },\n"
	    "{ type = \"siw\"; address = \"::1\"; } );",
	    config_has_user_sctp() ? "user" : "auto");
	config_free(parse_ok(file));
	ck_assert_str_eq(msgs, "");
	config_free(
	    parse_ok("devices = ( { type = \"verbs\"; device = \"*\"; },\n"
	             "{ type = \"siw\"; interface = \"eth1\";\nmpa_ports = 7600; } );"));
	ck_assert_msg(
	    strstr(msgs, "t.conf:3: warning: devices.mpa_ports overlaps that of line 1: ") != NULL, "%s", msgs);
}

/* What -T prints has every default written out. */
START_TEST(defaults_written_out_are_no_reason_to_warn)
{
	static const char *const texts[] = {
		"",
		"metrics = { };",
		"smcr = { max_connections = 10; }; ingress = ( { " WEB("127.0.0.1:80", "b:80") " } );",
		"devices = ( { type = \"siw\"; address = \"::1\"; } );",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct config *cfg = parse_ok(texts[i]);
		char *text = print(cfg);

		config_free(cfg);
		config_free(parse_ok(text));
		ck_assert_msg(strcmp(msgs, "") == 0, "%s\nfor:\n%s", msgs, text);
		free(text);
	}
	config_free(parse_ok("\nmetrics = { mode = \"0600\"; };"));
	ck_assert_str_eq(msgs, "t.conf:2: warning: metrics has no effect without metrics.listen\n");
	config_free(parse_ok("\nmetrics = { allow = [ \"::1\" ]; };"));
	ck_assert_str_eq(msgs, "t.conf:2: warning: metrics has no effect without metrics.listen\n");
}

START_TEST(ports_of_sctp_are_no_cards)
{
	config_free(
	    parse_ok("workers = 1; devices = ( { type = \"verbs\"; address = \"127.0.0.1\"; mpa_ports = 7471; },\n"
	             "{ type = \"siw\"; address = \"127.0.0.1\"; transport = \"sctp\"; mpa_ports = 7471; } );"));
	ck_assert_str_eq(msgs, "");
	config_free(
	    parse_ok("workers = 1; devices = ( { type = \"siw\"; interface = \"eth1\"; transport = \"sctp\"; },\n"
	             "{ type = \"verbs\"; device = \"*\"; mpa_ports = \"7471-7570\"; } );"));
	ck_assert_str_eq(msgs, "");
}

START_TEST(devices_of_both_types_have_ports_of_their_own)
{
	config_free(
	    parse_ok("devices = ( { type = \"verbs\"; interface = \"eth1\"; },\n"
	             "{ type = \"siw\"; interface = \"eth1\"; },\n"
	             "{ type = \"siw\"; interface = \"eth2\"; mpa_ports = \"7571-7670\"; } );"));
	ck_assert_str_eq(msgs, "");
	config_free(
	    parse_ok("devices = ( { type = \"verbs\"; interface = \"eth1\"; mpa_ports = 0; },\n"
	             "{ type = \"siw\"; interface = \"eth1\"; mpa_ports = 0; } );"));
	ck_assert_str_eq(msgs, "");
	config_free(
	    parse_ok("devices = ( { type = \"verbs\"; address = \"127.0.0.1\"; mpa_ports = 7471; },\n"
	             "{ type = \"siw\"; address = \"127.0.0.2\"; } );"));
	ck_assert_str_eq(msgs, "");
}

/* -- files and default devices -- */

static int
load_file(const char *text, struct config **cfg)
{
	char path[] = "/tmp/check_config.XXXXXX";
	int fd = mkstemp(path);
	size_t len;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	free(msgs);
	FILE *err = open_memstream(&msgs, &len);
	int rc = config_load(path, NULL, err, cfg);
	fclose(err);
	unlink(path);
	return rc;
}

#define LABEL "0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz"

/* Nobody has the first name (RFC 6761), which takes a name server to know; the second has a label that is longer than any. */
START_TEST(a_name_of_a_range_is_looked_up_once)
{
	static const char *const names[] = { "no-such.invalid", LABEL };
	struct config *cfg = NULL;
	char text[256];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(text, sizeof(text),
		    "egress = ( { name = \"a\"; listen = \"127.0.0.1:8001-8009\"; to = \"%s:1-9\"; } );", names[i]);
		(void)load_file(text, &cfg);
		ck_assert_ptr_nonnull(strstr(msgs, ":1: "));
		ck_assert_ptr_nonnull(strstr(msgs, "cannot resolve "));
		ck_assert_ptr_eq(strchr(msgs, '\n'), strrchr(msgs, '\n'));
		config_free(cfg);
		cfg = NULL;
	}
	ck_assert_msg(
	    load_file(
	        "egress = ( { name = \"a\"; listen = \"127.0.0.1:8001-8003\"; to = [ \"127.0.0.1:1-3\", \"localhost:4-6\" ]; } );",
	        &cfg) == 0,
	    "%s", msgs);
	ck_assert_uint_eq(cfg->service_cnt, 3);
	for (unsigned i = 0; i < 3; i++) {
		const struct config_target *to = &cfg->services[i].to[1];

		ck_assert_uint_ge(to->addr_cnt, 1);
		ck_assert_uint_eq(to->addr_cnt, cfg->services[0].to[1].addr_cnt);
		for (unsigned k = 0; k < to->addr_cnt; k++) {
			ck_assert(addr_same_host(&to->addrs[k], &cfg->services[0].to[1].addrs[k]));
			ck_assert_uint_eq(addr_port(&to->addrs[k]), i + 4);
		}
	}
	config_free(cfg);
}

START_TEST(one_default_device_for_each_local_address)
{
	struct config *cfg;
	char buf[ADDR_STR_MAX];

	ck_assert_msg(load_file("ingress = ( { name = \"a\"; listen = \"0.0.0.0:1080\"; to = \"127.0.0.9:80\"; } );\n"
	                        "egress = ( { name = \"b\"; listen = \"127.0.0.1:80\"; to = \"localhost:81\"; },\n"
	                        "{ name = \"c\"; listen = \"127.0.0.5:80\"; to = \"127.0.0.1:81\"; } );",
	                  &cfg) == 0,
	    "%s", msgs);
	ck_assert_uint_eq(cfg->device_cnt, 2);
	ck_assert(cfg->devices_default);
	ck_assert_str_eq(addr_format(&cfg->devices[0].addr, buf, sizeof(buf)), "127.0.0.1");
	ck_assert_str_eq(addr_format(&cfg->devices[1].addr, buf, sizeof(buf)), "127.0.0.5");
	ck_assert_str_eq(cfg->devices[0].name, "siw0");
	ck_assert_str_eq(cfg->devices[1].name, "siw1");
	ck_assert_uint_eq(cfg->devices[1].siw.port_min, 7471);
	ck_assert_uint_ge(cfg->services[1].to[0].addr_cnt, 1);
	ck_assert_uint_eq(addr_port(&cfg->services[1].to[0].addrs[0]), 81);
	char *text = print(cfg);
	config_free(cfg);
	cfg = parse_ok(text);
	ck_assert_uint_eq(cfg->device_cnt, 2);
	ck_assert(!cfg->devices_default);
	config_free(cfg);
	free(text);
}

START_TEST(a_wildcard_takes_the_addresses_of_interfaces)
{
	struct config *cfg;
	unsigned loopbacks = 0;

	ck_assert_msg(
	    load_file("egress = ( { name = \"a\"; listen = \"0.0.0.0:80\"; to = \"127.0.0.1:81\"; } );", &cfg) == 0,
	    "%s", msgs);
	ck_assert_uint_ge(cfg->device_cnt, 1);
	ck_assert_uint_le(cfg->device_cnt, SMCR_LINKS_MAX);
	for (unsigned i = 0; i < cfg->device_cnt; i++) {
		ck_assert_int_eq(cfg->devices[i].addr.ss_family, AF_INET);
		loopbacks += addr_is_loopback(&cfg->devices[i].addr);
	}
	ck_assert(loopbacks > 0 || cfg->device_cnt == SMCR_LINKS_MAX);
	config_free(cfg);
}

START_TEST(default_devices_are_bounded)
{
	char text[4096] = "egress = (\n", svc[128];
	struct config *cfg;

	for (unsigned i = 0; i < SMCR_LINKS_MAX + 3; i++) {
		snprintf(svc, sizeof(svc), "%s{ name = \"s%u\"; listen = \"127.0.1.%u:80\"; to = \"127.0.0.1:81\"; }\n",
		    i > 0 ? "," : "", i, i);
		strcat(text, svc);
	}
	strcat(text, ");");
	ck_assert_msg(load_file(text, &cfg) == 0, "%s", msgs);
	ck_assert_uint_eq(cfg->device_cnt, SMCR_LINKS_MAX);
	ck_assert_msg(strstr(msgs, "warning: no device for 127.0.1.8 ") != NULL, "%s", msgs);
	ck_assert_ptr_eq(strchr(msgs, '\n'), strrchr(msgs, '\n'));
	config_free(cfg);
}

START_TEST(says_why_a_file_cannot_be_read)
{
	struct config *cfg = NULL;
	size_t len;

	free(msgs);
	FILE *err = open_memstream(&msgs, &len);
	ck_assert_int_lt(config_load("/nonexistent/smcrd.conf", NULL, err, &cfg), 0);
	ck_assert_int_lt(config_load("/tmp", NULL, err, &cfg), 0);
	ck_assert_int_lt(config_load("/dev/zero", NULL, err, &cfg), 0);
	fclose(err);
	ck_assert_ptr_null(cfg);
	ck_assert_str_eq(msgs,
	    "/nonexistent/smcrd.conf: cannot be read: No such file or directory\n"
	    "/tmp: cannot be read: is a directory\n/dev/zero: cannot be read: larger than 1 MiB\n");
}
