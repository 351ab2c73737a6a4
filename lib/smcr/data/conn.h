/*
 * A connection: one SMC-R TCP connection's stream in both directions. Born by
 * smcr_open; its rendezvous is in rendezvous.c, its data path in tx.c and
 * rx.c, its end in close.c. Lives until the user has released it *and* the
 * protocol is through with it; freed at the end of the turn.
 *
 * Positions are byte counts since the start of the stream (cursor.h).
 */
#ifndef SMCRD_SMCR_CONN_H
#define SMCRD_SMCR_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/timerq.h"
#include "smcr/data/cursor.h"
#include "smcr/group/lgr.h"
#include "smcr/smcr.h"
#include "wire/cdc.h"
#include "wire/clc.h"

enum conn_state {
	CONN_RENDEZVOUS, /* see enum rdv_step */
	CONN_FALLBACK,   /* the middle carries the data: nothing of ours any more, but for RDV_LATE_DECLINE */
	/* RFC 7609 Figure 22 */
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

/* Where the rendezvous stands (rendezvous.c). */
enum rdv_step {
	RDV_NONE,
	/* client */
	RDV_WAIT_TURN, /* another connection makes the group to this peer */
	RDV_WAIT_ACCEPT,
	RDV_CONNECTING, /* first contact: QP is being connected */
	RDV_WAIT_RKEY,  /* new RMB is being confirmed, then Confirm goes */
	RDV_WAIT_GROUP, /* first contact: Confirm is out, LLC goes on */
	/* both */
	RDV_LATE_DECLINE, /* we declined; the peer's Decline may have crossed ours. Goes on in CONN_FALLBACK */
	/* server */
	RDV_WAIT_PROPOSAL,
	RDV_WAIT_ADMIT,      /* PROPOSAL told to the user */
	RDV_WAIT_PEER_GROUP, /* another connection of this peer makes the group */
	RDV_WAIT_SRV_RKEY,
	RDV_WAIT_CONFIRM,
	RDV_WAIT_LINK, /* first contact: Confirm is in, QP and LLC go on */
};

#define RDV_OUT_MAX (2 * CLC_MAX_SENT_LEN) /* a message and a Decline behind it */

/* Only while the rendezvous lasts; malloced apart so that an idle connection stays small. Freed when it is over and
 * the last CLC bytes were taken. */
struct rdv {
	struct smcr_conn *conn;
	enum rdv_step step;
	struct smcr_open open;
	struct timer timer;
	uint8_t in[CLC_MAX_LEN]; /* the message being read */
	size_t in_len, in_want;
	size_t left_len; /* bytes of `in` that are data (smcr_clc_leftover) */
	uint8_t out[RDV_OUT_MAX];
	size_t out_len;
	struct clc_proposal proposal; /* server: the peer's */
	struct clc_accept peer;       /* the peer's Accept or Confirm */
	bool prewarm;                 /* no application behind: made for the group alone */
	bool confirm_in;              /* server: the Confirm of a first contact has arrived */
	bool confirm_link_out;        /* first contact: our CONFIRM LINK is sent: no Decline of ours any more (C.2) */
	bool confirm_link_in;         /* server: our CONFIRM LINK has arrived at the client */
	enum smcr_reason abort;       /* server, Accept is out: aborted when the Confirm comes; SMCR_OK = not */
	uint32_t failed;              /* server, first contact: decline with this when the Confirm comes */
	struct lgr *lgr;              /* the group being formed, or whose new RMB is awaited */
	struct list_node wait;        /* peer->waiting or lgr->wait_rmb */
	int64_t until_ns;      /* we decline by then, as the peer waits for our next message and resets soon after */
	struct peer *peer_ent; /* whose first contact this leads or waits for */
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
	bool told;          /* SMCR_EV_CLOSED was raised, or would have been */
	bool established;   /* SMCR_EV_ESTABLISHED was raised, and not taken back because there is no user for data */
	bool foreign;       /* the peer's CLC message told nothing of ours: it is no smcrd, but Linux, say */
	struct rdv *rdv;
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
	struct cursor_space rx_space; /* of our element */
	struct cursor_space tx_space; /* of the peer's */

