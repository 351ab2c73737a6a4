/* The tables of events: whole, and what catalog, manual, schema and completion say of them. */
#include "daemon/event/event_kinds.h"

#include "golden.h"
#include "unit.h"

START_TEST(every_row_is_whole)
{
	for (unsigned i = 0; i < EVENT_KIND_CNT; i++) {
		const struct event_kind_row *kind = &event_kinds[i];

		ck_assert_ptr_nonnull(kind->word);
		ck_assert_uint_eq(strlen(kind->id), 32);
		ck_assert_uint_eq(strspn(kind->id, "0123456789abcdef"), 32);
		ck_assert(kind->level == LOG_LVL_WARNING || kind->level == LOG_LVL_NOTICE);
		ck_assert_uint_ne(kind->fields, 0);
		ck_assert_uint_eq(kind->fields >> EVENT_FIELD_CNT, 0);
		for (unsigned j = 0; j < i; j++) {
			ck_assert_str_ne(kind->word, event_kinds[j].word);
			ck_assert_str_ne(kind->id, event_kinds[j].id);
			ck_assert_str_ne(kind->phrase, event_kinds[j].phrase);
		}
	}
	for (unsigned i = 0; i < EVENT_FIELD_CNT; i++) {
		const char *name = event_fields[i].journal;

		ck_assert(
		    strncmp(name, "SMCRD_", 6) == 0 && strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == strlen(name));
	}
}

static unsigned
count(const char *text, const char *what)
{
	unsigned n = 0;

	for (const char *p = text; (p = strstr(p, what)) != NULL; p++)
		n++;
	return n;
}

/* Is `what` in the text, once? */
static void
once(const char *text, const char *before, const char *word, const char *between, const char *id, const char *after)
{
	char what[128];

	snprintf(what, sizeof(what), "%s%s%s%s%s", before, word, between, id, after);
	ck_assert_msg(count(text, what) == 1, "%u times: %s", count(text, what), what);
}

START_TEST(the_catalog_has_each_kind_and_names_no_field_that_it_lacks)
{
	char *catalog = golden_read("../../../systemd/smcrd.catalog");

	for (unsigned i = 0; i < EVENT_KIND_CNT; i++) {
		once(catalog, "\n-- ", event_kinds[i].id, "", "", "\nSubject: smcrd: ");
		char *entry = strstr(catalog, event_kinds[i].id);
		char *end = strstr(entry, "\n-- ");
		size_t len = end != NULL ? (size_t)(end - entry) : strlen(entry);

		for (char *p = entry; (p = memchr(p, '@', len - (size_t)(p - entry))) != NULL; p++) {
			char *close = strchr(p + 1, '@');
			bool has = false;

			for (unsigned f = 0; f < EVENT_FIELD_CNT; f++)
				has = has ||
				    ((event_kinds[i].fields & 1u << f) != 0 &&
				        strlen(event_fields[f].journal) == (size_t)(close - p - 1) &&
				        strncmp(event_fields[f].journal, p + 1, (size_t)(close - p - 1)) == 0);
			ck_assert_msg(has, "%s: %.40s", event_kinds[i].word, p);
			p = close;
		}
	}
	ck_assert_uint_eq(count(catalog, "\n-- "), EVENT_KIND_CNT);
	free(catalog);
}

START_TEST(the_manual_has_each_kind_and_field)
{
	char *page = golden_read("../../../man/smcrd.8");

	for (unsigned i = 0; i < EVENT_KIND_CNT; i++)
		once(page, "\n.It Cm ", event_kinds[i].word, " Pq Li ", event_kinds[i].id, "\n");
	ck_assert_uint_eq(count(page, " Pq Li "), EVENT_KIND_CNT);
	for (unsigned i = 0; i < EVENT_FIELD_CNT; i++)
		once(page, "\n.Ev ", event_fields[i].journal, " ", i + 1 < EVENT_FIELD_CNT ? "," : ".", "\n");
	free(page);
}

START_TEST(the_schema_has_each_kind_with_its_members)
{
	char *doc = golden_read("../../../doc/json-fields.md"), row[1024], key[64];
	const char *section = strstr(doc, "\n## events\n");

	ck_assert_ptr_nonnull(section);
	for (unsigned i = 0; i < EVENT_KIND_CNT; i++) {
		const struct event_kind_row *kind = &event_kinds[i];
		bool first = true;

		snprintf(row, sizeof(row), "\n| `%s` | %s | ", kind->word,
		    kind->level == LOG_LVL_WARNING ? "warning" : "notice");
		for (unsigned f = 0; f < EVENT_FIELD_CNT; f++) {
			if ((kind->fields & 1u << f) == 0)
				continue;
			snprintf(key, sizeof(key), "%s`%s`", first ? "" : ", ", event_fields[f].key);
			strcat(row, key);
			first = false;
		}
		strcat(row, " | ");
		ck_assert_msg(strstr(section, row) != NULL, "%s", row);
	}
	for (unsigned f = 0; f < EVENT_FIELD_CNT; f++) {
		snprintf(key, sizeof(key), "`%s`", event_fields[f].key);
		ck_assert_msg(strstr(section, key) != NULL, "%s", key);
	}
	free(doc);
}

START_LOOP_TEST(completion_offers_each_kind, 0, 2)
{
	static const char *const scripts[] = { "../../../ctl/completion/smcrctl", "../../../ctl/completion/_smcrctl" };
	char *script = golden_read(scripts[_i]), word[64];
	char *kinds = strstr(script, "local kinds='");

	ck_assert_ptr_nonnull(kinds);
	kinds += strlen("local kinds='");
	*strchr(kinds, '\'') = ' ';
	for (unsigned i = 0; i < EVENT_KIND_CNT; i++) {
		const char *at = strstr(kinds, event_kinds[i].word);

		snprintf(word, sizeof(word), "%s", event_kinds[i].word);
		ck_assert_msg(at != NULL && strcspn(at, " \n") == strlen(word), "%s", word);
	}
	free(script);
}

static void
fill(struct event *e)
{
	for (unsigned i = 0; i < EVENT_FIELD_CNT; i++) {
		char *at = (char *)e + event_fields[i].off;

		if (event_fields[i].cap > 0)
			memset(at, 'x', event_fields[i].cap - 1);
		else
			memcpy(at, &(uint64_t){ UINT64_MAX }, sizeof(uint64_t));
	}
}

START_LOOP_TEST(the_longest_line_of_each_kind_is_cut, 0, EVENT_KIND_CNT)
{
	struct event e = { .kind = (enum event_kind)_i };
	char buf[EVENT_TEXT_MAX + 1];

	buf[EVENT_TEXT_MAX] = '!';
	fill(&e);
	event_text(&e, buf);
	ck_assert_uint_lt(strlen(buf), EVENT_TEXT_MAX);
	ck_assert_int_eq(buf[EVENT_TEXT_MAX], '!');
	ck_assert_int_eq(strncmp(buf, event_kinds[_i].phrase, strlen(event_kinds[_i].phrase)), 0);
}

START_TEST(what_is_not_known_is_not_said_and_blanks_are_quoted)
{
	struct event e = { .kind = EVENT_LINK_DOWN, .link = 2, .reason = "timed out", .mpa = "of another kind" };
	char buf[EVENT_TEXT_MAX];

	ck_assert_str_eq(event_text(&e, buf), "link down: link=2 reason=\"timed out\"");
	strcpy(e.reason, "short");
	ck_assert_str_eq(event_text(&e, buf), "link down: link=2 reason=short");
}
