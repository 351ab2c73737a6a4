/*
 * What is counted, over HTTP: main's side. Collects what http.c wants, by the reports of the control socket, a bounded number of
 * their steps each turn. Owned by smcrd.c.
 */
#pragma once

#include <stdio.h>

#include "daemon/confine/confine.h"
#include "daemon/control/report.h"
#include "daemon/lsock.h"
#include "daemon/worker/workers.h"

struct metrics;

/* Opens where cfg says; none when it says nothing. For when the process still has its rights. 0, or -errno and err says why. */
int metrics_listen(const struct config *cfg, struct lsock *out, FILE *err);
/* Takes the socket over when it succeeds; none: *out is NULL. The confinement's state, and the control socket's counters, are there
 * as long as it. No thread yet. 0, or -errno and err says why. */
int metrics_new(struct loop *main, struct workers *, const struct config *, struct lsock *,
    const struct control_stats *, const struct confine_state *, FILE *err, struct metrics **out);
/* 0 or -errno. NULL is allowed, as below. */
int metrics_start(struct metrics *);
void metrics_reload(struct metrics *, const struct config *);
void metrics_drains(struct metrics *, bool drains);
/* Before workers_free. */
void metrics_free(struct metrics *);
