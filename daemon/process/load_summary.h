/* The load of all workers, for the log and the status. Called by smcrd*.c. */
#pragma once

#include "daemon/worker/workers.h"

struct load_summary {
	unsigned long long connections;
	unsigned long long setups; /* of them, in their set-up */
	unsigned groups;           /* link groups */
};

struct load_summary load_summary_take(struct workers *);
