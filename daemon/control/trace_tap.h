/*
 * The messages of one worker on their way to the control socket: the engine's trace function writes them, in the worker's
 * thread, into a block; a mail tells main, which takes the whole block for an empty one. What finds no room is counted and
 * left out, so the engine never waits. A lock is held for as long as a message is copied or blocks change hands, and only
 * while somebody traces.
 */
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/loop/mailbox.h"
#include "daemon/worker/worker.h"

struct tap_block;

struct trace_tap {
	struct mail mail; /* to main: there is something to take */
	struct mailbox *main;
	/* In the main loop, for each message and then, with message NULL, for what was left out behind them. */
	void (*deliver)(struct trace_tap *, const struct smcr_trace *, int64_t time_us, uint64_t left_out);
	void *arg;              /* the owner's */
	struct tap_block *full; /* main's: empty, or being delivered */
	unsigned kinds;         /* the worker's: 1 << enum smcr_trace_kind */
	pthread_mutex_t lock;   /* of what follows */
	struct tap_block *fill;
	bool told; /* the mail is under way */
	uint64_t left_out;
};

/* 0 or -ENOMEM. The mailbox is main's. */
int trace_tap_init(struct trace_tap *, struct mailbox *);
/* The engine does not write any more. Waits, doing nothing, while the mail is under way: to be called again then. A zeroed tap is
 * left alone. */
void trace_tap_fini(struct trace_tap *);
/* In the worker's thread: traces these kinds from now on; 0: nothing. */
void trace_tap_set(struct trace_tap *, struct worker *, unsigned kinds);
