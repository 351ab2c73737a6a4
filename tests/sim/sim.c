/*
 * The sim device's verbs: objects, posting, polling, and the checks of what
 * its user does. What happens between devices is in sim_fabric.c. Used by
 * tests only.
 */
#include "tests/sim/sim.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim_int.h"

#define FORGE_ROOM 64 /* bytes that a message may become longer by tampering */

static struct sim_dev *
dev_of(struct rnic_dev *d)
{
	return CONTAINER_OF(d, struct sim_dev, base);
}

static struct sim_qp *
qp_of(struct rnic_qp *q)
{
	return CONTAINER_OF(q, struct sim_qp, base);
}

static struct sim_pd *
pd_of(struct rnic_pd *p)
{
	return CONTAINER_OF(p, struct sim_pd, base);
}

static struct sim_mr *
mr_of(struct rnic_mr *m)
{
	return CONTAINER_OF(m, struct sim_mr, base);
}

void
sim_breach(struct sim_dev *dev, const char *fmt, ...)
{
	struct sim_fabric *fab = dev->fab;
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fab->breach_cnt++;
	sim_log(fab, "%s BREACH %s", dev->info.name, text);
	if (fab->cfg.breach != NULL) {
		fab->cfg.breach(fab->cfg.ctx, &dev->base, text);
		return;
	}
	fprintf(stderr, "sim: %s: breach of the device contract: %s\n", dev->info.name, text);
	abort();
}

static bool
out_of_memory(struct sim_dev *dev)
{
	return dev->fab->cfg.enomem_per_mille > 0 && rng_below(&dev->fab->rng, 1000) < dev->fab->cfg.enomem_per_mille;
}

/* Not by calloc: a test that lets the engine's allocations fail does not mean these. */
void *
sim_alloc(size_t len)
{
	void *p = aligned_alloc(16, (len + 15) / 16 * 16);

	if (p == NULL)
		abort();
	return memset(p, 0, len);
}

/* Fletcher-like, to notice that a buffer under a request was changed. */
uint32_t
sim_sum(const uint8_t *p, size_t len)
{
	uint32_t a = 1, b = 0;

	for (size_t i = 0; i < len; i++) {
		a += p[i];
		b += a;
	}
	return b << 8 ^ a;
}

/* -- events and completions -- */

void
sim_dev_note(struct sim_dev *dev, enum rnic_event_type type, const char *why)
{
	struct sim_note *n = sim_alloc(sizeof(*n));

	n->ev = (struct rnic_event){ .type = type, .why = why };
	list_push(&dev->events, &n->node);
}

void
sim_note(struct sim_qp *qp, enum rnic_event_type type, const char *why)
{
	struct sim_note *n = sim_alloc(sizeof(*n));

	n->ev = (struct rnic_event){
		.type = type, .qp = &qp->base, .ctx = qp->base.ctx, .why = why, .silent = why != NULL && qp->silent
	};
	list_push(&qp->dev->events, &n->node);
	sim_log(qp->dev->fab, "%s qp %06x event %d %s", qp->dev->info.name, qp->base.qpn, (int)type,
	    why != NULL ? why : "");
}

static void
push_done(struct sim_qp *qp, uint64_t wr_id, enum rnic_wc_op op, enum rnic_wc_status status, uint32_t len, uint64_t seq)
{
	struct sim_done *d = sim_alloc(sizeof(*d));

	d->wc = (struct rnic_wc){ .wr_id = wr_id, .qp = &qp->base, .op = op, .status = status, .len = len };
	d->recv = op == RNIC_WC_RECV;
	d->seq = seq;
	list_push(&qp->dev->wcs, &d->node);
}

static void
release_buffers(struct sim_wr *wr)
{
	for (unsigned i = 0; i < wr->req.sge_cnt; i++)
		if ((wr->req.flags & RNIC_INLINE) == 0)
			mr_of(wr->req.sge[i].mr)->users--;
}

