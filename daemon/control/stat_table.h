/*
 * Where in the daemon each counter of control/counters.h is, and the names of what devices count.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/control/report.h"

enum stat_source {
	STAT_SMCR,
	STAT_WORKER,
	STAT_CONTROL,
};

struct stat_desc {
	const char *key;
	enum stat_source source;
	size_t off; /* of a uint64_t in the source */
};

struct stat_sources {
	const struct smcr_counters *smcr;
	const struct worker_stats *worker;
	const struct control_stats *control;
};

extern const struct stat_desc stat_table[]; /* ends with key == NULL */
uint64_t stat_value(const struct stat_desc *, const struct stat_sources *);

/* The counters of all kinds of devices, by name, so that each device is shown with the same ones. Ends with NULL. */
extern const char *const device_stats[];
/* 0 when the device has none of this name. */
uint64_t device_stat_value(const char *key, const struct rnic_stat *, unsigned cnt);
