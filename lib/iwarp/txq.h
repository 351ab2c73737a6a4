/* The sending half of MPA full operation: makes FPDUs of DDP segments and holds them, as pieces for one writev, until
 * the stream took them. Headers, CRCs and small payloads are copied to a ring and run together; larger payloads stay in
 * place and must not change until sent. No allocation after the start. */
#pragma once

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
	uint32_t ring_end; /* end of a piece in the ring */
	bool in_ring;
	bool last; /* of its FPDU */
};

struct txq {
	struct copyring ring;
	uint32_t seg_head; /* counts queued pieces */
	uint32_t seg_tail; /* counts sent pieces */
	struct txq_seg segs[TXQ_SEGS];
	size_t bytes; /* in the queue */
	bool crc;
	bool markers;
	bool apart;   /* each FPDU is written separately, so that it begins a TCP segment */
	uint32_t pos; /* stream position of the next FPDU */
};

/* size: of the ring; with markers it must hold whole FPDUs. 0 or -ENOMEM. */
int txq_init(struct txq *, uint32_t size);
void txq_fini(struct txq *);
/* Full operation starts; FPDUs are not kept separate. */
void txq_start(struct txq *, bool crc, bool markers);

/* Called periodically: returns unneeded memory of an idle queue to the kernel. */
void txq_rest(struct txq *);

/* The largest ULPDU that can be queued. */
size_t txq_ulpdu_max(const struct txq *);
/* One more FPDU with this much payload fits. */
bool txq_room(const struct txq *, size_t payload_len);

/* Data after the DDP header, RDMAP headers included. */
struct txq_payload {
	unsigned cnt;
	size_t len;
	struct iovec v[TXQ_PIECES_MAX];
};

/* The part [off, off + len) of `cnt` pieces, as pieces in out; returns their number. */
unsigned txq_pieces(const struct iovec *v, unsigned cnt, size_t off, size_t len, struct iovec *out);

/* Copies the pieces to `at`; returns the end of the copy. */
uint8_t *txq_payload_copy(const struct txq_payload *, uint8_t *at);

/* Queues one FPDU; txq_room() must be true. */
void txq_put(struct txq *, const struct ddp_hdr *, const struct txq_payload *);

static inline bool
txq_empty(const struct txq *q)
{
	return q->seg_head == q->seg_tail;
}

/* The next pieces to write, at most max, of one FPDU if they are kept separate; returns their number. */
unsigned txq_gather(const struct txq *, struct iovec *iov, unsigned max);
/* The stream took n bytes. */
void txq_sent(struct txq *, size_t n);
