/* The page of the daemon; see page.h. Each section is a kind of row, with a line for each object. */
#include "daemon/metrics/page.h"

#include <inttypes.h>
#include <string.h>

#include "base/addr.h"
#include "daemon/metrics/page_parts.h"

/* A GID; an IPv4 address as such. */
static void
cell_address(const struct page *p, const struct rnic_gid *gid)
{
	struct sockaddr_storage ss = { 0 };
	char buf[ADDR_STR_MAX];

	addr_from_v6(gid->b, 0, &ss);
	page_cell_text(p, "", addr_format(&ss, buf, sizeof(buf)));
}

static void
group_row(const struct page *p, const void *row)
{
	const struct report_group *group = row;
	const struct smcr_group_info *g = &group->g;
	char peer[sizeof(g->peer_key) + 2 * sizeof(g->peer_id)];

	strcpy(peer, g->peer_key);
	for (size_t i = 0; g->peer_key[0] == '\0' && i < sizeof(g->peer_id); i++)
		snprintf(peer + 2 * i, 3, "%02x", g->peer_id[i]);
	page_cell_number(p, "", g->id);
	page_cell_text(p, "", peer);
	page_cell_text(p, "", g->role == SMCR_CLIENT ? "client" : "server");
	page_cell_text(p, strcmp(g->state, "active") == 0 ? "ok" : "warn", g->state);
	page_cell_number(p, "", g->conn_cnt);
	page_cell_number(p, g->link_cnt > 1 ? "ok" : "", g->link_cnt);
	page_cell_bytes(p, g->rmb_bytes + g->sndbuf_bytes);
	fprintf(p->out, "<td>%s", group->protection);
	if (g->peer_name[0] != '\0')
		fprintf(p->out, ", %s, ", group->suite);
	page_text(p->out, g->peer_name);
	fputs("</td>", p->out);
	if (g->failover_age_ns < 0) {
		page_cell_text(p, "", "");
		return;
	}
	fprintf(p->out, "<td class=\"warn\">%s ago, took %s: ", page_duration((char[32]){ 0 }, g->failover_age_ns),
	    page_duration((char[32]){ 0 }, g->failover_ns));
	page_text(p->out, g->failover_why);
	fputs("</td>", p->out);
}

static void
link_row(const struct page *p, const void *row)
{
	const struct smcr_link_info *l = &((const struct report_link *)row)->l;

	fprintf(p->out, "<td class=\"n\">%u/%u</td>", (unsigned)l->group_id, (unsigned)l->number);
	page_cell_text(p,
	    strcmp(l->state, "active") == 0                                        ? "ok"
	        : strcmp(l->state, "lost") == 0 || strcmp(l->state, "silent") == 0 ? "bad"
	                                                                           : "warn",
	    l->state);
	page_cell_number(p, "", l->conn_cnt);
	page_cell_ns(p, l->rtt_ns);
	page_cell_ns(p, l->idle_ns);
	if (l->conn.retransmits < 0)
		page_cell_text(p, "n", "");
	else
		page_cell_number(p, "", (uint64_t)l->conn.retransmits);
	page_cell_text(p, "", l->device);
	page_cell_text(p, "", rnic_transport_str(l->transport));
	cell_address(p, &l->peer_gid);
}

static void
device_row(const struct page *p, const void *row)
{
	const struct report_device_stats *s = &((const struct report_device *)row)->stats;
	const struct device_info *d = &((const struct report_device *)row)->d;
	const bool up = d->rnic.port == RNIC_PORT_UP;

	page_cell_text(p, "", d->rnic.name);
	page_cell_number(p, "", ((const struct report_device *)row)->worker);
	page_cell_text(p, up ? "ok" : "bad", up ? "up" : "down");
	page_cell_number(p, "", d->rnic.qp_cnt);
	page_cell_bytes(p, d->rnic.mr_bytes);
	page_cell_bytes(p, s->bytes_sent);
	page_cell_bytes(p, s->bytes_received);
	page_cell_number(
	    p, "bad", s->crc_errors + s->retry_exc + s->rnr_retry_exc + s->remote_access_errs + s->other_errs);
	page_cell_text(p, "", rnic_transport_str(d->rnic.transport));
	page_cell_text(p, "", d->interface);
	cell_address(p, &d->rnic.gid);
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
	fprintf(p->out, "<div class=\"tile\"><b>%s</b><span>%s, of %s</span></div>\n",
	    page_bytes((char[32]){ 0 }, taken), what, page_bytes((char[32]){ 0 }, most));
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

/* Host, version and age; a reload that failed. */
static void
heading(const struct page *p, const struct report_status *status)
{
	FILE *out = p->out;
	const void *rows[PAGE_ROWS];
	char buf[32];

	fputs("<h1>smcrd", out);
	if (status->process.host[0] != '\0')
		fputs(" on ", out);
	page_text(out, status->process.host);
	fprintf(out, "%s</h1><p>version ", status->worker.draining ? " <span class=\"warn\">draining</span>" : "");
	page_text(out, status->src.version);
	fprintf(out, ", up %s", page_duration(buf, status->worker.uptime_ns));
	if (status->sum.secured > 0)
		fprintf(out, ", %llu connections with a peer proven by TLS", (unsigned long long)status->sum.secured);
	fprintf(out, ", memory %s, workers %zu. <a href=\"/?show=%s&#38;from=%u\">Refresh</a></p>\n",
	    page_bytes(buf, status->src.rss_bytes), page_find_rows(p, REPORT_WORKER, rows),
	    page_show_words[p->view->show], p->view->from);
	const char *const warnings[] = { status->process.reload_error, status->process.tls_error,
		status->process.tls_expiry };
	for (unsigned i = 0; i < sizeof(warnings) / sizeof(warnings[0]); i++) {
		if (warnings[i] == NULL || warnings[i][0] == '\0')
			continue;
		fputs("<p class=\"warn\">", out);
		page_text(out, warnings[i]);
		fputs("</p>\n", out);
	}
}

void
page_write(const struct snapshot *seen, const struct page_view *view, FILE *out)
{
	static const struct report_status no_status = { .src.version = "" };
	static const struct report_stats no_stats = { .local.cnt = 0 };
	const struct report_status *status = snapshot_first(seen, REPORT_STATUS);
	const struct report_stats *stats = snapshot_first(seen, REPORT_STATS);

	status = status != NULL ? status : &no_status;
	stats = stats != NULL ? stats : &no_stats;
	const struct page page = { seen, view, out, status->src.wall_ms }, *p = &page;
	page_begin(p, status->process.host);
	heading(p, status);
	tiles(p, &status->sum, stats->counters[REPORT_COUNTER(SMCR, failovers)]);
	page_charts(p, NULL);
	page_section_of_events(p, NULL);
	page_services(p);
	page_section_of_reasons(p, "Why TCP: our reasons", &stats->local);
	page_section_of_reasons(p, "Why TCP: peers' reasons", &stats->peer);
	page_section_of_kind(p, "Link groups",
	    "#id|peer|role|state|#connections|#links|#memory|protection|last failover", REPORT_GROUP, group_row);
	page_section_of_kind(p, "Links", "#link|state|#connections|#round trip|#idle|#sent again|device|transport|to",
	    REPORT_LINK, link_row);
	page_section_of_kind(p, "Devices",
	    "name|#worker|port|#queue pairs|#registered|#sent|#received|#errors|transport|interface|address",
	    REPORT_DEVICE, device_row);
	page_end(p);
}
