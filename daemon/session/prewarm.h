/*
 * Making the link group of an ingress before its first client comes: a probe,
 * repeated with growing pauses while the peer is not there.
 */
#ifndef SMCRD_DAEMON_PREWARM_H
#define SMCRD_DAEMON_PREWARM_H

#include "daemon/session/service.h"

/* Begins if the service's settings want it. 0 or -ENOMEM. */
int prewarm_start(struct service *);
/* Harmless when none runs. */
void prewarm_stop(struct service *);

#endif
