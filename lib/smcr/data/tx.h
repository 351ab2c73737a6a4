/* The send direction of a connection (RFC 7609 4.5, 4.7). Positions are byte counts since the start of the stream (cursor.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "smcr/data/cursor.h"

struct link_wr;
struct rnic_credits;
struct smcr_conn;
struct sndbuf;

/*
 * head >= sent >= done, acked. What is behind the later of done and acked is released: its place in the ring may be used again,
 * and it is never written again.
 */
struct conn_tx {
	struct cursor_space space; /* of the peer's element */
	struct sndbuf *sndbuf;     /* NULL while nothing is in flight */
	uint64_t ring_base;        /* stream position at offset 0 of the send ring */
	uint64_t head;             /* committed by the user */
	uint64_t sent;             /* posted: write and CDC */
	uint64_t done;             /* complete: the peer's RNIC has it */
	uint64_t acked;            /* the peer's consumer cursor */
	/* A failover sends [floor, replay) again: until that is complete its place in the ring is the device's, though the
	 * peer may have consumed what came over the old link. */
	uint64_t floor, replay;
	uint64_t high; /* the furthest that sent ever was: a failover goes back (failover.c) */
	/* What was sent from here on may still be on its way over a link that was lost (failover.c); UINT64_MAX: no such
	 * link is left. */
	uint64_t late;
	/* Positions one past urgent bytes not yet consumed by the peer, 0 = none; [0] first. When both are taken
	 * smcr_tx_space has no room. */
	uint64_t urgent[2];
	uint16_t seq;        /* sequence of the last CDC posted */
	uint16_t done_seq;   /* of the last CDC complete */
	uint8_t done_flags;  /* and its conn flags */
	uint8_t move_to;     /* link number: to go over there when all is complete; 0 = stay */
	bool any;            /* a CDC was posted */
	bool validate;       /* a failover validation message is owed */
	bool resumes;        /* counted in lgr->failover.left */
	bool pending;        /* a CDC is owed even without data */
	bool full;           /* smcr_tx_space answered 0: raise WRITABLE */
	bool ring_short;     /* full because the group had no ring to lend */
	bool blocked;        /* B is set in our last CDC */
	bool urgent_pending; /* P is set in our last CDC */
};

static inline uint64_t
tx_released(const struct conn_tx *tx)
{
	return tx->done > tx->acked ? tx->done : tx->acked;
}

/* Up to where no posted request reads the ring, nor any later one will. */
static inline uint64_t
tx_free(const struct conn_tx *tx)
{
	if (tx->done >= tx->replay)
		return tx_released(tx);
	return tx->done > tx->floor ? tx->done : tx->floor;
}

/* Puts the connection on its link's ready list, for the next flush. */
void conn_tx_schedule(struct smcr_conn *);
/* Posts what may go now within `room`, which it lowers; true when more could go but for the room. */
bool conn_tx_post(struct smcr_conn *, struct rnic_credits *room);
/* The peer's consumer cursor moved. */
void conn_tx_acked(struct smcr_conn *, uint64_t pos);
/* The ring goes back to the group, at once or when the device is done with it; what was not sent is dropped. */
void conn_tx_drop(struct smcr_conn *);
/* A CDC and the writes before it are complete. */
void conn_wr_done(struct smcr_conn *, const struct link_wr *);
