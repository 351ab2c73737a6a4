/* Rows that are kept; see snapshot.h. */
#include "daemon/control/snapshot.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES (64u * 1024)

struct snapshot_block {
	struct snapshot_block *next;
	size_t used, cap;
	_Alignas(max_align_t) unsigned char bytes[];
};

/* NULL, and the snapshot has failed, when there is no room. */
static void *
snapshot_take(struct snapshot *s, size_t len)
{
	const size_t need = (len + _Alignof(max_align_t) - 1) & ~(_Alignof(max_align_t) - 1);
	struct snapshot_block *b = s->blocks;

	if (s->failed)
		return NULL;
	if (b == NULL || b->cap - b->used < need) {
		const size_t cap = need > BLOCK_BYTES ? need : BLOCK_BYTES;

		b = s->bytes + cap <= s->bytes_max ? malloc(sizeof(*b) + cap) : NULL;
		s->failed = b == NULL;
		if (b == NULL)
			return NULL;
		*b = (struct snapshot_block){ .next = s->blocks, .cap = cap };
		s->bytes += cap;
		s->blocks = b;
	}
	b->used += need;
	return b->bytes + b->used - need;
}

static void
keep_text(struct snapshot *s, const char **at)
{
	const size_t len = *at != NULL ? strlen(*at) + 1 : 0;
	char *copy = *at != NULL ? snapshot_take(s, len) : NULL;

	*at = copy != NULL ? memcpy(copy, *at, len) : NULL;
}

static void keep_members(struct snapshot *, const struct field *, unsigned char *obj);

static void
keep_array(struct snapshot *s, const struct field *f, struct field_array *a)
{
	const size_t len = (size_t)a->cnt * f->size;
	unsigned char *copy = len > 0 ? snapshot_take(s, len) : NULL;

	if (copy != NULL)
		memcpy(copy, a->at, len);
	*a = (struct field_array){ .at = copy, .cnt = copy != NULL ? a->cnt : 0 };
	for (unsigned i = 0; i < a->cnt; i++)
		keep_members(s, f->members, copy + (size_t)i * f->size);
}

/* What is not in the struct itself. */
static void
keep_members(struct snapshot *s, const struct field *f, unsigned char *obj)
{
	for (; f->type != FIELD_END; f++)
		if (f->type == FIELD_STRING)
			keep_text(s, (const char **)(void *)(obj + f->off));
		else if (f->type == FIELD_OBJECT || f->type == FIELD_INLINE)
			keep_members(s, f->members, obj + f->off);
		else if (f->type == FIELD_ARRAY)
			keep_array(s, f, (struct field_array *)(void *)(obj + f->off));
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
	for (struct snapshot_block *b = s->blocks; b != NULL;) {
		struct snapshot_block *next = b->next;

		free(b);
		b = next;
	}
	*s = (struct snapshot){ 0 };
}
