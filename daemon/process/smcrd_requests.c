/* What signals, control clients and a successor request: reloads, the level of the log, the end. The daemon drains for
 * each of them. A client's drain may be cancelled; a successor gets the listening sockets first. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

static void
on_drained(void *arg)
{
	struct daemon *d = arg;
	unsigned long long left = load_summary_take(d->workers).connections;

	if (left > 0)
		log_msg(LOG_LVL_WARNING, "drain_timeout has expired, connections are reset: connections=%llu", left);
	else
		log_msg(LOG_LVL_NOTICE, "drained");
	d->drained = true;
	notify_stopping(&d->notify, 0);
	loop_stop(d->loop);
}

static void
smcrd_drain(struct daemon *d)
{
	if (d->draining)
		return;
	d->draining = true;
	metrics_drains(d->metrics, true);
	reload_job_cancel(&d->reloading);
	if (d->successor == 0) {
		control_stop_handover(d->control);
		/* Systemd has the sockets for the next process, so their files stay. */
		smcrd_lend(d, d->notify.enabled && !d->ends_service);
	}
	log_msg(LOG_LVL_NOTICE, "draining: connections=%llu timeout_ms=%u", load_summary_take(d->workers).connections,
	    d->cfg->drain_ms);
	workers_drain(d->workers, d->cfg->drain_ms, on_drained, d);
}

static int
undrain(void *arg)
{
	struct daemon *d = arg;

	if (!d->draining)
		return -ENOENT;
	if (d->successor != 0)
		return -EALREADY;
	if (d->term_seen || d->drained)
		return -EBUSY;
	control_stop_handover(d->control);
	int rc = workers_undrain(d->workers);
	d->draining = d->ends_service = false;
	metrics_drains(d->metrics, false);
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
give_way(void *arg, uint32_t pid)
{
	struct daemon *d = arg;

	d->successor = pid;
	notify_successor(&d->notify, pid);
	workers_call_all(d->workers, worker_release_sockets, NULL);
	metrics_free(d->metrics);
	d->metrics = NULL;
	listen_socket_set_lent(&d->metrics_listen, true);
	listen_socket_close(&d->metrics_listen);
	smcrd_drain(d);
}

static bool
is_settled(void *arg)
{
	const struct daemon *d = arg;

	return load_summary_take(d->workers).setups == 0;
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

/* The service ends: no client is to wait in the backlog of a stored socket. */
static void
drain_for_client(void *arg)
{
	struct daemon *d = arg;

	if (d->notify.enabled && !d->draining) {
		notify_unstore(&d->notify);
		d->ends_service = true;
	}
	smcrd_drain(d);
}

void
smcrd_on_term(void *arg)
{
	struct daemon *d = arg;

	if (d->term_seen) {
		log_msg(LOG_LVL_NOTICE, "ending at once");
		loop_stop(d->loop);
	} else if (d->draining) {
		log_msg(LOG_LVL_NOTICE, "draining already, the next signal ends it");
	} else {
		smcrd_drain(d);
	}
	/* Not sent for a control client's drain, which may be cancelled: for systemd this is the end. */
	if (!d->term_seen)
		notify_stopping(&d->notify, d->cfg->drain_ms);
	d->term_seen = true;
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
	/* A successor would have too few or too many sockets. */
	control_stop_handover(d->control);
	if (rc != 0)
		fputs("out of memory\n", text);
	else
		rc = workers_reload(d->workers, next, text);
	if (rc == 0) {
		fputs(changes, text);
		names_apply(d->names, next);
		config_free(d->cfg);
		d->cfg = next;
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
		.settled = is_settled,
		.leave_ports = leave_ports,
		.confine = &d->confine,
		.listen = d->listen,
		.news = &d->news,
	};
}
