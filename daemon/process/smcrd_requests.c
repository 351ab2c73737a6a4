/* What signals, control clients and a successor request: reloads, the level of the log, the end. The daemon drains for
 * each of them. A client's drain may be cancelled; a successor gets the listening sockets first. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/process/load_summary.h"
#include "daemon/process/smcrd_parts.h"

/* -- the listening sockets of all workers -- */

struct collected {
	int (*add)(struct worker *, struct listen_socket_list *);
	struct listen_socket_list *list;
	int rc;
};

static void
collect_one(struct worker *w, void *arg)
{
	struct collected *c = arg;

	if (c->rc == 0)
		c->rc = c->add(w, c->list);
}

/* Copies: 0 or -errno; the list is the caller's either way. */
static int
collect(
    const struct daemon *d, int (*add)(struct worker *, struct listen_socket_list *), struct listen_socket_list *out)
{
	struct collected c = { .add = add, .list = out };

	workers_call_all(d->workers, collect_one, &c);
	return c.rc;
}

void
smcrd_lend(struct daemon *d, bool lent)
{
	workers_call_all(d->workers, worker_lend_sockets, &lent);
}

void
smcrd_store_sockets(void *arg)
{
	struct daemon *d = arg;
	struct listen_socket_list list = { 0 };

	if (!d->notify.enabled || d->draining)
		return;
	int rc = collect(d, worker_add_sockets, &list);
	if (rc != 0)
		log_msg(LOG_LVL_WARNING, "listening sockets are not kept over a restart: error=\"%s\"", strerror(-rc));
	else
		notify_store(&d->notify, &list);
	listen_socket_list_fini(&list);
}

/* -- drain -- */

void
smcrd_on_predecessor_end(void *arg)
{
	struct daemon *d = arg;

	d->process.predecessor_cnt = 0;
	for (unsigned i = 0; i < PREDECESSORS_MAX; i++)
		if (d->before.v[i].io.fd >= 0)
			d->process.predecessors[d->process.predecessor_cnt++].pid = d->before.v[i].pid;
	if (d->drained && d->before.cnt == 0)
		loop_stop(d->loop);
}

/* The service ends: so do the processes that were taken over, within drain_timeout (theirs, if a request cannot have
 * ours), or at once. */
static void
end_predecessors(struct daemon *d, bool at_once)
{
	if (d->process.successor != 0 || d->before.cnt == 0)
		return;
	log_msg(LOG_LVL_NOTICE, "processes that were taken over have to end as well: processes=%u", d->before.cnt);
	predecessors_end(&d->before, at_once ? 1 : d->cfg->drain_ms <= CONTROL_CHECK_MAX_MS ? d->cfg->drain_ms : 0);
}

static void
on_drained(void *arg)
{
	struct daemon *d = arg;
	unsigned long long left = load_summary_take(d->workers).connections;

	if (left > 0)
		log_msg(LOG_LVL_WARNING, "the time for draining has expired, connections are reset: connections=%llu",
		    left);
	else
		log_msg(LOG_LVL_NOTICE, "drained");
	d->drained = true;
	if (!d->term_seen)
		end_predecessors(d, false);
	if (d->process.successor == 0 && d->before.cnt > 0 && left == 0) {
		notify_stopping(&d->notify, d->cfg->drain_ms);
		return;
	}
	notify_stopping(&d->notify, 0);
	loop_stop(d->loop);
}

/* From now on no connections are accepted. */
static void
stop_accepting(struct daemon *d)
{
	if (d->draining)
		return;
	d->draining = true;
	reload_job_cancel(&d->reloading);
	if (d->process.successor == 0) {
		control_stop_handover(d->control);
		/* Systemd has the sockets for the next process, so their files stay. */
		smcrd_lend(d, d->notify.enabled && !d->unstored);
	}
	log_msg(LOG_LVL_NOTICE, "draining: connections=%llu", load_summary_take(d->workers).connections);
	workers_drain(d->workers, WORKER_NO_LIMIT, NULL, NULL);
}

