/* The last ten minutes as text, within 80 columns: a character for each 15 seconds of a series. Called by show.c. */
#pragma once

#include <jansson.h>
#include <stdio.h>

#define HISTORY_SAMPLES_SHOWN 120

/* Prints the "data" of an answer: all services together and a line for each, or the only one. */
void history_show(FILE *, const json_t *data);
