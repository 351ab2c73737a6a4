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

struct service_figures {
	uint64_t modes[3]; /* sessions by enum session_mode */
	uint64_t bytes[2]; /* from and to the program */
	struct histogram setup, connect, life;
	struct service_reasons *reasons; /* NULL: none, or memory was out */
};

void figures_fini(struct service_figures *);
/* sum is the caller's, its reasons, too. */
void figures_merge(struct service_figures *sum, const struct service_figures *one);

/* A session has changed how it travels, or it is new. */
void figures_travels(struct session *, enum session_mode);
/* The leg that was being connected is. */
void figures_connected(struct session *);
/* No SMC-R: counts those codes that are not 0, also among those of the whole pool. */
void figures_no_smc(struct session *, uint32_t local, uint32_t peer);
void figures_ended(struct session *, bool reset);
