/* What the files of the LLC layer (llc*.c) share. */
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

/* The flow is at this step, over this link, and times out after ms. */
void llc_start(struct lgr *, enum llc_flow_kind, enum llc_step, struct link *, uint32_t ms);
/* The message does not fit: counted, logged, the link is lost (C.7.1). */
void llc_protocol_error(struct link *, const char *what);
/* An RKEY exchange of ours may begin: none is under way, and the server has deleted the links that are to go. A client
 * refuses all else while it is at a new link that we have given up. */
bool llc_may_begin_rkey(struct lgr *);
static inline bool
llc_is_idle(const struct lgr *lgr, enum llc_flow_kind kind)
{
	return lgr->flow[kind].step == LLC_IDLE;
}

/* -- llc_link.c -- */
int llc_send_confirm_link(struct link *, bool response);

/* -- llc_keepalive.c -- */
/* A request over the link was not answered: a TEST LINK that is not answered either makes it suspect. */
void llc_ask_alive(struct link *, const char *what);

/* -- llc_add.c -- */

/* For a new link: numbers are not used again before all were (2.2). */
uint8_t llc_next_number(struct lgr *);
/* The server offers a link. False when there is nothing to offer, or it could not be sent. */
bool llc_offer_link(struct link *over);
/* The new link is confirmed on both sides. */
void llc_new_link_up(struct link *);
/* The attempt at a new link has ended, and the peer knows how: the flow ends, first contact goes on. */
void llc_add_ended(struct lgr *, bool ok);
/* The new link comes to nothing, and the peer has to hear of it. */
void llc_add_failed(struct lgr *, const char *why);
/* No answer to ADD LINK; no CONTINUATION, or no answer to one; no CONFIRM LINK, nor what comes before it. */
void llc_add_link_timeout(struct lgr *);
void llc_add_cont_timeout(struct lgr *);
void llc_new_link_timeout(struct lgr *);

/* -- llc_ask.c -- */

/* Server: nothing comes of a REQUEST ADD LINK, if one is open. */
void llc_answer_asked(struct lgr *);
/* A link that served is no more, and another is wanted in its place. */
void llc_link_missed(struct lgr *);
/* It is tried again, or asked for again, after a time that doubles (C.8). */
void llc_ask_later(struct lgr *);
/* Another link is wanted: a client's part of that. */
void llc_tell_of_device(struct lgr *);

/* -- llc_delete.c -- */

/* DELETE LINK for a lost link, or one whose connections have left: a server's exchange, a client's request that the
 * server deletes it. */
void llc_delete_link(struct link *);
/* LLC_DRAIN_LINK: connections leave the link first, for ms; over: over which DELETE LINK came. */
void llc_drain_link(struct link *, struct link *over, uint32_t ms);
void llc_drained(struct lgr *);
void llc_delete_timeout(struct lgr *);

/* -- llc_rkey.c -- */

void llc_rkey_timeout(struct lgr *);
/* The link over which it runs is lost: it starts again when the links are settled. */
void llc_rkey_lost(struct lgr *);

/* -- handlers: one LLC message that is legal for our role and in step -- */

void llc_confirm_link_req(struct link *, const struct llc_msg *);
void llc_confirm_link_rsp(struct link *, const struct llc_msg *);
void llc_add_link_req(struct link *, const struct llc_msg *);
void llc_add_link_fyi(struct link *, const struct llc_msg *);
void llc_add_link_rsp(struct link *, const struct llc_msg *);
void llc_add_cont_req(struct link *, const struct llc_msg *);
void llc_add_cont_rsp(struct link *, const struct llc_msg *);
void llc_add_cont_late(struct link *, const struct llc_msg *);
void llc_delete_link_from_server(struct link *, const struct llc_msg *);
void llc_delete_link_from_client(struct link *, const struct llc_msg *);
void llc_delete_link_rsp(struct link *, const struct llc_msg *);
void llc_delete_link_unknown(struct link *, const struct llc_msg *);
void llc_confirm_rkey_req(struct link *, const struct llc_msg *);
void llc_confirm_rkey_refuse(struct link *, const struct llc_msg *);
void llc_confirm_rkey_rsp(struct link *, const struct llc_msg *);
void llc_confirm_rkey_cont_req(struct link *, const struct llc_msg *);
void llc_confirm_rkey_cont_rsp(struct link *, const struct llc_msg *);
void llc_delete_rkey_req(struct link *, const struct llc_msg *);
void llc_delete_rkey_refuse(struct link *, const struct llc_msg *);
void llc_delete_rkey_rsp(struct link *, const struct llc_msg *);
void llc_test_link_req(struct link *, const struct llc_msg *);
void llc_test_link_rsp(struct link *, const struct llc_msg *);
