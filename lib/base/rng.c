/* Random numbers; see rng.h. */
#include "base/rng.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

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

void
rng_init_kernel(struct rng *r)
{
	*r = (struct rng){ .fill = kernel_fill };
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
