/* Send rings; see sndbuf.h. Allocated in slabs of one size, the first one small; kept until the group ends. */
#include "smcr/data/sndbuf.h"

#include <errno.h>
#include <stdlib.h>

#include "base/minmax.h"
#include "base/pages.h"
#include "smcr/data/window.h"
#include "smcr/state/conn.h"
#include "smcr/state/engine.h"

#define SLAB_FIRST 4 /* rings of the first slab; each further one has twice as many */
#define SLAB_MAX 64

struct sndbuf_slab {
	struct list_node node;
	uint8_t *buf;
	size_t len;
	struct rnic_mr *mr[LINK_SLOTS];
	uint32_t cnt, size;
	struct sndbuf ring[];
};

/* Free list for rings of this size: one per power of two, from 1 KiB. */
static struct list_node *
free_list(struct lgr *lgr, uint32_t size)
{
	unsigned i = 0;

	while (i < SNDBUF_SIZES - 1 && size >> (i + 11) != 0)
		i++;
	return &lgr->sndbuf_free[i];
}

void
sndbuf_init(struct lgr *lgr)
{
	list_init(&lgr->sndbuf_slabs);
	for (unsigned i = 0; i < SNDBUF_SIZES; i++)
		list_init(&lgr->sndbuf_free[i]);
}

static int
slab_register(struct sndbuf_slab *s, struct link *link)
{
	if (s->mr[link->slot] != NULL)
		return 0;
	return link->dev->ops->mr_reg(link->pd, s->buf, s->len, RNIC_ACCESS_LOCAL, &s->mr[link->slot]);
}

static void
slab_deregister(struct sndbuf_slab *s, struct link *link)
{
	if (s->mr[link->slot] == NULL)
		return;
	link->dev->ops->mr_dereg(s->mr[link->slot]);
	s->mr[link->slot] = NULL;
}

/* Frees a maybe incomplete slab. */
static void
slab_free(struct lgr *lgr, struct sndbuf_slab *s)
{
	LGR_EACH_LINK(l, lgr)
		slab_deregister(s, l);
	pages_free(s->buf, s->len);
	free(s);
}

static int
slab_new(struct lgr *lgr, uint32_t size)
{
	uint32_t most = lgr->eng->cfg.conns_per_group, cnt = SLAB_FIRST;

	LIST_EACH(const struct sndbuf_slab, s, &lgr->sndbuf_slabs, node)
		cnt = cnt < SLAB_MAX && s->size == size ? cnt * 2 : cnt;
	/* At most as many rings as connections: those of aborted connections may wait for the device in any number. */
	cnt = min_u32(cnt, most > lgr->sndbuf_cnt ? most - lgr->sndbuf_cnt : 0);
	uint32_t affordable = size > WINDOW_SMALL ? (uint32_t)min_u64(cnt, window_ring_room(lgr) / size) : cnt;
	if (affordable == 0 && cnt > 0)
		lgr->eng->ctr.refused_send_memory++;
	struct sndbuf_slab *s = affordable > 0 ? calloc(1, sizeof(*s) + affordable * sizeof(s->ring[0])) : NULL;

	if (s == NULL)
		return -ENOMEM;
	s->cnt = affordable;
	s->size = size;
	s->len = (size_t)s->cnt * size;
	s->buf = pages_alloc(s->len);
	int err = s->buf != NULL ? 0 : -ENOMEM;
	LGR_EACH_LINK(l, lgr)
		if (err == 0 && !link_has_ended(l))
			err = slab_register(s, l);
	if (err < 0) {
		slab_free(lgr, s);
		return err;
	}
	list_push(&lgr->sndbuf_slabs, &s->node);
	lgr->sndbuf_bytes += s->len;
	lgr->eng->sndbuf_bytes += s->len;
	lgr->sndbuf_cnt += s->cnt;
	for (uint32_t i = s->cnt; i-- > 0;) {
		s->ring[i] = (struct sndbuf){ .mr = s->mr, .buf = s->buf + (size_t)i * size, .size = size };
		list_push_front(free_list(lgr, size), &s->ring[i].node);
	}
	return 0;
}

/* The first ring, if the device has finished with it. */
static struct sndbuf *
first_free(const struct list_node *list)
{
	struct sndbuf *sb = LIST_FIRST(struct sndbuf, list, node);

	return sb != NULL && sb->parked_on != NULL && sb->parked_on->wr_tail <= sb->parked_until ? NULL : sb;
}

