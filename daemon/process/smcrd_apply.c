/* Changes while the daemon runs: a configuration that comes into force, requests for reloads (process/reload_job.c carries them out), the
 * level of the log, addresses of names. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/process/smcrd_parts.h"
#include "daemon/handover/handover_sockets.h"

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
		config_free(d->cfg);
		d->cfg = next;
		names_apply(d->names, next);
		if (log_choice_configure(&d->log, next->log_level))
			fprintf(text,
			    "warning: the level of the log stays as it was set: take it back by \"smcrctl log-level " CONTROL_LEVEL_DEFAULT
			    "\"\n");
		metrics_reload(d->metrics, next);
		fd_limit_check(&d->files, d->cfg);
		handover_store(d->workers, &d->notify);
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

int
smcrd_reload_for_client(void *arg, void (*done)(void *done_arg, int rc, const char *msgs), void *done_arg)
{
	struct daemon *d = arg;

	return d->draining ? -EBUSY : reload_job_start_for(&d->reloading, done, done_arg);
}

struct control_level
smcrd_level_for_client(void *arg, int set)
{
	struct daemon *d = arg;

	return log_choice_by_client(&d->log, set);
}

unsigned
smcrd_retry_names(void *arg)
{
	const struct daemon *d = arg;

	return names_retry(d->names);
}

static void
notify_targets(struct worker *w, void *arg)
{
	worker_targets_changed(w, arg);
}

void
smcrd_on_targets_changed(void *arg, const char *service)
{
	struct daemon *d = arg;
	char name[CONFIG_NAME_MAX];

	(void)snprintf(name, sizeof(name), "%s", service);
	workers_call_all(d->workers, notify_targets, name);
}
