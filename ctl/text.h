/* Text for people: numbers, and tables for every list that smcrctl prints. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Numbers as people read them. Each function fills buf and returns it. */
#define HUMAN_MAX 32

/* "0", "999", "1.5K", "64K", "3.2G": powers of 1024. */
char *human_bytes(char buf[HUMAN_MAX], uint64_t bytes);
/* "12ms", "5.2s", "3m12s", "4h05m", "12d03h". */
char *human_duration(char buf[HUMAN_MAX], int64_t ms);
/* "12us", "2.5ms", "1.2s". */
char *human_us(char buf[HUMAN_MAX], int64_t us);
/* "1,234,567". */
char *human_count(char buf[HUMAN_MAX], uint64_t n);

/* The end of a noun behind a number: "s", or "" of one. */
const char *plural(int64_t cnt);

#define TABLE_COLUMNS_MAX 32

/* Rows of cells, columns as wide as their widest cell; the last one is not padded. All zero at first. */
struct table {
	unsigned columns;
	bool right[TABLE_COLUMNS_MAX]; /* aligned to the right */
	size_t width[TABLE_COLUMNS_MAX];
	size_t cell_cnt;
	FILE *cells; /* what writes text: cells row by row, a 0 behind each */
	char *text;
	size_t len;
};

void table_fini(struct table *);
/* A column with its heading; all of them before the first cell. */
void table_column(struct table *, const char *heading, bool right);
/* The next cell. Control characters become '?'; nothing becomes "-". */
void table_cell(struct table *, const char *text);
void table_print(struct table *, FILE *);

/* Prints text without control characters (a name may hold some), newlines excepted. */
void print_clean(FILE *, const char *text);