static uint32_t
buffers_sum(const struct rnic_send_wr *req, uint8_t *copy)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < req->sge_cnt; i++) {
		sum = sum * 31 + sim_sum(req->sge[i].ptr, req->sge[i].len);
		if (copy != NULL && req->sge[i].len > 0) {
			memcpy(copy, req->sge[i].ptr, req->sge[i].len);
			copy += req->sge[i].len;
		}
	}
	return sum;
}

void
sim_check_buffers(struct sim_wr *wr)
{
	const struct sim_fabric *fab = wr->qp->dev->fab;

	if (fab->cfg.peer_lies != NULL && fab->cfg.peer_lies(fab->cfg.ctx, &wr->qp->remote.gid))
		return;
	if ((wr->req.flags & RNIC_INLINE) == 0 && buffers_sum(&wr->req, NULL) != wr->sum)
		sim_breach(wr->qp->dev, "qp %06x: a buffer was changed under request %llu", wr->qp->base.qpn,
		    (unsigned long long)wr->req.wr_id);
}

/* The device is done with the request, which is freed. */
void
sim_wr_finish(struct sim_wr *wr, enum rnic_wc_status status)
{
	struct sim_qp *qp = wr->qp;
	bool write = wr->req.op == RNIC_WR_WRITE;

	if (wr->state == SIM_WR_SENT)
		sim_check_buffers(wr);
	release_buffers(wr);
	if (!write)
		qp->sends_open--;
	if (wr->parcel != NULL)
		wr->parcel->wr = NULL;
	if (status != RNIC_WC_OK || (wr->req.flags & RNIC_SIGNALED) != 0)
		push_done(qp, wr->req.wr_id, write ? RNIC_WC_WRITE : RNIC_WC_SEND, status, 0, wr->seq);
	list_remove(&wr->node);
	free(wr);
}

void
sim_recv_finish(struct sim_qp *qp, struct sim_recv *r, enum rnic_wc_status status, uint32_t len)
{
	mr_of(r->req.mr)->users--;
	push_done(qp, r->req.wr_id, RNIC_WC_RECV, status, len, 0);
	list_remove(&r->node);
	free(r);
}

void
sim_qp_flush(struct sim_qp *qp, enum rnic_wc_status first)
{
	LIST_FOREACH(n, &qp->sq) {
		sim_wr_finish(CONTAINER_OF(n, struct sim_wr, node), first);
		first = RNIC_WC_FLUSHED;
	}
	LIST_FOREACH(n, &qp->rq)
		sim_recv_finish(qp, CONTAINER_OF(n, struct sim_recv, node), RNIC_WC_FLUSHED, 0);
}

/* -- device, protection domains, memory -- */

static void
sim_query(struct rnic_dev *d, struct rnic_info *info)
{
	struct sim_dev *dev = dev_of(d);

	*info = dev->info;
	info->qp_cnt = dev->qp_cnt;
	info->mr_cnt = dev->mr_cnt;
	info->mr_bytes = dev->mr_bytes;
}

static int
sim_pd_alloc(struct rnic_dev *d, struct rnic_pd **out)
{
	struct sim_dev *dev = dev_of(d);
	struct sim_pd *pd;

	if (dev->gone)
		return -ENODEV;
	if (out_of_memory(dev))
		return -ENOMEM;
	pd = sim_alloc(sizeof(*pd));
	pd->base.dev = d;
	dev->pd_cnt++;
	*out = &pd->base;
	return 0;
}

static void
sim_pd_free(struct rnic_pd *p)
{
	struct sim_pd *pd = pd_of(p);
	struct sim_dev *dev = dev_of(p->dev);

	if (pd->users > 0) {
		sim_breach(dev, "protection domain freed with %u objects in it", pd->users);
		return;
	}
	dev->pd_cnt--;
	free(pd);
}

static bool
key_used(const struct sim_dev *dev, uint32_t key)
{
	LIST_FOREACH(n, &dev->mrs) {
		const struct sim_mr *mr = CONTAINER_OF(n, struct sim_mr, node);

		if (mr->base.rkey == key || mr->base.lkey == key)
			return true;
	}
	return key == 0;
}

