/* Services on pages: the table with its filter and pages, and the page of one; see page_parts.h. */
#include <inttypes.h>
#include <string.h>

#include "base/addr.h"
#include "base/str.h"
#include "daemon/metrics/page_parts.h"
#include "daemon/session/session.h"

const char *const page_show_words[PAGE_SHOW_CNT] = { "all", "connected", "trouble" };

static const struct service_stats *
figures_of(const struct page *p, const char *name, const struct report_figures **out)
{
	static const struct service_stats none;

	*out = NULL;
	SNAPSHOT_EACH(row, p->seen, REPORT_FIGURES)
		if (strcmp(((const struct report_figures *)row)->name, name) == 0)
			*out = row;
	return *out != NULL ? &(*out)->stats : &none;
}

/* What is known of the service, with its class; "" = nothing yet. */
static const char *
state_of(const struct report_service *s, char *buf, size_t cap)
{
	char age[32];

	buf[0] = '\0';
	if (s->outage.text[0] != '\0')
		str_append(buf, cap, "down for %s, failed connections %" PRIu64 ": %s",
		    page_duration(age, s->outage.age_ns), s->outage.failed, s->outage.text);
	else if (s->waiting[0] != '\0')
		str_append(buf, cap, "%s", s->waiting);
	else if (s->info.closed)
		str_append(buf, cap, "closed: no target works");
	else if (s->info.disabled)
		str_append(buf, cap, "disabled");
	else if (s->held_off_ns > 0)
		str_append(buf, cap, "SMC-R not tried for another %s", page_duration(age, s->held_off_ns));
	else if (s->info.accepted > 0)
		str_append(buf, cap, "up");
	if (s->outage.text[0] != '\0' || s->waiting[0] != '\0' || s->info.closed)
		return "bad";
	return s->info.disabled || s->held_off_ns > 0 ? "warn" : s->info.accepted > 0 ? "ok" : "";
}

/* Refused, by reason. */
static const struct {
	size_t off;
	const char *words;
} refusals[] = {
	{ offsetof(struct service_info, refused_connect), "far end not reached" },
	{ offsetof(struct service_info, refused_allow), "not allowed" },
	{ offsetof(struct service_info, refused_max), "too many" },
	{ offsetof(struct service_info, refused_per_peer), "too many of one" },
	{ offsetof(struct service_info, refused_fallback), "no SMC-R" },
	{ offsetof(struct service_info, refused_disabled), "disabled" },
	{ offsetof(struct service_info, refused_header), "no PROXY header" },
	{ offsetof(struct service_info, not_captured), "not captured" },
	{ offsetof(struct service_info, no_via), "no way" },
	{ offsetof(struct service_info, dest_own), "the daemon's own" },
	{ offsetof(struct service_info, dest_refused), "destination" },
};

#define REFUSALS (sizeof(refusals) / sizeof(refusals[0]))

static uint64_t
refused_for(const struct service_info *i, unsigned k)
{
	return *(const uint64_t *)(const void *)((const char *)i + refusals[k].off);
}

/* Marked if some were in the last ten minutes. */
static void
cell_refused(const struct page *p, const struct service_info *info, const struct report_history *h)
{
	char text[256] = "";
	uint64_t sum = 0, now = 0;

	for (unsigned k = 0; k < REFUSALS; k++) {
		const uint64_t n = refused_for(info, k);

		if (n > 0)
			str_append(text, sizeof(text), "%s%" PRIu64 " %s", sum > 0 ? ", " : "", n, refusals[k].words);
		sum += n;
	}
	for (unsigned i = 0; h != NULL && i < HISTORY_SAMPLES; i++)
		now += h->at[i].refused;
	page_cell_text(p, now > 0 ? "bad" : "", sum > 0 ? text : "0");
}

/* Many programs end by a reset when they have what they wanted: those of clients after data are no trouble. */
static void
cell_resets(const struct page *p, const struct service_info *i)
{
	char text[96] = "";
	const uint64_t others = i->resets - i->resets_client;

	str_append(text, sizeof(text), "%" PRIu64, others);
	if (i->resets_client > 0)
		str_append(text, sizeof(text), " and %" PRIu64 " by clients", i->resets_client);
	page_cell_text(p, others > 0 ? "warn" : "", text);
}

/* By the probes of a service's targets. */
static void
cell_health(const struct page *p, const struct report_health *h)
{
	static const char *const classes[HEALTH_STATE_CNT] = { [HEALTH_UP] = "ok", [HEALTH_DOWN] = "bad" };
	const char *class = classes[h->state] != NULL ? classes[h->state] : "warn";

	if (h->state == HEALTH_NONE) {
		page_cell_text(p, "", "");
		return;
	}
	fprintf(p->out, "<td class=\"%s\" title=\"", class);
	page_text(p->out, h->why);
	fprintf(p->out, "\">%s, %s</td>", health_words[h->state], page_duration((char[32]){ 0 }, h->since_ns));
}

