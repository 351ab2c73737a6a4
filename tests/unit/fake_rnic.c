/* See fake_rnic.h. */
#include "fake_rnic.h"

#include <stdlib.h>
#include <string.h>

#include "checks.h"

static void
fake_query(struct rnic_dev *dev, struct rnic_info *info)
{
	(void)dev;
	*info = (struct rnic_info){
		.name = "fake", .transport = RNIC_TRANSPORT_ROCE, .port = RNIC_PORT_UP, .gid_type = RNIC_GID_ROCE_V2
	};
}

static int
fake_mr_reg(struct rnic_pd *pd, void *buf, size_t len, unsigned access, struct rnic_mr **out)
{
	struct fake_rnic *f = (struct fake_rnic *)(void *)pd->dev;
	struct rnic_mr *mr;

	(void)access;
	if (f->reg_err < 0)
		return f->reg_err;
	ck_assert_uint_lt(f->mr_cnt, FAKE_MRS);
	mr = calloc(1, sizeof(*mr));
	f->next_key++;
	*mr = (struct rnic_mr){
		.pd = pd,
		.buf = buf,
		.len = len,
		.lkey = f->next_key,
		.rkey = f->next_key * 0x101,
		.addr = 0x1000000ULL * f->next_key,
	};
	f->mr[f->mr_cnt++] = mr;
	*out = mr;
	return 0;
}

static void
fake_mr_dereg(struct rnic_mr *mr)
{
	struct fake_rnic *f = (struct fake_rnic *)(void *)mr->pd->dev;

	for (unsigned i = 0; i < f->mr_cnt; i++)
		if (f->mr[i] == mr) {
			f->mr[i] = f->mr[--f->mr_cnt];
			free(mr);
			return;
		}
	ck_abort_msg("region deregistered that was never registered");
}

static int
fake_post_send(struct rnic_qp *qp, const struct rnic_send_wr *wr)
{
	struct fake_rnic *f = (struct fake_rnic *)(void *)qp->dev;
	struct fake_wr *w = &f->posted[f->cnt];

	if (f->post_err < 0 && f->post_ok-- == 0) {
		f->post_ok = 0;
		return f->post_err;
	}
	ck_assert_uint_lt(f->cnt, FAKE_WRS);
	w->wr = *wr;
	w->len = 0;
	for (unsigned i = 0; i < wr->sge_cnt; i++)
		w->len += wr->sge[i].len;
	w->data = malloc(w->len);
	for (unsigned i = 0, at = 0; i < wr->sge_cnt; at += wr->sge[i].len, i++) {
		const struct rnic_sge *s = &wr->sge[i];

		if ((wr->flags & RNIC_INLINE) == 0) {
			ck_assert(s->ptr >= s->mr->buf);
			ck_assert(s->ptr + s->len <= s->mr->buf + s->mr->len);
		}
		memcpy(w->data + at, s->ptr, s->len);
	}
	f->cnt++;
	return 0;
}

static void
fake_credits(const struct rnic_qp *qp, struct rnic_credits *room)
{
	*room = ((const struct fake_rnic *)(const void *)qp->dev)->room;
}

static void
fake_fence(struct rnic_qp *qp)
{
	((struct fake_rnic *)(void *)qp->dev)->confirms++;
}

static const struct rnic_ops fake_ops = {
	.query = fake_query,
	.mr_reg = fake_mr_reg,
	.mr_dereg = fake_mr_dereg,
	.post_send = fake_post_send,
	.credits = fake_credits,
	.fence = fake_fence,
};

void
fake_init(struct fake_rnic *f)
{
	memset(f, 0, sizeof(*f));
	f->dev.ops = &fake_ops;
	f->pd.dev = &f->dev;
	f->qp.dev = &f->dev;
	f->room = (struct rnic_credits){ 1000, 1000, 100u * 1024 * 1024 };
}

void
fake_fini(struct fake_rnic *f)
{
	for (unsigned i = 0; i < f->cnt; i++)
		free(f->posted[i].data);
	ck_assert_uint_eq(f->mr_cnt, 0);
}

uint8_t *
fake_at(struct fake_rnic *f, uint32_t rkey, uint64_t addr, uint32_t len)
{
	for (unsigned i = 0; i < f->mr_cnt; i++) {
		struct rnic_mr *mr = f->mr[i];

		if (mr->rkey != rkey)
			continue;
		ck_assert_uint_ge(addr, mr->addr);
		ck_assert_uint_le(addr - mr->addr + len, mr->len);
		return mr->buf + (addr - mr->addr);
	}
	ck_abort_msg("no region has this rkey");
	return NULL;
}
