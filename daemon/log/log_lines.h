/* Messages that exist as text, such as those of a configuration load or a reload: each line is logged. */
#pragma once

#include "base/log.h"

/* A line with "warning: " is logged as a warning, the others at level. Returns, within text, the first line that is
 * not a warning, or the last line: the one to show where only one fits. */
const char *log_lines(const char *text, enum log_level level);
