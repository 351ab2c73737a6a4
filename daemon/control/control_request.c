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
#include "base/log.h"
#include "base/str.h"
#include "daemon/event/event_kinds.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define SHOWN_MAX 40 /* of a client's text in an error message */

#define MODE_ROW(mode, word) [SESSION_##mode] = word,
#define KIND_ROW(kind, word) [SMCR_TRACE_##kind] = word,
#define OR_WORD(constant, word) ", \"" word "\""

#define LEVEL_ROW(level, word) [LOG_LVL_##level] = word,

const char *const control_level_words[] = { CONTROL_LEVEL_WORDS(LEVEL_ROW) };
static const char level_list[] = CONTROL_LEVEL_WORDS(OR_WORD);
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
control_request_refuse(struct control_error *err, const char *code, const char *fmt, ...)
{
	va_list ap;

	err->code = code;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static int
take_service(const json_t *v, struct control_request *req, struct control_error *err)
{
	const char *s = json_string_value(v);

	if (s == NULL || s[0] == '\0' || strlen(s) >= sizeof(req->service))
		return control_request_refuse(err, "bad-request", "\"service\" must be the name of a service");
	strcpy(req->service, s);
	return 0;
}

static int
take_mode(const json_t *v, struct control_request *req, struct control_error *err)
{
	int i = find_word(control_mode_words, ARRAY_LEN(control_mode_words), v);

	if (i < 0)
		return control_request_refuse(err, "bad-request", "\"mode\" must be one of %s", mode_list + 2);
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
	return bad ? control_request_refuse(err, "bad-request", "\"kinds\" must be a list of %s", kind_list + 2) : 0;
}

static int
take_kind(const json_t *v, struct control_request *req, struct control_error *err)
{
	char list[sizeof(err->text)] = "";

	for (unsigned i = 0; json_is_string(v) && i < EVENT_KIND_CNT; i++)
		if (strcmp(event_kinds[i].word, json_string_value(v)) == 0) {
			req->event_kinds = 1u << i;
			return 0;
		}
	for (unsigned i = 0; i < EVENT_KIND_CNT; i++)
		(void)snprintf(
		    list + strlen(list), sizeof(list) - strlen(list), "%s%s", i > 0 ? " " : "", event_kinds[i].word);
	return control_request_refuse(err, "bad-request", "\"kind\" must be one of %s", list);
}

static int
take_follow(const json_t *v, struct control_request *req, struct control_error *err)
{
	if (!json_is_boolean(v))
		return control_request_refuse(err, "bad-request", "\"follow\" must be true or false");
	req->follow = json_is_true(v);
	return 0;
}

/* Numeric only: looking up names would hold the data path. Who is to be connected to has a port; who is there need not. */
static int
take_peer(const json_t *v, struct control_request *req, struct control_error *err)
{
	const char *s = json_string_value(v);

	if (req->command != CONTROL_CHECK) {
		if (s != NULL && (addr_parse_port(s, &req->peer) == 0 || addr_parse(s, &req->peer) == 0))
			return 0;
		return control_request_refuse(err, "bad-request",
		    "\"peer\" must be an IP address, with port or without, such as \"192.0.2.1\" or "
		    "\"[2001:db8::1]:80\"");
	}
	if (s == NULL || addr_parse_port(s, &req->peer) != 0)
		return control_request_refuse(err, "bad-request",
		    "\"peer\" must be an IP address with port, such as \"192.0.2.1:80\" or \"[2001:db8::1]:80\"");
	return 0;
}

static int
take_id(const json_t *v, struct control_request *req, struct control_error *err)
{
	if (!json_is_integer(v) || json_integer_value(v) < 1)
		return control_request_refuse(
		    err, "bad-request", "\"id\" must be that of a connection, a whole number from 1");
	req->id = (uint64_t)json_integer_value(v);
	return 0;
}

static int
take_level(const json_t *v, struct control_request *req, struct control_error *err)
{
	int i = find_word(control_level_words, ARRAY_LEN(control_level_words), v);

	if (i < 0 && (!json_is_string(v) || strcmp(json_string_value(v), CONTROL_LEVEL_DEFAULT) != 0))
		return control_request_refuse(
		    err, "bad-request", "\"level\" must be one of %s, \"" CONTROL_LEVEL_DEFAULT "\"", level_list + 2);
	req->level = i >= 0 ? i : CONTROL_LEVEL_RESET;
	return 0;
}

#define NUMBER(member, most) .type = "integer", .max = most, .off = offsetof(struct control_request, member)

/* clang-format off */
const struct control_field control_fields[] = {
	{ .name = "command", .type = "string", .meaning = "what is asked for" },
	{ .name = "version", .type = "integer", .meaning = "version of the request, 1; may be left out" },
	{ .name = "service", .bit = CONTROL_F_SERVICE, .take = take_service, .type = "string",
	    .meaning = "name of the service, or only of this one; close: all of the service, also if it is no longer configured" },
	{ .name = "mode", .bit = CONTROL_F_MODE, .take = take_mode, .type = "string", .meaning = "only `smcr`, `tcp` or `setup`" },
	{ .name = "group", .bit = CONTROL_F_GROUP, NUMBER(group, UINT32_MAX), .meaning = "the link group, or only of this one; rebalance: left out = all" },
	{ .name = "link", .bit = CONTROL_F_LINK, NUMBER(link, UINT8_MAX), .meaning = "number of the link in the group, 1 to 255" },
	{ .name = "token", .bit = CONTROL_F_TOKEN, NUMBER(token, UINT32_MAX), .meaning = "only CLC and CDC messages of the connection with this alert token" },
	{ .name = "worker", .bit = CONTROL_F_WORKER, NUMBER(worker, CONFIG_WORKERS_MAX), .meaning = "only this worker, from 1; left out = all of them (check: the first)" },
	{ .name = "kinds", .bit = CONTROL_F_KINDS, .take = take_kinds, .type = "array of strings", .meaning = "only these kinds: `clc`, `llc`, `cdc`" },
	{ .name = "kind", .bit = CONTROL_F_KIND, .take = take_kind, .type = "string", .meaning = "only of this kind" },
	{ .name = "follow", .bit = CONTROL_F_FOLLOW, .take = take_follow, .type = "boolean", .meaning = "later ones as well, until the client closes the connection" },
	{ .name = "peer", .bit = CONTROL_F_PEER, .take = take_peer, .type = "string",
	    .meaning = "address and port, numeric: `192.0.2.1:80`, `[2001:db8::1]:80`; but for check also an address alone: of any port" },
	{ .name = "timeout_ms", .bit = CONTROL_F_TIMEOUT_MS, NUMBER(timeout_ms, CONTROL_CHECK_MAX_MS), .meaning = "1 to 60000; 10000 when left out" },
	{ .name = "id", .bit = CONTROL_F_ID, .take = take_id, .type = "integer", .meaning = "the connection with this id" },
	{ .name = "level", .bit = CONTROL_F_LEVEL, .take = take_level, .type = "string",
	    .meaning = "`error`, `warning`, `notice`, `info`, `debug`, or `default`: as configured; left out = it is only shown" },
	{ .name = "bulk_bytes", .bit = CONTROL_F_BULK_BYTES, NUMBER(bulk_bytes, CONTROL_BULK_MAX), .meaning = "1 to 268435456: measure both paths; left out = no measurement" },
	{ 0 },
};
/* clang-format on */

static int
take_number(const struct control_field *f, const json_t *v, struct control_request *req, struct control_error *err)
{
	json_int_t n = json_integer_value(v);

	if (!json_is_integer(v) || n < 1 || n > f->max)
		return control_request_refuse(
		    err, "bad-request", "\"%s\" must be a whole number from 1 to %lu", f->name, (unsigned long)f->max);
	memcpy((char *)req + f->off, &(uint32_t){ (uint32_t)n }, sizeof(uint32_t));
	return 0;
}

/* Says which of these fields there have to be, with this word between. */
static int
refuse_without(const char *command, unsigned bits, const char *word, struct control_error *err)
{
	char list[64] = "";

	for (const struct control_field *f = control_fields; f->name != NULL; f++)
		if ((bits & f->bit) != 0)
			str_append(list, sizeof(list), "%s\"%s\"", list[0] != '\0' ? word : "", f->name);
	return control_request_refuse(err, "bad-request", "\"%s\" needs %s", command, list);
}

static int
parse_fields(json_t *root, struct control_request *req, struct control_error *err)
{
	const struct control_command_row *cmd = &control_commands[req->command];
	const char *name;
	json_t *v;

	json_object_foreach(root, name, v)
	{
		const struct control_field *f = control_fields;

		while (f->name != NULL && strcmp(f->name, name) != 0)
			f++;
		if (f->name == NULL || (f->bit & ~cmd->takes) != 0)
			return control_request_refuse(
			    err, "unknown-field", "\"%s\" does not take \"%.*s\"", cmd->name, SHOWN_MAX, name);
		if (f->take != NULL ? f->take(v, req, err) != 0 : f->max > 0 && take_number(f, v, req, err) != 0)
			return -EINVAL;
		req->given |= f->bit;
	}
	if ((cmd->needs & ~req->given) != 0)
		return refuse_without(cmd->name, cmd->needs, " and ", err);
	if (cmd->needs_any != 0 && (cmd->needs_any & req->given) == 0)
		return refuse_without(cmd->name, cmd->needs_any, " or ", err);
	return 0;
}

static int
parse_root(json_t *root, struct control_request *out, struct control_error *err)
{
	struct control_request req = { .modes = ~0u,
		.kinds = ~0u,
		.event_kinds = ~0u,
		.timeout_ms = CONTROL_CHECK_MS,
		.level = CONTROL_LEVEL_ASK };
	const json_t *version = json_object_get(root, "version");
	const char *name = json_string_value(json_object_get(root, "command"));

	if (!json_is_object(root))
		return control_request_refuse(err, "bad-request", "a request is a JSON object");
	if (version != NULL && json_integer_value(version) != CONTROL_VERSION)
		return control_request_refuse(
		    err, "unsupported-version", "this daemon understands \"version\": %d only", CONTROL_VERSION);
	if (name == NULL)
		return control_request_refuse(err, "bad-request", "\"command\" is missing or is no string");
	while (req.command < CONTROL_COMMAND_CNT &&
	    (control_commands[req.command].kind == CONTROL_LOCAL ||
	        strcmp(control_commands[req.command].name, name) != 0))
		req.command++;
	if (req.command == CONTROL_COMMAND_CNT)
		return control_request_refuse(err, "unknown-command", "unknown command \"%.*s\"", SHOWN_MAX, name);
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

	if (root == NULL)
		return control_request_refuse(err, "bad-json", "no JSON at byte %d: %s", jerr.position, jerr.text);
	int rc = parse_root(root, out, err);
	json_decref(root);
	return rc;
}

enum control_kind
control_request_kind(const struct control_request *req)
{
	const struct control_command_row *cmd = &control_commands[req->command];

	return (cmd->orders_with & req->given) != 0 ? CONTROL_ORDERS : cmd->kind;
}
