/* Negotiation of Read queue depths, connection model and RTR (RFC 6581 9.1, 9.2), both roles, in MPA start-up frames
 * (negotiate.h) and SCTP session control (ddp_session.h). Initiator: depths_offer(), then depths_adopt() with the
 * answer. Responder: depths_judge() with the offer, then depths_answer() or depths_refusal(). */
#pragma once

#include <stdbool.h>

#include "wire/enhanced.h"

struct depths_config {
	bool p2p;         /* initiator: peer-to-peer model, the first message is an RTR */
	unsigned rtr;     /* RTR_*: supported kinds; not empty */
	uint16_t ird;     /* offered; DEPTH_NONE = not negotiated */
	uint16_t ird_max; /* upper limit of the negotiation (>= ird) */
	uint16_t ord;     /* requested */
	uint16_t ord_min; /* minimum accepted */
};

struct depths {
	uint16_t ird, ord;           /* ours, negotiated */
	uint16_t peer_ird, peer_ord; /* as received, for the ULP; DEPTH_NONE if the peer sent none */
	bool p2p;
	unsigned rtr; /* initiator: the kind to send; responder: the kinds accepted */
};

/* The values without negotiation. */
void depths_init(struct depths *, const struct depths_config *);
/* Notes the peer's values, whatever the outcome. */
void depths_note_peer(struct depths *, const struct enhanced *);

/* Initiator: the block of the request. */
struct enhanced depths_offer(const struct depths_config *);
/* Initiator: takes the block of an accepting answer. 0, or the Terminate's code (ENHANCED_TERM_*) and *why. */
uint8_t depths_adopt(struct depths *, const struct depths_config *, const struct enhanced *answer, const char **why);

/* Responder: takes the block of a request. False: it cannot be accepted, see *why. */
bool depths_judge(struct depths *, const struct depths_config *, const struct enhanced *offer, const char **why);
/* Responder: the block of the accepting answer, after depths_judge(). */
struct enhanced depths_answer(const struct depths *);
/* Responder: the block of a rejecting answer. Like an accepting one, but with all RTR kinds that we support, and with
 * the ORD that we require if the offer allows less. */
struct enhanced depths_refusal(const struct depths_config *, const struct enhanced *offer);
