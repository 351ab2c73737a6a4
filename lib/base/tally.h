/* Counts by key in bounded memory, for keys that a peer may choose (reason codes of Declines). The first TALLY_KEYS
 * keys get a count each, all others share one. Embedded in its owner; zeroed memory is an empty tally. */
#pragma once

#include <stdint.h>

#define TALLY_KEYS 64

struct tally_entry {
	uint32_t key;
	uint64_t cnt;
};

struct tally {
	struct tally_entry e[TALLY_KEYS];
	unsigned used;
	uint64_t other_cnt;
};

void tally_count(struct tally *t, uint32_t key);
void tally_merge(struct tally *t, const struct tally *from);
/* The largest counts, at most max, in descending order, equal counts by key; returns their number. */
unsigned tally_top(const struct tally *t, struct tally_entry *out, unsigned max);
