/* The daemon from start to end. Owns the main loop, the configuration in force, the workers and the control socket.
 * The workers carry the traffic, in threads of their own. Called by main. */
#include "daemon/smcrd.h"

#include <config.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/minmax.h"
#include "control/instance.h"
#include "daemon/process/preflight.h"
#include "daemon/process/keeper.h"
#include "daemon/process/load_summary.h"
#include "daemon/process/reload_client.h"
#include "daemon/process/running.h"
#include "daemon/device/device_preview.h"
#include "daemon/log/log_lines.h"
#include "daemon/process/smcrd_parts.h"

static void
smcrd_describe(void *arg, char *buf, size_t cap)
{
	const struct daemon *d = arg;
	const struct load_summary c = load_summary_take(d->workers);

	snprintf(buf, cap, "%s%llu connections, %u link groups%s%s", d->draining ? "Draining: " : "", c.connections,
	    c.groups, d->reloading.note[0] != '\0' ? "; " : "", d->reloading.note);
}

static void
smcrd_answer(struct worker *w, void *arg)
{
	(void)w;
	(void)arg;
}

static int64_t
daemon_turn(void *arg, int64_t now_ns)
{
	struct daemon *d = arg;

	/* Waits until the loop of each worker has turned, so the watchdog is fed only while all of them run. */
	if (notify_watchdog_due(&d->notify, now_ns))
		workers_call_all(d->workers, smcrd_answer, NULL);
	if (notify_store_due(&d->notify, now_ns))
		smcrd_store_sockets(d);
	const int64_t at = tls_watch_turn(&d->tls, d->cfg, now_ns);
	d->certificates[0] = (struct report_certificate){ d->cfg->tls.cert, d->tls.not_after_s * 1000 };
	d->process.certificate_cnt = d->tls.not_after_s != 0;
	return min_i64(at, notify_turn(&d->notify, now_ns, smcrd_describe, d));
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
smcrd_start(struct daemon *d)
{
	char *text = NULL;
	size_t len;

	d->loop = loop_new();
	if (d->loop == NULL) {
		log_msg(LOG_LVL_ERROR, "cannot create an event loop");
		return SMCRD_EXIT_FAILURE;
	}
	d->reloading = (struct reload_job){
		.loop = d->loop,
		.path = d->opt.path,
		.instance = d->opt.instance,
		.notify = &d->notify,
		.apply = smcrd_apply,
		.arg = d,
	};
	d->tls = (struct tls_watch){
		.loop = d->loop, .apply = smcrd_apply_tls, .expires = smcrd_certificate_expires, .arg = d
	};
	d->process.reload_error = d->reloading.note;
	d->process.tls_error = d->tls.note;
	d->process.tls_expiry = d->tls.expiry;
	d->process.certificates = d->certificates;
	d->process.started_ms = d->process.loaded_ms = report_wall_ms();
	if (event_history_init(&d->news) != 0) {
		log_msg(LOG_LVL_ERROR, "out of memory");
		return SMCRD_EXIT_FAILURE;
	}
	(void)signal(SIGPIPE, SIG_IGN);
	int rc = loop_signal(d->loop, SIGTERM, smcrd_on_term, d);
	if (rc == 0)
		rc = loop_signal(d->loop, SIGINT, smcrd_on_term, d);
	if (rc == 0)
		rc = loop_signal(d->loop, SIGHUP, smcrd_on_hup, d);
	if (rc != 0) {
		log_msg(LOG_LVL_ERROR, "cannot handle signals: error=\"%s\"", strerror(-rc));
		return SMCRD_EXIT_FAILURE;
	}
	FILE *err = open_memstream(&text, &len);
	if (err == NULL)
		return SMCRD_EXIT_FAILURE;
	rc = smcrd_open(d, err);
	fclose(err);
	(void)log_lines(text != NULL ? text : "", rc == 0 ? LOG_LVL_NOTICE : LOG_LVL_ERROR);
	free(text);
	if (rc == 0 || rc == CONFINE_REFUSED)
		log_confinement(&d->confine);
	if (rc == CONFINE_REFUSED) {
		log_msg(LOG_LVL_ERROR, "confine.mode is \"require\", but a part of the confinement is not available");
		return SMCRD_EXIT_CONFIG; /* a restart does not change the kernel */
	}
	if (rc == CONFINE_LACKS_RIGHT)
		return SMCRD_EXIT_CONFIG;
	if (rc == 0)
		rc = loop_add_turn(d->loop, daemon_turn, d);
	return rc == 0 ? SMCRD_EXIT_OK : SMCRD_EXIT_FAILURE;
}

/* Also for a daemon that did not start completely. */
static void
end(struct daemon *d)
{
	reload_job_cancel(&d->reloading);
	tls_watch_reset(&d->tls);
	metrics_free(d->metrics);
	listen_socket_close(&d->metrics_listen);
	control_free(d->control);
	for (unsigned i = 0; i < CONTROL_PORTS; i++)
		listen_socket_close(&d->listen[i]);
	names_free(d->names);
	workers_free(d->workers);
	event_history_fini(&d->news);
	inherited_fini(&d->early);
	takeover_fini(&d->takeover);
	predecessors_fini(&d->before);
	tcp_option_close(&d->option);
	loop_free(d->loop);
	free(d->load_msgs);
	config_free(d->cfg);
}

static int
smcrd_run(struct daemon *d)
{
	d->log = (struct log_choice){ .option = d->opt.log_level, .configured = d->cfg->log_level, .client = -1 };
	log_init(log_choice_level(&d->log));
	log_set_json(d->cfg->log.format == CONFIG_LOG_JSON);
	log_msg(LOG_LVL_NOTICE, "smcrd starts: version=%s file=%s services=%u devices=%u", PACKAGE_VERSION,
	    d->cfg->path, d->cfg->service_cnt, d->cfg->device_cnt);
	(void)log_lines(d->load_msgs != NULL ? d->load_msgs : "", LOG_LVL_WARNING);
	if (d->cfg->service_cnt == 0)
		log_msg(LOG_LVL_WARNING, "no ingress and no egress in the configuration: nothing to do");
	fd_limit_raise();
	fd_limit_check(&d->files, d->cfg);
	int code = smcrd_start(d);
	if (code == SMCRD_EXIT_OK) {
		notify_init(&d->notify, loop_now(d->loop));
		notify_ready(&d->notify);
		smcrd_store_sockets(d);
		background_ready(d->background);
		d->background = -1;
		running_note(d->running, d->cfg->control_path);
		log_msg(LOG_LVL_NOTICE, "ready");
		int rc = loop_run(d->loop);
		if (rc != 0) {
			log_msg(LOG_LVL_ERROR, "the event loop failed: error=\"%s\"", strerror(-rc));
			code = SMCRD_EXIT_FAILURE;
		}
		if (d->broken)
			code = SMCRD_EXIT_FAILURE;
	}
	if (d->running >= 0 && d->process.successor == 0)
		running_forget(d->opt.instance);
	end(d);
	notify_end(&d->notify);
	if (code == SMCRD_EXIT_OK)
		log_msg(LOG_LVL_NOTICE, "smcrd ends");
	log_stop();
	return code;
}

/* A daemon logs the messages about its file: smcrd_run() does it, or this function when the load fails. */
static int
load_to_run(struct daemon *d)
{
	size_t len;
	FILE *err = open_memstream(&d->load_msgs, &len);
	int rc = config_load(d->opt.path, d->opt.instance, err != NULL ? err : stderr, &d->cfg);

	if (err != NULL)
		(void)fclose(err);
	if (rc == 0)
		return 0;
	log_init((enum log_level)(d->opt.log_level >= 0 ? d->opt.log_level : (int)LOG_LVL_NOTICE));
	(void)log_lines(d->load_msgs != NULL ? d->load_msgs : "", LOG_LVL_ERROR);
	free(d->load_msgs);
	return rc;
}

/* The control socket of the running daemon, which a new process takes over from. usual: CONFIG_HOST_MAX bytes, for a file that is wrong. */
static const char *
running_socket(struct daemon *d, const struct config *cfg, char *usual)
{
	const char *at = cfg != NULL ? cfg->control_path
	                             : instance_control_path(d->opt.instance, usual, CONFIG_HOST_MAX);

	if (d->opt.take_over_from != NULL)
		return d->opt.take_over_from;
	if (options_is_usual(&d->opt))
		at = running_find(d->opt.instance, at, d->running_at, sizeof(d->running_at));
	if (at == d->running_at)
		d->opt.take_over_from = at;
	return at;
}

/* The daemon of the usual file, or of an instance, records a wrong one as well, at the usual socket. Another file's might be another
 * daemon. An exit code, or -1: this process has to take over. */
static int
request_reload(struct daemon *d)
{
	const struct options *o = &d->opt;
	char usual[CONFIG_HOST_MAX];
	struct config *cfg = NULL;
	char *text = NULL;
	size_t len;
	FILE *err = open_memstream(&text, &len);

	if (err == NULL)
		return SMCRD_EXIT_FAILURE;
	const int loaded = config_load(o->path, o->instance, err, &cfg);
	enum reload_outcome outcome = RELOAD_REFUSED;
	if (loaded == 0 || options_is_usual(o))
		outcome = reload_client_run(running_socket(d, cfg, usual), stdout, loaded == 0 ? stderr : err);
	(void)fclose(err);
	if (loaded != 0)
		fputs(text, stderr);
	free(text);
	if (loaded == 0)
		config_free(cfg);
	if (loaded != 0 && loaded != -EAGAIN)
		return SMCRD_EXIT_CONFIG;
	if (loaded == 0 && outcome == RELOAD_NEEDS_TAKE_OVER) {
		fputs("starting a new process, which takes over\n", stdout);
		return fflush(stdout) == 0 ? -1 : SMCRD_EXIT_FAILURE;
	}
	return outcome == RELOAD_IN_FORCE ? SMCRD_EXIT_OK : SMCRD_EXIT_FAILURE;
}

static int
exit_code_of_load(int rc)
{
	/* A name server that does not answer yet may answer after a restart; a mistake in the file stays. */
	return rc == 0 ? SMCRD_EXIT_OK : rc == -EAGAIN ? SMCRD_EXIT_FAILURE : SMCRD_EXIT_CONFIG;
}

/* Forks as the options say, and runs. reloads: a daemon runs, which goes on if this fails. */
static int
smcrd_begin(struct daemon *d, bool reloads)
{
	char usual[CONFIG_HOST_MAX];
	int code = exit_code_of_load(load_to_run(d)), rc = 0;

	if (code == SMCRD_EXIT_OK && d->opt.background && (rc = background_start(&d->background)) != 0) {
		fprintf(stderr, "smcrd: cannot start a background process: %s\n", strerror(-rc));
		code = SMCRD_EXIT_FAILURE;
	} else if (d->opt.unit) {
		log_init(LOG_LVL_NOTICE);
		log_set_json(d->cfg != NULL && d->cfg->log.format == CONFIG_LOG_JSON);
		code = keeper_run(running_socket(d, d->cfg, usual), code, !reloads, &d->background);
	} else if (code == SMCRD_EXIT_OK && d->opt.take_over) {
		(void)running_socket(d, d->cfg, usual);
	}
	if (d->opt.unit ? code == KEEPER_IS_DAEMON : code == SMCRD_EXIT_OK)
		code = smcrd_run(d);
	else {
		free(d->cfg != NULL ? d->load_msgs : NULL);
		config_free(d->cfg);
	}
	background_failed(d->background, code);
	return code;
}

int
smcrd_main(int argc, char **argv)
{
	struct daemon d = {
		.process.confine = &d.confine,
		.listen = { LISTEN_SOCKET_NONE, LISTEN_SOCKET_NONE },
		.metrics_listen = LISTEN_SOCKET_NONE,
		.option = { .map = -1, .link = -1 },
		.takeover = TAKEOVER_NONE,
		.background = -1,
		.running = -1,
	};
	enum options_action action = smcrd_options_parse(argc, argv, &d.opt);
	int rc;

	if (action == OPTIONS_RUN)
		return smcrd_begin(&d, false);
	if (action == OPTIONS_DONE || action == OPTIONS_BAD)
		return action == OPTIONS_DONE ? SMCRD_EXIT_OK : SMCRD_EXIT_USAGE;
	if (action == OPTIONS_RELOAD) {
		rc = request_reload(&d);
		d.opt.take_over = d.opt.background = true;
		return rc >= 0 ? rc : smcrd_begin(&d, true);
	}
	rc = exit_code_of_load(config_load(d.opt.path, d.opt.instance, stderr, &d.cfg));
	if (rc != SMCRD_EXIT_OK)
		return rc;
	if (action == OPTIONS_PRINT) {
		config_print(d.cfg, stdout);
	} else {
		/* device_preview prints the devices that exist now. */
		printf("%s: ok, %u service%s, %u device entr%s\n", d.cfg->path, d.cfg->service_cnt,
		    d.cfg->service_cnt == 1 ? "" : "s", d.cfg->device_cnt, d.cfg->device_cnt == 1 ? "y" : "ies");
		device_preview(d.cfg, stdout, stderr);
		smcrd_print_rights(&d);
		(void)fflush(stdout);
		preflight_listen(d.cfg, stderr);
		preflight_print(d.cfg, PREFLIGHT_WAIT_MS, stderr);
	}
	config_free(d.cfg);
	return fflush(stdout) == 0 ? SMCRD_EXIT_OK : SMCRD_EXIT_FAILURE;
}
