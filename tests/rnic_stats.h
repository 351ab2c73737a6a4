/* A device's counters as its own struct of uint64_t, which has them in the order of rnic_ops.stats. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "rnic/rnic.h"

/* Whom the device has counted there last, "address:port", or "nobody". */
static inline const char *
rnic_last_refused(const struct rnic_dev *dev, const char *counter)
{
	static char text[ADDR_STR_MAX];
	struct sockaddr_storage from;

	return dev->ops->last_refused(dev, counter, &from) ? addr_format_port(&from, text, sizeof(text)) : "nobody";
}

static inline void
rnic_stats_of(const struct rnic_dev *dev, void *out, size_t len)
{
	struct rnic_stat rows[RNIC_STATS_MAX];

	if (dev->ops->stats(dev, rows) != len / sizeof(uint64_t))
		abort();
	for (size_t i = 0; i < len / sizeof(uint64_t); i++)
		memcpy((uint8_t *)out + i * sizeof(uint64_t), &rows[i].value, sizeof(uint64_t));
}
