/* Checks of work requests common to devices, and reporting of their counters. Pure. */
#pragma once

#include <string.h>

#include "rnic/rnic.h"

/* The region belongs to this protection domain and contains [ptr, ptr + len). */
bool rnic_mr_holds(const struct rnic_mr *, const struct rnic_pd *, const uint8_t *ptr, size_t len);

/* 0 and the payload length in *len, or -EINVAL. sge_max: pieces that the device gathers; inline_max: bytes that it
 * copies. An inline request may have RNIC_SGE_MAX pieces in any memory. */
int rnic_wr_check(
    const struct rnic_send_wr *, const struct rnic_pd *, unsigned sge_max, size_t inline_max, size_t *len);

/* Copies the pieces of an inline request to `to`; the length. */
static inline uint32_t
rnic_wr_copy(const struct rnic_send_wr *wr, uint8_t *to)
{
	uint32_t len = 0;

	for (unsigned i = 0; i < wr->sge_cnt; len += wr->sge[i++].len)
		if (wr->sge[i].len > 0)
			memcpy(to + len, wr->sge[i].ptr, wr->sge[i].len);
	return len;
}

/* For rnic_ops.stats: fills out from counters, a struct of cnt uint64_t, with these names; returns cnt. */
unsigned rnic_stats_fill(const char *const *names, unsigned cnt, const void *counters, struct rnic_stat *out);
