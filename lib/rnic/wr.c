/* Checks of work requests; see wr.h. */
#include "rnic/wr.h"

#include <errno.h>

bool
rnic_mr_holds(const struct rnic_mr *mr, const struct rnic_pd *pd, const uint8_t *ptr, size_t len)
{
	if (mr == NULL || mr->pd != pd)
		return false;
	uintptr_t base = (uintptr_t)mr->buf, at = (uintptr_t)ptr;
	return at >= base && at - base <= mr->len && len <= mr->len - (at - base);
}

int
rnic_wr_check(const struct rnic_send_wr *wr, const struct rnic_pd *pd, unsigned sge_max, size_t inline_max, size_t *len)
{
	bool copied = (wr->flags & RNIC_INLINE) != 0;
	size_t sum = 0;

	if ((wr->op != RNIC_WR_SEND && wr->op != RNIC_WR_WRITE) || wr->sge_cnt > RNIC_SGE_MAX ||
	    (!copied && wr->sge_cnt > sge_max))
		return -EINVAL;
	for (unsigned i = 0; i < wr->sge_cnt; i++) {
		const struct rnic_sge *s = &wr->sge[i];

		if (!copied && !rnic_mr_holds(s->mr, pd, s->ptr, s->len))
			return -EINVAL;
		sum += s->len;
	}
	if (sum > INT32_MAX || (copied && sum > inline_max))
		return -EINVAL;
	*len = sum;
	return 0;
}

unsigned
rnic_stats_fill(const char *const *names, unsigned cnt, const void *counters, struct rnic_stat *out)
{
	const uint64_t *values = counters;

	for (unsigned i = 0; i < cnt; i++)
		out[i] = (struct rnic_stat){ .name = names[i], .value = values[i] };
	return cnt;
}
