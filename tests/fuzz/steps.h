/*
 * Inputs that are programs: a header of a few bytes, then steps of five bytes each. What an operand means is the
 * target's business, always modulo what there is, so that every input is a program and a step may be moved, doubled or
 * taken out without changing what the others are. steps_mutate.c does just that for libFuzzer.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STEPS_HEADER 4
#define STEP_LEN 5
#define STEPS_MAX 160 /* what is behind them is not run */

struct step {
	uint8_t op, who, a, b, c;
};

struct steps {
	const uint8_t *p;
	size_t left; /* steps */
};

/* False when there is not even a header. */
bool steps_begin(struct steps *, const uint8_t *data, size_t len, uint8_t header[STEPS_HEADER]);
bool steps_next(struct steps *, struct step *);
/* The bytes of up to n further steps, as they are: how many bytes. They are not run. */
size_t steps_raw(struct steps *, unsigned n, const uint8_t **);
