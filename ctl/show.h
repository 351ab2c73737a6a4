/* Answers of the daemon as text, made only of the JSON that --json prints. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "control/commands.h"

/* Prints the "data" of an answer to this command, or a line of a trace or of events; detail adds columns. */
void show_answer(FILE *, enum control_command, const json_t *data, bool detail);
/* Prints an answer that smcrctl has made of others, as text or JSON. */
void show_made(bool json, enum control_command, const json_t *answer, bool detail);

/* -- also for other files of ctl that make text -- */

/* "" , 0 and false for a member that is missing or of another type. */
const char *get_string(const json_t *, const char *key);
/* Of a service: a setting as the configuration has it; "" if the service does not have it. */
const char *get_setting(const json_t *service, const char *name);
int64_t get_int(const json_t *, const char *key);
bool get_bool(const json_t *, const char *key);

enum { LEFT = 0, RIGHT = 1, DETAIL = 2, MORE = 4 };

/* A column of a table: its heading, and the cell of an item, a template. */
struct column {
	unsigned flags; /* alignment; DETAIL: only with --detail; MORE: not on a narrow screen */
	const char *heading, *cell;
};

/* Of the screen, which columns leave out of tables that are wider; 0: no limit, as at first. */
void show_set_width(unsigned columns);
/* One line for each item of the list, columns as wide as their widest cell; a column without heading ends columns. Without detail, and where
 * the screen is narrower, those without any value are left out, then those of MORE, from the right. */
void show_columns(FILE *, const json_t *list, const struct column *columns, bool detail);
/* Prints the list of this key in data as a table. */
void show_list(FILE *, const json_t *data, const char *key, bool detail);

/* How a connection runs, whether a service takes some: templates. Of an older daemon every service is open. */
#define SHOW_MODE "[mode=smcr?SMC-R|mode=tcp?TCP|mode=setup?set-up|{mode}]"
#define SHOW_SERVICE_STATE "[disabled?disabled|closed?closed|health=down?down|open]"
