/* The summaries: status, drain. Objects are counted in several steps, worker by worker, before anything is written. */
#include "daemon/control/report.h"

enum status_phase {
	STATUS_COUNT,
	STATUS_WORKERS,
	STATUS_SERVICES,
};

/* What does not take a walk. */
static void
count_rest(const struct report *r, struct report_sum *sum)
{
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

/* Counts up to REPORT_STEP_ITEMS objects of the worker: sessions, groups, then links. False when all workers are done. */
static bool
report_status_count(struct report *r)
{
	const struct smcr *eng = worker_engine(r->worker);
	struct report_sum *sum = &r->sum[r->nr];
	struct smcr_group_info g;
	struct smcr_link_info l;
	struct session_info s;

	for (unsigned i = 0; i < REPORT_STEP_ITEMS; i++) {
		if (r->sub == 0 && worker_session_next(r->worker, &r->pos, &s)) {
			sum->conns[s.mode]++;
		} else if (r->sub == 1 && smcr_group_next(eng, &r->pos, &g)) {
			sum->groups++;
			sum->rmb_bytes += g.rmb_bytes;
			sum->sndbuf_bytes += g.sndbuf_bytes;
		} else if (r->sub == 2 && smcr_link_next(eng, &r->pos, &l)) {
			sum->links++;
		} else {
			r->pos = 0;
			if (r->sub++ < 2)
				continue;
			r->sub = 0;
			count_rest(r, sum);
			return report_next_worker(r);
		}
	}
	return true;
}

static void
add_summary(struct report *r)
{
	const struct tcp_option *option = worker_sessions(r->worker)->option;
	struct report_status row = {
		.src = r->src,
		.option_usable = tcp_option_usable(option),
		.option_services = worker_sessions(r->worker)->option_services,
		.option_why = option != NULL ? option->why : "",
	};

	worker_stats(r->worker, &row.worker);
	if (r->src.confine != NULL)
		row.confine = *r->src.confine;
	for (unsigned i = r->first; i <= r->last; i++)
		report_add((uint64_t *)&row.sum, (const uint64_t *)&r->sum[i], sizeof(row.sum));
	report_keep(r, REPORT_STATUS, &row);
	report_members(r, &row);
}

/* The service at pos, which is the same in every worker: a reload does not come between them. False behind the last one. */
static bool
step_service(struct report *r)
{
	struct service_info one;
	uint32_t pos = r->pos;

	if (!worker_service_next(r->worker, &pos, &one))
		return false;
	report_add_service(&r->service, &one);
	if (report_next_summand(r, pos))
		return true;
	const struct report_service row = report_service_row(&r->service);
	report_item(r, REPORT_SERVICE, &row);
	r->service = (struct service_info){ 0 };
	return true;
}

bool
report_status(struct report *r)
{
	switch ((enum status_phase)r->phase) {
	case STATUS_COUNT:
		if (report_status_count(r))
			return true;
		add_summary(r);
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
	if (report_status_count(r))
		return true;
	add_summary(r);
	return false;
}
