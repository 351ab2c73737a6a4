/* MPA start-up negotiation (RFC 5044 7.1, RFC 6581), both roles: content of Request and Reply, and the resulting stream
 * parameters. No I/O and no clock: the caller handles timeouts and private data.
 * Initiator: neg_request(), send it; neg_reply_in() with the decoded Reply. Responder: neg_request_in() with the
 * decoded Request, then neg_accept() or neg_reject() make the Reply. */
#pragma once

#include "iwarp/depths.h"
#include "wire/mpa.h"

enum neg_state {
	NEG_IDLE,
	NEG_REQUESTED, /* initiator: Request made, waits for the Reply */
	NEG_CHECKED,   /* responder: Request is valid, the ULP decides */
	NEG_DONE,      /* accepted: struct neg_result is valid */
	NEG_REJECTED,  /* by the responder's ULP, which then owns the TCP connection */
	NEG_FAILED,    /* close TCP, after the Terminate if term_code is set */
};

struct neg_config {
	bool enhanced; /* initiator: revision 2 with the enhanced block; else revision 1 */
	bool crc;
	bool markers; /* in the receive direction */
	struct depths_config depths;
};

struct neg_result {
	bool enhanced;
	bool crc; /* both directions */
	bool markers_rx, markers_tx;
	struct depths depths;
};

struct neg {
	enum neg_state state;
	struct neg_config cfg;
	struct neg_result res;
	struct mpa_frame request; /* as sent or received, without private data */
	const char *why;          /* NEG_FAILED: reason */
	uint8_t term_code;        /* NEG_FAILED: ENHANCED_TERM_*, or 0 = close only */
};

void neg_init(struct neg *, const struct neg_config *);

/* Initiator: the Request to send; the caller fills pd. */
void neg_request(struct neg *, struct mpa_frame *out);
/* Initiator: the received Reply; returns the final state. */
enum neg_state neg_reply_in(struct neg *, const struct mpa_frame *);

/* Responder: NEG_CHECKED, NEG_FAILED, or NEG_REJECTED if *reject is set and must be sent. */
enum neg_state neg_request_in(struct neg *, const struct mpa_frame *, struct mpa_frame *reject);
/* Responder: the Reply to send; the caller fills pd. */
void neg_accept(struct neg *, struct mpa_frame *out);
void neg_reject(struct neg *, struct mpa_frame *out);

/* Responder, without any of the above: the Reply that refuses a Request for a reason of the caller. Its depths follow
 * the rules of an accepting Reply, because some initiators check them before the Reject flag. */
void neg_refuse(const struct neg_config *, const struct mpa_frame *request, struct mpa_frame *out);
