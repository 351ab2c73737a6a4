/* The summaries: status, drain. Objects are counted in several steps, worker by worker, before anything is written. */
#include <string.h>

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
report_status_add_summary(struct report *r)
{
	static const struct confine_state none = { 0 };
	const struct session_pool *pool = worker_sessions(r->worker);
	struct worker_stats ws;

	/* What all workers have alike, of the one at hand. */
	worker_stats(r->worker, &ws);
	const struct report_status row = {
		.version = r->src.version,
		.pid = r->src.pid,
		.successor = r->src.successor,
		.uptime_ns = ws.uptime_ns,
		.draining = ws.draining,
		.option_usable = tcp_option_usable(pool->option),
		.rss_bytes = r->src.rss_bytes,
		.open_files_max = r->src.open_files_max,
		.locked_bytes_max = r->src.locked_bytes_max,
		.sum = total_of(r),
		.confine = r->src.confine != NULL ? *r->src.confine : none,
		.option_services = pool->option_services,
		.option_why = pool->option != NULL ? pool->option->why : "",
	};
	report_keep(r, REPORT_STATUS, &row);
	report_members(r, &row);
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
	struct report_service row;
	report_service_row(&row, &r->service);
	report_item(r, REPORT_SERVICE, &row);
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
		report_status_add_summary(r);
		break;
	case STATUS_WORKERS:
		if (r->first + r->pos <= r->last) {
			const unsigned nr = r->first + r->pos++;

			report_item(r, REPORT_WORKER, &(struct report_worker){ nr + 1, r->sum[nr] });
			return true;
		}
		report_list_end(r, NULL);
		r->nr = r->first;
		break;
	case STATUS_SERVICES:
		if (step_service(r))
			return true;
		report_list_end(r, NULL);
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
	struct report_drain row = { .draining = ws.draining };
	memcpy(row.conns, total_of(r).conns, sizeof(row.conns));
	report_members(r, &row);
	return false;
}
