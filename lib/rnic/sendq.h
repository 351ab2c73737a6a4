/* Positions and credits of a send queue: the amount that may be posted, and the time of RNIC_EV_CREDITS for a user that
 * found too little. The device keeps the requests. Internal to lib/rnic. */
#pragma once

#include "rnic/rnic.h"

struct sendq {
	uint32_t depth;      /* maximum of outstanding requests */
	uint32_t peer_depth; /* receives of the peer; UINT32_MAX: the device's flow control limits Sends */
	size_t bytes_max;    /* payload worth queueing */
	/* Positions count requests and only grow; differences are correct across a wrap. */
	uint32_t head;      /* posted */
	uint32_t sent;      /* end of requests passed to the card, or entirely in FPDUs */
	uint32_t done;      /* end of completed requests */
	uint32_t sends_out; /* incomplete Sends */
	size_t bytes;       /* posted payload that is still queued, as the device counts it */
	unsigned starved;   /* members found exhausted by the user */
};

/* The credits: `used` entries are occupied, `queued` bytes wait. */
void sendq_credits(const struct sendq *, uint32_t used, size_t queued, struct rnic_credits *out);
/* Takes the entry at sq->head: 0 and *credits is reduced, or -ENOBUFS with no change. Notes the exhausted members. */
int sendq_take(struct sendq *, struct rnic_credits *credits, enum rnic_wr_op, size_t len);
/* True if the user must be notified of the credits: an exhausted member is available again. */
bool sendq_has_more(struct sendq *, struct rnic_qp *);
