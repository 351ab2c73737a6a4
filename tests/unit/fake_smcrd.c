/*
 * A program that answers smcrctl like smcrd, with the real loop and control socket and a worker of fixed data. Usage:
 * fake_smcrd SOCKET [READ-ONLY-SOCKET]. Checks succeed for port 1 and fail for others; a reload fails every second time; a trace gets a
 * message each turn, of link group 1; a drain to exit ends the program half a second later.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/control/control.h"
#include "fake_worker.h"
#include "fake_workers.h"

#define MS INT64_C(1000000)

static struct loop *loop;
static struct worker *worker;
static unsigned reloads;
static void (*reload_done)(void *, int, const char *);
static void *reload_done_arg;
static int64_t end_at = INT64_MAX;

static int
on_reload(void *arg, void (*done)(void *done_arg, int rc, const char *msgs), void *done_arg)
{
	(void)arg;
	reload_done = done;
	reload_done_arg = done_arg;
	return 0;
}

static void
on_drain(void *arg, bool then_exit, uint32_t limit_ms)
{
	(void)arg;
	(void)limit_ms;
	if (then_exit && end_at == INT64_MAX)
		end_at = loop_now(loop) + 500 * MS;
}

static void
on_listening(void *arg)
{
	(void)arg;
}

static unsigned
on_retry_names(void *arg)
{
	(void)arg;
	return 6;
}

static void
on_term(void *arg)
{
	(void)arg;
	loop_stop(loop);
}

static void
say_something(void)
{
	static const uint8_t test_link[44] = { 7, 44, 0, 0, 1, 2, 3 };
	static const struct smcr_trace t = { .kind = SMCR_TRACE_LLC,
		.sent = true,
		.group_id = 1,
		.link = 1,
		.msg = test_link,
		.len = sizeof(test_link) };

	fake_worker_trace(worker, &t);
}

static int64_t
turn(void *arg, int64_t now_ns)
{
	static const struct check_result yes = { .possible = true, .text = "yes: SMC-R works" };
	static const struct check_result no = { .text = "no: declined: no RDMA device (0x03030000)",
		.diag = { .local = 0x05000000, .peer = 0x03030000 } };

	(void)arg;
	while (fake_worker.checks > 0)
		fake_worker_end_check(worker, fake_worker.check_port == 1 ? &yes : &no);
	if (reload_done != NULL) {
		void (*done)(void *, int, const char *) = reload_done;

		reload_done = NULL;
		done(reload_done_arg, reloads % 2 == 0 ? 0 : -1, reloads % 2 == 0 ? "" : "smcrd.conf:3: wrong\n");
		reloads++;
	}
	say_something();
	if (now_ns >= end_at)
		loop_stop(loop);
	return now_ns + 100 * MS;
}

int
main(int argc, char **argv)
{
	static struct event_history news;
	static const struct control_hooks hooks = { .reload = on_reload,
		.drain = on_drain,
		.listening = on_listening,
		.retry_names = on_retry_names,
		.news = &news };
	const struct event down = {
		.kind = EVENT_LINK_DOWN, .group = 3, .link = 1, .service = "web", .reason = "port down"
	};
	const struct event up = { .kind = EVENT_LINK_UP, .group = 3, .link = 2 };
	struct config cfg = { .control_mode = 0600, .control_readonly_mode = 0600 };
	struct control *ctl = NULL;

	if (argc < 2 || argc > 3 || strlen(argv[1]) >= sizeof(cfg.control_path) ||
	    (argc == 3 && strlen(argv[2]) >= sizeof(cfg.control_readonly)))
		return 2;
	strcpy(cfg.control_path, argv[1]);
	if (argc == 3)
		strcpy(cfg.control_readonly, argv[2]);
	log_init(LOG_LVL_ERROR);
	if (event_history_init(&news) != 0)
		return 1;
	event_report(&news, 1, 1, &down);
	event_report(&news, 1, 1, &up);
	loop = loop_new();
	worker = fake_worker_new();
	struct workers *workers = fake_workers_new(loop, worker, 1);
	if (loop_signal(loop, SIGTERM, on_term, NULL) != 0 || loop_add_turn(loop, turn, NULL) != 0 ||
	    control_new(loop, workers, &cfg, &hooks, stderr, &ctl) != 0)
		return 1;
	loop_run(loop);
	control_free(ctl);
	fake_worker_free(worker);
	fake_workers_free(workers);
	event_history_fini(&news);
	loop_free(loop);
	return 0;
}
