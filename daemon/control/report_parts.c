/* The frame around every answer, the walk over workers, members and objects; see report.h. */
#include "daemon/control/report.h"

#include <time.h>

int64_t
report_wall_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t
report_wall_ms(void)
{
	return report_wall_us() / 1000;
}

static void
begin_frame(struct json_writer *jw, struct outbuf *out, const char *command, int64_t wall_ms)
{
	jw_init(jw, out);
	jw_object(jw, NULL);
	jw_int(jw, "schema", REPORT_SCHEMA);
	jw_string(jw, "command", command);
	jw_int(jw, "time_ms", wall_ms);
}

void
report_begin(struct json_writer *jw, struct outbuf *out, enum control_command c, int64_t wall_ms)
{
	begin_frame(jw, out, control_commands[c].name, wall_ms);
	jw_null(jw, "error");
	jw_object(jw, "data");
}

void
report_end(struct json_writer *jw)
{
	jw_object_end(jw);
	jw_object_end(jw);
	jw_end(jw);
}

void
report_answer(struct outbuf *out, enum control_command command, const void *row)
{
	struct json_writer jw;

	report_begin(&jw, out, command, report_wall_ms());
	if (row != NULL)
		field_write(&jw, report_data[command], row);
	report_end(&jw);
}

void
report_error(struct outbuf *out, const char *command, int64_t wall_ms, const char *code, const char *text)
{
	struct json_writer jw;

	begin_frame(&jw, out, command, wall_ms);
	jw_object(&jw, "error");
	jw_string(&jw, "code", code);
	jw_string(&jw, "text", text);
	jw_object_end(&jw);
	jw_null(&jw, "data");
	jw_object_end(&jw);
	jw_end(&jw);
}

bool
report_next_worker(struct report *r)
{
	if (r->nr == r->last)
		return false;
	r->nr++;
	r->pos = 0;
	return true;
}

bool
report_next_summand(struct report *r, uint32_t pos)
{
	if (r->nr++ < r->last)
		return true;
	r->nr = r->first;
	r->pos = pos;
	return false;
}

void
report_add(uint64_t *sum, const uint64_t *one, size_t len)
{
	for (size_t i = 0; i < len / sizeof(*sum); i++)
		sum[i] += one[i];
}

/* -- objects: written if there is a buffer, and kept if that is wanted -- */

void
report_keep(struct report *r, enum report_kind kind, const void *row)
{
	if (r->keep != NULL && kind < REPORT_KEPT_CNT)
		snapshot_add(r->keep, kind, row);
}

void
report_members(struct report *r, const void *row)
{
	if (r->jw.out != NULL)
		r->next = field_write(&r->jw, r->next, row);
}

void
report_list_end(struct report *r, const void *row)
{
	if (r->jw.out != NULL)
		jw_array_end(&r->jw);
	report_members(r, row);
}

void
report_item_begin(struct report *r, enum report_kind kind, const void *row)
{
	report_keep(r, kind, row);
	if (r->jw.out == NULL)
		return;
	jw_object(&r->jw, NULL);
	field_write(&r->jw, report_tables[kind].fields, row);
}

void
report_item(struct report *r, enum report_kind kind, const void *row)
{
	report_item_begin(r, kind, row);
	if (r->jw.out != NULL)
		jw_object_end(&r->jw);
}

void
report_item_end(struct report *r)
{
	if (r->jw.out != NULL) {
		jw_array_end(&r->jw);
		jw_object_end(&r->jw);
	}
}
