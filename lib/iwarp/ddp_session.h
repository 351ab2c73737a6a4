/* The DDP stream session of SCTP, both roles and profiles (RFC 5043 6, RFC 6581 7, draft-ietf-rddp-sctp-00 3): legal
 * sequences, replies, and the DDP-SSN of sent messages. No I/O and no clock. The caller handles timeouts, the
 * association, and the order of received messages (they arrive here in DDP-SSN order); stream.h handles the segments.
 * Active: ddp_session_initiate(), send it; ACCEPTED opens the session. Passive: ASKED, then ddp_session_accept() or
 * ddp_session_reject(). A session has no pointers into itself, and may be moved by assignment.
 * It ends by ddp_session_terminate(), ours or the answer to the peer's; by the Reject, which is the last message; or by
 * a protocol error of the peer (FAILED, text in `why`), reported once. The state gives the messages due then:
 *	BROKEN  the session was open, if only by an invalid Accept: the RDMAP Terminate with layer LLP, type 0 and
 *	        term_code (RFC 6581 8), as a segment with ddp_session_segment_ssn(), then ddp_session_terminate()
 *	FAILED  it was not open, or is over: ddp_session_terminate() only. A passive side sends no segment before its
 *	        Accept, and a Terminate has no private data: neither can have a code.
 * Later input is ignored. Our Terminate may overtake our Accept (rddp-sctp-00 3.6): the DDP-SSNs restore the order. */
#pragma once

#include "base/span.h"
#include "iwarp/depths.h"
#include "wire/sctp_ddp.h"

/* Maximum number of a peer's Negotiates (draft). */
#define DDP_SESSION_NEGOTIATES_MAX 8

enum ddp_session_state {
	DDP_SESSION_IDLE,      /* active: nothing sent yet */
	DDP_SESSION_WAITING,   /* passive: waits for the Initiate */
	DDP_SESSION_INITIATED, /* active: waits for the answer */
	DDP_SESSION_ASKED,     /* passive: Initiate received, the ULP decides */
	DDP_SESSION_OPEN,      /* segments in both directions */
	DDP_SESSION_ENDING,    /* our Terminate is sent, input is ignored */
	DDP_SESSION_ENDED,     /* the peer's Terminate is received, ours may follow */
	DDP_SESSION_BROKEN,    /* protocol error: the RDMAP Terminate is due, then ours */
	DDP_SESSION_FAILED,    /* protocol error: our Terminate is due */
	DDP_SESSION_CLOSED,
	DDP_SESSION_STATE_CNT,
};

enum ddp_session_event {
	DDP_SESSION_EV_FAILED,     /* protocol error: why, term_code */
	DDP_SESSION_EV_NONE,       /* ignored */
	DDP_SESSION_EV_SEGMENT,    /* for the stream */
	DDP_SESSION_EV_NEGOTIATE,  /* draft: private data for the ULP; an answer is optional */
	DDP_SESSION_EV_ASKED,      /* passive: an Initiate with its private data */
	DDP_SESSION_EV_ACCEPTED,   /* active: open; private data */
	DDP_SESSION_EV_REJECTED,   /* active: closed; private data, and the peer's depths if present */
	DDP_SESSION_EV_TERMINATED, /* the peer's Terminate; before the session was open: refusal or abort, `why` */
};

/* Calls that depend on the state; see ddp_session_may(). */
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
	bool enhanced; /* active: Enhanced Initiate, if the profile has it */
	struct depths_config depths;
};

struct ddp_session {
	enum ddp_session_state state;
	struct ddp_session_config cfg;
	bool enhanced;         /* the Initiate was enhanced */
	bool unfit;            /* passive, ASKED: the Initiate can only be rejected, see `why` */
	struct depths depths;  /* ours are valid in an open session, the peer's once it sent them */
	struct enhanced offer; /* passive: the peer's */
	uint16_t tx_ssn;       /* of the next message, or segment */
	unsigned negotiates;   /* received */
	const char *why;       /* reason of the end or refusal */
	uint8_t term_code;     /* BROKEN: ENHANCED_TERM_* */
	size_t pd_len;         /* passive: private data of the Initiate */
	uint8_t pd[SCTP_DDP_PD_MAX];
};

void ddp_session_init(struct ddp_session *, const struct ddp_session_config *, bool active);

bool ddp_session_may(const struct ddp_session *, enum ddp_session_call);

/* -- input, in DDP-SSN order -- */

/* The body of a control message, after its DDP-SSN. *pd: the event's private data, in the body, or empty. */
enum ddp_session_event ddp_session_control_in(struct ddp_session *, struct span body, struct span *pd);
/* A segment: EV_SEGMENT, EV_NONE (drop it) or EV_FAILED. */
enum ddp_session_event ddp_session_segment_in(struct ddp_session *);
/* An error detected by the caller, as in order or private data: EV_FAILED, or EV_NONE if the session is over. */
enum ddp_session_event ddp_session_fail(struct ddp_session *, const char *why);

/* -- output; only if ddp_session_may() allows it -- */

/* The message, DDP-SSN included, to be sent at once: bytes written to buf. -EINVAL: too much private data; -ENOSPC:
 * never with SCTP_DDP_CONTROL_MAX bytes. An error changes nothing. */
int ddp_session_initiate(struct ddp_session *, struct span pd, void *buf, size_t cap);
/* Also -ERANGE: `unfit`, reject it. */
int ddp_session_accept(struct ddp_session *, struct span pd, void *buf, size_t cap);
/* In the draft this is a Terminate, and the private data is dropped. */
int ddp_session_reject(struct ddp_session *, struct span pd, void *buf, size_t cap);
int ddp_session_terminate(struct ddp_session *, void *buf, size_t cap);

/* The DDP-SSN of the next segment. In BROKEN, of one only: the RDMAP Terminate. */
uint16_t ddp_session_segment_ssn(struct ddp_session *);
