/* Receive order of DDP over SCTP (RFC 5043): messages arrive in any order, each with a DDP-SSN, and are handled in
 * DDP-SSN order (doc/devices.md). Pure: the caller reads the association, and passes each message to the stream or the
 * session when it is next. A Write that may not be placed early is held and checked in order, so errors are reported in
 * DDP-SSN order, and permissions granted by earlier messages apply.
 *	rc = ssn_in(q, stream, kind, number, bytes, &why)
 *	while ((kind = ssn_next(q, &bytes)) != SSN_NONE && it could be handled)
 *		ssn_advance(q);
 *	rc = ssn_settle(q, &why)
 * An error of either ends the stream, with stream_fail_llp(RDMA_STREAM). A Send without a posted receive
 * (STREAM_RX_NO_RECV) stays next, and the loop resumes with it once receives are posted. held_max bounds the held
 * messages of a peer: a Send per promised receive, Read Requests up to the IRD, answers to our own Reads, empty Writes,
 * a Terminate, and the session control messages of a session's begin and end. */
#pragma once

#include "base/span.h"

struct stream;

#define SSN_WINDOW 32768u /* numbers ahead, from the next one on; the others are behind */

struct ssn_config {
	uint16_t first;    /* DDP-SSN of a session: 0 (RFC 5043) or 1 (draft -00) */
	uint16_t held_max; /* maximum of held messages, below SSN_WINDOW */
	uint16_t held_len; /* bytes of the longest held message; placeable Writes and messages in order may be longer */
};

enum ssn_kind {
	SSN_NONE,    /* the next one has not arrived */
	SSN_SEGMENT, /* a DDP segment */
	SSN_CONTROL, /* a session control message: function code and private data */
	SSN_PLACED,  /* a Write in place: set `started` of the stream */
};

struct ssn {
	struct ssn_config cfg;
	uint16_t next;     /* number of the next message */
	enum ssn_kind now; /* the message of the last ssn_in() if it is next, or SSN_NONE */
	struct span now_bytes;
	uint32_t ahead;   /* marked numbers in the window */
	uint16_t *window; /* by number: nothing, WINDOW_PLACED, or slot index + 1 */
	uint8_t *slots;
	uint16_t slot_cnt;  /* slots ever used */
	uint16_t slot_free; /* index + 1 of the last freed slot, head of the free list */
	uint16_t held;
	bool used, recent;                 /* window used since the last return of memory; since the last ssn_rest() */
	uint64_t early_placed, early_held; /* for the caller's counters */
};

/* 0 or -ENOMEM; call ssn_fini() in either case. */
int ssn_init(struct ssn *, const struct ssn_config *);
void ssn_fini(struct ssn *);

/* A received message, SSN_SEGMENT or SSN_CONTROL; its bytes, after the DDP-SSN, must stay until ssn_settle(). stream
 * NULL: nothing may be placed, as the session is not accepted yet. 0, or -EPROTO and *why (static text), with nothing
 * placed: a duplicate number or one outside the window, too many held messages, or a message too long to hold. */
int ssn_in(struct ssn *, struct stream *, enum ssn_kind, uint16_t number, struct span bytes, const char **why);
/* The next message in order, with its bytes (not for SSN_PLACED). Unchanged until ssn_advance(). */
enum ssn_kind ssn_next(const struct ssn *, struct span *bytes);
void ssn_advance(struct ssn *);
/* The bytes of the last ssn_in() become invalid: copies an unhandled message. 0, or -EPROTO: too long to hold. */
int ssn_settle(struct ssn *, const char **why);

/* Called periodically: returns memory to the kernel if no message has been early for a while. */
void ssn_rest(struct ssn *);
