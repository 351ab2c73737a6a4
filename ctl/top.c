/* The view of smcrctl top; see top.h. */
#include "ctl/top.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/delta.h"
#include "ctl/show.h"
#include "ctl/template.h"
#include "ctl/text.h"

#define DIFF_MAX (INT64_MAX / 2000) /* so that the sum of two rates is a number, whatever the daemon says */

static int64_t
per_second(int64_t diff, int64_t ms)
{
	if (diff <= 0 || ms <= 0)
		return 0;
	return (diff < DIFF_MAX ? diff : DIFF_MAX) * 1000 / ms;
}

static int64_t
count_of(const json_t *item, const char *key)
{
	int64_t n = get_int(item, key);

	return n > 0 ? n : 0;
}

/* A service by its name, a connection by its ID. */
static const char *
top_key_of(const json_t *item, char id[24])
{
	snprintf(id, 24, "%" PRId64, get_int(item, "id"));
	return json_object_get(item, "name") != NULL ? get_string(item, "name") : id;
}

/* Copies of a list's items by their keys: what the next look compares with. */
static json_t *
top_by_key(const json_t *list)
{
	json_t *all = json_object();
	char id[24];

	for (size_t i = 0; i < json_array_size(list); i++)
		json_object_set_new(all, top_key_of(json_array_get(list, i), id), json_copy(json_array_get(list, i)));
	return all;
}

/* Lines of connections. */
static int
by_rate(const void *a, const void *b)
{
	const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
	int64_t rate_x = get_int(x, "rate_from") + get_int(x, "rate_to");
	int64_t rate_y = get_int(y, "rate_from") + get_int(y, "rate_to");
	int64_t id_x = get_int(x, "id"), id_y = get_int(y, "id");

	if (rate_x != rate_y)
		return rate_x < rate_y ? 1 : -1;
	return id_x < id_y ? -1 : id_x > id_y;
}

static bool
is_shown(const json_t *c, const char *key, const char *service)
{
	return service == NULL || strcmp(get_string(c, key), service) == 0;
}

/* A line of a table: the item, with rates where they are known, which takes two samples. */
static json_t *
line_of(const json_t *item, bool known, int64_t from, int64_t to)
{
	json_t *line = json_copy((json_t *)(uintptr_t)item);

	if (known) {
		json_object_set_new(line, "rate_from", json_integer(from));
		json_object_set_new(line, "rate_to", json_integer(to));
	}
	return line;
}

void
top_fini(struct top *t)
{
	json_decref(t->before);
	json_decref(t->services);
	t->before = t->services = NULL;
}

/* What another process has counted is nothing to compare with: all that this one has is new. */
static void
forget_another_daemon(struct top *t, const json_t *status)
{
	int64_t pid = get_int(status, "pid"), uptime_ms = get_int(status, "uptime_ms");

	if (pid != t->pid || uptime_ms < t->uptime_ms)
		top_fini(t);
	t->pid = pid;
	t->uptime_ms = uptime_ms;
}

/* clang-format off */
static const struct column service_columns[] = {
	{ LEFT, "SERVICE", "{name}" }, { LEFT, "STATE", SHOW_SERVICE_STATE }, { RIGHT, "CONNS", "{connections:n}" },
	{ RIGHT, "NEW/s", "{new}" }, { RIGHT, "FROM-APP", "{rate_from:b}/s" }, { RIGHT, "TO-APP", "{rate_to:b}/s" },
	{ 0 },
};

static const struct column flow_columns[] = {
	{ RIGHT, "ID", "{id:n}" }, { LEFT, "SERVICE", "{service}" }, { LEFT, "MODE", SHOW_MODE },
	{ RIGHT, "FROM-APP", "{rate_from:b}/s" }, { RIGHT, "TO-APP", "{rate_to:b}/s" }, { RIGHT, "AGE", "{age_ms:t}" },
	{ LEFT, "APPLICATION", "{app}" }, { LEFT, "PEER", "{peer}" },
	{ 0 },
};
/* clang-format on */

/* Counts also connections that began and ended between two samples. A reload may have removed a service and added it again.
 * An older daemon does not report bytes. */
