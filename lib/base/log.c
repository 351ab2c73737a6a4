/* Log lines to stderr, one write(2) each: lines of several processes do not mix. Level and format are per process. */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/log_json.h"
#include "base/log_writer.h"

#define LINE_MAX_LEN LOG_JSON_TEXT_MAX
#define LINE_BYTES (LOG_JSON_MAX + 8) /* of a line in either format */
#define STOP_S 1

static atomic_int log_max = LOG_LVL_INFO; /* set by a reload while other threads log */
static atomic_bool as_json;
static bool to_journal;

const char *const log_level_words[] = { "error", "warning", "notice", "info", "debug" };

void
log_init(enum log_level level)
{
	/* journald gives the device and inode of its socket; stderr may have been redirected since. */
	const char *env = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	log_set_level(level);
	to_journal = env != NULL && sscanf(env, "%llu:%llu", &dev, &ino) == 2 && fstat(STDERR_FILENO, &st) == 0 &&
	    st.st_dev == dev && st.st_ino == ino;
}

void
log_set_level(enum log_level level)
{
	atomic_store_explicit(&log_max, (int)level, memory_order_relaxed);
}

bool
log_is_on(enum log_level level)
{
	return (int)level <= atomic_load_explicit(&log_max, memory_order_relaxed);
}

