/* Charts of the last ten minutes as SVG; see page_parts.h. Without text inside, so that it may be stretched; colours are those of the
 * page. */
#include <inttypes.h>
#include <string.h>

#include "daemon/event/event_kinds.h"
#include "daemon/metrics/page_parts.h"

#define WIDTH 600
#define HEIGHT 80
#define SPARK_POINTS 40

enum unit { COUNT, PER_SECOND, BYTES_PER_SECOND, MICROSECONDS };

struct series {
	const char *name;
	size_t off; /* in struct history_sample */
};

static const struct chart {
	const char *title;
	enum unit unit;
	struct series of[3];
} charts[] = {
	{ "Connections", COUNT,
	    { { "SMC-R", offsetof(struct history_sample, modes[SESSION_SMCR]) },
	        { "TCP", offsetof(struct history_sample, modes[SESSION_TCP]) },
	        { "set-up", offsetof(struct history_sample, modes[SESSION_SETUP]) } } },
	{ "Data", BYTES_PER_SECOND,
	    { { "from programs", offsetof(struct history_sample, bytes[0]) },
	        { "to programs", offsetof(struct history_sample, bytes[1]) } } },
	{ "New connections", PER_SECOND,
	    { { "accepted", offsetof(struct history_sample, accepted) },
	        { "refused", offsetof(struct history_sample, refused) } } },
	{ "Round trip", MICROSECONDS, { { "of links", offsetof(struct history_sample, rtt_us) } } },
};

static uint64_t
sample_value(const struct history_sample *s, size_t off)
{
	const char *at = (const char *)s + off;

	return off < offsetof(struct history_sample, modes) ? *(const uint64_t *)(const void *)at
	                                                    : *(const uint32_t *)(const void *)at;
}

const struct report_history *
page_history(const struct page *p, const char *service)
{
	SNAPSHOT_EACH(row, p->seen, REPORT_HISTORY)
		if (strcmp(((const struct report_history *)row)->name, service) == 0)
			return row;
	return NULL;
}

static void
write_figure(FILE *out, enum unit unit, uint64_t n)
{
	const double rate = (double)n / (HISTORY_STEP_NS / 1e9);
	char buf[32];

	if (unit == COUNT)
		fprintf(out, "%" PRIu64, n);
	else if (unit == PER_SECOND)
		fprintf(out, "%.*f/s", rate < 100 ? 1 : 0, rate);
	else if (unit == BYTES_PER_SECOND)
		fprintf(out, "%s/s", page_bytes(buf, (uint64_t)rate));
	else
		fputs(n > 0 ? page_duration(buf, (int64_t)n * 1000) : "-", out);
}

static uint64_t
peak_of(const struct report_history *h, size_t off)
{
	uint64_t most = 0;

	for (unsigned i = 0; i < HISTORY_SAMPLES; i++)
		most = sample_value(&h->at[i], off) > most ? sample_value(&h->at[i], off) : most;
	return most;
}

static void
draw_line(const struct page *p, const struct report_history *h, size_t off, char class, uint64_t top)
{
	fprintf(p->out, "<polyline class=\"%c\" points=\"", class);
	for (unsigned i = 0; i < HISTORY_SAMPLES; i++) {
		const double part = top > 0 ? (double)sample_value(&h->at[i], off) / (double)top : 0;

		fprintf(p->out, "%s%u,%.0f", i > 0 ? " " : "", i * WIDTH / (HISTORY_SAMPLES - 1),
		    HEIGHT - 1 - part * (HEIGHT - 3));
	}
	fputs("\"></polyline>", p->out);
}

/* A line for each event of this time; its text when it is pointed at. */
static void
write_marks(const struct page *p, const struct report_history *h, const char *service)
{
	const int64_t span_ms = (int64_t)HISTORY_SAMPLES * h->step_ms;

	SNAPSHOT_EACH(row, p->seen, REPORT_EVENT) {
		const struct report_event *e = row;
		const int64_t at_ms = e->time_us / 1000 - (h->end_ms - span_ms);

		if (at_ms < 0 || at_ms > span_ms || (service != NULL && strcmp(e->service, service) != 0))
			continue;
		fprintf(p->out, "<path class=\"mark %s\" d=\"M%" PRId64 " 0V%d\"><title>",
		    event_kinds[e->kind].level <= LOG_LVL_WARNING ? "warn" : "", at_ms * WIDTH / span_ms, HEIGHT);
		page_text(p->out, e->text);
		fputs("</title></path>", p->out);
	}
}

static void
write_chart(const struct page *p, const struct chart *c, const struct report_history *h, const char *service)
{
	uint64_t top = 0;

	fprintf(p->out, "<figure class=\"box\"><figcaption><b>%s</b>", c->title);
	for (unsigned i = 0; i < 3 && c->of[i].name != NULL; i++) {
		const uint64_t most = peak_of(h, c->of[i].off);

		fprintf(p->out, "%s <span class=\"%c\">%s</span> ", i > 0 ? "," : "", "abc"[i], c -> of[i].name);
		write_figure(p->out, c->unit, sample_value(&h->at[HISTORY_SAMPLES - 1], c->of[i].off));
		fputs(" (peak ", p->out);
		write_figure(p->out, c->unit, most);
		fputs(")", p->out);
		top = most > top ? most : top;
	}
	fprintf(p->out,
	    "</figcaption><svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"%s in the last ten "
	    "minutes\">",
	    WIDTH, HEIGHT, c->title);
	write_marks(p, h, service);
	for (unsigned i = 3; i-- > 0;)
		if (c->of[i].name != NULL)
			draw_line(p, h, c->of[i].off, "abc"[i], top);
	fputs(
	    "</svg><div class=\"axis\"><span>10 min ago</span><span>5</span><span>now</span></div></figure>\n", p->out);
}

void
page_charts(const struct page *p, const char *service)
{
	const struct report_history *h = page_history(p, service != NULL ? service : "");

	if (h == NULL) {
		fputs("<p>No connection in the last ten minutes.</p>\n", p->out);
		return;
	}
	fputs("<div class=\"charts\">\n", p->out);
	for (size_t i = 0; i < sizeof(charts) / sizeof(charts[0]); i++)
		write_chart(p, &charts[i], h, service);
	fputs("</div>\n", p->out);
}

void
page_cell_spark(const struct page *p, const struct report_history *h)
{
	uint64_t high[SPARK_POINTS] = { 0 }, top = 0, n = 0;

	for (unsigned i = 0; h != NULL && i < HISTORY_SAMPLES; i++) {
		uint64_t *at = &high[i * SPARK_POINTS / HISTORY_SAMPLES];

		n = h->at[i].bytes[0] + h->at[i].bytes[1];
		*at = n > *at ? n : *at;
		top = n > top ? n : top;
	}
	if (top == 0) {
		page_cell_text(p, "", "");
		return;
	}
	fprintf(p->out,
	    "<td><svg class=\"s\" viewBox=\"0 0 %d 20\" preserveAspectRatio=\"none\"><polyline class=\"a\" points=\"",
	    SPARK_POINTS);
	for (unsigned i = 0; i < SPARK_POINTS; i++)
		fprintf(p->out, "%s%u,%.0f", i > 0 ? " " : "", i, 19 - (double)high[i] / (double)top * 18);
	fputs("\"></polyline></svg> ", p->out);
	write_figure(p->out, BYTES_PER_SECOND, n);
	fputs("</td>", p->out);
}
