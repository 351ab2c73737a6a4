/* The life of a link group; its state is in state/lgr.h. */
#pragma once

#include "smcr/data/window.h"
#include "smcr/state/lgr.h"

/* NULL when memory is out. */
struct lgr *lgr_new(struct smcr *, enum smcr_role, const struct owner *);
/* First contact is through. */
void lgr_set_active(struct lgr *);
/* Orderly end of an active group without connections: DELETE LINK for all (3.5.4). reason: LLC_DELETE_. */
void lgr_delete(struct lgr *, uint32_t reason);
/* Every established connection is reset with the reason, every other one is marked to end, every link ends, no messages.
 * Idempotent. */
void lgr_down(struct lgr *, enum smcr_reason, const char *why);
/* Frees a dead group, unless a connection has not let go of it (it is counted that every one has), or a queue pair has not
 * ended. False: not yet. */
bool lgr_free(struct lgr *);

/* Acts on the marks that are this room's: links that are lost, DELETE LINK for all that is complete, a connection that left. */
void lgr_act_on_marks(struct lgr *);
/* Frees what links hold that ended and had a last look at their completions. */
void lgr_sweep(struct smcr *);
/* The links that have ended so far are about to have that last look; dev NULL: of any device. */
void lgr_last_look(struct smcr *, const struct rnic_dev *dev);

/* By the number that operators see, whatever its state; NULL: there is none. */
struct lgr *lgr_find(struct smcr *, uint32_t id);

/* Has, or can make, a free element of this size. */
bool lgr_has_place(const struct lgr *, struct window_want);
/* New connections may join: nothing is to end it, and the peer lets go of enough elements. */
bool lgr_takes_conns(const struct lgr *);
/* The peer says that it does not know the group (A.2.5). Anybody may say so, so its links are tested: what the peer has given
 * up does not answer and goes down. Until then the group is not offered. */
void lgr_mark_suspect(struct lgr *);
bool lgr_is_suspect(const struct lgr *);
