/* The last ten minutes, of the daemon and of each active service. */
#include <string.h>

#include "daemon/control/report.h"

/* Adds what a worker has, which it may have for steps behind the last one. */
static void
add_samples(struct report *r, const struct history *h)
{
	const int64_t first = history_step(r->src.now_ns) - HISTORY_SAMPLES;

	for (int i = 0; i < HISTORY_SAMPLES; i++) {
		const struct history_sample s = history_get(h, first + i);

		history_add(&r->history.at[i], &s);
	}
	r->active = true;
}

/* Makes a row of the sum, and begins the next one. */
static struct report_history
take_row(struct report *r, const char *name, enum config_kind kind)
{
	struct report_history row = r->history;

	row.name = name;
	row.kind = kind;
	row.step_ms = HISTORY_STEP_NS / NS_PER_MS;
	row.end_ms = r->src.wall_ms - r->src.now_ns % HISTORY_STEP_NS / NS_PER_MS;
	memset(&r->history, 0, sizeof(r->history));
	r->active = false;
	return row;
}

static enum report_step
add_worker(struct report *r)
{
	add_samples(r, &worker_sessions(r->worker)->history.all);
	return REPORT_NEXT_WORKER;
}

static void
add_all(struct report *r)
{
	const struct report_history row = take_row(r, "", CONFIG_INGRESS);

	report_keep(r, REPORT_HISTORY, &row);
	report_members(r, &row);
}

/* As step_service() of report_status.c. The only service that is asked for is written even if it has no samples. */
static enum report_step
step_history(struct report *r)
{
	const char *only = r->req.service;
	struct service_info one;
	uint32_t pos = r->pos;

	if (!worker_service_next(r->worker, &pos, &one))
		return REPORT_OVER;
	if (one.history != NULL)
		add_samples(r, one.history);
	if (report_next_summand(r, pos))
		return REPORT_WRITTEN;
	const bool wanted = only[0] != '\0' ? strcmp(only, one.cfg->name) == 0 : r->active;
	const struct report_history row = take_row(r, one.cfg->name, one.cfg->kind);
	if (wanted)
		report_item(r, REPORT_HISTORY, &row);
	return REPORT_WRITTEN;
}

const struct report_phase report_history[] = { { add_worker, add_all }, { .step = step_history }, { 0 } };
