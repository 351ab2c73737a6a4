/* Objects of one size in chunks from the kernel. A chunk goes back when its last object is freed, so that a burst leaves
 * little behind; a few that are empty are kept, so that coming and going costs no system call. Last freed, first given out
 * again. Under ASan a free object is poisoned. */
#pragma once

#include <stddef.h>

#include "base/list.h"

#define SLAB_EMPTY_MAX 4 /* chunks */

struct slab_chunk;

struct slab {
	size_t obj_size; /* with what stands before it */
	size_t per_chunk;
	size_t used; /* objects */
	size_t chunk_cnt;
	size_t empty_cnt;         /* of the chunks, up to SLAB_EMPTY_MAX */
	struct list_node partial; /* chunks with free objects, empty ones last */
	struct list_node full;
};

/* Not to be moved afterwards. */
void slab_init(struct slab *, size_t obj_size, size_t per_chunk);
/* Frees all chunks, with the objects that are still in use. */
void slab_fini(struct slab *);
/* Zeroed; NULL when memory is out. */
void *slab_get(struct slab *);
void slab_put(struct slab *, void *obj);
