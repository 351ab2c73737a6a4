/*
 * The daemon's life: start, reload, drain, end. Owns the main loop, the
 * configuration in force, the workers and the control socket; the traffic
 * itself is the workers', in threads of their own. Called by main.
 */
#include "daemon/smcrd.h"

#include <config.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/advice.h"
#include "daemon/background.h"
#include "daemon/config/config.h"
#include "daemon/config/config_keys.h"
#include "daemon/confine/confine.h"
#include "daemon/control/control.h"
#include "daemon/device/device_preview.h"
#include "daemon/early.h"
#include "daemon/event/news.h"
#include "daemon/log_choice.h"
#include "daemon/log_lines.h"
#include "daemon/loop.h"
#include "daemon/lsock.h"
#include "daemon/metrics/metrics.h"
#include "daemon/names/names.h"
#include "daemon/notify.h"
#include "daemon/open_files.h"
#include "daemon/options.h"
#include "daemon/reloading.h"
#include "daemon/session/peer_rule.h"
#include "daemon/smcopt.h"
#include "daemon/takeover.h"
#include "daemon/upgrade.h"
#include "daemon/worker/workers.h"

struct daemon {
	struct options opt;
	struct loop *loop;
	struct config *cfg; /* in force */
	struct workers *workers;
	struct control *control;
	struct names *names;
	struct metrics *metrics; /* NULL: not configured */
	/* Opened before the process gives its rights up, because it may need them. Devices are not among it: the kernel's RDMA
	 * devices take requests only from a process that still has the rights with which it opened them. */
	struct lsock listen[CONTROL_PORTS]; /* control_new takes them over */
	struct lsock metrics_listen;        /* metrics_new does */
	struct early early;                 /* workers_new takes the sockets over */
	struct smcopt option;
	struct confine_state confine;
	struct news news;
	struct notify notify;
	struct takeover takeover; /* while starting */
	struct background background;
	uint32_t successor; /* the process that has taken over; 0 = none */
	bool draining;
	bool drained;
	bool ends_service; /* a client has asked for the end: systemd keeps no sockets */
	bool broken;       /* a worker's loop has failed */
	bool term_seen;    /* the drain may be a control client's: the first signal does not cut it short */
	struct log_choice log;

	struct reloading reloading;
	struct open_files files; /* of the last configuration that was looked at for it */
};

/* What is going on, in all workers. */
struct census {
	unsigned long long connections;
	unsigned groups;
};

static void
count_one(struct worker *w, void *arg)
{
	struct census *c = arg;
	struct smcr_group_info group;
	struct worker_stats ws;

	worker_stats(w, &ws);
	c->connections += ws.sessions_opened - ws.sessions_closed;
	for (uint32_t pos = 0; smcr_group_next(worker_engine(w), &pos, &group);)
		c->groups++;
}

static struct census
count_all(const struct daemon *d)
{
	struct census c = { 0 };

	workers_call_all(d->workers, count_one, &c);
	return c;
}

static void
describe(void *arg, char *buf, size_t cap)
{
	const struct daemon *d = arg;
	const struct census c = count_all(d);

	snprintf(buf, cap, "%s%llu connections, %u link groups%s%s", d->draining ? "Draining: " : "", c.connections,
	    c.groups, d->reloading.note[0] != '\0' ? "; " : "", d->reloading.note);
}

static void
answer(struct worker *w, void *arg)
{
	(void)w;
	(void)arg;
}

static int64_t
daemon_turn(void *arg, int64_t now_ns)
{
	struct daemon *d = arg;

	/* No sign of life unless each worker's loop turns: it waits here until they have. */
	if (notify_watchdog_due(&d->notify, now_ns))
		workers_call_all(d->workers, answer, NULL);
	return notify_turn(&d->notify, now_ns, describe, d);
}

/* -- reload -- */

static struct control_level
level_for_control(void *arg, int set)
{
	struct daemon *d = arg;

	return log_choice_by_client(&d->log, set);
}

