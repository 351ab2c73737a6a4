/* Reloads, from the request to the report of their end; see process/reload_job.h. */
#include "daemon/process/reload_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/config/loader.h"
#include "daemon/log/log_lines.h"

static int reload_job_start(struct reload_job *);

/* Reports how the reload ended to the log, to systemd, and to the client that asked for it. */
static void
finish(struct reload_job *r, int rc, const struct config_plan *plan, const char *text)
{
	reload_job_done done = r->done;
	/* The worker logs services at notice as it changes them. */
	const char *line = log_lines(text, rc == 0 ? LOG_LVL_INFO : LOG_LVL_ERROR);

	r->done = NULL;
	r->note[0] = '\0';
	if (rc == 0) {
		log_msg(LOG_LVL_NOTICE,
		    "configuration reloaded: file=%s added=%u changed=%u removed=%u settings=%u "
		    "restart_needed_for=%u",
		    r->path, plan->added, plan->changed, plan->removed, plan->settings, plan->fixed);
	} else {
		log_msg(LOG_LVL_ERROR, "reload failed, the old configuration stays in force: file=%s", r->path);
		snprintf(r->note, sizeof(r->note), "reload failed, old configuration in force: %.*s",
		    (int)strcspn(line, "\n"), line);
	}
	notify_ready(r->notify);
	if (done != NULL)
		done(r->done_arg, rc, text);
	if (r->again) {
		r->again = false;
		(void)reload_job_start(r);
	}
}

static void
on_loaded(void *arg, int rc, struct config *next, const char *msgs)
{
	struct reload_job *r = arg;
	struct config_plan plan = { 0 };
	char *text = NULL;
	size_t len;
	FILE *f = rc == 0 ? open_memstream(&text, &len) : NULL;

	r->loader = NULL;
	if (f != NULL) {
		fputs(msgs, f);
		rc = r->apply(r->arg, next, &plan, f);
		fclose(f);
		msgs = text != NULL ? text : "";
	} else if (rc == 0) {
		config_free(next);
		rc = -ENOMEM;
		msgs = "out of memory\n";
	}
	finish(r, rc, &plan, msgs);
	free(text);
}

/* 0, or -errno and nothing was started. */
static int
reload_job_start(struct reload_job *r)
{
	int rc = loader_start(r->loop, r->path, r->instance, on_loaded, r, &r->loader);

	if (rc != 0)
		log_msg(LOG_LVL_ERROR, "reload cannot start: error=\"%s\"", strerror(-rc));
	else
		notify_reloading(r->notify);
	return rc;
}

void
reload_job_want(struct reload_job *r)
{
	if (r->loader != NULL)
		r->again = true;
	else
		(void)reload_job_start(r);
}

int
reload_job_start_for(struct reload_job *r, reload_job_done done, void *done_arg)
{
	if (r->loader != NULL)
		return -EBUSY;
	int rc = reload_job_start(r);
	if (rc == 0) {
		r->done = done;
		r->done_arg = done_arg;
	}
	return rc;
}

void
reload_job_cancel(struct reload_job *r)
{
	reload_job_done done = r->done;

	job_cancel(r->loader);
	r->loader = NULL;
	r->again = false;
	r->done = NULL;
	if (done != NULL)
		done(r->done_arg, -ECANCELED, "the daemon is ending\n");
}
