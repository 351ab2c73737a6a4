/* Reloads, one at a time: the file is loaded in a thread (config/loader.h), the owner's function applies the result, and the end is
 * reported to the log, to systemd and to the control client that requested it. Owner: smcrd.c. */
#pragma once

#include <stdio.h>

#include "daemon/config/config.h"
#include "daemon/loop/loop.h"
#include "daemon/handover/notify.h"

#define RELOAD_JOB_NOTE_MAX 160

struct job;

/* rc: 0 when the new configuration is in force; msgs: lines of errors or warnings, there during the call. */
typedef void (*reload_job_done)(void *arg, int rc, const char *msgs);

struct reload_job {
	struct loop *loop;
	const char *path;
	const char *instance; /* NULL: none */
	struct notify *notify;
	/* Puts next in force: text has the changes, the plan their numbers. Or only frees it: text has the reason. */
	int (*apply)(void *arg, struct config *next, struct config_plan *, FILE *text);
	void *arg;

	struct job *loader;   /* during a reload */
	bool again;           /* another one was requested meanwhile */
	reload_job_done done; /* the control client's, or NULL */
	void *done_arg;
	char note[RELOAD_JOB_NOTE_MAX]; /* of the last reload when it failed, for the status; else "" */
};

/* Requested by a signal: starts at once, or behind the current one. A failure to start is logged. */
void reload_job_want(struct reload_job *);
/* Requested by a client: 0, and done is called once after this returned; or -errno without a call, -EBUSY during a reload. */
int reload_job_start_for(struct reload_job *, reload_job_done, void *done_arg);
/* Cancels the current one without a change, and notifies the client that requested it. A zeroed struct is allowed. */
void reload_job_cancel(struct reload_job *);
