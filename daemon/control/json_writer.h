/* Writes JSON in pieces into an output buffer: typed, integers only, always valid UTF-8. Used by every answer of the control socket.
 * Wrong nesting and a missing or needless key are asserted; a full buffer is seen in outbuf.overflow. (Named jw_ because jansson,
 * linked beside it, has json_object() and the like.) */
#pragma once

#include <inttypes.h>
#include <stdbool.h>

#include "daemon/control/outbuf.h"

#define JSON_WRITER_DEPTH 16

/* A text starts with a zeroed writer that has a buffer. */
struct json_writer {
	struct outbuf *out;
	unsigned depth;

	struct {
		char kind; /* '{' or '[' */
		bool first;
	} level[JSON_WRITER_DEPTH];
};

/* In an object every value has a key, in an array and at the top none (NULL). */
void jw_open(struct json_writer *, const char *key, char kind);
void jw_close(struct json_writer *, char kind);
#define jw_object(w, key) jw_open(w, key, '{')
#define jw_object_end(w) jw_close(w, '{')
#define jw_array(w, key) jw_open(w, key, '[')
#define jw_array_end(w) jw_close(w, '[')

/* NULL is written as ""; bytes that are no UTF-8 become U+FFFD. */
void jw_string(struct json_writer *, const char *key, const char *val);
/* A value of up to 23 characters that is written as it is. */
void jw_format(struct json_writer *, const char *key, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
#define jw_uint(w, key, val) jw_format(w, key, "%" PRIu64, (uint64_t)(val))
#define jw_int(w, key, val) jw_format(w, key, "%" PRId64, (int64_t)(val))
#define jw_bool(w, key, val) jw_format(w, key, (val) ? "true" : "false")
#define jw_null(w, key) jw_format(w, key, "null")

/* Ends the text with a newline; all levels are closed by now. */
void jw_end(struct json_writer *);
