/* doc/json-fields.md is made of the tables of requests, answers and events; and no answer has a member that it lacks. */
#include <jansson.h>
#include <string.h>

#include "control/commands.h"
#include "daemon/control/control_request.h"
#include "daemon/control/report.h"
#include "daemon/event/event_kinds.h"
#include "daemon/probe/check_result.h"
#include "golden.h"
#include "unit.h"

static const char *const types[] = {
	[FIELD_UINT8] = "integer",
	[FIELD_UINT16] = "integer",
	[FIELD_UINT32] = "integer",
	[FIELD_UINT64] = "integer",
	[FIELD_INT] = "integer",
	[FIELD_INT64] = "integer",
	[FIELD_BOOL] = "boolean",
	[FIELD_STRING] = "string",
	[FIELD_CHARS] = "string",
	[FIELD_KNOWN] = "integer",
	[FIELD_MS] = "integer",
	[FIELD_US] = "integer",
	[FIELD_WORD] = "string",
	[FIELD_TEXT] = "string",
	[FIELD_TIMES] = "histogram",
	[FIELD_SIZES] = "histogram",
	[FIELD_OBJECT] = "object",
	[FIELD_ARRAY] = "array of objects",
	[FIELD_TEXTS] = "array of strings",
	[FIELD_NUMBERS] = "array of integers",
	[FIELD_LIST] = "array of objects",
};

static const char intro[] =
    "# Members of requests and answers\n\n"
    "This list is made of the tables that smcrd reads requests and writes answers by: `UPDATE_GOLDEN=1 check_json_fields`\n"
    "writes it again. json-schema.md has what holds everywhere. Members of an object are behind a dot; those of each object of\n"
    "an array are behind `[].`. What a command does is in smcrctl(8).\n";

static void
write_members(FILE *f, const char *prefix, const struct field *fields)
{
	char path[256];

	for (const struct field *m = fields; m->type != FIELD_END; m++) {
		const bool array = m->type == FIELD_ARRAY || m->type == FIELD_LIST;

		if (m->type != FIELD_INLINE) {
			ck_assert_msg(m->meaning != NULL && m->meaning[0] != '\0', "%s%s", prefix, m->name);
			ck_assert(strchr(m->meaning, '|') == NULL);
			fprintf(f, "| `%s%s` | %s | %s |\n", prefix, m->name, types[m->type], m->meaning);
		}
		snprintf(path, sizeof(path), "%s%s%s", prefix, m->type != FIELD_INLINE ? m->name : "",
		    array                         ? "[]."
		        : m->type != FIELD_INLINE ? "."
		                                  : "");
		if (m->members != NULL)
			write_members(f, path, m->members);
	}
}

static void
write_requests(FILE *f)
{
	fputs("\n## Requests\n\n| member | type | commands | meaning |\n| --- | --- | --- | --- |\n", f);
	for (const struct control_field *r = control_fields; r->name != NULL; r++) {
		const char *comma = "";

		fprintf(f, "| `%s` | %s | %s", r->name, r->type, r->bit == 0 ? "all" : "");
		for (unsigned c = 0; c < CONTROL_COMMAND_CNT; c++) {
			if ((control_commands[c].takes & r->bit) == 0 || control_commands[c].kind == CONTROL_LOCAL)
				continue;
			fprintf(f, "%s%s%s", comma, control_commands[c].name,
			    (control_commands[c].needs & r->bit) != 0 ? " (needed)" : "");
			comma = ", ";
		}
		fprintf(f, " | %s |\n", r->meaning);
	}
}

static void
write_findings(FILE *f)
{
#define FINDING(constant, word, meaning) "| `" word "` | " meaning " |\n"
	fputs("\nWords of `finding`:\n\n| word | meaning |\n| --- | --- |\n" CHECK_FINDINGS(FINDING), f);
}

