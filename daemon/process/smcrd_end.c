/* The end of the daemon: it drains for a signal, a control client or a successor. A client's drain may be cancelled; a successor gets the
 * listening sockets first. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "daemon/process/load_summary.h"
#include "daemon/process/smcrd_parts.h"
#include "daemon/handover/handover_sockets.h"

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
smcrd_end_drain(struct daemon *d)
{
	if (d->draining)
		return;
	d->draining = true;
	metrics_drains(d->metrics, true);
	reload_job_cancel(&d->reloading);
	if (d->successor == 0) {
		control_stop_handover(d->control);
		/* Systemd has the sockets for the next process, so their files stay. */
		handover_lend(d->workers, d->notify.enabled && !d->ends_service);
	}
	log_msg(LOG_LVL_NOTICE, "draining: connections=%llu timeout_ms=%u", load_summary_take(d->workers).connections,
	    d->cfg->drain_ms);
	workers_drain(d->workers, d->cfg->drain_ms, on_drained, d);
}

int
smcrd_undrain(void *arg)
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
	handover_store(d->workers, &d->notify);
	notify_ready(&d->notify);
	return rc;
}

int
smcrd_sockets_for_successor(void *arg, struct listen_socket_list *services, struct listen_socket_list *ports)
{
	struct daemon *d = arg;
	const struct listen_socket *metrics = metrics_socket(d->metrics);
	int rc = handover_sockets(d->workers, services);

	if (rc == 0 && metrics != NULL)
		rc = listen_socket_list_add_copies(services, metrics);
	return rc == 0 ? handover_ports(d->workers, ports) : rc;
}

void
smcrd_release_sockets(void *arg, uint32_t pid)
{
	struct daemon *d = arg;

	d->successor = pid;
	notify_successor(&d->notify, pid);
	handover_release(d->workers);
	metrics_hand_over(d->metrics);
	d->metrics = NULL;
	smcrd_end_drain(d);
}

bool
smcrd_settled(void *arg)
{
	const struct daemon *d = arg;

	return load_summary_take(d->workers).setups == 0;
}

void
smcrd_leave_ports(void *arg, const struct listen_socket_list *ports)
{
	const struct daemon *d = arg;

	handover_drop_ports(d->workers, ports);
}

/* A process that drains no longer changes systemd's store. */
void
smcrd_listening(void *arg)
{
	struct daemon *d = arg;

	if (!d->draining)
		handover_store(d->workers, &d->notify);
}

/* The service ends: no client is to wait in the backlog of a stored socket. */
void
smcrd_drain_for_client(void *arg)
{
	struct daemon *d = arg;

	if (d->notify.enabled && !d->draining) {
		notify_unstore(&d->notify);
		d->ends_service = true;
	}
	smcrd_end_drain(d);
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
		smcrd_end_drain(d);
	}
	/* Not sent for a control client's drain, which may be cancelled: for systemd this is the end. */
	if (!d->term_seen)
		notify_stopping(&d->notify, d->cfg->drain_ms);
	d->term_seen = true;
}

void
smcrd_on_worker_failed(void *arg, unsigned nr, int err)
{
	struct daemon *d = arg;

	log_msg(LOG_LVL_ERROR, "the event loop failed: worker=%u error=\"%s\"", nr + 1, strerror(-err));
	d->broken = true;
	loop_stop(d->loop);
}