static uint32_t
new_key(struct sim_dev *dev)
{
	uint32_t key;

	do
		key = (uint32_t)rng_u64(&dev->fab->rng);
	while (key_used(dev, key));
	return key;
}

static int
sim_mr_reg(struct rnic_pd *p, void *buf, size_t len, unsigned access, struct rnic_mr **out)
{
	struct sim_dev *dev = dev_of(p->dev);
	struct sim_mr *mr;

	if (buf == NULL || len == 0) {
		sim_breach(dev, "memory region of %zu bytes at %p", len, buf);
		return -EINVAL;
	}
	if (dev->gone)
		return -ENODEV;
	if (dev->mr_cnt >= dev->info.max_mr || out_of_memory(dev))
		return -ENOMEM;
	mr = sim_alloc(sizeof(*mr));
	mr->base = (struct rnic_mr){ .pd = p,
		.buf = buf,
		.len = len,
		.lkey = new_key(dev),
		.rkey = new_key(dev),
		.addr = (rng_u64(&dev->fab->rng) >> 16 & ~0xfffull) | 0x1000 };
	mr->access = access;
	list_push(&dev->mrs, &mr->node);
	pd_of(p)->users++;
	dev->mr_cnt++;
	dev->mr_bytes += len;
	*out = &mr->base;
	return 0;
}

static void
sim_mr_dereg(struct rnic_mr *m)
{
	struct sim_mr *mr = mr_of(m);
	struct sim_dev *dev = dev_of(m->pd->dev);

	if (mr->users > 0 || pd_of(m->pd)->qps_ending > 0) {
		sim_breach(dev, "memory region deregistered under %u requests, %u queue pairs that end", mr->users,
		    pd_of(m->pd)->qps_ending);
		return;
	}
	list_remove(&mr->node);
	if (dev->mr_found == m)
		dev->mr_found = NULL;
	pd_of(m->pd)->users--;
	dev->mr_cnt--;
	dev->mr_bytes -= m->len;
	free(mr);
}

/* -- queue pairs -- */

static bool
qpn_used(const struct sim_dev *dev, uint32_t qpn)
{
	uint32_t pos = 0;
	struct sim_qp *qp;

	while ((qp = idtable_next(&dev->fab->qps, &pos)) != NULL)
		if (qp->dev == dev && qp->base.qpn == qpn)
			return true;
	return qpn < 2; /* 0 and 1 are special on InfiniBand */
}

void
sim_protect(struct rnic_dev *d, enum rnic_protection protection)
{
	CONTAINER_OF(d, struct sim_dev, base)->info.protection = protection;
}

bool
sim_qp_in_tls(const struct rnic_qp *q)
{
	return CONTAINER_OF((uintptr_t)q, struct sim_qp, base)->attr.secret != NULL;
}

static int
sim_qp_create(struct rnic_pd *p, const struct rnic_qp_attr *attr, struct rnic_qp **out)
{
	struct sim_dev *dev = dev_of(p->dev);
	struct sim_qp *qp;

	if (attr->sq_depth == 0 || attr->sq_depth > dev->info.max_sq || attr->rq_depth == 0 ||
	    attr->rq_depth > dev->info.max_rq)
		return -EINVAL;
	if (dev->gone)
		return -ENODEV;
	if (dev->qp_cnt >= dev->info.max_qp || out_of_memory(dev))
		return -ENOMEM;
	qp = sim_alloc(sizeof(*qp));
	qp->base.dev = p->dev;
	qp->base.ctx = attr->ctx;
	do
		qp->base.qpn = (uint32_t)rng_u64(&dev->fab->rng) & 0xffffff;
	while (qpn_used(dev, qp->base.qpn));
	qp->base.psn = (uint32_t)rng_u64(&dev->fab->rng) & 0xffffff;
	qp->dev = dev;
	qp->pd = pd_of(p);
	qp->pd->users++;
	qp->attr = *attr;
	qp->attr.secret = attr->secret != NULL && dev->info.tls ? qp->secret : NULL;
	if (qp->attr.secret != NULL)
		memcpy(qp->secret, attr->secret, sizeof(qp->secret));
	list_init(&qp->sq);
	list_init(&qp->rq);
	list_init(&qp->unplaced);
	sim_qp_init(qp);
	dev->qp_cnt++;
	*out = &qp->base;
	return 0;
}