static void
service_cells(const struct page *p, const void *row)
{
	const struct report_service *s = row;
	const struct report_history *h = page_history(p, s->name);
	const struct report_figures *unused;
	const struct service_stats *f = figures_of(p, s->name, &unused);
	char text[sizeof(s->outage.text) + 128], listen[ADDR_STR_MAX] = "";
	char class[16] = "wrap ";

	strcat(class, state_of(s, text, sizeof(text)));
	if (s->listen.ss_family != AF_UNSPEC)
		addr_format_port(&s->listen, listen, sizeof(listen));
	fputs("<td><a href=\"/service?name=", p->out);
	page_link_text(p->out, s->name);
	fputs("\">", p->out);
	page_text(p->out, s->name);
	fputs("</a></td>", p->out);
	page_cell_text(p, class, text);
	cell_health(p, &s->health);
	page_cell_number(p, "ok", f->modes[SESSION_SMCR]);
	page_cell_number(p, "warn", f->modes[SESSION_TCP]);
	page_cell_number(p, "", f->modes[SESSION_SETUP]);
	page_cell_spark(p, h);
	page_cell_number(p, "", s->info.accepted);
	page_cell_number(p, "warn", s->info.fallbacks);
	cell_refused(p, &s->info, h);
	cell_resets(p, &s->info);
	page_cell_bytes(p, f->bytes[WAY_FROM_APP]);
	page_cell_bytes(p, f->bytes[WAY_TO_APP]);
	page_cell_text(p, "", config_kind_words[s->kind]);
	page_cell_text(p, "", listen);
	page_cell_text(p, "", s->to);
}

static bool
is_wanted(const struct page *p, const struct report_service *s)
{
	const struct report_figures *unused;
	char text[512];

	if (p->view->show == PAGE_BUSY)
		return s->info.connections > 0;
	if (p->view->show == PAGE_ALL)
		return true;
	const char *class = state_of(s, text, sizeof(text));
	return class[0] == 'b' || class[0] == 'w' || s->health.state == HEALTH_DOWN ||
	    figures_of(p, s->name, &unused)->modes[SESSION_TCP] > 0;
}

static void
page_link(const struct page *p, unsigned from, const char *words)
{
	fprintf(
	    p->out, " <a href=\"/?show=%s&#38;from=%u#services\">%s</a>", page_show_words[p->view->show], from, words);
}

void
page_services(const struct page *p)
{
	static const char headings[] =
	    "name|state|target|#SMC-R|#TCP|#set-up|data, ten minutes|#accepted|#fallbacks|refused|resets|#from "
	    "program|#to program|kind|listens at|leads to";
	const void *rows[PAGE_ROWS];
	const unsigned from = p->view->from;
	size_t cnt = 0, n = 0;

	SNAPSHOT_EACH(row, p->seen, REPORT_SERVICE)
		if (is_wanted(p, row) && cnt++ >= from && n < PAGE_ROWS)
			rows[n++] = row;
	fputs("<div id=\"services\"></div>", p->out);
	page_section(p, "Services", headings, service_cells, rows, n);
	fputs("<form action=\"/#services\"><select name=\"show\" aria-label=\"show\">", p->out);
	for (unsigned i = 0; i < PAGE_SHOW_CNT; i++)
		fprintf(p->out, "<option%s>%s</option>", i == p->view->show ? " selected" : "", page_show_words[i]);
	fputs("</select> <button>Show</button></form>", p->out);
	fprintf(p->out, "<p>%zu to %zu of %zu", n > 0 ? (size_t)from + 1 : 0, n > 0 ? from + n : 0, cnt);
	if (from > 0)
		page_link(p, from > PAGE_ROWS ? from - PAGE_ROWS : 0, "previous");
	if (from + n < cnt)
		page_link(p, from + (unsigned)n, "next");
	fputs("</p>\n", p->out);
}

/* -- the page of a service -- */

static void
refusal_cells(const struct page *p, const void *row)
{
	const struct service_info *i = row;

	for (unsigned k = 0; k < REFUSALS; k++)
		page_cell_number(p, "warn", refused_for(i, k));
}

static void
reset_cells(const struct page *p, const void *row)
{
	const struct report_reset *r = row;

	page_cell_number(p, "", r->cnt);
	page_cell_text(p, "", r->text);
}

static void
reset_section(const struct page *p, const struct field_array *a)
{
	const void *rows[PAGE_ROWS];

	for (unsigned i = 0; i < a->cnt && i < PAGE_ROWS; i++)
		rows[i] = (const struct report_reset *)a->at + i;
	page_section(p, "Why resets", "#count|cause", reset_cells, rows, a->cnt);
}

bool
page_write_service(const struct snapshot *seen, const struct page_view *view, FILE *out)
{
	const struct report_status *status = snapshot_first(seen, REPORT_STATUS);
	const struct page page = { seen, view, out, status != NULL ? status->src.wall_ms : 0 }, *p = &page;
	const struct report_service *s = NULL;
	const struct report_figures *f;
	const void *row;

	SNAPSHOT_EACH(one, seen, REPORT_SERVICE)
		if (strcmp(((const struct report_service *)one)->name, view->service) == 0)
			s = one;
	if (s == NULL)
		return false;
	page_begin(p, s->name);
	fprintf(out, "<h1>%s ", config_kind_words[s->kind]);
	page_text(out, s->name);
	fputs("</h1><p><a href=\"/#services\">All services</a> <a href=\"/service?name=", out);
	page_link_text(out, s->name);
	fputs("\">Refresh</a></p>\n", out);
	page_charts(p, s->name);
	row = s;
	page_section(p, "State",
	    "name|state|target|#SMC-R|#TCP|#set-up|data, ten minutes|#accepted|#fallbacks|refused|resets|#from program|#to program|kind|"
	    "listens at|leads to",
	    service_cells, &row, 1);
	page_section_of_events(p, s->name);
	row = &s->info;
	page_section(p, "Refused",
	    "#far end not reached|#not allowed|#too many|#too many of one|#no SMC-R|#disabled|#no PROXY header|#not captured|#no way|"
	    "#the daemon's own|#destination",
	    refusal_cells, &row, 1);
	(void)figures_of(p, s->name, &f);
	if (f != NULL) {
		page_section_of_reasons(p, "Why TCP: our reasons", &f->local);
		page_section_of_reasons(p, "Why TCP: peers' reasons", &f->peer);
		reset_section(p, &f->resets);
	}
	page_end(p);
	return true;
}
