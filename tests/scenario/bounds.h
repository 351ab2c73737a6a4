/* What one peer may make a host hold at any moment of a hostile run: the table of doc/threat-model.md, as checks. */
#ifndef SMCRD_SCENARIO_BOUNDS_H
#define SMCRD_SCENARIO_BOUNDS_H

#include "tests/scenario/host.h"

void bounds_check(const struct host *);

#endif
