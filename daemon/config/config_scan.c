/* Checks the text of a file before libconfig parses it, for errors that libconfig 1.5 accepts or reports only as
 * "syntax error". Distinguishes strings, comments, words and numbers, without the grammar. See config_int.h. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "daemon/config/config_int.h"

#define LINES_MAX 65000 /* libconfig counts lines in 16 bits */
#define WHAT_MAX 160
#define DIGITS "0123456789abcdefxABCDEFXL"
#define WORD "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-*"

/* Names of Unicode characters that look like ASCII or are invisible. */
static const struct {
	uint32_t cp;
	const char *name;
} names[] = { { 0x00a0, "no-break space" }, { 0x00ab, "left-pointing double angle quotation mark" },
	{ 0x00ad, "soft hyphen" }, { 0x00bb, "right-pointing double angle quotation mark" },
	{ 0x200b, "zero width space" }, { 0x200c, "zero width non-joiner" }, { 0x200d, "zero width joiner" },
	{ 0x200e, "left-to-right mark" }, { 0x2010, "hyphen" }, { 0x2011, "non-breaking hyphen" },
	{ 0x2013, "en dash" }, { 0x2014, "em dash" }, { 0x2018, "left single quotation mark" },
	{ 0x2019, "right single quotation mark" }, { 0x201a, "single low-9 quotation mark" },
	{ 0x201c, "left double quotation mark" }, { 0x201d, "right double quotation mark" },
	{ 0x201e, "double low-9 quotation mark" }, { 0x201f, "double high-reversed-9 quotation mark" },
	{ 0x2028, "line separator" }, { 0x202f, "narrow no-break space" }, { 0x2212, "minus sign" },
	{ 0x3000, "ideographic space" }, { 0xfeff, "byte order mark" } };

/* A character that starts no setting: "U+00A0, no-break space", "U+0436", "byte 0xA0" (control or no UTF-8). */
static void
name_char(const char *text, char what[WHAT_MAX])
{
	uint32_t cp;
	const bool is_utf8 = str_utf8_len(text, &cp) >= 2;

	snprintf(what, WHAT_MAX, is_utf8 ? "U+%04X" : "byte 0x%02X", is_utf8 ? (unsigned)cp : (unsigned char)*text);
	for (size_t i = 0; is_utf8 && i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].cp == cp)
			str_append(what, WHAT_MAX, ", %s", names[i].name);
	str_append(what, WHAT_MAX, " is allowed only in comments and \"strings\"");
}

/* After the string that starts here; NULL: it has no end. */
static const char *
skip_string(const char *p)
{
	for (p++; *p != '"'; p++) {
		if (*p == '\\' && p[1] != '\0')
			p++;
		if (*p == '\0')
			return NULL;
	}
	return p + 1;
}

/* After the comment that starts here, or p without one; NULL: it has no end. */
static const char *
skip_comment(const char *p)
{
	if (*p == '#' || strncmp(p, "//", 2) == 0)
		return p + strcspn(p, "\n");
	if (strncmp(p, "/*", 2) != 0)
		return p;
	p = strstr(p + 2, "*/");
	return p != NULL ? p + 2 : NULL;
}

/* An integer has to fit in 32 bits, or 64 with the suffix L: libconfig 1.5 would wrap it. NULL: it does not fit. */
static const char *
skip_integer(const char *p)
{
	const bool is_hex = p[0] == '0' && (p[1] == 'x' || p[1] == 'X');
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(p, &end, is_hex ? 16 : 10);
	return errno != 0 || n > (*end == 'L' ? (unsigned long long)LLONG_MAX : INT_MAX) ? NULL : end;
}

/* The first mistake, with its text; NULL: no mistake. */
static const char *
find_mistake(const char *p, char what[WHAT_MAX])
{
	while (*p != '\0') {
		const char *from = p, *why = NULL; /* NULL: the character itself */

		if (*p == '"') {
			why = "string without end";
			p = skip_string(p);
		} else if (isdigit((unsigned char)*p)) {
			why = "number out of range: ";
			p = skip_integer(p);
		} else if (*p == '@') {
			why = "@include is not supported";
			p = NULL;
		} else if (!isprint((unsigned char)*p) && !isspace((unsigned char)*p)) {
			p = NULL;
		} else {
			why = "comment without end";
			p = skip_comment(p);
		}
		if (p == NULL && why == NULL)
			name_char(from, what);
		else if (p == NULL)
			snprintf(what, WHAT_MAX, "%s%.*s", why, (int)strspn(from, DIGITS), from);
		if (p == NULL)
			return from;
		if (p == from)
			p += isalpha((unsigned char)*p) || *p == '*' ? strspn(p, WORD) : 1;
	}
	return NULL;
}

static unsigned
line_of(const char *text, const char *p)
{
	unsigned line = 1;

	while (text < p)
		line += *text++ == '\n';
	return line;
}

void
config_scan(struct config_build *b, const char *text, size_t len)
{
	char what[WHAT_MAX];
	const char *at;

	if (strncmp(text, "\xff\xfe", 2) == 0 || strncmp(text, "\xfe\xff", 2) == 0 ||
	    (len >= 2 && (text[0] == '\0') != (text[1] == '\0')))
		config_error(b, config_place(b->reading, 0), "is UTF-16: save it as UTF-8");
	else if (strlen(text) != len)
		config_error(b, config_place(b->reading, 0), "has a NUL byte: not a configuration file");
	else if ((at = find_mistake(text, what)) != NULL)
		config_error(b, config_place(b->reading, line_of(text, at)), "%s", what);
	else if (line_of(text, text + len) > LINES_MAX)
		config_error(b, config_place(b->reading, 0), "has more than %d lines", LINES_MAX);
}
