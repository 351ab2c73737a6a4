/*
 * What is counted, over HTTP: main's side. Collects what http.c wants, by the reports of the control socket, a bounded number of
 * their steps each turn. Owned by smcrd.c.
 */
#pragma once

#include <stdio.h>

#include "daemon/confine/confine.h"
#include "daemon/control/report.h"
#include "daemon/net/listen_socket.h"
#include "daemon/worker/workers.h"

struct metrics;

/* Opens where cfg says, or takes the socket that listens there out of `passed`; none when it says nothing. For when the process
 * still has its rights. 0, or -errno and err says why. */
int metrics_listen(const struct config *cfg, struct listen_socket_list *passed, struct listen_socket *out, FILE *err);
/* Takes the socket over when it succeeds; none: *out is NULL. The confinement's state, and the control socket's counters, are there
 * as long as it. No thread yet. 0, or -errno and err says why. */
int metrics_new(struct loop *main, struct workers *, const struct config *, struct listen_socket *,
    const struct control_stats *, const struct confine_state *, FILE *err, struct metrics **out);
/* 0 or -errno. NULL is allowed, as below. */
int metrics_start(struct metrics *);
void metrics_reload(struct metrics *, const struct config *);
void metrics_drains(struct metrics *, bool drains);
/* Of a socket that was passed: its file is ours from here on. */
void metrics_adopt(struct metrics *);
/* The socket, for a process that takes over; NULL: there is none. */
const struct listen_socket *metrics_socket(const struct metrics *);
/* Another process has it now: as metrics_free, but the file stays. */
void metrics_hand_over(struct metrics *);
/* Before workers_free. */
void metrics_free(struct metrics *);
