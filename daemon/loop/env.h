/* The environment that all parts of a worker's turn share. Filled in and owned by the worker; its parts point to it. */
#pragma once

#include "base/rng.h"
#include "base/timerq.h"
#include "daemon/loop/loop.h"
#include "smcr/smcr.h"

#define NS_PER_MS 1000000LL

struct env {
	struct loop *loop;
	struct smcr *eng;
	struct timerq timers;
	struct rng rng;
	int64_t now_ns; /* read once per turn, before its first callback */
};

/* Arms a timer that was reserved in env->timers. */
static inline void
env_arm(struct env *env, struct timer *t, uint32_t ms)
{
	timer_arm(&env->timers, t, env->now_ns + ms * NS_PER_MS);
}
