/*
 * A send queue's positions and credits: what may be posted now, and when the
 * user who found too little has to hear that there is more (RNIC_EV_CREDITS). The
 * requests themselves are the device's. Internal to lib/rnic.
 */
#pragma once

#include "rnic/rnic.h"

struct sendq {
	uint32_t depth;      /* requests outstanding at most */
	uint32_t peer_depth; /* receives that the peer has; UINT32_MAX: its device holds Sends back by itself */
	size_t bytes_max;    /* payload worth queueing */
	/* Positions count requests and only grow; differences are right when they wrap. */
	uint32_t head;      /* posted */
	uint32_t sent;      /* those before are the card's, or wholly in FPDUs */
	uint32_t done;      /* those before have ended */
	uint32_t sends_out; /* Sends that have not ended */
	size_t bytes;       /* payload posted and not yet gone, as the device counts it */
	unsigned starved;   /* bits of what its user found used up */
};

/* What may be posted: `used` entries are not free, `queued` bytes wait. */
void sendq_credits(const struct sendq *, uint32_t used, size_t queued, struct rnic_credits *out);
/*
 * One request more, whose place was sq->head: 0 with *credits less by it, or -ENOBUFS and nothing happened. Remembers what is
 * used up then.
 */
int sendq_take(struct sendq *, struct rnic_credits *credits, enum rnic_wr_op, size_t len);
/* Credits are these now: does the user have to hear of it? */
bool sendq_has_more(struct sendq *, const struct rnic_credits *credits);
