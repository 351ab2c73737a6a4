/* Metrics as text; see exposition.h. */
#include "daemon/metrics/exposition.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "daemon/metrics/metric_table.h"

#define MEMBER_MAX 64

struct exposition {
	json_t *root[DOC_CNT];
	json_t *data[DOC_CNT]; /* of them, borrowed */
	bool openmetrics;
	FILE *out;
};

/* The labels of a sample: objects whose members they are, and what they are called. */
struct sample {
	const struct metric *m;
	const json_t *obj, *sub; /* sub: NULL = none */
	char name[METRIC_NAME_MAX];
	unsigned per;
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

/* "member" or "group.member"; NULL when it is not there. */
static const json_t *
member_of(const json_t *obj, const char *path)
{
	const char *dot = strchr(path, '.');
	char first[MEMBER_MAX];

	if (dot == NULL)
		return json_object_get(obj, path);
	snprintf(first, sizeof(first), "%.*s", (int)(dot - path), path);
	return json_object_get(json_object_get(obj, first), dot + 1);
}

static void
write_label(const struct exposition *x, bool *any, const char *name, const json_t *value)
{
	fprintf(x->out, "%s%s=\"", *any ? "," : "{", name);
	if (json_is_string(value))
		exposition_label_value(json_string_value(value), x->out);
	else if (json_is_integer(value))
		fprintf(x->out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	putc('"', x->out);
	*any = true;
}

/* Name and labels. */
static void
write_head(const struct exposition *x, const struct sample *s)
{
	const struct metric_labels *l = s->m->labels;
	bool any = false;

	fprintf(x->out, "%s%s", s->name, s->suffix);
	for (const struct metric_label *k = l->of; k->name != NULL; k++)
		write_label(x, &any, k->name, json_object_get(s->obj, k->member));
	for (const struct metric_label *k = l->of_sub; s->sub != NULL && k->name != NULL; k++)
		write_label(x, &any, k->name, json_object_get(s->sub, k->member));
	if (s->m->label != NULL)
		fprintf(x->out, "%s%s=\"%s\"", any ? "," : "{", s->m->label, s->m->value);
	any = any || s->m->label != NULL;
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
write_value(const struct exposition *x, const struct sample *s, uint64_t n, unsigned per)
{
	char text[32];

	format_quotient(text, sizeof(text), n, per);
	write_head(x, s);
	fprintf(x->out, "%s\n", text);
}

static uint64_t
number_of(const json_t *v)
{
	json_int_t n = json_is_true(v) ? 1 : json_integer_value(v);

	return n > 0 ? (uint64_t)n : 0;
}

/* Counts that add up, as Prometheus has them. */
static void
write_histogram(const struct exposition *x, struct sample s, const json_t *h)
{
	const bool times = s.m->type == METRIC_TIMES;
	const unsigned per = times ? 1000000 : 1;
	const json_t *bounds = json_object_get(x->data[DOC_STATS], times ? "time_bounds_us" : "size_bounds_bytes");
	const json_t *counts = json_object_get(h, "counts");
	const size_t n = json_array_size(bounds);
	uint64_t sum = 0;
	char le[32];

	s.suffix = "_bucket";
	s.le = le;
	for (size_t i = 0; i <= n; i++) {
		sum += number_of(json_array_get(counts, i));
		if (i < n)
			format_quotient(le, sizeof(le), number_of(json_array_get(bounds, i)), per);
		else
			strcpy(le, "+Inf");
		write_value(x, &s, sum, 1);
	}
	s.le = NULL;
	s.suffix = "_sum";
	write_value(x, &s, number_of(json_object_get(h, times ? "sum_us" : "sum_bytes")), per);
	s.suffix = "_count";
	write_value(x, &s, sum, 1);
}

static void
write_sample(const struct exposition *x, const struct metric *m, const json_t *obj, const json_t *sub)
{
	static const char *const suffixes[] = { [METRIC_COUNTER] = "_total",
		[METRIC_GAUGE] = "",
		[METRIC_INFO] = "_info",
		[METRIC_TIMES] = "",
		[METRIC_SIZES] = "" };
	struct sample s = { .m = m, .obj = obj, .sub = sub, .suffix = suffixes[m->type] };

	metric_name(m, s.name, &s.per);
	if (m->type == METRIC_INFO) {
		write_value(x, &s, 1, 1);
		return;
	}
	const json_t *v = member_of(sub != NULL ? sub : obj, m->member);
	if (m->type == METRIC_TIMES || m->type == METRIC_SIZES) {
		write_histogram(x, s, v);
	} else if (m->word != NULL) {
		write_value(x, &s, json_is_string(v) && strcmp(json_string_value(v), m->word) == 0, 1);
	} else if (json_is_boolean(v) || (json_is_integer(v) && json_integer_value(v) >= 0)) {
		write_value(x, &s, number_of(v), s.per); /* a negative one: it is not known */
	}
}

static void
write_samples(const struct exposition *x, const struct metric *m)
{
	const json_t *data = x->data[m->doc], *obj, *sub;
	size_t i, k;

	if (m->labels->array == NULL) {
		write_sample(x, m, data, NULL);
		return;
	}
	json_array_foreach(json_object_get(data, m->labels->array), i, obj)
	{
		if (m->labels->sub == NULL)
			write_sample(x, m, obj, NULL);
		else
			json_array_foreach(json_object_get(obj, m->labels->sub), k, sub) write_sample(x, m, obj, sub);
	}
}

/* In the older format the name of a family is that of its samples, and there is no info. */
static void
write_family(const struct exposition *x, const struct metric *m)
{
	static const char *const types[] = { [METRIC_COUNTER] = "counter",
		[METRIC_GAUGE] = "gauge",
		[METRIC_INFO] = "info",
		[METRIC_TIMES] = "histogram",
		[METRIC_SIZES] = "histogram" };
	const char *suffix = x->openmetrics ? ""
	    : m->type == METRIC_COUNTER     ? "_total"
	    : m->type == METRIC_INFO        ? "_info"
	                                    : "";
	const char *type = !x->openmetrics && m->type == METRIC_INFO ? "gauge" : types[m->type];

	char name[METRIC_NAME_MAX];
	unsigned per;

	metric_name(m, name, &per);
	fprintf(x->out, "# TYPE %s%s %s\n# HELP %s%s ", name, suffix, type, name, suffix);
	exposition_label_value(metric_help(m), x->out);
	putc('\n', x->out);
}

int
exposition_write(const struct documents *d, bool openmetrics, FILE *out)
{
	struct exposition x = { .openmetrics = openmetrics, .out = out };
	int rc = 0;

	for (unsigned i = 0; i < DOC_CNT && rc == 0; i++) {
		x.root[i] = json_loadb(d->doc[i].p, d->doc[i].len, 0, NULL);
		x.data[i] = json_object_get(x.root[i], "data");
		rc = json_is_object(x.data[i]) ? 0 : -EINVAL;
	}
	for (unsigned i = 0; i < metric_cnt && rc == 0; i++) {
		const struct metric *m = &metric_table[i];

		if (i == 0 || strcmp(m->name, metric_table[i - 1].name) != 0)
			write_family(&x, m);
		write_samples(&x, m);
	}
	if (openmetrics && rc == 0)
		fputs("# EOF\n", out);
	for (unsigned i = 0; i < DOC_CNT; i++)
		json_decref(x.root[i]);
	return rc;
}
