/*
 * Spells of TCP: from a connection with a peer that is not on SMC-R, though it should be, until the next one that is. Told once
 * when one begins, with the reason, when the reason changes, and when it ends; never for each connection. With it goes the MPA
 * port that could not be used, if that was the reason.
 *
 * A peer is the target of an ingress, and at an egress the address that connections come from. Shared by the workers' services
 * of a name, as outages are.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "smcr/smcr.h"

#define FALLBACK_PERIODS_MAX \
	32 /* peers of a service that are remembered; of more the oldest is forgotten, whose end is not told then */

struct service;
union net_addr;

struct fallback_periods {
	atomic_uint cnt;       /* that go on: so connections on SMC-R take no lock */
	pthread_mutex_t lock;  /* of what follows */
	struct list_node list; /* struct fallback_period, oldest first */
	unsigned known;
};

void fallback_periods_init(struct fallback_periods *);
void fallback_periods_fini(struct fallback_periods *);

/* A connection with the peer is on TCP, or refused instead, because of diag. */
void fallback_period_note(struct service *, const union net_addr *peer, const struct smcr_diag *diag);
/* A connection with the peer is on SMC-R. */
void fallback_period_end(struct service *, const union net_addr *peer);
