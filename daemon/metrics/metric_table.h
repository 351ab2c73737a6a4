/*
 * Every metric: where its value is in rows of reports, by names of members as in JSON, and its help. A family is one row or several that follow one
 * another with the same name. doc/metrics-list.md is made of this table by a test (check_exposition.c). Counters of
 * smcrctl stats and of devices are rows, too, made of their own lists.
 */
#pragma once

#include "daemon/control/report_rows.h"

enum metric_type {
	METRIC_COUNTER,
	METRIC_GAUGE,
	METRIC_INFO,  /* 1, with its labels */
	METRIC_TIMES, /* histograms */
	METRIC_SIZES,
};

/* What tells one object from others: members that become labels. */
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
	const char *name; /* without "smcrd_" and "_total" */
	enum metric_type type;
	enum report_kind of; /* one value for each row of this kind */
	const struct metric_labels *labels;
	const char *member;        /* or group.member; of an info: NULL */
	const char *word;          /* the value is 1 when the member is this, otherwise 0; NULL: it is a number */
	const char *label, *value; /* one label more, or NULL */
	unsigned per;              /* the member's number is of so many in the unit: 1000 of ms; 0 = 1 */
	const char *help;
};

extern const struct metric metric_table[];
extern const unsigned metric_cnt;

#define METRIC_NAME_MAX 64

/* The name of a family in full but for the ending of its samples. A counter of smcrctl stats that is in microseconds is in seconds
 * here, and *per says so. Returns buf. */
char *metric_name(const struct metric *, char buf[METRIC_NAME_MAX], unsigned *per);
/* What it is; of these counters in seconds, too. */
const char *metric_help(const struct metric *);
