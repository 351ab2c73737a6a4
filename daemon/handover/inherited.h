/*
 * Listening sockets that are there before the process gives its rights up: systemd's, those of the daemon that this one takes
 * over from, then ours on ports below 1024 and on UNIX sockets; each worker has its own of each, or a copy of one. Owner:
 * smcrd.c; what workers take over is none here then.
 */
#pragma once

#include <stdio.h>

#include "daemon/config/config.h"
#include "daemon/net/listen_socket.h"
#include "daemon/net/tcp_option.h"

struct inherited {
	unsigned workers;
	unsigned cnt;                /* places for each worker */
	unsigned used;               /* the others are none */
	struct listen_socket *socks; /* those of worker 0 first, which have the files, then those of worker 1 */
};

/* Sockets of passed are taken out of it; systemd's are put there before. 0, or -errno and err says why: inherited_fini is needed all
 * the same. */
int inherited_open(struct inherited *, const struct config *, unsigned workers, const struct tcp_option *,
    struct listen_socket_list *passed, FILE *err);
/* Closes those that nobody took. Harmless when all is zeroed. */
void inherited_fini(struct inherited *);
