/* What worker.c and worker_info.c share. */
#pragma once

#include "daemon/device/devices.h"
#include "daemon/worker/mpa_policy.h"
#include "daemon/worker/worker.h"
#include "wire/clc.h"

struct drain {
	void (*done)(void *arg); /* NULL: not draining, or it was called */
	void *arg;
	struct timer timer;
};

struct worker {
	struct env env;
	struct devices *devices;
	struct session_pool sessions;
	struct mpa_policy policy;
	struct drain drain;
	uint8_t host[CLC_HOST_LEN]; /* our name, which peers of SMC version 2 are told; as it was at the start */
	struct services_plan *plan; /* of a reload: prepared, not in force */
	bool draining;
	int64_t started_ns, ends_ns;
	uint64_t turns;
};
