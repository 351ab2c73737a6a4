/*
 * The sending half of MPA's full operation: turns DDP segments into FPDUs and
 * holds them, as pieces to be gathered by one writev, until the stream took
 * them. Headers, check values and small payloads lie in a ring of its own and
 * run together; larger payloads stay where they are and may not change until
 * sent. No memory is allocated after the start.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "iwarp/copyring.h"
#include "wire/ddp.h"
#include "wire/mpa.h"

#define TXQ_COPY_MAX 1024 /* payload up to this is copied */
#define TXQ_PIECES_MAX 4  /* of one payload */
#define TXQ_SEGS 256      /* a power of two */

struct txq_seg {
	const uint8_t *ptr;
	uint32_t len;
	uint32_t ring_end; /* end in the ring, for pieces that lie in it */
	bool in_ring;
	bool last; /* of its FPDU: the next piece is another one's */
};

struct txq {
	struct copyring ring;
	uint32_t seg_head; /* counts pieces put */
	uint32_t seg_tail; /* counts pieces sent */
	struct txq_seg segs[TXQ_SEGS];
	size_t bytes; /* in the queue */
	bool crc;
	bool markers;
	bool apart;   /* each FPDU is written on its own, so that it begins a segment of the stream */
	uint32_t pos; /* in the stream, of the next FPDU */
};

/* size: of the ring; with markers it has to take whole FPDUs. 0 or -ENOMEM. */
int txq_init(struct txq *, uint32_t size);
void txq_fini(struct txq *);
/* Full operation starts; FPDUs are not kept apart. */
void txq_start(struct txq *, bool crc, bool markers);

/* Called now and then: what an idle queue does not need goes back to the kernel. */
void txq_rest(struct txq *);

/* The largest ULPDU that can be queued at all. */
size_t txq_ulpdu_max(const struct txq *);
/* Is there room for one more FPDU with this much payload? */
bool txq_room(const struct txq *, size_t payload_len);

/* What follows a DDP header, RDMAP headers included. */
struct txq_payload {
	unsigned cnt;
	size_t len;
	struct iovec v[TXQ_PIECES_MAX];
};

/* Queues one FPDU; txq_room() was asked. */
void txq_put(struct txq *, const struct ddp_hdr *, const struct txq_payload *);

static inline bool
txq_empty(const struct txq *q)
{
	return q->seg_head == q->seg_tail;
}

/* Up to max pieces to be written next, of one FPDU if they are kept apart; returns their number. */
unsigned txq_gather(const struct txq *, struct iovec *iov, unsigned max);
/* The stream took n bytes. */
void txq_sent(struct txq *, size_t n);
