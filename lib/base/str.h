/* Text put together piece by piece. */
#pragma once

#include <stddef.h>

/* Behind what is in buf already; cut off where it ends. cap: of buf, its NUL included. */
void str_append(char *buf, size_t cap, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
