/* The last peer that a device refused, for the log: one address per counter of refusals. Pure. Devices note the peers,
 * rnic_ops.last_refused reports them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "rnic/rnic.h"

struct unknown_peer {
	struct rnic_gid at;
	uint16_t port;
};

/* Reason of the refusal, by counter. */
enum unknown_peer_kind {
	UNKNOWN_PEER_ADDRESS, /* mpa_refused_address */
	UNKNOWN_PEER_BAD,     /* mpa_bad */
	UNKNOWN_PEER_TOKEN,   /* mpa_refused_token */
	UNKNOWN_PEER_PARKED,  /* mpa_refused_parked */
	UNKNOWN_PEER_LIMITED, /* strangers_limited */
	UNKNOWN_PEER_KINDS
};

/* Zeroed at first; owned by the device. */
struct unknown_peers {
	struct unknown_peer last[UNKNOWN_PEER_KINDS];
	bool known[UNKNOWN_PEER_KINDS];
};

struct unknown_peer unknown_peer_of(const struct sockaddr_storage *);
void unknown_peers_note(struct unknown_peers *, enum unknown_peer_kind, const struct unknown_peer *);
bool unknown_peers_last(const struct unknown_peers *, const char *counter, struct sockaddr_storage *from);
