/* Buffers of connections on TCP; see bufpool.h. */
#include "daemon/state/bufpool.h"

#include <assert.h>
#include <stdlib.h>

#define FREE_BUFS_KEPT 64

struct buf *
bufpool_get(struct bufpool *p)
{
	struct buf *b = p->free;

	if (b != NULL) {
		p->free = b->next;
		p->free_cnt--;
	} else if ((b = malloc(sizeof(*b))) == NULL) {
		return NULL;
	}
	p->lent++;
	b->off = b->len = 0;
	b->urgent = false;
	return b;
}

void
bufpool_put(struct bufpool *p, struct buf *b)
{
	if (b == NULL)
		return;
	assert(p->lent > 0);
	p->lent--;
	if (p->free_cnt < FREE_BUFS_KEPT) {
		b->next = p->free;
		p->free = b;
		p->free_cnt++;
	} else {
		free(b);
	}
}

void
bufpool_fini(struct bufpool *p)
{
	assert(p->lent == 0);
	for (struct buf *b; (b = p->free) != NULL; free(b))
		p->free = b->next;
}
