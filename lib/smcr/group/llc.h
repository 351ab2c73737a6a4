/* LLC exchanges of a link group (RFC 7609 3.3, 3.5.5, C.7), for other rooms. Their state is in state/lgr.h. */
#pragma once

#include "smcr/state/lgr.h"

/* Handles an LLC message of the peer. */
void llc_recv(struct link *, const uint8_t *buf, size_t len);
/* At the end of the turn, for a group with mark_exchanges: goes on with links to drain, delete or add, and RMBs. */
void llc_next(struct lgr *);
/* The first link is connected and both CLC messages are exchanged: CONFIRM LINK, then the ADD LINK attempt. */
void llc_first_contact(struct link *);
/* A queue pair is connected, of the link being added or another one. */
void llc_link_connected(struct link *);
/* Creates an RMB of this element size and notifies the peer; ends with a mark (enum rmb_mark). One of that size that is
 * being confirmed, or waits for an exchange, is used instead. 0, -ENOSPC (255 RMBs), -ENOMEM, -ENOBUFS or -ENOTCONN. */
int llc_add_rmb(struct lgr *, uint32_t elem_size);
/* Deletes RMBs idle for rmb_idle_ms; and one whose exchange had no outcome, when no connection waits for an RMB. */
void llc_delete_idle_rmb(struct lgr *);
void llc_delete_unconfirmed(struct lgr *);
/* Client, first contact: abandons the awaited ADD LINK; the group is ready. */
void llc_no_add_link(struct lgr *);
/* Requests another link, now or after the current exchange. */
void llc_want_link(struct lgr *);
/* The engine has a new device, or its port is up again. */
void llc_device_appeared(struct lgr *);
/* Ends the wait for another attempt at a link: retries at once with the initial interval. */
void llc_ask_now(struct lgr *);
/* The link has ended: ends exchanges over it or about it (C.7.1). True: it was only being added, nothing else to do. */
bool llc_link_lost(struct link *);
/* The connections of a lost link have moved: notifies the peer (DELETE LINK). */
void llc_link_gone(struct link *);

/* Removes an active link in order, at this end's request. 0 or -ENOBUFS, -ENOTCONN. */
int llc_retire_link(struct link *, uint32_t reason);
/* A server's DELETE LINK for a retiring link was sent, and the peer may close it: the reason. NULL: not the case. */
const char *llc_retired_why(const struct link *);
/* DELETE LINK for all links; the group goes down when it is complete. */
void llc_delete_group(struct lgr *, uint32_t reason);
/* The message is invalid: counts and logs it, and ends the link (C.7.1). */
void llc_protocol_error(struct link *, const char *what);
/* The exchange has ended or was abandoned; llc_next may start another. */
void llc_done(struct lgr *, enum llc_flow_kind);
/* Timers: a step of an exchange timed out; the peer's CONFIRM RKEY lacks a CONTINUATION; a link is idle or its test
 * unanswered; a client's DELETE LINK is unanswered; another attempt at a link is due. */
void llc_flow_fired(struct timer *);
void llc_cont_fired(struct timer *);
void llc_keepalive_fired(struct timer *);
void llc_deletion_fired(struct timer *);
void llc_add_retry_fired(struct timer *);
/* Time until the next attempt at a missing link; -1: not scheduled, or known to be hopeless. */
int64_t llc_add_retry_ns(const struct lgr *);
/* Starts the configured interval of TEST LINK (4.5.3) on an active link without a test in progress. */
void llc_keepalive_arm(struct link *);
/* The peer did not answer over the link within the response limit: it is lost or kept, see llc_keepalive.c. */
void llc_suspect(struct link *, const char *why);
/* The peer has answered over the link. */
void llc_link_proven(struct link *);
/* link->ack_wanted: sends a TEST LINK now. */
void llc_test_now(struct link *);
/* What the first connection of a forming group waits for, or "". */
const char *llc_waits_for(const struct lgr *);
