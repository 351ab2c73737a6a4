/*
 * Whom a device has refused last, for the log: one address for each counter of refusals, however many come. Pure. Devices note
 * them, and rnic_ops.last_refused shows them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "rnic/rnic.h"

/* One who comes unasked. */
struct unknown_peer {
	struct rnic_gid at;
	uint16_t port;
};

/* Why one is refused, by the counter. */
enum unknown_peer_kind {
	UNKNOWN_PEER_ADDRESS, /* mpa_refused_address */
	UNKNOWN_PEER_BAD,     /* mpa_bad */
	UNKNOWN_PEER_TOKEN,   /* mpa_refused_token */
	UNKNOWN_PEER_PARKED,  /* mpa_refused_parked */
	UNKNOWN_PEER_LIMITED, /* strangers_limited */
	UNKNOWN_PEER_KINDS
};

/* Starts as zeros; its device owns it. */
struct unknown_peers {
	struct unknown_peer last[UNKNOWN_PEER_KINDS];
	bool known[UNKNOWN_PEER_KINDS];
};

/* The one at this address, IPv4 or IPv6. */
struct unknown_peer unknown_peer_of(const struct sockaddr_storage *);
void unknown_peers_note(struct unknown_peers *, enum unknown_peer_kind, const struct unknown_peer *);
/* As rnic_ops.last_refused. */
bool unknown_peers_last(const struct unknown_peers *, const char *counter, struct sockaddr_storage *from);
