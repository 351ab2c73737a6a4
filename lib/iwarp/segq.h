/* The send queue of DDP over SCTP: like txq.h, but with message boundaries. Each message is one DDP segment, is handed
 * over as a whole, in order, and gets its DDP-SSN then. Small payloads are copied into a ring; larger ones stay in
 * place and must not change until sent. No allocation after the start.
 * A segment that exceeds the path MTU, because the MTU fell after the put, is split when handed over. Only Writes, Read
 * Responses and Sends are that long, and they may be split. */
#pragma once

#include <sys/uio.h>

#include "iwarp/copyring.h"
#include "iwarp/txq.h"
#include "wire/ddp.h"

#define SEGQ_COPY_MAX TXQ_COPY_MAX /* payload up to this is copied */
#define SEGQ_MSGS 64               /* a power of two; few, because unqueued data can still be cut to the MTU */
#define SEGQ_SSN_LEN 2
#define SEGQ_MESSAGE_MIN 516 /* every path carries it (RFC 5043): the longest session control message, unfragmented */
#define SEGQ_IOV_MAX (1 + TXQ_PIECES_MAX)

struct segq_msg {
	bool in_ring;      /* its only piece */
	uint32_t ring_end; /* of its piece */
	struct ddp_hdr hdr;
	struct txq_payload payload;
};

struct segq {
	struct copyring ring;
	struct segq_msg msgs[SEGQ_MSGS];
	uint32_t head; /* counts queued messages */
	uint32_t tail; /* counts sent messages */
	uint32_t off;  /* payload of the oldest message that is already sent in parts */
	uint32_t part; /* payload in the last result of segq_peek() */
	size_t bytes;  /* of queued payload */
	bool peeked;   /* segq_sent() is allowed */
	uint8_t front[SEGQ_SSN_LEN + DDP_HDR_MAX];
};

/* ring_size: at least twice SEGQ_COPY_MAX. 0 or -ENOMEM; call segq_fini() in either case. */
int segq_init(struct segq *, uint32_t ring_size);
void segq_fini(struct segq *);
/* Called periodically: returns unneeded memory of an idle queue to the kernel. */
void segq_rest(struct segq *);

/* One more segment with this much payload fits. */
bool segq_room(const struct segq *, size_t len);
/* Queues one segment; segq_room() must be true. */
void segq_put(struct segq *, const struct ddp_hdr *, const struct txq_payload *);

static inline bool
segq_empty(const struct segq *q)
{
	return q->head == q->tail;
}

/* The oldest message as pieces, the first with the DDP-SSN `number`; returns their number, 0 if the queue is empty. A
 * segment above max bytes (>= SEGQ_MESSAGE_MIN, DDP-SSN included) is cut to its first part. May be repeated with
 * another max until segq_sent(); the pieces are valid until then. */
unsigned segq_peek(struct segq *, uint16_t number, size_t max, struct iovec iov[SEGQ_IOV_MAX]);
/* Drops all queued messages. */
void segq_clear(struct segq *);
/* SCTP has copied the message of the last segq_peek(); the next one has the next number. */
void segq_sent(struct segq *);
