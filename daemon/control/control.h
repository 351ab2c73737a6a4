/* The control socket: a UNIX stream socket that answers requests of smcrctl (or any program) in JSON; doc/json-schema.md is its
 * reference. The file mode of the socket says which clients may look; orders need a right besides. A second one, if configured, takes only
 * requests that change nothing, and has its own client slots. Clients, input, output and work per loop turn are bounded, so that no client disturbs the data path.
 * Runs in the main loop, and calls into workers with workers_call(). Owner: main, which frees it after the loop has stopped. */
#pragma once

#include <stdio.h>

#include "control/commands.h"
#include "daemon/config/config.h"
#include "daemon/event/event_history.h"
#include "daemon/net/listen_socket.h"
#include "daemon/loop/loop.h"
#include "daemon/worker/workers.h"

struct control;
struct report_process;

/* Levels of the log, enum log_level. */
struct control_level {
	int now;
	int configured; /* or of the command line */
	bool set;       /* on the control socket */
};

/* The daemon's actions for an operator. Called from the control socket's turn function. */
struct control_hooks {
	void *arg;
	/* Reloads the configuration file, in the background because names are resolved. Returns 0, and calls done(done_arg, rc, msgs)
	 * once after it returned, but not after control_free: rc 0 when the new configuration is in force, negative when nothing has
	 * changed; msgs are lines of errors or warnings, or "". Or -errno without a call: -EBUSY during a reload or a drain. */
	int (*reload)(void *arg, void (*done)(void *done_arg, int rc, const char *msgs), void *done_arg);
	/* Accepts no new connections. then_exit: and ends with the last one, or after limit_ms from now on; 0: drain_timeout. */
	void (*drain)(void *arg, bool then_exit, uint32_t limit_ms);
	/* Cancels the drain. 0; -ENOENT: it does not drain; -EBUSY: a signal has requested the end; -EALREADY: another process has
	 * taken over; another -errno: it no longer drains, but a service cannot listen again, which is logged. */
	int (*undrain)(void *arg);
	/* A service was disabled or enabled: the set of listening sockets has changed. */
	void (*listening)(void *arg);
	/* Sets the level of the log, an enum log_level or one of CONTROL_LEVEL_; returns the levels in force. */
	struct control_level (*log_level)(void *arg, int level);
	/* Looks names of targets up again that were not found; returns their number. */
	unsigned (*retry_names)(void *arg);
	/* For a successor: the listening sockets, whose files stay when the list is freed, and the ports of soft devices. 0 or -errno;
	 * -EALREADY when another process has taken over. */
	int (*sockets)(void *arg, struct listen_socket_list *services, struct listen_socket_list *ports);
	/* The successor is ready to accept: this process stops accepting, keeps the files, and drains. Links may still come by all
	 * ports of its soft devices. unit_pid: what is systemd's main process then. */
	void (*let_go)(void *arg, uint32_t pid, uint32_t unit_pid);
	/* A process that should have become the successor has failed. NULL: not wanted. */
	void (*successor_failed)(void *arg, const char *why);
	/* True when no connection is being set up here. */
	bool (*settled)(void *arg);
	/* From here on the successor accepts at these ports. */
	void (*leave_ports)(void *arg, const struct listen_socket_list *ports);
	/* For status; outlives the control socket. NULL: not known. */
	const struct report_process *process;
	struct event_history *news; /* outlives the control socket; NULL: no events are kept */
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
	if (port == CONTROL_READONLY)
		return (struct listen_socket_file){ "read-only control socket", cfg->control_readonly,
			cfg->control_readonly_mode, (uid_t)-1, (gid_t)-1, .waits = true };
	return (struct listen_socket_file){ "control socket", cfg->control_path, cfg->control_mode, (uid_t)-1,
		(gid_t)-1, .waits = true };
}

/* Listens at cfg->control_path with cfg->control_mode, and at cfg->control_readonly if set; a socket left behind by a dead daemon is
 * replaced, one in use is refused. 0, or -errno with the reason in err. cfg and hooks are copied. */
int control_new(struct loop *, struct workers *, const struct config *cfg, const struct control_hooks *, FILE *err,
    struct control **out);
/* After a reload: the clients that may give orders from now on. */
void control_set_admins(struct control *, const struct config *);
/* Valid as long as it. */
const struct control_stats *control_counters(const struct control *);
/* Before workers_free. Closes all clients, and removes the socket file if it is still ours. NULL is allowed. */
void control_free(struct control *);
/* Drops a successor that has not taken over yet; its connection is closed. For calls that change listening sockets. */
void control_stop_handover(struct control *);
/* The listening socket that was passed to control_new is ours alone: its file is removed at the end. */
void control_adopt(struct control *);
