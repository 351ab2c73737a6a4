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
struct stranger {
	struct rnic_gid at;
	uint16_t port;
};

/* Why one is refused, by the counter. */
enum stranger_kind {
	STRANGER_ADDRESS, /* mpa_refused_address */
	STRANGER_BAD,     /* mpa_bad */
	STRANGER_TOKEN,   /* mpa_refused_token */
	STRANGER_PARKED,  /* mpa_refused_parked */
	STRANGER_LIMITED, /* strangers_limited */
	STRANGER_KINDS
};

/* Starts as zeros; its device owns it. */
struct strangers {
	struct stranger last[STRANGER_KINDS];
	bool known[STRANGER_KINDS];
};

/* The one at this address, IPv4 or IPv6. */
struct stranger stranger_of(const struct sockaddr_storage *);
void strangers_note(struct strangers *, enum stranger_kind, const struct stranger *);
/* As rnic_ops.last_refused. */
bool strangers_last(const struct strangers *, const char *counter, struct sockaddr_storage *from);
