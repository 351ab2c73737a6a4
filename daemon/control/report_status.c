/* The summaries: status, drain. Objects are counted in several steps, worker by worker, before anything is written. */
#include "daemon/control/report.h"

enum status_phase {
	STATUS_SESSIONS,
	STATUS_GROUPS,
	STATUS_LINKS,
	STATUS_REST,
	STATUS_SUMMARY,
	STATUS_WORKERS,
	STATUS_SERVICES,
};

/* Counts up to REPORT_STEP_ITEMS objects of the phase; false when all are counted. */
static bool
count_objects(struct report *r)
{
	const struct smcr *eng = worker_engine(r->worker);
	struct report_sum *sum = &r->sum[r->nr];
	struct smcr_group_info g;
	struct smcr_link_info l;
	struct session_info s;
	bool more = true;

	for (unsigned i = 0; more && i < REPORT_STEP_ITEMS; i++) {
		if (r->phase == STATUS_SESSIONS) {
			more = worker_session_next(r->worker, &r->pos, &s);
			if (more)
				sum->conns[s.mode]++;
		} else if (r->phase == STATUS_GROUPS) {
			more = smcr_group_next(eng, &r->pos, &g);
			sum->groups += more;
			sum->rmb_bytes += more ? g.rmb_bytes : 0;
			sum->sndbuf_bytes += more ? g.sndbuf_bytes : 0;
		} else {
			more = smcr_link_next(eng, &r->pos, &l);
			sum->links += more;
		}
	}
	return more;
}

static void
count_rest(struct report *r)
{
	struct report_sum *sum = &r->sum[r->nr];
	struct worker_stats ws;
	struct rnic_dev *dev;

	worker_stats(r->worker, &ws);
	sum->turns = ws.turns;
	sum->rmb_bytes_max = smcr_rmb_bytes_max(worker_engine(r->worker));
	sum->sndbuf_bytes_max = smcr_sndbuf_bytes_max(worker_engine(r->worker));
	while ((dev = devices_get(worker_devices(r->worker), (unsigned)sum->devices)) != NULL) {
		sum->devices++;
		sum->devices_up += rnic_query(dev).port == RNIC_PORT_UP;
	}
}

static struct report_sum
total_of(const struct report *r)
{
	struct report_sum all = { 0 };

	for (unsigned i = r->first; i <= r->last; i++) {
		const struct report_sum *one = &r->sum[i];

		for (unsigned mode = 0; mode < 3; mode++)
			all.conns[mode] += one->conns[mode];
		all.groups += one->groups;
		all.links += one->links;
		all.rmb_bytes += one->rmb_bytes;
		all.rmb_bytes_max += one->rmb_bytes_max;
		all.sndbuf_bytes += one->sndbuf_bytes;
		all.sndbuf_bytes_max += one->sndbuf_bytes_max;
		all.devices += one->devices;
		all.devices_up += one->devices_up;
	}
	return all;
}

static void
write_option(struct json_writer *jw, const struct session_pool *pool)
{
	const struct smcopt *option = pool->option;

	jw_object(jw, "tcp_option");
	jw_uint(jw, "services", pool->option_services);
	jw_bool(jw, "usable", smcopt_usable(option));
	jw_string(jw, "text", option != NULL ? option->why : "");
	jw_object_end(jw);
}

