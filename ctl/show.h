/*
 * Answers of the daemon as text. Takes the JSON that --json would print and
 * nothing else, so both always say the same.
 */
#pragma once

#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "control/commands.h"

/* Prints the "data" of an answer to this command; detail adds columns. */
void show_answer(FILE *, enum control_command, const json_t *data, bool detail);
/* Prints one line of a trace. */
void show_trace(FILE *, const json_t *event);

/* -- between the files of show -- */

#define CELL_MAX 512

/* "" , 0 and false for a member that is missing or of another type. */
const char *get_string(const json_t *, const char *key);
int64_t get_int(const json_t *, const char *key);
bool get_bool(const json_t *, const char *key);

enum column_kind {
	COLUMN_TEXT,
	COLUMN_NUMBER,
	COLUMN_PAIR, /* two numbers: "3/255" */
	COLUMN_BYTES,
	COLUMN_AGE,   /* milliseconds */
	COLUMN_MICRO, /* microseconds */
	COLUMN_QPN,   /* a queue pair number, as a trace and other tools write it */
	COLUMN_CALL,
};

struct column {
	const char *heading;
	enum column_kind kind;
	const char *key, *key2;
	bool detail; /* only with --detail */
	/* COLUMN_CALL: writes the cell. */
	void (*call)(const json_t *item, char *buf, size_t cap);
	bool right; /* COLUMN_CALL: aligned to the right */
};

/* One line for each item of the list; a column without heading ends columns. */
void show_list(FILE *, const json_t *list, const struct column *columns, bool detail);

void show_connections(FILE *, const json_t *data, bool detail);
void show_groups(FILE *, const json_t *data, bool detail);
void show_links(FILE *, const json_t *data, bool detail);
void show_rmbs(FILE *, const json_t *data, bool detail);
void show_devices(FILE *, const json_t *data, bool detail);
void show_status(FILE *, const json_t *data, bool detail);
void show_stats(FILE *, const json_t *data, bool detail);
void show_drain(FILE *, const json_t *data, bool detail);
void show_reload(FILE *, const json_t *data, bool detail);
void show_check(FILE *, const json_t *data, bool detail);
void show_rebalance(FILE *, const json_t *data, bool detail);
void show_link_delete(FILE *, const json_t *data, bool detail);
