/*
 * What peers may make an engine hold, how much and for how long: the table of doc/threat-model.md, as checks. They look
 * at an engine from outside, after each turn, and remember little of the last look. Nothing here knows the caller: the
 * runner's honest hosts, and the fuzzer's engine.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct smcr;

#define BOUNDS_GROUPS 256 /* remembered; ids count up, so that the oldest is forgotten */

struct bounds {
	struct bounds_group {
		uint32_t id;
		bool was_full; /* it had as many connections as a group may have */
		bool closed;   /* it takes no new connections */
		uint32_t used; /* elements, those that are waited for included */
	} group[BOUNDS_GROUPS];
};

/* Zeroed to begin with. After a turn: NULL, or what is beyond its bound, in text. */
const char *bounds_look(struct bounds *, const struct smcr *, char *text, size_t cap);
