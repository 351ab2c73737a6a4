/* JSON in pieces; see json_writer.h. */
#include "daemon/control/json_writer.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

static void
put_quoted(struct json_writer *w, const char *val)
{
	const unsigned char *s = (const unsigned char *)val;
	char escaped[STR_JSON_MAX];
	size_t len;

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
		s += str_json_char((const char *)s, escaped, &len);
		outbuf_put(w->out, escaped, len);
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
	outbuf_put(w->out, word, strlen(word));
}

void
jw_end(struct json_writer *w)
{
	assert(w->depth == 0);
	outbuf_putc(w->out, '\n');
}
