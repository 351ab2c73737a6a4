/*
 * The DDP stream session of SCTP (RFC 5043 6, RFC 6581 7,
 * draft-ietf-rddp-sctp-00 3), both roles, both profiles: what is legal when,
 * what to say, and the DDP-SSN of all that is sent. No I/O and no clock:
 * timeouts are the caller's, and so are order and gaps of what arrives
 * (messages come in here in DDP-SSN order), what is in the segments
 * (stream.h), and the association.
 *
 * Active: ddp_session_initiate(), send it; ACCEPTED is the open session.
 * Passive: ASKED, then ddp_session_accept() or ddp_session_reject(). A session
 * has no pointers into itself: one that waits for its queue pair may be moved
 * by assignment, and keeps the private data of the Initiate.
 *
 * How it ends. With ddp_session_terminate() as our last message: by us, or as
 * the answer to the peer's; nothing has to come back. Rejected: by the Reject
 * alone, which is the last message, too. By a mistake of the peer (FAILED, the
 * words in `why`), and then by what may still be said, see the state:
 *
 *	BROKEN  the session was open: first the RDMAP Terminate with layer LLP,
 *	        type 0 and term_code (RFC 6581 8), as a segment with the number
 *	        of ddp_session_segment_ssn(), then ddp_session_terminate().
 *	        An Accept that does not fit is such a case: it opened the session
 *	        for the peer.
 *	FAILED  it was not, or it is over: ddp_session_terminate() alone. Before
 *	        its Accept a passive side has no segment to tell a code in; what
 *	        it can tell is in the Enhanced Reject: the depths and the kinds of
 *	        RTR that it needs. A Terminate never has private data.
 *
 * One mistake at most is reported; what comes behind it is passed over. In SCTP
 * our Terminate may overtake our Accept (rddp-sctp-00 3.6): DDP-SSNs order them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "iwarp/depths.h"
#include "wire/sctp_ddp.h"

/* Negotiates of a peer that a session takes (draft): more are a mistake. */
#define DDP_SESSION_NEGOTIATES_MAX 8

enum ddp_session_state {
	DDP_SESSION_IDLE,      /* active: nothing said yet */
	DDP_SESSION_WAITING,   /* passive: the Initiate is to come */
	DDP_SESSION_INITIATED, /* active: the answer is to come */
	DDP_SESSION_ASKED,     /* passive: the Initiate is here, the ULP decides */
	DDP_SESSION_OPEN,      /* segments both ways */
	DDP_SESSION_ENDING,    /* our Terminate is out, what the peer still says is passed over */
	DDP_SESSION_ENDED,     /* the peer's Terminate is here, ours may follow */
	DDP_SESSION_BROKEN,    /* a mistake: the RDMAP Terminate is due, and ours */
	DDP_SESSION_FAILED,    /* a mistake: our Terminate is due */
	DDP_SESSION_CLOSED,
	DDP_SESSION_STATE_CNT,
};

enum ddp_session_event {
	DDP_SESSION_EV_FAILED,     /* what the state does not allow: why, term_code */
	DDP_SESSION_EV_NONE,       /* passed over */
	DDP_SESSION_EV_SEGMENT,    /* for the stream */
	DDP_SESSION_EV_NEGOTIATE,  /* draft: private data for the ULP, which need not answer */
	DDP_SESSION_EV_ASKED,      /* passive: an Initiate, and its private data */
	DDP_SESSION_EV_ACCEPTED,   /* active: open; private data */
	DDP_SESSION_EV_REJECTED,   /* active: closed; private data, the peer's depths if it named them */
	DDP_SESSION_EV_TERMINATED, /* the peer's Terminate; before the session was open: refused, or given up; `why` */
};

/* What we may do; see ddp_session_may(). */
enum ddp_session_call {
	DDP_SESSION_INITIATE,
	DDP_SESSION_ACCEPT,
	DDP_SESSION_REJECT,
	DDP_SESSION_SEGMENT,
	DDP_SESSION_TERMINATE,
	DDP_SESSION_CALL_CNT,
};

struct ddp_session_config {
	enum sctp_ddp_profile profile;
	bool enhanced; /* active: Enhanced Initiate, where the profile has it */
	struct depths_config depths;
};

struct ddp_session {
	enum ddp_session_state state;
	struct ddp_session_config cfg;
	bool enhanced;         /* the Initiate was */
	bool unfit;            /* passive, ASKED: the Initiate can only be rejected, `why` */
	struct depths depths;  /* ours hold when the session is open; the peer's since it named them */
	struct enhanced offer; /* passive: the peer's */
	uint16_t tx_ssn;       /* of the next message, or segment */
	unsigned negotiates;   /* taken */
	const char *why;       /* the end, or the refusal, in words */
	uint8_t term_code;     /* BROKEN: ENHANCED_TERM_* */
	size_t pd_len;         /* passive: private data of the Initiate */
	uint8_t pd[SCTP_DDP_PD_MAX];
};

void ddp_session_init(struct ddp_session *, const struct ddp_session_config *, bool active);

bool ddp_session_may(const struct ddp_session *, enum ddp_session_call);

/* -- what arrives, in DDP-SSN order -- */

/* The body of a control message, behind its DDP-SSN. *pd: the private data of what is reported, in the body, or empty. */
enum ddp_session_event ddp_session_control_in(struct ddp_session *, struct span body, struct span *pd);
/* A segment: EV_SEGMENT, EV_NONE (to be dropped) or EV_FAILED. */
enum ddp_session_event ddp_session_segment_in(struct ddp_session *);
/* What others have found wrong, in order, stream number or private data: EV_FAILED as any other mistake, or EV_NONE when the
 * session is over anyway. */
enum ddp_session_event ddp_session_fail(struct ddp_session *, const char *why);

/* -- what is sent; only where ddp_session_may() says so -- */

/*
 * The message, DDP-SSN included, to be sent at once: bytes written to buf.
 * -EINVAL: more private data than fit; -ENOSPC: SCTP_DDP_CONTROL_MAX always do.
 * After an error nothing has changed.
 */
int ddp_session_initiate(struct ddp_session *, struct span pd, void *buf, size_t cap);
/* -ERANGE, too: `unfit`, reject it. */
int ddp_session_accept(struct ddp_session *, struct span pd, void *buf, size_t cap);
/* In the draft this is a Terminate, and the private data are lost. */
int ddp_session_reject(struct ddp_session *, struct span pd, void *buf, size_t cap);
int ddp_session_terminate(struct ddp_session *, void *buf, size_t cap);

/* The DDP-SSN of the next segment. In BROKEN one: the RDMAP Terminate's. */
uint16_t ddp_session_segment_ssn(struct ddp_session *);
