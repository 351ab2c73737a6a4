/* Positions and credits of a send queue; see sendq.h. */
#include "rnic/sendq.h"

#include <errno.h>

/* Bits of sendq.starved: exhausted members of struct rnic_credits. */
enum { NO_WRS = 1 << 0, NO_SENDS = 1 << 1, NO_BYTES = 1 << 2 };

void
sendq_credits(const struct sendq *q, uint32_t used, size_t queued, struct rnic_credits *out)
{
	uint32_t wrs = q->depth - used, sends = q->peer_depth - q->sends_out;

	*out = (struct rnic_credits){
		.wrs = wrs,
		.sends = sends < wrs ? sends : wrs,
		.bytes = queued < q->bytes_max ? q->bytes_max - queued : 0,
	};
}

static unsigned
used_up(const struct sendq *q, const struct rnic_credits *c)
{
	/* Waits until half of the bytes is free, to avoid wake-ups for small amounts. */
	bool few = c->bytes == 0 || (q->starved & NO_BYTES && c->bytes < q->bytes_max / 2);

	return (c->wrs == 0 ? NO_WRS : 0u) | (c->sends == 0 ? NO_SENDS : 0u) | (few ? NO_BYTES : 0u);
}

int
sendq_take(struct sendq *q, struct rnic_credits *c, enum rnic_wr_op op, size_t len)
{
	bool send = op == RNIC_WR_SEND;

	if (c->wrs == 0 || (send && c->sends == 0)) {
		q->starved |= used_up(q, c);
		return -ENOBUFS;
	}
	q->head++;
	q->bytes += len;
	q->sends_out += send;
	c->wrs--;
	c->sends -= send || c->sends > c->wrs;
	c->bytes -= len < c->bytes ? len : c->bytes;
	q->starved |= used_up(q, c);
	return 0;
}

bool
sendq_has_more(struct sendq *q, struct rnic_qp *qp)
{
	struct rnic_credits c;

	if (q->starved == 0)
		return false;
	qp->dev->ops->credits(qp, &c);
	unsigned now = used_up(q, &c);
	bool more = (q->starved & ~now) != 0;

	q->starved = now;
	return more;
}