/* It ends with its last connection, or when limit_ms from now are over; a later limit replaces this one. */
static void
drain_and_end(struct daemon *d, uint32_t limit_ms)
{
	stop_accepting(d);
	if (limit_ms == WORKER_NO_LIMIT)
		log_msg(LOG_LVL_NOTICE, "ends with the last connection");
	else
		log_msg(LOG_LVL_NOTICE, "ends with the last connection: limit_ms=%u", limit_ms);
	d->process.limit_ns = limit_ms != WORKER_NO_LIMIT ? clock_ns() + (int64_t)limit_ms * 1000000 : 0;
	if (d->process.ends)
		workers_call_all(d->workers, worker_limit_drain, &limit_ms);
	else
		workers_drain(d->workers, limit_ms, on_drained, d);
	d->process.ends = true;
}

static int
undrain(void *arg)
{
	struct daemon *d = arg;

	if (!d->draining)
		return -ENOENT;
	if (d->process.successor != 0)
		return -EALREADY;
	if (d->term_seen || d->drained)
		return -EBUSY;
	control_stop_handover(d->control);
	int rc = workers_undrain(d->workers);
	d->draining = d->unstored = d->process.ends = false;
	d->process.limit_ns = 0;
	log_msg(LOG_LVL_NOTICE, "drains no longer: connections=%llu", load_summary_take(d->workers).connections);
	smcrd_store_sockets(d);
	notify_ready(&d->notify);
	return rc;
}

static int
sockets_for_successor(void *arg, struct listen_socket_list *services, struct listen_socket_list *ports)
{
	struct daemon *d = arg;
	int rc = collect(d, worker_add_sockets, services);

	if (rc == 0)
		rc = listen_socket_list_add_copies(services, &d->metrics_listen);
	return rc == 0 ? collect(d, worker_add_ports, ports) : rc;
}

/* Another process accepts: workers stop, and files stay. */
static void
give_way(void *arg, uint32_t pid, uint32_t unit_pid)
{
	struct daemon *d = arg;

	d->process.successor = pid;
	notify_successor(&d->notify, unit_pid);
	workers_call_all(d->workers, worker_release_sockets, NULL);
	metrics_free(d->metrics);
	d->metrics = NULL;
	listen_socket_set_lent(&d->metrics_listen, true);
	listen_socket_close(&d->metrics_listen);
	drain_and_end(d, d->cfg->take_over_ms != 0 ? d->cfg->take_over_ms : WORKER_NO_LIMIT);
}

/* For the status until a reload succeeds. If one was refused before, that reason says more. */
static void
note_failure(void *arg, const char *why)
{
	struct daemon *d = arg;

	if (d->reloading.note[0] == '\0')
		snprintf(d->reloading.note, sizeof(d->reloading.note), "%s: this process goes on, see the log", why);
}

static bool
is_settled(void *arg)
{
	const struct daemon *d = arg;

	return !load_expects_link(d->workers);
}

static void
leave_ports(void *arg, const struct listen_socket_list *ports)
{
	const struct daemon *d = arg;

	for (unsigned i = 0; i < ports->cnt; i++) {
		struct sockaddr_storage ss = { 0 };
		socklen_t len = sizeof(ss);

		if (getsockname(ports->v[i].fd, (struct sockaddr *)&ss, &len) == 0)
			workers_call_all(d->workers, worker_drop_port, &ss);
	}
}

/* No client is to wait in the backlog of a stored socket. */
static void
drain_for_client(void *arg, bool then_exit, uint32_t limit_ms)
{
	struct daemon *d = arg;

	if (d->notify.enabled && !d->draining) {
		notify_unstore(&d->notify);
		d->unstored = true;
	}
	if (then_exit)
		drain_and_end(d, limit_ms != 0 ? limit_ms : d->cfg->drain_ms);
	else
		stop_accepting(d);
}

void
smcrd_on_term(void *arg)
{
	struct daemon *d = arg;

	end_predecessors(d, d->term_seen);
	if (d->term_seen) {
		log_msg(LOG_LVL_NOTICE, "ending at once");
		loop_stop(d->loop);
		return;
	}
	d->term_seen = true;
	if (!d->drained)
		drain_and_end(d, d->cfg->drain_ms);
	/* Not sent for a control client's drain, which may be cancelled: for systemd this is the end. */
	notify_stopping(&d->notify, d->cfg->drain_ms);
}

