/*
 * From one set of services to the next, at start (from none) and on reload:
 * first everything that can fail, then the change.
 */
#pragma once

#include <stdio.h>

#include "daemon/session/session_pool.h"

/* Makes pool->services what cfg says; pool->keepalive holds the new settings already. Listening sockets among fds are used
 * where their address fits, the others are closed. 0, or -errno: all is as before and err says what is wrong. */
int services_apply(struct session_pool *, const struct config *cfg, const int *fds, unsigned fd_cnt, FILE *err);
