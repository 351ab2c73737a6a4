/* Bytes on their way to a control client: a block of fixed size, filled at the end and emptied at the front. The writer checks the free
 * space first; data that does not fit is not written, and marks the buffer as overflown. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct outbuf {
	char *p;
	size_t start;
	size_t len; /* bytes from start on */
	size_t cap;
	bool overflow;
};

/* 0 or -ENOMEM. */
int outbuf_init(struct outbuf *, size_t cap) __attribute__((warn_unused_result));
void outbuf_fini(struct outbuf *);

size_t outbuf_room(const struct outbuf *);
/* Appends len bytes, or nothing, and the buffer is overflown. */
void outbuf_put(struct outbuf *, const void *, size_t len);
void outbuf_putc(struct outbuf *, char);

/* The bytes to send, len of them. */
const char *outbuf_data(const struct outbuf *);
/* The first len bytes were sent. */
void outbuf_consume(struct outbuf *, size_t len);
