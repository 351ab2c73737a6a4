/* Events for the operator. Each becomes a line of the log or an entry of the journal with fields, and an entry in
 * memory for smcrctl events. When the memory is full the most frequent kind loses its oldest event, so no kind removes
 * the history of others. All three are made from one struct event (event_kinds.h). Any thread reports, without waiting
 * for a reader. Events over the rate limit of their kind are dropped everywhere and counted. Owned by main, which
 * frees it after the workers. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/event/event_kinds.h"
#include "daemon/loop/mailbox.h"

#define EVENT_HISTORY_KEPT 256
#define EVENT_HISTORY_BURST 20 /* of a kind, */
#define EVENT_HISTORY_BURST_MS 1000
#define EVENT_UNKNOWN_PEERS_MS 60000 /* of unknown peers, whose number has no bound */

struct event_record {
	uint64_t nr;       /* from 1; events that are not kept leave gaps */
	int64_t time_us;   /* since 1970 */
	uint64_t left_out; /* events of this kind dropped before it */
	unsigned worker;   /* from 1; 0: main, or all workers */
	struct event event;
};

struct event_history {
	pthread_mutex_t lock; /* of all fields below */
	struct log_limit limits[EVENT_KIND_CNT];
	struct event_record *kept;          /* EVENT_HISTORY_KEPT places */
	unsigned order[EVENT_HISTORY_KEPT]; /* used places, by number */
	unsigned cnt, of_kind[EVENT_KIND_CNT];
	uint64_t last; /* number of the newest; 0: no event yet */
	/* The follower's mailbox; pending: the mail is posted. */
	struct mailbox *to;
	struct mail mail;
	bool pending;
};

/* 0 or -ENOMEM. */
int event_history_init(struct event_history *);
/* After the last report. A zeroed history is ignored. */
void event_history_fini(struct event_history *);

/* now_ns: a monotonic clock, for the rate limit. Without a history (NULL, in tests) the line is logged all the same. */
void event_report(struct event_history *, int64_t now_ns, unsigned worker, const struct event *);

/* Copies the first kept event after number `after`; false: no such event. */
bool event_history_next(struct event_history *, uint64_t after, struct event_record *);
uint64_t event_history_last(struct event_history *);
/* Each later event wakes the loop of this mailbox; NULL: no wake-up. */
void event_history_wake(struct event_history *, struct mailbox *);
