/* Life of a connection (state/conn.h): tx.c sends, rx.c receives, close.c ends it, conn.c has the rest. */
#pragma once

#include "smcr/state/conn.h"
#include "wire/clc.h"
#include "wire/open.h"

/* A connection in state RENDEZVOUS with an ID; rdv is NULL. NULL with *err = -EMFILE or -ENOMEM (both counted). */
struct smcr_conn *conn_new(struct smcr *, const struct smcr_open *, int *err);
/* Requires that it is in no list of events, links or groups, and that rdv is NULL. */
void conn_free(struct smcr_conn *);
/* Ends the rendezvous: state ACTIVE, ESTABLISHED raised; data that overtook the Confirm becomes readable. For a client
 * over a link conn_answered does the latter. */
void conn_establish(struct smcr_conn *);
/* The first message of the peer has come. */
void conn_answered(struct smcr_conn *);
/* Joins the group with the element in conn->rmb/elem_idx, to send over link. Resets receive cursors and writes the eye
 * catcher if the group has one. CDC messages are accepted now, even before the Confirm (3.5.2.4). */
void conn_attach(struct smcr_conn *, struct lgr *, struct link *);
/* Claims the element in the peer's Accept or Confirm. The peer cannot take back this remote RMB afterwards. */
void conn_hold_peer_elem(struct smcr_conn *, struct remote_rmb *, const struct clc_accept *);
/* Our element, as an OPEN or GRANT over this link names it. */
struct open_elem conn_open_elem(const struct smcr_conn *, const struct link *);
/* Releases the peer's element, if any. */
void conn_drop_peer_elem(struct smcr_conn *);
/* Returns the elements (ours to quarantine when the peer did not acknowledge) and leaves the group, if it is in one. */
void conn_detach(struct smcr_conn *, bool quarantine);
/* Ends the connection: state CLOSED, CLOSED raised, elements returned, one with unread data at release. */
void conn_end(struct smcr_conn *, enum smcr_reason, const char *detail, bool quarantine);
/* smcr_release of a connection that has ended, is aborting or has fallen back: freed when the protocol has ended. */
void conn_release(struct smcr_conn *);

/* -- sending -- */

/* Queues the connection on its link's ready list, for the next flush. */
void conn_tx_schedule(struct smcr_conn *);
/* Sets and counts writing blocked by the peer's full buffer. */
void tx_set_blocked(struct smcr_conn *, bool);
/* Posts within `room`, which it reduces; true when `room` limited it. */
bool conn_tx_post(struct smcr_conn *, struct rnic_credits *room);
/* The peer's consumer cursor moved. */
void conn_tx_acked(struct smcr_conn *, uint64_t pos);
/* Returns the ring to the group, at once or when the device has finished with it; drops unsent data. */
void conn_tx_drop(struct smcr_conn *);
/* The peer may have moved to another link, and its last consumer cursor may be lost with the old one. */
void conn_tx_probe(struct smcr_conn *);
/* A CDC and the writes before it are complete. */
void conn_wr_done(struct smcr_conn *, const struct link_wr *);

/* -- receiving -- */

/* Handles a CDC message. False, never with `last`: it is ahead of what was received and waits for others (4.6.1). */
bool conn_rx_cdc(struct link *, const uint8_t *buf, size_t len, bool last);

/* -- closing: the state machine of RFC 7609 Figures 22 and 23 as a table, and its actions -- */

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
/* Resets an established connection: notifies the user at once, A follows if allowed (4.8.2). */
void conn_abort(struct smcr_conn *, enum smcr_reason, const char *detail);
/* Protocol error of the peer on this connection: resets only the connection. */
void conn_bad_cdc(struct smcr_conn *, const struct link *, const char *why);
/* Likewise, because a message of the peer was lost with a link and is not repeated. */
void conn_rx_lost(struct smcr_conn *, const struct link *);
/* smcr_close of an established connection: C when all is written. */
void conn_close(struct smcr_conn *);
/* All is written: sends the flags that waited for it. */
void conn_all_written(struct smcr_conn *);
/* Flags of a CDC message, or those received before the connection was established. */
void conn_peer_flags(struct smcr_conn *, uint8_t conn_flags);
/* Flags of the next CDC message if everything up to `end` is written by then. */
uint8_t conn_due_flags(const struct smcr_conn *, uint64_t end);
/* A CDC message with these flags was posted. May end the connection. */
void conn_flags_posted(struct smcr_conn *, uint8_t conn_flags);
/* Closing progressed (data complete or consumed): restarts its timer. */
void conn_close_progress(struct smcr_conn *);
/* conn->timer: a waiting state, or the silence before an answer, has lasted too long. */
void conn_timer_fired(struct timer *);
/* Client, over_link: watches the silence of its link from now on, until the answer. */
void conn_await_answer(struct smcr_conn *);
/* Sets close.doubt: requests an answer by R within close_ms. */
void conn_ask_alive(struct smcr_conn *, bool doubt);
/* FIN on the CLC connection: D, C or A must follow within fin_grace_ms. */
void conn_fin_seen(struct smcr_conn *);
/* RST on the CLC connection: a link must respond within fin_grace_ms, else the connection is aborted. */
void conn_rst_seen(struct smcr_conn *);
/* The link that the peer may send over was lost. */
void conn_peer_moves(struct smcr_conn *);
/* The peer reassigns the element of an established connection (4.4.2). */
void conn_elem_taken(struct smcr_conn *);
