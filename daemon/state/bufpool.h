/* Buffers for the bytes of connections on TCP. Embedded in the session pool; called by session*.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define BUF_SIZE (32u * 1024)

/* Bytes of a fallen-back connection on their way. */
struct buf {
	struct buf *next; /* the pool's */
	uint32_t off;     /* first byte not yet passed on */
	uint32_t len;     /* bytes in it, passed on or not */
	bool urgent;      /* one urgent byte */
	uint8_t data[BUF_SIZE];
};

/* Lent only while bytes are in flight: an idle connection holds none. Last given back, first lent, so that a few warm ones
 * serve thousands of connections. */
struct bufpool {
	struct buf *free;
	unsigned free_cnt;
	unsigned lent;
};

/* An empty buffer; NULL when memory is out. */
struct buf *bufpool_get(struct bufpool *);
/* NULL is allowed. */
void bufpool_put(struct bufpool *, struct buf *);
/* All buffers have been put back. */
void bufpool_fini(struct bufpool *);
