/* Legality of every CLC, LLC and CDC message that an engine sends, judged from its trace: what may follow what, on
 * which connection and group, and that no RMB element is given out while its last user's peer may still write to it. */
#pragma once

#include "smcr/smcr.h"
#include "tests/scenario/plan.h"
#include "tests/scenario/world.h"

struct trace;
struct host;
struct script_run;

struct trace *trace_new(struct world *, const struct plan *);
void trace_free(struct trace *);
/* The script hears of what is sent. */
void trace_set_script(struct trace *, struct script_run *);
/* The hosts by number: a first contact may meet a device of theirs that a fault has stopped. */
void trace_set_hosts(struct trace *, const struct host *);
/* Messages of this engine are watched from now on. */
void trace_attach(struct trace *, unsigned host, struct smcr *);
/* The host's process ended: observations of it are dropped. */
void trace_forget(struct trace *, unsigned host);
/* This connection's peer lies: nothing of it is judged, nor of its group. */
void trace_hostile(struct trace *, unsigned host, uint32_t conn_id);
bool trace_is_hostile(const struct trace *, unsigned host, uint32_t conn_id);
/* The middle of a connection was ended by the other side: what was not confirmed by then never will be. */
void trace_middle_ended(struct trace *, unsigned host, uint32_t conn_id);
