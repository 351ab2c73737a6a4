/*
 * Text tables: rows of cells, columns as wide as their widest cell. The last
 * column is not padded. Used for every list that smcrctl prints.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define TABLE_COLUMNS_MAX 32

/* All zero at first. */
struct table {
	unsigned columns;
	bool right[TABLE_COLUMNS_MAX]; /* aligned to the right */
	size_t width[TABLE_COLUMNS_MAX];
	char **cells; /* row by row */
	size_t cell_cnt, cell_cap;
	bool failed; /* out of memory: cells are missing */
};

void table_fini(struct table *);
/* A column with its heading; all of them before the first cell. */
void table_column(struct table *, const char *heading, bool right);
/* The next cell. Control characters become '?'; nothing becomes "-". */
void table_cell(struct table *, const char *text);
void table_print(const struct table *, FILE *);

/* Prints text without control characters (a name may hold some), newlines excepted. */
void print_clean(FILE *, const char *text);
