/*
 * What the sessions of a service come to, since it is there: how they travel now, bytes, times, reasons. One for each service of a
 * worker, in its thread; reports add those of all workers. Counted where a session changes, with the turn's time: carrying data
 * costs one addition more.
 */
#pragma once

#include <stdint.h>

#include "base/histogram.h"
#include "base/tally.h"
#include "smcr/smcr.h"

struct session;

/* How a session carries its data. */
enum session_mode {
	SESSION_SETUP,
	SESSION_SMCR,
	SESSION_TCP,
};

/* Only of services that had any: most have none. */
struct service_reasons {
	struct tally local, peer; /* fallbacks and refusals, by struct smcr_diag's codes */
	struct tally reset;       /* by session.cause */
};

struct service_stats {
	uint64_t modes[3]; /* sessions by enum session_mode */
	uint64_t bytes[2]; /* from and to the program */
	struct histogram setup, connect, life;
	struct service_reasons *reasons; /* NULL: none, or memory was out */
};

void service_stats_fini(struct service_stats *);
/* sum is the caller's, its reasons, too. */
void service_stats_merge(struct service_stats *sum, const struct service_stats *one);

/* A session has changed how it travels, or it is new. */
void service_stats_travels(struct session *, enum session_mode);
/* The leg that was being connected is. */
void service_stats_connected(struct session *);
/* No SMC-R: counts those codes that are not 0, also among those of the whole pool. */
void service_stats_no_smc(struct session *, uint32_t local, uint32_t peer);
void service_stats_ended(struct session *, bool reset);
