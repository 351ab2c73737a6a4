/* Journal entries with fields (sd_journal_sendv), for a daemon whose stderr is read by journald. The library sends
 * from an unnamed datagram socket to a path, and both work after the process has given up its rights. An entry too
 * large for a datagram would need a memory file, which the seccomp filter refuses, as it can be mapped as code. Then,
 * and without a journal, a plain line is logged. The library waits for journald, so the log thread calls it
 * (base/log_writer.h). */
#pragma once

#include "daemon/event/event_kinds.h"

/* Logs the event as an entry, or as a line. No value has a newline (event_clean). text: the line of the event. */
void journal_log(const struct event *, const char *text);
