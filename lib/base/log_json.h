/* Log lines as JSON, an object each: time, level, message, and the fields of the line. Fields are found by marks that are set in the
 * format, so a value can neither end itself nor make another field. Used by log.c. */
#pragma once

#include "base/log.h"

#define LOG_JSON_TEXT_MAX 1024 /* of the text that a line is made of */
#define LOG_JSON_MAX 8192      /* of the line: six bytes for each of the text, time, level and names */

/* The format with marks at its fields, their quotes and their numbers. Returns the number of marks; 0: no fields, or no room for them. */
unsigned log_json_mark(const char *fmt, char *out, size_t cap);
/* The line, with its newline, of a text that such a format made. With other marks than those of the format it has no fields. Returns its
 * length. */
size_t log_json_line(char line[LOG_JSON_MAX], enum log_level, const char *text, unsigned marks);
/* The same of fields that are known. */
size_t log_json_fields(
    char line[LOG_JSON_MAX], enum log_level, const char *message, const struct log_field *, unsigned cnt);
