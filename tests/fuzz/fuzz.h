/* What every fuzz target shares. A target is one file with one function, as libFuzzer wants it; tests/fuzz/local.mk
 * says how to add one. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* The target: nothing it is given may crash it; returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
/* How many mutations replay.c runs: a slow target says less than its default. */
unsigned fuzz_mutations(void);

/* A condition that must hold for every input; not an assert, since it stays on with NDEBUG. */
#define FUZZ_CHECK(cond)                                                                          \
	do {                                                                                      \
		if (!(cond)) {                                                                    \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #cond); \
			abort();                                                                  \
		}                                                                                 \
	} while (0)
