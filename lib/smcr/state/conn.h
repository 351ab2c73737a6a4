/*
 * A connection: one SMC-R TCP connection's stream in both directions. Born by
 * smcr_open; its life is in data/conn.c. Lives until the user has released it
 * *and* the protocol is through with it; freed at the end of the turn.
 * Positions are byte counts since the start of the stream (cursor.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/timerq.h"
#include "smcr/smcr.h"
#include "smcr/state/cursor.h"
#include "smcr/state/lgr.h"

struct sndbuf;

enum conn_state {
	CONN_RENDEZVOUS, /* see enum rdv_step */
	CONN_FALLBACK,   /* the middle carries the data: nothing of ours is left, but for RDV_LATE_DECLINE */
	/* RFC 7609 Figure 22, in a row: conn_is_open */
	CONN_ACTIVE,
	CONN_PEER_CLOSE_WAIT1,
	CONN_PEER_CLOSE_WAIT2,
	CONN_APP_FIN_CLOSE_WAIT,
	CONN_APP_CLOSE_WAIT1,
	CONN_APP_CLOSE_WAIT2,
	CONN_PEER_FIN_CLOSE_WAIT,
	/* Figure 23 */
	CONN_PEER_ABORT_WAIT,
	CONN_PROCESS_ABORT,
	CONN_LAST_WAIT, /* ours: both sides have said C or A; a failover would have to say ours again while it is not complete */
	CONN_CLOSED,
	CONN_STATE_CNT,
};

/* -- the parts -- */

/*
 * Sending (4.5, 4.7): head >= sent >= done, acked. What is behind the later of done and acked is released: its place in
 * the ring may be used again, and it is never written again.
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
	uint64_t over; /* where it last started over at the begin of the peer's element; UINT64_MAX: nowhere */
	/* What was sent from here on may still be on its way over a link that was lost (failover.c); UINT64_MAX: no such
	 * link is left. */
	uint64_t late;
	int64_t blocked_ns; /* since when `blocked` is set */
	/* Positions one past urgent bytes not yet consumed by the peer, 0 = none; [0] first. When both are taken
	 * smcr_tx_space has no room. */
	uint64_t urgent[2];
	uint16_t seq;       /* sequence of the last CDC posted */
	uint16_t done_seq;  /* of the last CDC complete */
	uint8_t done_flags; /* and its conn flags */
	uint8_t move_to;    /* link number: to go over there when all is complete; 0 = stay */
	uint8_t probes;     /* bytes of the peer's element that are kept back as a rule and may be used now (tx.c) */
	bool any;           /* a CDC was posted */
	bool validate;      /* a failover validation message is owed */
	bool in_peace;   /* and can say that nothing was under way over the links that were left since the last one */
	bool resumes;    /* counted in lgr->failover.left */
	bool pending;    /* a CDC is owed even without data */
	bool full;       /* smcr_tx_space answered 0: raise WRITABLE */
	bool ring_short; /* full because the group had no ring to lend */
	bool blocked;    /* B is set in our last CDC */
	bool urgent_pending; /* P is set in our last CDC */
	bool asks;           /* R is set in our last CDC */
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

/* Receiving. */
struct conn_rx {
	struct cursor_space space; /* of our element */
	uint64_t head;             /* the peer's producer cursor */
	uint64_t tail;             /* consumed by the user */
	uint64_t announced;        /* consumer cursor in our last CDC */
	uint64_t urgent;           /* position one past the urgent byte, 0 = none */
	uint32_t starved;          /* how often all was consumed while the peer was blocked */
	uint16_t seq;              /* of the last CDC received */
	uint8_t link;              /* number of the link that the peer sends over, 0 = not known yet */
	int64_t unheard_ns; /* since when that link is deleted, and the peer not heard over another one; 0: it is not */
	bool far;           /* the path is long (window_is_far) */
	bool dropped;       /* what is unread is of no use to the user */
	bool any;           /* a CDC came */
	bool blocked;       /* B in the peer's last CDC */
	bool update_req;    /* R in the peer's last CDC */
	bool moves;         /* the link that the peer sends over was lost, and nothing has come over another one */
};

/* How far a connection's end has come. */
struct conn_close {
	bool shut_wr;     /* the user sends no more */
	bool want_close;  /* smcr_close was called */
	bool want_reset;  /* smcr_reset was called: A when all is written */
	bool want_abort;  /* A is owed */
	bool tcp_fin;     /* FIN seen on the middle */
	bool tcp_rst;     /* RST seen on the middle, and no link has answered since */
	bool doubt;       /* our D or C is out, and the peer's last word may be lost with a link (failover.c) */
	bool ask;         /* and R is owed */
	bool quarantine;  /* of a connection that has ended and reads on: its element goes there */
	uint8_t tx_flags; /* conn flags already sent: D, C, A; a failover takes back those that may not have arrived */
	uint8_t tx_flags_ever; /* ever sent */
	uint8_t rx_flags;      /* conn flags received */
	int64_t rst_ns;        /* when tcp_rst was set last; 0: never */
};

struct smcr_conn {
	struct smcr *eng;
	void *app;
	uint32_t id; /* our alert token */
	enum smcr_role role;
	enum conn_state state;
	enum smcr_reason reason;
	const char *detail; /* static */
	unsigned events;    /* SMCR_EV_ not yet taken */
	bool released;      /* by the user */
	bool reported;      /* SMCR_EV_CLOSED was raised, or would have been */
	bool established;   /* SMCR_EV_ESTABLISHED was raised, and not taken back because there is no user for data */
	bool prewarm;       /* nobody is behind it, at neither end */
	struct rdv *rdv;    /* the rendezvous, while it lasts */
	struct conn_mark *mark; /* in rdv */
	struct smcr_diag diag;
	int64_t born_ns;
	struct list_node event_node; /* engine's list of connections with events, or of those to be freed */
	struct list_node lgr_node;
	struct list_node ready_node; /* link->ready */
	struct timer timer;          /* close_ms, abort_ms, fin_grace_ms */

	struct lgr *lgr;   /* NULL before the group is chosen and after the elements are given back */
	struct link *link; /* over which we send */
	struct rmb *rmb;
	uint8_t elem_idx;
	struct remote_rmb *peer_rmb;
	uint8_t peer_elem_idx;
	uint32_t peer_elem_size;
	uint32_t peer_token;

	struct conn_tx tx;
	struct conn_rx rx;
	struct conn_close close;
};

const char *conn_state_str(enum conn_state);
/* The only place where the state changes: asserts that the change is one of Figures 22 and 23, or of what is before them. */
void conn_set_state(struct smcr_conn *, enum conn_state);
void conn_raise(struct smcr_conn *, unsigned events);
/* CLOSED is raised, once, with this reason; the protocol may go on behind. */
void conn_report(struct smcr_conn *, enum smcr_reason, const char *detail);
/* The connection is established and not ended: its data path is alive. */
bool conn_is_open(const struct smcr_conn *);
/* The user may read what stands in our element, though the connection may have ended. */
bool conn_is_readable(const struct smcr_conn *);