static int
sim_qp_expect(struct rnic_qp *q)
{
	struct sim_qp *qp = qp_of(q);

	if (qp->state != SIM_QP_NEW) {
		sim_breach(qp->dev, "qp %06x: qp_expect too late", q->qpn);
		return -EINVAL;
	}
	qp->expecting = true;
	return 0;
}

static int
sim_qp_connect(struct rnic_qp *q, enum rnic_side side, const struct rnic_remote *remote)
{
	struct sim_qp *qp = qp_of(q);

	if (qp->has_remote || qp->state == SIM_QP_CLOSED) {
		sim_breach(qp->dev, "qp %06x: qp_connect twice, or after the end", q->qpn);
		return -EINVAL;
	}
	if (rnic_is_iwarp(qp->dev->info.transport) && side == RNIC_PASSIVE && !qp->expecting) {
		sim_breach(qp->dev, "qp %06x: passive qp_connect without qp_expect", q->qpn);
		return -EINVAL;
	}
	if (qp->dev->gone)
		return -ENODEV;
	qp->side = side;
	qp->remote = *remote;
	qp->has_remote = true;
	return sim_connect(qp);
}

static int
sim_qp_rts(struct rnic_qp *q)
{
	struct sim_qp *qp = qp_of(q);

	if (qp->state == SIM_QP_NEW || qp->state == SIM_QP_CONNECTING)
		sim_breach(qp->dev, "qp %06x: qp_rts before it is connected", q->qpn);
	if (qp->state != SIM_QP_READY)
		return -ENOTCONN;
	qp->rts = true;
	return 0;
}

static void
drop_notes(struct sim_qp *qp, bool all)
{
	LIST_FOREACH(n, &qp->dev->events) {
		struct sim_note *note = CONTAINER_OF(n, struct sim_note, node);

		if (note->ev.qp == &qp->base && (all || note->ev.type == RNIC_EV_QP_ERROR)) {
			list_remove(n);
			free(note);
		}
	}
}

static void
sim_qp_disconnect(struct rnic_qp *q, bool graceful)
{
	struct sim_qp *qp = qp_of(q);

	sim_log(qp->dev->fab, "%s qp %06x disconnect%s", qp->dev->info.name, q->qpn, graceful ? " graceful" : "");
	drop_notes(qp, true);
	if (qp->state != SIM_QP_CLOSED)
		sim_disconnect(qp, graceful);
}

static void
ended_fire(struct timer *t)
{
	struct sim_qp *qp = CONTAINER_OF(t, struct sim_qp, end_timer);

	list_remove(&qp->end_node);
	sim_note(qp, RNIC_EV_QP_FREED, NULL);
}

void
sim_end_takes(struct sim_fabric *fab, int64_t ns)
{
	fab->cfg.end_ns = ns;
}

void
sim_end_all(struct sim_fabric *fab)
{
	LIST_EACH(struct sim_qp, qp, &fab->ending, end_node) {
		timer_cancel(&fab->timers, &qp->end_timer);
		ended_fire(&qp->end_timer);
	}
}

