/*
 * The send queue of DDP over SCTP: what txq.h is for MPA, but with the borders of messages. Each is a DDP segment, is handed over
 * whole or not at all, one after the other, and gets its DDP-SSN then. Small payloads are copied into a ring; larger ones stay
 * where they are and may not change until sent. No memory is allocated after the start.
 *
 * A segment that is longer than the path takes now, because the MTU fell after it was put, is cut where it is handed over: a
 * Write, an answer to a Read and a Send are as good in more pieces, and nothing else is that long.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "iwarp/copyring.h"
#include "iwarp/txq.h"
#include "wire/ddp.h"

#define SEGQ_COPY_MAX TXQ_COPY_MAX /* payload up to this is copied */
#define SEGQ_MSGS 64               /* a power of two; few, as what is not in the queue yet is cut to measure */
#define SEGQ_SSN_LEN 2
#define SEGQ_MESSAGE_MIN 516 /* every path takes that (RFC 5043): the longest message of session control, whole */
#define SEGQ_IOV_MAX (1 + TXQ_PIECES_MAX)

struct segq_msg {
	bool in_ring;      /* its only piece */
	uint32_t ring_end; /* of what is there */
	struct ddp_hdr hdr;
	struct txq_payload payload;
};

struct segq {
	struct copyring ring;
	struct segq_msg msgs[SEGQ_MSGS];
	uint32_t head; /* counts messages put */
	uint32_t tail; /* counts messages sent */
	uint32_t off;  /* payload of the oldest that is sent already, in messages of its own */
	uint32_t part; /* payload of the one that segq_peek() gave out last */
	size_t bytes;  /* of payload in the queue */
	bool peeked;   /* segq_sent() may come */
	uint8_t front[SEGQ_SSN_LEN + DDP_HDR_MAX];
};

/* ring_size: at least twice SEGQ_COPY_MAX. 0 or -ENOMEM; to be ended in either case. */
int segq_init(struct segq *, uint32_t ring_size);
void segq_fini(struct segq *);
/* Called now and then: what an idle queue does not need goes back to the kernel. */
void segq_rest(struct segq *);

/* Is there room for one more segment with this much payload? */
bool segq_room(const struct segq *, size_t len);
/* Queues one; segq_room() was asked. */
void segq_put(struct segq *, const struct ddp_hdr *, const struct txq_payload *);

static inline bool
segq_empty(const struct segq *q)
{
	return q->head == q->tail;
}

/*
 * The oldest message as pieces, the first of which has the DDP-SSN `number`: how many; 0 when there is none. Of a segment above
 * max bytes (>= SEGQ_MESSAGE_MIN, DDP-SSN included) it is the first part. It may be peeked at again, with another max, until
 * segq_sent(); the pieces are good until then.
 */
unsigned segq_peek(struct segq *, uint16_t number, size_t max, struct iovec iov[SEGQ_IOV_MAX]);
/* What is queued is not to be sent any more. */
void segq_clear(struct segq *);
/* SCTP took the message that segq_peek() gave out last, and has copied it; the next one has the next number. */
void segq_sent(struct segq *);
