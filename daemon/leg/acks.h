/* Ends sessions whose data is not acknowledged within keepalive.ack_timeout: TCP's keepalive does not run then, and TCP
 * retransmits for 15 minutes. Embedded in the pool; the timer sleeps while everything is acknowledged. The loop's time
 * leaves out what the thread stood still (loop.c). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/timerq.h"

struct session_pool;
struct session;

struct acks {
	struct timer timer; /* reserved by the worker */
	uint32_t pos;       /* position in pool->sessions; 0: start of a round */
	bool waits;         /* this round found a leg that waits for an acknowledgment */
};

void acks_init(struct acks *);
/* After a change of the keepalive settings. */
void acks_reload(struct session_pool *);
/* After a pump of the session, which may have sent data. */
void acks_note(const struct session *);
