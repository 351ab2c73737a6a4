/* File descriptors: as many as the system gives, and a warning when connections may need more. */
#pragma once

#include <stdint.h>

#include "daemon/config/config.h"

/* Raises the soft limit to the hard one. */
void fdlimit_raise(void);
/* Descriptors that this configuration may need at most. */
uint64_t fdlimit_needed(const struct config *);
/* Logs a warning with numbers when the limit is lower. */
void fdlimit_check(const struct config *);
