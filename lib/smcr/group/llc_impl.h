/* Shared by the files of the LLC layer (llc*.c). */
#pragma once

#include "smcr/data/link_tx.h"
#include "smcr/data/rmb.h"
#include "smcr/group/lgr.h"
#include "smcr/group/link.h"
#include "smcr/group/llc.h"
#include "smcr/group/topology.h"
#include "smcr/state/engine.h"
#include "smcr/state/log.h"

/* -- llc.c: exchanges -- */

/* Sets the flow to this step over this link, with a timeout of ms. */
void llc_start(struct lgr *, enum llc_flow_kind, enum llc_step, struct link *, uint32_t ms);
/* An RKEY exchange of ours may start: none is in progress, and the server has deleted the links to be deleted. A client
 * refuses all others while it connects a new link that we have abandoned. */
bool llc_may_begin_rkey(struct lgr *);
static inline bool
llc_is_idle(const struct lgr *lgr, enum llc_flow_kind kind)
{
	return lgr->flow[kind].step == LLC_IDLE;
}

/* -- llc_link.c -- */
int llc_send_confirm_link(struct link *, bool response);

/* -- llc_keepalive.c -- */
/* A request over the link was not answered: if a TEST LINK is not answered either, the link is suspect. */
void llc_ask_alive(struct link *, const char *what);

/* -- llc_add.c -- */

/* For a new link: a number is reused only after all others (2.2). */
uint8_t llc_next_number(struct lgr *);
/* Server: offers a link. False when there is none to offer, or it could not be sent. */
bool llc_offer_link(struct link *over);
/* Both sides have confirmed the new link. */
void llc_new_link_up(struct link *);
/* The attempt at a new link has ended, and the peer knows the outcome: the flow ends, first contact continues. */
void llc_add_ended(struct lgr *, bool ok);
/* The new link failed; notifies the peer. */
void llc_add_failed(struct lgr *, const char *why);
/* Timeouts: ADD LINK response; CONTINUATION or its response; CONFIRM LINK and the steps before it. */
void llc_add_link_timeout(struct lgr *);
void llc_add_cont_timeout(struct lgr *);
void llc_new_link_timeout(struct lgr *);

/* -- llc_ask.c -- */

/* Server: negative response to an open REQUEST ADD LINK. */
void llc_answer_asked(struct lgr *);
/* An active link was lost and needs a replacement. */
void llc_link_missed(struct lgr *);
/* Schedules another attempt or request after an interval that doubles (C.8). */
void llc_ask_later(struct lgr *);
/* Client: requests another link. */
void llc_tell_of_device(struct lgr *);

/* -- llc_delete.c -- */

/* DELETE LINK for a lost link, or for a drained one: a server's exchange, or a client's request to the server. */
void llc_delete_link(struct link *);
/* LLC_DRAIN_LINK: connections leave the link first, within ms; over: the link on which DELETE LINK came. */
void llc_drain_link(struct link *, struct link *over, uint32_t ms);
void llc_drained(struct lgr *);
void llc_delete_timeout(struct lgr *);

/* -- llc_rkey.c -- */

void llc_rkey_timeout(struct lgr *);
/* The link of the exchange was lost: it restarts when the links are settled. */
void llc_rkey_lost(struct lgr *);

/* Handlers of an LLC message that is legal for our role and step. */
typedef void llc_handler(struct link *, const struct llc_msg *);
llc_handler llc_confirm_link_req, llc_confirm_link_rsp;
llc_handler llc_add_link_req, llc_add_link_fyi, llc_add_link_rsp;
llc_handler llc_add_cont_req, llc_add_cont_rsp, llc_add_cont_late;
llc_handler llc_delete_link_from_server, llc_delete_link_from_client, llc_delete_link_rsp, llc_delete_link_unknown;
llc_handler llc_confirm_rkey_req, llc_confirm_rkey_refuse, llc_confirm_rkey_rsp;
llc_handler llc_confirm_rkey_cont_req, llc_confirm_rkey_cont_rsp;
llc_handler llc_delete_rkey_req, llc_delete_rkey_refuse, llc_delete_rkey_rsp;
llc_handler llc_test_link_req, llc_test_link_rsp;
