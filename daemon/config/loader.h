/* Loads a configuration in a thread, because look-ups of names can take as long as the resolver's timeouts. The thread
 * only builds the new struct config; the loop does the rest. */
#pragma once

#include "daemon/config/config.h"
#include "daemon/loop/job.h"

/* rc and cfg as from config_load (the callee frees cfg); msgs, its messages, is valid during the call. */
typedef void (*loader_done)(void *arg, int rc, struct config *cfg, const char *msgs);

/* done runs once, in the loop, never before this returned; not after job_cancel(). path and instance as for config_load; instance
 * stays the caller's as long as the process lives. 0 or -errno. */
int loader_start(struct loop *, const char *path, const char *instance, loader_done, void *arg, struct job **out);
