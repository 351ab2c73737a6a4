/* Text building and UTF-8. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Appends to the text in buf, truncated to cap bytes, NUL included. */
void str_append(char *buf, size_t cap, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Length of the UTF-8 sequence at text (Unicode 15, table 3-7), its code point in *cp; 0: invalid, or cut by a NUL. */
unsigned str_utf8_len(const char *text, uint32_t *cp);
