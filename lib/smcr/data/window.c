/* Sizes of elements and send rings; see window.h. */
#include "smcr/data/window.h"

#include "base/minmax.h"
#include "smcr/data/rmb.h"
#include "smcr/state/conn.h"
#include "smcr/state/engine.h"

#define NEAR (512u * 1024) /* window of a path without notable delay: a larger one leaves the caches */
#define RATE 100           /* bytes per microsecond of one connection over a path with delay */
#define RATE_MAX 2500      /* and of the fastest one over any path */
#define NS_PER_US 1000
#define RING_MAX (2 * SMCR_ELEM_MAX)
#define FIRST_CNT 8 /* elements of a group's first RMB of a size; each further one has four times as many */
#define PART 4      /* fraction of the remaining memory for the next allocation */

bool
window_is_pinned(const struct lgr *lgr)
{
	return LGR_ANY_LINK(l, lgr, l->state != LINK_FREE && l->info.pins);
}

/* The shortest round trip of the group's links; -1: not known. */
static int64_t
window_path_rtt(const struct lgr *lgr)
{
	int64_t best = -1;

	LGR_EACH_LINK(l, lgr) {
		if (l->state != LINK_ACTIVE || l->dev->ops->path_rtt == NULL)
			continue;
		int64_t rtt = l->dev->ops->path_rtt(l->qp);
		if (rtt >= 0 && (best < 0 || rtt < best))
			best = rtt;
	}
	return best;
}

bool
window_is_far(const struct lgr *lgr)
{
	return !lgr->dialect.foreign && window_path_rtt(lgr) >= RNIC_FAR_NS;
}

/* While a window is in transit and its update returns, the next one is filled: twice the path's capacity. */
static uint32_t
size_for_path(int64_t rtt_ns, uint32_t rate)
{
	uint32_t size = NEAR;

	while (size < SMCR_ELEM_MAX && size / 2 / rate < rtt_ns / NS_PER_US)
		size *= 2;
	return size;
}

/* Remainder of a limit; of three quarters of it for sizes that are not small: the rest is reserved for latecomers. */
static uint64_t
left(uint64_t max, uint64_t used, bool small)
{
	max = small ? max : max / 4 * 3;
	return max > used ? max - used : 0;
}

static uint64_t
window_room(const struct lgr *lgr, uint64_t max, uint64_t used, bool small)
{
	return min_u64(
	    left(max, used, small), left(lgr->eng->cfg.group_bytes_max, lgr->rmb_bytes + lgr->sndbuf_bytes, small));
}

uint64_t
window_elem_room(const struct lgr *lgr, bool small)
{
	return window_room(lgr, lgr->eng->cfg.rmb_bytes_max, lgr->eng->rmb_bytes, small);
}

uint64_t
window_ring_room(const struct lgr *lgr)
{
	return window_room(lgr, lgr->eng->cfg.sndbuf_bytes_max, lgr->eng->sndbuf_bytes, false);
}

/* Regardless of memory. */
static uint32_t
fitting_elem_size(const struct lgr *lgr, const struct smcr_open *want)
{
	uint32_t need = want->rmb_size_hint;

	/* Without starting over, small messages walk through all pages: the size is what similar connections needed. */
	if (window_is_pinned(lgr) || !lgr->dialect.starts_over)
		return max_u32(WINDOW_SMALL, need);
	int64_t rtt_ns = window_path_rtt(lgr);
	/* The first connection precedes the link. */
	if (rtt_ns < 0 && want->rtt_ns > 0)
		rtt_ns = want->rtt_ns;
	/* Readers wait for busy processors as for a path. A window beyond the path only leaves the caches. */
	if (rtt_ns >= 0)
		need = min_u32(need, size_for_path(rtt_ns, RATE_MAX));
	return max_u32(size_for_path(rtt_ns, RATE), need);
}

uint32_t
window_next_cnt(const struct lgr *lgr, uint32_t elem_size)
{
	uint32_t cnt = FIRST_CNT, usable = 0, most = lgr->eng->cfg.rmb_elems;

	LIST_EACH(const struct rmb, rmb, &lgr->rmbs, node) {
		if (rmb->elem_size != elem_size || rmb->state == RMB_DELETING)
			continue;
		usable += rmb->elem_cnt - rmb->quarantined;
		cnt = cnt < SMCR_CONNS_PER_GROUP ? cnt * 4 : cnt;
	}
	/* A group needs no more elements than connections. */
	if (usable < SMCR_CONNS_PER_GROUP)
		most = min_u32(most, SMCR_CONNS_PER_GROUP - usable);
	cnt = (uint32_t)min_u64(min_u32(cnt, most), window_elem_room(lgr, true) / elem_size);
	return cnt > 0 ? cnt : 1;
}

uint32_t
window_elem_size(const struct lgr *lgr, const struct smcr_open *want, bool *less)
{
	uint32_t most = lgr->dialect.foreign ? SMCR_ELEM_RFC_MAX : SMCR_ELEM_MAX;
	uint32_t fits = min_u32(want->elem_size != 0 ? want->elem_size : fitting_elem_size(lgr, want), most);
	uint32_t size = fits;

	while (want->elem_size == 0 && size > WINDOW_SMALL &&
	    (uint64_t)size * window_next_cnt(lgr, size) > window_elem_room(lgr, false) / PART)
		size /= 2;
	if (less != NULL)
		*less = size < fits;
	return size;
}

uint32_t
window_ring_size(const struct smcr_conn *conn)
{
	uint32_t size = conn->eng->cfg.sndbuf_size;

	/* The peer's window, and data of the program meanwhile. */
	return size != 0 ? size : min_u32(max_u32(2 * conn->peer_elem_size, WINDOW_SMALL), RING_MAX);
}

uint32_t
window_ring_fits(const struct lgr *lgr, uint32_t size)
{
	while (lgr->eng->cfg.sndbuf_size == 0 && size > WINDOW_SMALL && size > window_ring_room(lgr) / PART)
		size /= 2;
	return size;
}
