/*
 * The page; see page.h. Each section is a list of the documents, with a row for each object and a column for each thing that is
 * worth seeing at a glance; tables scroll by themselves where a screen is narrow.
 */
#include "daemon/metrics/page.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdint.h>
#include <string.h>

#define REFRESH_S 5
#define ROWS_MAX 200 /* of a table; the rest is smcrctl's business */

struct page {
	json_t *root[DOC_CNT];
	json_t *data[DOC_CNT]; /* of them, borrowed */
	FILE *out;
};

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n"
    "<link rel=\"icon\" href=\"data:,\">\n<style>\n"
    ":root{--bg:#f6f7f9;--fg:#1b1f24;--dim:#5c6670;--box:#fff;--line:#d9dee4;--ok:#1a7f37;--warn:#9a6700;--bad:#c62828}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#14171b;--fg:#e4e8ec;--dim:#98a2ad;--box:#1d2126;--line:#343b43;"
    "--ok:#57c26d;--warn:#e0b040;--bad:#ff7b72}}\n"
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
    ".ok{color:var(--ok)}.warn{color:var(--warn)}.bad{color:var(--bad)}.foot{margin-top:1.2rem}.w{width:100%}.none{padding:.5rem .7rem;color:var(--dim)}\n"
    "</style>\n";

/* -- words -- */

static void
text(FILE *out, const char *s)
{
	for (; *s != '\0'; s++) {
		const unsigned char c = (unsigned char)*s;

		if (c == '<' || c == '>' || c == '&' || c == '"' || c == '\'')
			fprintf(out, "&#%u;", c);
		else
			putc(c < ' ' || c == 0x7f ? '?' : c, out);
	}
}

static const char *
string_of(const json_t *obj, const char *member)
{
	const char *s = json_string_value(json_object_get(obj, member));

	return s != NULL ? s : "";
}

static int64_t
number_of(const json_t *obj, const char *member)
{
	return json_integer_value(json_object_get(obj, member));
}

static void
bytes(FILE *out, int64_t n)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
	double v = (double)n;
	unsigned i = 0;

	for (; v >= 1024 && i < 5; i++)
		v /= 1024;
	fprintf(out, i == 0 || v >= 100 ? "%.0f %s" : "%.1f %s", v, units[i]);
}

/* A duration; a negative one is not known. */
static void
duration(FILE *out, int64_t us)
{
	if (us < 0)
		putc('-', out);
	else if (us < 1000)
		fprintf(out, "%" PRId64 " &micro;s", us);
	else if (us < 1000000)
		fprintf(out, "%.1f ms", (double)us / 1000);
	else if (us < 120000000)
		fprintf(out, "%.1f s", (double)us / 1000000);
	else if (us < 7200000000)
		fprintf(out, "%" PRId64 " min", us / 60000000);
	else if (us < 172800000000)
		fprintf(out, "%" PRId64 " h", us / 3600000000);
	else
		fprintf(out, "%" PRId64 " d", us / 86400000000);
}

/* -- tables -- */

static void
cell_text(const struct page *p, const char *class, const char *s)
{
	fprintf(p->out, "<td class=\"%s\">", class);
	text(p->out, s[0] != '\0' ? s : "-");
	fputs("</td>", p->out);
}

/* A number that is better 0 is marked when it is not. */
static void
cell_number(const struct page *p, const char *class, int64_t n)
{
	fprintf(p->out, "<td class=\"n %s\">%" PRId64 "</td>", n != 0 ? class : "", n);
}

static void
cell_bytes(const struct page *p, int64_t n)
{
	fputs("<td class=\"n\">", p->out);
	bytes(p->out, n);
	fputs("</td>", p->out);
}

static void
cell_us(const struct page *p, int64_t us)
{
	fputs("<td class=\"n\">", p->out);
	duration(p->out, us);
	fputs("</td>", p->out);
}

/* A section: headings separated by '|', those of numbers begin with '#'. */
static void
section(const struct page *p, const char *title, const char *headings, const json_t *rows,
    void (*row)(const struct page *, const json_t *))
{
	const size_t n = json_array_size(rows);
	char word[32];

	fprintf(p->out, "<section><h2>%s</h2><div class=\"box\">", title);
	if (n == 0) {
		fputs("<div class=\"none\">none</div></div></section>\n", p->out);
		return;
	}
	fputs("<table><tr>", p->out);
	for (size_t len; *headings != '\0'; headings += len + (headings[len] == '|')) {
		len = strcspn(headings, "|");
		snprintf(word, sizeof(word), "%.*s", (int)len, headings);
		fprintf(p->out, word[0] == '#' ? "<th class=\"n\">%s</th>" : "<th>%s</th>", word + (word[0] == '#'));
	}
	fputs("</tr>\n", p->out);
	for (size_t i = 0; i < n && i < ROWS_MAX; i++) {
		fputs("<tr>", p->out);
		row(p, json_array_get(rows, i));
		fputs("</tr>\n", p->out);
	}
	fputs("</table>", p->out);
	if (n > ROWS_MAX)
		fprintf(p->out, "<div class=\"none\">and %zu more: see smcrctl</div>", n - ROWS_MAX);
	fputs("</div></section>\n", p->out);
}

