/* Messages about a configuration file; see config_report.h. */
#include "daemon/config/config_report.h"

#include <libconfig.h>
#include <stdarg.h>

static void __attribute__((format(printf, 4, 0)))
report(struct config_report *rep, unsigned line, const char *kind, const char *fmt, va_list ap)
{
	if (line > 0)
		fprintf(rep->err, "%s:%u: %s", rep->path, line, kind);
	else
		fprintf(rep->err, "%s: %s", rep->path, kind);
	vfprintf(rep->err, fmt, ap);
	fputc('\n', rep->err);
}

void
config_error(struct config_report *rep, unsigned line, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	report(rep, line, "", fmt, ap);
	va_end(ap);
	rep->errors++;
}

void
config_warning(struct config_report *rep, unsigned line, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	report(rep, line, "warning: ", fmt, ap);
	va_end(ap);
}

unsigned
config_line(const config_setting_t *group, const char *name)
{
	const config_setting_t *s = config_member(group, name);

	if (s == NULL)
		s = group;
	return s != NULL ? config_setting_source_line(s) : 0;
}

const config_setting_t *
config_member(const config_setting_t *group, const char *name)
{
	return group != NULL ? config_setting_get_member(group, name) : NULL;
}
