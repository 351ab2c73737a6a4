/* Memory that RDMA cards keep locked (RLIMIT_MEMLOCK): a warning when the configuration may register more. */
#pragma once

#include "daemon/config/config.h"

/* Most bytes that connections of this configuration may register on cards. */
uint64_t memlock_needed(const struct config *);
/* Writes the warning into buf; false when the limit is high enough. */
bool memlock_too_low(const struct config *, uint64_t limit, char *buf, size_t cap);
/* When the first card is used: raises the soft limit to the hard one, and logs the warning unless exempt. */
void memlock_check(const struct config *);
