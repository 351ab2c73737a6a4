/*
 * A DDP/RDMAP stream in full operation (RFC 5041, RFC 5040), without I/O:
 * judges and places every ULPDU that arrives, keeps receives, the queue of
 * inbound Reads and that of outstanding ones, numbers messages, and makes the
 * Terminate when something is wrong. What goes out is queued in a txq by the
 * caller, who knows about work requests.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "iwarp/stag.h"
#include "iwarp/txq.h"
#include "wire/ddp.h"
#include "wire/rdmap.h"

struct stream_recv {
	uint64_t wr_id;
	uint8_t *ptr;
	uint32_t len;
};

enum stream_llp {
	STREAM_MPA,
	STREAM_SCTP,
};

struct stream_config {
	const struct stag_table *stags;
	const void *pd;
	enum stream_llp llp;
	uint32_t rq_depth;
	/* Space for inbound Reads. All of it may be used, whatever depth was negotiated: a peer whose card sends an RTR Read by
	 * itself may not count that one. */
	uint16_t ird_max;
	uint16_t ord_max; /* space for outstanding Reads */
};

enum stream_rx {
	STREAM_RX_NONE,       /* placed or noted, nothing to report */
	STREAM_RX_RECV,       /* a Send is complete: ev.wr_id, ev.len */
	STREAM_RX_READ_REQ,   /* a Read Request was queued, see stream_serve() */
	STREAM_RX_READ_DONE,  /* our oldest Read was answered */
	STREAM_RX_NO_RECV,    /* a Send, but no receive is posted: nothing was used, come again later */
	STREAM_RX_TERMINATED, /* the peer's Terminate is in ev.term */
	STREAM_RX_ERROR,      /* the Terminate to send is in ev.term */
};

struct stream_ev {
	uint64_t wr_id;
	uint32_t len;
	struct rdmap_term term;
};

struct stream {
	struct stream_config cfg;
	uint16_t ord;  /* negotiated */
	bool rtr_send; /* the first FPDU may be a zero-length Send that takes no receive */
	bool started;  /* something was received */
	bool dead;     /* an error was reported or a Terminate came: nothing more is taken */
	/* inbound */
	uint32_t rx_msn[RDMAP_QN_CNT];
	struct stream_recv *rq;
	uint32_t rq_mask;
	uint32_t rq_head;            /* counts posted */
	uint32_t rq_tail;            /* counts used */
	uint32_t rq_got;             /* bytes placed in the oldest receive */
	struct rdmap_read *in_reads; /* moved on by what was sent */
	uint32_t in_mask;
	uint32_t in_head;
	uint32_t in_tail;
	/* outbound */
	uint32_t tx_msn[RDMAP_QN_CNT];
	struct rdmap_read *out_reads; /* moved on by what was placed */
	uint32_t out_mask;
	uint32_t out_head;
	uint32_t out_tail;
};

/* 0 or -ENOMEM; to be ended in either case. */
int stream_init(struct stream *, const struct stream_config *);
void stream_fini(struct stream *);
/* Full operation starts; ord within the space given. */
void stream_start(struct stream *, uint16_t ord, bool rtr_send);

static inline uint32_t
stream_recv_cnt(const struct stream *s)
{
	return s->rq_head - s->rq_tail;
}

/* There is room (stream_recv_cnt() < rq_depth). */
void stream_post_recv(struct stream *, const struct stream_recv *);
/* Takes the oldest receive back: false when there is none. */
bool stream_flush_recv(struct stream *, struct stream_recv *out);

enum stream_rx stream_ulpdu(struct stream *, struct span ulpdu, struct stream_ev *);

/*
 * For payload that is placed before its turn (iwarp/ssn.h), or read straight
 * into place: judges the header of a Write of payload_len bytes. True: they may
 * be put at *at, as far as they are there at once; stream_placed() when all are
 * and it is the Write's turn. False: go the usual way.
 */
bool stream_place_early(struct stream *, const struct ddp_hdr *, size_t payload_len, uint8_t **at);
void stream_placed(struct stream *);
/* The rest of such a Write may not be put there after all: the Terminate for it. */
void stream_fail_place(struct stream *, const struct ddp_hdr *, size_t payload_len, struct rdmap_term *out);

/* An error below: the Terminate for MPA error `code`. */
void stream_fail_llp(struct stream *, uint8_t code, struct rdmap_term *out);
/* Over SCTP: the DDP-SSNs of the peer make no order. */
void stream_fail_order(struct stream *, struct rdmap_term *out);

/* -- outbound headers; one segment each -- */

/* At offset `mo` of a message; the message number moves on with the last one. */
struct ddp_hdr stream_untagged_hdr(struct stream *, enum rdmap_op op, uint32_t mo, bool last);
struct ddp_hdr stream_tagged_hdr(enum rdmap_op op, uint32_t stag, uint64_t to, bool last);

static inline uint32_t
stream_reads_out(const struct stream *s)
{
	return s->out_head - s->out_tail;
}

/* There is room (stream_reads_out() < ord). Header and body of the Read Request; of no bytes: its sink is not looked at. */
struct ddp_hdr stream_read_hdr(struct stream *, const struct rdmap_read *, uint8_t body[RDMAP_READ_LEN]);

static inline bool
stream_must_serve(const struct stream *s)
{
	return s->in_head != s->in_tail;
}

/*
 * The next segment, of at most max payload bytes, of the answer to the oldest
 * inbound Read: its header and the memory it comes from. False: the source may
 * not be read, or no longer, *term is to be sent.
 */
bool stream_serve(struct stream *, size_t max, struct ddp_hdr *out, struct span *from, struct rdmap_term *term);
