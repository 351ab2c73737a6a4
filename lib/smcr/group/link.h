/* The life of a link: set-up, receiving, its three ends. Its state is in state/link.h, its sending in data/link_tx.h. */
#pragma once

#include "smcr/state/link.h"
#include "wire/clc.h"

/* Takes a free slot, makes PD, QP, receive buffers; registers all RMBs and send rings of the group. 0 or a negative errno. */
int link_new(struct lgr *, struct rnic_dev *, struct link **);
/* The far end; lowers the path's MTU to its. */
void link_set_remote(struct link *, const struct rnic_remote *);
/* The same, as Accept or Confirm has it. */
void link_set_remote_clc(struct link *, const struct clc_accept *);
/* The link, active or lost of late, whose far end the message names; NULL when there is none. */
struct link *link_named(struct lgr *, const struct clc_accept *);
/* RNIC_EV_CONNECTED. */
void link_connected(struct link *);
/* CONFIRM LINK is through. */
void link_set_active(struct link *);

/* One end: the link broke, or is of no use. Its queue pair is reset at once; LOST while the peers have to agree on its deletion,
 * else DOWN. The group reacts by a mark (lgr_link_lost). Nothing happens to a link that has ended. */
void link_lost(struct link *, const char *why);
/* The other: in order. The peers are through with its deletion, or the peer never knew it: what is queued on an active link
 * still goes out, then it is DOWN. The group reacts by a mark when it was active, or the
 * group's first. */
void link_retire(struct link *, const char *why);
/* And the last, at the end of the turn, of a link that is DOWN: its QP is to end. Its slot is free when that has; the slot of
 * one that was active is kept for a while, as the peer may have named it (GONE). */
void link_free(struct link *);
/* The QP has ended: what it had the use of is freed, PD, registrations and buffers. */
void link_qp_freed(struct link *);
/* Frees what a link that has ended holds, when its completions were handled once more since. */
void link_sweep(struct link *);

/* One receive completion: dispatches CDC and LLC, marks the buffer for reposting. A message that may have overtaken others, which
 * came over another link, waits for them (conn_rx_cdc), and so does what comes behind it over this link. */
void link_recv(struct link *, const struct rnic_wc *);
/* The first message that waits, once more. False: it waits still, which it does not when all that has come was handled (`last`);
 * or there is none. */
bool link_recv_waiting(struct link *, bool last);
/* A turn of the flush: receives are posted again, TEST LINK goes when it is wanted, then link_flush, with its result. */
bool link_turn(struct link *);
