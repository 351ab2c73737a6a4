/*
 * Every counter of the daemon by its name in JSON. (What it means in words is
 * in ctl/stat_words.c and doc/json-schema.md; tests hold the three together.)
 */
#ifndef SMCRD_STAT_TABLE_H
#define SMCRD_STAT_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/report.h"

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

unsigned stat_cnt(void);
const struct stat_desc *stat_at(unsigned i);
uint64_t stat_value(const struct stat_desc *, const struct stat_sources *);

/* Those of one device (verbs): name and place in struct verbs_stats. */
struct device_stat {
	const char *key;
	size_t off;
};

unsigned device_stat_cnt(void);
const struct device_stat *device_stat_at(unsigned i);
uint64_t device_stat_value(const struct device_stat *, const struct verbs_stats *);

#endif