	/* Send direction: head >= sent >= done, acked. What is behind the later of done and acked is released: its
	 * place in the ring may be used again, and it is never written again. */
	struct sndbuf *sndbuf; /* NULL while nothing is in flight */
	uint64_t ring_base;    /* stream position at offset 0 of the send ring */
	uint64_t tx_head;      /* committed by the user */
	uint64_t tx_sent;      /* posted: write and CDC */
	uint64_t tx_done;      /* complete: the peer's RNIC has it */
	uint64_t tx_acked;     /* the peer's consumer cursor */
	/* A failover sends [tx_floor, tx_replay) again: until that is complete its place in the ring is the device's, though
	 * the peer may have consumed what came over the old link. */
	uint64_t tx_floor, tx_replay;
	uint64_t tx_high; /* the furthest that tx_sent ever was: a failover goes back (failover.c) */
	/* What was sent from here on may still be on its way over a link that was lost (failover.c); UINT64_MAX: no such
	 * link is left. */
	uint64_t tx_late;
	/* Positions one past urgent bytes not yet consumed by the peer, 0 = none; [0] first. When both are taken
	 * smcr_tx_space has no room. */
	uint64_t tx_urgent[2];
	uint16_t tx_seq;       /* sequence of the last CDC posted */
	uint16_t tx_done_seq;  /* of the last CDC complete */
	uint8_t tx_done_flags; /* and its conn flags */
	uint8_t move_to;       /* link number: to go over there when all is complete; 0 = stay */
	bool tx_any;           /* a CDC was posted */
	bool tx_done_any;      /* one is complete */
	bool tx_validate;      /* a failover validation message is owed */
	bool tx_resumes;       /* counted in lgr->failover.left */
	bool tx_pending;       /* a CDC is owed even without data */
	bool tx_full;          /* smcr_tx_space answered 0: raise WRITABLE */
	bool tx_ring_short;    /* tx_full because the group had no ring to lend */
	bool tx_blocked;       /* B is set in our last CDC */
	bool tx_urgent_told;   /* P is set in our last CDC */

	/* receive direction */
	uint64_t rx_head;   /* the peer's producer cursor */
	uint64_t rx_tail;   /* consumed by the user */
	uint64_t rx_told;   /* consumer cursor in our last CDC */
	uint64_t rx_urgent; /* position one past the urgent byte, 0 = none */
	uint16_t rx_seq;    /* of the last CDC received */
	uint8_t rx_link;    /* number of the link that the peer sends over, 0 = not known yet */
	bool rx_any;        /* a CDC came */
	bool rx_blocked;    /* B in the peer's last CDC */
	bool rx_update_req; /* R in the peer's last CDC */

