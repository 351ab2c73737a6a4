/*
 * The RNIC devices of a worker: opened from the configuration, given to the
 * engine, fed with readiness by the loop.
 */
#ifndef SMCRD_DAEMON_DEVICES_H
#define SMCRD_DAEMON_DEVICES_H

#include <stdio.h>

#include "daemon/worker_priv.h"

/* Opens every configured device and adds it to w->eng: 0, or -errno, nothing left behind, err says which one. */
int devices_open(struct worker *, const struct config *, FILE *err);
/* Takes them from the engine and frees them. */
void devices_close(struct worker *);
struct rnic_dev *devices_get(const struct worker *, unsigned i);

#endif