/* Numbers of a service, from the other document. */
static const json_t *
figures_of(const struct page *p, const char *name)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(p->data[DOC_STATS], "services"), i,
	    one) if (strcmp(string_of(one, "name"), name) == 0) return one;
	return NULL;
}

/* Of a GID: an IPv4 address as such. */
static const char *
address(const char *gid)
{
	static const char mapped[] = "::ffff:";

	return strncmp(gid, mapped, sizeof(mapped) - 1) == 0 && strchr(gid, '.') != NULL ? gid + sizeof(mapped) - 1
	                                                                                 : gid;
}

static void
service_row(const struct page *p, const json_t *s)
{
	const json_t *f = figures_of(p, string_of(s, "name")), *modes = json_object_get(f, "modes");
	const int64_t refused = number_of(s, "refused_allow") + number_of(s, "refused_max") +
	    number_of(s, "refused_per_peer") + number_of(s, "refused_connect") + number_of(s, "refused_fallback");

	cell_text(p, "", string_of(s, "name"));
	cell_number(p, "ok", number_of(modes, "smcr"));
	cell_number(p, "warn", number_of(modes, "tcp"));
	cell_number(p, "", number_of(modes, "setup"));
	cell_number(p, "", number_of(s, "accepted"));
	cell_number(p, "warn", number_of(s, "fallbacks"));
	cell_number(p, "bad", refused);
	cell_number(p, "bad", number_of(s, "resets"));
	cell_bytes(p, number_of(f, "bytes_from_app"));
	cell_bytes(p, number_of(f, "bytes_to_app"));
	cell_text(p, "", string_of(s, "kind"));
	cell_text(p, "", string_of(s, "listen"));
	cell_text(p, "", string_of(s, "to"));
}

static void
group_row(const struct page *p, const json_t *g)
{
	const json_t *failover = json_object_get(g, "last_failover");
	const char *state = string_of(g, "state"), *peer = string_of(g, "peer");

	cell_number(p, "", number_of(g, "id"));
	cell_text(p, "", peer[0] != '\0' ? peer : string_of(g, "peer_id"));
	cell_text(p, "", string_of(g, "role"));
	cell_text(p, strcmp(state, "active") == 0 ? "ok" : "warn", state);
	cell_number(p, "", number_of(g, "connections"));
	cell_number(p, number_of(g, "links") > 1 ? "ok" : "", number_of(g, "links"));
	cell_bytes(p, number_of(g, "rmb_bytes") + number_of(g, "sndbuf_bytes"));
	if (number_of(failover, "age_ms") < 0) {
		cell_text(p, "", "");
		return;
	}
	fputs("<td class=\"warn\">", p->out);
	duration(p->out, number_of(failover, "age_ms") * 1000);
	fputs(" ago, took ", p->out);
	duration(p->out, number_of(failover, "duration_us"));
	fputs(": ", p->out);
	text(p->out, string_of(failover, "cause"));
	fputs("</td>", p->out);
}

static void
link_row(const struct page *p, const json_t *l)
{
	const char *state = string_of(l, "state");

	fprintf(p->out, "<td class=\"n\">%" PRId64 "/%" PRId64 "</td>", number_of(l, "group"), number_of(l, "number"));
	cell_text(p, strcmp(state, "active") == 0 ? "ok" : "bad", state);
	cell_number(p, "", number_of(l, "connections"));
	cell_us(p, number_of(l, "rtt_us"));
	cell_us(p, number_of(l, "idle_ms") * 1000);
	if (number_of(l, "retransmits") < 0)
		cell_text(p, "n", "");
	else
		cell_number(p, "", number_of(l, "retransmits"));
	cell_text(p, "", string_of(l, "device"));
	cell_text(p, "", string_of(l, "transport"));
	cell_text(p, "", address(string_of(l, "peer_gid")));
}

static void
device_row(const struct page *p, const json_t *d)
{
	const json_t *stats = json_object_get(d, "stats");
	const char *port = string_of(d, "port");
	const int64_t errors = number_of(stats, "crc_errors") + number_of(stats, "retry_exc") +
	    number_of(stats, "rnr_retry_exc") + number_of(stats, "remote_access_errs") + number_of(stats, "other_errs");

	cell_text(p, "", string_of(d, "name"));
	cell_number(p, "", number_of(d, "worker"));
	cell_text(p, strcmp(port, "up") == 0 ? "ok" : "bad", port);
	cell_number(p, "", number_of(d, "qps"));
	cell_bytes(p, number_of(d, "registered_bytes"));
	cell_bytes(p, number_of(stats, "bytes_sent"));
	cell_bytes(p, number_of(stats, "bytes_received"));
	cell_number(p, "bad", errors);
	cell_text(p, "", string_of(d, "transport"));
	cell_text(p, "", string_of(d, "interface"));
	cell_text(p, "", address(string_of(d, "gid")));
}