static void
sim_qp_destroy(struct rnic_qp *q)
{
	struct sim_qp *qp = qp_of(q);
	struct sim_dev *dev = qp->dev;
	struct sim_fabric *fab = dev->fab;

	if (!list_empty(&qp->sq))
		sim_breach(dev, "qp %06x destroyed under requests that did not end", q->qpn);
	if (qp->state != SIM_QP_CLOSED)
		sim_disconnect(qp, false);
	drop_notes(qp, true);
	LIST_FOREACH(n, &dev->wcs) {
		struct sim_done *d = CONTAINER_OF(n, struct sim_done, node);

		if (d->wc.qp == q) {
			list_remove(n);
			free(d);
		}
	}
	sim_chan_release(qp);
	qp->pd->qps_ending++;
	timer_init(&qp->end_timer, ended_fire);
	list_push(&fab->ending, &qp->end_node);
	if (fab->cfg.end_ns > 0)
		timer_arm(&fab->timers, &qp->end_timer, fab->now_ns + fab->cfg.end_ns);
	else
		ended_fire(&qp->end_timer);
}

/* Its user has heard of its end. */
static void
qp_free(struct sim_qp *qp)
{
	qp->pd->qps_ending--;
	qp->pd->users--;
	qp->dev->qp_cnt--;
	timerq_unreserve(&qp->dev->fab->timers, 1);
	rnic_unit_place_all(&qp->unplaced);
	free(qp->arrived);
	free(qp);
}

/* -- posting -- */

static bool
can_send(const struct sim_qp *qp)
{
	return qp->state == SIM_QP_READY &&
	    (qp->rts || qp->side == RNIC_PASSIVE || rnic_is_iwarp(qp->dev->info.transport));
}

static void
get_credits(const struct sim_qp *qp, struct rnic_credits *credits)
{
	uint64_t used = qp->seq - qp->freed_seq;
	size_t limit = qp->dev->fab->cfg.credit_bytes;

	*credits = (struct rnic_credits){ 0 };
	if (!can_send(qp))
		return;
	credits->wrs = used < qp->attr.sq_depth ? qp->attr.sq_depth - (uint32_t)used : 0;
	credits->sends = credits->wrs;
	if (qp->peer_rq > 0 && qp->peer_rq - qp->sends_open < credits->sends)
		credits->sends = qp->peer_rq - (uint32_t)qp->sends_open;
	credits->bytes = qp->chan->bytes < limit ? limit - qp->chan->bytes : 0;
}

static bool
has_all(const struct rnic_credits *credits)
{
	return credits->wrs > 0 && credits->sends > 0 && credits->bytes > 0;
}

static void
sim_credits(const struct rnic_qp *q, struct rnic_credits *credits)
{
	struct sim_qp *qp = CONTAINER_OF((uintptr_t)q, struct sim_qp, base);

	get_credits(qp, credits);
	if (can_send(qp) && !has_all(credits))
		qp->starved = true;
}

void
sim_check_credits(struct sim_qp *qp)
{
	struct rnic_credits credits;

	if (!qp->starved)
		return;
	get_credits(qp, &credits);
	if (!has_all(&credits))
		return;
	qp->starved = false;
	sim_note(qp, RNIC_EV_CREDITS, NULL);
}

static bool
mr_exists(struct sim_dev *dev, const struct rnic_mr *m)
{
	if (dev->mr_found == m)
		return true;
	LIST_FOREACH(n, &dev->mrs)
		if (&CONTAINER_OF(n, struct sim_mr, node)->base == m) {
			dev->mr_found = m;
			return true;
		}
	return false;
}

/* The buffer may be used by this QP: NULL, or what is wrong. */
static const char *
buffer_fault(const struct sim_qp *qp, const struct rnic_mr *mr, const uint8_t *ptr, uint32_t len)
{
	if (mr == NULL || !mr_exists(qp->dev, mr))
		return "memory region does not exist";
	if (mr->pd != &qp->pd->base)
		return "memory region of another protection domain";
	if (ptr < mr->buf || ptr > mr->buf + mr->len || len > (size_t)(mr->buf + mr->len - ptr))
		return "buffer outside of its memory region";
	return NULL;
}

