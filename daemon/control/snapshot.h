/* Copies of rows of a report (report_rows.h), with the texts and arrays that their tables name. Made in the workers' threads, one after
 * the other, then read by another thread. */
#pragma once

#include "daemon/control/report_rows.h"

struct snapshot_row {
	struct snapshot_row *next;
	_Alignas(max_align_t) unsigned char bytes[];
};

struct snapshot_piece;

struct snapshot {
	struct {
		struct snapshot_row *first, **end; /* end: NULL without rows */
	} rows[REPORT_KEPT_CNT];
	struct snapshot_piece *pieces; /* of memory, the newest first */
	size_t bytes, bytes_max;       /* of all pieces; their limit */
	bool failed;                   /* too large, or out of memory: rows are missing */
};

/* To a snapshot that is zeroed but for bytes_max. */
void snapshot_add(struct snapshot *, enum report_kind, const void *row);
/* The first row of this kind as the struct that it is; NULL: no row. */
const void *snapshot_first(const struct snapshot *, enum report_kind);
void snapshot_fini(struct snapshot *);

/* Walks the rows of a kind: `row` is a const void *. */
#define SNAPSHOT_EACH(row, s, kind)                                                                                    \
	for (const struct snapshot_row *row##_at = (s)->rows[kind].first; row##_at != NULL; row##_at = row##_at->next) \
		for (const void *row = row##_at->bytes; row != NULL; row = NULL)
