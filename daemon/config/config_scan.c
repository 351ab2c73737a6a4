/* A look at the text before libconfig gets it: see config_scan in config_int.h. Knows just enough of libconfig's
 * grammar to tell strings, comments, names and numbers apart. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config/config_int.h"

#define DEPTH_MAX 8
#define LINES_MAX 65000 /* libconfig counts lines in 16 bits */

struct scan {
	struct config_report *rep;
	const char *p;
	const char *end;
	unsigned line;
	unsigned depth;
};

static bool
at(const struct scan *s, const char *text)
{
	size_t n = strlen(text);

	return (size_t)(s->end - s->p) >= n && memcmp(s->p, text, n) == 0;
}

static void
skip(struct scan *s, size_t n)
{
	while (n-- > 0 && s->p < s->end)
		if (*s->p++ == '\n')
			s->line++;
}

static void
scan_line_comment(struct scan *s)
{
	while (s->p < s->end && *s->p != '\n')
		s->p++;
}

/* A string or a comment, from its mark to the one that ends it. */
static void
scan_enclosed(struct scan *s, size_t mark_len, const char *end, const char *what)
{
	unsigned line = s->line;

	skip(s, mark_len);
	while (s->p < s->end && !at(s, end))
		skip(s, *s->p == '\\' && *end == '"' ? 2 : 1);
	if (s->p == s->end)
		config_error(s->rep, line, "%s without end", what);
	skip(s, mark_len);
}

/* Numbers without the suffix L have to fit in 32 bits (libconfig 1.5 would wrap them), with it in 64. */
static void
scan_number(struct scan *s)
{
	const char *from = s->p;
	bool is_hex, is_long;
	unsigned long long n;
	char *end;

	if (*s->p == '-' || *s->p == '+')
		s->p++;
	is_hex = at(s, "0x") || at(s, "0X");
	errno = 0;
	n = strtoull(s->p, &end, is_hex ? 16 : 10);
	if (end == s->p) {
		s->p++;
		return;
	}
	s->p = end;
	if (s->p < s->end && (*s->p == '.' || *s->p == 'e' || *s->p == 'E')) {
		while (s->p < s->end && (isalnum((unsigned char)*s->p) || strchr(".+-", *s->p) != NULL))
			s->p++;
		return; /* a fraction: wrong type everywhere */
	}
	is_long = s->p < s->end && *s->p == 'L';
	if (errno == ERANGE || n > (is_long ? (unsigned long long)LLONG_MAX : INT_MAX))
		config_error(
		    s->rep, s->line, "number out of range: %.*s", (int)(s->p - from < 40 ? s->p - from : 40), from);
}

static void
scan_token(struct scan *s)
{
	char c = *s->p;

	if (c == '#' || at(s, "//")) {
		scan_line_comment(s);
	} else if (at(s, "/*")) {
		scan_enclosed(s, 2, "*/", "comment");
	} else if (c == '"') {
		scan_enclosed(s, 1, "\"", "string");
	} else if (isalpha((unsigned char)c) || c == '*') {
		while (s->p < s->end && (isalnum((unsigned char)*s->p) || strchr("_-*", *s->p) != NULL))
			s->p++;
	} else if (isdigit((unsigned char)c) || c == '-' || c == '+') {
		scan_number(s);
	} else if (c == '@') {
		config_error(s->rep, s->line, "@include is not supported");
		scan_line_comment(s);
	} else {
		if (strchr("{([", c) != NULL && ++s->depth == DEPTH_MAX + 1)
			config_error(s->rep, s->line, "nested deeper than %d", DEPTH_MAX);
		else if (strchr("})]", c) != NULL && s->depth > 0)
			s->depth--;
		skip(s, 1);
	}
}

bool
config_scan(struct config_report *rep, const char *text, size_t len)
{
	struct scan s = { .rep = rep, .p = text, .end = text + len, .line = 1 };
	unsigned before = rep->errors;

	if (strlen(text) != len) {
		config_error(rep, 0, "has a NUL byte: not a configuration file");
		return false;
	}
	while (s.p < s.end)
		scan_token(&s);
	if (s.line > LINES_MAX)
		config_error(rep, 0, "has more than %d lines", LINES_MAX);
	return rep->errors == before;
}
