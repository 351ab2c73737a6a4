/* Chunks and a free list threaded through the free objects; see slab.h. */
#include "base/slab.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_include)
#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>
#endif
#endif
#ifndef ASAN_POISON_MEMORY_REGION
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

#define ALIGN _Alignof(max_align_t)

struct slab_free {
	struct slab_free *next;
};

struct slab_chunk {
	struct slab_chunk *next;
	max_align_t objs[];
};

void
slab_init(struct slab *s, size_t obj_size, size_t per_chunk)
{
	*s = (struct slab){ .obj_size = (obj_size + ALIGN - 1) / ALIGN * ALIGN, .per_chunk = per_chunk };
}

void
slab_fini(struct slab *s)
{
	struct slab_chunk *next;

	for (struct slab_chunk *c = s->chunks; c != NULL; c = next) {
		next = c->next;
		ASAN_UNPOISON_MEMORY_REGION(c->objs, s->obj_size * s->per_chunk);
		free(c);
	}
	slab_init(s, s->obj_size, s->per_chunk);
}

static void
push_free(struct slab *s, void *obj)
{
	struct slab_free *f = obj;

	f->next = s->free;
	s->free = f;
	ASAN_POISON_MEMORY_REGION(obj, s->obj_size);
}

static int
grow(struct slab *s)
{
	struct slab_chunk *c = malloc(sizeof(*c) + s->obj_size * s->per_chunk);

	if (c == NULL)
		return -1;
	c->next = s->chunks;
	s->chunks = c;
	for (size_t i = s->per_chunk; i > 0; i--)
		push_free(s, (char *)c->objs + (i - 1) * s->obj_size);
	return 0;
}

void *
slab_get(struct slab *s)
{
	struct slab_free *f;

	if (s->free == NULL && grow(s) != 0)
		return NULL;
	f = s->free;
	ASAN_UNPOISON_MEMORY_REGION(f, s->obj_size);
	s->free = f->next;
	s->used++;
	memset(f, 0, s->obj_size);
	return f;
}

void
slab_put(struct slab *s, void *obj)
{
	assert(s->used > 0);
	s->used--;
	push_free(s, obj);
}