	/* closing */
	bool shut_wr;     /* the user sends no more */
	bool want_close;  /* smcr_close was called */
	bool want_abort;  /* A is owed */
	uint8_t tx_flags; /* conn flags already sent: D, C, A; a failover takes back those that may not have arrived */
	uint8_t tx_said;  /* ever sent */
	uint8_t rx_flags; /* conn flags received */
	bool tcp_fin;     /* FIN seen on the middle */
};

/* -- conn.c -- */
/* A connection in state RENDEZVOUS with an id; rdv is NULL. NULL with *err = -EMFILE or -ENOMEM (both counted). */
struct smcr_conn *conn_new(struct smcr *, const struct smcr_open *, int *err);
/* Frees it (and conn->rdv by rdv_free); it is in no list of events, links or groups any more. */
void conn_free(struct smcr_conn *);
const char *conn_state_str(const struct smcr_conn *);
/* The only place where state changes: legality, timers, counters. */
void conn_set_state(struct smcr_conn *, enum conn_state);
void conn_raise(struct smcr_conn *, unsigned events);
/* CLOSED is raised, once, with this reason; the protocol may go on behind. */
void conn_tell(struct smcr_conn *, enum smcr_reason, const char *detail);
/* The connection is established and not ended: its data path is alive. */
bool conn_is_open(const struct smcr_conn *);
/* Rendezvous is over: state ACTIVE, ESTABLISHED raised; data that overtook the Confirm becomes readable. */
void conn_establish(struct smcr_conn *);
/* Joins the group with the element in conn->rmb/elem_idx, to send over link; receive cursors at their start, eye
 * catcher written when the group uses them (only now is that known). From now on CDC messages are accepted (they may
 * overtake the Confirm, 3.5.2.4). */
void conn_attach(struct smcr_conn *, struct lgr *, struct link *);
/* Holds the element that the peer's Accept or Confirm names, in this RMB of its: from now on, long before the first byte
 * at first contact, the peer cannot take the RMB back. */
void conn_hold_peer_elem(struct smcr_conn *, struct remote_rmb *, const struct clc_accept *);
/* Takes the element that it holds into use. */
void conn_attach_peer(struct smcr_conn *);
/* Lets go of the peer's element, if there is one. */
void conn_drop_peer_elem(struct smcr_conn *);
/* Gives the elements back (ours quarantined when the peer did not acknowledge) and leaves the group (lgr_conn_gone).
 * Also for a connection that has no element of the peer yet. */
void conn_detach(struct smcr_conn *, bool quarantine);
/* The end: state CLOSED, CLOSED raised, elements given back. */
void conn_end(struct smcr_conn *, enum smcr_reason, const char *detail, bool quarantine);

/* -- tx.c -- */
/* Puts the connection on its link's ready list. */
void conn_tx_schedule(struct smcr_conn *);
/* Posts one CDC message and lowers the room: 0 or a negative errno. */
int conn_post_cdc(struct smcr_conn *, const struct cdc_msg *, const struct link_wr *, struct rnic_credits *);
/* Posts what may go now within `room`, which it lowers; true when more could go but for the room. */
bool conn_tx_post(struct smcr_conn *, struct rnic_credits *room);

static inline uint64_t
conn_tx_released(const struct smcr_conn *conn)
{
	return conn->tx_done > conn->tx_acked ? conn->tx_done : conn->tx_acked;
}

/* Up to where no posted request reads the ring, nor any later one will. */
static inline uint64_t
conn_tx_free(const struct smcr_conn *conn)
{
	if (conn->tx_done >= conn->tx_replay)
		return conn_tx_released(conn);
	return conn->tx_done > conn->tx_floor ? conn->tx_done : conn->tx_floor;
}

/* The peer's consumer cursor moved. */
void conn_tx_acked(struct smcr_conn *, uint64_t pos);
/* The ring goes back to the group, at once or when the device is done with it; what was not sent is dropped. */
void conn_tx_drop(struct smcr_conn *);
/* A CDC and the writes before it are complete. */
void conn_wr_done(struct smcr_conn *, const struct link_wr *);

/* -- rx.c -- */
/* False: a failover validation message that is ahead of what we have; it counts only when the completions of all devices
 * are handled, as `last` says (4.6.1). */
bool conn_rx_cdc(struct link *, const uint8_t *buf, size_t len, bool last);

/* -- close.c -- */
enum close_event {
	CLOSE_APP_SHUTDOWN, /* smcr_shutdown_wr: D is sent */
	CLOSE_APP_CLOSE,    /* smcr_close: C is sent */
	CLOSE_PEER_DONE,    /* D received */
	CLOSE_PEER_CLOSED,  /* C received */
	CLOSE_PEER_ABORT,   /* A received */
	CLOSE_LOCAL_ABORT,  /* A is owed */
	CLOSE_LAST_SENT,    /* our C or A is complete */
	CLOSE_TIMEOUT,
	CLOSE_EVENT_CNT,
};

void close_event(struct smcr_conn *, enum close_event);
/* Resets an established connection: the user is told at once, A follows where it may (4.8.2). */
void conn_abort(struct smcr_conn *, enum smcr_reason, const char *detail);
/* Flags of a CDC message, or those that came before the connection was established. */
void conn_peer_flags(struct smcr_conn *, uint8_t conn_flags);
/* The flags that the next CDC message carries when everything up to `end` is written by then. */
uint8_t conn_due_flags(const struct smcr_conn *, uint64_t end);
/* A CDC message with these flags is posted. May end the connection. */
void conn_flags_posted(struct smcr_conn *, uint8_t conn_flags);
/* Closing got further (data complete, consumed): its timer starts anew. */
void conn_close_progress(struct smcr_conn *);
void conn_timer_fired(struct timer *, int64_t now_ns);
/* FIN on the middle: D, C or A has to follow within fin_grace_ms. */
void conn_fin_seen(struct smcr_conn *);
/* The peer gives its element to another connection (4.4.2). */
void conn_elem_taken(struct smcr_conn *);
/* The group or its last link is gone: no message can be sent. */
void conn_link_lost(struct smcr_conn *, enum smcr_reason, const char *detail);

#endif
