/* Turns of a link, LLC messages to be sent, completions: used by the LLC exchanges and by the engine's turn. */
#pragma once

#include "smcr/state/link.h"

/* Queues an LLC message; it goes out before any data. -ENOBUFS when LINK_LLC_QUEUE are waiting: such a link is broken and
 * marked as failed; -ENOBUFS, too, when the message has more than LINK_MSG_LEN bytes and finds no room behind others like that
 * which are not complete: the link is well, and what it was for comes to nothing. -EINVAL: a value out of range. */
int link_send_llc(struct link *, const struct llc_msg *);
/* A send-side completion of this link: hands each request up to wr_id to its owner. */
void link_wc(struct link *, const struct rnic_wc *);
/* Something has come over the link, or what was sent has arrived: the log says that an active link is up, if it has not. A client
 * whose card hears, but sends nothing, confirms one link after the other, which is no news. */
void link_log_up(struct link *);
/* Posts LLC, then connections round robin, within the room; true when more is waiting and could go at once. */
bool link_flush(struct link *);