static void
show_services(const struct top *t, FILE *f, const json_t *services, int64_t ms, const char *only)
{
	json_t *lines = json_array();
	char taken[HUMAN_MAX];

	for (size_t i = 0; i < json_array_size(services); i++) {
		const json_t *s = json_array_get(services, i),
		             *before = json_object_get(t->services, get_string(s, "name"));

		if (!is_shown(s, "name", only))
			continue;
		json_t *line = line_of(s, ms > 0 && json_is_integer(json_object_get(s, "bytes_from_app")),
		    per_second(delta_of(before, s, "bytes_from_app"), ms),
		    per_second(delta_of(before, s, "bytes_to_app"), ms));
		snprintf(taken, sizeof(taken), "%.1f", (double)delta_of(before, s, "accepted") * 1000 / (double)ms);
		if (ms > 0)
			json_object_set_new(line, "new", json_string(taken));
		json_array_append_new(lines, line);
	}
	show_columns(f, lines, service_columns, false);
	json_decref(lines);
}

void
top_show(struct top *t, FILE *f, const json_t *status, const json_t *connections, int64_t time_ms, const char *service)
{
	const json_t *list = json_object_get(connections, "connections"),
	             *services = json_object_get(status, "services");
	json_t **flows = calloc(json_array_size(list) + 1, sizeof(*flows)), *lines;
	int64_t ms = t->time_ms != 0 ? time_ms - t->time_ms : 0;
	size_t cnt = 0;
	char id[24];

	forget_another_daemon(t, status);
	/* A new connection moved all of its bytes since the last sample. */
	for (size_t i = 0; flows != NULL && i < json_array_size(list); i++) {
		const json_t *c = json_array_get(list, i), *before = json_object_get(t->before, top_key_of(c, id));

		if (is_shown(c, "service", service))
			flows[cnt++] = line_of(c, ms > 0,
			    per_second(count_of(c, "bytes_from_app") - count_of(before, "bytes_from_app"), ms),
			    per_second(count_of(c, "bytes_to_app") - count_of(before, "bytes_to_app"), ms));
	}
	template_print(f, status, "smcrd {version}, up {uptime_ms:t}[draining?, DRAINING]; ");
	fprintf(f, "%zu connection%s, ", cnt, plural((int64_t)cnt));
	template_print(f, status, "{groups:n} link group{groups:s}, {rss_bytes:b} resident\n\n");
	if (flows == NULL)
		return;
	show_services(t, f, services, ms, service);
	qsort(flows, cnt, sizeof(*flows), by_rate);
	fputc('\n', f);
	lines = json_array();
	for (size_t i = 0; i < cnt; i++) {
		if (t->rows == 0 || i < t->rows)
			json_array_append(lines, flows[i]);
		json_decref(flows[i]);
	}
	show_columns(f, lines, flow_columns, false);
	json_decref(lines);
	free(flows);
	top_fini(t);
	t->before = top_by_key(list);
	t->services = top_by_key(services);
	t->time_ms = time_ms;
}

static bool
has_item(const json_t *list, const char *key, const char *service)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (is_shown(json_array_get(list, i), key, service))
			return true;
	return false;
}

bool
top_knows(const json_t *status, const json_t *connections, const char *service)
{
	return service == NULL || has_item(json_object_get(status, "services"), "name", service) ||
	    has_item(json_object_get(connections, "connections"), "service", service);
}

void
top_paint(FILE *f, const char *text, unsigned rows, unsigned columns)
{
	fputs("\033[H", f);
	for (unsigned row = 0; *text != '\0' && row < rows; row++) {
		size_t len = strcspn(text, "\n"), bytes = 0;

		/* A character of several bytes is not cut in two. */
		for (unsigned col = 0; bytes < len && col < columns; col++)
			do
				bytes++;
			while (bytes < len && ((unsigned char)text[bytes] & 0xc0) == 0x80);
		fprintf(f, "%s%.*s\033[K", row > 0 ? "\r\n" : "", (int)bytes, text);
		text += len + (text[len] == '\n');
	}
	fputs("\033[J", f);
}
