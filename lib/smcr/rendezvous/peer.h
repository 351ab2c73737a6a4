/*
 * What is known of a peer while first contact with it goes on or has failed:
 * one connection leads (makes the group), others wait and join it. A failed
 * attempt is repeated once by a waiting connection; then all of them fall back
 * together, and after repeated failures the peer is held off for a while,
 * doubling. A client names its peer by the key of smcr_open, a server by the
 * peer id of the Proposal and who sent it (owner.h). Owned by the engine; freed when nothing is left to
 * remember.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "smcr/group/owner.h"

struct peer {
	struct list_node node; /* eng->peers */
	enum smcr_role role;
	char key[64];       /* client */
	struct owner owner; /* server; client: of a group that the key leads to, when owner_known */
	bool owner_known;   /* client: that group was made under another key */
	struct smcr_conn *leader;
	struct list_node waiting; /* rdv->wait */
	unsigned attempts;        /* leaders that failed while others waited */
	unsigned failures;        /* rounds that failed in a row */
	int64_t hold_until_ns;
	bool busy; /* peer_done is at work: not to be freed */
};

/* Finds or makes; NULL when memory is out or first contact goes on with too many peers. */
struct peer *peer_get(struct smcr *, enum smcr_role, const char *key, const struct owner *);
/* Client: connections by this key join a group that was made under another one (two ports of one peer). */
void peer_learn(struct smcr *, const char *key, const struct owner *);
/* Client: whose groups the key was learned to lead to, NULL when it was not. */
const struct owner *peer_known_owner(const struct smcr *, const char *key);
bool peer_held_off(const struct smcr *, const struct peer *);
void peer_lead(struct peer *, struct smcr_conn *);
void peer_wait(struct peer *, struct smcr_conn *);

enum peer_outcome {
	PEER_OK,     /* there is a group now */
	PEER_FAILED, /* first contact failed */
	PEER_VOID,   /* the leader went away for reasons of its own, or was declined before first contact */
};

/* The leader is through. Lets the waiting ones go on; may free the peer. */
void peer_done(struct smcr *, struct peer *, enum peer_outcome);
/* A waiting connection goes away. May free the peer. */
void peer_leave(struct smcr *, struct peer *, struct smcr_conn *);
void peer_free_all(struct smcr *);
