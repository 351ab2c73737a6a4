/* See config_char.h. */
#include "daemon/config/config_char.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

/* Names of Unicode, of the characters that look like ASCII or like nothing. */
static const struct {
	uint32_t cp;
	bool quote;
	const char *name;
} names[] = {
	{ 0x00a0, false, "no-break space" },
	{ 0x00ab, true, "left-pointing double angle quotation mark" },
	{ 0x00ad, false, "soft hyphen" },
	{ 0x00bb, true, "right-pointing double angle quotation mark" },
	{ 0x200b, false, "zero width space" },
	{ 0x200c, false, "zero width non-joiner" },
	{ 0x200d, false, "zero width joiner" },
	{ 0x200e, false, "left-to-right mark" },
	{ 0x2010, false, "hyphen" },
	{ 0x2011, false, "non-breaking hyphen" },
	{ 0x2013, false, "en dash" },
	{ 0x2014, false, "em dash" },
	{ 0x2018, true, "left single quotation mark" },
	{ 0x2019, true, "right single quotation mark" },
	{ 0x201a, true, "single low-9 quotation mark" },
	{ 0x201c, true, "left double quotation mark" },
	{ 0x201d, true, "right double quotation mark" },
	{ 0x201e, true, "double low-9 quotation mark" },
	{ 0x201f, true, "double high-reversed-9 quotation mark" },
	{ 0x2028, false, "line separator" },
	{ 0x202f, false, "narrow no-break space" },
	{ 0x2212, false, "minus sign" },
	{ 0x3000, false, "ideographic space" },
	{ 0xfeff, false, "byte order mark" },
};

size_t
config_char_mark_len(const char *text)
{
	return strncmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

bool
config_char_is_utf16(const char *text, size_t len)
{
	if (len < 2)
		return false;
	return memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0 ||
	    (text[0] == '\0') != (text[1] == '\0');
}

size_t
config_char_len(const char *text)
{
	uint32_t cp;
	unsigned len = str_utf8_len(text, &cp);

	return len > 0 ? len : 1;
}

/* The entry of the character at text; the number of entries when it has no name. */
static size_t
find(const char *text)
{
	uint32_t cp;
	size_t i = 0;

	if (str_utf8_len(text, &cp) == 0)
		return sizeof(names) / sizeof(names[0]);
	while (i < sizeof(names) / sizeof(names[0]) && names[i].cp != cp)
		i++;
	return i;
}

bool
config_char_is_quote(const char *text)
{
	size_t i = find(text);

	return i < sizeof(names) / sizeof(names[0]) && names[i].quote;
}

const char *
config_char_name(const char *text, char *buf, size_t cap)
{
	uint32_t cp;
	size_t i = find(text);

	if (str_utf8_len(text, &cp) < 2)
		(void)snprintf(buf, cap, "byte 0x%02X", (unsigned char)*text);
	else if (i < sizeof(names) / sizeof(names[0]))
		(void)snprintf(buf, cap, "U+%04X, %s", (unsigned)cp, names[i].name);
	else
		(void)snprintf(buf, cap, "U+%04X", (unsigned)cp);
	return buf;
}
