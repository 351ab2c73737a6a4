/* The summaries: status, drain, stats. Objects are counted in several steps before anything is written. */
#include <stdio.h>
#include <string.h>

#include "daemon/control/report.h"
#include "daemon/control/stat_table.h"
#include "wire/clc_diag.h"

#define REASONS_SHOWN 10

enum status_phase {
	STATUS_SESSIONS = 1,
	STATUS_GROUPS,
	STATUS_LINKS,
	STATUS_SUMMARY,
	STATUS_SERVICES,
};

static bool
count_groups(struct report *r)
{
	struct smcr_group_info g;

	for (unsigned i = 0; i < REPORT_STEP_ITEMS; i++) {
		if (!smcr_group_next(worker_engine(r->src.worker), &r->pos, &g))
			return false;
		r->sum.groups++;
		r->sum.rmb_bytes += g.rmb_bytes;
		r->sum.sndbuf_bytes += g.sndbuf_bytes;
	}
	return true;
}

static bool
count_links(struct report *r)
{
	struct smcr_link_info l;

	for (unsigned i = 0; i < REPORT_STEP_ITEMS; i++) {
		if (!smcr_link_next(worker_engine(r->src.worker), &r->pos, &l))
			return false;
		r->sum.links++;
	}
	return true;
}

static void
write_conn_counts(struct report *r)
{
	jw_object(&r->jw, "connections");
	jw_uint(&r->jw, "smcr", r->sum.conns[SESSION_SMCR]);
	jw_uint(&r->jw, "tcp", r->sum.conns[SESSION_TCP]);
	jw_uint(&r->jw, "setup", r->sum.conns[SESSION_SETUP]);
	jw_object_end(&r->jw);
}

static void
write_confinement(struct report *r)
{
	static const struct confine_state none = { 0 };
	const struct confine_state *state = r->src.confine != NULL ? r->src.confine : &none;

	jw_object(&r->jw, "confinement");
	jw_string(&r->jw, "mode", confine_mode_words[state->mode]);
	for (unsigned i = 0; i < CONFINE_PART_CNT; i++) {
		jw_object(&r->jw, confine_part_words[i]);
		jw_bool(&r->jw, "on", state->part[i].on);
		jw_string(&r->jw, "text", state->part[i].text);
		jw_object_end(&r->jw);
	}
	jw_object_end(&r->jw);
}

static void
write_summary(struct report *r)
{
	struct json_writer *jw = &r->jw;
	unsigned devices = 0, up = 0;
	struct worker_stats ws;
	struct rnic_dev *dev;

	worker_stats(r->src.worker, &ws);
	jw_string(jw, "version", r->src.version);
	jw_uint(jw, "pid", r->src.pid);
	report_ms(jw, "uptime_ms", ws.uptime_ns);
	jw_bool(jw, "draining", ws.draining);
	jw_uint(jw, "rss_bytes", r->src.rss_bytes);
	write_conn_counts(r);
	jw_uint(jw, "groups", r->sum.groups);
	jw_uint(jw, "links", r->sum.links);
	jw_uint(jw, "rmb_bytes", r->sum.rmb_bytes);
	jw_uint(jw, "rmb_bytes_max", smcr_rmb_bytes_max(worker_engine(r->src.worker)));
	jw_uint(jw, "sndbuf_bytes", r->sum.sndbuf_bytes);
	while ((dev = devices_get(worker_devices(r->src.worker), devices)) != NULL) {
		devices++;
		up += rnic_query(dev).port == RNIC_PORT_UP;
	}
	jw_uint(jw, "devices", devices);
	jw_uint(jw, "devices_up", up);
	write_confinement(r);
}

static void
write_service(struct json_writer *jw, const struct service_info *s)
{
	const struct config_target *to = &s->cfg->to;
	char text[CONFIG_HOST_MAX + 16];

	snprintf(text, sizeof(text), strchr(to->host, ':') != NULL ? "[%s]:%u" : "%s:%u", to->host, (unsigned)to->port);
	jw_object(jw, NULL);
	jw_string(jw, "name", s->cfg->name);
	jw_string(jw, "kind", s->cfg->kind == CONFIG_INGRESS ? "ingress" : "egress");
	report_sockaddr(jw, "listen", &s->cfg->listen);
	jw_string(jw, "to", text);
	jw_uint(jw, "connections", s->connections);
	jw_uint(jw, "connections_max", s->cfg->max_connections);
	jw_uint(jw, "accepted", s->accepted);
	jw_uint(jw, "refused_allow", s->refused_allow);
	jw_uint(jw, "refused_max", s->refused_max);
	jw_uint(jw, "refused_per_peer", s->refused_per_peer);
	jw_uint(jw, "refused_connect", s->refused_connect);
	jw_uint(jw, "refused_fallback", s->refused_fallback);
	jw_uint(jw, "fallbacks", s->fallbacks);
	jw_uint(jw, "resets", s->resets);
	jw_object_end(jw);
}

bool
report_status(struct report *r)
{
	struct service_info s;

	switch ((enum status_phase)r->phase) {
	case STATUS_SESSIONS:
		return report_count_sessions(r) || report_next_phase(r);
	case STATUS_GROUPS:
		return count_groups(r) || report_next_phase(r);
	case STATUS_LINKS:
		return count_links(r) || report_next_phase(r);
	case STATUS_SUMMARY:
		write_summary(r);
		jw_array(&r->jw, "services");
		return report_next_phase(r);
	case STATUS_SERVICES:
		if (worker_service_next(r->src.worker, &r->pos, &s)) {
			write_service(&r->jw, &s);
			return true;
		}
		jw_array_end(&r->jw);
		return false;
	}
	return false;
}

bool
report_drain(struct report *r)
{
	struct worker_stats ws;

	if (report_count_sessions(r))
		return true;
	worker_stats(r->src.worker, &ws);
	jw_bool(&r->jw, "draining", ws.draining);
	write_conn_counts(r);
	return false;
}

static void
write_reasons(struct json_writer *jw, const char *key, const struct tally *t)
{
	struct tally_entry top[REASONS_SHOWN];
	unsigned n = tally_top(t, top, REASONS_SHOWN);

	jw_array(jw, key);
	for (unsigned i = 0; i < n; i++) {
		jw_object(jw, NULL);
		report_hex32(jw, "code", top[i].key);
		jw_string(jw, "text", clc_diag_str(top[i].key));
		jw_uint(jw, "count", top[i].cnt);
		jw_object_end(jw);
	}
	jw_array_end(jw);
}

bool
report_stats(struct report *r)
{
	struct json_writer *jw = &r->jw;
	const struct session_fallbacks *fb = &worker_sessions(r->src.worker)->fallbacks;
	struct worker_stats ws;
	struct stat_sources src = {
		.smcr = smcr_counters(worker_engine(r->src.worker)),
		.worker = &ws,
		.control = r->src.control,
	};

	worker_stats(r->src.worker, &ws);
	jw_object(jw, "counters");
	for (const struct stat_desc *d = stat_table; d->key != NULL; d++)
		jw_uint(jw, d->key, stat_value(d, &src));
	jw_object_end(jw);
	write_reasons(jw, "fallback_reasons_local", &fb->local);
	write_reasons(jw, "fallback_reasons_peer", &fb->peer);
	return false;
}
