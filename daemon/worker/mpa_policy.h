/* Which iWARP connections, over MPA or SCTP, are allowed. The token of a link group is checked in any case. This
 * policy keeps unknown peers from using connection slots without a token, and a bad server from choosing any address
 * for us. arg: the session pool, with the present settings, services and devices. */
#pragma once

#include "smcr/smcr.h"

/* For smcr_set_dial_policy. A server names the address of its RDMA device in its Accept and in ADD LINK. Allowed are
 * the address of the TCP connection and the networks of our RDMA devices; or smcr.mpa_peers, if set. */
bool mpa_may_dial(void *arg, const struct rnic_gid *to, const struct smcr_identity *middle);
/* For struct devices_gate. Allowed are clients of an egress service and the networks of our RDMA devices, where a peer
 * may have more devices. Or smcr.mpa_clients, if set, and the present peers (smcr_has_peer). */
bool mpa_may_connect(void *arg, const struct rnic_gid *from);
