/* Objects of one size in chunks from the kernel. A chunk is returned when its last object is freed, so that a burst
 * leaves little memory behind. Up to SLAB_EMPTY_MAX empty chunks are kept, so that alternating get and put needs no
 * system call. The last freed object is reused first. ASan poisons free objects. */
#pragma once

#include "base/list.h"

#define SLAB_EMPTY_MAX 4 /* chunks */

struct slab_chunk;

struct slab {
	size_t obj_size; /* with its header */
	size_t per_chunk;
	size_t used; /* objects */
	size_t chunk_cnt;
	size_t empty_cnt;         /* of the chunks, at most SLAB_EMPTY_MAX */
	struct list_node partial; /* chunks with free objects, empty chunks last */
	struct list_node full;
};

/* The struct must not move afterwards. */
void slab_init(struct slab *, size_t obj_size, size_t per_chunk);
/* Frees all chunks, including objects in use. */
void slab_fini(struct slab *);
/* Zeroed; NULL if memory is exhausted. */
void *slab_get(struct slab *);
void slab_put(struct slab *, void *obj);
