/* Upper bound of the daemon's open files when all configured connections are in use. smcrd compares it with the limit
 * at start, smcrctl doctor on request. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define FILES_PER_CONNECTION 2 /* client and middle, or middle and server */

struct files {
	uint64_t workers, services;
	uint64_t devices;     /* sum over all workers; each has its own */
	uint64_t connections; /* max_connections of all services */
	bool metrics;
};

static inline uint64_t
files_needed(const struct files *f)
{
	const uint64_t per_device = 32; /* listener and some links */
	const uint64_t per_worker = 8;  /* loop, mailbox, netlink */
	const uint64_t metrics = 128;   /* clients, including refused ones */
	const uint64_t other = 64;      /* standard streams, loop, control clients, log */

	return other + (f->metrics ? metrics : 0) + f->workers * (per_worker + f->services) + f->devices * per_device +
	    f->connections * FILES_PER_CONNECTION;
}

/* max_connections is a bound for each service, and all services rarely reach it at once. A limit of 65,536 files, a
 * quarter of the unit's, is therefore accepted; `accept_pauses` counts where it was too low. */
static inline bool
files_are_few(uint64_t limit, uint64_t needed)
{
	return limit < needed && limit < 65536;
}
