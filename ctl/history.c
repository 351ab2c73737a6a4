/* The text of history; see ctl/history.h. */
#include "ctl/history.h"

#include <inttypes.h>
#include <langinfo.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/show.h"
#include "ctl/template.h"
#include "ctl/text.h"

#define COLUMNS_MAX 40

enum unit { GAUGE, COUNTS, BYTES, TIME };

/* What a series comes to. */
struct figures {
	int64_t now, most, sum;
};

static int64_t
sample(const json_t *series, size_t i)
{
	const int64_t n = json_integer_value(json_array_get(series, i));

	return n > 0 ? n : 0;
}

/* Sums of what a daemon may say stay numbers. */
static int64_t
sum_of(int64_t a, int64_t b)
{
	return a > INT64_MAX - b ? INT64_MAX : a + b;
}

static void
count_in(struct figures *x, int64_t n)
{
	x->now = n;
	x->most = n > x->most ? n : x->most;
	x->sum = sum_of(x->sum, n);
}

/* A character for each so many samples of both series (b: NULL = one), as high as the largest of them; nothing for 0. */
static struct figures
spark(FILE *f, const json_t *a, const json_t *b, unsigned columns)
{
	static const char *const ascii[] = { " ", ".", ":", "-", "=", "+", "*", "#", "@" };
	static const char *const blocks[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	const char *const *const levels = strcmp(nl_langinfo(CODESET), "UTF-8") == 0 ? blocks : ascii;
	int64_t high[COLUMNS_MAX] = { 0 };
	struct figures x = { 0 };

	for (size_t i = 0; i < HISTORY_SAMPLES_SHOWN; i++) {
		const int64_t n = sum_of(sample(a, i), sample(b, i));
		int64_t *at = &high[i * columns / HISTORY_SAMPLES_SHOWN];

		count_in(&x, n);
		*at = n > *at ? n : *at;
	}
	for (unsigned i = 0; i < columns; i++) {
		const double eighths = x.most > 0 ? (double)high[i] * 8 / (double)x.most : 0; /* at most 8 */
		const int level = (int)eighths;

		fputs(levels[level + (level < eighths)], f);
	}
	return x;
}

static void
cell(FILE *f, enum unit unit, int64_t n, double seconds)
{
	char text[HUMAN_MAX] = "", buf[2 * HUMAN_MAX];
	const double rate = (double)n / seconds;

	if (unit == COUNTS && seconds > 0)
		snprintf(buf, sizeof(buf), "%.*f/s", rate < 100 ? 1 : 0, rate);
	else if (unit == BYTES)
		snprintf(buf, sizeof(buf), "%s%s", human_bytes(text, (uint64_t)(seconds > 0 ? rate : (double)n)),
		    seconds > 0 ? "/s" : "");
	else if (unit == TIME)
		snprintf(buf, sizeof(buf), "%s", n > 0 ? human_us(text, n) : "-");
	else
		snprintf(buf, sizeof(buf), "%" PRId64, n);
	fprintf(f, " %8s", buf);
}

static void
show_series(FILE *f, const json_t *of, double step_s)
{
	static const struct {
		const char *words, *key;
		enum unit unit;
	} rows[] = {
		{ "on SMC-R", "smcr", GAUGE },
		{ "on TCP", "tcp", GAUGE },
		{ "in set-up", "setup", GAUGE },
		{ "accepted", "accepted", COUNTS },
		{ "refused", "refused", COUNTS },
		{ "from app", "bytes_from_app", BYTES },
		{ "to app", "bytes_to_app", BYTES },
		{ "round trip", "rtt_us", TIME },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const bool adds = rows[i].unit == COUNTS || rows[i].unit == BYTES;

		fprintf(f, "%-10s ", rows[i].words);
		const struct figures x = spark(f, json_object_get(of, rows[i].key), NULL, COLUMNS_MAX);
		cell(f, rows[i].unit, x.now, adds ? step_s : 0);
		cell(f, rows[i].unit, x.most, adds ? step_s : 0);
		if (adds)
			cell(f, rows[i].unit, x.sum, 0);
		fputc('\n', f);
	}
}

/* Names are cut, at a character, to what leaves the line on the screen. */
static void
show_name(FILE *f, const char *name)
{
	unsigned columns = 0;
	size_t len = 0;
	char cut[80];

	while (name[len] != '\0' && columns < 18 && len + 4 < sizeof(cut)) {
		do
			cut[len] = name[len], len++;
		while (((unsigned char)name[len] & 0xc0) == 0x80 && len + 4 < sizeof(cut));
		columns++;
	}
	cut[len] = '\0';
	print_clean(f, cut, false);
	fprintf(f, "%*s", (int)(19 - columns), "");
}

/* A line for each service: its bytes of both directions. */
static void
show_history_services(FILE *f, const json_t *services, double step_s)
{
	struct figures x;

	fprintf(f, "\n%-19s%-30s %8s %8s %5s %5s\n", "SERVICE", "DATA BOTH WAYS", "NOW", "PEAK", "CONNS", "NEW");
	for (size_t i = 0; i < json_array_size(services); i++) {
		const json_t *s = json_array_get(services, i), *accepted = json_object_get(s, "accepted");
		struct figures conns = { 0 }, new = { 0 };

		show_name(f, get_string(s, "name"));
		x = spark(f, json_object_get(s, "bytes_from_app"), json_object_get(s, "bytes_to_app"), 30);
		cell(f, BYTES, x.now, step_s);
		cell(f, BYTES, x.most, step_s);
		for (size_t k = 0; k < HISTORY_SAMPLES_SHOWN; k++) {
			count_in(&conns,
			    sum_of(sample(json_object_get(s, "smcr"), k), sample(json_object_get(s, "tcp"), k)));
			count_in(&new, sample(accepted, k));
		}
		fprintf(f, " %5" PRId64 " %5" PRId64 "\n", conns.now, new.sum);
	}
}

void
history_show(FILE *f, const json_t *d)
{
	const json_t *services = json_object_get(d, "services");
	const json_t *only = json_array_size(services) == 1 ? json_array_get(services, 0) : NULL;
	const double step_s = (double)(get_int(d, "step_ms") > 0 ? get_int(d, "step_ms") : 1) / 1000;
	json_t *head = json_pack(
	    "{s:I}", "end_us", get_int(d, "end_ms") <= INT64_MAX / 1000 ? get_int(d, "end_ms") * 1000 : 0);
	char title[64];

	fputs(only != NULL ? "Service " : "All services", f);
	print_clean(f, get_string(only, "name"), false);
	template_print(f, head, ", until {end_us:D} on the right\n");
	json_decref(head);
	snprintf(title, sizeof(title), "%.0f s a character", step_s * HISTORY_SAMPLES_SHOWN / COLUMNS_MAX);
	fprintf(f, "%-51s %8s %8s %8s\n", title, "NOW", "PEAK", "ALL");
	show_series(f, only != NULL ? only : json_object_get(d, "total"), step_s);
	if (json_array_size(services) > 1)
		show_history_services(f, services, step_s);
}
