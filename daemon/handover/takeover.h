/*
 * The new process's side of a hand-over (control/handover_msg.h): asks the running daemon for its listening sockets at start, before any
 * loop turns, so it waits. What that daemon says is checked; nothing of what it gave is changed or removed before
 * takeover_finish. Owner: smcrd.c.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "daemon/config/config.h"
#include "daemon/control/control.h"
#include "daemon/net/listen_socket.h"

struct takeover {
	int sock;     /* to the running daemon; -1 = nobody is there, or nothing was asked */
	uint32_t pid; /* of it */
	struct listen_socket control[CONTROL_PORTS]; /* its control sockets, in the order of enum */
	unsigned control_cnt;
	struct listen_socket_list services; /* lent; inherited_open takes them */
	struct listen_socket_list mpa;      /* ports of soft iWARP */
	struct siw_spare *spares;           /* the same, while devices are opened */
	struct listen_socket_list files;    /* what was in services with a file; fd is -1 */
};

#define TAKEOVER_NONE ((struct takeover){ .sock = -1, .control = { LISTEN_SOCKET_NONE, LISTEN_SOCKET_NONE } })

/* Asks who listens at path. 0, with sock -1 when nobody does; or -errno and err says why. The environment variables by which
 * systemd is told things are those of the running daemon then, unless this process has its own. */
int takeover_begin(struct takeover *, const char *path, FILE *err);
/* Soft devices that are opened from here on, up to takeover_settle_ports, take the other one's ports over.
 * 0 or -ENOMEM. */
int takeover_offer_ports(struct takeover *, struct config *);
/* Which ones they have used is known, the others are closed. */
void takeover_settle_ports(struct takeover *, struct config *);
/* This process is ready to accept: the other one stops to. Its files are ours from here on; those that the configuration has no use
 * for are removed. 0; or -errno, and the other one may go on as before. */
int takeover_finish(struct takeover *, const struct config *, FILE *err);
/* Harmless when nothing was taken. */
void takeover_fini(struct takeover *);
