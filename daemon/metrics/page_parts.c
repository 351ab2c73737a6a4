/* Parts of pages; see page_parts.h. A table scrolls by itself on a narrow screen. */
#include "daemon/metrics/page_parts.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "daemon/event/event_kinds.h"
#include "wire/clc.h"

#define EVENTS_SHOWN 20

static const char page_head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n"
    "<link rel=\"icon\" href=\"data:,\">\n<style>\n"
    ":root{--bg:#f6f7f9;--fg:#1b1f24;--dim:#5c6670;--box:#fff;--line:#d9dee4;--ok:#1a7f37;--warn:#9a6700;--bad:#c62828;"
    "--a:#1f6feb;--b:#bc4c00;--c:#8250df}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#14171b;--fg:#e4e8ec;--dim:#98a2ad;--box:#1d2126;--line:#343b43;"
    "--ok:#57c26d;--warn:#e0b040;--bad:#ff7b72;--a:#6cb0ff;--b:#ffa657;--c:#d2a8ff}}\n"
    "*{box-sizing:border-box}body{margin:0 auto;max-width:80rem;padding:1rem;background:var(--bg);color:var(--fg);"
    "font:15px/1.45 system-ui,sans-serif}\n"
    "h1{font-size:1.3rem;margin:0}h2{font-size:1rem;margin:1.4rem 0 .5rem}p{margin:.2rem 0;color:var(--dim)}\n"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(7.8rem,1fr));gap:.6rem;margin-top:.8rem}\n"
    ".tile,.box{background:var(--box);border:1px solid var(--line);border-radius:.5rem}\n"
    ".tile{padding:.5rem .7rem}.tile b{display:block;font-size:1.35rem;font-weight:600}.tile span{color:var(--dim);"
    "font-size:.85rem}\n"
    ".box{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}\n"
    "th,td{padding:.35rem .7rem;text-align:left;white-space:nowrap;border-bottom:1px solid var(--line)}\n"
    "tr:last-child td{border-bottom:0}th{color:var(--dim);font-weight:500;font-size:.85rem}.n{text-align:right}\n"
    ".box,.tile{min-width:0}h1 a,td a,p a,h2 a{color:inherit}form{display:inline}button,select{font:inherit}\n"
    ".charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(17rem,1fr));gap:.6rem;margin-top:.8rem}\n"
    "figure{margin:0;padding:.5rem .7rem;display:flex;flex-direction:column}figcaption{font-size:.85rem;color:var(--dim)}figcaption b{color:var(--fg)}\n"
    "svg{display:block;width:100%;height:5rem;margin:auto 0 .3rem}svg.s{width:7rem;height:1.3rem;margin:0;display:inline-block;vertical-align:middle}\n"
    "polyline{fill:none;stroke-width:1.6;vector-effect:non-scaling-stroke}.a{color:var(--a);stroke:var(--a)}\n"
    ".b{color:var(--b);stroke:var(--b)}.c{color:var(--c);stroke:var(--c)}.mark{stroke:var(--line);stroke-width:3;"
    "vector-effect:non-scaling-stroke}.mark.warn{stroke:var(--warn)}.axis{display:flex;justify-content:space-between;"
    "font-size:.75rem;color:var(--dim)}td.wrap{white-space:normal;min-width:14rem}\n"
    ".ok{color:var(--ok)}.warn{color:var(--warn)}.bad{color:var(--bad)}.foot{margin-top:1.2rem}.w{width:100%}.none{padding:.5rem .7rem;color:var(--dim)}\n"
    "</style>\n";

void
page_text(FILE *out, const char *s)
{
	for (; *s != '\0'; s++) {
		const unsigned char c = (unsigned char)*s;

		if (c == '<' || c == '>' || c == '&' || c == '"' || c == '\'')
			fprintf(out, "&#%u;", c);
		else
			putc(c < ' ' || c == 0x7f ? '?' : c, out);
	}
}

const char *
page_bytes(char buf[32], uint64_t n)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
	double v = (double)n;
	unsigned i = 0;

	for (; v >= 1024 && i < 5; i++)
		v /= 1024;
	snprintf(buf, 32, "%.*f %s", i == 0 || v >= 100 ? 0 : 1, v, units[i]);
	return buf;
}

/* A duration; a negative one is not known. */
const char *
page_duration(char buf[32], int64_t ns)
{
	const int64_t us = ns / 1000;

	if (ns < 0)
		strcpy(buf, "-");
	else if (us < 1000)
		snprintf(buf, 32, "%" PRId64 " &micro;s", us);
	else if (us < 1000000)
		snprintf(buf, 32, "%.1f ms", (double)us / 1000);
	else if (us < 120000000)
		snprintf(buf, 32, "%.1f s", (double)us / 1000000);
	else if (us < 7200000000)
		snprintf(buf, 32, "%" PRId64 " min", us / 60000000);
	else if (us < 172800000000)
		snprintf(buf, 32, "%" PRId64 " h", us / 3600000000);
	else
		snprintf(buf, 32, "%" PRId64 " d", us / 86400000000);
	return buf;
}

void
page_cell_text(const struct page *p, const char *class, const char *s)
{
	fprintf(p->out, "<td class=\"%s\">", class);
	page_text(p->out, s != NULL && s[0] != '\0' ? s : "-");
	fputs("</td>", p->out);
}

