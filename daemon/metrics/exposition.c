/* Metrics as text; see exposition.h. */
#include "daemon/metrics/exposition.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/histogram.h"
#include "daemon/metrics/metric_table.h"

#define LABELS_MAX 8

struct label {
	const char *name;
	struct field field;
};

/* A metric whose members have been looked up: label and value are of the row, or of an object in an array of it. */
struct samples {
	FILE *out;
	const struct metric *m;
	char name[METRIC_NAME_MAX];
	unsigned per;
	struct label label[LABELS_MAX], sub_label[LABELS_MAX]; /* end with a name of NULL */
	struct field value;
};

/* One sample: where its values are, and what stands behind the name. */
struct sample {
	const void *row, *sub; /* sub: NULL = none */
	const char *suffix;
	const char *le; /* of a histogram's bucket; NULL */
};

void
exposition_label_value(const char *text, FILE *out)
{
	for (; *text != '\0'; text++) {
		if (*text == '\\' || *text == '"')
			putc('\\', out);
		if (*text == '\n')
			fputs("\\n", out);
		else
			putc(*text, out);
	}
}

static struct field
exposition_find(const struct field *fields, const char *path)
{
	struct field f = { .type = FIELD_END };
	const bool found = field_find(fields, path, &f);

	assert(found); /* check_exposition looks at every row of the table */
	(void)found;
	return f;
}

static void
find_labels(struct label out[LABELS_MAX], const struct field *fields, const struct metric_label *l)
{
	unsigned n = 0;

	for (; l->name != NULL; l++)
		out[n++] = (struct label){ l->name, exposition_find(fields, l->member) };
	out[n].name = NULL;
}

static void
write_label(FILE *out, bool *any, const struct label *l, const void *obj)
{
	char buf[FIELD_TEXT_MAX];
	uint64_t n;

	fprintf(out, "%s%s=\"", *any ? "," : "{", l->name);
	if (field_is_text(&l->field))
		exposition_label_value(field_text(&l->field, obj, buf), out);
	else if (field_number(&l->field, obj, &n))
		fprintf(out, "%" PRIu64, n);
	putc('"', out);
	*any = true;
}

/* Name and labels. */
static void
write_head(const struct samples *x, const struct sample *s)
{
	bool any = false;

	fprintf(x->out, "%s%s", x->name, s->suffix);
	for (const struct label *l = x->label; l->name != NULL; l++)
		write_label(x->out, &any, l, s->row);
	for (const struct label *l = x->sub_label; s->sub != NULL && l->name != NULL; l++)
		write_label(x->out, &any, l, s->sub);
	if (x->m->label != NULL)
		fprintf(x->out, "%s%s=\"%s\"", any ? "," : "{", x->m->label, x->m->value);
	any = any || x->m->label != NULL;
	if (s->le != NULL)
		fprintf(x->out, "%sle=\"%s\"", any ? "," : "{", s->le);
	any = any || s->le != NULL;
	fputs(any ? "} " : " ", x->out);
}

/* n of so many in the unit, exactly: no binary fraction. Zeros at the end are left out, but for one. */
static void
format_quotient(char *buf, size_t cap, uint64_t n, unsigned per)
{
	int digits = per == 1000000 ? 6 : 3, len;

	if (per <= 1) {
		snprintf(buf, cap, "%" PRIu64, n);
		return;
	}
	len = snprintf(buf, cap, "%" PRIu64 ".%0*" PRIu64, n / per, digits, n % per);
	while (buf[len - 1] == '0' && buf[len - 2] != '.')
		buf[--len] = '\0';
}

static void
write_value(const struct samples *x, const struct sample *s, uint64_t n, unsigned per)
{
	char text[32];

	format_quotient(text, sizeof(text), n, per);
	write_head(x, s);
	fprintf(x->out, "%s\n", text);
}

