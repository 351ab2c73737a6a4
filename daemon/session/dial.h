/*
 * Connecting a leg to the first address of a list that answers. Non-blocking;
 * the owner's leg callback tells when to look again.
 */
#ifndef SMCRD_DAEMON_DIAL_H
#define SMCRD_DAEMON_DIAL_H

#include "daemon/session/leg.h"
#include "daemon/net.h"

struct dial {
	struct leg *leg;
	const struct sockaddr_storage *addrs; /* somebody else's, outlives the dial */
	unsigned cnt;
	unsigned next; /* which address comes next */
	int err;       /* of the last attempt, an errno; 0 = none failed yet */
	bool busy;     /* an attempt runs */
};

/* Ready to try the first of cnt addresses. */
void dial_init(struct dial *, struct leg *, const struct sockaddr_storage *addrs, unsigned cnt);
/* Gives up the attempt that runs, if any, for `why` (an errno, 0 = it failed itself) and starts the next one. 0:
 * started; -errno of the last one: no address is left, the leg is closed. */
int dial_next(struct dial *, struct loop *, const struct config_keepalive *, int why);
/* After an event of the leg: 1 connected, 0 still trying, -errno this attempt failed. */
int dial_check(struct dial *);
/* The address of the attempt that runs or was made last. */
const struct sockaddr_storage *dial_addr(const struct dial *);

#endif
