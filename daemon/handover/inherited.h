/* Listening sockets opened before the rights are given up: systemd's, those of a daemon taken over, ours on ports below
 * 1024 and UNIX sockets. Each worker has its own or a copy; those that it takes become LISTEN_SOCKET_NONE. */
#pragma once

#include <stdio.h>

#include "daemon/config/config.h"
#include "daemon/net/listen_socket.h"
#include "daemon/net/tcp_option.h"

struct inherited {
	unsigned workers;
	unsigned cnt;                /* slots of each worker */
	unsigned used;               /* the others are LISTEN_SOCKET_NONE */
	struct listen_socket *socks; /* those of worker 0, which own the files, then those of worker 1 */
};

/* Appends systemd's sockets to passed and takes all. 0, or -errno and the reason in err; inherited_fini follows. */
int inherited_open(struct inherited *, const struct config *, unsigned workers, const struct tcp_option *,
    struct listen_socket_list *passed, FILE *err);
/* The file at this path becomes that of the socket, if it is one of a socket. */
void inherited_own_file(struct listen_socket *, const char *path);
/* Closes those that no worker took. A zeroed struct is allowed. */
void inherited_fini(struct inherited *);
