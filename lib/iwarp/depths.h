/*
 * What RFC 6581 9.1 and 9.2 say of the depths of the Read queues, the
 * connection model and the RTR, for both roles, whatever carries the block:
 * MPA's start-up frames (negotiate.h), session control over SCTP
 * (ddp_session.h).
 *
 * Initiator: depths_offer(), then depths_adopt() with the answer. Responder:
 * depths_judge() with the offer, then depths_answer() or depths_refusal().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/enhanced.h"

struct depths_config {
	bool p2p;         /* initiator: peer-to-peer model, the first message is an RTR */
	unsigned rtr;     /* RTR_*: supported; not empty */
	uint16_t ird;     /* offered; DEPTH_NONE = not to be negotiated */
	uint16_t ird_max; /* can be raised up to this (>= ird) */
	uint16_t ord;     /* wanted */
	uint16_t ord_min; /* fail below this */
};

struct depths {
	uint16_t ird; /* ours now */
	uint16_t ord;
	uint16_t peer_ird; /* as the peer wrote them, for the ULP; DEPTH_NONE if it named none */
	uint16_t peer_ord;
	bool p2p;
	unsigned rtr; /* initiator: the one to send; responder: those that may come */
};

/* What holds when nothing is negotiated. */
void depths_init(struct depths *, const struct depths_config *);
/* What the peer named, whatever comes of it. */
void depths_note_peer(struct depths *, const struct enhanced *);

/* Initiator: the block of the request. */
struct enhanced depths_offer(const struct depths_config *);
/* Initiator: takes the block of an accepting answer. 0, or the code of the Terminate to send (ENHANCED_TERM_*): *why. */
uint8_t depths_adopt(struct depths *, const struct depths_config *, const struct enhanced *answer, const char **why);

/* Responder: takes the block of a request. False: it cannot be accepted, *why. */
bool depths_judge(struct depths *, const struct depths_config *, const struct enhanced *offer, const char **why);
/* Responder: the block of the accepting answer, after depths_judge(). */
struct enhanced depths_answer(const struct depths *);
/* Responder: the block of a rejecting answer. As in an accepting one, but with all kinds of RTR that we know, and with the ORD
 * that we need, if the offer allows less. */
struct enhanced depths_refusal(const struct depths_config *, const struct enhanced *offer);
