/* The limit of open files (RLIMIT_NOFILE): raised as far as allowed, and compared with the need of a configuration. */
#pragma once

#include "daemon/config/config.h"

struct fd_limit {
	uint64_t needed;      /* at most */
	uint64_t connections; /* of these, for connections */
};

/* With so many workers. */
struct fd_limit open_files_of(const struct config *, unsigned workers);
/* Connections for which a limit is enough, beside all other files. */
uint64_t open_files_enough_for(const struct fd_limit *, uint64_t limit);

/* At start. A failure is logged. */
void fd_limit_raise(void);
/* Warns when the limit is below the need of this configuration, unless the need was the same before; zeroed: none. */
void fd_limit_check(struct fd_limit *before, const struct config *);
