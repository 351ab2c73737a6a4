/* Metrics as Prometheus reads them: made of the answers that check_report.c compares, and compared with golden files; the table
 * with itself, with the document and with the lists that it has to follow. */
#include "daemon/metrics/exposition.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/control/report.h"
#include "daemon/metrics/metric_table.h"
#include "golden_documents.h"
#include "unit.h"

static void
load_documents(struct documents *d, const char *kind)
{
	*d = (struct documents){ .failed = false };
	golden_documents_load(d, kind);
}

static void
unload(struct documents *d)
{
	for (unsigned i = 0; i < DOC_CNT; i++)
		free(d->doc[i].p);
}

static char *
text_of(const struct documents *d, bool openmetrics)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	ck_assert_int_eq(exposition_write(d, openmetrics, f), 0);
	fclose(f);
	return text;
}

START_LOOP_TEST(metrics_are_as_always, 0, 4)
{
	static const char *const golden[] = { "metrics/metrics.txt", "metrics/openmetrics.txt",
		"metrics/metrics-idle.txt", "metrics/openmetrics-idle.txt" };
	struct documents d;

	load_documents(&d, _i >= 2 ? "-idle" : "");
	char *text = text_of(&d, _i % 2 == 1);
	golden_compare(golden[_i], text);
	free(text);
	unload(&d);
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

START_LOOP_TEST(what_is_no_answer_is_an_error, 0, 4)
{
	static const char *const bad[] = { "", "{", "[]", "{\"data\":null}" };
	struct documents d;
	char *text;
	size_t len;

	load_documents(&d, "");
	free(d.doc[DOC_LINKS].p);
	d.doc[DOC_LINKS] = (struct text){ strdup(bad[_i]), strlen(bad[_i]) };
	FILE *f = open_memstream(&text, &len);
	ck_assert_int_lt(exposition_write(&d, true, f), 0);
	fclose(f);
	free(text);
	unload(&d);
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
	struct documents d;

	load_documents(&d, "");
	char *text = text_of(&d, true);
	for (unsigned i = 0; i < metric_cnt; i++) {
		char name[METRIC_NAME_MAX], line[METRIC_NAME_MAX + 1];
		unsigned per;

		snprintf(line, sizeof(line), "\n%s", metric_name(&metric_table[i], name, &per));
		ck_assert_msg(strstr(text, line) != NULL, "%s is nowhere", name);
	}
	free(text);
	unload(&d);
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
    "In the older text format the metrics of type `info` are gauges. Of a counter that `smcrctl stats` also shows,\n"
    "json-schema.md says more.\n\n"
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
