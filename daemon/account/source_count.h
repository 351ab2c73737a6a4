/* Connections of a service by source: a balanced tree (tsearch(3)) with an entry for every source that has a
 * connection, so it is bounded by their number. The source is the IPv4 host, the IPv6 network (hosts choose their lower
 * 64 bits), or the user of a UNIX socket client. */
#pragma once

#include <stdint.h>

#include "daemon/net/net.h"

#define SOURCE_LEN 16
/* What identifies the source. */
void source_of(const union net_addr *, uint8_t source[SOURCE_LEN]);

/* Empty when zeroed. */
struct source_count {
	void *tree;
};

void source_count_fini(struct source_count *);
/* Counts a connection of the source. Returns their number, or 0: out of memory, not counted. */
uint32_t source_count_add(struct source_count *, const union net_addr *);
void source_count_remove(struct source_count *, const union net_addr *);
uint32_t source_count_of(const struct source_count *, const union net_addr *);
