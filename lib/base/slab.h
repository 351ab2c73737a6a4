/* Objects of one size in chunks from the kernel. A chunk goes back when its last object is freed (one empty chunk is
 * kept), so that a burst leaves nothing behind; last freed, first given out again. Under ASan a free object is
 * poisoned. */
#pragma once

#include <stddef.h>

#include "base/list.h"

struct slab_chunk;

struct slab {
	size_t obj_size; /* with what stands before it */
	size_t per_chunk;
	size_t used; /* objects */
	size_t chunk_cnt;
	struct list_node partial; /* chunks with free objects, the empty one last */
	struct list_node full;
	struct slab_chunk *empty; /* at most one, kept; NULL */
};

/* Not to be moved afterwards. */
void slab_init(struct slab *, size_t obj_size, size_t per_chunk);
/* Frees all chunks, with the objects that are still in use. */
void slab_fini(struct slab *);
/* Zeroed; NULL when memory is out. */
void *slab_get(struct slab *);
void slab_put(struct slab *, void *obj);
