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

#define MODE_ROW(mode, word) [SESSION_##mode] = word,
#define KIND_ROW(kind, word) [SMCR_TRACE_##kind] = word,
#define OR_WORD(constant, word) ", \"" word "\""

const char *const control_mode_words[] = { CONTROL_MODE_WORDS(MODE_ROW) };
const char *const control_kind_words[] = { CONTROL_KIND_WORDS(KIND_ROW) };
/* The words as a list for error texts, with a comma in front. */
static const char mode_list[] = CONTROL_MODE_WORDS(OR_WORD);
static const char kind_list[] = CONTROL_KIND_WORDS(OR_WORD);

/* Index of word in names, or -1. */
static int
find_word(const char *const *names, size_t n, const json_t *word)
{
	for (size_t i = 0; json_is_string(word) && i < n; i++)
		if (strcmp(names[i], json_string_value(word)) == 0)
			return (int)i;
	return -1;
}

static int __attribute__((format(printf, 3, 4)))
refuse(struct control_error *err, const char *code, const char *fmt, ...)
{
	va_list ap;

	err->code = code;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static int
take_int(const json_t *v, const char *field, json_int_t min, json_int_t max, uint32_t *out, struct control_error *err)
{
	json_int_t n = json_integer_value(v);

	if (!json_is_integer(v) || n < min || n > max)
		return refuse(err, "bad-request", "\"%s\" must be a whole number from %lld to %lld", field,
		    (long long)min, (long long)max);
	*out = (uint32_t)n;
	return 0;
}

static int
take_service(const json_t *v, struct control_request *req, struct control_error *err)
{
	const char *s = json_string_value(v);

	if (s == NULL || s[0] == '\0' || strlen(s) >= sizeof(req->service))
		return refuse(err, "bad-request", "\"service\" must be the name of a service");
	strcpy(req->service, s);
	return 0;
}

static int
take_mode(const json_t *v, struct control_request *req, struct control_error *err)
{
	int i = find_word(control_mode_words, ARRAY_LEN(control_mode_words), v);

	if (i < 0)
		return refuse(err, "bad-request", "\"mode\" must be one of %s", mode_list + 2);
	req->modes = 1u << i;
	return 0;
}

static int
take_kinds(const json_t *v, struct control_request *req, struct control_error *err)
{
	bool bad = !json_is_array(v) || json_array_size(v) == 0;

	req->kinds = 0;
	for (size_t i = 0; !bad && i < json_array_size(v); i++) {
		int k = find_word(control_kind_words, ARRAY_LEN(control_kind_words), json_array_get(v, i));

		bad = k < 0;
		req->kinds |= bad ? 0 : 1u << k;
	}
	return bad ? refuse(err, "bad-request", "\"kinds\" must be a list of %s", kind_list + 2) : 0;
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
		return refuse(err, "bad-request",
		    "\"peer\" must be an IP address with port, such as \"192.0.2.1:80\" or \"[2001:db8::1]:80\"");
	return 0;
}

static const struct field {
	const char *name;
	unsigned bit; /* CONTROL_F_; 0: all commands take it, and it was looked at before the others */
	int (*take)(const json_t *, struct control_request *, struct control_error *);
} fields[] = {
	{ "command", 0, NULL },
	{ "version", 0, NULL },
	{ "service", CONTROL_F_SERVICE, take_service },
	{ "mode", CONTROL_F_MODE, take_mode },
	{ "group", CONTROL_F_GROUP, take_group },
	{ "link", CONTROL_F_LINK, take_link },
	{ "token", CONTROL_F_TOKEN, take_token },
	{ "kinds", CONTROL_F_KINDS, take_kinds },
	{ "peer", CONTROL_F_PEER, take_peer },
	{ "timeout_ms", CONTROL_F_TIMEOUT_MS, take_timeout },
};

static const struct field *
find_field(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (strcmp(fields[i].name, name) == 0)
			return &fields[i];
	return NULL;
}

/* Not all fields that the command needs were given. */
static int
refuse_incomplete(const struct control_command_row *cmd, struct control_error *err)
{
	char list[64] = "";
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if ((cmd->needs & fields[i].bit) != 0 && n < sizeof(list))
			n += (size_t)snprintf(
			    list + n, sizeof(list) - n, "%s\"%s\"", n > 0 ? " and " : "", fields[i].name);
	return refuse(err, "bad-request", "\"%s\" needs %s", cmd->name, list);
}

static int
parse_fields(json_t *root, struct control_request *req, struct control_error *err)
{
	const struct control_command_row *cmd = &control_commands[req->command];
	unsigned given = 0;
	const char *name;
	json_t *v;

	json_object_foreach(root, name, v)
	{
		const struct field *f = find_field(name);

		if (f == NULL || (f->bit & ~cmd->takes) != 0)
			return refuse(
			    err, "unknown-field", "\"%s\" does not take \"%.*s\"", cmd->name, SHOWN_MAX, name);
		if (f->take != NULL && f->take(v, req, err) != 0)
			return -EINVAL;
		given |= f->bit;
	}
	return (cmd->needs & ~given) != 0 ? refuse_incomplete(cmd, err) : 0;
}

static int
parse_root(json_t *root, struct control_request *out, struct control_error *err)
{
	struct control_request req = { .modes = ~0u, .kinds = ~0u, .timeout_ms = CONTROL_CHECK_MS };
	const json_t *version = json_object_get(root, "version");
	const char *name = json_string_value(json_object_get(root, "command"));
	int command = name != NULL ? control_command_find(name) : -1;

	if (!json_is_object(root))
		return refuse(err, "bad-request", "a request is a JSON object");
	if (version != NULL && json_integer_value(version) != CONTROL_VERSION)
		return refuse(
		    err, "unsupported-version", "this daemon understands \"version\": %d only", CONTROL_VERSION);
	if (name == NULL)
		return refuse(err, "bad-request", "\"command\" is missing or is no string");
	if (command < 0)
		return refuse(err, "unknown-command", "unknown command \"%.*s\"", SHOWN_MAX, name);
	req.command = (enum control_command)command;
	if (parse_fields(root, &req, err) != 0)
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

	if (root == NULL)
		return refuse(err, "bad-json", "no JSON at byte %d: %s", jerr.position, jerr.text);
	rc = parse_root(root, out, err);
	json_decref(root);
	return rc;
}
