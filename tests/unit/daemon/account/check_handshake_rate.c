#include "daemon/account/handshake_rate.h"

#include <arpa/inet.h>

#include "unit.h"

#define S 1000000000LL

static struct handshake_rate rate;

static union net_addr
host(uint32_t addr)
{
	return (union net_addr){ .in4 = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(addr) } };
}

/* How many at this time, until one is too many. */
static unsigned
take_all(uint32_t addr, uint32_t per_s, int64_t now_ns)
{
	const union net_addr from = host(addr);
	unsigned cnt = 0;

	while (cnt < 100000 && handshake_rate_take(&rate, &from, per_s, now_ns))
		cnt++;
	return cnt;
}

START_TEST(a_burst_then_so_many_a_second)
{
	int64_t now = 1000 * S;

	handshake_rate_init(&rate, 4711);
	ck_assert_uint_eq(take_all(1, 50, now), 50 * HANDSHAKE_BURST_S);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(take_all(1, 50, now += S), 50);
	ck_assert_uint_eq(take_all(1, 50, now + 1), 0);
	/* Once quiet it has its burst again, and no more. */
	ck_assert_uint_eq(take_all(1, 50, now + 1000 * S), 50 * HANDSHAKE_BURST_S);
}

/* Some share a place: few, and which depends on the secret. */
START_TEST(another_source_has_its_own)
{
	unsigned hit = 0;

	handshake_rate_init(&rate, 4711);
	take_all(1, 1, S);
	for (uint32_t a = 2; a < 102; a++) {
		const union net_addr from = host(a);

		hit += !handshake_rate_take(&rate, &from, 1, S);
	}
	ck_assert_uint_le(hit, 2);
}

START_TEST(without_a_limit_none_counts)
{
	const union net_addr from = host(1);

	handshake_rate_init(&rate, 4711);
	ck_assert_uint_eq(take_all(1, 0, S), 100000);
	handshake_rate_give(&rate, &from, 0);
	ck_assert_uint_eq(take_all(1, 1, S), HANDSHAKE_BURST_S);
}

START_TEST(what_was_none_is_given_back)
{
	const union net_addr from = host(1);

	handshake_rate_init(&rate, 4711);
	take_all(1, 2, S);
	for (unsigned i = 0; i < 1000; i++) {
		ck_assert(!handshake_rate_take(&rate, &from, 2, S));
		handshake_rate_give(&rate, &from, 2);
		ck_assert(handshake_rate_take(&rate, &from, 2, S));
	}
}