const char *
log_time(long long ms_ago, char buf[LOG_TIME_LEN])
{
	struct timespec ts;
	struct tm tm;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	const long long ms = ts.tv_sec * 1000LL + ts.tv_nsec / 1000000 - ms_ago;
	const time_t s = (time_t)(ms / 1000);
	(void)gmtime_r(&s, &tm);
	const size_t n = strftime(buf, LOG_TIME_LEN, "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(buf + n, LOG_TIME_LEN - n, ".%03lldZ", ms % 1000);
	return buf;
}

void
log_set_json(bool json)
{
	atomic_store_explicit(&as_json, json, memory_order_relaxed);
}

bool
log_is_json(void)
{
	return atomic_load_explicit(&as_json, memory_order_relaxed);
}

bool
log_is_journal(void)
{
	return to_journal;
}

int
log_priority(enum log_level level)
{
	return LOG_ERR + (int)level;
}

/* <syslog priority> for journald, otherwise time and level. */
static size_t
put_prefix(char *line, size_t cap, enum log_level level)
{
	struct timespec ts;
	struct tm tm;
	size_t n;

	if (to_journal)
		return (size_t)snprintf(line, cap, "<%d>", log_priority(level));
	if (log_is_json())
		return 0;
	(void)clock_gettime(CLOCK_REALTIME, &ts);
	(void)localtime_r(&ts.tv_sec, &tm);
	n = strftime(line, cap, "%Y-%m-%d %H:%M:%S", &tm);
	n += (size_t)snprintf(line + n, cap - n, ".%03ld %s: ", ts.tv_nsec / 1000000, log_level_words[level]);
	return n;
}

/* Marks add no conversion: the compiler checks the arguments by fmt. */
static const char *__attribute__((format_arg(1))) with_marks(const char *fmt, const char *marked, unsigned marks)
{
	return marks > 0 ? marked : fmt;
}

static size_t __attribute__((format(printf, 3, 0)))
put_json(char *line, enum log_level level, const char *fmt, va_list ap)
{
	char marked[LINE_MAX_LEN], text[LINE_MAX_LEN];
	const unsigned marks = log_json_mark(fmt, marked, sizeof(marked));
	const size_t at = put_prefix(line, LINE_BYTES, level);
	const int len = vsnprintf(text, sizeof(text), with_marks(fmt, marked, marks), ap);

	if (len < 0)
		return 0;
	if ((size_t)len >= sizeof(text))
		memcpy(text + sizeof(text) - 4, "...", 4);
	return at + log_json_line(line + at, level, text, marks);
}

/* Formats the line with its newline, in LINE_BYTES bytes; returns its length, 0 on failure. */
static size_t __attribute__((format(printf, 3, 0)))
put_line(char *line, enum log_level level, const char *fmt, va_list ap)
{
	if (log_is_json())
		return put_json(line, level, fmt, ap);

	size_t at = put_prefix(line, LINE_MAX_LEN, level);
	int len = vsnprintf(line + at, LINE_MAX_LEN - at, fmt, ap);
	size_t end;

	if (len < 0)
		return 0;
	end = at + (size_t)len;
	if (end > LINE_MAX_LEN - 1) {
		end = LINE_MAX_LEN - 1;
		line[end - 1] = line[end - 2] = line[end - 3] = '.';
	}
	for (size_t i = at; i < end; i++)
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
			line[i] = '?';
	line[end] = '\n';
	return end + 1;
}

static void
hand_over(const struct log_record *r)
{
	/* A failed write cannot be logged. */
	if (r->line_len > 0 && !log_writer_put(r))
		(void)log_write(r);
}

static void __attribute__((format(printf, 2, 0))) log_line(enum log_level level, const char *fmt, va_list ap)
{
	char line[LINE_BYTES];

	hand_over(&(struct log_record){ .entry = "", .line = line, .line_len = put_line(line, level, fmt, ap) });
}

static size_t __attribute__((format(printf, 3, 4))) put_words(char *line, enum log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	size_t len = put_line(line, level, fmt, ap);
	va_end(ap);
	return len;
}

void
log_entry(enum log_level level, const char *text, log_send_fn send, const char *entry)
{
	char line[LINE_BYTES];

	hand_over(&(struct log_record){ .send = send,
	    .entry = entry,
	    .entry_len = strlen(entry),
	    .line = line,
	    .line_len = put_words(line, level, "%s", text) });
}

void
log_fields(enum log_level level, const char *message, const struct log_field *fields, unsigned cnt)
{
	char line[LINE_BYTES];
	const size_t at = put_prefix(line, sizeof(line), level);

	hand_over(&(struct log_record){
	    .entry = "", .line = line, .line_len = at + log_json_fields(line + at, level, message, fields, cnt) });
}

static bool
report_lost(uint64_t cnt)
{
	char line[LINE_BYTES];

	return log_write(&(struct log_record){ .line = line,
	    .line_len = put_words(line, LOG_LVL_WARNING, "log lines lost: count=%llu", (unsigned long long)cnt) });
}

int
log_start(void)
{
	return log_writer_start(report_lost);
}

struct log_counters
log_counters(void)
{
	return (struct log_counters){ .lines_lost = log_writer_lost() };
}

void
log_stop(void)
{
	log_writer_stop(STOP_S);
}

void
log_msg(enum log_level level, const char *fmt, ...)
{
	va_list ap;

	if (!log_is_on(level))
		return;
	va_start(ap, fmt);
	log_line(level, fmt, ap);
	va_end(ap);
}

bool
log_limit_take(struct log_limit *l, int64_t now_ns, uint64_t *left_out)
{
	*left_out = 0;
	if (l->cnt == 0 || now_ns - l->since_ns >= (int64_t)l->interval_ms * 1000000) {
		*left_out = l->dropped;
		l->since_ns = now_ns;
		l->cnt = 0;
		l->dropped = 0;
	}
	if (l->cnt >= l->burst) {
		l->dropped++;
		return false;
	}
	l->cnt++;
	return true;
}

void
log_left_out(enum log_level level, uint64_t cnt)
{
	log_msg(level, "similar log lines suppressed: count=%llu", (unsigned long long)cnt);
}

void
log_limited(struct log_limit *l, int64_t now_ns, enum log_level level, const char *fmt, ...)
{
	uint64_t left_out;
	va_list ap;

	if (!log_is_on(level) || !log_limit_take(l, now_ns, &left_out))
		return;
	if (left_out > 0)
		log_left_out(level, left_out);
	va_start(ap, fmt);
	log_line(level, fmt, ap);
	va_end(ap);
}
