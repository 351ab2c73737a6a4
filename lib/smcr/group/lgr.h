/* Life of a link group; its state is in state/lgr.h. */
#pragma once

#include "smcr/state/lgr.h"

/* NULL when out of memory. */
struct lgr *lgr_new(struct smcr *, enum smcr_role, const struct owner *);
/* First contact is complete. */
void lgr_set_active(struct lgr *);
/* Orderly end of an active group without connections: DELETE LINK for all (3.5.4). reason: LLC_DELETE_. */
void lgr_delete(struct lgr *, uint32_t reason);
/* Resets every established connection with the reason, marks others to end, ends links, no messages. Idempotent. */
void lgr_down(struct lgr *, enum smcr_reason, const char *why);
/* Frees a dead group unless a connection refers to it (counted), or a queue pair has not ended. False: not yet. */
bool lgr_free(struct lgr *);
/* The owner has proven its name once more, in a rendezvous that joins; NULL: it has not. */
void lgr_renew_proof(struct lgr *, void *proof);

/* Handles this room's marks: lost links, completion of DELETE LINK for all, a connection that left. */
void lgr_act_on_marks(struct lgr *);
/* Frees resources of ended links whose completions were polled once more. */
void lgr_sweep(struct smcr *);
/* Records that the final poll of all ended links follows; dev NULL: of any device. */
void lgr_last_look(struct smcr *, const struct rnic_dev *dev);

/* By ID, in any state; NULL: none. */
struct lgr *lgr_find(const struct smcr *, uint32_t id);

/* The peer claims not to know the group (A.2.5). As that is unproven, the group's links are tested: those that the peer
 * has dropped do not answer and go down. Until then no connection is assigned to the group. */
void lgr_mark_suspect(struct lgr *);
bool lgr_is_suspect(const struct lgr *);
