/* One run of a plan from start to verdict. */
#pragma once

#include <stdio.h>

#include "tests/scenario/plan.h"

/* Numbers of a run, for people and to see what the seeds reach. */
struct scenario_stats {
	unsigned flows, ok, reset, smcr, fallback;
	uint64_t turns, groups, rmbs, writes, cdc, llc, messages;
	uint64_t failovers, moved, replayed, lost;
	uint64_t virtual_ms;
};

/* 0, or the number of failures with the first one in text. log may be NULL. */
unsigned scenario_run(const struct plan *, FILE *log, char *text, size_t cap, struct scenario_stats *);
