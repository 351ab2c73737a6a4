/* A script's rules while a run goes on, and its expectations at the end. */
#pragma once

#include "tests/scenario/fault.h"
#include "tests/scenario/scenario.h"
#include "tests/scenario/script.h"

/* One run of a script: s stays as it was read. */
struct script_run {
	struct script s;
	struct world *w;
	struct faults *faults;
	struct timer timer; /* what is due */
};

void script_start(struct script_run *, const struct script *, struct world *, struct faults *);
void script_stop(struct script_run *);
enum sim_fate script_message(struct script_run *, const struct sim_msg *);
void script_sent(struct script_run *, unsigned host, const struct smcr_trace *);
/* Connections are over, groups are not. */
void script_note_links(struct script_run *);
void script_judge(struct script_run *, const struct scenario_stats *);
