/* Every counter; histograms, and what the sessions of each service come to. */
#include <string.h>

#include "base/log.h"
#include "daemon/control/report.h"
#include "daemon/session/end_cause.h"
#include "daemon/session/session.h"
#include "wire/clc.h"

#define REASONS_SHOWN 10

/* The most frequent ones, in rows. Codes are those of CLC Declines. */
static struct field_array
top_reasons(const struct tally *t, struct report_count rows[REASONS_SHOWN])
{
	struct tally_entry top[REASONS_SHOWN];
	unsigned n = tally_top(t, top, REASONS_SHOWN);

	for (unsigned i = 0; i < n; i++)
		rows[i] = (struct report_count){ top[i].key, clc_diag_str(top[i].key), top[i].cnt };
	return (struct field_array){ rows, n };
}

static struct field_array
top_resets(const struct tally *t, enum config_kind kind, struct report_count rows[TALLY_KEYS])
{
	struct tally_entry top[TALLY_KEYS];
	unsigned n = tally_top(t, top, TALLY_KEYS);

	for (unsigned i = 0; i < n; i++)
		rows[i] = (struct report_count){ top[i].key, end_cause_str(kind, top[i].key), top[i].cnt };
	return (struct field_array){ rows, n };
}

#define OF_SMCR smcr
#define OF_WORKER (&worker)
#define OF_CONTROL control
#define OF_LOG (&lines)
#define VALUE(source, field, words) OF_##source->field,

static void
report_stats_add_counters(struct report *r)
{
	static const struct control_stats no_control = { 0 };
	const struct session_fallbacks *fb = &worker_sessions(r->worker)->fallbacks;
	const struct smcr_counters *smcr = smcr_counters(worker_engine(r->worker));
	const struct control_stats *control = r->nr == r->first ? r->src.control : &no_control; /* it is no worker's */
	const struct log_counters lines = r->nr == r->first ? log_counters() : (struct log_counters){ 0 };
	struct worker_stats worker;

	worker_stats(r->worker, &worker);
	const uint64_t values[] = { CONTROL_COUNTERS(REPORT_NONE, VALUE) };
	for (size_t i = 0; i < REPORT_COUNTERS; i++)
		r->counters[i] += values[i];
	tally_merge(&r->fallbacks.local, &fb->local);
	tally_merge(&r->fallbacks.peer, &fb->peer);
	const struct smcr_histograms *h = smcr_histograms(worker_engine(r->worker));
	histogram_merge(&r->histograms.write_size, &h->write_size);
	histogram_merge(&r->histograms.blocked, &h->blocked);
}

static void
add_figures(struct report *r, const struct config_service *cfg)
{
	struct report_count local[REASONS_SHOWN], peer[REASONS_SHOWN], resets[TALLY_KEYS];
	const struct report_figures row = {
		.name = cfg->name,
		.kind = cfg->kind,
		.stats = r->stats,
		.local = top_reasons(&r->reasons.local, local),
		.peer = top_reasons(&r->reasons.peer, peer),
		.resets = top_resets(&r->reasons.reset, cfg->kind, resets),
	};

	report_item(r, REPORT_FIGURES, &row);
}

/* As step_service. */
static bool
step_stats(struct report *r)
{
	const struct service_stats *one;
	const struct config_service *cfg;
	uint32_t pos = r->pos;

	if (!worker_stats_next(r->worker, &pos, &cfg, &one))
		return false;
	r->stats.reasons = &r->reasons;
	service_stats_merge(&r->stats, one);
	if (r->nr < r->last) {
		r->nr++;
		return true;
	}
	add_figures(r, cfg);
	r->stats = (struct service_stats){ 0 };
	r->reasons = (struct service_reasons){ 0 };
	r->pos = pos;
	r->nr = r->first;
	return true;
}

static void
report_stats_add_summary(struct report *r)
{
	struct report_count local[REASONS_SHOWN], peer[REASONS_SHOWN];
	struct report_stats row = {
		.local = top_reasons(&r->fallbacks.local, local),
		.peer = top_reasons(&r->fallbacks.peer, peer),
		.histograms = r->histograms,
	};

	memcpy(row.counters, r->counters, sizeof(row.counters));
	report_keep(r, REPORT_STATS, &row);
	report_members(r, &row);
}

bool
report_stats(struct report *r)
{
	if (r->phase > 0) {
		if (step_stats(r))
			return true;
		report_list_end(r, NULL);
		return false;
	}
	report_stats_add_counters(r);
	if (report_next_worker(r))
		return true;
	report_stats_add_summary(r);
	r->phase++;
	r->pos = 0;
	r->nr = r->first;
	return true;
}