/* -- reloads, names and the log -- */

int
smcrd_apply(void *arg, struct config *next, struct config_plan *plan, FILE *text)
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
	if (smcrd_wants_option(next) && !d->option_tried)
		plan->fixed++;
	/* A successor would have too few or too many sockets. */
	control_stop_handover(d->control);
	if (rc != 0)
		fputs("out of memory\n", text);
	else if (!smcrd_may_connect_as_client(next, ", dropped at start: " CONFIG_BY_TAKE_OVER, text))
		rc = -EPERM;
	else
		rc = workers_reload(d->workers, next, text);
	if (rc == 0) {
		fputs(changes, text);
		d->process.waiting_settings = plan->fixed;
		d->process.loaded_ms = report_wall_ms();
		names_apply(d->names, next);
		control_set_admins(d->control, next);
		config_free(d->cfg);
		d->cfg = next;
		tls_watch_reset(&d->tls);
		log_set_json(next->log.format == CONFIG_LOG_JSON);
		if (log_choice_configure(&d->log, next->log_level))
			fprintf(text,
			    "warning: the level of the log stays as it was set: take it back by \"smcrctl log-level " CONTROL_LEVEL_DEFAULT
			    "\"\n");
		metrics_reload(d->metrics, next);
		fd_limit_check(&d->files, d->cfg);
		smcrd_store_sockets(d);
	} else {
		config_free(next);
	}
	free(changes);
	return rc;
}

void
smcrd_apply_tls(void *arg, struct tls_ctx *next, const char *why)
{
	struct daemon *d = arg;

	if (next == NULL) {
		workers_call(d->workers, 0, worker_count_tls_refused, NULL);
		log_msg(
		    LOG_LVL_ERROR, "changed files of tls are refused, the old ones stay in force: reason=\"%s\"", why);
		return;
	}
	workers_call_all(d->workers, worker_use_tls, next);
	tls_ctx_put(d->cfg->tls_ctx);
	d->cfg->tls_ctx = next;
	log_msg(LOG_LVL_NOTICE, "changed files of tls are in force");
}

void
smcrd_certificate_expires(void *arg, const char *text, uint64_t for_ms)
{
	struct daemon *d = arg;
	struct event e = { .kind = EVENT_CERTIFICATE_EXPIRES, .for_ms = for_ms };

	(void)snprintf(e.reason, sizeof(e.reason), "%.*s", (int)sizeof(e.reason) - 1, text);
	event_report(&d->news, loop_now(d->loop), 0, &e);
}

void
smcrd_on_hup(void *arg)
{
	struct daemon *d = arg;

	if (d->draining)
		log_msg(LOG_LVL_WARNING, "no reload while draining");
	else
		reload_job_want(&d->reloading);
}

static int
reload_for_client(void *arg, void (*done)(void *done_arg, int rc, const char *msgs), void *done_arg)
{
	struct daemon *d = arg;

	return d->draining ? -EBUSY : reload_job_start_for(&d->reloading, done, done_arg);
}

static struct control_level
level_for_client(void *arg, int set)
{
	struct daemon *d = arg;

	return log_choice_by_client(&d->log, set);
}

static unsigned
retry_names(void *arg)
{
	const struct daemon *d = arg;

	return names_retry(d->names);
}

struct control_hooks
smcrd_control_hooks(struct daemon *d)
{
	return (struct control_hooks){
		.arg = d,
		.reload = reload_for_client,
		.drain = drain_for_client,
		.undrain = undrain,
		.listening = smcrd_store_sockets,
		.log_level = level_for_client,
		.retry_names = retry_names,
		.sockets = sockets_for_successor,
		.let_go = give_way,
		.successor_failed = note_failure,
		.settled = is_settled,
		.leave_ports = leave_ports,
		.process = &d->process,
		.listen = d->listen,
		.news = &d->news,
	};
}
