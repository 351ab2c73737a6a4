/* A configuration comes into force while the daemon runs; process/reload_job.c carries reloads out. */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "daemon/process/smcrd_parts.h"

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
		smcrd_store_sockets(d);
	} else {
		config_free(next);
	}
	free(changes);
	return rc;
}
