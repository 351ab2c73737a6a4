/*
 * Messages that came as text, such as those of a configuration that was read or put in force: each line becomes one of the log.
 * Used by smcrd*.c and process/reload_job.c.
 */
#pragma once

#include "base/log.h"

/* A line that says that it is a warning is logged as one, the others at level. Returns the first line that is not a warning, or
 * the last one, in text, for where only one line is shown. */
const char *log_lines(const char *text, enum log_level level);
