/* See str.h. */
#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void
str_append(char *buf, size_t cap, const char *fmt, ...)
{
	size_t len = strlen(buf);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(buf + len, cap - len, fmt, ap);
	va_end(ap);
}

unsigned
str_utf8_len(const char *text, uint32_t *cp)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *s = (const unsigned char *)text;

	if (s[0] < 0x80) {
		*cp = s[0];
		return 1;
	}
	unsigned n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	*cp = s[0] & (0x7fu >> n);
	for (unsigned i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80) /* also at the end of the string */
			return 0;
		*cp = *cp << 6 | (s[i] & 0x3f);
	}
	if (*cp < least[n] || *cp > 0x10ffff || (*cp >= 0xd800 && *cp <= 0xdfff))
		return 0;
	return n;
}

unsigned
str_json_char(const char *text, char out[STR_JSON_MAX], size_t *len)
{
	uint32_t cp = 0;
	const unsigned n = str_utf8_len(text, &cp);

	if (n == 0)
		cp = 0xfffd;
	if (cp == '"' || cp == '\\') {
		out[0] = '\\';
		out[1] = (char)cp;
		*len = 2;
	} else if (n == 0 || cp < 0x20 || (cp >= 0x7f && cp < 0xa0)) {
		*len = (size_t)snprintf(out, STR_JSON_MAX, "\\u%04x", (unsigned)cp);
	} else {
		memcpy(out, text, n);
		*len = n;
	}
	return n == 0 ? 1 : n;
}

const char *
str_word(const struct str_word *words, size_t cnt, uint32_t value, const char *otherwise)
{
	for (size_t i = 0; i < cnt; i++)
		if (words[i].value == value)
			return words[i].text;
	return otherwise;
}