/* A number is marked by the class unless it is 0. */
void
page_cell_number(const struct page *p, const char *class, uint64_t n)
{
	fprintf(p->out, "<td class=\"n %s\">%" PRIu64 "</td>", n != 0 ? class : "", n);
}

void
page_cell_bytes(const struct page *p, uint64_t n)
{
	fprintf(p->out, "<td class=\"n\">%s</td>", page_bytes((char[32]){ 0 }, n));
}

void
page_cell_ns(const struct page *p, int64_t ns)
{
	fprintf(p->out, "<td class=\"n\">%s</td>", page_duration((char[32]){ 0 }, ns));
}

/* The number of rows of a kind; the first PAGE_ROWS of them are put into `rows`. */
size_t
page_find_rows(const struct page *p, enum report_kind kind, const void *rows[PAGE_ROWS])
{
	size_t n = 0;

	SNAPSHOT_EACH(row, p->seen, kind)
		if (n++ < PAGE_ROWS)
			rows[n - 1] = row;
	return n;
}

/* Of n rows; headings are separated by '|', those of numbers begin with '#'. */
void
page_section(const struct page *p, const char *title, const char *headings,
    void (*write_cells)(const struct page *, const void *), const void *const rows[], size_t n)
{
	fprintf(p->out, "<section><h2>%s</h2><div class=\"box\">%s", title,
	    n > 0 ? "<table><tr>" : "<div class=\"none\">none</div>");
	for (size_t len; n > 0 && *headings != '\0'; headings += len + (headings[len] == '|')) {
		const bool number = *headings == '#';

		len = strcspn(headings, "|");
		fprintf(p->out, "<th%s>%.*s</th>", number ? " class=\"n\"" : "", (int)len - number, headings + number);
	}
	fputs(n > 0 ? "</tr>\n" : "", p->out);
	for (size_t i = 0; i < n && i < PAGE_ROWS; i++) {
		fputs("<tr>", p->out);
		write_cells(p, rows[i]);
		fputs("</tr>\n", p->out);
	}
	fputs(n > 0 ? "</table>" : "", p->out);
	if (n > PAGE_ROWS)
		fprintf(p->out, "<div class=\"none\">and %zu more: see smcrctl</div>", n - PAGE_ROWS);
	fputs("</div></section>\n", p->out);
}

void
page_section_of_kind(const struct page *p, const char *title, const char *headings, enum report_kind kind,
    void (*write_cells)(const struct page *, const void *))
{
	const void *rows[PAGE_ROWS];
	const size_t n = page_find_rows(p, kind, rows);

	page_section(p, title, headings, write_cells, rows, n);
}

static void
reason_row(const struct page *p, const void *row)
{
	const struct tally_entry *r = row;

	page_cell_number(p, "warn", r->cnt);
	fprintf(p->out, "<td class=\"\">0x%08" PRIx32 "</td>", r->key);
	page_cell_text(p, "w", clc_diag_str(r->key));
}

void
page_section_of_reasons(const struct page *p, const char *title, const struct field_array *a)
{
	const void *rows[PAGE_ROWS];

	for (unsigned i = 0; i < a->cnt && i < PAGE_ROWS; i++)
		rows[i] = (const struct tally_entry *)a->at + i;
	page_section(p, title, "#count|code|reason", reason_row, rows, a->cnt);
}

static void
event_row(const struct page *p, const void *row)
{
	const struct report_event *e = row;
	const time_t s = (time_t)(e->time_us / 1000000);
	const bool warns = event_kinds[e->kind].level <= LOG_LVL_WARNING;
	char at[32] = "";
	struct tm tm;

	if (gmtime_r(&s, &tm) != NULL)
		strftime(at, sizeof(at), "%F %T", &tm);
	fprintf(p->out, "<td>%s</td>", at);
	page_cell_ns(p, (p->now_ms - e->time_us / 1000) * 1000000);
	page_cell_text(p, warns ? "wrap warn" : "wrap", e->text);
}

void
page_section_of_events(const struct page *p, const char *service)
{
	const void *newest[EVENTS_SHOWN], *rows[EVENTS_SHOWN];
	size_t cnt = 0, n;

	SNAPSHOT_EACH(row, p->seen, REPORT_EVENT)
		if (service == NULL || strcmp(((const struct report_event *)row)->service, service) == 0)
			newest[cnt++ % EVENTS_SHOWN] = row;
	n = cnt < EVENTS_SHOWN ? cnt : EVENTS_SHOWN;
	for (size_t i = 0; i < n; i++)
		rows[i] = newest[(cnt - 1 - i) % EVENTS_SHOWN];
	page_section(p, "Last events", "UTC|#ago|event", event_row, rows, n);
}

void
page_link_text(FILE *out, const char *s)
{
	for (; *s != '\0'; s++)
		fprintf(out, "%%%02X", (unsigned char)*s);
}

void
page_begin(const struct page *p, const char *title)
{
	fprintf(p->out, "%s<title>", page_head);
	page_text(p->out, title);
	fputs(" - smcrd</title></head><body>\n", p->out);
}

void
page_end(const struct page *p)
{
	fputs(
	    "<p class=\"foot\">As it was when the page was made. For programs: /metrics, /status.json, /healthz.</p>\n"
	    "</body></html>\n",
	    p->out);
}
