/* Metrics as Prometheus reads them: made of the reports that check_report.c compares, and compared with golden files; the table
 * with itself, with the document and with the lists that it has to follow. */
#include "daemon/metrics/exposition.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/metrics/metric_table.h"
#include "fake_report.h"
#include "golden.h"
#include "unit.h"

static char *
text_of(bool idle, bool openmetrics)
{
	struct snapshot seen;
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	fake_report_rows(&seen, idle);
	ck_assert(!seen.failed);
	exposition_write(&seen, openmetrics, f);
	fclose(f);
	snapshot_fini(&seen);
	return text;
}

START_LOOP_TEST(metrics_are_as_always, 0, 4)
{
	static const char *const golden[] = { "metrics/metrics.txt", "metrics/openmetrics.txt",
		"metrics/metrics-idle.txt", "metrics/openmetrics-idle.txt" };
	char *text = text_of(_i >= 2, _i % 2 == 1);

	golden_compare(golden[_i], text);
	free(text);
}

START_TEST(label_values_are_escaped)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	exposition_label_value("a\\b\"c\nd\te\xc3\xa9}{,=", f);
	fclose(f);
	ck_assert_str_eq(text, "a\\\\b\\\"c\\nd\te\xc3\xa9}{,=");
	free(text);
}

/* A family is rows that follow one another, of one type and one help, told apart by a label. */
START_TEST(families_hold_together)
{
	for (unsigned i = 0; i < metric_cnt; i++) {
		const struct metric *m = &metric_table[i];

		for (const char *p = m->name; *p != '\0'; p++)
			ck_assert_msg(
			    islower((unsigned char)*p) || *p == '_' || isdigit((unsigned char)*p), "%s", m->name);
		/* Nothing is in microseconds here. */
		ck_assert_msg(strstr(metric_help(m), "micro") == NULL, "%s: %s", m->name, metric_help(m));
		for (unsigned k = i + 1; k < metric_cnt; k++) {
			const struct metric *other = &metric_table[k];

			if (strcmp(m->name, other->name) != 0)
				continue;
			ck_assert_msg(strcmp(metric_table[k - 1].name, m->name) == 0, "%s is in two places", m->name);
			ck_assert_int_eq(m->type, other->type);
			ck_assert_str_eq(m->help, other->help);
			ck_assert_msg(m->value != NULL && other->value != NULL && strcmp(m->value, other->value) != 0,
			    "%s", m->name);
		}
	}
}

/* A member that has another name by now would be left out without a word. */
START_TEST(every_metric_has_a_value)
{
	char *text = text_of(false, true);

	for (unsigned i = 0; i < metric_cnt; i++) {
		char name[METRIC_NAME_MAX], line[METRIC_NAME_MAX + 1];
		unsigned per;

		snprintf(line, sizeof(line), "\n%s", metric_name(&metric_table[i], name, &per));
		ck_assert_msg(strstr(text, line) != NULL, "%s is nowhere", name);
	}
	free(text);
}

static void
check_labels(const struct field *fields, const struct metric *m, const struct metric_label *labels)
{
	struct field f;

	for (const struct metric_label *l = labels; l->name != NULL; l++)
		ck_assert_msg(field_find(fields, l->member, &f), "%s: %s", m->name, l->member);
}

/* What the rows of the table name is among the members of what it is of, in the form that it is taken in. */
START_TEST(every_member_is_in_its_table)
{
	for (unsigned i = 0; i < metric_cnt; i++) {
		const struct metric *m = &metric_table[i];
		const struct field *fields = report_tables[m->of].fields;
		struct field f;

		ck_assert_int_lt(m->of, REPORT_KEPT_CNT);
		check_labels(fields, m, m->labels->of);
		if (m->labels->sub != NULL) {
			ck_assert_msg(field_find(fields, m->labels->sub, &f), "%s", m->name);
			ck_assert_int_eq(f.type, FIELD_ARRAY);
			fields = f.members;
		}
		check_labels(fields, m, m->labels->of_sub);
		ck_assert((m->member == NULL) == (m->type == METRIC_INFO));
		if (m->member == NULL)
			continue;
		ck_assert_msg(field_find(fields, m->member, &f), "%s: %s", m->name, m->member);
		ck_assert_msg((f.type == FIELD_TIMES) == (m->type == METRIC_TIMES), "%s", m->name);
		ck_assert_msg((f.type == FIELD_SIZES) == (m->type == METRIC_SIZES), "%s", m->name);
		ck_assert_msg(field_is_text(&f) == (m->word != NULL), "%s", m->name);
	}
}

START_TEST(every_counter_of_devices_is_a_metric)
{
	for (const char *const *name = report_device_stats; *name != NULL; name++) {
		unsigned i = 0;

		while (i < metric_cnt &&
		    (strncmp(metric_table[i].name, "device_", 7) != 0 || strcmp(metric_table[i].name + 7, *name) != 0))
			i++;
		ck_assert_msg(i < metric_cnt, "%s", *name);
	}
}

/* -- the document -- */

static void
write_labels(FILE *f, const struct metric *m)
{
	const char *comma = "";

	for (const struct metric_label *l = m->labels->of; l->name != NULL; l++, comma = ", ")
		fprintf(f, "%s`%s`", comma, l->name);
	for (const struct metric_label *l = m->labels->of_sub; l->name != NULL; l++, comma = ", ")
		fprintf(f, "%s`%s`", comma, l->name);
	if (m->label != NULL)
		fprintf(f, "%s`%s`", comma, m->label);
}

static const char list_head[] =
    "# The metrics\n\n"
    "This list is made of the table in daemon/metrics/metric_table.c: `UPDATE_GOLDEN=1 check_exposition` writes it again.\n"
    "In the older text format the metrics of type `info` are gauges. Of some counters that `smcrctl stats` also shows,\n"
    "json-schema.md has notes.\n\n"
    "| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n";

/* The document is this text and nothing else. */
START_TEST(the_document_has_the_table)
{
	static const char *const types[] = { "counter", "gauge", "info", "histogram", "histogram" };
	static const char *const endings[] = { "_total", "", "_info", "", "" };
	char *text, name[METRIC_NAME_MAX];
	size_t len;
	unsigned per;
	FILE *f = open_memstream(&text, &len);

	fputs(list_head, f);
	for (unsigned i = 0; i < metric_cnt; i++) {
		const struct metric *m = &metric_table[i];

		if (i > 0 && strcmp(m->name, metric_table[i - 1].name) == 0)
			continue;
		fprintf(f, "| `%s%s` | %s | ", metric_name(m, name, &per), endings[m->type], types[m->type]);
		write_labels(f, m);
		fprintf(f, " | %s |\n", metric_help(m));
	}
	fclose(f);
	golden_compare("../../../doc/metrics-list.md", text);
	free(text);
}
