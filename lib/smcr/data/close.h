/* The end of a connection: the state machine of RFC 7609 Figures 22 and 23 as data, and what carries it out. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "smcr/smcr.h"

struct timer;

enum conn_state {
	CONN_RENDEZVOUS, /* see enum rdv_step */
	CONN_FALLBACK,   /* the middle carries the data: nothing of ours is left, but for RDV_LATE_DECLINE */
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

/* How far a connection's end has come. */
struct conn_close {
	bool shut_wr;     /* the user sends no more */
	bool want_close;  /* smcr_close was called */
	bool want_abort;  /* A is owed */
	bool tcp_fin;     /* FIN seen on the middle */
	uint8_t tx_flags; /* conn flags already sent: D, C, A; a failover takes back those that may not have arrived */
	uint8_t tx_flags_ever; /* ever sent */
	uint8_t rx_flags;      /* conn flags received */
};

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
/* smcr_close of an established connection: C when all is written. */
void conn_close(struct smcr_conn *);
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
/* FIN on the middle: D, C or A has to follow within fin_grace_ms. */
void conn_fin_seen(struct smcr_conn *);
/* The peer gives the element of an established connection to another one (4.4.2). */
void conn_elem_taken(struct smcr_conn *);
