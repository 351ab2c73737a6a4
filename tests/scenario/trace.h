/*
 * Legality of every CLC, LLC and CDC message that an engine sends, from its
 * trace alone: what may follow what, on which connection, in which order, and
 * that no RMB element is given out while a connection still has it.
 */
#ifndef SMCRD_SCENARIO_TRACE_H
#define SMCRD_SCENARIO_TRACE_H

#include "smcr/smcr.h"
#include "tests/scenario/world.h"

struct trace;

struct trace *trace_new(struct world *);
void trace_free(struct trace *);
/* Messages of this engine are watched from now on. */
void trace_attach(struct trace *, unsigned host, struct smcr *);
/* A turn of the host begins. */
void trace_turn(struct trace *, unsigned host);

#endif
