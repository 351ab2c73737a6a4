/*
 * Reloads, one at a time: the file is loaded in a thread (config/loader.h), what came of it is put in force by the owner's
 * function, and the log, systemd and the control client that asked are told how it ended. Owner: smcrd.c.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "daemon/config/config.h"
#include "daemon/loop/loop.h"
#include "daemon/handover/notify.h"

#define RELOAD_JOB_NOTE_MAX 160

struct loader;

/* rc: 0 when the new configuration is in force; msgs: lines of errors or warnings, there during the call. */
typedef void (*reload_job_done)(void *arg, int rc, const char *msgs);

struct reload_job {
	struct loop *loop;
	const char *path;
	struct notify *notify;
	/* Puts next in force, or frees it: all stays as before then, and text says why. Changes in words go there only after
	 * success, and their numbers to the plan. */
	int (*apply)(void *arg, struct config *next, struct config_plan *, FILE *text);
	void *arg;

	struct loader *loader; /* while a reload is going on */
	bool again;            /* another one was wanted meanwhile */
	reload_job_done done;  /* the control client's, or NULL */
	void *done_arg;
	char note[RELOAD_JOB_NOTE_MAX]; /* of the last reload when it failed, for the status; else "" */
};

/* A signal wants one: at once, or behind the one that is going on. When it cannot start, that is logged. */
void reload_job_want(struct reload_job *);
/* A client wants one: 0, and done is called once, never before this returned. Or -errno, and it is not: -EBUSY while one is going
 * on. */
int reload_job_start_for(struct reload_job *, reload_job_done, void *done_arg);
/* None is going on afterwards, and nothing has changed; whom it was for is told. Harmless when all is zeroed. */
void reload_job_cancel(struct reload_job *);
