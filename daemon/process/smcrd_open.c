/* Opens everything at the start, first what needs rights. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/leg/peer_mode.h"
#include "daemon/process/running.h"
#include "daemon/process/smcrd_parts.h"

bool
smcrd_wants_option(const struct config *cfg)
{
	for (unsigned i = 0; i < cfg->service_cnt; i++)
		if (peer_mode_wants_option(cfg->services[i].peer))
			return true;
	return false;
}

/* Loaded only if a service wants it: otherwise the host's TCP is left alone. */
static void
open_option(struct daemon *d)
{
	tcp_option_init(&d->option, "no service wanted it when smcrd was started: " CONFIG_BY_TAKE_OVER);
	d->option_tried = smcrd_wants_option(d->cfg);
	if (d->option_tried)
		tcp_option_open(&d->option);
	tcp_option_confined(&d->option, d->cfg->confine.mode != CONFIG_CONFINE_OFF);
}

bool
smcrd_may_connect_as_client(const struct config *cfg, const char *more, FILE *err)
{
	const struct config_service *svc = config_connects_as_client(cfg);

	if (svc == NULL || net_try_source() == 0)
		return true;
	fprintf(err, "service %s: client_address = \"connect\" needs CAP_NET_RAW%s; see smcrd(8)\n", svc->name, more);
	return false;
}

/* Takes the sockets of the running daemon with --take-over; without a running daemon the control socket is opened later. In any case finds
 * the processes that were taken over before: one may have crashed that had taken over. */
static int
smcrd_open_take_over(struct daemon *d, FILE *err)
{
	char usual[CONFIG_HOST_MAX];
	const char *from = d->opt.take_over_from != NULL ? d->opt.take_over_from : d->cfg->control_path;
	int rc = d->opt.take_over ? takeover_begin(&d->takeover, from, err) : 0;

	predecessors_init(&d->before, d->loop, smcrd_on_predecessor_end, d);
	if (rc == 0)
		rc = predecessors_find(&d->before, d->cfg->control_path, err);
	if (rc == 0 && strcmp(from, d->cfg->control_path) != 0)
		rc = predecessors_find(&d->before, from, err);
	if (rc == 0 && options_is_usual(&d->opt)) /* of a time before control.path was changed */
		rc = predecessors_find(&d->before, instance_control_path(d->opt.instance, usual, sizeof(usual)), err);
	if (rc == 0 && d->takeover.sock >= 0) {
		char path[PREDECESSORS_PATH_MAX + 16];

		snprintf(path, sizeof(path), "%s.%u", from, (unsigned)d->takeover.pid);
		rc = predecessors_add(&d->before, d->takeover.seen_pid, path, err);
		rc = rc == -E2BIG ? rc : 0; /* one that cannot be watched ends by itself */
	}
	smcrd_on_predecessor_end(d);
	for (unsigned i = 0; i < CONTROL_PORTS && rc == 0; i++)
		if (d->takeover.control[i].fd >= 0 &&
		    strcmp(d->takeover.control[i].path, control_file(d->cfg, i).path) == 0) {
			d->listen[i] = d->takeover.control[i];
			d->takeover.control[i] = LISTEN_SOCKET_NONE;
		}
	return rc;
}

/* This process is ready to accept; the other one stops. */
static int
finish_take_over(struct daemon *d, FILE *err)
{
	if (d->takeover.sock < 0)
		return 0;
	int rc = takeover_finish(&d->takeover, d->cfg, d->opt.unit ? (uint32_t)getppid() : 0, loop_now(d->loop), err);
	if (rc == 0) {
		workers_call(d->workers, 0, worker_inherit_health, &d->takeover.known);
		takeover_fini(&d->takeover);
		control_adopt(d->control);
		listen_socket_set_lent(&d->metrics_listen, false);
		smcrd_lend(d, false);
	}
	return rc;
}

static void
on_targets_changed(void *arg, const char *service)
{
	struct daemon *d = arg;
	char name[CONFIG_NAME_MAX];

	(void)snprintf(name, sizeof(name), "%s", service);
	workers_call_all(d->workers, worker_targets_changed, name);
}

static void
on_worker_failed(void *arg, unsigned nr, int err)
{
	struct daemon *d = arg;

	log_msg(LOG_LVL_ERROR, "the event loop failed: worker=%u error=\"%s\"", nr + 1, strerror(-err));
	d->broken = true;
	loop_stop(d->loop);
}

int
smcrd_open(struct daemon *d, FILE *err)
{
	const struct control_hooks hooks = smcrd_control_hooks(d);
	const struct workers_hooks workers_hooks = { .arg = d, .news = &d->news, .failed = on_worker_failed };

	open_option(d);
	int rc = smcrd_open_take_over(d, err);
	/* First, as it says best that another daemon runs. */
	for (unsigned i = 0; i < CONTROL_PORTS && rc == 0; i++) {
		const struct listen_socket_file file = control_file(d->cfg, i);

		rc = file.path[0] != '\0' && d->listen[i].fd < 0 ? listen_socket_open(&d->listen[i], &file, err) : 0;
	}
	if (rc == 0)
		rc = metrics_listen(d->cfg, &d->takeover.services, &d->metrics_listen, err);
	if (rc == 0)
		rc = inherited_open(&d->early, d->cfg, workers_wanted(d->cfg), &d->option, &d->takeover.services, err);
	if (rc == 0 && options_is_usual(&d->opt))
		d->running = running_open(d->opt.instance);
	if (rc == 0)
		rc = confine_rights(d->cfg, d->option.keeps_right, &d->confine);
	if (rc == 0 && !smcrd_may_connect_as_client(d->cfg, "", err))
		rc = CONFINE_LACKS_RIGHT;
	/* A thread inherits the rights, and no loop turns before the log's thread runs. */
	if (rc == 0 && (rc = log_start()) != 0)
		fprintf(err, "cannot start a thread: %s\n", strerror(-rc));
	if (rc == 0)
		rc = takeover_offer_ports(&d->takeover, d->cfg);
	if (rc == 0)
		rc = workers_new(d->loop, d->early.workers, d->cfg, &d->option, d->early.socks, d->early.cnt,
		    &workers_hooks, err, &d->workers);
	takeover_settle_ports(&d->takeover, d->cfg);
	(void)gethostname(d->process.host, sizeof(d->process.host) - 1);
	if (rc == 0)
		rc = control_new(d->loop, d->workers, d->cfg, &hooks, err, &d->control);
	if (rc == 0)
		rc = metrics_new(d->loop, d->workers, d->cfg, &d->metrics_listen, control_counters(d->control),
		    &d->process, &d->news, err, &d->metrics);
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
	rc = names_new(d->loop, workers_targets(d->workers), on_targets_changed, d, &d->names);
	if (rc != 0)
		fprintf(err, "cannot set up the resolver: %s\n", strerror(-rc));
	else
		names_apply(d->names, d->cfg);
	if (rc == 0)
		rc = finish_take_over(d, err);
	if (rc == 0)
		workers_release(d->workers);
	return rc;
}

void
smcrd_print_rights(struct daemon *d)
{
	open_option(d);
	confine_preview(d->cfg, d->option.keeps_right, &d->confine);
	for (unsigned i = 0; i < CONFINE_PART_CNT; i++)
		printf("confinement, %s: %s%s\n", confine_part_words[i],
		    d->confine.part[i].on ? "" : "no: ", d->confine.part[i].text);
	if (d->option_tried)
		printf("SMC-R's TCP option: %s%s\n", tcp_option_usable(&d->option) ? "ready" : "no: ", d->option.why);
	tcp_option_close(&d->option);
}
