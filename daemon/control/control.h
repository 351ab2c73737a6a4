/*
 * The control socket: a Unix stream socket on which smcrctl (or any program)
 * asks and gets JSON; doc/json-schema.md is its reference. Who may ask is
 * decided by the file mode of the socket. A second one, if configured, takes
 * questions alone, and has places of its own. Bounded in clients, input, output
 * and work per loop turn, so that no client can disturb the data path. Runs in
 * the main loop; what it wants of a worker, it has that do (workers_call).
 * Owner: main, which frees it when the loop has stopped.
 */
#pragma once

#include <stdio.h>

#include "control/commands.h"
#include "daemon/config/config.h"
#include "daemon/confine/confine.h"
#include "daemon/event/event_history.h"
#include "daemon/net/listen_socket.h"
#include "daemon/loop/loop.h"
#include "daemon/worker/workers.h"

struct control;

/* Levels of the log, enum log_level. */
struct control_level {
	int now;
	int configured; /* or of the command line */
	bool set;       /* on the control socket */
};

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
	/* Takes that back. 0; -ENOENT: it does not drain; -EBUSY: a signal has asked it to end; -EALREADY: another process has taken
	 * over; another -errno: it no longer drains, but a service cannot listen again, which is logged. */
	int (*undrain)(void *arg);
	/* A service was disabled or enabled: others listen than before. */
	void (*listening)(void *arg);
	/* Sets the level of the log: an enum log_level, or one of CONTROL_LEVEL_; and says what holds then. */
	struct control_level (*log_level)(void *arg, int level);
	/* Names of targets that were not found are looked up now: how many. */
	unsigned (*retry_names)(void *arg);
	/*
	 * For a process that is to take this one's place: its listening sockets, the files of which stay when the list is
	 * freed, and the ports of its soft devices. 0 or -errno; -EALREADY when another process has taken over.
	 */
	int (*sockets)(void *arg, struct listen_socket_list *services, struct listen_socket_list *ports);
	/* That process is ready to accept: this one accepts no more, leaves the files alone, and drains. Links may still come by all
	 * ports of its soft devices. */
	void (*let_go)(void *arg, uint32_t pid);
	/* Is no connection being set up here any more? */
	bool (*settled)(void *arg);
	/* That process accepts at these of them from here on. */
	void (*leave_ports)(void *arg, const struct listen_socket_list *ports);
	/* For status; filled in later, there as long as the control socket. NULL: nothing is known of it. */
	const struct confine_state *confine;
	struct event_history
	    *news; /* what operators are told; there as long as the control socket. NULL: no events are kept */
	/* The listening sockets if they were opened before, moved out of here; NULL: control_new opens them. */
	struct listen_socket *listen;
};

enum {
	CONTROL_FULL,
	CONTROL_READONLY, /* only if it has a path */
	CONTROL_PORTS,
};

/* The file of a listening socket. */
static inline struct listen_socket_file
control_file(const struct config *cfg, unsigned port)
{
	return (struct listen_socket_file){
		.what = port == CONTROL_FULL ? "control socket" : "read-only control socket",
		.path = port == CONTROL_FULL ? cfg->control_path : cfg->control_readonly,
		.mode = port == CONTROL_FULL ? cfg->control_mode : cfg->control_readonly_mode,
		.owner = (uid_t)-1,
		.group = (gid_t)-1,
		.waits = true,
	};
}

/*
 * Listens at cfg->control_path with cfg->control_mode, and at cfg->control_readonly if there is one; a socket that a dead daemon left behind is replaced, a live
 * one is refused. 0, or -errno and err says what is wrong. Only copies are kept of cfg and hooks.
 */
int control_new(struct loop *, struct workers *, const struct config *cfg, const struct control_hooks *, FILE *err,
    struct control **out);
/* There as long as it. */
const struct control_stats *control_counters(const struct control *);
/* Before workers_free. Closes all clients and removes the socket file if it is still ours. NULL is allowed. */
void control_free(struct control *);
/* Drops a successor that has not taken over yet; it hears that. For what changes listening sockets. */
void control_stop_handover(struct control *);
/* The listening socket that was passed to control_new is all ours: its file goes at the end. */
void control_adopt(struct control *);
