/*
 * Rows of a report (report_rows.h) that are kept as they were: copies, with the texts that their tables name, in blocks that are freed
 * together. Made in the workers' threads, one after the other, then read by another thread.
 */
#pragma once

#include "daemon/control/report_rows.h"

struct snapshot_row {
	struct snapshot_row *next;
	_Alignas(max_align_t) unsigned char bytes[];
};

struct snapshot_block;

struct snapshot {
	struct {
		struct snapshot_row *first, **end; /* end: NULL while there is none */
	} rows[REPORT_KEPT_CNT];
	struct snapshot_block *blocks; /* the one in use first */
	size_t bytes, bytes_max;       /* of all blocks; at most */
	bool failed;                   /* too large, or memory was out: rows are missing */
};

/* All zeros but bytes_max to begin with. */
void snapshot_add(struct snapshot *, enum report_kind, const void *row);
/* The first row of this kind as the struct that it is; NULL: there is none. */
const void *snapshot_first(const struct snapshot *, enum report_kind);
void snapshot_fini(struct snapshot *);

/* Walks the rows of a kind: `row` is a const void *. */
#define SNAPSHOT_EACH(row, s, kind)                                                                                    \
	for (const struct snapshot_row *row##_at = (s)->rows[kind].first; row##_at != NULL; row##_at = row##_at->next) \
		for (const void *row = row##_at->bytes; row != NULL; row = NULL)
