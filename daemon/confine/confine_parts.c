/* What the parts of the confinement share. */
#include "daemon/confine/confine_parts.h"

#include <dirent.h>
#include <stdarg.h>

void
confine_part_set(struct confine_part_state *out, bool on, const char *fmt, ...)
{
	va_list ap;

	out->on = on;
	va_start(ap, fmt);
	(void)vsnprintf(out->text, sizeof(out->text), fmt, ap);
	va_end(ap);
}

unsigned
confine_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	const struct dirent *e;
	unsigned cnt = 0;

	if (d == NULL)
		return 1;
	while ((e = readdir(d)) != NULL)
		cnt += e->d_name[0] != '.';
	closedir(d);
	return cnt;
}
