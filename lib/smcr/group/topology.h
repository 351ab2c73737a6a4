/* Which devices the links of a group join (RFC 7609 2.2, 3.5.1.6). */
#pragma once

#include "smcr/state/lgr.h"

/* The link that shares an RNIC with another one, NULL when there is none. */
struct link *topology_asymmetric_link(const struct lgr *);
unsigned topology_symmetric_cnt(const struct lgr *);
/* Server: the device for a link more, NULL when none makes sense. */
struct rnic_dev *topology_device_to_offer(const struct lgr *);
/* Client: the device for a link to this RNIC of the server; NULL when there is none. */
struct rnic_dev *topology_device_for(const struct lgr *, const struct rnic_gid *, const uint8_t mac[6]);
/* Client: a device that the server does not know to be there, for its "FYI" (3.5.5.1.2); NULL when there is none. */
struct rnic_dev *topology_spare_device(const struct lgr *);
/* The GIDs of all devices that links of the group may have, 16 bytes each into gids[LLC_MAX_GIDS * 16]; how many. */
uint8_t topology_gids(const struct lgr *, uint8_t *gids);
/* Server, version 2: the GID of a port of the client, one that has no link if it told of any. */
const uint8_t *topology_client_gid(const struct lgr *, const struct link *over);
/* There is a device that no link uses, and the group may have another link. */
bool topology_can_add(const struct lgr *);
/* The link over which another one is offered, or asked for; NULL when none is active. Linux takes a port of its own other
 * than that of this link (smc_llc_cli_add_link, smc_llc_srv_add_link), and an offer of this link's port for one of an
 * asymmetric link: not over the asymmetric one. Its port is what a new link should have, and the only one with a link
 * that is offered where there is another link. */
struct link *topology_link_to_ask_over(struct lgr *);
/* There is a link between these two already. */
bool topology_is_parallel(const struct lgr *, const struct rnic_dev *, const struct rnic_gid *, const uint8_t mac[6]);

#define NOT_DIALED "the RDMA address that the server names is not allowed (mpa_peers)"
/* May dev's queue pair be connected to this address (smcr_set_dial_policy)? Counts a refusal. */
bool topology_may_dial(struct smcr *, struct rnic_dev *, const struct rnic_gid *to, const struct smcr_identity *middle);
