/* Rows that are kept; see snapshot.h. */
#include "daemon/control/snapshot.h"

#include <stdlib.h>
#include <string.h>

struct snapshot_piece {
	struct snapshot_piece *next;
	_Alignas(max_align_t) unsigned char bytes[];
};

/* NULL, and the snapshot has failed, beyond its limit or out of memory. */
static void *
snapshot_take(struct snapshot *s, size_t len)
{
	const size_t need = sizeof(struct snapshot_piece) + len;
	struct snapshot_piece *p = s->failed || s->bytes + need > s->bytes_max ? NULL : malloc(need);

	s->failed = p == NULL;
	if (p == NULL)
		return NULL;
	p->next = s->pieces;
	s->pieces = p;
	s->bytes += need;
	return p->bytes;
}

/* A copy of len bytes; NULL: there are none, or the snapshot has failed. */
static void *
keep_bytes(struct snapshot *s, const void *bytes, size_t len)
{
	void *copy = len > 0 ? snapshot_take(s, len) : NULL;

	return copy != NULL ? memcpy(copy, bytes, len) : NULL;
}

/* Texts and arrays that the struct points to. */
static void
keep_members(struct snapshot *s, const struct field *f, unsigned char *obj)
{
	for (; f->type != FIELD_END; f++) {
		void *member = obj + f->off;

		if (f->type == FIELD_STRING) {
			const char **text = member;

			*text = keep_bytes(s, *text, *text != NULL ? strlen(*text) + 1 : 0);
		} else if (f->type == FIELD_OBJECT || f->type == FIELD_INLINE) {
			keep_members(s, f->members, member);
		} else if (f->type == FIELD_ARRAY) {
			struct field_array *a = member;
			unsigned char *copy = keep_bytes(s, a->at, (size_t)a->cnt * f->size);

			*a = (struct field_array){ .at = copy, .cnt = copy != NULL ? a->cnt : 0 };
			for (unsigned i = 0; i < a->cnt; i++)
				keep_members(s, f->members, copy + (size_t)i * f->size);
		}
	}
}

void
snapshot_add(struct snapshot *s, enum report_kind kind, const void *obj)
{
	const struct report_table *t = &report_tables[kind];
	struct snapshot_row *row = snapshot_take(s, sizeof(*row) + t->size);

	if (row == NULL)
		return;
	row->next = NULL;
	memcpy(row->bytes, obj, t->size);
	keep_members(s, t->fields, row->bytes);
	*(s->rows[kind].end != NULL ? s->rows[kind].end : &s->rows[kind].first) = row;
	s->rows[kind].end = &row->next;
}

const void *
snapshot_first(const struct snapshot *s, enum report_kind kind)
{
	return s->rows[kind].first != NULL ? s->rows[kind].first->bytes : NULL;
}

void
snapshot_fini(struct snapshot *s)
{
	for (struct snapshot_piece *p; (p = s->pieces) != NULL;) {
		s->pieces = p->next;
		free(p);
	}
	*s = (struct snapshot){ 0 };
}
