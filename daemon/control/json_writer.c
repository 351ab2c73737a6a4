/* JSON in pieces; see json_writer.h. */
#include "daemon/control/json_writer.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

static void
put_str(struct json_writer *w, const char *s)
{
	outbuf_put(w->out, s, strlen(s));
}

/* A character that is not plain; returns how many bytes of s it takes. */
static unsigned
put_special(struct json_writer *w, const unsigned char *s)
{
	uint32_t cp = 0;
	unsigned n = str_utf8_len((const char *)s, &cp);
	char esc[8];

	if (n == 0) {
		put_str(w, "\\ufffd");
		return 1;
	}
	if (cp == '"' || cp == '\\') {
		outbuf_putc(w->out, '\\');
		outbuf_putc(w->out, (char)cp);
	} else if (cp < 0x20 || (cp >= 0x7f && cp < 0xa0)) {
		/* Control characters, including C1: a terminal that shows the text must not obey it. */
		snprintf(esc, sizeof(esc), "\\u%04x", (unsigned)cp);
		put_str(w, esc);
	} else {
		outbuf_put(w->out, s, n);
	}
	return n;
}

static void
put_quoted(struct json_writer *w, const char *val)
{
	const unsigned char *s = (const unsigned char *)val;

	outbuf_putc(w->out, '"');
	for (;;) {
		size_t n = 0;

		/* Plain characters in one piece. */
		while (s[n] >= 0x20 && s[n] < 0x7f && s[n] != '"' && s[n] != '\\')
			n++;
		outbuf_put(w->out, s, n);
		s += n;
		if (*s == '\0')
			break;
		s += put_special(w, s);
	}
	outbuf_putc(w->out, '"');
}

/* Comma and key in front of a value. */
static void
begin_value(struct json_writer *w, const char *key)
{
	if (w->depth == 0) {
		assert(key == NULL);
		return;
	}
	assert((key != NULL) == (w->level[w->depth - 1].kind == '{'));
	if (!w->level[w->depth - 1].first)
		outbuf_putc(w->out, ',');
	w->level[w->depth - 1].first = false;
	if (key != NULL) {
		put_quoted(w, key);
		outbuf_putc(w->out, ':');
	}
}

void
jw_open(struct json_writer *w, const char *key, char kind)
{
	begin_value(w, key);
	assert(w->depth < JSON_WRITER_DEPTH);
	w->level[w->depth].kind = kind;
	w->level[w->depth].first = true;
	w->depth++;
	outbuf_putc(w->out, kind);
}

void
jw_close(struct json_writer *w, char kind)
{
	assert(w->depth > 0 && w->level[w->depth - 1].kind == kind);
	w->depth--;
	outbuf_putc(w->out, kind == '{' ? '}' : ']');
}

void
jw_string(struct json_writer *w, const char *key, const char *val)
{
	begin_value(w, key);
	put_quoted(w, val != NULL ? val : "");
}

void
jw_format(struct json_writer *w, const char *key, const char *fmt, ...)
{
	char word[24];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(word, sizeof(word), fmt, ap);
	va_end(ap);
	begin_value(w, key);
	put_str(w, word);
}

void
jw_end(struct json_writer *w)
{
	assert(w->depth == 0);
	outbuf_putc(w->out, '\n');
}