static void
reason_row(const struct page *p, const json_t *r)
{
	cell_number(p, "warn", number_of(r, "count"));
	cell_text(p, "", string_of(r, "code"));
	cell_text(p, "w", string_of(r, "text"));
}

/* -- the whole -- */

static void
tile(const struct page *p, const char *class, const char *what, int64_t n)
{
	fprintf(p->out, "<div class=\"tile\"><b class=\"%s\">%" PRId64 "</b><span>%s</span></div>\n",
	    n != 0 ? class : "", n, what);
}

/* What is taken, and of how much. */
static void
memory_tile(const struct page *p, const char *what, int64_t taken, int64_t most)
{
	fputs("<div class=\"tile\"><b>", p->out);
	bytes(p->out, taken);
	fprintf(p->out, "</b><span>%s, of ", what);
	bytes(p->out, most);
	fputs("</span></div>\n", p->out);
}

static void
tiles(const struct page *p)
{
	const json_t *status = p->data[DOC_STATUS], *conns = json_object_get(status, "connections");
	const json_t *counters = json_object_get(p->data[DOC_STATS], "counters");

	fputs("<div class=\"tiles\">\n", p->out);
	tile(p, "ok", "on SMC-R", number_of(conns, "smcr"));
	tile(p, "warn", "on TCP", number_of(conns, "tcp"));
	tile(p, "", "being set up", number_of(conns, "setup"));
	tile(p, "", "link groups", number_of(status, "groups"));
	tile(p, "", "links", number_of(status, "links"));
	fprintf(p->out,
	    "<div class=\"tile\"><b class=\"%s\">%" PRId64 "/%" PRId64 "</b><span>devices up</span></div>\n",
	    number_of(status, "devices_up") == number_of(status, "devices") ? "ok" : "bad",
	    number_of(status, "devices_up"), number_of(status, "devices"));
	tile(p, "warn", "failovers", number_of(counters, "failovers"));
	memory_tile(p, "RMBs", number_of(status, "rmb_bytes"), number_of(status, "rmb_bytes_max"));
	memory_tile(p, "send buffers", number_of(status, "sndbuf_bytes"), number_of(status, "sndbuf_bytes_max"));
	fputs("</div>\n", p->out);
}

static void
write_page(const struct page *p)
{
	const json_t *status = p->data[DOC_STATUS], *stats = p->data[DOC_STATS];
	const bool draining = json_is_true(json_object_get(status, "draining"));

	fputs(head, p->out);
	fprintf(p->out, "<meta http-equiv=\"refresh\" content=\"%d\">\n<title>smcrd%s</title></head><body>\n",
	    REFRESH_S, draining ? " (draining)" : "");
	fprintf(p->out, "<h1>smcrd%s</h1><p>version ", draining ? " <span class=\"warn\">draining</span>" : "");
	text(p->out, string_of(status, "version"));
	fputs(", up ", p->out);
	duration(p->out, number_of(status, "uptime_ms") * 1000);
	fputs(", memory ", p->out);
	bytes(p->out, number_of(status, "rss_bytes"));
	fprintf(p->out, ", workers %zu</p>\n", json_array_size(json_object_get(status, "workers")));
	tiles(p);
	section(p, "Services",
	    "name|#SMC-R|#TCP|#set-up|#accepted|#fallbacks|#refused|#resets|#from program|#to program|kind|listens at|leads to",
	    json_object_get(status, "services"), service_row);
	section(p, "Why TCP: our reasons", "#count|code|reason", json_object_get(stats, "fallback_reasons_local"),
	    reason_row);
	section(p, "Why TCP: peers' reasons", "#count|code|reason", json_object_get(stats, "fallback_reasons_peer"),
	    reason_row);
	section(p, "Link groups", "#id|peer|role|state|#connections|#links|#memory|last failover",
	    json_object_get(p->data[DOC_GROUPS], "groups"), group_row);
	section(p, "Links", "#link|state|#connections|#round trip|#idle|#sent again|device|transport|to",
	    json_object_get(p->data[DOC_LINKS], "links"), link_row);
	section(p, "Devices",
	    "name|#worker|port|#queue pairs|#registered|#sent|#received|#errors|transport|interface|address",
	    json_object_get(p->data[DOC_DEVICES], "devices"), device_row);
	fprintf(p->out,
	    "<p class=\"foot\">Refreshes itself every %d seconds. For programs: /metrics, /status.json, /healthz.</p>\n",
	    REFRESH_S);
	fputs("</body></html>\n", p->out);
}

int
page_write(const struct documents *d, FILE *out)
{
	struct page p = { .out = out };
	int rc = 0;

	for (unsigned i = 0; i < DOC_CNT && rc == 0; i++) {
		p.root[i] = json_loadb(d->doc[i].p, d->doc[i].len, 0, NULL);
		p.data[i] = json_object_get(p.root[i], "data");
		rc = json_is_object(p.data[i]) ? 0 : -EINVAL;
	}
	if (rc == 0)
		write_page(&p);
	for (unsigned i = 0; i < DOC_CNT; i++)
		json_decref(p.root[i]);
	return rc;
}
