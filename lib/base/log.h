/* Log lines: a fixed phrase, then key=value, to stderr; with a <priority> prefix when journald reads it. Only owners
 * log; protocol code reports upward. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level {
	LOG_LVL_ERROR,
	LOG_LVL_WARNING,
	LOG_LVL_NOTICE, /* lifecycle */
	LOG_LVL_INFO,   /* one per connection */
	LOG_LVL_DEBUG,
};

/* Lines above the level are dropped. Time stamps are added only when stderr is not journald. */
void log_init(enum log_level level);
void log_set_level(enum log_level level);
/* Lines of this level are written: what costs time to find out is worth it. */
bool log_is_on(enum log_level level);
/* Is it journald that reads the lines? */
bool log_is_journal(void);
/* syslog's number for it. */
int log_priority(enum log_level level);
void log_msg(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* From here on a thread writes, and nobody else waits for a reader: lines that cannot be written are dropped, and their
 * count is logged. Before that, who logs writes. 0 or -errno. */
int log_start(void);
/* At the end of the process: waits for the thread, but not long. */
void log_stop(void);

struct log_counters {
	uint64_t lines_lost; /* that could not be written */
};
struct log_counters log_counters(void);

/* Sends an entry by another way than stderr; it may wait. False: the line is to be written. */
typedef bool (*log_send_fn)(const char *entry, size_t len);
/* A line that has such a way, whatever the level is. */
void log_entry(enum log_level level, const char *text, log_send_fn, const char *entry);

/* For lines that a peer can trigger: at most `burst` per `interval_ms`; says how many were left out. */
struct log_limit {
	uint32_t burst;
	uint32_t interval_ms;
	int64_t since_ns;
	uint32_t cnt;
	uint64_t dropped;
};

/* One more line: true when it may be written. *left_out: how many were not since the last time that this was said; to be said
 * before the line (log_left_out). */
bool log_limit_take(struct log_limit *, int64_t now_ns, uint64_t *left_out);
void log_left_out(enum log_level level, uint64_t cnt);
void log_limited(struct log_limit *, int64_t now_ns, enum log_level level, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
