/* What documents and completion say of the commands of the control socket, against their rows. */
#include "control/commands.h"

#include "golden.h"
#include "unit.h"

static const struct {
	const char *name;   /* in a request */
	const char *option; /* of smcrctl; NULL: only an argument */
} fields[] = {
	/* by the number of their bit; bits may be free */
	{ "service", "--service" },
	{ "mode", "--smcr" },
	{ "group", "--group" },
	{ "link", NULL },
	{ "token", "--token" },
	{ "kinds", "--clc" },
	{ "peer", "--peer" },
	{ "timeout_ms", "--timeout" },
	{ "worker", "--worker" },
	{ "id", NULL },
	{ "level", NULL },
	{ "bulk_bytes", "--bulk" },
	{ "kind", "--kind" },
	{ "follow", "--follow" },
};

/* The name as it is typed. */
static const char *
typed(const struct control_command_row *cmd, char buf[32])
{
	snprintf(buf, 32, "%s", cmd->name);
	for (char *p = buf; *p != '\0'; p++)
		*p = *p == '-' ? ' ' : *p == '_' ? '-' : *p;
	return buf;
}

/* Is word in text, between characters that are in no name? */
static bool
has_word(const char *text, const char *word)
{
	static const char name[] = "abcdefghijklmnopqrstuvwxyz-_";
	size_t len = strlen(word);

	for (const char *p = strstr(text, word); p != NULL; p = strstr(p + 1, word))
		if ((p == text || strchr(name, p[-1]) == NULL) && (p[len] == '\0' || strchr(name, p[len]) == NULL))
			return true;
	return false;
}

START_TEST(every_command_is_in_the_manual)
{
	char *page = golden_read("../../../man/smcrctl.8"), name[32], item[64];
	unsigned items = 0;

	for (int i = 0; i < CONTROL_COMMAND_CNT; i++) {
		snprintf(item, sizeof(item), "\n.It Cm %s", typed(&control_commands[i], name));
		const char *at = strstr(page, item);
		ck_assert_msg(at != NULL && strchr(" \n", at[strlen(item)]) != NULL, "%s", item);
	}
	for (const char *p = page; (p = strstr(p, "\n.It Cm ")) != NULL; p++)
		items++;
	ck_assert_uint_eq(items, CONTROL_COMMAND_CNT);
	free(page);
}

/* The right that the manual gives, by the number of its item from 1; 0: none. "log-level Ar level" is not "log-level". */
static unsigned
right_in_manual(const char *page, const char *command, const char *rest)
{
	char line[64];
	unsigned item = 0, right = 0;

	snprintf(line, sizeof(line), ".Cm %s%s ", command, rest);
	for (const char *p = strstr(page, "\n.Sh RIGHTS\n") + 1; strncmp(p, ".El", 3) != 0; p = strchr(p, '\n') + 1) {
		item += strncmp(p, ".It ", 4) == 0;
		if (strncmp(p, line, strlen(line)) == 0 && strcspn(p + strlen(line), "\n") == 1) {
			ck_assert_msg(right == 0, "twice: %s", line);
			right = item;
		}
	}
	return right;
}

START_TEST(the_manual_has_the_right_that_each_command_needs)
{
	char *page = golden_read("../../../man/smcrctl.8"), name[32];

	for (int i = 0; i < CONTROL_COMMAND_CNT; i++) {
		const struct control_command_row *cmd = &control_commands[i];
		const enum control_kind kind = i == CONTROL_TOP || i == CONTROL_ROUTES || i == CONTROL_CAPTURE
		    ? CONTROL_ASKS
		    : i == CONTROL_DOCTOR ? CONTROL_TRIES
		                          : cmd->kind;

		ck_assert_msg(right_in_manual(page, typed(cmd, name), "") == 1u + kind, "%s", name);
		ck_assert_msg(right_in_manual(page, name, i == CONTROL_CHECK ? " Fl -bulk" : " Ar level") ==
		        (cmd->orders_with != 0 ? 1u + CONTROL_ORDERS : 0),
		    "%s as an order", name);
	}
	free(page);
}

