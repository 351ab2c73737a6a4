/* Every counter; histograms, and what the sessions of each service come to. */
#include "daemon/control/report.h"

#include "base/log.h"
#include "daemon/session/cause.h"
#include "daemon/session/session.h"
#include "wire/clc.h"

#define REASONS_SHOWN 10

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

#define OF_SMCR smcr
#define OF_WORKER (&worker)
#define OF_CONTROL control
#define OF_LOG (&lines)
#define KEY(source, field, words) CONTROL_COUNTER_KEY(source, field),
#define VALUE(source, field, words) OF_##source->field,

static void
add_counters(struct report *r)
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

/* -- histograms, and what the sessions of each service come to -- */

static void
write_bounds(struct json_writer *jw, const char *key, const uint64_t bounds[HISTOGRAM_BOUNDS])
{
	jw_array(jw, key);
	for (unsigned i = 0; i < HISTOGRAM_BOUNDS; i++)
		jw_uint(jw, NULL, bounds[i]);
	jw_array_end(jw);
}

static void
write_histogram(struct json_writer *jw, const char *key, const struct histogram *h, const char *sum_key, uint64_t unit)
{
	jw_object(jw, key);
	jw_array(jw, "counts");
	for (unsigned i = 0; i <= HISTOGRAM_BOUNDS; i++)
		jw_uint(jw, NULL, h->cnt[i]);
	jw_array_end(jw);
	jw_uint(jw, sum_key, h->sum / unit);
	jw_object_end(jw);
}

static void
write_histograms(struct json_writer *jw, const struct smcr_histograms *h)
{
	write_bounds(jw, "time_bounds_us", histogram_times_us);
	write_bounds(jw, "size_bounds_bytes", histogram_sizes);
	write_histogram(jw, "write_size", &h->write_size, "sum_bytes", 1);
	write_histogram(jw, "blocked_time", &h->blocked, "sum_us", 1000);
}

static void
write_resets(struct json_writer *jw, enum config_kind kind, const struct tally *t)
{
	struct tally_entry top[TALLY_KEYS];
	unsigned n = tally_top(t, top, TALLY_KEYS);

	jw_array(jw, "reset_reasons");
	for (unsigned i = 0; i < n; i++) {
		jw_object(jw, NULL);
		jw_string(jw, "text", cause_str(kind, top[i].key));
		jw_uint(jw, "count", top[i].cnt);
		jw_object_end(jw);
	}
	jw_array_end(jw);
}

static void
write_figures(struct json_writer *jw, const struct config_service *cfg, const struct service_figures *f)
{
	jw_object(jw, NULL);
	jw_string(jw, "name", cfg->name);
	jw_string(jw, "kind", cfg->kind == CONFIG_INGRESS ? "ingress" : "egress");
	report_conn_counts(jw, "modes", f->modes);
	jw_uint(jw, "bytes_from_app", f->bytes[WAY_FROM_APP]);
	jw_uint(jw, "bytes_to_app", f->bytes[WAY_TO_APP]);
	write_histogram(jw, "setup_time", &f->setup, "sum_us", 1000);
	write_histogram(jw, "connect_time", &f->connect, "sum_us", 1000);
	write_histogram(jw, "life_time", &f->life, "sum_us", 1000);
	write_reasons(jw, "fallback_reasons_local", &f->reasons->local);
	write_reasons(jw, "fallback_reasons_peer", &f->reasons->peer);
	write_resets(jw, cfg->kind, &f->reasons->reset);
	jw_object_end(jw);
}

/* As step_service. */
static bool
step_figures(struct report *r)
{
	const struct service_figures *one;
	const struct config_service *cfg;
	uint32_t pos = r->pos;

	if (!worker_figures_next(r->worker, &pos, &cfg, &one))
		return false;
	r->figures.reasons = &r->reasons;
	figures_merge(&r->figures, one);
	if (r->nr < r->last) {
		r->nr++;
		return true;
	}
	write_figures(&r->jw, cfg, &r->figures);
	r->figures = (struct service_figures){ 0 };
	r->reasons = (struct service_reasons){ 0 };
	r->pos = pos;
	r->nr = r->first;
	return true;
}

bool
report_stats(struct report *r)
{
	static const char *const keys[] = { CONTROL_COUNTERS(REPORT_NONE, KEY) };
	struct json_writer *jw = &r->jw;

	if (r->phase > 0) {
		if (step_figures(r))
			return true;
		jw_array_end(jw);
		return false;
	}
	add_counters(r);
	if (report_next_worker(r))
		return true;
	jw_object(jw, "counters");
	for (size_t i = 0; i < REPORT_COUNTERS; i++)
		jw_uint(jw, keys[i], r->counters[i]);
	jw_object_end(jw);
	write_reasons(jw, "fallback_reasons_local", &r->fallbacks.local);
	write_reasons(jw, "fallback_reasons_peer", &r->fallbacks.peer);
	write_histograms(jw, &r->histograms);
	jw_array(jw, "services");
	r->phase++;
	r->pos = 0;
	r->nr = r->first;
	return true;
}
