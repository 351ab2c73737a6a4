/* Full TLS handshakes of each source, at most so many a second after a burst (tls.handshakes). A table of fixed size: sources
 * that share a place share its rate. Of one worker. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/net/net.h"

#define HANDSHAKE_BURST_S 20 /* of a source that had none: as many as in this time */
#define HANDSHAKE_PLACES 1024

struct handshake_rate {
	uint32_t start; /* of the hash; secret */
	int64_t busy_ns[HANDSHAKE_PLACES];
};

/* The rest is zero. */
void handshake_rate_init(struct handshake_rate *, uint32_t secret);
/* One more of this source. False: too many. per_s: 0 is no limit. */
bool handshake_rate_take(struct handshake_rate *, const union net_addr *, uint32_t per_s, int64_t now_ns);
/* The last one of this source was none. */
void handshake_rate_give(struct handshake_rate *, const union net_addr *, uint32_t per_s);
