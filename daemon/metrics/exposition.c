/* Metrics as text; see exposition.h. */
#include "daemon/metrics/exposition.h"

#include <inttypes.h>
#include <string.h>

#include "base/histogram.h"
#include "daemon/metrics/metric_table.h"

#define LABELS_MAX 8

/* A metric whose members have been looked up: label and value are of the row, or of an object in an array of it. */
struct samples {
	FILE *out;
	const struct metric *m;
	char name[METRIC_NAME_MAX];
	unsigned per;
	struct field label[LABELS_MAX], sub_label[LABELS_MAX]; /* named as labels; end with a name of NULL */
	struct field value;
	const void *row, *sub; /* of the sample at hand; sub: NULL = none */
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

static void
find_labels(struct field out[LABELS_MAX], const struct field *fields, const struct metric_label *l)
{
	for (; l->name != NULL; l++, out++) {
		*out = field_get(fields, l->member);
		out->name = l->name;
	}
	out->name = NULL;
}

/* Returns what stands in front of the next label. */
static const char *
write_labels(FILE *out, const char *front, const struct field *l, const void *obj)
{
	char buf[FIELD_TEXT_MAX];
	uint64_t n;

	for (; l->name != NULL; l++, front = ",") {
		fprintf(out, "%s%s=\"", front, l->name);
		if (field_is_text(l))
			exposition_label_value(field_text(l, obj, buf), out);
		else if (field_number(l, obj, &n))
			fprintf(out, "%" PRIu64, n);
		putc('"', out);
	}
	return front;
}

/* n / per exactly, without a binary fraction. Trailing zeros are left out, except one behind the point. */
static void
format_quotient(char buf[32], uint64_t n, unsigned per)
{
	int digits = per == 1000000 ? 6 : 3, len;

	if (per <= 1) {
		snprintf(buf, 32, "%" PRIu64, n);
		return;
	}
	len = snprintf(buf, 32, "%" PRIu64 ".%0*" PRIu64, n / per, digits, n % per);
	while (buf[len - 1] == '0' && buf[len - 2] != '.')
		buf[--len] = '\0';
}

/* One sample; le: of a histogram's bucket, NULL. */
static void
write_value(const struct samples *x, const char *suffix, const char *le, uint64_t n, unsigned per)
{
	char text[32];

	fprintf(x->out, "%s%s", x->name, suffix);
	const char *front = write_labels(x->out, "{", x->label, x->row);
	if (x->sub != NULL)
		front = write_labels(x->out, front, x->sub_label, x->sub);
	if (x->m->label != NULL) {
		fprintf(x->out, "%s%s=\"%s\"", front, x->m->label, x->m->value);
		front = ",";
	}
	if (le != NULL) {
		fprintf(x->out, "%sle=\"%s\"", front, le);
		front = ",";
	}
	format_quotient(text, n, per);
	fprintf(x->out, "%s %s\n", front[0] == ',' ? "}" : "", text);
}

/* Counts that add up, as Prometheus has them; nothing before the first, as 900 idle services would have 60,000 buckets. A
 * sum of times is in ns. */
static void
write_histogram(const struct samples *x, const struct histogram *h)
{
	const bool times = x->m->type == METRIC_TIMES;
	const uint64_t *bounds = times ? histogram_times_us : histogram_sizes;
	uint64_t sum = 0;
	char le[32] = "+Inf";

	for (unsigned i = 0; i <= HISTOGRAM_BOUNDS; i++)
		sum += h->cnt[i];
	if (sum == 0)
		return;
	sum = 0;
	for (unsigned i = 0; i < HISTOGRAM_BOUNDS; i++) {
		format_quotient(le, bounds[i], times ? 1000000 : 1);
		write_value(x, "_bucket", le, sum += h->cnt[i], 1);
	}
	write_value(x, "_bucket", "+Inf", sum += h->cnt[HISTOGRAM_BOUNDS], 1);
	write_value(x, "_sum", NULL, times ? h->sum / 1000 : h->sum, times ? 1000000 : 1);
	write_value(x, "_count", NULL, sum, 1);
}

static void
write_sample(const struct samples *x)
{
	const char *obj = x->sub != NULL ? x->sub : x->row;
	const char *suffix = x->m->type == METRIC_COUNTER ? "_total" : "";
	char buf[FIELD_TEXT_MAX];
	uint64_t n;

	if (x->m->type == METRIC_INFO)
		write_value(x, "_info", NULL, 1, 1);
	else if (x->m->type == METRIC_TIMES || x->m->type == METRIC_SIZES)
		write_histogram(x, (const struct histogram *)(const void *)(obj + x->value.off));
	else if (x->m->word != NULL)
		write_value(x, suffix, NULL, strcmp(field_text(&x->value, obj, buf), x->m->word) == 0, 1);
	else if (field_number(&x->value, obj, &n))
		write_value(x, suffix, NULL, n, x->per); /* a negative number is not known */
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
		array = field_get(fields, m->labels->sub);
	find_labels(x.sub_label, array.members, m->labels->of_sub);
	if (m->member != NULL)
		x.value = field_get(array.members, m->member);
	SNAPSHOT_EACH(row, seen, m->of) {
		const struct field_array *a = (const void *)((const char *)row + array.off);

		x.row = row;
		if (m->labels->sub == NULL)
			write_sample(&x);
		for (unsigned i = 0; m->labels->sub != NULL && i < a->cnt; i++) {
			x.sub = (const char *)a->at + (size_t)i * array.size;
			write_sample(&x);
		}
	}
}

void
exposition_write(const struct snapshot *seen, bool openmetrics, FILE *out)
{
	/* In the older format the name of a family is that of its samples, and there is no info. */
	static const struct {
		const char *type, *older_type, *suffix;
	} of[] = {
		[METRIC_COUNTER] = { "counter", "counter", "_total" },
		[METRIC_GAUGE] = { "gauge", "gauge", "" },
		[METRIC_INFO] = { "info", "gauge", "_info" },
		[METRIC_TIMES] = { "histogram", "histogram", "" },
		[METRIC_SIZES] = { "histogram", "histogram", "" },
	};
	char name[METRIC_NAME_MAX];
	unsigned per;

	for (unsigned i = 0; i < metric_cnt; i++) {
		const struct metric *m = &metric_table[i];
		const char *suffix = openmetrics ? "" : of[m->type].suffix;

		if (i == 0 || strcmp(m->name, metric_table[i - 1].name) != 0) {
			metric_name(m, name, &per);
			fprintf(out, "# TYPE %s%s %s\n# HELP %s%s ", name, suffix,
			    openmetrics ? of[m->type].type : of[m->type].older_type, name, suffix);
			exposition_label_value(metric_help(m), out);
			putc('\n', out);
		}
		write_samples(seen, m, out);
	}
	if (openmetrics)
		fputs("# EOF\n", out);
}
