/* Fallback periods of a peer: from the first connection that should be on SMC-R and is not, to the next one on SMC-R.
 * Reported at begin, change of the reason (with an MPA port that failed) and end. The peer of an ingress is its target,
 * of an egress the source address. Shared by the workers' services of one name. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "smcr/smcr.h"

/* Peers of a service; a further one replaces the oldest, whose end is then not reported. */
#define FALLBACK_PERIODS_MAX 32

struct service;
union net_addr;

struct fallback_periods {
	atomic_uint cnt;       /* periods in progress; 0: connections on SMC-R take no lock */
	pthread_mutex_t lock;  /* of list and known */
	struct list_node list; /* struct fallback_period, oldest first */
	unsigned known;
};

void fallback_periods_init(struct fallback_periods *);
void fallback_periods_fini(struct fallback_periods *);

/* A connection with the peer has fallen back to TCP, or was refused, for diag. */
void fallback_period_note(struct service *, const union net_addr *peer, const struct smcr_diag *diag);
void fallback_period_end(struct service *, const union net_addr *peer);
