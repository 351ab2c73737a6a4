/*
 * The life of a connection (state/conn.h): its rendezvous is another room's,
 * its sending is in tx.c, its receiving in rx.c, its end in close.c, the rest in
 * conn.c.
 */
#pragma once

#include "smcr/state/conn.h"
#include "wire/clc.h"

/* A connection in state RENDEZVOUS with an id; rdv is NULL. NULL with *err = -EMFILE or -ENOMEM (both counted). */
struct smcr_conn *conn_new(struct smcr *, const struct smcr_open *, int *err);
/* Frees it; it is in no list of events, links or groups, and its rdv is NULL. */
void conn_free(struct smcr_conn *);
/* Rendezvous is over: state ACTIVE, ESTABLISHED raised; the peer's element is written to from now on, and data that overtook
 * the Confirm becomes readable. */
void conn_establish(struct smcr_conn *);
/* Joins the group with the element in conn->rmb/elem_idx, to send over link; receive cursors at their start, eye
 * catcher written when the group uses them (only now is that known). From now on CDC messages are accepted (they may
 * overtake the Confirm, 3.5.2.4). */
void conn_attach(struct smcr_conn *, struct lgr *, struct link *);
/* Holds the element that the peer's Accept or Confirm names, in this RMB of its: from now on, long before the first byte
 * at first contact, the peer cannot take the RMB back. */
void conn_hold_peer_elem(struct smcr_conn *, struct remote_rmb *, const struct clc_accept *);
/* Lets go of the peer's element, if there is one. */
void conn_drop_peer_elem(struct smcr_conn *);
/* Gives the elements back (ours quarantined when the peer did not acknowledge) and leaves the group (mark_conn_left).
 * Also for a connection that has no element of the peer yet. */
void conn_detach(struct smcr_conn *, bool quarantine);
/* The end: state CLOSED, CLOSED raised, elements given back; but ours stays until release when something is unread there. */
void conn_end(struct smcr_conn *, enum smcr_reason, const char *detail, bool quarantine);
/* smcr_release of a connection that has ended, is aborting, or has fallen back: freed when the protocol is through with it. */
void conn_release(struct smcr_conn *);

/* -- sending -- */

/* Puts the connection on its link's ready list, for the next flush. */
void conn_tx_schedule(struct smcr_conn *);
/* The peer's full buffer holds writing up, or does so no more; counted. */
void tx_set_blocked(struct smcr_conn *, bool);
/* Posts what may go now within `room`, which it lowers; true when more could go but for the room. */
bool conn_tx_post(struct smcr_conn *, struct rnic_credits *room);
/* The peer's consumer cursor moved. */
void conn_tx_acked(struct smcr_conn *, uint64_t pos);
/* The ring goes back to the group, at once or when the device is done with it; what was not sent is dropped. */
void conn_tx_drop(struct smcr_conn *);
/* The peer may have moved to another link, and its last consumer cursor may be lost with the one before. */
void conn_tx_probe(struct smcr_conn *);
/* A CDC and the writes before it are complete. */
void conn_wr_done(struct smcr_conn *, const struct link_wr *);

/* -- receiving -- */

/*
 * One CDC message of the peer, as it arrived. False: a failover validation message that is ahead of what we have; it counts only
 * when the completions of all devices are handled, as `last` says (4.6.1).
 */
bool conn_rx_cdc(struct link *, const uint8_t *buf, size_t len, bool last);

/* -- the end: the state machine of RFC 7609 Figures 22 and 23 as data, and what carries it out -- */

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
/* Resets an established connection: the user hears of it at once, A follows where it may (4.8.2). */
void conn_abort(struct smcr_conn *, enum smcr_reason, const char *detail);
/* The peer broke the protocol on this connection, by what came over the link: reset it, and nothing else. */
void conn_bad_cdc(struct smcr_conn *, const struct link *, const char *why);
/* What the peer has said was lost with a link, and is not said again: the same. */
void conn_rx_lost(struct smcr_conn *, const struct link *);
/* smcr_close of an established connection: C when all is written. */
void conn_close(struct smcr_conn *);
/* smcr_reset of one. */
void conn_reset(struct smcr_conn *);
/* All is written: what was to follow, follows. */
void conn_all_written(struct smcr_conn *);
/* Flags of a CDC message, or those that came before the connection was established. */
void conn_peer_flags(struct smcr_conn *, uint8_t conn_flags);
/* The flags that the next CDC message carries when everything up to `end` is written by then. */
uint8_t conn_due_flags(const struct smcr_conn *, uint64_t end);
/* A CDC message with these flags is posted. May end the connection. */
void conn_flags_posted(struct smcr_conn *, uint8_t conn_flags);
/* Closing got further (data complete, consumed): its timer starts anew. */
void conn_close_progress(struct smcr_conn *);
/* conn->timer: a state of waiting has lasted too long. */
void conn_timer_fired(struct timer *);
/* Sets close.doubt: the peer is asked by R, and has close_ms. */
void conn_ask_alive(struct smcr_conn *, bool doubt);
/* FIN on the middle: D, C or A has to follow within fin_grace_ms. */
void conn_fin_seen(struct smcr_conn *);
/* RST on the middle: a link has to answer within fin_grace_ms, else the connection is aborted. */
void conn_rst_seen(struct smcr_conn *);
/* The link that the peer may send over is lost. */
void conn_peer_moves(struct smcr_conn *);
/* The peer gives the element of an established connection to another one (4.4.2). */
void conn_elem_taken(struct smcr_conn *);
