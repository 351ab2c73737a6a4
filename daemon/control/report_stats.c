/* Every counter; histograms, and the figures of each service. */
#include <string.h>

#include "base/log.h"
#include "daemon/control/report.h"
#include "daemon/session/end_cause.h"
#include "daemon/session/session.h"

#define REASONS_SHOWN 10

#define OF_SMCR smcr
#define OF_WORKER (&worker)
#define OF_CONTROL control
#define OF_LOG (&lines)
#define VALUE(source, field, words) OF_##source->field,

static enum report_step
add_counters(struct report *r)
{
	static const struct control_stats no_control = { 0 };
	const struct service_reasons *fb = &worker_sessions(r->worker)->fallbacks;
	const struct smcr_counters *smcr = smcr_counters(worker_engine(r->worker));
	const struct smcr_histograms *h = smcr_histograms(worker_engine(r->worker));
	const bool first = r->nr == r->first; /* the counters of the control socket and the log belong to no worker */
	const struct control_stats *control = first ? r->src.control : &no_control;
	const struct log_counters lines = first ? log_counters() : (struct log_counters){ 0 };
	struct worker_stats worker;

	worker_stats(r->worker, &worker);
	const uint64_t values[] = { CONTROL_COUNTERS(REPORT_NONE, VALUE) };
	report_add(r->counters, values, sizeof(values));
	tally_merge(&r->fallbacks.local, &fb->local);
	tally_merge(&r->fallbacks.peer, &fb->peer);
	histogram_merge(&r->histograms.write_size, &h->write_size);
	histogram_merge(&r->histograms.blocked, &h->blocked);
	return REPORT_NEXT_WORKER;
}

/* As step_service() of report_status.c. */
static enum report_step
step_stats(struct report *r)
{
	struct tally_entry local[REASONS_SHOWN], peer[REASONS_SHOWN], top[TALLY_KEYS];
	struct report_reset resets[TALLY_KEYS];
	struct service_info one;
	uint32_t pos = r->pos;

	if (!worker_service_next(r->worker, &pos, &one))
		return REPORT_OVER;
	r->stats.reasons = &r->reasons;
	service_stats_merge(&r->stats, one.stats);
	if (report_next_summand(r, pos))
		return REPORT_WRITTEN;
	const unsigned n = tally_top(&r->reasons.reset, top, TALLY_KEYS);
	for (unsigned i = 0; i < n; i++)
		resets[i] = (struct report_reset){ end_cause_str(one.cfg->kind, top[i].key), top[i].cnt };
	const struct report_figures row = { one.cfg->name, one.cfg->kind, r->stats,
		{ local, tally_top(&r->reasons.local, local, REASONS_SHOWN) },
		{ peer, tally_top(&r->reasons.peer, peer, REASONS_SHOWN) }, { resets, n } };
	report_item(r, REPORT_FIGURES, &row);
	r->stats = (struct service_stats){ 0 };
	r->reasons = (struct service_reasons){ 0 };
	return REPORT_WRITTEN;
}

static void
add_stats(struct report *r)
{
	struct tally_entry local[REASONS_SHOWN], peer[REASONS_SHOWN];
	struct report_stats row = {
		.local = { local, tally_top(&r->fallbacks.local, local, REASONS_SHOWN) },
		.peer = { peer, tally_top(&r->fallbacks.peer, peer, REASONS_SHOWN) },
		.histograms = r->histograms,
	};

	memcpy(row.counters, r->counters, sizeof(row.counters));
	report_keep(r, REPORT_STATS, &row);
	report_members(r, &row);
}

const struct report_phase report_stats[] = { { add_counters, add_stats }, { .step = step_stats }, { 0 } };
