/* Soft iWARP: connections without owner that have data to send; see siw_int.h. Bounded in number and time, unknown
 * peers apart from queue pairs. The oldest end early, otherwise an unknown peer that does not read would keep all
 * places. */
#include "rnic/siw/siw_int.h"

#define LINGER_MAX 64 /* of each kind */
#define LINGER_MS 2000

static void
siw_linger_end(struct siw_linger *l)
{
	siw_linger_stop(l);
	l->over(l);
}

static void
linger_timeout(struct timer *t)
{
	siw_linger_end(CONTAINER_OF(t, struct siw_linger, timer));
}

void
siw_linger_init(struct siw_linger *l, struct siw_dev *dev, void (*over)(struct siw_linger *))
{
	l->dev = dev;
	l->over = over;
	timer_init(&l->timer, linger_timeout);
	list_init(&l->node);
}

void
siw_linger_start(struct siw_linger *l, enum siw_linger_kind kind)
{
	struct siw_dev *dev = l->dev;

	if (dev->linger_cnt[kind] >= LINGER_MAX) {
		dev->stats.linger_refused++;
		siw_linger_end(LIST_FIRST(struct siw_linger, &dev->lingering[kind], node));
	}
	l->kind = kind;
	list_push(&dev->lingering[kind], &l->node);
	dev->linger_cnt[kind]++;
	siw_arm(dev, &l->timer, LINGER_MS);
}

void
siw_linger_stop(struct siw_linger *l)
{
	timer_cancel(&l->dev->timers, &l->timer);
	if (list_empty(&l->node))
		return;
	list_remove(&l->node);
	l->dev->linger_cnt[l->kind]--;
}

void
siw_linger_end_all(struct siw_dev *dev)
{
	for (unsigned kind = 0; kind < SIW_LINGER_KINDS; kind++)
		LIST_EACH(struct siw_linger, l, &dev->lingering[kind], node)
			siw_linger_end(l);
}
