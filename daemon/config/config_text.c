/* The configuration file as a text: the lines of settings, and a look at it before libconfig gets it, which knows just enough of
 * libconfig's grammar to tell strings, comments, names and numbers apart. See config_int.h. */
#include <ctype.h>
#include <errno.h>
#include <libconfig.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config/config_char.h"
#include "daemon/config/config_grammar.h"
#include "daemon/config/config_int.h"

#define LINES_MAX 65000 /* libconfig counts lines in 16 bits */

/* -- places of settings -- */

unsigned
config_place_of(const config_setting_t *s)
{
	const config_setting_t *root = s;

	while (config_setting_parent(root) != NULL)
		root = config_setting_parent(root);
	return config_place((unsigned)(uintptr_t)config_setting_get_hook(root), config_setting_source_line(s));
}

unsigned
config_line(const config_setting_t *group, const char *name)
{
	const config_setting_t *s = config_member(group, name);

	if (s == NULL)
		s = group;
	return s != NULL ? config_place_of(s) : 0;
}

const config_setting_t *
config_member(const config_setting_t *group, const char *name)
{
	return group != NULL ? config_setting_get_member(group, name) : NULL;
}

/* -- the text -- */

struct scan {
	struct config_build *b;
	const char *seen; /* `line` counts up to here */
	unsigned line;
};

/* The place of p, which is not before any that was asked for. */
static unsigned
place_of(struct scan *s, const char *p)
{
	for (; s->seen < p; s->seen++)
		s->line += *s->seen == '\n';
	return config_place(s->b->reading, s->line);
}

/* Numbers without the suffix L have to fit in 32 bits (libconfig 1.5 would wrap them), with it in 64. */
static const char *
scan_number(struct scan *s, const char *from)
{
	const char *digits = from + (*from == '-' || *from == '+');
	bool is_hex = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
	unsigned long long n;
	char *p;

	errno = 0;
	n = strtoull(digits, &p, is_hex ? 16 : 10);
	if (p == digits)
		return digits; /* a sign alone */
	if (*p == '.' || *p == 'e' || *p == 'E') {
		while (isalnum((unsigned char)*p) || *p == '.' || *p == '+' || *p == '-')
			p++;
		return p; /* a fraction: wrong type everywhere */
	}
	if (errno == ERANGE || n > (*p == 'L' ? (unsigned long long)LLONG_MAX : INT_MAX))
		config_error(
		    s->b, place_of(s, from), "number out of range: %.*s", (int)(p - from < 40 ? p - from : 40), from);
	for (unsigned i = 0; i < 2 && *p == 'L'; i++)
		p++;
	return p;
}

/* A string, from one quotation mark to the other; an error is about the line of the first. */
static const char *
scan_string(struct scan *s, const char *from)
{
	const char *p = from + 1;

	while (*p != '\0' && *p != '"')
		p += p[0] == '\\' && p[1] != '\0' ? 2 : 1;
	if (*p == '"')
		return p + 1;
	config_error(s->b, place_of(s, from), "string without end");
	return p;
}

/* The comment at p, or what only libconfig's own includes have; NULL when there is none. */
static const char *
skip_comment(struct scan *s, const char *p)
{
	const char *end;

	if (*p == '@')
		config_error(s->b, place_of(s, p), "@include is not supported");
	if (*p == '#' || *p == '@' || strncmp(p, "//", 2) == 0)
		return p + strcspn(p, "\n");
	if (strncmp(p, "/*", 2) != 0)
		return NULL;
	end = strstr(p + 2, "*/");
	if (end == NULL)
		config_error(s->b, place_of(s, p), "comment without end");
	return end != NULL ? end + 2 : p + strlen(p);
}

/* The end of the token at p, and of which kind it is. */
static const char *
scan_token(struct scan *s, const char *p, enum grammar_token *token)
{
	if (*p == '"') {
		*token = GRAMMAR_STRING;
		return scan_string(s, p);
	}
	if (isalpha((unsigned char)*p) || *p == '*') {
		*token = GRAMMAR_NAME;
		while (isalnum((unsigned char)*p) || *p == '_' || *p == '-' || *p == '*')
			p++;
		return p;
	}
	if (isdigit((unsigned char)*p) || *p == '-' || *p == '+') {
		*token = GRAMMAR_NUMBER;
		return scan_number(s, p);
	}
	*token = GRAMMAR_MARK;
	return p + config_char_len(p);
}

void
config_scan(struct config_build *b, const char *text, size_t len)
{
	struct scan s = { .b = b, .seen = text, .line = 1 };
	struct grammar g = { .b = b };
	enum grammar_token token;
	const char *p = text, *end;

	if (strlen(text) != len || config_char_is_utf16(text, len)) {
		config_error(b, config_place(b->reading, 0),
		    config_char_is_utf16(text, len) ? "is UTF-16: save it as UTF-8"
		                                    : "has a NUL byte: not a configuration file");
		return;
	}
	while (*p != '\0') {
		unsigned place, errors = b->errors;

		end = skip_comment(&s, p);
		if (end == NULL && isspace((unsigned char)*p))
			end = p + 1;
		if (end != NULL) {
			p = end;
			continue;
		}
		place = place_of(&s, p);
		end = scan_token(&s, p, &token);
		/* What comes behind a string without end is in it. */
		g.lost = g.lost || (token == GRAMMAR_STRING && b->errors > errors);
		grammar_take(&g, token, p, (size_t)(end - p), place);
		p = end;
	}
	grammar_end(&g, place_of(&s, p));
	if (s.line > LINES_MAX)
		config_error(b, config_place(b->reading, 0), "has more than %d lines", LINES_MAX);
}
