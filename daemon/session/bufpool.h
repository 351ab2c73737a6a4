/*
 * Buffers for the bytes of fallen-back connections, lent only while bytes are
 * in flight: an idle connection holds none. Last given back, first lent, so
 * that a few warm ones serve thousands of connections.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUF_SIZE (32u * 1024)

struct buf {
	struct buf *next; /* the pool's */
	uint32_t off;     /* first byte not yet passed on */
	uint32_t len;     /* bytes in it, passed on or not */
	bool urgent;      /* one urgent byte */
	uint8_t data[BUF_SIZE];
};

struct bufpool {
	struct buf *free;
	unsigned free_cnt;
	unsigned keep; /* free ones kept at most */
	unsigned lent;
};

void bufpool_init(struct bufpool *, unsigned keep);
/* After all buffers were given back. */
void bufpool_fini(struct bufpool *);
/* An empty buffer; NULL when memory is out. */
struct buf *bufpool_get(struct bufpool *);
/* NULL is allowed. */
void bufpool_put(struct bufpool *, struct buf *);
