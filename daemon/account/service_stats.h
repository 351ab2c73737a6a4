/* Statistics of a service's sessions since its start: modes, bytes, times, reasons. One object per service and worker,
 * in its thread; reports sum all workers. Data costs one addition. */
#pragma once

#include <stdint.h>

#include "base/histogram.h"
#include "base/tally.h"
#include "smcr/smcr.h"

struct session;

enum session_mode { SESSION_SETUP, SESSION_SMCR, SESSION_TCP };

/* Allocated by the first reason; most services have none. */
struct service_reasons {
	struct tally local, peer; /* fallbacks and refusals, by struct smcr_diag's codes */
	struct tally reset;       /* by session.cause */
};

struct service_stats {
	uint64_t modes[3]; /* sessions by enum session_mode */
	uint64_t bytes[2]; /* from and to the application */
	struct histogram setup, connect, life;
	struct service_reasons *reasons; /* NULL: none, or memory was out */
};

/* Sums workers. The caller owns sum and its reasons. */
static inline void
service_stats_merge(struct service_stats *sum, const struct service_stats *one)
{
	for (unsigned i = 0; i < 3; i++)
		sum->modes[i] += one->modes[i];
	for (unsigned i = 0; i < 2; i++)
		sum->bytes[i] += one->bytes[i];
	histogram_merge(&sum->setup, &one->setup);
	histogram_merge(&sum->connect, &one->connect);
	histogram_merge(&sum->life, &one->life);
	if (one->reasons == NULL || sum->reasons == NULL)
		return;
	tally_merge(&sum->reasons->local, &one->reasons->local);
	tally_merge(&sum->reasons->peer, &one->reasons->peer);
	tally_merge(&sum->reasons->reset, &one->reasons->reset);
}

/* A new session, or one whose mode has changed. */
void service_stats_travels(struct session *, enum session_mode);
void service_stats_connected(struct session *);
/* No SMC-R: counts the codes that are not 0, here and in the pool. */
void service_stats_no_smc(struct session *, uint32_t local, uint32_t peer);
void service_stats_ended(struct session *, bool reset);
