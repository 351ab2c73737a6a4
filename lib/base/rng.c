/* Random numbers; see rng.h. */
#include "base/rng.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/minmax.h"

static void
kernel_fill(struct rng *r, void *dst, size_t len)
{
	uint8_t *p = dst;

	(void)r;
	while (len > 0) {
		ssize_t n = getrandom(p, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			abort(); /* predictable keys would be worse */
		p += n;
		len -= (size_t)n;
	}
}

/* splitmix64 (public domain algorithm by Sebastiano Vigna). */
static void
seeded_fill(struct rng *r, void *dst, size_t len)
{
	for (uint8_t *p = dst; len > 0;) {
		uint64_t z = r->state += 0x9e3779b97f4a7c15u;
		size_t n = min_size(len, sizeof(z));

		z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
		z = (z ^ z >> 27) * 0x94d049bb133111ebu;
		z ^= z >> 31;
		memcpy(p, &z, n);
		p += n;
		len -= n;
	}
}

void
rng_init_kernel(struct rng *r)
{
	*r = (struct rng){ .fill = kernel_fill };
}

void
rng_init_seeded(struct rng *r, uint64_t seed)
{
	*r = (struct rng){ .fill = seeded_fill, .state = seed };
}

uint64_t
rng_u64(struct rng *r)
{
	uint64_t v;

	r->fill(r, &v, sizeof(v));
	return v;
}

uint32_t
rng_below(struct rng *r, uint32_t n)
{
	return (uint32_t)((rng_u64(r) >> 32) * n >> 32);
}
