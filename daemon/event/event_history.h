/*
 * What an operator is told of, from wherever it happens: a line of the log, or an entry of the journal with fields, and a place
 * in memory for smcrctl events, where the kind that has most makes room, so that no kind empties the history of others. All three are made of one struct event (event_kinds.h). Any thread tells; nobody waits for a
 * reader. What comes too often is left out everywhere and counted, each kind on its own. Owned by main, which frees it behind
 * the workers.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/event/event_kinds.h"
#include "daemon/loop/mailbox.h"

/* How often an operator hears of the same thing, an outage, say: again when it has lasted so long; when it comes and goes, so
 * many times, and the ends on top. */
#define TELL_AGAIN_NS (600 * INT64_C(1000000000))
#define TELL_LIMIT ((struct log_limit){ .burst = 4, .interval_ms = 60000 })

#define EVENT_HISTORY_KEPT 256
#define EVENT_HISTORY_BURST 20 /* of a kind, */
#define EVENT_HISTORY_BURST_MS 1000
#define EVENT_UNKNOWN_PEERS_MS 60000 /* of strangers, who come without end */

struct event_record {
	uint64_t nr;       /* from 1; those that are not kept leave gaps */
	int64_t time_us;   /* of day, since 1970 */
	uint64_t left_out; /* like this one, before it */
	unsigned worker;   /* from 1; 0: main, or all of them */
	struct event event;
};

struct event_history {
	pthread_mutex_t lock; /* of all below */
	struct log_limit limits[EVENT_KIND_CNT];
	struct event_record *kept; /* EVENT_HISTORY_KEPT places */
	struct {
		uint64_t nr;
		unsigned place;
	} order[EVENT_HISTORY_KEPT]; /* those in use, by number */
	unsigned cnt, of_kind[EVENT_KIND_CNT];
	uint64_t last; /* number of the newest; 0: none yet */
	/* Somebody follows: he is told by a mail, unless that is under way. */
	struct mailbox *to;
	struct mail mail;
	bool told;
};

/* 0 or -ENOMEM. */
int event_history_init(struct event_history *);
/* When nobody tells any more. A zeroed one is left alone. */
void event_history_fini(struct event_history *);

/* now_ns: of a clock that goes on evenly, for the limit. Without events (NULL, in tests) there is a line all the same. */
void event_report(struct event_history *, int64_t now_ns, unsigned worker, const struct event *);

/* Copies the first one behind number `after` that is still there: false when there is none. */
bool event_history_next(struct event_history *, uint64_t after, struct event_record *);
/* The number of the newest. */
uint64_t event_history_last(struct event_history *);
/* From now on each event wakes the loop of this mailbox; NULL: none does. */
void event_history_wake(struct event_history *, struct mailbox *);
