/*
 * The limit of open files (RLIMIT_NOFILE): raised as far as the process may, and compared with what a configuration needs when all
 * connections that it allows are there. Called by smcrd*.c.
 */
#pragma once

#include <stdint.h>

#include "daemon/config/config.h"

struct fd_limit {
	uint64_t needed;      /* at most */
	uint64_t connections; /* of these, for connections */
};

/* Of a daemon with so many workers. */
struct fd_limit open_files_of(const struct config *, unsigned workers);
/* Connections for which a limit is enough, beside all else. */
uint64_t open_files_enough_for(const struct fd_limit *, uint64_t limit);

/* At start. What it may not is logged. */
void fd_limit_raise(void);
/* Warns when the limit is lower than what this configuration may need at most, and that was not said of the one before, which
 * this one takes the place of; zeroed: there was none. */
void fd_limit_check(struct fd_limit *before, const struct config *);
