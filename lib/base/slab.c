/* Chunks with a free list each, linked through the free objects; see slab.h. */
#include "base/slab.h"

#include <assert.h>
#include <string.h>

#include "base/pages.h"

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

/* Precedes each object, used or free. */
struct slab_head {
	struct slab_chunk *chunk;
	struct slab_head *next_free;
};

struct slab_chunk {
	struct list_node node; /* slab->partial or full */
	struct slab_head *free;
	size_t used;
	size_t len; /* of the whole chunk */
	max_align_t objs[];
};

static size_t
body_len(const struct slab *s)
{
	return s->obj_size - sizeof(struct slab_head);
}

void
slab_init(struct slab *s, size_t obj_size, size_t per_chunk)
{
	static_assert(sizeof(struct slab_head) % ALIGN == 0, "misaligned objects");
	*s = (struct slab){
		.obj_size = sizeof(struct slab_head) + (obj_size + ALIGN - 1) / ALIGN * ALIGN,
		.per_chunk = per_chunk,
	};
	list_init(&s->partial);
	list_init(&s->full);
}

static void
chunk_free(struct slab *s, struct slab_chunk *c)
{
	list_remove(&c->node);
	s->chunk_cnt--;
	ASAN_UNPOISON_MEMORY_REGION(c, c->len);
	pages_free(c, c->len);
}

void
slab_fini(struct slab *s)
{
	LIST_EACH(struct slab_chunk, c, &s->partial, node)
		chunk_free(s, c);
	LIST_EACH(struct slab_chunk, c, &s->full, node)
		chunk_free(s, c);
	s->used = s->empty_cnt = 0;
}

static void
push_free(const struct slab *s, struct slab_chunk *c, struct slab_head *h)
{
	h->chunk = c;
	h->next_free = c->free;
	c->free = h;
	ASAN_POISON_MEMORY_REGION(h + 1, body_len(s));
}

static struct slab_chunk *
chunk_new(struct slab *s)
{
	size_t len = sizeof(struct slab_chunk) + s->obj_size * s->per_chunk;
	struct slab_chunk *c = pages_alloc(len);

	if (c == NULL)
		return NULL;
	c->len = len;
	for (size_t i = s->per_chunk; i > 0; i--)
		push_free(s, c, (struct slab_head *)(void *)((char *)c->objs + (i - 1) * s->obj_size));
	list_push(&s->partial, &c->node);
	s->chunk_cnt++;
	s->empty_cnt++;
	return c;
}

void *
slab_get(struct slab *s)
{
	struct slab_chunk *c = LIST_FIRST(struct slab_chunk, &s->partial, node);
	struct slab_head *h;

	if (c == NULL && (c = chunk_new(s)) == NULL)
		return NULL;
	if (c->used == 0)
		s->empty_cnt--;
	h = c->free;
	c->free = h->next_free;
	c->used++;
	s->used++;
	if (c->free == NULL) {
		list_remove(&c->node);
		list_push(&s->full, &c->node);
	}
	ASAN_UNPOISON_MEMORY_REGION(h + 1, body_len(s));
	memset(h + 1, 0, body_len(s));
	return h + 1;
}

void
slab_put(struct slab *s, void *obj)
{
	struct slab_head *h = (struct slab_head *)obj - 1;
	struct slab_chunk *c = h->chunk;

	assert(s->used > 0 && c->used > 0);
	s->used--;
	c->used--;
	push_free(s, c, h);
	list_remove(&c->node);
	if (c->used > 0) {
		list_push_front(&s->partial, &c->node);
		return;
	}
	list_push(&s->partial, &c->node);
	if (s->empty_cnt < SLAB_EMPTY_MAX)
		s->empty_cnt++;
	else
		chunk_free(s, c);
}