START_TEST(every_command_has_its_answer_and_its_fields_in_the_schema)
{
	char *doc = golden_read("../../../doc/json-fields.md"), *schema = golden_read("../../../doc/json-schema.md");
	char text[4096];

	for (int i = 0; i < CONTROL_COMMAND_CNT; i++) {
		if (i == CONTROL_TOP) /* for people only */
			continue;
		snprintf(text, sizeof(text), "\n## %s\n", control_commands[i].name);
		ck_assert_msg(
		    strstr(control_commands[i].kind == CONTROL_LOCAL ? schema : doc, text) != NULL, "%s", text);
		for (size_t f = 0; control_commands[i].kind != CONTROL_LOCAL && f < sizeof(fields) / sizeof(fields[0]);
		     f++) {
			bool said = false;

			if (fields[f].name == NULL)
				continue;
			/* | `group` | integer | connections, links | ... */
			snprintf(text, sizeof(text), "\n| `%s` | ", fields[f].name);
			for (const char *p = doc; (p = strstr(p, text)) != NULL; p++) {
				char cells[512], *save;

				snprintf(cells, sizeof(cells), "%.*s", (int)strcspn(p + 1, "\n"), p + 1);
				(void)strtok_r(cells, "|", &save);
				(void)strtok_r(NULL, "|", &save);
				char *cell = strtok_r(NULL, "|", &save);
				said = said || (cell != NULL && has_word(cell, control_commands[i].name));
				/* the requests come first */
				if (strstr(doc, "\n## status\n") < p)
					break;
			}
			ck_assert_msg(said == ((control_commands[i].takes & 1u << f) != 0), "%s: %s",
			    control_commands[i].name, fields[f].name);
		}
	}
	free(schema);
	free(doc);
}

/* The rest of the line of the completion that begins with `from`. */
static void
completion_line(const char *script, const char *from, char *buf, size_t cap)
{
	const char *at = strstr(script, from);

	ck_assert_msg(at != NULL, "no %s", from);
	snprintf(buf, cap, "%.*s", (int)strcspn(at, "\n"), at);
}

START_TEST(completion_knows_the_commands)
{
	char *script = golden_read("../../../ctl/completion/smcrctl"), line[512], first[32], name[32];
	unsigned words = 1, firsts = 0;

	completion_line(script, "local commands='", line, sizeof(line));
	for (const char *p = line + strlen("local commands='"); *p != '\0'; p++)
		words += *p == ' ';
	for (int i = 0; i < CONTROL_COMMAND_CNT; i++) {
		snprintf(first, sizeof(first), "%.*s", (int)strcspn(typed(&control_commands[i], name), " "), name);
		ck_assert_msg(has_word(line, first), "%s", first);
		firsts += i == 0 || strncmp(control_commands[i - 1].name, first, strlen(first)) != 0;
	}
	ck_assert_uint_eq(words, firsts); /* "link" begins two */
	free(script);
}

START_TEST(completion_offers_the_options_of_each_command)
{
	char *script = golden_read("../../../ctl/completion/smcrctl"), once[512], first[32], name[32];
	const char *cases = strstr(script, "options+=' --watch'");

	ck_assert_ptr_nonnull(cases);
	completion_line(script, "reload | ", once, sizeof(once));
	for (int i = 0; i < CONTROL_COMMAND_CNT; i++) {
		const struct control_command_row *cmd = &control_commands[i];
		char offered[512] = "";

		snprintf(first, sizeof(first), "%.*s", (int)strcspn(typed(cmd, name), " "), name);
		ck_assert_msg(has_word(once, first) == cmd->once, "%s --watch", cmd->name);
		for (const char *p = cases; (p = strstr(p, "options+='")) != NULL; p++) {
			const char *begin = p;

			while (begin[-1] != '\n')
				begin--;
			if (strcspn(begin, ")") < (size_t)(p - begin)) {
				char names[128];

				snprintf(names, sizeof(names), "%.*s", (int)strcspn(begin, ")"), begin);
				if (has_word(names, first))
					snprintf(offered, sizeof(offered), "%.*s", (int)strcspn(p, "\n"), p);
			}
		}
		for (size_t f = 0; f < sizeof(fields) / sizeof(fields[0]); f++)
			if (fields[f].option != NULL)
				ck_assert_msg(has_word(offered, fields[f].option) ==
				        ((cmd->takes & ~(cmd->needs | cmd->may_name) & 1u << f) != 0),
				    "%s %s", cmd->name, fields[f].option);
	}
	free(script);
}
