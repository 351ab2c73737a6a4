/*
 * The control socket: a Unix stream socket on which smcrctl (or any program)
 * asks and gets JSON; doc/json-schema.md is its reference. Who may ask is
 * decided by the file mode of the socket. Bounded in clients, input, output
 * and work per loop turn, so that no client can disturb the data path. Runs in
 * the main loop; what it wants of a worker, it has that do (workers_call).
 * Owner: main, which frees it when the loop has stopped.
 */
#pragma once

#include <stdio.h>

#include "daemon/config/config.h"
#include "daemon/confine/confine.h"
#include "daemon/lsock.h"
#include "daemon/loop.h"
#include "daemon/worker/workers.h"

struct control;

/* The daemon's actions on request of an operator. Called from the control socket's turn function. */
struct control_hooks {
	void *arg;
	/*
	 * Reads the configuration file again, in the background because names are resolved. 0, and later, never before
	 * this returned, done(done_arg, rc, msgs) once: rc 0 when the new configuration is in force, negative when all
	 * is as before; msgs are the lines to show, errors or warnings, "" for none. Or -errno, -EBUSY when a reload
	 * is going on already or the daemon is draining; then done is not called. No done comes after control_free.
	 */
	int (*reload)(void *arg, void (*done)(void *done_arg, int rc, const char *msgs), void *done_arg);
	/* Starts what SIGTERM starts: no new connections, the daemon ends when the last one has. Asked again while
	 * that runs: nothing. */
	void (*drain)(void *arg);
	/* For status; filled in later, there as long as the control socket. NULL: nothing is known of it. */
	const struct confine_state *confine;
	/* The listening socket if it was opened before, moved out of here; NULL: control_new opens it. */
	struct lsock *listen;
};

/* The file of the listening socket. */
static inline struct lsock_file
control_file(const struct config *cfg)
{
	return (struct lsock_file){
		.what = "control socket",
		.path = cfg->control_path,
		.mode = cfg->control_mode,
		.owner = (uid_t)-1,
		.group = (gid_t)-1,
		.waits = true,
	};
}

/*
 * Listens at cfg->control_path with cfg->control_mode; a socket that a dead daemon left behind is replaced, a live
 * one is refused. 0, or -errno and err says what is wrong. Only copies are kept of cfg and hooks.
 */
int control_new(struct loop *, struct workers *, const struct config *cfg, const struct control_hooks *, FILE *err,
    struct control **out);
/* Before workers_free. Closes all clients and removes the socket file if it is still ours. NULL is allowed. */
void control_free(struct control *);
