/* The view of smcrctl top; see top.h. */
#include "ctl/top.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/show.h"
#include "ctl/text.h"

/* A connection that is there. */
struct flow {
	const json_t *item;
	int64_t from, to; /* bytes a second, of the application and to it */
};

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

static void
key_of(const json_t *c, char buf[48])
{
	(void)snprintf(buf, 48, "%" PRId64, get_int(c, "id"));
}

static int
by_rate(const void *a, const void *b)
{
	const struct flow *x = a, *y = b;
	int64_t rate_x = x->from + x->to, rate_y = y->from + y->to;
	int64_t id_x = get_int(x->item, "id"), id_y = get_int(y->item, "id");

	if (rate_x != rate_y)
		return rate_x < rate_y ? 1 : -1;
	return id_x < id_y ? -1 : id_x > id_y;
}

static bool
is_shown(const json_t *c, const char *key, const char *service)
{
	return service == NULL || strcmp(get_string(c, key), service) == 0;
}

/* The connections of a service, NULL: all; *cnt of them. A new one moved all of its bytes since the last look. */
static struct flow *
measure(const struct top *t, const json_t *list, int64_t ms, const char *service, size_t *cnt)
{
	struct flow *flows = calloc(json_array_size(list) + 1, sizeof(*flows));
	char key[48];

	*cnt = 0;
	for (size_t i = 0; flows != NULL && i < json_array_size(list); i++) {
		const json_t *c = json_array_get(list, i);

		key_of(c, key);
		const json_t *before = json_object_get(t->before, key);
		if (!is_shown(c, "service", service))
			continue;
		flows[(*cnt)++] = (struct flow){
			.item = c,
			.from = per_second(count_of(c, "bytes_from_app") - count_of(before, "from"), ms),
			.to = per_second(count_of(c, "bytes_to_app") - count_of(before, "to"), ms),
		};
	}
	return flows;
}

static void
forget(struct top *t)
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
		forget(t);
	t->pid = pid;
	t->uptime_ms = uptime_ms;
}

static void
remember(struct top *t, const json_t *services, const json_t *list, int64_t time_ms)
{
	char key[48];

	forget(t);
	t->before = json_object();
	t->services = json_object();
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *c = json_array_get(list, i);
		json_t *bytes = json_object();

		json_object_set(bytes, "from", json_object_get(c, "bytes_from_app"));
		json_object_set(bytes, "to", json_object_get(c, "bytes_to_app"));
		key_of(c, key);
		json_object_set_new(t->before, key, bytes);
	}
	for (size_t i = 0; i < json_array_size(services); i++) {
		json_t *s = json_array_get(services, i);

		json_object_set_new(t->services, get_string(s, "name"), json_copy(s));
	}
	t->time_ms = time_ms;
}

/* "-" while there was but one look. */
static void
rate_cell(struct table *table, int64_t rate, bool known)
{
	char text[HUMAN_MAX + 2], num[HUMAN_MAX];

	snprintf(text, sizeof(text), "%s/s", human_bytes(num, (uint64_t)rate));
	table_cell(table, known ? text : "");
}

static void
number_cell(struct table *table, int64_t n)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64, n);
	table_cell(table, text);
}

/* What a service has counted since the look before. Below what it was there: a reload took it out and brought it back. */
static int64_t
counted(const json_t *before, const json_t *s, const char *key)
{
	int64_t a = count_of(before, key), b = count_of(s, key);

	return b >= a ? b - a : b;
}

