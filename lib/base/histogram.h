/* Histograms with fixed common ranges, so that counts can be added; the last is for larger values. Zeroed: empty. */
#pragma once

#include <stdint.h>

#define HISTOGRAM_BOUNDS 16

struct histogram {
	uint64_t cnt[HISTOGRAM_BOUNDS + 1];
	uint64_t sum;
};

/* Upper bounds, inclusive: times in microseconds, sizes in bytes. */
extern const uint64_t histogram_times_us[HISTOGRAM_BOUNDS];
extern const uint64_t histogram_sizes[HISTOGRAM_BOUNDS];

/* A negative time counts as 0. The sum is in nanoseconds. */
void histogram_add_time(struct histogram *, int64_t ns);
/* Adds the counts of `one` to `sum`. */
void histogram_merge(struct histogram *sum, const struct histogram *one);

/* Runs once per RDMA write: bounds are powers of two from 64 bytes on, so no search is needed. */
static inline void
histogram_add_size(struct histogram *h, uint32_t len)
{
	unsigned i = len <= 64 ? 0 : 26 - (unsigned)__builtin_clz(len - 1);

	h->cnt[i < HISTOGRAM_BOUNDS ? i : HISTOGRAM_BOUNDS]++;
	h->sum += len;
}
