/*
 * Which iWARP connections may be, of MPA or of SCTP. A link group's token is asked
 * for all the same; this keeps strangers from taking places before they have
 * shown any, and a bad server from sending us anywhere.
 */
#pragma once

#include "daemon/service/session_pool.h"

/* Embedded in the worker; services and devices of the moment count. */
struct mpa_policy {
	const struct config *cfg; /* in force */
	const struct session_pool *pool;
	const struct devices *devices;
};

/* For smcr_set_dial_policy. A server names the address of its RDMA device in its Accept and in ADD LINK: the address that the
 * TCP connection leads to, or one in a network of an RDMA device of ours; or, when smcr.mpa_peers is set, in that list. */
bool mpa_may_dial(void *policy, const struct rnic_gid *to, const struct smcr_identity *middle);
/* For struct devices_gate. Users of an egress service, and networks of RDMA devices of ours, as a peer may have further
 * devices there; or, when smcr.mpa_clients is set, that list and the peers of the moment (smcr_has_peer). */
bool mpa_may_connect(void *policy, const struct rnic_gid *from);