/* For struct reloading. */
static int
apply(void *arg, struct config *next, struct config_plan *plan, FILE *text)
{
	struct daemon *d = arg;
	char *changes = NULL;
	size_t len;
	FILE *f = open_memstream(&changes, &len);
	int rc = -ENOMEM;

	if (f != NULL) {
		config_plan(d->cfg, next, plan, f);
		if (fclose(f) == 0)
			rc = config_keep_fixed(d->cfg, next);
	}
	/* What a process that is taking over has got would not be all, or too much. */
	control_stop_handover(d->control);
	if (rc != 0)
		fputs("out of memory\n", text);
	else
		rc = workers_reload(d->workers, next, text);
	if (rc == 0) {
		fputs(changes, text);
		config_free(d->cfg);
		d->cfg = next;
		names_apply(d->names, next);
		if (log_choice_configure(&d->log, next->log_level))
			fprintf(text,
			    "warning: the level of the log stays as it was set: take it back by \"smcrctl log-level " CONTROL_LEVEL_DEFAULT
			    "\"\n");
		metrics_reload(d->metrics, next);
		open_files_check(&d->files, d->cfg);
		upgrade_store(d->workers, &d->notify);
	} else {
		config_free(next);
	}
	free(changes);
	return rc;
}

/* -- names -- */

static void
tell_of_targets(struct worker *w, void *arg)
{
	worker_targets_came(w, arg);
}

static void
on_targets_came(void *arg, const char *service)
{
	struct daemon *d = arg;
	char name[CONFIG_NAME_MAX];

	(void)snprintf(name, sizeof(name), "%s", service);
	workers_call_all(d->workers, tell_of_targets, name);
}

static void
on_hup(void *arg)
{
	struct daemon *d = arg;

	if (d->draining)
		log_msg(LOG_LVL_WARNING, "no reload while draining");
	else
		reloading_want(&d->reloading);
}

static int
reload_for_control(void *arg, void (*done)(void *done_arg, int rc, const char *msgs), void *done_arg)
{
	struct daemon *d = arg;

	return d->draining ? -EBUSY : reloading_start_for(&d->reloading, done, done_arg);
}

/* -- end -- */

static void
on_drained(void *arg)
{
	struct daemon *d = arg;
	unsigned long long left = count_all(d).connections;

	if (left > 0)
		log_msg(LOG_LVL_WARNING, "drain_timeout is over, connections are reset: connections=%llu", left);
	else
		log_msg(LOG_LVL_NOTICE, "drained");
	d->drained = true;
	notify_stopping(&d->notify, 0);
	loop_stop(d->loop);
}

static void
drain(void *arg)
{
	struct daemon *d = arg;

	if (d->draining)
		return;
	d->draining = true;
	metrics_drains(d->metrics, true);
	reloading_cancel(&d->reloading);
	if (d->successor == 0) {
		control_stop_handover(d->control);
		/* Systemd has them for the next process, and so their files stay. */
		upgrade_lend(d->workers, d->notify.enabled && !d->ends_service);
	}
	log_msg(LOG_LVL_NOTICE, "draining: connections=%llu timeout_ms=%u", count_all(d).connections, d->cfg->drain_ms);
	workers_drain(d->workers, d->cfg->drain_ms, on_drained, d);
}

static int
undrain(void *arg)
{
	struct daemon *d = arg;

	if (!d->draining)
		return -ENOENT;
	if (d->term_seen || d->drained || d->successor != 0)
		return -EBUSY;
	int rc = workers_undrain(d->workers);
	d->draining = d->ends_service = false;
	metrics_drains(d->metrics, false);
	log_msg(LOG_LVL_NOTICE, "drains no longer: connections=%llu", count_all(d).connections);
	upgrade_store(d->workers, &d->notify);
	notify_ready(&d->notify);
	return rc;
}

static int
sockets_for_successor(void *arg, struct lsock_list *services, struct lsock_list *ports)
{
	struct daemon *d = arg;
	const struct lsock *metrics = metrics_socket(d->metrics);
	int rc = upgrade_sockets(d->workers, services);

	if (rc == 0 && metrics != NULL)
		rc = lsock_list_add_copies(services, metrics);
	return rc == 0 ? upgrade_ports(d->workers, ports) : rc;
}

static void
hand_over(void *arg, uint32_t pid, const struct lsock_list *ports)
{
	struct daemon *d = arg;

	d->successor = pid;
	notify_successor(&d->notify, pid);
	upgrade_let_go(d->workers);
	upgrade_drop_ports(d->workers, ports);
	metrics_hand_over(d->metrics);
	d->metrics = NULL;
	drain(d);
}

