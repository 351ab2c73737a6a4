/* Conditions that hold when a run, or its connections, have ended. */
#pragma once

#include "tests/scenario/host.h"

/* One connection after its end: exact bytes or resets on both sides, with a reason. */
void check_flow(const struct flow *);
/* All connections are gone: none of them is left in an engine, and no element is in use. */
void check_quiet(const struct host *hosts, unsigned cnt);
/* The engines agree about groups, links and RMBs: true, or what they do not agree about in why. */
#define WHY_LEN 256
bool check_agreement(const struct host *hosts, unsigned cnt, char why[WHY_LEN]);
/* After freeing all: nothing is left. */
void check_memory(struct world *, const struct sim_fabric *);
/* The connections that did not reach their end. */
void check_stuck(struct world *, const struct flow *, unsigned cnt, const struct host *);
