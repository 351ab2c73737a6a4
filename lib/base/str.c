/* Text put together piece by piece: see str.h. Used by whoever words lines, reports and tables. */
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
