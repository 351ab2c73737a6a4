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
/* The exchange has ended; llc_next may start another. */
void llc_done(struct lgr *, enum llc_flow_kind);
/* The message does not fit: counted, logged, the link is lost (C.7.1). */
void llc_protocol_error(struct link *, const char *what);
/* By number, whatever its state; NULL when the group has no such link. */
struct link *llc_link_by_number(struct lgr *, uint8_t number);
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
/* For a new link: numbers are not used again before all were (2.2). */
uint8_t llc_next_number(struct lgr *);

/* -- llc_keepalive.c -- */
/* A request over the link was not answered: a TEST LINK that is not answered either takes it down. */
void llc_doubt(struct link *, const char *what);

/* -- llc_add.c, llc_add_server.c, llc_add_client.c -- */

/* The server offers a link. False when there is nothing to offer, or it could not be sent. */
bool llc_offer_link(struct link *over);
/* Each offer of a link, made or taken, costs a queue pair and the registration of all memory: so many may come at once, and one
 * each interval. 0: this one may; else (counted) from when on. */
int64_t llc_offer_due(struct lgr *, int64_t at_once, int64_t every_ns);
/* Another link is wanted, now or when the exchange under way has ended. */
void llc_want_link(struct lgr *);
/* A client's part of that. */
void llc_tell_of_device(struct lgr *);
/* An attempt at a new link failed: it is tried again later (C.8). */
void llc_add_failed(struct lgr *);
/* The attempt at a new link has ended, and how: the flow ends, first contact goes on. */
void llc_add_ended(struct lgr *, bool ok);
/* The new link is confirmed on both sides. */
void llc_new_link_up(struct link *);
/* Our end of a new link, for ADD LINK and its response; and the peer's, as those have it. */
void llc_fill_add_link(struct llc_add_link *, const struct link *);
struct rnic_remote llc_remote_of(const struct llc_add_link *);
/* The exchange of RTokens for a new link begins. */
void llc_begin_cont(struct lgr *);
/* Fills a CONTINUATION with our next RTokens. */
void llc_fill_cont(struct lgr *, struct llc_add_link_cont *);
/* Takes the peer's RTokens: NULL, or what is wrong. */
const char *llc_take_cont(struct lgr *, const struct llc_add_link_cont *);
/* Every RMB of the peer is known on the link. */
bool llc_knows_all_rmbs(struct lgr *, const struct link *);
/* The new link comes to nothing, and the peer knows of it or may. */
void llc_server_add_failed(struct lgr *, const char *why);
void llc_client_add_failed(struct lgr *, const char *why);
void llc_server_connected(struct lgr *);
void llc_client_connected(struct lgr *);
void llc_server_add_timeout(struct lgr *, enum llc_step);
void llc_client_add_timeout(struct lgr *, enum llc_step);

/* -- llc_delete.c -- */

/* Server: starts the DELETE LINK exchange for a lost link. */
void llc_delete_lost(struct link *);
/* Server: the same for one that retires, when its connections have left. */
void llc_start_retiring(struct link *);
/* LLC_DRAIN_LINK has ended. */
void llc_drained(struct lgr *);
/* Client: tells the server of a lost link; it will delete it. */
void llc_tell_lost(struct link *);
void llc_delete_timeout(struct lgr *, enum llc_step);

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
