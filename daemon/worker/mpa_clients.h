/*
 * Who may open MPA connections to soft iWARP devices: who may use an egress
 * service, and what is in a network of an RDMA device of ours, as a peer may have
 * further devices there. When smcr.mpa_clients is set, it is only what is in
 * that list, and the peers of the moment (smcr_has_peer). The token of the link
 * group is asked for all the same; this keeps strangers from taking places
 * before they have shown any.
 */
#ifndef SMCRD_DAEMON_MPA_CLIENTS_H
#define SMCRD_DAEMON_MPA_CLIENTS_H

#include <stdbool.h>

#include "rnic/rnic.h"

/* For siw_config.may_connect: the worker, whose services and devices of the moment count. */
bool mpa_clients_allow(void *worker, const struct rnic_gid *from);

#endif
