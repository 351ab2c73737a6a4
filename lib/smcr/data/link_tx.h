/* Turns of a link, LLC messages to send, completions: for the LLC exchanges and the engine's turn. */
#pragma once

#include "smcr/state/link.h"
#include "wire/open.h"

/* Queues an LLC message, which precedes any data. -ENOBUFS when LINK_LLC_QUEUE are waiting: the link is broken and
 * marked as failed. -ENOBUFS as well when a message above LINK_MSG_LEN bytes finds no space behind others that are not
 * complete: the link works, but the exchange fails. -EINVAL: a value out of range. */
int link_send_llc(struct link *, const struct llc_msg *);
/* Queues a GRANT behind the LLC messages. -ENOBUFS: no space, the link is unharmed. */
int link_send_open(struct link *, const struct open_msg *);
/* A send completion of this link: dispatches each request up to wr_id. */
void link_wc(struct link *, const struct rnic_wc *);
/* Logs an active link as up, once a message was received over it or our sends have arrived. A client whose card
 * receives but cannot send would otherwise log one link after another. */
void link_log_up(struct link *);
/* Posts LLC, then connections round robin, within the credits; true when more is waiting and could go at once. */
bool link_flush(struct link *);
