/*
 * What is opened before the process gives its rights up, because it may need
 * them: the control socket's file, and listening sockets on ports below 1024.
 * Devices are not among it: the kernel's RDMA devices take requests only from a
 * process that still has the rights with which it opened them. Owner: smcrd.c.
 */
#ifndef SMCRD_EARLY_H
#define SMCRD_EARLY_H

#include <stdio.h>

#include "daemon/config/config.h"
#include "daemon/config/config_keys.h"
#include "daemon/control/control_listen.h"

struct early {
	struct control_listen control; /* control_new takes it over */
	int fds[CONFIG_SERVICES_MAX];  /* listening: systemd's, then ours; for worker_new, which takes them over */
	unsigned fd_cnt;
};

/* 0, or -errno and err says why. A port that cannot be had is reported by worker_new. */
int early_open(struct early *, const struct config *, FILE *err);
/* Closes the control socket, unless it was taken over. */
void early_close(struct early *);

#endif
