/* Send queue of a link, for tx.c and link_tx.c. */
#pragma once

#include "smcr/state/link.h"

#define LINK_SIGNAL_EVERY 64 /* at least one in this many requests is signaled */
#define LINK_STEP_WRS 3      /* most requests of a connection's step: two writes and the CDC message */

static inline bool
link_is_usable(const struct link *link)
{
	return link->connected && !link_has_ended(link);
}

static inline uint32_t
link_outstanding(const struct link *link)
{
	return (uint32_t)(link->wr_head - link->wr_tail);
}

/* Credits for work requests, Sends among them, and payload bytes worth queueing. */
struct rnic_credits link_credits(const struct link *);
/* Queues a work request; msg != NULL: an inline message of LINK_MSG_LEN bytes (Send, solicited), copied. The device
 * gets requests in order, one behind, so that the last one of a burst can be signaled. 0 or -ENOBUFS/-ENOTCONN; as the
 * caller has checked link_credits, an error means a broken link. */
int link_post(struct link *, const struct rnic_send_wr *, const uint8_t *msg, const struct link_wr *what);
/* End of a burst: posts the held request, signaled. */
void link_post_end(struct link *);
