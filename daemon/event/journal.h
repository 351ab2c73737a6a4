/*
 * Entries of the journal with fields (sd_journal_sendv), for a daemon whose standard error journald reads. The socket that the
 * library opens for it is a datagram socket without a name, by which it sends to a path: both can be had after the process has
 * given its rights up. What is too long for a datagram would go by a file in memory, which the filter of system calls does not
 * allow, as a file in memory can be mapped as code: then, and without a journal, there is a line. The library waits for journald, so
 * the thread that writes the log calls it (base/log_writer.h).
 */
#pragma once

#include "daemon/event/event_kinds.h"

/* Logs it as an entry, or as a line. No value has a newline (event_clean). text: the line of the event. */
void journal_log(const struct event *, const char *text);