/* The service ends, so nobody is to wait in its sockets. */
static void
drain_for_control(void *arg)
{
	struct daemon *d = arg;

	if (d->notify.enabled && !d->draining) {
		notify_unstore();
		d->ends_service = true;
	}
	drain(d);
}

static void
on_failed(void *arg, unsigned nr, int err)
{
	struct daemon *d = arg;

	log_msg(LOG_LVL_ERROR, "the event loop failed: worker=%u error=\"%s\"", nr + 1, strerror(-err));
	d->broken = true;
	loop_stop(d->loop);
}

static void
on_term(void *arg)
{
	struct daemon *d = arg;

	if (d->term_seen) {
		log_msg(LOG_LVL_NOTICE, "ending at once");
		loop_stop(d->loop);
	} else if (d->draining) {
		log_msg(LOG_LVL_NOTICE, "draining already, the next signal ends it");
	} else {
		drain(d);
	}
	/* Not of a control client's drain, which may be taken back: to systemd this is the end. */
	if (!d->term_seen)
		notify_stopping(&d->notify, d->cfg->drain_ms);
	d->term_seen = true;
}

/* -- start -- */

static bool
wants_option(const struct config *cfg)
{
	for (unsigned i = 0; i < cfg->service_cnt; i++)
		if (peer_rule_wants_option(cfg->services[i].peer))
			return true;
	return false;
}

/* Loaded only for services that want it: where nobody does, it stays away from the host's TCP. */
static void
open_option(struct daemon *d)
{
	smcopt_init(&d->option, "no service wanted it when smcrd was started: restart it");
	if (wants_option(d->cfg))
		smcopt_open(&d->option);
	smcopt_confined(&d->option, d->cfg->confine.mode != CONFIG_CONFINE_OFF);
}

/* CONFINE_KEEP_ */
static unsigned
rights_to_keep(const struct daemon *d)
{
	return d->option.keeps_right ? CONFINE_KEEP_BPF : 0;
}

/* The sockets of the running daemon, if this one is to take its place and it runs; else the control socket is ours to make. */
static int
take_over(struct daemon *d, FILE *err)
{
	const char *from = d->opt.take_over_from != NULL ? d->opt.take_over_from : d->cfg->control_path;
	int rc = d->opt.take_over ? takeover_begin(&d->takeover, from, err) : 0;

	for (unsigned i = 0; i < CONTROL_PORTS && rc == 0; i++)
		if (d->takeover.control[i].fd >= 0 &&
		    strcmp(d->takeover.control[i].path, control_file(d->cfg, i).path) == 0) {
			d->listen[i] = d->takeover.control[i];
			d->takeover.control[i] = LSOCK_NONE;
		}
	return rc;
}

/* This process accepts; the other one may go. */
static int
finish_take_over(struct daemon *d, FILE *err)
{
	if (d->takeover.sock < 0)
		return 0;
	int rc = takeover_finish(&d->takeover, d->cfg, err);
	if (rc == 0) {
		control_adopt(d->control);
		metrics_adopt(d->metrics);
		upgrade_lend(d->workers, false);
	}
	return rc;
}

/*
 * Opens first what takes rights: the TCP option, UNIX sockets, listeners on ports below 1024, the control socket. Then
 * gives the rights up; threads and devices come with what is left, the workers' threads last. 0, CONFINE_REFUSED, or -errno
 * and err says why.
 */
