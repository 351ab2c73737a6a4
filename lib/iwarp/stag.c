/* STag table; see stag.h. */
#include "iwarp/stag.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int
stag_table_init(struct stag_table *t, uint32_t buckets)
{
	assert(buckets > 0 && (buckets & (buckets - 1)) == 0);
	*t = (struct stag_table){ .mask = buckets - 1 };
	t->buckets = calloc(buckets, sizeof(struct stag_region *));
	return t->buckets == NULL ? -ENOMEM : 0;
}

void
stag_table_fini(struct stag_table *t)
{
	assert(t->cnt == 0);
	free(t->buckets);
}

struct stag_region *
stag_find(const struct stag_table *t, uint32_t stag)
{
	struct stag_region *r = t->buckets[stag & t->mask];

	while (r != NULL && r->stag != stag)
		r = r->next;
	return r;
}

void
stag_add(struct stag_table *t, struct stag_region *r, struct rng *rng)
{
	uint32_t stag;

	/* 0 means "none"; 1 is used in RTR messages, where it is not checked. */
	do
		stag = (uint32_t)rng_u64(rng);
	while (stag <= 1 || stag_find(t, stag) != NULL);
	/* Page-aligned, away from both ends of the address space so that no range wraps. */
	r->base = (rng_u64(rng) >> 1 & ~(uint64_t)0xfff) + 0x1000;
	r->stag = stag;
	r->next = t->buckets[stag & t->mask];
	t->buckets[stag & t->mask] = r;
	t->cnt++;
}

void
stag_remove(struct stag_table *t, struct stag_region *r)
{
	struct stag_region **at;

	if (r->stag == 0)
		return;
	for (at = &t->buckets[r->stag & t->mask]; *at != r; at = &(*at)->next)
		assert(*at != NULL);
	*at = r->next;
	r->stag = 0;
	t->cnt--;
}

enum stag_verdict
stag_check(const struct stag_table *t, const void *pd, unsigned access, uint32_t stag, uint64_t to, uint64_t len,
    const uint8_t *from, uint8_t **at)
{
	const struct stag_region *r = stag_find(t, stag);

	if (r == NULL)
		return STAG_INVALID;
	if (r->pd != pd)
		return STAG_WRONG_PD;
	if ((~r->access & access & ~(unsigned)STAG_REST) != 0)
		return STAG_NO_ACCESS;
	if (to + len < to)
		return STAG_WRAP;
	if (to < r->base || to - r->base > r->len || len > r->len - (to - r->base))
		return STAG_BOUNDS;
	uint8_t *place = r->buf + (to - r->base);
	if ((access & STAG_WRITE) != 0 && len > 0 && r->refuses != NULL &&
	    r->refuses(r, (size_t)(to - r->base), len, (access & STAG_REST) != 0, from, &place))
		return STAG_REFUSED;
	*at = place;
	return STAG_OK;
}
