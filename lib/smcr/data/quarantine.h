/*
 * RMB elements that a peer may still write into though their connection has
 * ended here: it never said C or A (RFC 7609 4.4.2). Nobody else may have such
 * an element, so what is remembered of the connection waits in the element for
 * a sign that the peer is through with it, too: a late C or A, the end of the
 * peer's RMB that the connection wrote into (DELETE RKEY), or another use of
 * that very element. The end of the group frees the rest.
 *
 * A group with quarantine_max of them takes no new connection until some come
 * back, and ends when its last one has left.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "smcr/data/rmb.h"

/* Puts the element of an ended connection there. peer_rmb: what it wrote into, NULL when it never knew. */
void quarantine_elem(struct rmb *, uint8_t idx, uint32_t token, const struct remote_rmb *peer_rmb, uint8_t peer_idx);
/* A CDC message with these flags came for a connection that is no more. True when an element was freed by it. */
bool quarantine_take_flags(struct lgr *, uint32_t token, uint8_t conn_flags);
/* The peer gives this element of its to another connection; 0: its RMB is no more, nor any element. */
void quarantine_let_go(struct lgr *, const struct remote_rmb *, uint8_t peer_idx);
bool quarantine_is_full(const struct lgr *);
