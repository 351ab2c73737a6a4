/* Buffers lent while bytes are in flight; see bufpool.h. */
#include "daemon/session/bufpool.h"

#include <assert.h>
#include <stdlib.h>

void
bufpool_init(struct bufpool *p, unsigned keep)
{
	*p = (struct bufpool){ .keep = keep };
}

void
bufpool_fini(struct bufpool *p)
{
	assert(p->lent == 0);
	while (p->free != NULL) {
		struct buf *b = p->free;

		p->free = b->next;
		free(b);
	}
	p->free_cnt = 0;
}

struct buf *
bufpool_get(struct bufpool *p)
{
	struct buf *b = p->free;

	if (b != NULL) {
		p->free = b->next;
		p->free_cnt--;
	} else {
		b = malloc(sizeof(*b));
		if (b == NULL)
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
	if (p->free_cnt >= p->keep) {
		free(b);
		return;
	}
	b->next = p->free;
	p->free = b;
	p->free_cnt++;
}
