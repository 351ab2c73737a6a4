/* The messages of one worker on their way to the control socket: the engine's trace function copies them, in the worker's thread, into a
 * block; a mail notifies main, which exchanges the whole block for an empty one. A message without space is counted and left out, so the
 * engine never waits. A lock is held while a message is copied or blocks are exchanged, and only during a trace. */
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "daemon/loop/mailbox.h"
#include "daemon/worker/worker.h"

struct tap_block;

struct trace_tap {
	struct mail mail; /* to main: the block has messages */
	struct mailbox *main;
	/* In the main loop, for each message; then, with message NULL, for those left out behind them. */
	void (*deliver)(struct trace_tap *, const struct smcr_trace *, int64_t time_us, uint64_t left_out);
	void *arg;                /* the owner's */
	struct tap_block *blocks; /* both, in one piece of memory */
	struct tap_block *full;   /* main's: empty, or being delivered */
	unsigned wanted;          /* by main: 1 << enum smcr_trace_kind; 0: none */
	unsigned kinds;           /* the worker's, as they were when it was called last */
	pthread_mutex_t lock;     /* of what follows */
	struct tap_block *fill;
	bool told; /* the mail is pending */
	uint64_t left_out;
};

/* Of a zeroed tap. 0 or -ENOMEM: it stays zeroed. The mailbox is main's. */
int trace_tap_init(struct trace_tap *, struct mailbox *);
/* For a tap whose engine has stopped writing. Does nothing while the mail is pending, and is to be called again then. A zeroed tap is
 * allowed. */
void trace_tap_fini(struct trace_tap *);
/* In the worker's thread, of a struct trace_tap: traces the wanted kinds from here on. */
void trace_tap_set(struct worker *, void *tap);
