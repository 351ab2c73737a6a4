/* Every metric: the place of its value in rows of reports, by the names of members in JSON, and its help. A family is one row, or several
 * adjacent ones with the same name. check_exposition.c generates doc/metrics-list.md from this table. The counters of smcrctl stats and
 * of devices are rows made of their own lists. */
#pragma once

#include "daemon/control/report_rows.h"

enum metric_type {
	METRIC_COUNTER,
	METRIC_GAUGE,
	METRIC_INFO,  /* 1, with its labels */
	METRIC_TIMES, /* histograms */
	METRIC_SIZES,
};

/* Members that identify an object become labels. */
struct metric_label {
	const char *name;
	const char *member;
};

struct metric_labels {
	const char *sub; /* array in each row: one value for each of its objects, whose labels come last; NULL */
	struct metric_label of[8];     /* ends with NULL */
	struct metric_label of_sub[3]; /* ends with NULL */
};

struct metric {
	const char *name; /* without "smcrd_", which "process_..." has not, and "_total" */
	enum metric_type type;
	enum report_kind of; /* one value for each row of this kind */
	const struct metric_labels *labels;
	const char *member;        /* or group.member; of an info: NULL */
	const char *word;          /* the value is 1 when the member is this, otherwise 0; NULL: it is a number */
	const char *label, *value; /* one label more, or NULL */
	unsigned per;              /* the unit is so many of the member's: 1000 of ms; 0 = 1 */
	const char *help;
};

extern const struct metric metric_table[];
extern const unsigned metric_cnt;

#define METRIC_NAME_MAX 64

/* A family's name without its samples' suffix; returns buf. A counter in microseconds is in seconds, *per 1000000. */
char *metric_name(const struct metric *, char buf[METRIC_NAME_MAX], unsigned *per);
/* The help; for these counters in seconds as well. */
const char *metric_help(const struct metric *);
