/* The log writer thread, the only thread that waits for a reader of stderr or of the journal: a full pipe, a stopped
 * terminal, a slow disk. Lines are queued in memory in order. Lines without room are dropped and counted, and a later
 * line reports the count. Used by log.c for the one log of the process. */
#pragma once

#include "base/log.h"

#define LOG_WRITER_ROOM (512 * 1024) /* bytes of queued lines; a second buffer of this size is being written */

/* A line, and the entry sent instead of it if `send` is set and returns true. Plain bytes, copied. */
struct log_record {
	log_send_fn send;
	const char *entry, *line;
	size_t entry_len, line_len;
};

/* Writes in the calling thread. False: the record is lost. */
bool log_write(const struct log_record *);
/* Writes the line that reports the lost lines. False: this line is lost as well. */
typedef bool (*log_lost_fn)(uint64_t cnt);

/* 0 or -errno. */
int log_writer_start(log_lost_fn);
/* False: no thread runs, the caller must write. Otherwise queues the record, or drops and counts it. Never blocks. */
bool log_writer_put(const struct log_record *);
/* Lines lost since the start. */
uint64_t log_writer_lost(void);
/* Waits at most wait_s until all lines are written. Unwritten and later lines are lost. */
void log_writer_stop(unsigned wait_s);
