/* What makers of reports share: steps over workers, and objects, written if there is a buffer, kept if wanted. */
#include "daemon/control/report.h"

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