static int
open_all(struct daemon *d, FILE *err)
{
	const struct control_hooks hooks = {
		.arg = d,
		.reload = reload_for_control,
		.drain = drain_for_control,
		.undrain = undrain,
		.log_level = level_for_control,
		.sockets = sockets_for_successor,
		.handed_over = hand_over,
		.confine = &d->confine,
		.listen = d->listen,
		.news = &d->news,
	};
	const struct workers_hooks workers_hooks = { .arg = d, .news = &d->news, .failed = on_failed };

	open_option(d);
	int rc = take_over(d, err);
	if (rc == 0)
		rc = metrics_listen(d->cfg, &d->takeover.services, &d->metrics_listen, err);
	if (rc == 0)
		rc = early_open(&d->early, d->cfg, workers_wanted(d->cfg), &d->option, &d->takeover.services, err);
	for (unsigned i = 0; i < CONTROL_PORTS && rc == 0; i++) {
		const struct lsock_file file = control_file(d->cfg, i);

		rc = file.path[0] != '\0' && d->listen[i].fd < 0 ? lsock_open(&d->listen[i], &file, err) : 0;
	}
	if (rc == 0)
		rc = confine_rights(d->cfg, rights_to_keep(d), &d->confine);
	if (rc == 0)
		rc = takeover_offer_ports(&d->takeover, d->cfg);
	if (rc == 0)
		rc = workers_new(d->loop, d->early.workers, d->cfg, &d->option, d->early.socks, d->early.cnt,
		    &workers_hooks, err, &d->workers);
	takeover_settle_ports(&d->takeover, d->cfg);
	if (rc == 0)
		rc = control_new(d->loop, d->workers, d->cfg, &hooks, err, &d->control);
	if (rc == 0)
		rc = metrics_new(d->loop, d->workers, d->cfg, &d->metrics_listen, control_counters(d->control),
		    &d->confine, err, &d->metrics);
	if (rc == 0)
		rc = confine_calls(&d->confine);
	if (rc != 0)
		return rc;
	rc = workers_start(d->workers);
	if (rc == 0)
		rc = metrics_start(d->metrics);
	if (rc != 0) {
		fprintf(err, "cannot start a thread: %s\n", strerror(-rc));
		return rc;
	}
	const struct names_hooks names = { .arg = d, .came = on_targets_came };
	rc = names_new(d->loop, workers_targets(d->workers), &names, &d->names);
	if (rc != 0)
		fprintf(err, "cannot set up the resolver: %s\n", strerror(-rc));
	else
		names_apply(d->names, d->cfg);
	return rc == 0 ? finish_take_over(d, err) : rc;
}

static void
log_confinement(const struct confine_state *state)
{
	for (unsigned i = 0; i < CONFINE_PART_CNT; i++) {
		const struct confine_part_state *part = &state->part[i];
		bool wanted = !part->on && state->mode != CONFIG_CONFINE_OFF;

		log_msg(wanted ? LOG_LVL_WARNING : LOG_LVL_INFO, "%s: part=%s %s=\"%s\"",
		    part->on ? "confined" : "not confined", confine_part_words[i], part->on ? "by" : "reason",
		    part->text);
	}
}

/* 0 or an exit code. */
static int
start(struct daemon *d)
{
	char *text = NULL;
	size_t len;

	d->loop = loop_new();
	if (d->loop == NULL) {
		log_msg(LOG_LVL_ERROR, "cannot make an event loop");
		return SMCRD_EXIT_FAILURE;
	}
	d->reloading =
	    (struct reloading){ .loop = d->loop, .path = d->opt.path, .notify = &d->notify, .apply = apply, .arg = d };
	if (news_init(&d->news) != 0) {
		log_msg(LOG_LVL_ERROR, "out of memory");
		return SMCRD_EXIT_FAILURE;
	}
	(void)signal(SIGPIPE, SIG_IGN);
	int rc = loop_signal(d->loop, SIGTERM, on_term, d);
	if (rc == 0)
		rc = loop_signal(d->loop, SIGINT, on_term, d);
	if (rc == 0)
		rc = loop_signal(d->loop, SIGHUP, on_hup, d);
	if (rc != 0) {
		log_msg(LOG_LVL_ERROR, "cannot handle signals: error=\"%s\"", strerror(-rc));
		return SMCRD_EXIT_FAILURE;
	}
	FILE *err = open_memstream(&text, &len);
	if (err == NULL)
		return SMCRD_EXIT_FAILURE;
	rc = open_all(d, err);
	fclose(err);
	(void)log_lines(text != NULL ? text : "", rc == 0 ? LOG_LVL_NOTICE : LOG_LVL_ERROR);
	free(text);
	if (rc == 0 || rc == CONFINE_REFUSED)
		log_confinement(&d->confine);
	if (rc == CONFINE_REFUSED) {
		log_msg(LOG_LVL_ERROR, "confine.mode is \"require\", and not all of it can be had");
		return SMCRD_EXIT_CONFIG; /* the kernel will not change by itself */
	}
	if (rc == 0)
		rc = loop_add_turn(d->loop, daemon_turn, d);
	return rc == 0 ? SMCRD_EXIT_OK : SMCRD_EXIT_FAILURE;
}

