/* Services and connections by their rates: the differences of two samples, the answers to status and connections. Called
 * by smcrctl.c, which asks. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

struct top {
	json_t *before;         /* connections of the last sample, by id */
	json_t *services;       /* ... and its services, by name */
	int64_t pid, uptime_ms; /* of its daemon */
	int64_t time_ms;        /* of the last sample; 0: none yet */
	unsigned rows;          /* of connections that are shown */
};

void top_fini(struct top *);
/* Prints the "data" of both answers, with rates since the last sample; time_ms: of the second answer. service: only this
 * one; NULL: all. */
void top_show(
    struct top *, FILE *, const json_t *status, const json_t *connections, int64_t time_ms, const char *service);

/* Does the "data" have a service of this name, or connections of a removed one? NULL: any. */
bool top_knows(const json_t *status, const json_t *connections, const char *service);

/* A screen: text from the upper left corner on, cut off at its sides, and nothing else on it. */
void top_paint(FILE *, const char *text, unsigned rows, unsigned columns);
