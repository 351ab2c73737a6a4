/* Devices of the links of a group (RFC 7609 2.2, 3.5.1.6). */
#pragma once

#include "smcr/state/lgr.h"

/* IPv4 mapped into IPv6. */
bool topology_is_ipv4(const uint8_t addr[16]);
/* Reachability of this port of the peer, as far as known. */
enum rnic_reach topology_reach(struct rnic_dev *, const uint8_t gid[16]);

/* The link that shares an RNIC with another one; NULL: none. */
struct link *topology_asymmetric_link(const struct lgr *);
unsigned topology_symmetric_cnt(const struct lgr *);
/* Server: the device for one more link, NULL when none makes sense. */
struct rnic_dev *topology_device_to_offer(const struct lgr *);
/* Client: the device for a link to this RNIC of the server; NULL: none. */
struct rnic_dev *topology_device_for(const struct lgr *, const struct rnic_gid *, const uint8_t mac[6]);
/* Client: a device that the server does not know, for its "FYI" (3.5.5.1.2); NULL: none. */
struct rnic_dev *topology_spare_device(const struct lgr *);
/* GIDs of all devices usable for links of the group, 16 bytes each in gids[LLC_MAX_GIDS * 16]; returns the count. */
uint8_t topology_gids(const struct lgr *, uint8_t *gids);
/* Server, version 2: the GID of a port of the client, preferably reported and without a link; another one after a failure. */
const uint8_t *topology_client_gid(const struct lgr *, const struct link *over);
/* A device without links exists, and the group may have another link. */
bool topology_can_add(const struct lgr *);
/* The link over which another one is offered or requested; NULL when none is active. Linux uses a port of its own other
 * than this link's (smc_llc_cli_add_link, smc_llc_srv_add_link), and takes an offer of this link's port as an
 * asymmetric link: so not over the asymmetric one. A new link should have its port, the only used one to offer. */
struct link *topology_link_to_ask_over(struct lgr *);
/* A link between these two exists. */
bool topology_is_parallel(const struct lgr *, const struct rnic_dev *, const struct rnic_gid *, const uint8_t mac[6]);

#define NOT_DIALED "the RDMA address that the server names is not allowed (mpa_peers)"
/* Policy check of a connection of dev's queue pair to this address (smcr_set_dial_policy). Counts a refusal. */
bool topology_may_dial(struct smcr *, struct rnic_dev *, const struct rnic_gid *to, const struct smcr_identity *middle);
