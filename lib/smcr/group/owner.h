/*
 * Who a link group belongs to. A peer id is no proof: it goes in clear to
 * every peer, and anybody may put it into a Proposal or an Accept. So a group
 * belongs to a peer id together with who was seen to use it, as the user of
 * the engine knows that (struct smcr_identity). A peer that comes from another
 * address, by another route or out of a NAT's pool, gets a group of its own
 * beside the one that it has.
 *
 * owner_same() is the only place that answers "is this the same peer?". Once
 * peers prove who they are, what they proved belongs in smcr_identity and is
 * compared there in the address's place.
 */
#pragma once

#include <stdbool.h>

#include "smcr/state/lgr.h"

struct owner owner_of(const uint8_t peer_id[8], const struct smcr_identity *);
/* A client that names no peer id before its Confirm (struct owner). */
struct owner owner_of_gid(const uint8_t gid[16], const struct smcr_identity *);
/* For the log: the peer id in hex, or the port that stands in for it. */
void owner_str(const struct owner *, char *buf, size_t cap);
bool owner_same(const struct owner *, const struct owner *);
bool identity_same(const struct smcr_identity *, const struct smcr_identity *);
/*
 * Before a group is made: 0, or the diagnosis to decline with (counted). A group takes a queue pair for as long as it
 * lives, though nothing may run over it, and anybody can ask for one: so a share of a device's queue pairs stays for
 * first contacts of our own and for second links, an address has a number of groups of its own, and groups without
 * connections end early when it gets narrow.
 */
uint32_t room_for_group(struct smcr *, enum smcr_role, const struct smcr_identity *, struct rnic_dev *);
