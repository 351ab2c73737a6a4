/* Life of a link: setup, receiving, its three ends. Its state is in state/link.h, its sending in data/link_tx.h. */
#pragma once

#include "smcr/state/link.h"
#include "wire/clc.h"

/* Takes a free slot, creates PD, QP and receives, registers the group's RMBs and rings. 0 or a negative errno. */
int link_new(struct lgr *, struct rnic_dev *, struct link **);
/* Sets the remote end; reduces the path's MTU to its MTU. */
void link_set_remote(struct link *, const struct rnic_remote *);
/* Likewise from Accept or Confirm. */
void link_set_remote_clc(struct link *, const struct clc_accept *);
/* The link, active or recently lost, with the remote end in the message; NULL: none. */
struct link *link_named(struct lgr *, const struct clc_accept *);
/* RNIC_EV_CONNECTED. */
void link_connected(struct link *);
/* CONFIRM LINK is complete. */
void link_set_active(struct link *);

/* The link broke or is unusable. Resets its queue pair at once; LOST while the peers have to agree on its deletion,
 * else DOWN. The group is notified by a mark (lgr_link_lost). Ignored for a link that has ended. */
void link_lost(struct link *, const char *why);
/* Orderly end: the deletion is agreed, or the peer never knew the link. Sends queued messages of an active link, then
 * it is DOWN. The group is notified by a mark if it was active or the first link. */
void link_retire(struct link *, const char *why);
/* Ends the QP of a link that is DOWN. The slot of a formerly active one stays GONE for a while: it may be named. */
void link_free(struct link *);
/* The QP has ended: frees PD, registrations and buffers. */
void link_qp_freed(struct link *);
/* Frees resources of an ended link once its completions were polled once more. */
void link_sweep(struct link *);

/* Handles a receive completion: dispatches CDC and LLC, marks the buffer for reposting. A message that may have
 * overtaken others on another link waits for them (conn_rx_cdc), as do later ones on this link. */
void link_recv(struct link *, const struct rnic_wc *);
/* Retries the first waiting message. False: it still waits, or none. `last`, after all receives, ends the wait. */
bool link_recv_waiting(struct link *, bool last);
/* A turn of the flush: reposts receives, sends a requested TEST LINK, then link_flush, whose result is returned. */
bool link_turn(struct link *);
