/* Which answer is shown how, and what all of them need; see show.h. */
#include "ctl/show.h"

#include <string.h>
#include <time.h>

#include "ctl/human.h"
#include "ctl/table.h"

void
show_answer(FILE *f, enum control_command command, const json_t *data, bool detail)
{
	static void (*const shows[CONTROL_COMMAND_CNT])(FILE *, const json_t *, bool) = {
		[CONTROL_STATUS] = show_status,
		[CONTROL_CONNECTIONS] = show_connections,
		[CONTROL_GROUPS] = show_groups,
		[CONTROL_LINKS] = show_links,
		[CONTROL_RMBS] = show_rmbs,
		[CONTROL_DEVICES] = show_devices,
		[CONTROL_STATS] = show_stats,
		[CONTROL_CHECK] = show_check,
		[CONTROL_REBALANCE] = show_rebalance,
		[CONTROL_LINK_DELETE] = show_link_delete,
		[CONTROL_RELOAD] = show_reload,
		[CONTROL_DRAIN] = show_drain,
	};

	if (shows[command] != NULL) /* of a trace the lines that follow are shown */
		shows[command](f, data, detail);
}

const char *
get_string(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s != NULL ? s : "";
}

int64_t
get_int(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

bool
get_bool(const json_t *o, const char *key)
{
	return json_is_true(json_object_get(o, key));
}

static void
format_cell(const struct column *c, const json_t *item, char *buf, size_t cap)
{
	char num[HUMAN_MAX];
	int64_t v;

	if (c->kind == COLUMN_CALL) {
		c->call(item, buf, cap);
		return;
	}
	if (json_object_get(item, c->key) == NULL) { /* another version of the daemon */
		snprintf(buf, cap, "-");
		return;
	}
	v = get_int(item, c->key);
	switch (c->kind) {
	case COLUMN_TEXT:
	case COLUMN_CALL:
		snprintf(buf, cap, "%s", get_string(item, c->key));
		break;
	case COLUMN_NUMBER:
		snprintf(buf, cap, "%" PRId64, v);
		break;
	case COLUMN_PAIR:
		snprintf(buf, cap, "%" PRId64 "/%" PRId64, v, get_int(item, c->key2));
		break;
	case COLUMN_BYTES:
		snprintf(buf, cap, "%s", human_bytes(num, (uint64_t)v));
		break;
	case COLUMN_AGE:
		snprintf(buf, cap, "%s", human_duration(num, v));
		break;
	case COLUMN_QPN:
		snprintf(buf, cap, "0x%06" PRIx64, (uint64_t)v);
		break;
	case COLUMN_MICRO:
		snprintf(buf, cap, "%s", human_us(num, v));
		break;
	}
}

void
show_list(FILE *f, const json_t *list, const struct column *columns, bool detail)
{
	char buf[CELL_MAX];
	struct table t;

	table_init(&t);
	for (const struct column *c = columns; c->heading != NULL; c++)
		if (detail || !c->detail)
			table_column(&t, c->heading,
			    c->kind == COLUMN_CALL ? c->right : c->kind != COLUMN_TEXT && c->kind != COLUMN_QPN);
	for (size_t i = 0; i < json_array_size(list); i++) {
		for (const struct column *c = columns; c->heading != NULL; c++) {
			if (!detail && c->detail)
				continue;
			format_cell(c, json_array_get(list, i), buf, sizeof(buf));
			table_cell(&t, buf);
		}
	}
	table_print(&t, f);
	table_fini(&t);
}

void
show_trace(FILE *f, const json_t *ev)
{
	int64_t us = get_int(ev, "time_us"), dropped = get_int(ev, "dropped");
	time_t sec = (time_t)(us / 1000000);
	const char *token = get_string(ev, "token");
	char clock[16] = "";
	struct tm tm;

	if (localtime_r(&sec, &tm) != NULL)
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	if (dropped > 0)
		fprintf(f, "%s.%06d -- %" PRId64 " messages left out, the reader is too slow\n", clock,
		    (int)(us % 1000000), dropped);
	if (strcmp(get_string(ev, "event"), "message") != 0)
		return;
	fprintf(
	    f, "%s.%06d %c", clock, (int)(us % 1000000), strcmp(get_string(ev, "direction"), "sent") == 0 ? '>' : '<');
	if (get_int(ev, "group") != 0)
		fprintf(f, " %" PRId64 "/%" PRId64, get_int(ev, "group"), get_int(ev, "link"));
	if (strtoul(token, NULL, 0) != 0)
		fprintf(f, " %s", token);
	fputc(' ', f);
	print_clean(f, get_string(ev, "text"));
	fputc('\n', f);
}
