/* Table of objects by index and generation. Freed indexes are reused in FIFO order, so that generations repeat late. */
#include "base/idtable.h"

#include <assert.h>
#include <stdlib.h>

#define INDEX_BITS 20u
#define INDEX_MASK ((1u << INDEX_BITS) - 1)
#define NONE UINT32_MAX

struct idtable_slot {
	void *obj;
	uint32_t gen; /* 1..4095, so that no id is 0 */
	uint32_t next_free;
};

void
idtable_init(struct idtable *t, uint32_t max)
{
	assert(max >= 1 && max <= IDTABLE_MAX);
	*t = (struct idtable){ .max = max, .free_head = NONE, .free_tail = NONE };
}

void
idtable_fini(struct idtable *t)
{
	free(t->slots);
	t->slots = NULL;
	t->cap = t->used = 0;
}

static void
free_push(struct idtable *t, uint32_t i)
{
	t->slots[i].next_free = NONE;
	if (t->free_tail == NONE)
		t->free_head = i;
	else
		t->slots[t->free_tail].next_free = i;
	t->free_tail = i;
}

static int
idtable_grow(struct idtable *t)
{
	uint32_t cap = t->cap == 0 ? 16 : t->cap * 2;
	struct idtable_slot *slots;

	if (cap > t->max)
		cap = t->max;
	if (cap == t->cap)
		return -1;
	slots = realloc(t->slots, cap * sizeof(*slots));
	if (slots == NULL)
		return -1;
	t->slots = slots;
	for (uint32_t i = t->cap; i < cap; i++) {
		slots[i] = (struct idtable_slot){ .gen = 1 };
		free_push(t, i);
	}
	t->cap = cap;
	return 0;
}

uint32_t
idtable_add(struct idtable *t, void *obj)
{
	uint32_t i;

	assert(obj != NULL);
	if (t->free_head == NONE && idtable_grow(t) < 0)
		return 0;
	i = t->free_head;
	t->free_head = t->slots[i].next_free;
	if (t->free_head == NONE)
		t->free_tail = NONE;
	t->slots[i].obj = obj;
	t->used++;
	return t->slots[i].gen << INDEX_BITS | i;
}

void *
idtable_get(const struct idtable *t, uint32_t id)
{
	uint32_t i = id & INDEX_MASK;

	if (i >= t->cap || t->slots[i].gen != id >> INDEX_BITS)
		return NULL;
	return t->slots[i].obj;
}

void
idtable_del(struct idtable *t, uint32_t id)
{
	uint32_t i = id & INDEX_MASK;

	assert(idtable_get(t, id) != NULL);
	t->slots[i].obj = NULL;
	if (++t->slots[i].gen > UINT32_MAX >> INDEX_BITS)
		t->slots[i].gen = 1;
	t->used--;
	free_push(t, i);
}

void *
idtable_next(const struct idtable *t, uint32_t *pos)
{
	while (*pos < t->cap) {
		void *obj = t->slots[(*pos)++].obj;

		if (obj != NULL)
			return obj;
	}
	return NULL;
}
