/* Parses requests of control clients. Strict: a field that is unknown, or that the command does not take, is an error: a filter that is
 * silently ignored would give a wrong answer. */
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
#define LEVEL_ROW(level, word) [LOG_LVL_##level] = word,
#define WORD_OR(constant, word) "\"" word "\", "
#define CHECK_PEER " with port, such as \"192.0.2.1:80\" or \"[2001:db8::1]:80\""
#define ANY_PEER ", with port or without, such as \"192.0.2.1\" or \"[2001:db8::1]:80\""

const char *const control_level_words[] = { CONTROL_LEVEL_WORDS(LEVEL_ROW) };
const char *const control_mode_words[] = { CONTROL_MODE_WORDS(MODE_ROW) };
const char *const control_kind_words[] = { CONTROL_KIND_WORDS(KIND_ROW) };

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

/* -- members: false when the value is not what it must be -- */

static bool
take_service(const json_t *v, struct control_request *req)
{
	const char *s = json_string_value(v);

	if (s == NULL || s[0] == '\0' || strlen(s) >= sizeof(req->service))
		return false;
	strcpy(req->service, s);
	return true;
}

static bool
take_mode(const json_t *v, struct control_request *req)
{
	int i = find_word(control_mode_words, ARRAY_LEN(control_mode_words), v);

	req->modes = i >= 0 ? 1u << i : 0;
	return i >= 0;
}

static bool
take_kinds(const json_t *v, struct control_request *req)
{
	req->kinds = 0;
	for (size_t i = 0; i < json_array_size(v); i++) {
		int k = find_word(control_kind_words, ARRAY_LEN(control_kind_words), json_array_get(v, i));

		if (k < 0)
			return false;
		req->kinds |= 1u << k;
	}
	return req->kinds != 0;
}

static bool
take_kind(const json_t *v, struct control_request *req)
{
	req->event_kinds = 0;
	for (unsigned i = 0; json_is_string(v) && i < EVENT_KIND_CNT; i++)
		if (strcmp(event_kinds[i].word, json_string_value(v)) == 0)
			req->event_kinds = 1u << i;
	return req->event_kinds != 0;
}

static bool
take_follow(const json_t *v, struct control_request *req)
{
	req->follow = json_is_true(v);
	return json_is_boolean(v);
}

static bool
take_then_exit(const json_t *v, struct control_request *req)
{
	req->then_exit = json_is_true(v);
	return json_is_boolean(v);
}

/* Numeric only: looking up names would block the data path. Only check connects, and needs the port. */
static bool
take_peer(const json_t *v, struct control_request *req)
{
	const char *s = json_string_value(v);

	return s != NULL &&
	    (addr_parse_port(s, &req->peer) == 0 || (req->command != CONTROL_CHECK && addr_parse(s, &req->peer) == 0));
}

static bool
take_id(const json_t *v, struct control_request *req)
{
	req->id = (uint64_t)json_integer_value(v);
	return json_is_integer(v) && json_integer_value(v) >= 1;
}

static bool
take_level(const json_t *v, struct control_request *req)
{
	int i = find_word(control_level_words, ARRAY_LEN(control_level_words), v);

	req->level = i >= 0 ? i : CONTROL_LEVEL_RESET;
	return i >= 0 || (json_is_string(v) && strcmp(json_string_value(v), CONTROL_LEVEL_DEFAULT) == 0);
}

#define NUMBER(member, most) .type = "integer", .max = most, .off = offsetof(struct control_request, member)