static const char *
send_fault(const struct sim_qp *qp, const struct rnic_send_wr *wr, size_t *len)
{
	*len = 0;
	if (wr->sge_cnt > RNIC_SGE_MAX || wr->sge_cnt > qp->dev->info.max_sge)
		return "too many pieces";
	for (unsigned i = 0; i < wr->sge_cnt; i++) {
		const struct rnic_sge *s = &wr->sge[i];
		const char *fault = NULL;

		if ((wr->flags & RNIC_INLINE) == 0)
			fault = buffer_fault(qp, s->mr, s->ptr, s->len);
		if (fault != NULL)
			return fault;
		*len += s->len;
	}
	if ((wr->flags & RNIC_INLINE) != 0 && *len > qp->dev->info.max_inline)
		return "inline data too long";
	if (wr->op == RNIC_WR_WRITE && *len == 0)
		return "empty write";
	return NULL;
}

/* The peer that posted it may have said something else. */
static void
tamper(struct sim_qp *qp, struct sim_parcel *par, size_t cap)
{
	const struct sim_config *cfg = &qp->dev->fab->cfg;
	struct sim_forgery f = { .from = &qp->dev->base,
		.to = qp->chan->to_dev != NULL ? &qp->chan->to_dev->base : NULL,
		.qpn = qp->base.qpn,
		.op = par->op,
		.data = par->data,
		.len = par->len,
		.cap = cap,
		.raddr = par->raddr,
		.rkey = par->rkey };

	if (cfg->tamper == NULL)
		return;
	par->omit = !cfg->tamper(cfg->ctx, &f);
	par->len = (uint32_t)f.len;
	par->raddr = f.raddr;
	par->rkey = f.rkey;
}

static void
queue_send(struct sim_qp *qp, const struct rnic_send_wr *req, size_t len)
{
	struct sim_wr *wr = sim_alloc(sizeof(*wr));
	size_t cap = len + (qp->dev->fab->cfg.tamper != NULL ? FORGE_ROOM : 0);
	struct sim_parcel *par = sim_alloc(sizeof(*par) + cap);

	wr->qp = qp;
	wr->req = *req;
	wr->seq = ++qp->seq;
	wr->sum = buffers_sum(req, par->data);
	wr->parcel = par;
	for (unsigned i = 0; i < req->sge_cnt; i++)
		if ((req->flags & RNIC_INLINE) == 0)
			mr_of(req->sge[i].mr)->users++;
	list_push(&qp->sq, &wr->node);
	if (req->op == RNIC_WR_SEND)
		qp->sends_open++;
	par->op = req->op;
	par->raddr = req->raddr;
	par->rkey = req->rkey;
	par->len = (uint32_t)len;
	par->wr = wr;
	tamper(qp, par, cap);
	list_push(&qp->chan->msgs, &par->node);
	qp->chan->bytes += par->len;
	if (!qp->dev->fab->cfg.need_flush)
		sim_transmit(qp);
}

static int
not_connected(struct sim_qp *qp)
{
	if (qp->state == SIM_QP_BROKEN && !qp->error_polled)
		return -ENOTCONN; /* its user cannot know yet */
	sim_breach(qp->dev, "qp %06x: request posted %s", qp->base.qpn,
	    qp->state == SIM_QP_READY                                      ? "before qp_rts"
	        : qp->state == SIM_QP_BROKEN || qp->state == SIM_QP_CLOSED ? "after the end"
	                                                                   : "before it is connected");
	return -ENOTCONN;
}

static int
sim_post_send(struct rnic_qp *q, const struct rnic_send_wr *wr)
{
	struct sim_qp *qp = qp_of(q);
	struct rnic_credits credits;
	const char *fault;
	size_t len;

	if (!can_send(qp))
		return not_connected(qp);
	if (!qp->connected_polled)
		sim_breach(qp->dev, "qp %06x: request posted before CONNECTED was polled", q->qpn);
	fault = send_fault(qp, wr, &len);
	if (fault != NULL) {
		sim_breach(qp->dev, "qp %06x: %s", q->qpn, fault);
		return -EINVAL;
	}
	get_credits(qp, &credits);
	if (credits.wrs == 0 || (wr->op == RNIC_WR_SEND && credits.sends == 0)) {
		qp->starved = true;
		sim_breach(qp->dev, "qp %06x: request posted without credits for it (%s)", q->qpn,
		    credits.wrs == 0 ? "send queue" : "the peer's receives");
		return -ENOBUFS;
	}
	queue_send(qp, wr, len);
	return 0;
}

