/* Send rings; see sndbuf.h. They come in slabs, the first one small, and stay until the group ends. */
#include "smcr/data/sndbuf.h"

#include <errno.h>
#include <stdlib.h>

#include "base/minmax.h"
#include "base/pages.h"
#include "smcr/data/conn.h"
#include "smcr/state/engine.h"

#define SLAB_FIRST 4 /* rings of the first slab; each further one has twice as many */
#define SLAB_MAX 64

struct sndbuf_slab {
	struct list_node node;
	uint8_t *buf;
	size_t len;
	struct rnic_mr *mr[LINK_SLOTS];
	uint32_t cnt;
	struct sndbuf ring[];
};

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

/* Frees whatever of it is there. */
static void
slab_free(struct lgr *lgr, struct sndbuf_slab *s)
{
	LGR_EACH_LINK(l, lgr)
		slab_deregister(s, l);
	pages_free(s->buf, s->len);
	free(s);
}

static int
slab_new(struct lgr *lgr)
{
	const struct smcr_config *cfg = &lgr->eng->cfg;
	uint32_t size = cfg->sndbuf_size, have = (uint32_t)(lgr->sndbuf_bytes / size), cnt = SLAB_FIRST;

	LIST_FOREACH(n, &lgr->sndbuf_slabs)
		cnt = cnt < SLAB_MAX ? cnt * 2 : cnt;
	/* As many rings as connections at the most: of aborted ones, which the device is not through with, there may be
	 * any number. */
	cnt = min_u32(cnt, cfg->conns_per_group > have ? cfg->conns_per_group - have : 0);
	struct sndbuf_slab *s = cnt > 0 ? calloc(1, sizeof(*s) + cnt * sizeof(s->ring[0])) : NULL;

	if (s == NULL)
		return -ENOMEM;
	s->cnt = cnt;
	s->len = (size_t)cnt * size;
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
	for (uint32_t i = cnt; i-- > 0;) {
		s->ring[i] = (struct sndbuf){ .mr = s->mr, .buf = s->buf + (size_t)i * size, .size = size };
		list_push_front(&lgr->sndbuf_free, &s->ring[i].node);
	}
	return 0;
}

/* A ring that the device is through with. */
static struct sndbuf *
pop_free(struct lgr *lgr)
{
	struct sndbuf *sb = LIST_FIRST(struct sndbuf, &lgr->sndbuf_free, node);

	if (sb == NULL || (sb->parked_on != NULL && sb->parked_on->wr_tail <= sb->parked_until))
		return NULL;
	list_remove(&sb->node);
	sb->parked_on = NULL;
	return sb;
}

struct sndbuf *
sndbuf_get(struct lgr *lgr)
{
	struct sndbuf *sb = pop_free(lgr);

	if (sb == NULL && slab_new(lgr) == 0)
		sb = pop_free(lgr);
	if (sb != NULL)
		lgr->sndbuf_lent++;
	return sb;
}

/* All of them: the first may have nothing left to send. */
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
sndbuf_put(struct lgr *lgr, struct sndbuf *sb)
{
	lgr->sndbuf_lent--;
	list_push_front(&lgr->sndbuf_free, &sb->node);
	sndbuf_wake(lgr);
}

void
sndbuf_park(struct lgr *lgr, struct sndbuf *sb, const struct link *link, uint64_t wr_id)
{
	sb->parked_on = link;
	sb->parked_until = wr_id;
	lgr->sndbuf_lent--;
	list_push(&lgr->sndbuf_free, &sb->node);
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
	list_init(&lgr->sndbuf_free);
	lgr->sndbuf_bytes = 0;
	LIST_EACH(struct sndbuf_slab, s, &lgr->sndbuf_slabs, node) {
		list_remove(&s->node);
		slab_free(lgr, s);
	}
}
