/* Table of objects by id: a 32-bit id holds an index and a generation, so that an id kept too long finds nothing
 * instead of another object. Id 0 is never given out. The table owns its slots, not the objects. */
#pragma once

#include <stdint.h>

struct idtable_slot;

struct idtable {
	struct idtable_slot *slots;
	uint32_t cap; /* slots allocated */
	uint32_t max; /* most objects at once */
	uint32_t used;
	uint32_t free_head;
	uint32_t free_tail;
};

/* max: most objects at once, 1..IDTABLE_MAX. */
#define IDTABLE_MAX (1u << 20)

void idtable_init(struct idtable *t, uint32_t max);
void idtable_fini(struct idtable *t);

/* Stores obj (not NULL): its id, or 0 when the table is full or memory is out. */
uint32_t idtable_add(struct idtable *t, void *obj);
/* The object of this id, or NULL. */
void *idtable_get(const struct idtable *t, uint32_t id);
/* Frees the id; it must be in use. */
void idtable_del(struct idtable *t, uint32_t id);
/* Walk: the first object at or behind *pos (start with 0), which moves on; NULL at the end. */
void *idtable_next(const struct idtable *t, uint32_t *pos);