static int
sim_post_recv(struct rnic_qp *q, const struct rnic_recv_wr *wr, unsigned n)
{
	struct sim_qp *qp = qp_of(q);

	if (qp->state == SIM_QP_BROKEN && !qp->error_polled)
		return -ENOTCONN;
	if (qp->state == SIM_QP_BROKEN || qp->state == SIM_QP_CLOSED) {
		sim_breach(qp->dev, "qp %06x: receive posted after the end", q->qpn);
		return -ENOTCONN;
	}
	if (n > qp->attr.rq_depth - qp->rq_used) {
		sim_breach(qp->dev, "qp %06x: more receives than rq_depth", q->qpn);
		return -ENOBUFS;
	}
	for (unsigned i = 0; i < n; i++) {
		const char *fault = buffer_fault(qp, wr[i].mr, wr[i].ptr, wr[i].len);

		if (fault != NULL) {
			sim_breach(qp->dev, "qp %06x: receive: %s", q->qpn, fault);
			return -EINVAL;
		}
	}
	for (unsigned i = 0; i < n; i++) {
		struct sim_recv *r = sim_alloc(sizeof(*r));

		r->req = wr[i];
		mr_of(wr[i].mr)->users++;
		list_push(&qp->rq, &r->node);
	}
	qp->rq_used += n;
	sim_recv_posted(qp);
	return 0;
}

static void
post_fence(struct rnic_qp *q)
{
	sim_fence(qp_of(q));
}

/* -- polling -- */

static unsigned
sim_poll(struct rnic_dev *d, struct rnic_wc *wc, unsigned max)
{
	struct sim_dev *dev = dev_of(d);
	unsigned n = 0;

	while (n < max && !list_empty(&dev->wcs)) {
		struct sim_done *done = CONTAINER_OF(list_pop(&dev->wcs), struct sim_done, node);
		struct sim_qp *qp = qp_of(done->wc.qp);

		wc[n++] = done->wc;
		if (done->recv)
			qp->rq_used--;
		else
			qp->freed_seq = done->seq;
		sim_check_credits(qp);
		free(done);
	}
	return n;
}

static void
dev_free(struct sim_dev *dev)
{
	LIST_FOREACH(c, &dev->fab->chans) {
		struct sim_chan *chan = CONTAINER_OF(c, struct sim_chan, node);

		if (chan->to_dev == dev)
			chan->to_dev = NULL;
		if (chan->from_dev == dev)
			chan->from_dev = NULL;
	}
	list_remove(&dev->node);
	free(dev);
}

static bool
has_ended(const struct sim_dev *dev)
{
	return dev->ends && dev->pd_cnt + dev->mr_cnt + dev->qp_cnt == 0;
}

static bool
sim_poll_event(struct rnic_dev *d, struct rnic_event *ev)
{
	struct sim_dev *dev = dev_of(d);
	struct sim_note *note = LIST_POP(struct sim_note, &dev->events, node);

	if (note == NULL && has_ended(dev)) {
		*ev = (struct rnic_event){ .type = RNIC_EV_DEV_FREED };
		dev_free(dev);
		return true;
	}
	if (note == NULL)
		return false;
	*ev = note->ev;
	free(note);
	if (ev->type == RNIC_EV_QP_FREED)
		qp_free(qp_of(ev->qp));
	if (ev->qp != NULL && ev->type == RNIC_EV_CONNECTED)
		qp_of(ev->qp)->connected_polled = true;
	if (ev->qp != NULL && (ev->type == RNIC_EV_QP_ERROR || ev->type == RNIC_EV_CONNECT_FAILED))
		qp_of(ev->qp)->error_polled = true;
	return true;
}

