/*
 * Parses requests of control clients. Strict: a field that is not known, or
 * that the command does not take, is an error, because a filter that is
 * silently ignored would give a wrong answer.
 */
#include "daemon/control/control_request.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/addr.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define SHOWN_MAX 40 /* of a client's text in an error message */

static const char *const commands[] = {
	[CONTROL_STATUS] = "status",
	[CONTROL_DEVICES] = "devices",
	[CONTROL_GROUPS] = "groups",
	[CONTROL_LINKS] = "links",
	[CONTROL_CONNECTIONS] = "connections",
	[CONTROL_RMBS] = "rmbs",
	[CONTROL_STATS] = "stats",
	[CONTROL_RELOAD] = "reload",
	[CONTROL_DRAIN] = "drain",
	[CONTROL_CHECK] = "check",
	[CONTROL_TRACE] = "trace",
	[CONTROL_REBALANCE] = "rebalance",
	[CONTROL_LINK_DELETE] = "link-delete",
};

static const char *const modes[] = {
	[SESSION_SETUP] = "setup",
	[SESSION_SMCR] = "smcr",
	[SESSION_TCP] = "tcp",
};

static const char *const kinds[] = {
	[SMCR_TRACE_CLC] = "clc",
	[SMCR_TRACE_LLC] = "llc",
	[SMCR_TRACE_CDC] = "cdc",
};

void
control_error_set(struct control_error *err, const char *code, const char *fmt, ...)
{
	va_list ap;

	err->code = code;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
}

const char *
control_command_str(enum control_command c)
{
	return commands[c];
}

/* Index of word in names, or -1. */
static int
find_word(const char *const *names, size_t n, const char *word)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(names[i], word) == 0)
			return (int)i;
	return -1;
}

static int
bad_value(struct control_error *err, const char *field, const char *want)
{
	control_error_set(err, "bad-request", "\"%s\" must be %s", field, want);
	return -EINVAL;
}

static int
take_int(const json_t *v, const char *field, json_int_t min, json_int_t max, uint32_t *out, struct control_error *err)
{
	json_int_t n = json_integer_value(v);

	if (!json_is_integer(v) || n < min || n > max) {
		control_error_set(err, "bad-request", "\"%s\" must be a whole number from %lld to %lld", field,
		    (long long)min, (long long)max);
		return -EINVAL;
	}
	*out = (uint32_t)n;
	return 0;
}

static int
take_service(const json_t *v, struct control_request *req, struct control_error *err)
{
	const char *s = json_string_value(v);

	if (s == NULL || s[0] == '\0' || strlen(s) >= sizeof(req->service))
		return bad_value(err, "service", "the name of a service");
	strcpy(req->service, s);
	return 0;
}

static int
take_mode(const json_t *v, struct control_request *req, struct control_error *err)
{
	const char *s = json_string_value(v);
	int i = s != NULL ? find_word(modes, ARRAY_LEN(modes), s) : -1;

	if (i < 0)
		return bad_value(err, "mode", "one of \"smcr\", \"tcp\", \"setup\"");
	req->modes = 1u << i;
	return 0;
}

static int
take_kinds(const json_t *v, struct control_request *req, struct control_error *err)
{
	unsigned set = 0;

	for (size_t i = 0; json_is_array(v) && i < json_array_size(v); i++) {
		const char *s = json_string_value(json_array_get(v, i));
		int k = s != NULL ? find_word(kinds, ARRAY_LEN(kinds), s) : -1;

		if (k < 0)
			return bad_value(err, "kinds", "a list of \"clc\", \"llc\", \"cdc\"");
		set |= 1u << k;
	}
	if (set == 0)
		return bad_value(err, "kinds", "a list of \"clc\", \"llc\", \"cdc\"");
	req->kinds = set;
	return 0;
}

static int
take_group(const json_t *v, struct control_request *req, struct control_error *err)
{
	return take_int(v, "group", 1, UINT32_MAX, &req->group, err);
}

static int
take_link(const json_t *v, struct control_request *req, struct control_error *err)
{
	return take_int(v, "link", 1, UINT8_MAX, &req->link, err);
}

static int
take_token(const json_t *v, struct control_request *req, struct control_error *err)
{
	return take_int(v, "token", 1, UINT32_MAX, &req->token, err);
}

static int
take_timeout(const json_t *v, struct control_request *req, struct control_error *err)
{
	return take_int(v, "timeout_ms", 1, CONTROL_CHECK_MAX_MS, &req->timeout_ms, err);
}

/* Numeric only: looking up names would hold the data path. */
static int
take_peer(const json_t *v, struct control_request *req, struct control_error *err)
{
	const char *s = json_string_value(v);

	if (s == NULL || addr_parse_port(s, &req->peer) != 0)
		return bad_value(
		    err, "peer", "an IP address with port, such as \"192.0.2.1:80\" or \"[2001:db8::1]:80\"");
	return 0;
}

