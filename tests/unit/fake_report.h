/* Where the reports of a fixed worker come from; they are compared as JSON, as metrics, and as a page. */
#pragma once

#include "daemon/control/report.h"
#include "fake_worker.h"
#include "fake_workers.h"

static const struct control_stats fake_report_control = { 601, 602, 603, 604, 605, 606, 607, 608 };

static const struct confine_state fake_report_confine = {
	.mode = CONFIG_CONFINE_AUTO,
	.part = {
		[CONFINE_PRIVILEGES] = { true, "no program can be executed with more rights" },
		[CONFINE_CAPABILITIES] = { true, "none" },
		[CONFINE_FILES] = { false, "the kernel has no Landlock: Function not implemented" },
		[CONFINE_SYSTEM_CALLS] = { true, "libseccomp 2.5.4, 200 rules; others are refused, and logged by the kernel" },
	},
};

static const struct report_process fake_report_process = {
	.confine = &fake_report_confine,
	.host = "gw1.example",
	.predecessors = { { 4242 }, { 4343 } },
	.predecessor_cnt = 2,
	.started_ms = 1763719100456,
	.loaded_ms = 1763719150789,
	.reload_error = "reload failed, old configuration in force: <x>",
	.tls_error = "tls.key /k cannot be used",
	.tls_expiry = "the certificate in /c expires in 3 days",
	.certificates = &(const struct report_certificate){ "/c", 1763999999000 },
	.certificate_cnt = 1,
	.waiting_settings = 2,
};

static inline struct report_source
fake_report_source(struct workers *ws)
{
	return (struct report_source){ .workers = ws,
		.control = &fake_report_control,
		.process = &fake_report_process,
		.version = "1.2.3",
		.wall_ms = 1763719200123,
		.now_ns = 600 * HISTORY_STEP_NS + 123000000,
		.pid = 4711,
		.rss_bytes = 12 << 20,
		.cpu_us = 34567891,
		.open_files = 57,
		.open_files_max = 1024,
		.locked_bytes_max = -1 };
}

/* The rows that metrics take, of a worker with everything or of an idle one; to be ended by snapshot_fini(). */
static inline void
fake_report_rows(struct snapshot *out, bool idle)
{
	static const enum control_command commands[] = { CONTROL_STATUS, CONTROL_STATS, CONTROL_GROUPS, CONTROL_LINKS,
		CONTROL_DEVICES, CONTROL_HISTORY };
	struct worker *w = idle ? fake_worker_new_empty() : fake_worker_new();
	struct workers *ws = fake_workers_new(NULL, w, 1);
	const struct report_source src = fake_report_source(ws);

	*out = (struct snapshot){ .bytes_max = 1 << 24 };
	for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		const struct control_request req = { .command = commands[i] };
		struct report r;

		report_start(&r, &src, &req, NULL);
		r.keep = out;
		while (report_run(&r, &(unsigned){ 1 }))
			;
	}
	fake_workers_free(ws);
	fake_worker_free(w);
}
