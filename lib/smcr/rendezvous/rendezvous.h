/*
 * The rendezvous of a connection: CLC messages on the middle, from smcr_open
 * until it is established, fallen back or ended (RFC 7609 3.5, Appendix C).
 * rendezvous.c has what both roles share and the entry points of smcr.h;
 * rdv_client.c and rdv_server.c have the steps of each role.
 */
#ifndef SMCRD_SMCR_RENDEZVOUS_H
#define SMCRD_SMCR_RENDEZVOUS_H

#include "smcr/data/conn.h"
#include "smcr/rendezvous/peer.h"

/* -- for close.c: a connection that is not established -- */

/* Ends it: the middle is to be reset. */
void rdv_abort(struct smcr_conn *, enum smcr_reason);
void rdv_tcp_event(struct smcr_conn *, enum smcr_tcp_event);
/* Frees conn->rdv; the connection leaves the lists that it waits in. */
void rdv_free(struct smcr_conn *);

/* -- for peer.c -- */

/* A waiting connection may go on; p is still in use. */
void rdv_go_on(struct smcr_conn *, struct peer *p);
/* First contact failed for all who waited, or the peer is held off: decline. */
void rdv_give_up(struct smcr_conn *);

/* -- for link.c, lgr.c, llc*.c -- */

/* The queue pair of a group's first link is connected. */
void rdv_link_connected(struct lgr *);
/* First contact is through: the group is active. */
void rdv_group_ready(struct lgr *);
/* First contact failed with this group. Nothing of the group is used after the call. */
void rdv_group_failed(struct lgr *, uint32_t diag, enum smcr_reason, const char *why);
/* The exchange for a new RMB ended: connections in lgr->wait_rmb go on. */
void rdv_rmb_ready(struct lgr *, bool ok);

/* -- shared by rdv_client.c and rdv_server.c -- */

void rdv_step(struct smcr_conn *, enum rdv_step, uint32_t timeout_ms); /* 0: no timer */
void rdv_read(struct smcr_conn *);                                     /* the next CLC message is awaited */
void rdv_send(struct smcr_conn *, const struct clc_msg *);
/* Accept or Confirm, from conn->rmb, conn->elem_idx and the link. */
void rdv_send_accept(struct smcr_conn *, enum clc_type, const struct link *, bool first_contact);
/* Sends a Decline and falls back. */
void rdv_decline(struct smcr_conn *, uint32_t diag);
/* Falls back because the peer declined. */
void rdv_declined(struct smcr_conn *, const struct clc_decline *);
/* Ends with a reset of the middle. */
void rdv_end(struct smcr_conn *, enum smcr_reason, const char *detail);
/* The peer awaits our next message from now on, for clc_ms (C.5): who has not come to it in three quarters of that declines. */
void rdv_peer_waits(struct smcr_conn *);
/* What is left of that, never 0. */
uint32_t rdv_patience_ms(const struct smcr_conn *);
/* Waits until the group has a new RMB of the connection's size; declines when that cannot be. */
void rdv_wait_rmb(struct smcr_conn *, struct lgr *, enum rdv_step);
/* A new group with its first link, first RMB and the connection's element in it. 0 or the diagnosis to decline with. */
uint32_t rdv_form_group(struct smcr_conn *, const uint8_t peer_id[8], struct rnic_dev *, uint64_t token);
/* The first link of the group that this connection forms; NULL when it forms none, or has no link yet. */
struct link *rdv_first_link(const struct smcr_conn *);
/* The peer's element of a Confirm or Accept on an existing or new group: 0 or the diagnosis. Resolves a conflict by
 * 4.4.2. via: the link that the message named. */
uint32_t rdv_take_peer_elem(struct smcr_conn *, struct lgr *, struct link *via, const struct clc_accept *);
/* Attached, established; the rendezvous is over. */
void rdv_finish(struct smcr_conn *, struct lgr *, struct link *);
struct rnic_dev *rdv_pick_device(const struct smcr *, uint8_t transports, const struct rnic_gid *want);
uint8_t rdv_transports(const struct smcr *);
/* The device that would be taken for a group of this kind, for this connection, is in the group's VLAN. */
bool rdv_vlan_fits(const struct smcr_conn *, const struct lgr *);

/* -- the roles' parts -- */

void rdv_client_start(struct smcr_conn *);
void rdv_client_go_on(struct smcr_conn *, struct peer *);
void rdv_client_msg(struct smcr_conn *, const struct clc_msg *);
void rdv_client_connected(struct smcr_conn *);
void rdv_client_rmb_ready(struct smcr_conn *);
void rdv_server_msg(struct smcr_conn *, const struct clc_msg *);
void rdv_server_choose(struct smcr_conn *);
void rdv_server_connected(struct smcr_conn *);

#endif
