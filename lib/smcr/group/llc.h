/*
 * LLC exchanges of a link group (RFC 7609 3.3, 3.5.5, C.7): what others may
 * ask of them. Where an exchange stands is in state/lgr.h.
 */
#pragma once

#include "smcr/state/lgr.h"

/* One LLC message from the peer, 44 bytes, not CDC. */
void llc_recv(struct link *, const uint8_t *buf, size_t len);
/* At the turn's end, for a group with mark_exchanges: goes on with what waits: a retiring link whose last connection has left,
 * links to be deleted, a link to be added, RMBs to be confirmed. */
void llc_next(struct lgr *);
/* The first link is connected and both CLC messages are through: CONFIRM LINK, then the ADD LINK attempt. */
void llc_first_contact(struct link *);
/* A queue pair is connected: of the link that is being added, or of another one. */
void llc_link_connected(struct link *);
/* Makes an RMB of this element size and tells the peer; ends with mark_rmb. When one of that size is under way
 * already, or has to wait for another exchange, that one counts. 0, -ENOSPC (255 RMBs), -ENOMEM, -ENOBUFS, -ENOTCONN. */
int llc_add_rmb(struct lgr *, uint32_t elem_size);
/* Deletes RMBs that were idle for rmb_idle_ms; and one whose exchange had no outcome, when nobody waits for an RMB. */
void llc_delete_idle_rmb(struct lgr *);
void llc_delete_unconfirmed(struct lgr *);
/* Client, first contact: nothing comes of the ADD LINK that is awaited; the group is ready. */
void llc_no_add_link(struct lgr *);
/* Another link is wanted, now or when the exchange under way has ended. */
void llc_want_link(struct lgr *);
/* The engine has a device that it had not, or its port is up again. */
void llc_device_appeared(struct lgr *);
/* The wait for another try at a link is over: at once, and later ones are near again. */
void llc_ask_now(struct lgr *);
/* The link has ended. Exchanges that ran over it or about it end, by C.7.1. True when the group need not do anything more about
 * it: it was but being added. */
bool llc_link_lost(struct link *);
/* The connections of a lost link have moved: the peer hears of it (DELETE LINK). */
void llc_link_gone(struct link *);

/* This end wants an active link taken out in the orderly way. 0 or -ENOBUFS, -ENOTCONN. */
int llc_retire_link(struct link *, uint32_t reason);
/* A server's DELETE LINK for a link that retires is out, and the peer may close it: why it is deleted. NULL: it is not so. */
const char *llc_retired_why(const struct link *);
/* DELETE LINK for all links; the group goes down when it is through. */
void llc_delete_group(struct lgr *, uint32_t reason);
/* The exchange has ended, or was given up; llc_next may start another. */
void llc_done(struct lgr *, enum llc_flow_kind);
/* What timers do. A step of an exchange takes too long; the peer's CONFIRM RKEY does not go on; a link is silent, or
 * does not answer its test; a client's DELETE LINK has no answer; it is time to try again to get another link. */
void llc_flow_fired(struct timer *);
void llc_cont_fired(struct timer *);
void llc_keepalive_fired(struct timer *);
void llc_deletion_fired(struct timer *);
void llc_add_retry_fired(struct timer *);
/* Until a missing link is tried again; -1: not planned, or nothing can come of it as far as is known. */
int64_t llc_add_retry_ns(const struct lgr *);
/* Starts the interval of TEST LINK (4.5.3) as it is configured now: an active link whose test is not under way. */
void llc_keepalive_arm(struct link *);
/* The peer has not answered over the link for as long as an answer may take: it is lost, or kept, as llc_keepalive.c says. */
void llc_suspect(struct link *, const char *why);
/* The peer has answered over the link. */
void llc_link_proven(struct link *);
/* link->ack_wanted: tests the link now. */
void llc_test_now(struct link *);
/* What the first connection of a forming group waits for, or "". */
const char *llc_waits_for(const struct lgr *);
