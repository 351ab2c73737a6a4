/*
 * The state machine of a connection's end as data (RFC 7609 Figures 22 and 23),
 * for close.c and its tests. What others call is in conn.h.
 */
#ifndef SMCRD_SMCR_CLOSE_H
#define SMCRD_SMCR_CLOSE_H

#include "smcr/data/conn.h"

enum close_action {
	CLOSE_ACT_IGNORE, /* the event means nothing in this state */
	CLOSE_ACT_NONE,   /* only the state changes */
	CLOSE_ACT_EOF,    /* the user is to read to the end */
	CLOSE_ACT_ABORT,  /* what is unsent or unread is dropped, A is owed */
	CLOSE_ACT_END,    /* conn_end */
};

struct close_step {
	enum conn_state next;
	enum close_action action;
};

/* second, when its action is not IGNORE, holds instead: in PeerCloseWait1/2 once our C is out, in AppCloseWait1/2 once
 * the peer's is in, in PeerAbortWait once our A is out. */
struct close_cell {
	struct close_step step;
	struct close_step second;
};

extern const struct close_cell close_table[CONN_STATE_CNT][CLOSE_EVENT_CNT];

#endif
