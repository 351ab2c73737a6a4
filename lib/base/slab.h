/*
 * Objects of one size from chunks, with a free list: last freed, first given
 * out. Chunks go back only with slab_fini, so memory follows the largest number
 * of objects ever in use. Under ASan a freed object is poisoned.
 */
#ifndef SMCRD_BASE_SLAB_H
#define SMCRD_BASE_SLAB_H

#include <stddef.h>

struct slab_chunk;
struct slab_free;

struct slab {
	size_t obj_size;
	size_t per_chunk;
	size_t used;
	struct slab_chunk *chunks;
	struct slab_free *free;
};

void slab_init(struct slab *, size_t obj_size, size_t per_chunk);
/* All objects are free, or of no interest any more. */
void slab_fini(struct slab *);
/* Zeroed; NULL when memory is out. */
void *slab_get(struct slab *);
void slab_put(struct slab *, void *obj);

#endif
