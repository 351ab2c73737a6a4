/*
 * MPA start-up negotiation (RFC 5044 7.1, RFC 6581), both roles: what to put
 * into a Request, what to answer, and what holds for the stream afterwards.
 * No I/O and no clock: timeouts are the caller's, and so is the private data.
 *
 * Initiator: neg_request(), send it; neg_reply_in() with the decoded Reply.
 * Responder: neg_request_in() with the decoded Request, then neg_accept() or
 * neg_reject() make the Reply.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "iwarp/depths.h"
#include "wire/mpa.h"

enum neg_state {
	NEG_IDLE,
	NEG_REQUESTED, /* initiator: Request made, Reply awaited */
	NEG_CHECKED,   /* responder: Request is fine, the ULP decides */
	NEG_DONE,      /* accepted: struct neg_result holds */
	NEG_REJECTED,  /* by the responder's ULP; the TCP connection is the ULP's */
	NEG_FAILED,    /* close TCP, after the Terminate if there is one */
};

struct neg_config {
	bool enhanced; /* initiator: revision 2 with the enhanced block; otherwise revision 1 */
	bool crc;
	bool markers; /* in what we receive */
	struct depths_config depths;
};

struct neg_result {
	bool enhanced;
	bool crc;        /* both directions */
	bool markers_rx; /* in what we receive */
	bool markers_tx; /* in what we send */
	struct depths depths;
};

struct neg {
	enum neg_state state;
	struct neg_config cfg;
	struct neg_result res;
	struct mpa_frame request; /* as sent or received, without private data */
	const char *why;          /* NEG_FAILED, in words */
	uint8_t term_code;        /* NEG_FAILED: ENHANCED_TERM_*, or 0 = just close */
};

void neg_init(struct neg *, const struct neg_config *);

/* Initiator: the Request to send; its pd is for the caller to fill. */
void neg_request(struct neg *, struct mpa_frame *out);
/* Initiator: the Reply came; the state says how it ended. */
enum neg_state neg_reply_in(struct neg *, const struct mpa_frame *);

/* Responder: NEG_CHECKED, or NEG_FAILED, or NEG_REJECTED when *reject is set and to be sent. */
enum neg_state neg_request_in(struct neg *, const struct mpa_frame *, struct mpa_frame *reject);
/* Responder: the Reply to send; its pd is for the caller to fill. */
void neg_accept(struct neg *, struct mpa_frame *out);
void neg_reject(struct neg *, struct mpa_frame *out);

/* Responder, without any of the above: the Reply that refuses a Request for reasons of the caller's. Its depths keep to the
 * rules of one that accepts, because there are initiators that look at them before they see that it is a Reject. */
void neg_refuse(const struct neg_config *, const struct mpa_frame *request, struct mpa_frame *out);