/* clang-format off */
const struct control_field control_fields[] = {
	{ .name = "command", .type = "string", .meaning = "what is asked for" },
	{ .name = "version", .type = "integer", .meaning = "version of the request, 1; may be left out" },
	{ .name = "service", .bit = CONTROL_F_SERVICE, .take = take_service, .must = "the name of a service", .type = "string",
	    .meaning = "name of the service, or only of this one; close: all of the service, also if it is no longer configured" },
	{ .name = "mode", .bit = CONTROL_F_MODE, .take = take_mode, .must = "one of " CONTROL_MODE_WORDS(WORD_OR), .type = "string", .meaning = "only `smcr`, `tcp` or `setup`" },
	{ .name = "group", .bit = CONTROL_F_GROUP, NUMBER(group, UINT32_MAX), .meaning = "the link group, or only of this one; rebalance: left out = all" },
	{ .name = "link", .bit = CONTROL_F_LINK, NUMBER(link, UINT8_MAX), .meaning = "number of the link in the group, 1 to 255" },
	{ .name = "token", .bit = CONTROL_F_TOKEN, NUMBER(token, UINT32_MAX), .meaning = "only CLC and CDC messages of the connection with this alert token" },
	{ .name = "worker", .bit = CONTROL_F_WORKER, NUMBER(worker, CONFIG_WORKERS_MAX), .meaning = "only this worker, from 1; left out = all of them (check: the first)" },
	{ .name = "kinds", .bit = CONTROL_F_KINDS, .take = take_kinds, .must = "a list of " CONTROL_KIND_WORDS(WORD_OR), .type = "array of strings", .meaning = "only these kinds: `clc`, `llc`, `cdc`" },
	{ .name = "kind", .bit = CONTROL_F_KIND, .take = take_kind, .must = "one of ", .type = "string", .meaning = "only of this kind" },
	{ .name = "follow", .bit = CONTROL_F_FOLLOW, .take = take_follow, .must = "true or false", .type = "boolean", .meaning = "later ones as well, until the client closes the connection" },
	{ .name = "then_exit", .bit = CONTROL_F_THEN_EXIT, .take = take_then_exit, .must = "true or false", .type = "boolean", .meaning = "end with the last connection, or after `drain_timeout`" },
	{ .name = "peer", .bit = CONTROL_F_PEER, .take = take_peer, .must = "an IP address", .type = "string",
	    .meaning = "address and port, numeric: `192.0.2.1:80`, `[2001:db8::1]:80`; but for check also an address alone: of any port" },
	{ .name = "timeout_ms", .bit = CONTROL_F_TIMEOUT_MS, NUMBER(timeout_ms, CONTROL_CHECK_MAX_MS), .meaning = "1 to 60000; when left out 10000, of `drain` `drain_timeout`" },
	{ .name = "id", .bit = CONTROL_F_ID, .take = take_id, .must = "that of a connection, a whole number from 1", .type = "integer", .meaning = "the connection with this id" },
	{ .name = "level", .bit = CONTROL_F_LEVEL, .take = take_level, .must = "one of " CONTROL_LEVEL_WORDS(WORD_OR) "\"" CONTROL_LEVEL_DEFAULT "\"", .type = "string",
	    .meaning = "`error`, `warning`, `notice`, `info`, `debug`, or `default`: as configured; left out = it is only shown" },
	{ .name = "bulk_bytes", .bit = CONTROL_F_BULK_BYTES, NUMBER(bulk_bytes, CONTROL_BULK_MAX), .meaning = "1 to 268435456: measure both paths; left out = no measurement" },
	{ 0 },
};
/* clang-format on */

static bool
take_number(const struct control_field *f, const json_t *v, struct control_request *req)
{
	json_int_t n = json_integer_value(v);

	memcpy((char *)req + f->off, &(uint32_t){ (uint32_t)n }, sizeof(uint32_t));
	return json_is_integer(v) && n >= 1 && n <= f->max;
}

static int
refuse_value(const struct control_field *f, const struct control_request *req, struct control_error *err)
{
	char must[sizeof(err->text)] = "";

	str_append(must, sizeof(must), "%s", f->must != NULL ? f->must : "");
	if (f->max > 0)
		str_append(must, sizeof(must), "a whole number from 1 to %lu", (unsigned long)f->max);
	for (unsigned i = 0; f->bit == CONTROL_F_KIND && i < EVENT_KIND_CNT; i++)
		str_append(must, sizeof(must), "%s%s", i > 0 ? " " : "", event_kinds[i].word);
	if (f->bit == CONTROL_F_PEER)
		str_append(must, sizeof(must), "%s", req->command == CONTROL_CHECK ? CHECK_PEER : ANY_PEER);
	/* Lists of words end with a comma. */
	return control_request_refuse(err, "bad-request", "\"%s\" must be %.*s", f->name,
	    (int)(strlen(must) - (must[strlen(must) - 1] == ' ' ? 2 : 0)), must);
}

/* Reports which of these fields are needed, with this word between. */
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
		if (f->take != NULL ? !f->take(v, req) : f->max > 0 && !take_number(f, v, req))
			return refuse_value(f, req, err);
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
