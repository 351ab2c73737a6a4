/* Log lines to stderr: a fixed phrase, then key=value, or JSON; <priority> before it for journald. Protocol code never logs. */
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

extern const char *const log_level_words[]; /* by enum log_level */

/* Lines above the level are dropped. Time stamps are added unless stderr is journald. */
void log_init(enum log_level level);
void log_set_level(enum log_level level);
/* Lines of this level are written; guards the costly preparation of a line. */
bool log_is_on(enum log_level level);
/* From now on each line is a JSON object (log_json.h); for journald behind <priority>. */
void log_set_json(bool json);
bool log_is_json(void);
#define LOG_TIME_LEN 32
/* Writes the time that was ms_ago, in UTC: 2026-11-27T10:20:30.456Z; returns buf. */
const char *log_time(long long ms_ago, char buf[LOG_TIME_LEN]);
/* stderr is a journald socket. */
bool log_is_journal(void);
/* syslog's priority of the level. */
int log_priority(enum log_level level);
void log_msg(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Starts the writer thread; before that the caller writes. Lines without room are dropped and counted. 0 or -errno. */
int log_start(void);
/* At process exit: waits a bounded time for the writer thread. */
void log_stop(void);

struct log_counters {
	uint64_t lines_lost; /* not written */
};
struct log_counters log_counters(void);

/* Sends an entry by another channel than stderr; may block. False: the line is written to stderr instead. */
typedef bool (*log_send_fn)(const char *entry, size_t len);
/* A line with a channel of its own, independent of the level. */
void log_entry(enum log_level level, const char *text, log_send_fn, const char *entry);

/* A line of fields, in JSON. */
struct log_field {
	const char *key, *value;
	bool number; /* if the value is one */
};
void log_fields(enum log_level level, const char *message, const struct log_field *, unsigned cnt);

/* Rate limit for lines that a peer can trigger: `burst` per `interval_ms`; the count of suppressed ones is logged. */
struct log_limit {
	uint32_t burst;
	uint32_t interval_ms;
	int64_t since_ns;
	uint32_t cnt;
	uint64_t dropped;
};

/* True if one more line may be written. *left_out: lines suppressed before it, for log_left_out. */
bool log_limit_take(struct log_limit *, int64_t now_ns, uint64_t *left_out);
void log_left_out(enum log_level level, uint64_t cnt);
void log_limited(struct log_limit *, int64_t now_ns, enum log_level level, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
