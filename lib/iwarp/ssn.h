/*
 * Receive order of DDP over SCTP (RFC 5043): messages come in any order, each with a DDP-SSN that says its place, and have
 * their turn in that order. Pure; the caller reads the association, and hands what has its turn to the stream or the session.
 *
 * A Write ahead of its turn is placed at once and leaves a mark; anything else ahead of its turn is copied and held. What is in
 * order, and nearly everything is, is neither copied nor marked. A Write that may not be placed is held like the others and
 * judged in its turn: so errors are told in the order of the DDP-SSN, and what a message before it allows is allowed. Why bytes
 * may be in memory before their turn: doc/devices.md.
 *
 *	if (ssn_in(q, stream, kind, number, bytes, &why) < 0)
 *		end the stream, with stream_fail_order()
 *	while ((kind = ssn_next(q, &bytes)) != SSN_NONE && it could be handled)
 *		ssn_advance(q);
 *	if (ssn_settle(q, &why) < 0)
 *		the same
 *
 * A Send that finds no receive (STREAM_RX_NO_RECV) keeps its turn, and the loop goes on with it once receives are posted; what
 * comes meanwhile is ahead of its turn. What a peer may have to be held is bounded by contract, which gives held_max: segments of
 * as many Sends as receives were promised, Read Requests of the IRD, answers to our own Reads, Writes of nothing, a Terminate,
 * and the session control messages of a session's begin and end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

struct stream;

#define SSN_WINDOW 32768u /* numbers, from the next one on, that are ahead; the others are behind */

struct ssn_config {
	uint16_t first;    /* DDP-SSN of a session: 0 (RFC 5043) or 1 (draft -00) */
	uint16_t held_max; /* messages held, below SSN_WINDOW */
	/* Bytes of the longest of them; there is memory for so many, touched only when used. Writes that may be placed, and what
	 * is handled in order, may be longer. */
	uint16_t held_len;
};

enum ssn_kind {
	SSN_NONE,    /* the next one is not there yet */
	SSN_SEGMENT, /* a DDP segment */
	SSN_CONTROL, /* a session control message: function code and private data */
	SSN_PLACED,  /* a Write that is in place: stream_placed() */
};

struct ssn {
	struct ssn_config cfg;
	uint16_t next;     /* whose turn it is */
	enum ssn_kind now; /* the message of the last ssn_in(), whose turn it is; SSN_NONE: none */
	struct span now_bytes;
	uint32_t ahead;   /* numbers with something in the window */
	uint16_t *window; /* by number: nothing, WINDOW_PLACED, or the index of a slot + 1 */
	uint8_t *slots;
	uint16_t slot_cnt;  /* that were ever used */
	uint16_t slot_free; /* index + 1 of the last that was given back, which knows the one before */
	uint16_t held;
	bool used, recent; /* was anything in the window: since memory was given back, since ssn_rest() was called */
	/* For the caller's counters. */
	uint64_t early_placed;
	uint64_t early_held;
};

/* 0 or -ENOMEM; to be ended in either case. */
int ssn_init(struct ssn *, const struct ssn_config *);
void ssn_fini(struct ssn *);

/*
 * A message of SSN_SEGMENT or SSN_CONTROL has come; its bytes, behind the DDP-SSN, stay until ssn_settle(). stream NULL: nothing
 * may be placed yet, as nobody has accepted the session. 0, or -EPROTO and *why (static text), nothing of it being placed: a
 * number that was there already or is too far away, too much to be held, or too long to be held.
 */
int ssn_in(struct ssn *, struct stream *, enum ssn_kind, uint16_t number, struct span bytes, const char **why);
/* What has its turn, with its bytes (not of SSN_PLACED). It stays so until ssn_advance(), which may be called then. */
enum ssn_kind ssn_next(const struct ssn *, struct span *bytes);
void ssn_advance(struct ssn *);
/* The bytes of the last ssn_in() go away: if it has not had its turn it is copied. 0, or -EPROTO: it is too long for that. */
int ssn_settle(struct ssn *, const char **why);

/* Called now and then: memory that was needed while something was ahead goes back to the kernel when nothing has been for a while. */
void ssn_rest(struct ssn *);
