/* Messages about a configuration, each with its file and line. The load finds mistakes in another order, so they are
 * kept and printed at its end, sorted by place. See config_int.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config/config_int.h"

#define STEP 64

struct config_msg {
	unsigned place, nr;
	const char *kind;
	char *text;
};

static const char *
path_of(const struct config *cfg, const char *main_path, unsigned place)
{
	const unsigned file = place >> 16;

	return file > 0 && file <= cfg->included_cnt ? cfg->included[file - 1] : main_path;
}

static void
print_place(FILE *out, const char *path, unsigned place, const char *kind)
{
	fputs(path, out);
	if ((place & 0xffff) > 0)
		fprintf(out, ":%u", place & 0xffff);
	fprintf(out, ": %s", kind);
}

static void __attribute__((format(printf, 4, 0)))
report(struct config_build *b, unsigned place, const char *kind, const char *fmt, va_list ap)
{
	struct config_msg *more = b->msgs;
	char *text;

	if (b->msg_cnt % STEP == 0)
		more = realloc(b->msgs, (b->msg_cnt + STEP) * sizeof(*more));
	if (more != NULL)
		b->msgs = more;
	if (more == NULL || vasprintf(&text, fmt, ap) < 0) {
		fprintf(b->err, "%s: out of memory for messages\n", b->path);
		return;
	}
	b->msgs[b->msg_cnt] = (struct config_msg){ .place = place, .nr = b->msg_cnt, .kind = kind, .text = text };
	b->msg_cnt++;
}

void
config_error(struct config_build *b, unsigned place, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	report(b, place, "", fmt, ap);
	va_end(ap);
	b->errors++;
}

void
config_warning(struct config_build *b, unsigned place, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	report(b, place, "warning: ", fmt, ap);
	va_end(ap);
}

/* By file, the main one first, by line, then in the order of reports. */
static int
compare(const void *at_a, const void *at_b)
{
	const struct config_msg *a = at_a, *b = at_b;

	if (a->place != b->place)
		return a->place < b->place ? -1 : 1;
	return a->nr < b->nr ? -1 : a->nr > b->nr;
}

/* The services of a range repeat the same message. */
static bool
is_duplicate(const struct config_msg *msgs, unsigned i)
{
	for (unsigned k = i; k-- > 0 && msgs[k].place == msgs[i].place;)
		if (strcmp(msgs[k].text, msgs[i].text) == 0)
			return true;
	return false;
}

void
config_tell(struct config_build *b)
{
	if (b->msg_cnt > 0)
		qsort(b->msgs, b->msg_cnt, sizeof(b->msgs[0]), compare);
	for (unsigned i = 0; i < b->msg_cnt; i++) {
		const struct config_msg *msg = &b->msgs[i];

		if (is_duplicate(b->msgs, i))
			continue;
		print_place(b->err, path_of(b->cfg, b->path, msg->place), msg->place, msg->kind);
		fprintf(b->err, "%s\n", msg->text);
	}
	for (unsigned i = 0; i < b->msg_cnt; i++)
		free(b->msgs[i].text);
	free(b->msgs);
	b->msgs = NULL;
	b->msg_cnt = 0;
}

void
config_advise(const struct config *cfg, unsigned place, FILE *out, const char *fmt, ...)
{
	va_list ap;

	print_place(out, path_of(cfg, cfg->path, place), place, "warning: ");
	va_start(ap, fmt);
	vfprintf(out, fmt, ap);
	va_end(ap);
	fputc('\n', out);
}

const char *
config_there(const struct config_build *b, const config_setting_t *here, const config_setting_t *other,
    const char *name, char buf[CONFIG_THERE_MAX])
{
	const unsigned place = config_line(other, name);

	if (config_line(here, name) >> 16 == place >> 16)
		snprintf(buf, CONFIG_THERE_MAX, "line %u", place & 0xffff);
	else
		snprintf(buf, CONFIG_THERE_MAX, "%s:%u", path_of(b->cfg, b->path, place), place & 0xffff);
	return buf;
}
