/*
 * Sessions whose sent data nobody acknowledges any longer: TCP's keepalive does not look
 * at those, and TCP itself retransmits for a quarter of an hour. The limit is
 * keepalive.ack_timeout. Embedded in the pool; sleeps while everything is acknowledged.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/timerq.h"

struct session_pool;
struct session;

struct acks {
	struct timer timer; /* reserved by the worker */
	uint32_t pos;       /* place in pool->sessions; 0: a round begins */
	bool waits;         /* this round has seen a leg that waits for an acknowledgment */
	int64_t from_ns;    /* this process stood still before: that time does not count */
};

void acks_init(struct acks *);
/* Settings of the pool have changed. */
void acks_reload(struct session_pool *);
/* The session was pumped, and may have sent something. */
void acks_note(const struct session *);
