/*
 * How many files a daemon has open at most, if all connections are there that its configuration allows: what it warns of at its start,
 * and what smcrctl doctor looks at.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define FILES_PER_CONNECTION 2 /* client and middle, or middle and server */

struct files {
	uint64_t workers, services;
	uint64_t devices;     /* of all workers, each of which has its own */
	uint64_t connections; /* max_connections of all services */
	bool metrics;
};

static inline uint64_t
files_needed(const struct files *f)
{
	const uint64_t per_device = 32; /* listener and some links */
	const uint64_t per_worker = 8;  /* loop, mailbox, netlink */
	const uint64_t metrics = 128;   /* clients, those sent away included */
	const uint64_t other = 64;      /* standard streams, loop, control clients, log */

	return other + (f->metrics ? metrics : 0) + f->workers * (per_worker + f->services) + f->devices * per_device +
	    f->connections * FILES_PER_CONNECTION;
}

/*
 * max_connections of a service is a bound, no plan: that all services reach theirs at once is nothing to expect of a limit of 65,536, a
 * quarter of the unit's, and where it does come to it `accept_pauses` says so.
 */
static inline bool
files_are_few(uint64_t limit, uint64_t needed)
{
	return limit < needed && limit < 65536;
}
