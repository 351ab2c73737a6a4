/* The sources of a report, and the steps of its maker over workers and turns; see report.h. The makers are in report_*.c. */
#include <config.h>

#include "daemon/control/report.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static int64_t
limit_of(int resource)
{
	struct rlimit lim;

	return getrlimit((__rlimit_resource_t)resource, &lim) == 0 && lim.rlim_cur <= INT64_MAX ? (int64_t)lim.rlim_cur
	                                                                                        : -1;
}

void
report_source_init(struct report_source *src, struct workers *ws, const struct control_stats *stats,
    const struct confine_state *confine)
{
	FILE *f = fopen("/proc/self/statm", "re");
	uint64_t pages = 0; /* resident; 0 = not known */

	if (f != NULL && fscanf(f, "%*u %" SCNu64, &pages) != 1)
		pages = 0;
	if (f != NULL)
		fclose(f);
	*src = (struct report_source){
		.workers = ws,
		.control = stats,
		.confine = confine,
		.version = PACKAGE_VERSION,
		.wall_ms = report_wall_ms(),
		.pid = (uint32_t)getpid(),
		.rss_bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE),
		.open_files_max = limit_of(RLIMIT_NOFILE),
		.locked_bytes_max = limit_of(RLIMIT_MEMLOCK),
	};
}

/* A maker does one step; false when there are no more. It keeps its place in phase and pos. */
static bool (*const makers[])(struct report *) = {
	[CONTROL_STATUS] = report_status,
	[CONTROL_SERVICE] = report_service,
	[CONTROL_DEVICES] = report_list,
	[CONTROL_GROUPS] = report_list,
	[CONTROL_LINKS] = report_list,
	[CONTROL_CONNECTIONS] = report_list,
	[CONTROL_RMBS] = report_list,
	[CONTROL_STATS] = report_stats,
	[CONTROL_CLOSE] = report_close,
	[CONTROL_DRAIN] = report_drain,
	[CONTROL_UNDRAIN] = report_drain,
	[CONTROL_COMMAND_CNT] = NULL, /* commands that act have no maker */
};

void
report_start(struct report *r, const struct report_source *src, const struct control_request *req, struct outbuf *out)
{
	assert(makers[req->command] != NULL);
	*r = (struct report){ .src = *src, .req = *req, .last = workers_cnt(src->workers) - 1 };
	if (req->worker != 0)
		r->first = r->last = req->worker - 1;
	r->nr = r->first;
	r->next = report_data[req->command];
	if (out != NULL)
		report_begin(&r->jw, out, req->command, src->wall_ms);
}

void
report_keep_in(struct report *r, struct snapshot *keep)
{
	r->keep = keep;
}

struct batch {
	struct report *r;
	unsigned *budget;
	bool more;
};

static bool
has_room(const struct report *r)
{
	return r->jw.out == NULL || outbuf_room(r->jw.out) >= REPORT_STEP_BYTES;
}

static void
run_batch(struct worker *w, void *arg)
{
	struct batch *b = arg;
	struct report *r = b->r;
	const unsigned nr = r->nr;

	r->worker = w;
	do {
		--*b->budget;
		b->more = makers[r->req.command](r);
		if (r->tired)
			*b->budget = 0;
		r->tired = false;
	} while (b->more && *b->budget > 0 && r->nr == nr && has_room(r));
	r->worker = NULL;
}

bool
report_run(struct report *r, unsigned *budget)
{
	struct batch b = { .r = r, .budget = budget };

	workers_call(r->src.workers, r->nr, run_batch, &b);
	if (!b.more && r->jw.out != NULL)
		report_end(&r->jw);
	return b.more;
}

bool
report_step(struct report *r)
{
	unsigned budget = 1;

	return report_run(r, &budget);
}