/* All of its connections, also those that came and went between two looks. An older daemon does not tell their bytes. */
static void
show_service(struct table *table, const json_t *before, const json_t *s, int64_t ms)
{
	bool tells = ms > 0 && json_is_integer(json_object_get(s, "bytes_from_app"));
	double taken = ms > 0 ? (double)counted(before, s, "accepted") * 1000 / (double)ms : 0;
	char text[HUMAN_MAX];

	table_cell(table, get_string(s, "name"));
	table_cell(table, get_bool(s, "disabled") ? "disabled" : get_bool(s, "closed") ? "closed" : "open");
	number_cell(table, get_int(s, "connections"));
	snprintf(text, sizeof(text), "%.1f", taken);
	table_cell(table, ms > 0 ? text : "");
	rate_cell(table, per_second(counted(before, s, "bytes_from_app"), ms), tells);
	rate_cell(table, per_second(counted(before, s, "bytes_to_app"), ms), tells);
}

static void
show_services(const struct top *t, FILE *f, const json_t *services, int64_t ms, const char *only)
{
	struct table table = { 0 };

	table_column(&table, "SERVICE", false);
	table_column(&table, "STATE", false);
	table_column(&table, "CONNS", true);
	table_column(&table, "NEW/s", true);
	table_column(&table, "FROM-APP", true);
	table_column(&table, "TO-APP", true);
	for (size_t i = 0; i < json_array_size(services); i++) {
		const json_t *s = json_array_get(services, i);

		if (is_shown(s, "name", only))
			show_service(&table, json_object_get(t->services, get_string(s, "name")), s, ms);
	}
	table_print(&table, f);
	table_fini(&table);
}

static void
show_flows(FILE *f, const struct flow *flows, size_t cnt, bool known)
{
	struct table table = { 0 };
	char text[HUMAN_MAX];

	table_column(&table, "ID", true);
	table_column(&table, "SERVICE", false);
	table_column(&table, "MODE", false);
	table_column(&table, "FROM-APP", true);
	table_column(&table, "TO-APP", true);
	table_column(&table, "AGE", true);
	table_column(&table, "APPLICATION", false);
	table_column(&table, "PEER", false);
	for (size_t i = 0; i < cnt; i++) {
		const json_t *c = flows[i].item;

		number_cell(&table, get_int(c, "id"));
		table_cell(&table, get_string(c, "service"));
		table_cell(&table, show_mode(c));
		rate_cell(&table, flows[i].from, known);
		rate_cell(&table, flows[i].to, known);
		table_cell(&table, human_duration(text, get_int(c, "age_ms")));
		table_cell(&table, get_string(c, "app"));
		table_cell(&table, get_string(c, "peer"));
	}
	table_print(&table, f);
	table_fini(&table);
}

void
top_show(struct top *t, FILE *f, const json_t *status, const json_t *connections, int64_t time_ms, const char *service)
{
	const json_t *list = json_object_get(connections, "connections"),
	             *services = json_object_get(status, "services");
	int64_t ms = t->time_ms != 0 ? time_ms - t->time_ms : 0;
	char a[HUMAN_MAX], b[HUMAN_MAX];
	size_t cnt;

	forget_another_daemon(t, status);
	struct flow *flows = measure(t, list, ms, service, &cnt);

	fprintf(f, "smcrd %s, up %s%s; %zu connection%s, %" PRId64 " link group%s, %s resident\n\n",
	    get_string(status, "version"), human_duration(a, get_int(status, "uptime_ms")),
	    get_bool(status, "draining") ? ", DRAINING" : "", cnt, plural((int64_t)cnt), get_int(status, "groups"),
	    plural(get_int(status, "groups")), human_bytes(b, (uint64_t)get_int(status, "rss_bytes")));
	if (flows == NULL)
		return;
	show_services(t, f, services, ms, service);
	qsort(flows, cnt, sizeof(*flows), by_rate);
	fputc('\n', f);
	show_flows(f, flows, t->rows != 0 && cnt > t->rows ? t->rows : cnt, ms > 0);
	free(flows);
	remember(t, services, list, time_ms);
}

void
top_fini(struct top *t)
{
	forget(t);
}

static bool
has_item(const json_t *list, const char *key, const char *service)
{
	bool has = false;

	for (size_t i = 0; !has && i < json_array_size(list); i++)
		has = is_shown(json_array_get(list, i), key, service);
	return has;
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
