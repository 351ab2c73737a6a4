/* Loads a configuration in a thread, because resolving names can take as long as the resolver's timeouts. The thread
 * only builds the new struct config; all else happens in the loop. */
#pragma once

#include "daemon/config/config.h"
#include "daemon/loop/loop.h"

struct loader;

/* rc and cfg as of config_load (cfg is the callee's to free); msgs, its messages, is valid during the call. */
typedef void (*loader_done)(void *arg, int rc, struct config *cfg, const char *msgs);

/* done runs once, in the loop, never before this returned; the loader is gone then. 0 or -errno. */
int loader_start(struct loop *, const char *path, loader_done, void *arg, struct loader **out);
/* done is not called; the configuration being loaded is freed by the thread. NULL is allowed. */
void loader_cancel(struct loader *);
