/* Rates by source; see handshake_rate.h. A place has the time until which its handshakes keep it busy, each for its share of a
 * second: they are too many while that is more than the burst ahead. */
#include "daemon/account/handshake_rate.h"

#include "base/hash.h"
#include "base/minmax.h"
#include "daemon/account/source_count.h"

#define NS_PER_S 1000000000LL

void
handshake_rate_init(struct handshake_rate *r, uint32_t secret)
{
	r->start = secret;
}

static int64_t *
busy_of(struct handshake_rate *r, const union net_addr *a)
{
	uint8_t source[SOURCE_LEN];

	source_of(a, source);
	return &r->busy_ns[hash_mix(r->start, source, sizeof(source)) % HANDSHAKE_PLACES];
}

bool
handshake_rate_take(struct handshake_rate *r, const union net_addr *a, uint32_t per_s, int64_t now_ns)
{
	int64_t *busy = busy_of(r, a);

	if (per_s == 0)
		return true;
	const int64_t next = max_i64(*busy, now_ns) + NS_PER_S / per_s;
	if (next - now_ns > HANDSHAKE_BURST_S * NS_PER_S)
		return false;
	*busy = next;
	return true;
}

void
handshake_rate_give(struct handshake_rate *r, const union net_addr *a, uint32_t per_s)
{
	if (per_s != 0)
		*busy_of(r, a) -= NS_PER_S / per_s;
}
