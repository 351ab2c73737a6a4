/* Connections of a service by source: a hash table by address with an entry for every source that has a connection, so
 * it is bounded by their number. The source is the IPv4 host, the IPv6 network (hosts choose their lower 64 bits), or
 * the user of a UNIX socket client. Allocates only when the table grows. */
#pragma once

#include <stdint.h>

#include "daemon/net/net.h"

struct source {
	uint8_t addr[16];
	uint32_t cnt; /* 0: free */
};

/* Empty when zeroed except for its seed. */
struct source_count {
	struct source *tab;
	uint32_t cap; /* a power of two, or 0 */
	uint32_t used;
	uint64_t seed; /* random, so that clients cannot provoke collisions */
};

void source_count_fini(struct source_count *);
/* Counts a connection of the source. Returns their number, or 0: out of memory, not counted. */
uint32_t source_count_add(struct source_count *, const union net_addr *);
void source_count_remove(struct source_count *, const union net_addr *);
uint32_t source_count_of(const struct source_count *, const union net_addr *);
