/*
 * What goes on now: services and connections by their rate, which is what two looks differ in. Made of the answers to status and
 * connections. A screen's worth, again and again; smcrctl.c asks.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

struct top {
	json_t *before;         /* counts of the connections of the last look, by id */
	json_t *services;       /* ... and of its services, by name */
	int64_t pid, uptime_ms; /* of the daemon there */
	int64_t time_ms;        /* of that look; 0 = there was none */
	unsigned rows;          /* of connections that are shown */
};

void top_fini(struct top *);
/* Prints the "data" of both answers, and what has changed since the last time; time_ms: of the second answer. service: of this
 * alone; NULL: all. */
void top_show(
    struct top *, FILE *, const json_t *status, const json_t *connections, int64_t time_ms, const char *service);

/* Does the "data" of the answers have a service of this name, or connections of one that is not configured any longer? NULL: any. */
bool top_knows(const json_t *status, const json_t *connections, const char *service);

/* A screen: text from the upper left corner on, cut off at its sides, and nothing else on it. */
void top_paint(FILE *, const char *text, unsigned rows, unsigned columns);