/* Also of a daemon that did not start completely. */
static void
end(struct daemon *d)
{
	reloading_cancel(&d->reloading);
	metrics_free(d->metrics);
	lsock_close(&d->metrics_listen);
	control_free(d->control);
	for (unsigned i = 0; i < CONTROL_PORTS; i++)
		lsock_close(&d->listen[i]);
	names_free(d->names);
	workers_free(d->workers);
	news_fini(&d->news);
	early_fini(&d->early);
	takeover_fini(&d->takeover);
	smcopt_close(&d->option);
	loop_free(d->loop);
	config_free(d->cfg);
}

static int
run(struct daemon *d)
{
	d->log = (struct log_choice){ .option = d->opt.log_level, .configured = d->cfg->log_level, .client = -1 };
	log_init(log_choice_level(&d->log));
	log_msg(LOG_LVL_NOTICE, "smcrd starts: version=%s file=%s services=%u devices=%u", PACKAGE_VERSION,
	    d->cfg->path, d->cfg->service_cnt, d->cfg->device_cnt);
	if (d->cfg->service_cnt == 0)
		log_msg(LOG_LVL_WARNING, "no ingress and no egress in the configuration: nothing to do");
	open_files_raise();
	open_files_check(&d->files, d->cfg);
	int code = start(d);
	if (code == SMCRD_EXIT_OK) {
		notify_init(&d->notify, loop_now(d->loop));
		notify_ready(&d->notify);
		upgrade_store(d->workers, &d->notify);
		background_ready(&d->background);
		log_msg(LOG_LVL_NOTICE, "ready");
		int rc = loop_run(d->loop);
		if (rc != 0) {
			log_msg(LOG_LVL_ERROR, "the event loop failed: error=\"%s\"", strerror(-rc));
			code = SMCRD_EXIT_FAILURE;
		}
		if (d->broken)
			code = SMCRD_EXIT_FAILURE;
	}
	end(d);
	if (code == SMCRD_EXIT_OK)
		log_msg(LOG_LVL_NOTICE, "smcrd ends");
	return code;
}

/* The option is tried out, for a configuration that wants it, as it says which rights are kept. */
static void
print_rights(struct daemon *d)
{
	open_option(d);
	confine_preview(d->cfg, rights_to_keep(d), &d->confine);
	confine_print(&d->confine, stdout);
	if (wants_option(d->cfg))
		printf("SMC-R's TCP option: %s%s\n", smcopt_usable(&d->option) ? "ready" : "no: ", d->option.why);
	smcopt_close(&d->option);
}

int
smcrd_main(int argc, char **argv)
{
	struct daemon d = {
		.listen = { LSOCK_NONE, LSOCK_NONE },
		.metrics_listen = LSOCK_NONE,
		.option = { .map = -1, .link = -1 },
		.takeover = TAKEOVER_NONE,
		.background = BACKGROUND_NONE,
	};
	enum options_action action = options_parse(argc, argv, &d.opt);
	int rc;

	if (action == OPTIONS_DONE || action == OPTIONS_BAD)
		return action == OPTIONS_DONE ? SMCRD_EXIT_OK : SMCRD_EXIT_USAGE;
	rc = config_load(d.opt.path, stderr, &d.cfg);
	/* A name server that does not answer yet is worth a restart; a mistake in the file is not. */
	if (rc != 0)
		return rc == -EAGAIN ? SMCRD_EXIT_FAILURE : SMCRD_EXIT_CONFIG;
	if (action == OPTIONS_RUN) {
		rc = d.opt.background ? background_start(&d.background) : 0;
		if (rc == 0)
			return run(&d);
		fprintf(stderr, "smcrd: no second process: %s\n", strerror(-rc));
		config_free(d.cfg);
		return SMCRD_EXIT_FAILURE;
	}
	if (action == OPTIONS_PRINT) {
		config_print(d.cfg, stdout);
	} else {
		printf("%s: ok, %u services, %u devices\n", d.cfg->path, d.cfg->service_cnt, d.cfg->device_cnt);
		device_preview(d.cfg, stdout);
		print_rights(&d);
		(void)fflush(stdout);
		advice_print(d.cfg, ADVICE_WAIT_MS, stderr);
	}
	config_free(d.cfg);
	return fflush(stdout) == 0 ? SMCRD_EXIT_OK : SMCRD_EXIT_FAILURE;
}
