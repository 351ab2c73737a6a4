/*
 * Answers of the daemon as text. Takes the JSON that --json would print and
 * nothing else, so both always say the same.
 */
#ifndef SMCRD_CTL_SHOW_H
#define SMCRD_CTL_SHOW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "control/commands.h"

/* Prints the "data" of an answer to this command; detail adds columns. */
void show_answer(FILE *, enum control_command, const json_t *data, bool detail);
/* Prints one line of a trace. */
void show_trace(FILE *, const json_t *event);

#endif
