/* Buffers for the data of connections on TCP. Embedded in the session pool; called by session*.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define BUF_SIZE (32u * 1024)

/* Data of a fallen-back connection, read and not yet written. */
struct buf {
	struct buf *next; /* the pool's */
	uint32_t off;     /* first byte not yet written */
	uint32_t len;     /* bytes read into it */
	bool urgent;      /* one urgent byte */
	uint8_t data[BUF_SIZE];
};

/* Lent only while bytes are in flight: an idle connection holds none. LIFO, so that a few warm ones serve all. */
struct bufpool {
	struct buf *free;
	unsigned free_cnt;
	unsigned lent;
};

/* An empty buffer; NULL: out of memory. */
struct buf *bufpool_get(struct bufpool *);
void bufpool_put(struct bufpool *, struct buf *);
/* All buffers have been put back. */
void bufpool_fini(struct bufpool *);
