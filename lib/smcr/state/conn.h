/* A connection: both streams of one SMC-R TCP connection. Freed at the end of the turn in which the user has released
 * it *and* the protocol has ended. Positions are byte counts since the start of the stream (cursor.h). */
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
	CONN_SPARE,      /* server: granted to the client, which has not opened it (data/grant.h) */
	CONN_FALLBACK,   /* the CLC connection carries the data; only RDV_LATE_DECLINE may remain */
	/* RFC 7609 Figure 22; contiguous: conn_is_open */
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
	CONN_LAST_WAIT, /* smcrd: both sides sent C or A; until ours is complete a failover repeats it */
	CONN_CLOSED,
	CONN_STATE_CNT,
};

/* -- the parts -- */

/* Sending (4.5, 4.7): head >= sent >= done, acked. Bytes before the later of done and acked are released: their space
 * in the ring is reusable, and they are never written again. */
struct conn_tx {
	struct cursor_space space; /* of the peer's element */
	struct sndbuf *sndbuf;     /* NULL while nothing is in flight */
	uint64_t ring_base;        /* stream position at offset 0 of the send ring */
	uint64_t head;             /* committed by the user */
	uint64_t sent;             /* posted: write and CDC */
	uint64_t done;             /* complete: the peer's RNIC has it */
	uint64_t acked;            /* the peer's consumer cursor */
	/* A failover repeats [floor, replay). Until that is complete, its space in the ring belongs to the device. */
	uint64_t floor, replay;
	uint64_t high; /* highest value of sent; a failover sets sent back (failover.c) */
	uint64_t over; /* position of the last start over in the peer's element; UINT64_MAX: nowhere */
	/* From here on, data may still be in flight over a lost link (failover.c); UINT64_MAX: no such link. */
	uint64_t late;
	int64_t blocked_ns; /* when `blocked` was set */
	int64_t ring_ns;    /* when the ring was borrowed */
	/* Positions one past urgent bytes not consumed by the peer, 0 = none; [0] first. Both in use: no space. */
	uint64_t urgent[2];
	uint16_t seq;        /* sequence of the last CDC posted */
	uint16_t done_seq;   /* of the last CDC complete */
	uint8_t done_flags;  /* and its conn flags */
	uint8_t move_to;     /* link number to move to when all is complete; 0 = stay */
	uint8_t probes;      /* bytes of the peer's element that are normally reserved and usable now (tx.c) */
	bool any;            /* a CDC was posted */
	bool validate;       /* a failover validation message is owed */
	bool unproven;       /* one is under way: another would overtake it */
	bool in_peace;       /* and can report that nothing was in flight over the links left since the last one */
	bool resumes;        /* counted in lgr->failover.left */
	bool pending;        /* a CDC is owed even without data */
	bool full;           /* smcr_tx_space returned 0: raise WRITABLE */
	bool ring_short;     /* full because the group had no ring to lend */
	bool outgrown;       /* full until the ring is empty and goes back, as there is a larger one */
	bool blocked;        /* B is set in our last CDC */
	bool urgent_pending; /* P is set in our last CDC */
	bool asks;           /* R is set in our last CDC */
};

static inline uint64_t
tx_released(const struct conn_tx *tx)
{
	return tx->done > tx->acked ? tx->done : tx->acked;
}

/* No posted or future request reads the ring before this position. */
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
	/* When that link was deleted, with nothing received over another one since; 0: not the case. */
	int64_t unheard_ns;
	bool far;        /* the path is long (window_is_far) */
	bool dropped;    /* unread data is of no use to the user */
	bool any;        /* a CDC was received */
	bool blocked;    /* B in the peer's last CDC */
	bool update_req; /* R in the peer's last CDC */
	bool moves;      /* the link that the peer sends over was lost, and nothing was received over another one */
};

/* Progress of a connection's close. */
struct conn_close {
	bool shut_wr;     /* the user sends no more data */
	bool want_close;  /* smcr_close was called */
	bool want_reset;  /* smcr_reset was called: A when all is written */
	bool want_abort;  /* A is owed */
	bool tcp_fin;     /* FIN seen on the CLC connection */
	bool tcp_rst;     /* RST seen on the CLC connection, and no link has answered since */
	bool doubt;       /* our D or C was sent, and the peer's last message may be lost with a link (failover.c) */
	bool ask;         /* and R is owed */
	bool quarantine;  /* of a closed connection with unread data: its element is to be quarantined */
	uint8_t tx_flags; /* conn flags already sent: D, C, A; a failover clears those that may not have arrived */
	uint8_t tx_flags_ever; /* ever sent */
	uint8_t rx_flags;      /* conn flags received */
	int64_t rst_ns;        /* when tcp_rst was last set; 0: never */
};

struct smcr_conn {
	struct smcr *eng;
	void *app;
	uint32_t id; /* our alert token */
	enum smcr_role role;
	enum conn_state state;
	enum smcr_reason reason;
	const char *detail; /* static */
	unsigned events;    /* SMCR_EV_ bits not yet taken */
	bool released;      /* by the user */
	bool reported;      /* SMCR_EV_CLOSED was raised, or would have been */
	bool established;   /* SMCR_EV_ESTABLISHED was raised, and not withdrawn for lack of a user for data */
	bool prewarm;       /* no application at either end */
	uint8_t server;     /* prewarm, asked for: state of the program behind the server, enum clc_server */
	bool over_link;     /* opened over a link, without a CLC connection */
	bool open_owed;     /* client: its OPEN is due before anything else on its link */
	bool client_used;   /* client: the peer's user connects in the name of the program's client */
	bool dest_used;     /* client: ... to smcr_open.dest. Server: smcr_take_dest was called */
	bool dest_refused;  /* the server refuses the connection because of its destination */
	bool not_opened;    /* server, over_link: its user did not admit it, so A says that no program has a byte */
	uint8_t hops;       /* server: of the client's path; client, over_link: of its OPEN, as the next two */
	uint32_t origin;
	struct open_client client;
	uint32_t ticket;        /* at a server, of the service */
	int64_t open_tested_ns; /* client, over_link: when its silent link was tested; 0: heard since */
	struct rdv *rdv;        /* the rendezvous, while it lasts */
	struct conn_mark *mark; /* in rdv */
	struct smcr_diag diag;
	int64_t born_ns;
	struct list_node event_node; /* engine's list of connections with events, or of those to be freed */
	struct list_node lgr_node;
	struct list_node ready_node; /* link->ready */
	struct timer timer;          /* close_ms, abort_ms, fin_grace_ms, silence before an answer */

	struct lgr *lgr;   /* NULL before the group is chosen and after the elements are returned */
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

extern const struct state_row conn_states[]; /* by enum conn_state */
/* The only function that changes the state: asserts that Figures 22 and 23, or the setup, allow it. */
void conn_set_state(struct smcr_conn *, enum conn_state);
void conn_raise(struct smcr_conn *, unsigned events);
/* Client, over_link: the peer has not answered the OPEN. */
static inline bool
conn_is_unanswered(const struct smcr_conn *conn)
{
	return conn->over_link && conn->role == SMCR_CLIENT && !conn->rx.any;
}
/* Raises CLOSED once, with this reason; the protocol may continue afterwards. */
void conn_report(struct smcr_conn *, enum smcr_reason, const char *detail);
/* Established and not ended: the data path is usable. */
bool conn_is_open(const struct smcr_conn *);
/* The user may read data in our element, even after the connection has ended. */
bool conn_is_readable(const struct smcr_conn *);
