/* The sources of a report, the frame around every answer, and its turns; see report.h. The makers are in report_*.c. */
#include <config.h>

#include "daemon/control/report.h"

#include <assert.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

int64_t
report_wall_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t
report_wall_ms(void)
{
	return report_wall_us() / 1000;
}

static void
begin_frame(struct json_writer *jw, struct outbuf *out, const char *command, int64_t wall_ms)
{
	*jw = (struct json_writer){ .out = out };
	jw_object(jw, NULL);
	jw_int(jw, "schema", REPORT_SCHEMA);
	jw_string(jw, "command", command);
	jw_int(jw, "time_ms", wall_ms);
}

void
report_begin(struct json_writer *jw, struct outbuf *out, enum control_command c, int64_t wall_ms)
{
	begin_frame(jw, out, control_commands[c].name, wall_ms);
	jw_null(jw, "error");
	jw_object(jw, "data");
}

void
report_end(struct json_writer *jw)
{
	jw_object_end(jw);
	jw_object_end(jw);
	jw_end(jw);
}

void
report_answer(struct outbuf *out, enum control_command command, const void *row)
{
	struct json_writer jw;

	report_begin(&jw, out, command, report_wall_ms());
	if (row != NULL)
		field_write(&jw, report_data[command], row);
	report_end(&jw);
}

void
report_error(struct outbuf *out, const char *command, int64_t wall_ms, const char *code, const char *text)
{
	struct json_writer jw;

	begin_frame(&jw, out, command, wall_ms);
	jw_object(&jw, "error");
	jw_string(&jw, "code", code);
	jw_string(&jw, "text", text);
	jw_object_end(&jw);
	jw_null(&jw, "data");
	jw_object_end(&jw);
	jw_end(&jw);
}

static int64_t
limit_of(int resource)
{
	struct rlimit lim;

	return getrlimit((__rlimit_resource_t)resource, &lim) == 0 && lim.rlim_cur <= INT64_MAX ? (int64_t)lim.rlim_cur
	                                                                                        : -1;
}

void
report_source_init(struct report_source *src, struct workers *ws, const struct control_stats *stats,
    const struct report_process *process)
{
	*src = (struct report_source){
		.workers = ws,
		.control = stats,
		.process = process,
		.version = PACKAGE_VERSION,
		.wall_ms = report_wall_ms(),
		.now_ns = clock_ns(),
		.pid = (uint32_t)getpid(),
		.open_files = -1,
		.open_files_max = limit_of(RLIMIT_NOFILE),
		.locked_bytes_max = limit_of(RLIMIT_MEMLOCK),
	};
}

/* Without the one that is opened for it; -1: not known. */
static int64_t
count_open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	int64_t cnt = -1;

	if (d == NULL)
		return -1;
	for (const struct dirent *e; (e = readdir(d)) != NULL;)
		cnt += e->d_name[0] != '.';
	closedir(d);
	return cnt;
}

void
report_source_measure(struct report_source *src)
{
	FILE *f = fopen("/proc/self/statm", "re");
	uint64_t pages = 0; /* resident; 0 = not known */
	struct timespec cpu = { 0 };

	if (f != NULL && fscanf(f, "%*u %" SCNu64, &pages) != 1)
		pages = 0;
	if (f != NULL)
		fclose(f);
	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	src->rss_bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	src->cpu_us = (uint64_t)cpu.tv_sec * 1000000 + (uint64_t)cpu.tv_nsec / 1000;
	src->open_files = count_open_files();
}

static const struct report_phase *const makers[] = {
	[CONTROL_STATUS] = report_status,
	[CONTROL_SERVICE] = report_service,
	[CONTROL_DEVICES] = report_devices,
	[CONTROL_GROUPS] = report_groups,
	[CONTROL_LINKS] = report_links,
	[CONTROL_CONNECTIONS] = report_connections,
	[CONTROL_RMBS] = report_rmbs,
	[CONTROL_STATS] = report_stats,
	[CONTROL_HISTORY] = report_history,
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
	if (r->next->type == FIELD_LIST)
		report_members(r, NULL);
}

struct batch {
	struct report *r;
	unsigned *budget;
	bool more;
};

/* Up to REPORT_STEP_ITEMS objects of the worker. False when the report is complete. */
static bool
run_step(struct report *r)
{
	const struct report_phase *p = &makers[r->req.command][r->phase];
	enum report_step step = REPORT_PASSED;

	for (unsigned i = 0; i < REPORT_STEP_ITEMS && step == REPORT_PASSED; i++)
		step = p->step(r);
	if (step == REPORT_STOP)
		return false;
	if (step == REPORT_NEXT_WORKER && r->nr < r->last) {
		r->nr++;
		r->pos = 0;
	} else if (step == REPORT_NEXT_WORKER || step == REPORT_OVER) {
		if (p->end != NULL)
			p->end(r);
		else
			report_list_end(r, NULL);
		r->nr = r->first;
		r->pos = 0;
		r->phase++;
	}
	return makers[r->req.command][r->phase].step != NULL;
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
		b->more = run_step(r);
		if (r->tired)
			*b->budget = 0;
		r->tired = false;
	} while (b->more && *b->budget > 0 && r->nr == nr &&
	    (r->jw.out == NULL || outbuf_room(r->jw.out) >= REPORT_STEP_BYTES));
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