static void
sim_flush(struct rnic_dev *d)
{
	struct sim_dev *dev = dev_of(d);
	uint32_t pos = 0;
	struct sim_qp *qp;

	while ((qp = idtable_next(&dev->fab->qps, &pos)) != NULL)
		if (qp->dev == dev && qp->chan != NULL)
			sim_transmit(qp);
}

bool
sim_ready(const struct rnic_dev *d)
{
	const struct sim_dev *dev = (const struct sim_dev *)(const void *)d;

	return !list_empty(&dev->wcs) || !list_empty(&dev->events) || has_ended(dev);
}

static void
sim_free(struct rnic_dev *d)
{
	dev_of(d)->ends = true;
}

static enum rnic_reach
sim_reaches(struct rnic_dev *d, const struct rnic_gid *to)
{
	(void)to;
	return dev_of(d)->reach;
}

static const struct rnic_ops sim_ops = {
	.query = sim_query,
	.pd_alloc = sim_pd_alloc,
	.pd_free = sim_pd_free,
	.mr_reg = sim_mr_reg,
	.mr_dereg = sim_mr_dereg,
	.qp_create = sim_qp_create,
	.qp_expect = sim_qp_expect,
	.qp_connect = sim_qp_connect,
	.qp_rts = sim_qp_rts,
	.qp_disconnect = sim_qp_disconnect,
	.qp_destroy = sim_qp_destroy,
	.post_send = sim_post_send,
	.post_recv = sim_post_recv,
	.credits = sim_credits,
	.fence = post_fence,
	.poll = sim_poll,
	.poll_event = sim_poll_event,
	.reaches = sim_reaches,
	.flush = sim_flush,
	.free = sim_free,
};

struct rnic_dev *
sim_dev_new(struct sim_fabric *fab, const char *name, enum rnic_transport transport, const struct rnic_gid *gid,
    const uint8_t mac[6])
{
	struct sim_dev *dev = sim_alloc(sizeof(*dev));
	const struct sim_config *cfg = &fab->cfg;

	dev->base.ops = &sim_ops;
	dev->fab = fab;
	dev->reach = RNIC_REACH_DIRECT;
	dev->info = (struct rnic_info){ .provider = "sim",
		.transport = transport,
		.tls = transport == RNIC_TRANSPORT_IWARP && !cfg->no_deny,
		.denies = !cfg->no_deny,
		.pins = cfg->no_deny,
		.port = RNIC_PORT_UP,
		.gid = *gid,
		.gid_type = rnic_is_iwarp(transport) ? RNIC_GID_NONE : RNIC_GID_ROCE_V2,
		.mtu_code = 5,
		.max_qp = cfg->max_qp,
		.max_mr = cfg->max_mr,
		.max_sq = cfg->max_sq,
		.max_rq = cfg->max_rq,
		.max_sge = cfg->max_sge,
		.max_inline = cfg->max_inline };
	snprintf(dev->info.name, sizeof(dev->info.name), "%s", name);
	memcpy(dev->info.mac, mac, sizeof(dev->info.mac));
	if (rnic_is_iwarp(transport))
		dev->info.mpa_port = (uint16_t)(40000 + rng_below(&fab->rng, 20000));
	list_init(&dev->mrs);
	list_init(&dev->wcs);
	list_init(&dev->events);
	list_push(&fab->devs, &dev->node);
	return &dev->base;
}

struct rnic_dev *
sim_dev_at(
    struct sim_fabric *fab, const char *name, enum rnic_transport transport, unsigned host, unsigned n, unsigned if_nr)
{
	const struct rnic_gid gid = { .b = { [10] = 0xff, 0xff, 10, 0, (uint8_t)n, (uint8_t)(host + 1) } };
	const uint8_t mac[6] = { 2, 0, 0, 0, (uint8_t)if_nr, (uint8_t)(host + 1) };

	return sim_dev_new(fab, name, transport, &gid, mac);
}
