/* Text building, UTF-8, numbers in words. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct str_word {
	uint32_t value;
	const char *text;
};

/* Appends to the text in buf, truncated to cap bytes, NUL included. */
void str_append(char *buf, size_t cap, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Length of the UTF-8 sequence at text (Unicode 15, table 3-7), its code point in *cp; 0: invalid, or cut by a NUL. */
unsigned str_utf8_len(const char *text, uint32_t *cp);
#define STR_JSON_MAX 8
/* The first character of the text as it stands in a JSON string: control characters escaped, including C1, as a terminal that shows the
 * text must not obey it; U+FFFD for a byte that is no UTF-8. Returns the bytes that it takes; *len: of out. */
unsigned str_json_char(const char *text, char out[STR_JSON_MAX], size_t *len);
/* The text of a value; `otherwise` when it is not in the table. */
const char *str_word(const struct str_word *, size_t cnt, uint32_t value, const char *otherwise);