static struct sndbuf *
pop_free(struct list_node *list)
{
	struct sndbuf *sb = first_free(list);

	if (sb == NULL)
		return NULL;
	list_remove(&sb->node);
	sb->parked_on = NULL;
	sb->rests = false;
	return sb;
}

struct sndbuf *
sndbuf_get(struct lgr *lgr, uint32_t size)
{
	const uint32_t fits = window_ring_fits(lgr, size);
	struct sndbuf *sb = NULL;

	for (uint32_t i = size; sb == NULL && i >= fits; i /= 2)
		sb = pop_free(free_list(lgr, i));
	if (sb == NULL && slab_new(lgr, fits) == 0)
		sb = pop_free(free_list(lgr, fits));
	for (unsigned i = SNDBUF_SIZES; sb == NULL && i-- > 0;)
		sb = pop_free(&lgr->sndbuf_free[i]);
	if (sb == NULL && size > WINDOW_SMALL && slab_new(lgr, WINDOW_SMALL) == 0)
		sb = pop_free(free_list(lgr, WINDOW_SMALL));
	if (sb != NULL)
		lgr->sndbuf_lent++;
	return sb;
}

bool
sndbuf_has_larger(const struct lgr *lgr, uint32_t than, uint32_t size)
{
	for (unsigned i = 0; i < SNDBUF_SIZES; i++) {
		const struct sndbuf *sb = first_free(&lgr->sndbuf_free[i]);

		if (sb != NULL && sb->size > than && sb->size <= size)
			return true;
	}
	return lgr->sndbuf_cnt < lgr->eng->cfg.conns_per_group && window_ring_fits(lgr, size) > than;
}

void
sndbuf_give_back(struct lgr *lgr)
{
	if (window_is_pinned(lgr))
		return;
	for (unsigned i = 0; i < SNDBUF_SIZES; i++)
		LIST_EACH(struct sndbuf, sb, &lgr->sndbuf_free[i], node) {
			if (sb->rests && sb->parked_on == NULL) {
				pages_give_back(sb->buf, sb->dirty);
				sb->dirty = 0;
			}
			sb->rests = true;
		}
}

/* All of them: the first may have nothing to send. */
void
sndbuf_wake(struct lgr *lgr)
{
	if (!lgr->sndbuf_waiting)
		return;
	LIST_EACH(struct smcr_conn, conn, &lgr->conns, lgr_node) {
		if (!conn->tx.ring_short)
			continue;
		conn->tx.ring_short = conn->tx.full = false;
		conn_raise(conn, SMCR_EV_WRITABLE);
	}
	lgr->sndbuf_waiting = false;
}

void
sndbuf_put(struct lgr *lgr, struct sndbuf *sb, const struct link *link, uint64_t wr_id)
{
	lgr->sndbuf_lent--;
	sb->parked_on = link;
	sb->parked_until = wr_id;
	if (link != NULL) {
		list_push(free_list(lgr, sb->size), &sb->node);
	} else {
		list_push_front(free_list(lgr, sb->size), &sb->node);
		sndbuf_wake(lgr);
	}
}

int
sndbuf_register_all(struct lgr *lgr, struct link *link)
{
	int err = 0;

	LIST_EACH(struct sndbuf_slab, s, &lgr->sndbuf_slabs, node)
		if (err == 0)
			err = slab_register(s, link);
	return err;
}

void
sndbuf_deregister_all(struct lgr *lgr, struct link *link)
{
	LIST_EACH(struct sndbuf_slab, s, &lgr->sndbuf_slabs, node) {
		slab_deregister(s, link);
		for (uint32_t i = 0; i < s->cnt; i++)
			if (s->ring[i].parked_on == link)
				s->ring[i].parked_on = NULL;
	}
	sndbuf_wake(lgr);
}

void
sndbuf_free_all(struct lgr *lgr)
{
	struct sndbuf_slab *s;

	for (unsigned i = 0; i < SNDBUF_SIZES; i++)
		list_init(&lgr->sndbuf_free[i]);
	lgr->eng->sndbuf_bytes -= lgr->sndbuf_bytes;
	lgr->sndbuf_bytes = lgr->sndbuf_cnt = 0;
	while ((s = LIST_POP(struct sndbuf_slab, &lgr->sndbuf_slabs, node)) != NULL)
		slab_free(lgr, s);
}
