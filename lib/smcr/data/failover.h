/*
 * Connections move from one link of their group to another (RFC 7609 4.6):
 * because the link is lost, or because somebody wants them elsewhere. Each side
 * moves its own sending; a failover validation message comes first on the new
 * link, then what the peer may not have is said again.
 */
#pragma once

#include <stdbool.h>

struct link;
struct lgr;
struct smcr_conn;
struct timer;

/* The link has ended: its connections go on over the other links of the group, of which there is one at least. */
void failover_link(struct link *);
/* The peers are through with a lost link. When none is left, nothing of what was sent over them can come. */
void failover_settled(struct lgr *);
/* The connection goes over to this link when all that it has posted is complete, maybe at once. */
void failover_ask(struct smcr_conn *, struct link *to);
/* A connection with move_to is about to post: true when it may, over the link that it is on, because nothing comes of its
 * move. False: it waits for completions, or has just gone over to the other link. */
bool failover_stays(struct smcr_conn *);
/* Of a peer that moves a connection whose end has begun without a word: it may yet say something over the link that it was last
 * heard over, which is lost, and that is lost, too, when our D or C has come before. */
bool failover_awaits_peer(const struct smcr_conn *);
/* A connection whose end was said over a lost link, and may not have arrived, says nothing more until such a peer has moved: the
 * answer to the repetition, of data as of D and C, would be lost as well. */
bool failover_holds_back(const struct smcr_conn *);
/* lgr->moves: the peer has had its time to move. */
void failover_moves_fired(struct timer *);
/* Its failover validation message is complete, so the peer has heard of the move; or the connection has left its group. */
void failover_resumed(struct smcr_conn *);
/* All connections are to leave the link. */
void failover_drain(struct link *);
