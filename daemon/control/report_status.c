/* The summaries: status, drain. Objects are counted in several steps, worker by worker, before anything is written. */
#include "daemon/control/report.h"

#include "base/clock.h"
#include "base/minmax.h"

/* Counts an object of the worker: sessions, groups, then links; at last what does not take a walk. */
static enum report_step
count_object(struct report *r)
{
	const struct smcr *eng = worker_engine(r->worker);
	struct report_sum *sum = &r->sum[r->nr];
	struct smcr_group_info g;
	struct smcr_link_info l;
	struct session_info s;
	struct worker_stats ws;
	struct rnic_dev *dev;

	if (r->sub == 0 && worker_session_next(r->worker, &r->pos, &s)) {
		sum->conns[s.mode]++;
		sum->secured += s.proven[0] != '\0';
	} else if (r->sub == 1 && smcr_group_next(eng, &r->pos, &g)) {
		sum->groups++;
		sum->rmb_bytes += g.rmb_bytes;
		sum->sndbuf_bytes += g.sndbuf_bytes;
	} else if (r->sub == 2 && smcr_link_next(eng, &r->pos, &l)) {
		sum->links++;
	} else if (r->sub < 2) {
		r->pos = 0;
		r->sub++;
	} else {
		r->sub = 0;
		worker_stats(r->worker, &ws);
		sum->turns = ws.turns;
		sum->rmb_bytes_max = smcr_settings(eng)->rmb_bytes_max;
		sum->sndbuf_bytes_max = smcr_settings(eng)->sndbuf_bytes_max;
		while ((dev = devices_get(worker_devices(r->worker), (unsigned)sum->devices)) != NULL) {
			sum->devices++;
			sum->devices_up += rnic_query(dev).port == RNIC_PORT_UP;
		}
		return REPORT_NEXT_WORKER;
	}
	return REPORT_PASSED;
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
	if (r->src.process != NULL) {
		row.process = *r->src.process;
		row.certificates = (struct field_array){ row.process.certificates, row.process.certificate_cnt };
		row.predecessors = (struct field_array){ row.process.predecessors, row.process.predecessor_cnt };
	}
	if (row.process.confine != NULL)
		row.confine = *row.process.confine;
	row.reload_failed = row.process.reload_error != NULL && row.process.reload_error[0] != '\0';
	row.left_ns = row.process.limit_ns != 0 ? max_i64(row.process.limit_ns - clock_ns(), 0) : -1;
	for (unsigned i = r->first; i <= r->last; i++)
		report_add((uint64_t *)&row.sum, (const uint64_t *)&r->sum[i], sizeof(row.sum));
	report_keep(r, REPORT_STATUS, &row);
	report_members(r, &row);
}

static enum report_step
step_worker(struct report *r)
{
	const unsigned nr = r->first + r->pos++;

	if (nr > r->last)
		return REPORT_OVER;
	report_item(r, REPORT_WORKER, &(struct report_worker){ nr + 1, r->sum[nr] });
	return REPORT_WRITTEN;
}

/* The service at pos, which is the same in every worker: a reload does not come between them. */
static enum report_step
step_service(struct report *r)
{
	struct service_info one;
	uint32_t pos = r->pos;

	if (!worker_service_next(r->worker, &pos, &one))
		return REPORT_OVER;
	report_add_service(&r->service, &one);
	r->held_off_ns = max_i64(r->held_off_ns, report_held_off_ns(r->worker, &one));
	if (report_next_summand(r, pos))
		return REPORT_WRITTEN;
	struct report_service row = report_service_row(r, &r->service);
	row.held_off_ns = r->held_off_ns;
	(void)worker_service_find(r->worker, row.name, &one, &row.outage);
	report_item(r, REPORT_SERVICE, &row);
	r->service = (struct service_info){ 0 };
	r->held_off_ns = 0;
	return REPORT_WRITTEN;
}

const struct report_phase report_status[] = { { count_object, add_summary }, { .step = step_worker },
	{ .step = step_service }, { 0 } };
const struct report_phase report_drain[] = { { count_object, add_summary }, { 0 } };
