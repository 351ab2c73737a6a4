/*
 * Writes JSON in pieces into an output buffer: typed, no numbers but integers,
 * always valid UTF-8. Used by everything that answers on the control socket.
 * Wrong nesting, a missing or a needless key is the caller's mistake and
 * asserted; a full buffer is seen in outbuf.overflow. (Named jw_ because
 * jansson, linked beside it, has json_object() and the like.)
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/control/outbuf.h"

#define JSON_WRITER_DEPTH 16

struct json_writer {
	struct outbuf *out;
	unsigned depth;

	struct {
		char kind; /* '{' or '[' */
		bool first;
	} level[JSON_WRITER_DEPTH];
};

/* Starts a text; out is kept. */
void jw_init(struct json_writer *, struct outbuf *out);

/* In an object every value has a key, in an array and at the top none (NULL). */
void jw_object(struct json_writer *, const char *key);
void jw_object_end(struct json_writer *);
void jw_array(struct json_writer *, const char *key);
void jw_array_end(struct json_writer *);

/* NULL is written as an empty string; bytes that are no UTF-8 become U+FFFD. */
void jw_string(struct json_writer *, const char *key, const char *val);
void jw_uint(struct json_writer *, const char *key, uint64_t val);
void jw_int(struct json_writer *, const char *key, int64_t val);
void jw_bool(struct json_writer *, const char *key, bool val);
void jw_null(struct json_writer *, const char *key);

/* Ends the text with a newline; everything is closed by now. */
void jw_end(struct json_writer *);
