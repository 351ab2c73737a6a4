/* Counts by key in bounded memory; see tally.h. */
#include "base/tally.h"

#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"

static void
tally_add(struct tally *t, uint32_t key, uint64_t cnt)
{
	unsigned i = 0;

	while (i < t->used && t->e[i].key != key)
		i++;
	if (i == TALLY_KEYS) {
		t->other_cnt += cnt;
		return;
	}
	if (i == t->used) {
		t->e[i] = (struct tally_entry){ .key = key };
		t->used++;
	}
	t->e[i].cnt += cnt;
}

void
tally_count(struct tally *t, uint32_t key)
{
	tally_add(t, key, 1);
}

void
tally_merge(struct tally *t, const struct tally *from)
{
	for (unsigned i = 0; i < from->used; i++)
		tally_add(t, from->e[i].key, from->e[i].cnt);
	t->other_cnt += from->other_cnt;
}

static int
by_count(const void *va, const void *vb)
{
	const struct tally_entry *a = va, *b = vb;

	if (a->cnt != b->cnt)
		return a->cnt > b->cnt ? -1 : 1;
	return (a->key > b->key) - (a->key < b->key);
}

unsigned
tally_top(const struct tally *t, struct tally_entry *out, unsigned max)
{
	struct tally_entry sorted[TALLY_KEYS];
	unsigned n = min_u32(t->used, max);

	memcpy(sorted, t->e, t->used * sizeof(sorted[0]));
	qsort(sorted, t->used, sizeof(sorted[0]), by_count);
	memcpy(out, sorted, n * sizeof(out[0]));
	return n;
}
