/*
 * The listening socket of a service: accepts in batches, checks who comes and
 * how many are there, starts sessions. Pauses when descriptors or memory run
 * out.
 */
#ifndef SMCRD_DAEMON_LISTENER_H
#define SMCRD_DAEMON_LISTENER_H

#include "daemon/session/service.h"

void listener_init(struct listener *);
/* Takes a listening socket over and accepts from now on: 0, or -errno and the socket is still the caller's. */
int listener_start(struct service *, int fd);
/* Accepts no more: the socket, which is the caller's again, or -1 when there was none. */
int listener_stop(struct service *);
/* Every listener with connections waiting takes a batch; true when more are waiting. */
bool listeners_accept(struct worker *);

#endif
