/* Figures of the last ten minutes, of a worker and of its active services: rings of samples, one for each step of five seconds.
 * Nothing wakes a thread for it. What is sampled changes in turns of the worker alone, so the first turn of a step closes the step of
 * the turn before it, and steps without a turn were quiet: connections stayed, and nothing was added. Steps count from the origin of the
 * monotonic clock, so those of all workers are the same, and reports add them up. Owned by the session pool, in its thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define HISTORY_SAMPLES 120
#define HISTORY_STEP_NS INT64_C(5000000000)
#define HISTORY_SERVICES_MAX 128 /* of a worker: rings of 4.7 KiB */

struct service;
struct session_pool;

struct history_sample {
	uint64_t bytes[2]; /* in the step: from and to the application */
	uint32_t modes[3]; /* at its end: connections by enum session_mode */
	uint32_t accepted; /* in the step; those refused included */
	uint32_t refused;  /* in the step, for any reason */
	uint32_t rtt_us;   /* at its end: the longest round trip of links in use; 0: not known */
};

struct history {
	struct history_sample at[HISTORY_SAMPLES];
	int64_t end;   /* the step behind the newest sample */
	int64_t moved; /* the last step that was not quiet */
};

/* What a service had counted when its last step was closed. */
struct history_mark {
	uint64_t bytes[2], accepted, refused;
};

/* Of a worker. */
struct history_pool {
	struct history all; /* all services together, also those removed by a reload */
	int64_t step;       /* of the last turn */
	int64_t next_ns;    /* its end; 0: no turn yet */
	unsigned rings;     /* of services */
	int64_t full;       /* the last step in which no ring gave way */
};

static inline int64_t
history_step(int64_t clock_ns)
{
	return clock_ns / HISTORY_STEP_NS;
}

/* The steps since the newest sample were quiet. Steps ascend. */
void history_put(struct history *, int64_t step, const struct history_sample *);
/* Zeros for a step that is not kept; a later one than the newest is quiet. */
struct history_sample history_get(const struct history *, int64_t step);
/* Of another worker, or service. */
void history_add(struct history_sample *sum, const struct history_sample *one);

/* The first thing of a turn, by the time of the system (clock_ns). */
void history_follow(struct session_pool *, int64_t clock_ns);
/* NULL is allowed. */
void history_drop(struct service *);