static void
write_summary(struct report *r)
{
	static const struct confine_state none = { 0 };
	const struct confine_state *confine = r->src.confine != NULL ? r->src.confine : &none;
	const struct report_sum sum = total_of(r);
	struct json_writer *jw = &r->jw;
	struct worker_stats ws;

	/* What all workers have alike, of the one at hand. */
	worker_stats(r->worker, &ws);
	jw_string(jw, "version", r->src.version);
	jw_uint(jw, "pid", r->src.pid);
	report_ms(jw, "uptime_ms", ws.uptime_ns);
	jw_bool(jw, "draining", ws.draining);
	jw_uint(jw, "successor", r->src.successor);
	jw_uint(jw, "rss_bytes", r->src.rss_bytes);
	jw_int(jw, "open_files_max", r->src.open_files_max);
	jw_int(jw, "locked_bytes_max", r->src.locked_bytes_max);
	report_conn_counts(jw, "connections", sum.conns);
	jw_uint(jw, "groups", sum.groups);
	jw_uint(jw, "links", sum.links);
	jw_uint(jw, "rmb_bytes", sum.rmb_bytes);
	jw_uint(jw, "rmb_bytes_max", sum.rmb_bytes_max);
	jw_uint(jw, "sndbuf_bytes", sum.sndbuf_bytes);
	jw_uint(jw, "sndbuf_bytes_max", sum.sndbuf_bytes_max);
	jw_uint(jw, "devices", sum.devices);
	jw_uint(jw, "devices_up", sum.devices_up);
	jw_object(jw, "confinement");
	jw_string(jw, "mode", confine_mode_words[confine->mode]);
	for (unsigned i = 0; i < CONFINE_PART_CNT; i++) {
		jw_object(jw, confine_part_words[i]);
		jw_bool(jw, "on", confine->part[i].on);
		jw_string(jw, "text", confine->part[i].text);
		jw_object_end(jw);
	}
	jw_object_end(jw);
	write_option(jw, worker_sessions(r->worker));
}

static void
write_worker(struct json_writer *jw, unsigned nr, const struct report_sum *sum)
{
	jw_object(jw, NULL);
	jw_uint(jw, "worker", nr + 1);
	jw_uint(jw, "turns", sum->turns);
	report_conn_counts(jw, "connections", sum->conns);
	jw_uint(jw, "groups", sum->groups);
	jw_uint(jw, "links", sum->links);
	jw_uint(jw, "rmb_bytes", sum->rmb_bytes);
	jw_object_end(jw);
}

/* The service at pos, which is the same in every worker: a reload does not come between them. False when there is none. */
static bool
step_service(struct report *r)
{
	struct service_info one;
	uint32_t pos = r->pos;

	if (!worker_service_next(r->worker, &pos, &one))
		return false;
	report_add_service(&r->service, &one);
	if (r->nr < r->last) {
		r->nr++;
		return true;
	}
	jw_object(&r->jw, NULL);
	report_write_service(&r->jw, &r->service);
	jw_object_end(&r->jw);
	r->service = (struct service_info){ 0 };
	r->pos = pos;
	r->nr = r->first;
	return true;
}

bool
report_status(struct report *r)
{
	switch ((enum status_phase)r->phase) {
	case STATUS_SESSIONS:
	case STATUS_GROUPS:
	case STATUS_LINKS:
		if (count_objects(r))
			return true;
		break;
	case STATUS_REST:
		count_rest(r);
		if (report_next_worker(r)) {
			r->phase = STATUS_SESSIONS;
			return true;
		}
		break;
	case STATUS_SUMMARY:
		write_summary(r);
		jw_array(&r->jw, "workers");
		break;
	case STATUS_WORKERS:
		if (r->first + r->pos <= r->last) {
			write_worker(&r->jw, r->first + r->pos, &r->sum[r->first + r->pos]);
			r->pos++;
			return true;
		}
		jw_array_end(&r->jw);
		jw_array(&r->jw, "services");
		r->nr = r->first;
		break;
	case STATUS_SERVICES:
		if (step_service(r))
			return true;
		jw_array_end(&r->jw);
		return false;
	}
	r->phase++;
	r->pos = 0;
	return true;
}

bool
report_drain(struct report *r)
{
	struct worker_stats ws;

	if (count_objects(r) || report_next_worker(r))
		return true;
	worker_stats(r->worker, &ws);
	const struct report_sum sum = total_of(r);
	jw_bool(&r->jw, "draining", ws.draining);
	report_conn_counts(&r->jw, "connections", sum.conns);
	return false;
}
