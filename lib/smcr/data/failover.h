/* Moves connections between links of their group (RFC 7609 4.6), because a link is lost or for balance. Each side moves
 * its own sending: a failover validation message first on the new link, then what the peer may lack. */
#pragma once

#include <stdbool.h>

struct link;
struct lgr;
struct smcr_conn;
struct timer;

/* The link has ended: moves its connections to other links of the group, of which at least one exists. */
void failover_link(struct link *);
/* The deletion of a lost link is complete. Once no lost link is left, none of their data can arrive. */
void failover_settled(struct lgr *);
/* Moves the connection to this link when all its requests are complete, maybe at once. */
void failover_ask(struct smcr_conn *, struct link *to);
/* With move_to, before it posts. True: the move was cancelled. False: it waits for completions, or has just moved. */
bool failover_stays(struct smcr_conn *);
/* For a foreign peer that moves a closing connection without validation: it may still send over its last link, which is
 * lost. That message is lost if our D or C has arrived before. */
bool failover_awaits_peer(const struct smcr_conn *);
/* A close sent over a lost link may be lost. Until a foreign peer has moved, the connection sends nothing: the response
 * to repeated data, D or C would be lost as well. */
bool failover_holds_back(const struct smcr_conn *);
/* lgr->moves: the peer's time to move has passed. */
void failover_moves_fired(struct timer *);
/* The failover validation message is complete: the peer knows of the move. */
void failover_proven(struct smcr_conn *);
/* The same, or the connection left its group. */
void failover_resumed(struct smcr_conn *);
