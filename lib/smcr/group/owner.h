/* Owner of a link group. A peer ID is no proof: every peer sees it in clear and anyone may send it in a Proposal or
 * Accept. So a group belongs to a peer ID and the identity seen with it, as known to the engine's user (struct
 * smcr_identity). A peer from another address, by another route or NAT, gets a separate group.
 *
 * Only owner_same() decides whether two peers are the same. A proven name and the level of protection are compared
 * beside the address: groups of other names or levels never mix. */
#pragma once

#include <stdbool.h>

#include "smcr/state/lgr.h"

struct owner owner_of(const uint8_t peer_id[8], const struct smcr_identity *);
/* For the log: the peer ID in hex, or the GID instead of it. */
void owner_str(const struct owner *, char *buf, size_t cap);
bool owner_same(const struct owner *, const struct owner *);
bool identity_same(const struct smcr_identity *, const struct smcr_identity *);
/* Before a group is created: 0, or the diagnosis to decline with (counted). A group holds a queue pair for its life,
 * maybe unused, and anyone can request one. So a share of a device's queue pairs is reserved for our own first contacts
 * and second links. Groups per address are limited, and groups without connections end early near the limits. */
uint32_t room_for_group(struct smcr *, enum smcr_role, const struct smcr_identity *, struct rnic_dev *);
