/* Shared by worker.c and worker_info.c. */
#pragma once

#include "daemon/device/devices.h"
#include "daemon/worker/mpa_policy.h"
#include "daemon/worker/worker.h"
#include "wire/clc.h"

struct worker {
	struct env env;
	struct devices *devices;
	struct session_pool sessions;
	struct {
		void (*done)(void *arg); /* NULL: not draining, or already called */
		void *arg;
		struct timer timer;
	} drain;
	uint8_t host[CLC_HOST_LEN]; /* our name for peers of SMC version 2, from the start */
	struct services_plan *plan; /* of a reload: prepared, not applied */
	struct timer trim;          /* armed while streams of TLS have ended since the last */
	uint64_t tls_freed;         /* of tls_counts(), at the last turn */
	bool draining;
	int64_t started_ns, ends_ns;
	uint64_t turns;
};
