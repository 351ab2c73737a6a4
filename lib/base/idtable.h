/* Objects by 32-bit id: an index and a generation, so a stale id finds none. Id 0 is never used. Owns no objects. */
#pragma once

#include <stdint.h>

struct idtable_slot;

struct idtable {
	struct idtable_slot *slots;
	uint32_t cap; /* allocated slots */
	uint32_t max; /* maximum number of objects */
	uint32_t used;
	uint32_t free_head;
	uint32_t free_tail;
};

/* max: maximum number of objects, 1..IDTABLE_MAX. */
#define IDTABLE_MAX (1u << 20)

void idtable_init(struct idtable *t, uint32_t max);
void idtable_fini(struct idtable *t);

/* Stores obj (not NULL). Returns its id, or 0 if the table is full or memory is exhausted. */
uint32_t idtable_add(struct idtable *t, void *obj);
/* NULL for an unknown id. */
void *idtable_get(const struct idtable *t, uint32_t id);
/* Frees the id; it must be in use. */
void idtable_del(struct idtable *t, uint32_t id);
/* Iteration: the first object at or after *pos (start with 0); advances *pos. NULL at the end. */
void *idtable_next(const struct idtable *t, uint32_t *pos);
