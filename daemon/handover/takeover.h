/* The new process's side of a hand-over (control/handover_msg.h): gets the listening sockets of the running daemon with
 * blocking calls, as no loop turns yet. Its messages are checked; what it sent stays as it is until takeover_finish. */
#pragma once

#include <stdio.h>

#include "daemon/config/config.h"
#include "daemon/control/control.h"
#include "daemon/net/listen_socket.h"
#include "daemon/target/targets.h"

struct takeover {
	int sock;                                    /* to the running daemon; -1 = no daemon runs, or no take-over */
	uint32_t pid;                                /* of it, as it sees itself */
	pid_t seen_pid;                              /* the same in this namespace; 0 = not seen */
	struct listen_socket control[CONTROL_PORTS]; /* its control sockets, in the order of enum */
	unsigned control_cnt;
	struct listen_socket_list services; /* lent; inherited_open takes them */
	struct listen_socket_list mpa;      /* ports of soft iWARP */
	struct siw_spare *spares;           /* the same, while devices are opened */
	struct targets_known_list known;    /* health of targets, from takeover_finish on */
	struct listen_socket_list files;    /* sockets of services that had a file; fd is -1 */
};

#define TAKEOVER_NONE ((struct takeover){ .sock = -1, .control = { LISTEN_SOCKET_NONE, LISTEN_SOCKET_NONE } })

/* Connects to the daemon that listens at path. 0, with sock -1 when none does; or -errno with the reason in err. Takes the environment
 * variables for notifications to systemd from the running daemon, unless this process has its own. */
int takeover_begin(struct takeover *, const char *path, FILE *err);
/* Soft devices that are opened from here on, up to takeover_settle_ports, take over the ports of that daemon. 0 or -ENOMEM. */
int takeover_offer_ports(struct takeover *, struct config *);
/* Closes the ports that no device has used. */
void takeover_settle_ports(struct takeover *, struct config *);
/* This process is ready to accept, and the other one stops. Its files are ours from here on; those that this configuration does not use
 * are removed. unit_pid: the main process of the unit; 0: this one. now_ns: from which the health of targets counts. 0; or -errno, and
 * the other one may go on as before. */
int takeover_finish(struct takeover *, const struct config *, uint32_t unit_pid, int64_t now_ns, FILE *err);
/* After that; allowed when nothing was taken. */
void takeover_fini(struct takeover *);
