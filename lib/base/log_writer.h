/*
 * The thread that writes the log. What reads stderr or the journal may stand still: a pipe is full, a terminal stopped, a disk
 * slow. Only this thread waits for it. Lines wait in memory, in their order; those that find no room are dropped and counted, and a
 * line reports the count once there is room again. Used by log.c alone, for the one log of the process.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"

#define LOG_WRITER_ROOM (512 * 1024) /* bytes of lines that wait; as many again are being written */

/* A line, and what is sent instead of it if `send` is there and returns true. Plain bytes, copied. */
struct log_record {
	log_send_fn send;
	const char *entry, *line;
	size_t entry_len, line_len;
};

/* Writes it in the caller's thread. False: it is lost. */
bool log_write(const struct log_record *);
/* Writes the line that reports lost ones. False: it is lost, too. */
typedef bool (*log_lost_fn)(uint64_t cnt);

/* 0 or -errno. */
int log_writer_start(log_lost_fn);
/* False: there is no thread, the caller has to write. Otherwise the record is queued, or dropped and counted. Never waits. */
bool log_writer_put(const struct log_record *);
/* How many were lost so far. */
uint64_t log_writer_lost(void);
/* Waits until all lines are written, wait_ms at most; what is not written by then is lost, and so is all that follows. */
void log_writer_stop(unsigned wait_ms);
