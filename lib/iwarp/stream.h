/* A DDP/RDMAP stream in full operation (RFC 5041, RFC 5040), without I/O. It checks and places each received ULPDU,
 * keeps posted receives and inbound and outbound Reads, numbers messages, and makes the Terminate of an error. The
 * caller handles work requests, and queues outgoing segments in a txq. */
#pragma once

#include "iwarp/stag.h"
#include "iwarp/txq.h"
#include "wire/ddp.h"
#include "wire/rdmap.h"

struct stream_recv {
	uint64_t wr_id;
	uint8_t *ptr;
	uint32_t len;
};

enum stream_llp { STREAM_MPA, STREAM_SCTP };

struct stream_config {
	const struct stag_table *stags;
	const void *pd;
	enum stream_llp llp;
	uint32_t rq_depth;
	/* Space for inbound Reads, whatever the negotiated depth: a card may not count its own RTR Read. */
	uint16_t ird_max;
	uint16_t ord_max; /* space for outstanding Reads */
};

enum stream_rx {
	STREAM_RX_NONE,       /* placed or noted, no event */
	STREAM_RX_RECV,       /* a Send is complete: ev.wr_id, ev.len */
	STREAM_RX_READ_REQ,   /* a Read Request was queued; see stream_serve() */
	STREAM_RX_READ_DONE,  /* our oldest Read is complete */
	STREAM_RX_NO_RECV,    /* a Send, but no receive is posted: nothing was used, retry later */
	STREAM_RX_TERMINATED, /* ev.term is the peer's Terminate */
	STREAM_RX_ERROR,      /* ev.term is the Terminate to send */
};

struct stream_ev {
	uint64_t wr_id;
	uint32_t len;
	struct rdmap_term term;
};

struct stream {
	struct stream_config cfg;
	uint16_t ord;  /* negotiated */
	bool rtr_send; /* the first FPDU may be a zero-length Send that consumes no receive */
	bool started;  /* received at least one segment */
	bool dead;     /* an error was reported or a Terminate received: input is refused */
	/* inbound */
	uint32_t rx_msn[RDMAP_QN_CNT];
	struct stream_recv *rq;
	uint32_t rq_mask;
	uint32_t rq_head, rq_tail;   /* count posted and used receives */
	uint32_t rq_got;             /* bytes placed in the oldest receive */
	struct rdmap_read *in_reads; /* advanced by bytes sent */
	uint32_t in_mask, in_head, in_tail;
	/* outbound */
	uint32_t tx_msn[RDMAP_QN_CNT];
	struct rdmap_read *out_reads; /* advanced by bytes placed */
	uint32_t out_mask, out_head, out_tail;
};

/* 0 or -ENOMEM; call stream_fini() in either case. */
int stream_init(struct stream *, const struct stream_config *);
void stream_fini(struct stream *);
/* Full operation starts; ord must fit the reserved space. */
void stream_start(struct stream *, uint16_t ord, bool rtr_send);

static inline uint32_t
stream_recv_cnt(const struct stream *s)
{
	return s->rq_head - s->rq_tail;
}

/* stream_recv_cnt() must be below rq_depth. */
void stream_post_recv(struct stream *, const struct stream_recv *);
/* Removes the oldest receive; false if none is posted. */
bool stream_flush_recv(struct stream *, struct stream_recv *out);

enum stream_rx stream_ulpdu(struct stream *, struct span ulpdu, struct stream_ev *);

/* Checks the header of a Write for placement before its turn (iwarp/ssn.h) or for reading straight into place. True:
 * bytes may be stored at *at; set `started` when all are stored and the Write is next. False: pass it as usual. */
bool stream_place_early(struct stream *, const struct ddp_hdr *, size_t payload_len, uint8_t **at);
/* The same for the rest of such a Write, whose header has moved on: it was counted. */
bool stream_place_rest(struct stream *, const struct ddp_hdr *, size_t payload_len, uint8_t **at);
/* The rest of such a Write must not be stored after all: makes the Terminate. */
void stream_fail_place(struct stream *, const struct ddp_hdr *, size_t payload_len, struct rdmap_term *out);

/* An error of the layer below: makes the Terminate. Errors of SCTP are RDMA_STREAM: RFC 5043 has no codes, the LLP's
 * only type has those of MPA (RFC 6580 3.3), and DDP codes refer to a buffer, which a message may not have. */
void stream_fail_llp(struct stream *, enum rdmap_error, struct rdmap_term *out);

/* -- outbound headers; one segment each -- */

/* At offset `mo` of a message; the message number advances with the last segment. */
struct ddp_hdr stream_untagged_hdr(struct stream *, enum rdmap_op op, uint32_t mo, bool last);
struct ddp_hdr stream_tagged_hdr(enum rdmap_op op, uint32_t stag, uint64_t to, bool last);

static inline uint32_t
stream_reads_out(const struct stream *s)
{
	return s->out_head - s->out_tail;
}

/* The Read Request; stream_reads_out() must be below ord. The sink of a zero-length Read is not checked. */
struct ddp_hdr stream_read_hdr(struct stream *, const struct rdmap_read *, uint8_t body[RDMAP_READ_LEN]);

static inline bool
stream_must_serve(const struct stream *s)
{
	return s->in_head != s->in_tail;
}

/* The next segment of the answer to the oldest inbound Read, at most max payload bytes: its header and source memory.
 * False: the source is not readable (or no longer), *term must be sent. */
bool stream_serve(struct stream *, size_t max, struct ddp_hdr *out, struct span *from, struct rdmap_term *term);
