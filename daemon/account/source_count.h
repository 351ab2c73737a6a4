/*
 * The number of connections of each source at a service: a hash table by address,
 * with an entry for every source that has one, so it is bounded by the
 * connections themselves. IPv6 hosts choose their lower 64 bits as they like:
 * there the source is the network. Of a client on a UNIX socket it is the user.
 * No allocation but when the table grows.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/net/net.h"

struct source {
	uint8_t addr[16];
	uint32_t cnt; /* 0: a free place */
};

/* Zeroed but for its seed it is empty. */
struct source_count {
	struct source *tab;
	uint32_t cap; /* a power of two, or 0 */
	uint32_t used;
	uint64_t seed; /* so that nobody can choose addresses that meet in one place */
};

void source_count_fini(struct source_count *);
/* One more connection of the source. Returns their number now, or 0 when memory is out and it was not counted. */
uint32_t source_count_add(struct source_count *, const union net_addr *);
/* One that was counted has ended. */
void source_count_remove(struct source_count *, const union net_addr *);
uint32_t source_count_of(const struct source_count *, const union net_addr *);
