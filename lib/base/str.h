/* Text put together piece by piece, and its characters. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Behind what is in buf already; cut off where it ends. cap: of buf, its NUL included. */
void str_append(char *buf, size_t cap, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Length of the UTF-8 sequence at text (Unicode 15, table 3-7), its code point in *cp; 0 when there is none. A NUL ends the text. */
unsigned str_utf8_len(const char *text, uint32_t *cp);
