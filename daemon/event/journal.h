/*
 * Entries of the journal with fields (sd_journal_sendv), for a daemon whose standard error journald reads. The socket that the
 * library opens for it is a datagram socket without a name, by which it sends to a path: both can be had after the process has
 * given its rights up. What is too long for a datagram would go by a file in memory, which the filter of system calls does not
 * allow, as a file in memory can be mapped as code: then, and without a journal, the caller writes a line.
 */
#pragma once

#include <stdbool.h>

#include "daemon/event/event_kinds.h"

/* False: it is not in the journal. text: the line of the event. */
bool journal_send(const struct event *, const char *text);
