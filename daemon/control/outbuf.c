/* Bytes on their way to a control client; see outbuf.h. */
#include "daemon/control/outbuf.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int
outbuf_init(struct outbuf *b, size_t cap)
{
	*b = (struct outbuf){ .p = malloc(cap), .cap = cap };
	return b->p != NULL ? 0 : -ENOMEM;
}

void
outbuf_fini(struct outbuf *b)
{
	free(b->p);
	*b = (struct outbuf){ 0 };
}

size_t
outbuf_room(const struct outbuf *b)
{
	return b->cap - b->len;
}

void
outbuf_put(struct outbuf *b, const void *src, size_t len)
{
	if (b->overflow || len > outbuf_room(b)) {
		b->overflow = true;
		return;
	}
	if (len > b->cap - b->start - b->len) {
		memmove(b->p, b->p + b->start, b->len);
		b->start = 0;
	}
	memcpy(b->p + b->start + b->len, src, len);
	b->len += len;
}

void
outbuf_putc(struct outbuf *b, char c)
{
	outbuf_put(b, &c, 1);
}

const char *
outbuf_data(const struct outbuf *b)
{
	return b->p + b->start;
}

void
outbuf_consume(struct outbuf *b, size_t len)
{
	assert(len <= b->len);
	b->len -= len;
	b->start = b->len > 0 ? b->start + len : 0;
}
