/* Histogram bounds and counting; see histogram.h. */
#include "base/histogram.h"

const uint64_t histogram_times_us[HISTOGRAM_BOUNDS] = {
	100, 300, 1000, 3000, 10000, 30000, 100000, 300000, /* setup times below one second */
	1000000, 3000000, 10000000, 30000000,               /* timeouts */
	100000000, 1000000000, 10000000000, 100000000000,   /* lifetimes */
};

/* 64 bytes to 2 MiB */
const uint64_t histogram_sizes[HISTOGRAM_BOUNDS] = { 1u << 6, 1u << 7, 1u << 8, 1u << 9, 1u << 10, 1u << 11, 1u << 12,
	1u << 13, 1u << 14, 1u << 15, 1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21 };

void
histogram_add_time(struct histogram *h, int64_t ns)
{
	const uint64_t t = ns > 0 ? (uint64_t)ns : 0;
	unsigned i = 0;

	while (i < HISTOGRAM_BOUNDS && t > histogram_times_us[i] * 1000)
		i++;
	h->cnt[i]++;
	h->sum += t;
}

void
histogram_merge(struct histogram *sum, const struct histogram *one)
{
	for (unsigned i = 0; i <= HISTOGRAM_BOUNDS; i++)
		sum->cnt[i] += one->cnt[i];
	sum->sum += one->sum;
}
