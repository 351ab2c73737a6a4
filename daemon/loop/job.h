/* Work in a thread of its own, for what may block: names, files. Its end is handled in the loop. */
#pragma once

#include "daemon/loop/loop.h"

struct job;

struct job_ops {
	void (*work)(void *arg); /* in the thread; only it uses arg until done */
	void (*done)(void *arg); /* in the loop, once, never before job_start returned; not after job_cancel */
	void (*drop)(void *arg); /* the last call, by either */
};

/* 0; or -errno, then no function is called. */
int job_start(struct loop *, const struct job_ops *, void *arg, struct job **out);
/* The thread goes on, and drops arg. NULL is allowed; not from done(). */
void job_cancel(struct job *);
