/*
 * Where iWARP connections may lead. A server names the address of its RDMA
 * device in its Accept and in ADD LINK, and a bad one could name anybody's. So
 * it has to be the address that the TCP connection leads to, or in a network
 * that an RDMA device of ours is in; or, when smcr.mpa_peers is set, in that
 * list instead.
 */
#ifndef SMCRD_DAEMON_MPA_PEERS_H
#define SMCRD_DAEMON_MPA_PEERS_H

#include <stdbool.h>

#include "smcr/smcr.h"

/* For smcr_set_dial_policy: the worker, whose configuration and devices of the moment count. */
bool mpa_peers_allow(void *worker, const struct rnic_gid *to, const struct smcr_identity *middle);

#endif
