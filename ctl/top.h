/*
 * What goes on now: services and connections by their rate, which is what two looks differ in. Made of the answers to status and
 * connections. A screen's worth, again and again; smcrctl.c asks.
 */
#pragma once

#include <jansson.h>
#include <stdio.h>

struct top {
	json_t *before;  /* connections of the last look, by worker and id: "from" and "to", their bytes so far */
	json_t *taken;   /* services: what they had accepted */
	int64_t time_ms; /* of that look; 0 = there was none */
	unsigned rows;   /* of connections that are shown */
};

void top_fini(struct top *);
/* Prints the "data" of both answers, and what has changed since the last time; time_ms: of the second answer. service: of this
 * alone; NULL: all. */
void top_show(
    struct top *, FILE *, const json_t *status, const json_t *connections, int64_t time_ms, const char *service);

/* A screen: text from the upper left corner on, cut off at its sides, and nothing else on it. */
void top_paint(FILE *, const char *text, unsigned rows, unsigned columns);
