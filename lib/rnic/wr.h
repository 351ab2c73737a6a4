/*
 * What devices check of a work request before they take it, and how they show their counters. Pure.
 */
#pragma once

#include "rnic/rnic.h"

/* Does the region, of this protection domain, hold [ptr, ptr + len)? */
bool rnic_mr_holds(const struct rnic_mr *, const struct rnic_pd *, const uint8_t *ptr, size_t len);

/* 0 and the bytes of payload in *len, or -EINVAL. sge_max: pieces that the device gathers; inline_max: bytes that it
 * copies; an inline request may come in RNIC_SGE_MAX pieces, of any memory. */
int rnic_wr_check(
    const struct rnic_send_wr *, const struct rnic_pd *, unsigned sge_max, size_t inline_max, size_t *len);

/* For rnic_ops.stats: counters, a struct of cnt uint64_t, by these names into out; returns cnt. */
unsigned rnic_stats_fill(const char *const *names, unsigned cnt, const void *counters, struct rnic_stat *out);
