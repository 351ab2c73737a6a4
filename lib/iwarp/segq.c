/* Send queue with message boundaries; see segq.h. */
#include "iwarp/segq.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/minmax.h"
#include "base/pages.h"

int
segq_init(struct segq *q, uint32_t ring_size)
{
	assert(ring_size >= 2 * SEGQ_COPY_MAX);
	*q = (struct segq){ .ring = { .size = ring_size } };
	q->ring.mem = pages_alloc(ring_size);
	return q->ring.mem == NULL ? -ENOMEM : 0;
}

void
segq_fini(struct segq *q)
{
	pages_free(q->ring.mem, q->ring.size);
}

void
segq_rest(struct segq *q)
{
	if (segq_empty(q))
		pages_rest(&q->ring.used, q->ring.mem);
}

bool
segq_room(const struct segq *q, size_t len)
{
	return q->head - q->tail < SEGQ_MSGS && (len > SEGQ_COPY_MAX || copyring_room(&q->ring, len));
}

void
segq_put(struct segq *q, const struct ddp_hdr *h, const struct txq_payload *p)
{
	struct segq_msg *m = &q->msgs[q->head++ % SEGQ_MSGS];

	assert(q->head - q->tail <= SEGQ_MSGS);
	assert(p->cnt <= TXQ_PIECES_MAX);
	*m = (struct segq_msg){ .hdr = *h, .payload = *p };
	q->bytes += p->len;
	if (p->len <= SEGQ_COPY_MAX) {
		uint8_t *at = copyring_take(&q->ring, p->len);

		(void)txq_payload_copy(p, at);
		m->payload = (struct txq_payload){ .cnt = 1, .len = p->len, .v = { { at, p->len } } };
		m->in_ring = true;
		m->ring_end = q->ring.head;
	}
}

/* -- next message -- */

unsigned
segq_peek(struct segq *q, uint16_t number, size_t max, struct iovec iov[SEGQ_IOV_MAX])
{
	const struct segq_msg *m = &q->msgs[q->tail % SEGQ_MSGS];
	size_t front_len = SEGQ_SSN_LEN, left = m->payload.len - q->off;
	struct ddp_hdr h = m->hdr; /* of the part */

	assert(max >= SEGQ_MESSAGE_MIN);
	if (segq_empty(q))
		return 0;
	front_len += m->hdr.tagged ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN;
	q->part = (uint32_t)min_size(left, max - front_len);
	q->peeked = true;
	be16_put(q->front, number);
	if (h.tagged)
		h.to += q->off;
	else
		h.mo += q->off;
	h.last = h.last && q->off + q->part == m->payload.len;
	(void)ddp_encode(&h, q->front + SEGQ_SSN_LEN);
	iov[0] = (struct iovec){ .iov_base = q->front, .iov_len = front_len };
	return 1 + txq_pieces(m->payload.v, m->payload.cnt, q->off, q->part, iov + 1);
}

void
segq_sent(struct segq *q)
{
	const struct segq_msg *m = &q->msgs[q->tail % SEGQ_MSGS];

	assert(q->peeked);
	q->peeked = false;
	q->bytes -= q->part;
	q->off += q->part;
	if (q->off < m->payload.len)
		return;
	q->off = 0;
	q->tail++;
	if (m->in_ring)
		q->ring.tail = m->ring_end;
	if (segq_empty(q))
		copyring_clear(&q->ring);
}

void
segq_clear(struct segq *q)
{
	q->tail = q->head;
	q->off = 0;
	q->bytes = 0;
	q->peeked = false;
	copyring_clear(&q->ring);
}