static void
write_events(FILE *f)
{
	fputs(
	    "| `number` | integer | of the event, from 1 since the start of the daemon |\n"
	    "| `kind` | string | below; more may come |\n"
	    "| `level` | string | `warning` or `notice` |\n"
	    "| `left_out` | integer | events of this kind before it that were dropped as too frequent, more than 20 in a second |\n"
	    "| `worker` | integer | the worker, from 1; 0 = the main thread |\n",
	    f);
	for (unsigned i = 0; i < EVENT_FIELD_CNT; i++)
		fprintf(f, "| `%s` | %s | %s |\n", event_fields[i].key, event_fields[i].cap > 0 ? "string" : "integer",
		    event_fields[i].meaning);
	fputs(
	    "| `text` | string | the line of the log |\n\n| `kind` | level | its members | when |\n| --- | --- | --- | --- |\n",
	    f);
	for (unsigned i = 0; i < EVENT_KIND_CNT; i++) {
		const char *comma = "";

		fprintf(f, "| `%s` | %s | ", event_kinds[i].word,
		    event_kinds[i].level == LOG_LVL_WARNING ? "warning" : "notice");
		for (unsigned k = 0; k < EVENT_FIELD_CNT; k++) {
			if ((event_kinds[i].fields & 1u << k) == 0)
				continue;
			fprintf(f, "%s`%s`", comma, event_fields[k].key);
			comma = ", ";
		}
		fprintf(f, " | %s |\n", event_kinds[i].when);
	}
}

static void
write_command(FILE *f, enum control_command c)
{
	fprintf(f, "\n## %s\n\n%s%s\n\n| member | type | meaning |\n| --- | --- | --- |\n", control_commands[c].name,
	    control_commands[c].summary, report_data[c] == NULL ? "; the members of each line:" : "");
	if (report_data[c] != NULL)
		write_members(f, "", report_data[c]);
	else
		write_members(f, "", report_line_fields);
	if (c == CONTROL_TRACE)
		write_members(f, "", report_message_fields);
	if (c == CONTROL_EVENTS)
		write_events(f);
	if (c == CONTROL_CHECK) {
		write_members(f, "", report_peer_fields);
		fputs(
		    "\n`version` to `peer_host` are of the link group to the peer: missing when SMC-R is not possible, or the\n"
		    "group has ended.\n",
		    f);
		write_findings(f);
	}
}

static char *
document(void)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	fputs(intro, f);
	write_requests(f);
	for (unsigned c = 0; c < CONTROL_COMMAND_CNT; c++)
		if (control_commands[c].kind != CONTROL_LOCAL)
			write_command(f, c);
	fclose(f);
	return text;
}

START_TEST(the_document_is_made_of_the_tables)
{
	char *text = document();

	golden_compare("../../../doc/json-fields.md", text);
	free(text);
}

/* -- answers -- */

static bool
is_histogram(json_t *v)
{
	return json_object_get(v, "counts") != NULL;
}

/* Every member at every depth has a row between section and end. */
static void
check_members(const char *section, const char *end, const char *prefix, json_t *v)
{
	const char *key;
	json_t *member;
	size_t i;

	json_array_foreach(v, i, member) check_members(section, end, prefix, member);
	json_object_foreach(v, key, member)
	{
		char row[256], path[256];

		snprintf(row, sizeof(row), "\n| `%s%s` | ", prefix, key);
		const char *at = strstr(section, row);
		ck_assert_msg(at != NULL && at < end, "no row%s", row);
		snprintf(path, sizeof(path), "%s%s%s", prefix, key, json_is_array(member) ? "[]." : ".");
		if (!is_histogram(member))
			check_members(section, end, path, member);
	}
}

START_LOOP_TEST(every_member_of_answers_is_in_the_document, 0, 9)
{
	static const char *const answers[] = { "status", "service", "devices", "groups", "links", "connections", "rmbs",
		"stats", "drain" };
	char *doc = golden_read("../../../doc/json-fields.md"), name[64];

	snprintf(name, sizeof(name), "control/%s.json", answers[_i]);
	char *text = golden_read(name);
	json_t *root = json_loads(text, 0, NULL), *data = json_object_get(root, "data");
	snprintf(name, sizeof(name), "\n## %s\n", answers[_i]);
	const char *section = strstr(doc, name);
	ck_assert_ptr_nonnull(section);
	const char *end = strstr(section + 1, "\n## ");
	ck_assert_uint_gt(json_object_size(data), 0);
	check_members(section, end != NULL ? end : section + strlen(section), "", data);
	json_decref(root);
	free(text);
	free(doc);
}
