/* The load of all workers, for the log and the status. Called by smcrd*.c. */
#pragma once

#include "daemon/worker/workers.h"

struct load_summary {
	unsigned long long connections;
	unsigned groups; /* link groups */
};

struct load_summary load_summary_take(struct workers *);
/* May a link of a connection in its set-up still come by a port of this process? Clients connect links, so it is an egress's. What has
 * waited for long waits for something else. */
bool load_expects_link(struct workers *);
