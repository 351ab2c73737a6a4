/* Characters that have no place in a configuration but in strings and comments, and come along when a text is copied or
 * saved by other programs: their names for messages. Called by config_text.c, config_grammar.c, config_files.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the UTF-8 byte order mark that the text begins with: 3 or 0. */
size_t config_char_mark_len(const char *text);
/* Does the text begin as UTF-16, with a byte order mark or without? It ends with a NUL at text[len]. */
bool config_char_is_utf16(const char *text, size_t len);
/* Bytes of the character at text, 1 when it is no UTF-8. */
size_t config_char_len(const char *text);
/* Is it what editors and web pages make of plain quotes? */
bool config_char_is_quote(const char *text);
/* "U+00A0, no-break space", "U+0436", or "byte 0xA0" when it is no UTF-8 or a control character. Returns buf. */
const char *config_char_name(const char *text, char *buf, size_t cap);
