/* A proof of a peer's name (struct smcr_identity) is an object of the user of the engine; it may judge it again later. */
#pragma once

#include "smcr/smcr.h"

/* A group keeps the last proof: of its first contact, then of each rendezvous that joins it. hold is called with on = true for
 * a proof that is kept, false for one that no longer is. */
void smcr_set_proofs(struct smcr *, void (*hold)(void *proof, bool on));
/* The proof of its group; NULL: not known. */
void *smcr_proof(const struct smcr_conn *);
/* The suite of its group, as in struct smcr_group_info. */
uint16_t smcr_suite(const struct smcr_conn *);
/* Ends the group at once: resets its connections with SMCR_R_OPERATOR and this static text. False: not found. */
bool smcr_end_group(struct smcr *, uint32_t group_id, const char *why);