/* Looked at before the other fields. */
static int
take_nothing(const json_t *v, struct control_request *req, struct control_error *err)
{
	(void)v;
	(void)req;
	(void)err;
	return 0;
}

#define ONLY(cmd) (1u << (cmd))
#define ALL_COMMANDS (~0u)

static const struct field {
	const char *name;
	unsigned commands; /* that take it */
	int (*take)(const json_t *, struct control_request *, struct control_error *);
} fields[] = {
	{ "command", ALL_COMMANDS, take_nothing },
	{ "version", ALL_COMMANDS, take_nothing },
	{ "service", ONLY(CONTROL_CONNECTIONS), take_service },
	{ "mode", ONLY(CONTROL_CONNECTIONS), take_mode },
	{ "group",
	    ONLY(CONTROL_CONNECTIONS) | ONLY(CONTROL_LINKS) | ONLY(CONTROL_RMBS) | ONLY(CONTROL_TRACE) |
	        ONLY(CONTROL_REBALANCE) | ONLY(CONTROL_LINK_DELETE),
	    take_group },
	{ "link", ONLY(CONTROL_LINK_DELETE), take_link },
	{ "token", ONLY(CONTROL_TRACE), take_token },
	{ "kinds", ONLY(CONTROL_TRACE), take_kinds },
	{ "peer", ONLY(CONTROL_CHECK), take_peer },
	{ "timeout_ms", ONLY(CONTROL_CHECK), take_timeout },
};

static const struct field *
find_field(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (strcmp(fields[i].name, name) == 0)
			return &fields[i];
	return NULL;
}

static int
parse_command(const json_t *root, enum control_command *out, struct control_error *err)
{
	const char *s = json_string_value(json_object_get(root, "command"));
	int i;

	if (s == NULL) {
		control_error_set(err, "bad-request", "\"command\" is missing or is no string");
		return -EINVAL;
	}
	i = find_word(commands, ARRAY_LEN(commands), s);
	if (i < 0) {
		control_error_set(err, "unknown-command", "unknown command \"%.*s\"", SHOWN_MAX, s);
		return -EINVAL;
	}
	*out = (enum control_command)i;
	return 0;
}

static int
check_version(const json_t *root, struct control_error *err)
{
	const json_t *v = json_object_get(root, "version");

	if (v == NULL || json_integer_value(v) == CONTROL_VERSION)
		return 0;
	control_error_set(err, "unsupported-version", "this daemon understands \"version\": %d only", CONTROL_VERSION);
	return -EINVAL;
}

static int
check_needs(const struct control_request *req, struct control_error *err)
{
	const char *what = NULL;

	if (req->command == CONTROL_CHECK && req->peer.ss_family == AF_UNSPEC)
		what = "\"peer\"";
	else if (req->command == CONTROL_LINK_DELETE && (req->group == 0 || req->link == 0))
		what = "\"group\" and \"link\"";
	if (what == NULL)
		return 0;
	control_error_set(err, "bad-request", "\"%s\" needs %s", commands[req->command], what);
	return -EINVAL;
}

static int
parse_fields(json_t *root, struct control_request *req, struct control_error *err)
{
	const char *name;
	json_t *v;

	json_object_foreach(root, name, v)
	{
		const struct field *f = find_field(name);

		if (f == NULL || (f->commands & 1u << req->command) == 0) {
			control_error_set(err, "unknown-field", "\"%s\" does not take \"%.*s\"", commands[req->command],
			    SHOWN_MAX, name);
			return -EINVAL;
		}
		if (f->take(v, req, err) != 0)
			return -EINVAL;
	}
	return check_needs(req, err);
}

static int
parse_root(json_t *root, struct control_request *out, struct control_error *err)
{
	struct control_request req = { .modes = ~0u, .kinds = ~0u, .timeout_ms = CONTROL_CHECK_MS };

	if (!json_is_object(root)) {
		control_error_set(err, "bad-request", "a request is a JSON object");
		return -EINVAL;
	}
	if (check_version(root, err) != 0 || parse_command(root, &req.command, err) != 0 ||
	    parse_fields(root, &req, err) != 0)
		return -EINVAL;
	*out = req;
	return 0;
}

int
control_request_parse(const char *line, size_t len, struct control_request *out, struct control_error *err)
{
	json_error_t jerr;
	json_t *root = json_loadb(line, len, JSON_REJECT_DUPLICATES, &jerr);
	int rc;

	if (root == NULL) {
		control_error_set(err, "bad-json", "no JSON at byte %d: %s", jerr.position, jerr.text);
		return -EINVAL;
	}
	rc = parse_root(root, out, err);
	json_decref(root);
	return rc;
}
