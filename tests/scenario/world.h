/* A scenario's world: virtual time, the timers of everything that is simulated, random numbers from the seed, and what
 * went wrong. One world a run; nothing outside of it has state, so the same seed gives the same run. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/rng.h"
#include "base/timerq.h"

#define US 1000LL
#define MS 1000000LL
#define SEC 1000000000LL

struct world {
	struct rng rng;
	int64_t now_ns;
	struct timerq timers;
	FILE *log; /* NULL: quiet */
	unsigned fail_cnt;
	char first_fail[512];
	void (*line)(void *ctx, const char *text); /* each line of the log, whether it is written or not; may be NULL */
	void *line_ctx;
	bool lossy;         /* an adapter has acknowledged what its host never got */
	const char *excuse; /* reason for unrequested resets of connections; NULL: they may not */
};

void world_init(struct world *, uint64_t seed, FILE *log);
void world_fini(struct world *);

/* Something is wrong: the first one is kept, all are logged. */
void world_fail(struct world *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* From now on connections may suffer: why, static text. The first reason is kept. */
void world_excuse(struct world *, const char *why);
/* The log has a reader. */
bool world_listens(const struct world *);
void world_log(struct world *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Timers of simulated things: reserved at init, given back at fini. */
void world_timer_init(struct world *, struct timer *, void (*fire)(struct timer *));
void world_timer_fini(struct world *, struct timer *);
void world_arm(struct world *, struct timer *, int64_t at_ns);

/* Uniform in from..to. */
int64_t world_draw(struct world *, int64_t from, int64_t to);
/* True in n of 1000 cases. */
bool world_chance(struct world *, unsigned per_mille);

/* Memory or the end of the program: a test has nothing better to do. */
void *must_calloc(size_t n, size_t len);
