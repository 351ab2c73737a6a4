/* The page; see page.h. Each section is a kind of row, with a line for each object; a table scrolls by itself on a narrow screen. */
#include "daemon/metrics/page.h"

#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#include "base/addr.h"
#include "daemon/session/session.h"
#include "wire/clc.h"

#define REFRESH_S 5
#define ROWS_MAX 200 /* of a table; smcrctl shows all */

struct page {
	const struct snapshot *seen;
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
bytes(char buf[32], uint64_t n)
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
static const char *
duration(char buf[32], int64_t ns)
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

static void
cell_text(const struct page *p, const char *class, const char *s)
{
	fprintf(p->out, "<td class=\"%s\">", class);
	text(p->out, s != NULL && s[0] != '\0' ? s : "-");
	fputs("</td>", p->out);
}

/* A number is marked by the class unless it is 0. */
static void
cell_number(const struct page *p, const char *class, uint64_t n)
{
	fprintf(p->out, "<td class=\"n %s\">%" PRIu64 "</td>", n != 0 ? class : "", n);
}

static void
cell_bytes(const struct page *p, uint64_t n)
{
	fprintf(p->out, "<td class=\"n\">%s</td>", bytes((char[32]){ 0 }, n));
}

static void
cell_ns(const struct page *p, int64_t ns)
{
	fprintf(p->out, "<td class=\"n\">%s</td>", duration((char[32]){ 0 }, ns));
}

/* The number of rows of a kind; the first ROWS_MAX of them are put into `rows`. */
static size_t
find_rows(const struct page *p, enum report_kind kind, const void *rows[ROWS_MAX])
{
	size_t n = 0;

	SNAPSHOT_EACH(row, p->seen, kind)
		if (n++ < ROWS_MAX)
			rows[n - 1] = row;
	return n;
}

/* Of n rows; headings are separated by '|', those of numbers begin with '#'. */
static void
section(const struct page *p, const char *title, const char *headings,
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
	for (size_t i = 0; i < n && i < ROWS_MAX; i++) {
		fputs("<tr>", p->out);
		write_cells(p, rows[i]);
		fputs("</tr>\n", p->out);
	}
	fputs(n > 0 ? "</table>" : "", p->out);
	if (n > ROWS_MAX)
		fprintf(p->out, "<div class=\"none\">and %zu more: see smcrctl</div>", n - ROWS_MAX);
	fputs("</div></section>\n", p->out);
}

static void
section_of_kind(const struct page *p, const char *title, const char *headings, enum report_kind kind,
    void (*write_cells)(const struct page *, const void *))
{
	const void *rows[ROWS_MAX];
	const size_t n = find_rows(p, kind, rows);

	section(p, title, headings, write_cells, rows, n);
}

/* A GID; an IPv4 address as such. */
static void
cell_address(const struct page *p, const struct rnic_gid *gid)
{
	struct sockaddr_storage ss = { 0 };
	char buf[ADDR_STR_MAX];

	addr_from_v6(gid->b, 0, &ss);
	cell_text(p, "", addr_format(&ss, buf, sizeof(buf)));
}

/* By the probes of a service's targets. */
static void
cell_health(const struct page *p, const struct report_health *h)
{
	static const char *const classes[HEALTH_STATE_CNT] = { [HEALTH_UP] = "ok", [HEALTH_DOWN] = "bad" };
	const char *class = classes[h->state] != NULL ? classes[h->state] : "warn";

	if (h->state == HEALTH_NONE) {
		cell_text(p, "", "");
		return;
	}
	fprintf(p->out, "<td class=\"%s\" title=\"", class);
	text(p->out, h->why);
	fprintf(p->out, "\">%s, %s</td>", health_words[h->state], duration((char[32]){ 0 }, h->since_ns));
}

static void
service_row(const struct page *p, const void *row)
{
	const struct report_service *s = row;
	const struct service_info *i = &s->info;
	static const struct service_stats none;
	const struct service_stats *f = &none;
	char listen[ADDR_STR_MAX] = "";

	SNAPSHOT_EACH(figures, p->seen, REPORT_FIGURES)
		if (strcmp(((const struct report_figures *)figures)->name, s->name) == 0)
			f = &((const struct report_figures *)figures)->stats;
	if (s->listen.ss_family != AF_UNSPEC)
		addr_format_port(&s->listen, listen, sizeof(listen));
	cell_text(p, "", s->name);
	cell_health(p, &s->health);
	cell_number(p, "ok", f->modes[SESSION_SMCR]);
	cell_number(p, "warn", f->modes[SESSION_TCP]);
	cell_number(p, "", f->modes[SESSION_SETUP]);
	cell_number(p, "", i->accepted);
	cell_number(p, "warn", i->fallbacks);
	cell_number(p, "bad",
	    i->refused_allow + i->refused_max + i->refused_per_peer + i->refused_connect + i->refused_fallback);
	cell_number(p, "bad", i->resets);
	cell_bytes(p, f->bytes[WAY_FROM_APP]);
	cell_bytes(p, f->bytes[WAY_TO_APP]);
	cell_text(p, "", config_kind_words[s->kind]);
	cell_text(p, "", listen);
	cell_text(p, "", s->to);
}

static void
group_row(const struct page *p, const void *row)
{
	const struct smcr_group_info *g = &((const struct report_group *)row)->g;
	char peer[sizeof(g->peer_key) + 2 * sizeof(g->peer_id)];

	strcpy(peer, g->peer_key);
	for (size_t i = 0; g->peer_key[0] == '\0' && i < sizeof(g->peer_id); i++)
		snprintf(peer + 2 * i, 3, "%02x", g->peer_id[i]);
	cell_number(p, "", g->id);
	cell_text(p, "", peer);
	cell_text(p, "", g->role == SMCR_CLIENT ? "client" : "server");
	cell_text(p, strcmp(g->state, "active") == 0 ? "ok" : "warn", g->state);
	cell_number(p, "", g->conn_cnt);
	cell_number(p, g->link_cnt > 1 ? "ok" : "", g->link_cnt);
	cell_bytes(p, g->rmb_bytes + g->sndbuf_bytes);
	if (g->failover_age_ns < 0) {
		cell_text(p, "", "");
		return;
	}
	fprintf(p->out, "<td class=\"warn\">%s ago, took %s: ", duration((char[32]){ 0 }, g->failover_age_ns),
	    duration((char[32]){ 0 }, g->failover_ns));
	text(p->out, g->failover_why);
	fputs("</td>", p->out);
}

static void
link_row(const struct page *p, const void *row)
{
	const struct smcr_link_info *l = &((const struct report_link *)row)->l;

	fprintf(p->out, "<td class=\"n\">%u/%u</td>", (unsigned)l->group_id, (unsigned)l->number);
	cell_text(p, strcmp(l->state, "active") == 0 ? "ok" : "bad", l->state);
	cell_number(p, "", l->conn_cnt);
	cell_ns(p, l->rtt_ns);
	cell_ns(p, l->idle_ns);
	if (l->conn.retransmits < 0)
		cell_text(p, "n", "");
	else
		cell_number(p, "", (uint64_t)l->conn.retransmits);
	cell_text(p, "", l->device);
	cell_text(p, "", rnic_transport_str(l->transport));
	cell_address(p, &l->peer_gid);
}

static void
device_row(const struct page *p, const void *row)
{
	const struct report_device_stats *s = &((const struct report_device *)row)->stats;
	const struct device_info *d = &((const struct report_device *)row)->d;
	const bool up = d->rnic.port == RNIC_PORT_UP;

	cell_text(p, "", d->rnic.name);
	cell_number(p, "", ((const struct report_device *)row)->worker);
	cell_text(p, up ? "ok" : "bad", up ? "up" : "down");
	cell_number(p, "", d->rnic.qp_cnt);
	cell_bytes(p, d->rnic.mr_bytes);
	cell_bytes(p, s->bytes_sent);
	cell_bytes(p, s->bytes_received);
	cell_number(p, "bad", s->crc_errors + s->retry_exc + s->rnr_retry_exc + s->remote_access_errs + s->other_errs);
	cell_text(p, "", rnic_transport_str(d->rnic.transport));
	cell_text(p, "", d->interface);
	cell_address(p, &d->rnic.gid);
}

static void
reason_row(const struct page *p, const void *row)
{
	const struct tally_entry *r = row;

	cell_number(p, "warn", r->cnt);
	fprintf(p->out, "<td class=\"\">0x%08" PRIx32 "</td>", r->key);
	cell_text(p, "w", clc_diag_str(r->key));
}

static void
section_of_reasons(const struct page *p, const char *title, const struct field_array *a)
{
	const void *rows[ROWS_MAX];

	for (unsigned i = 0; i < a->cnt && i < ROWS_MAX; i++)
		rows[i] = (const struct tally_entry *)a->at + i;
	section(p, title, "#count|code|reason", reason_row, rows, a->cnt);
}

static void
tile(const struct page *p, const char *class, const char *what, uint64_t n)
{
	fprintf(p->out, "<div class=\"tile\"><b class=\"%s\">%" PRIu64 "</b><span>%s</span></div>\n",
	    n != 0 ? class : "", n, what);
}

/* The bytes in use, and their limit. */
static void
memory_tile(const struct page *p, const char *what, uint64_t taken, uint64_t most)
{
	fprintf(p->out, "<div class=\"tile\"><b>%s</b><span>%s, of %s</span></div>\n", bytes((char[32]){ 0 }, taken),
	    what, bytes((char[32]){ 0 }, most));
}

static void
tiles(const struct page *p, const struct report_sum *sum, uint64_t failovers)
{
	fputs("<div class=\"tiles\">\n", p->out);
	tile(p, "ok", "on SMC-R", sum->conns[SESSION_SMCR]);
	tile(p, "warn", "on TCP", sum->conns[SESSION_TCP]);
	tile(p, "", "being set up", sum->conns[SESSION_SETUP]);
	tile(p, "", "link groups", sum->groups);
	tile(p, "", "links", sum->links);
	fprintf(p->out,
	    "<div class=\"tile\"><b class=\"%s\">%" PRIu64 "/%" PRIu64 "</b><span>devices up</span></div>\n",
	    sum->devices_up == sum->devices ? "ok" : "bad", sum->devices_up, sum->devices);
	tile(p, "warn", "failovers", failovers);
	memory_tile(p, "RMBs", sum->rmb_bytes, sum->rmb_bytes_max);
	memory_tile(p, "send buffers", sum->sndbuf_bytes, sum->sndbuf_bytes_max);
	fputs("</div>\n", p->out);
}

void
page_write(const struct snapshot *seen, FILE *out)
{
	static const struct report_status no_status = { .src.version = "" };
	static const struct report_stats no_stats = { .local.cnt = 0 };
	const struct report_status *status = snapshot_first(seen, REPORT_STATUS);
	const struct report_stats *stats = snapshot_first(seen, REPORT_STATS);
	const struct page page = { .seen = seen, .out = out }, *p = &page;
	const void *rows[ROWS_MAX];

	status = status != NULL ? status : &no_status;
	stats = stats != NULL ? stats : &no_stats;
	const bool draining = status->worker.draining;
	fprintf(out,
	    "%s<meta http-equiv=\"refresh\" content=\"%d\">\n<title>smcrd%s</title></head><body>\n"
	    "<h1>smcrd%s</h1><p>version ",
	    head, REFRESH_S, draining ? " (draining)" : "", draining ? " <span class=\"warn\">draining</span>" : "");
	text(out, status->src.version);
	fprintf(out, ", up %s, memory %s, workers %zu</p>\n", duration((char[32]){ 0 }, status->worker.uptime_ns),
	    bytes((char[32]){ 0 }, status->src.rss_bytes), find_rows(p, REPORT_WORKER, rows));
	if (status->reload_failed) {
		fputs("<p class=\"warn\">", out);
		text(out, status->process.reload_error);
		fputs("</p>\n", out);
	}
	tiles(p, &status->sum, stats->counters[REPORT_COUNTER(SMCR, failovers)]);
	section_of_kind(p, "Services",
	    "name|target|#SMC-R|#TCP|#set-up|#accepted|#fallbacks|#refused|#resets|#from program|#to program|kind|listens at|leads to",
	    REPORT_SERVICE, service_row);
	section_of_reasons(p, "Why TCP: our reasons", &stats->local);
	section_of_reasons(p, "Why TCP: peers' reasons", &stats->peer);
	section_of_kind(
	    p, "Link groups", "#id|peer|role|state|#connections|#links|#memory|last failover", REPORT_GROUP, group_row);
	section_of_kind(p, "Links", "#link|state|#connections|#round trip|#idle|#sent again|device|transport|to",
	    REPORT_LINK, link_row);
	section_of_kind(p, "Devices",
	    "name|#worker|port|#queue pairs|#registered|#sent|#received|#errors|transport|interface|address",
	    REPORT_DEVICE, device_row);
	fprintf(out,
	    "<p class=\"foot\">Refreshes itself every %d seconds. For programs: /metrics, /status.json, /healthz.</p>\n"
	    "</body></html>\n",
	    REFRESH_S);
}
