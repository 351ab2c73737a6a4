/* What the files of the LLC layer (llc.c, llc_link.c, llc_rkey.c, llc_test.c) share. */
#ifndef SMCRD_SMCR_LLC_IMPL_H
#define SMCRD_SMCR_LLC_IMPL_H

#include "smcr/engine.h"
#include "smcr/llc.h"

/* -- llc.c -- */

/* The flow is at this step, over this link, and times out after ms. */
void llc_start(struct lgr *, enum llc_flow_kind, enum llc_step, struct link *, uint32_t ms);
void llc_done(struct lgr *, enum llc_flow_kind);
/* The message does not fit: counted, logged, the link goes down (C.7.1). */
void llc_protocol_error(struct link *, const char *what);
struct link *llc_link_by_number(struct lgr *, uint8_t number);

/* -- handlers: one LLC message that is legal for our role -- */

void llc_confirm_link_req(struct link *, const struct llc_msg *);
void llc_confirm_link_rsp(struct link *, const struct llc_msg *);
void llc_add_link_req(struct link *, const struct llc_msg *);
void llc_add_link_fyi(struct link *, const struct llc_msg *);
void llc_add_link_rsp(struct link *, const struct llc_msg *);
void llc_delete_link_from_server(struct link *, const struct llc_msg *);
void llc_delete_link_from_client(struct link *, const struct llc_msg *);
void llc_delete_link_rsp(struct link *, const struct llc_msg *);
void llc_confirm_rkey_req(struct link *, const struct llc_msg *);
void llc_confirm_rkey_rsp(struct link *, const struct llc_msg *);
void llc_confirm_rkey_cont_req(struct link *, const struct llc_msg *);
void llc_confirm_rkey_cont_rsp(struct link *, const struct llc_msg *);
void llc_delete_rkey_req(struct link *, const struct llc_msg *);
void llc_delete_rkey_rsp(struct link *, const struct llc_msg *);
void llc_test_link_req(struct link *, const struct llc_msg *);
void llc_test_link_rsp(struct link *, const struct llc_msg *);

/* -- timeouts of a flow's step -- */

void llc_link_timeout(struct lgr *, enum llc_step);
void llc_rkey_timeout(struct lgr *);

#endif