/* Counts that add up, as Prometheus has them. A sum of times is in ns. */
static void
write_histogram(const struct samples *x, struct sample s, const struct histogram *h)
{
	const bool times = x->m->type == METRIC_TIMES;
	const uint64_t *bounds = times ? histogram_times_us : histogram_sizes;
	uint64_t sum = 0;
	char le[32];

	s.suffix = "_bucket";
	s.le = le;
	for (unsigned i = 0; i <= HISTOGRAM_BOUNDS; i++) {
		sum += h->cnt[i];
		if (i < HISTOGRAM_BOUNDS)
			format_quotient(le, sizeof(le), bounds[i], times ? 1000000 : 1);
		else
			strcpy(le, "+Inf");
		write_value(x, &s, sum, 1);
	}
	s.le = NULL;
	s.suffix = "_sum";
	write_value(x, &s, times ? h->sum / 1000 : h->sum, times ? 1000000 : 1);
	s.suffix = "_count";
	write_value(x, &s, sum, 1);
}

static void
write_sample(const struct samples *x, const void *row, const void *sub)
{
	static const char *const suffixes[] = { [METRIC_COUNTER] = "_total",
		[METRIC_GAUGE] = "",
		[METRIC_INFO] = "_info",
		[METRIC_TIMES] = "",
		[METRIC_SIZES] = "" };
	const struct sample s = { .row = row, .sub = sub, .suffix = suffixes[x->m->type] };
	const char *obj = sub != NULL ? sub : row;
	char buf[FIELD_TEXT_MAX];
	uint64_t n;

	if (x->m->type == METRIC_INFO)
		write_value(x, &s, 1, 1);
	else if (x->m->type == METRIC_TIMES || x->m->type == METRIC_SIZES)
		write_histogram(x, s, (const struct histogram *)(const void *)(obj + x->value.off));
	else if (x->m->word != NULL)
		write_value(x, &s, strcmp(field_text(&x->value, obj, buf), x->m->word) == 0, 1);
	else if (field_number(&x->value, obj, &n))
		write_value(x, &s, n, x->per); /* a negative one: it is not known */
}

static void
write_samples(const struct snapshot *seen, const struct metric *m, FILE *out)
{
	const struct field *fields = report_tables[m->of].fields;
	struct samples x = { .out = out, .m = m };
	struct field array = { .members = fields };

	metric_name(m, x.name, &x.per);
	find_labels(x.label, fields, m->labels->of);
	if (m->labels->sub != NULL)
		array = exposition_find(fields, m->labels->sub);
	find_labels(x.sub_label, array.members, m->labels->of_sub);
	if (m->member != NULL)
		x.value = exposition_find(array.members, m->member);
	SNAPSHOT_EACH(row, seen, m->of) {
		const struct field_array *a = (const void *)((const char *)row + array.off);

		if (m->labels->sub == NULL)
			write_sample(&x, row, NULL);
		for (unsigned i = 0; m->labels->sub != NULL && i < a->cnt; i++)
			write_sample(&x, row, (const char *)a->at + (size_t)i * array.size);
	}
}

/* In the older format the name of a family is that of its samples, and there is no info. */
static void
write_family(const struct metric *m, bool openmetrics, FILE *out)
{
	static const char *const types[] = { [METRIC_COUNTER] = "counter",
		[METRIC_GAUGE] = "gauge",
		[METRIC_INFO] = "info",
		[METRIC_TIMES] = "histogram",
		[METRIC_SIZES] = "histogram" };
	const char *suffix = openmetrics ? ""
	    : m->type == METRIC_COUNTER  ? "_total"
	    : m->type == METRIC_INFO     ? "_info"
	                                 : "";
	const char *type = !openmetrics && m->type == METRIC_INFO ? "gauge" : types[m->type];
	char name[METRIC_NAME_MAX];
	unsigned per;

	metric_name(m, name, &per);
	fprintf(out, "# TYPE %s%s %s\n# HELP %s%s ", name, suffix, type, name, suffix);
	exposition_label_value(metric_help(m), out);
	putc('\n', out);
}

void
exposition_write(const struct snapshot *seen, bool openmetrics, FILE *out)
{
	for (unsigned i = 0; i < metric_cnt; i++) {
		const struct metric *m = &metric_table[i];

		if (i == 0 || strcmp(m->name, metric_table[i - 1].name) != 0)
			write_family(m, openmetrics, out);
		write_samples(seen, m, out);
	}
	if (openmetrics)
		fputs("# EOF\n", out);
}
