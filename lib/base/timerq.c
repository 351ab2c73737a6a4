/* Binary heap of timers; see timerq.h. */
#include "base/timerq.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

void
timerq_init(struct timerq *q)
{
	*q = (struct timerq){ 0 };
}

void
timerq_fini(struct timerq *q)
{
	free(q->heap);
	*q = (struct timerq){ 0 };
}

int
timerq_reserve(struct timerq *q, size_t n)
{
	size_t want = q->reserved + n;

	if (want > q->cap) {
		size_t cap = q->cap * 2 > want ? q->cap * 2 : want + 16;
		struct timer **heap = realloc(q->heap, cap * sizeof(struct timer *));

		if (heap == NULL)
			return -ENOMEM;
		q->heap = heap;
		q->cap = cap;
	}
	q->reserved = want;
	return 0;
}

void
timerq_unreserve(struct timerq *q, size_t n)
{
	assert(q->reserved >= n && q->len <= q->reserved - n);
	q->reserved -= n;
}

void
timer_init(struct timer *t, void (*fire)(struct timer *))
{
	*t = (struct timer){ .fire = fire };
}

static void
timerq_place(struct timerq *q, size_t i, struct timer *t)
{
	q->heap[i] = t;
	t->pos = i + 1;
}

static void
sift_up(struct timerq *q, size_t i, struct timer *t)
{
	while (i > 0 && q->heap[(i - 1) / 2]->at_ns > t->at_ns) {
		timerq_place(q, i, q->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	timerq_place(q, i, t);
}

static void
sift_down(struct timerq *q, size_t i, struct timer *t)
{
	for (;;) {
		size_t kid = 2 * i + 1;

		if (kid + 1 < q->len && q->heap[kid + 1]->at_ns < q->heap[kid]->at_ns)
			kid++;
		if (kid >= q->len || q->heap[kid]->at_ns >= t->at_ns)
			break;
		timerq_place(q, i, q->heap[kid]);
		i = kid;
	}
	timerq_place(q, i, t);
}

void
timer_cancel(struct timerq *q, struct timer *t)
{
	size_t i;
	struct timer *last;

	if (t->pos == 0)
		return;
	i = t->pos - 1;
	t->pos = 0;
	last = q->heap[--q->len];
	if (last == t)
		return;
	if (i > 0 && q->heap[(i - 1) / 2]->at_ns > last->at_ns)
		sift_up(q, i, last);
	else
		sift_down(q, i, last);
}

void
timer_arm(struct timerq *q, struct timer *t, int64_t at_ns)
{
	timer_cancel(q, t);
	assert(q->len < q->reserved);
	t->at_ns = at_ns;
	q->len++;
	sift_up(q, q->len - 1, t);
}

int64_t
timerq_next(const struct timerq *q)
{
	return q->len == 0 ? TIMERQ_NEVER : q->heap[0]->at_ns;
}

void
timerq_run(struct timerq *q, int64_t now_ns)
{
	/* A timer that re-arms itself in the past must not hold the loop. */
	for (size_t budget = q->len; budget > 0 && q->len > 0; budget--) {
		struct timer *t = q->heap[0];

		if (t->at_ns > now_ns)
			return;
		timer_cancel(q, t);
		t->fire(t);
	}
}
