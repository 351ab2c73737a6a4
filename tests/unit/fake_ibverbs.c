/* libibverbs for tests; see fake_ibverbs.h. */
#include "fake_ibverbs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/list.h"
#include "checks.h"
#include "fake_rdmacm.h"

#undef ibv_query_port
#undef ibv_reg_mr

#define QPS 512
#define MRS 4096

struct fake_ctx {
	struct ibv_context ctx; /* first */
	struct fake_dev *dev;
	struct list_node async; /* async_ev */
	int async_wr;
	unsigned unacked;
	bool eio; /* reading events fails */
};

struct async_ev {
	struct list_node node;
	struct ibv_async_event ev;
	bool of_qp, of_cq;
};

struct fake_channel {
	struct ibv_comp_channel ch; /* first */
	struct list_node events;    /* cq_ev */
	int wr;
};

struct cq_ev {
	struct list_node node;
	struct ibv_cq *cq;
};

struct fake_cq {
	struct ibv_cq cq; /* first */
	struct ibv_wc *wc;
	struct fake_qp **owner;
	uint32_t cap, head, tail;
	unsigned given, acked;
	bool armed;
	unsigned qps;
};

struct fake_pd {
	struct ibv_pd pd; /* first */
	unsigned users;
	unsigned qps; /* of them */
};

struct fake_mr {
	struct ibv_mr mr; /* first */
	int access;
};

struct fake_state fake;

static pthread_mutex_t lock;
static pthread_cond_t go;
static unsigned rtr_waiting, rtr_gone, destroy_waiting;
static struct fake_qp *qps[QPS];
static unsigned qps_end; /* no entry from here on has been used */
static struct fake_mr *mrs[MRS];
static uint32_t next_qpn, next_key;

/* -- set-up -- */

void
fake_gid(
    struct fake_port *p, uint32_t port_num, uint32_t index, enum ibv_gid_type type, unsigned ifindex, const char *addr)
{
	struct ibv_gid_entry *e = &p->gids[p->gid_cnt++];

	*e = (struct ibv_gid_entry){
		.gid_index = index,
		.port_num = port_num,
		.gid_type = type,
		.ndev_ifindex = ifindex,
	};
	ck_assert_int_eq(inet_pton(AF_INET6, addr, e->gid.raw), 1);
}

void
fake_gid_remove(struct fake_port *p, uint32_t index)
{
	for (unsigned i = 0; i < p->gid_cnt; i++)
		if (p->gids[i].gid_index == index)
			memmove(&p->gids[i], &p->gids[i + 1], (--p->gid_cnt - i) * sizeof(p->gids[0]));
}

static void
dev_reset(struct fake_dev *d, unsigned n)
{
	struct fake_port *p = &d->ports[0];
	char addr[64];

	*d = (struct fake_dev){
		.dev = { .node_type = IBV_NODE_CA, .transport_type = IBV_TRANSPORT_IB },
		.attr = { .vendor_id = 0xffffff,
		    .max_qp = 1000,
		    .max_qp_wr = 16384,
		    .max_sge = 30,
		    .max_cq = 1000,
		    .max_cqe = 65535,
		    .max_mr = 10000,
		    .phys_port_cnt = 1 },
		.max_inline = 256,
	};
	(void)snprintf(d->dev.name, sizeof(d->dev.name), "fake%u", n);
	*p = (struct fake_port){
		.state = IBV_PORT_ACTIVE,
		.mtu = IBV_MTU_4096,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
	};
	(void)snprintf(addr, sizeof(addr), "fe80::%x", n + 1);
	fake_gid(p, 1, 0, IBV_GID_TYPE_ROCE_V1, 1, addr);
	fake_gid(p, 1, 1, IBV_GID_TYPE_ROCE_V2, 1, addr);
	(void)snprintf(addr, sizeof(addr), "::ffff:10.0.%u.1", n);
	fake_gid(p, 1, 2, IBV_GID_TYPE_ROCE_V1, 1, addr);
	fake_gid(p, 1, 3, IBV_GID_TYPE_ROCE_V2, 1, addr);
	d->ports[1] = *p;
	d->ports[1].gid_cnt = 0;
}

void *
fake_alloc(size_t len)
{
	void *p = aligned_alloc(16, (len + 15) / 16 * 16);

	ck_assert_ptr_nonnull(p);
	return memset(p, 0, len);
}

void
fake_reset(void)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&lock, &attr);
	pthread_mutexattr_destroy(&attr);
	pthread_cond_init(&go, NULL);
	rtr_waiting = rtr_gone = destroy_waiting = 0;
	next_qpn = 0x11;
	next_key = 0x1000;
	memset(qps, 0, sizeof(qps));
	qps_end = 0;
	memset(mrs, 0, sizeof(mrs));
	fake = (struct fake_state){ .dev_cnt = 2, .fail_call = FAKE_NEVER };
	for (unsigned i = 0; i < FAKE_DEVS; i++)
		dev_reset(&fake.devs[i], i);
	fake_cm_reset();
}

/* One GID, the MAC address. */
void
fake_make_iwarp(struct fake_dev *d)
{
	d->dev.node_type = IBV_NODE_RNIC;
	d->dev.transport_type = IBV_TRANSPORT_IWARP;
	d->ports[0].gid_cnt = 0;
	fake_gid(&d->ports[0], 1, 0, IBV_GID_TYPE_IB, 0, "200:4c4f:4f50::");
}

static void
pause_ms(void)
{
	const struct timespec ms = { .tv_nsec = 1000000 };

	nanosleep(&ms, NULL);
}

int
fake_live(const int *cnt)
{
	int n;

	pthread_mutex_lock(&lock);
	n = *cnt;
	pthread_mutex_unlock(&lock);
	return n;
}

void
fake_check_clean(void)
{
	for (unsigned i = 0; i < 20000 && fake_open_devices() > 0; i++)
		pause_ms();
	pthread_mutex_lock(&lock);
	ck_assert_int_eq(fake.qp_cnt, 0);
	ck_assert_int_eq(fake.cq_cnt, 0);
	ck_assert_int_eq(fake.mr_cnt, 0);
	ck_assert_int_eq(fake.pd_cnt, 0);
	ck_assert_int_eq(fake.channel_cnt, 0);
	ck_assert_int_eq(fake.ctx_cnt, 0);
	pthread_mutex_unlock(&lock);
	fake_cm_check_clean();
}

int
fake_open_devices(void)
{
	return fake_live(&fake.ctx_cnt);
}

/* Is it this call's turn to fail? */
static bool
call_fails(const struct fake_dev *d)
{
	if (d->gone) {
		errno = EIO;
		return true;
	}
	if (fake.fail_call == FAKE_NEVER || fake.fail_call-- > 0)
		return false;
	fake.fail_call = FAKE_NEVER;
	errno = fake.fail_call_err;
	return true;
}

static struct fake_dev *
dev_of(struct ibv_context *ctx)
{
	return ((struct fake_ctx *)(void *)ctx)->dev;
}

/* -- devices -- */

struct ibv_device **
ibv_get_device_list(int *n)
{
	struct ibv_device **l;

	if (fake.list_err != 0) {
		errno = fake.list_err;
		return NULL;
	}
	l = fake_alloc((fake.dev_cnt + 1) * sizeof(struct ibv_device *));
	for (unsigned i = 0; i < fake.dev_cnt; i++)
		l[i] = &fake.devs[i].dev;
	*n = (int)fake.dev_cnt;
	return l;
}

void
ibv_free_device_list(struct ibv_device **l)
{
	free(l);
}

const char *
ibv_get_device_name(struct ibv_device *d)
{
	return d->name;
}

static int fake_poll_cq(struct ibv_cq *, int, struct ibv_wc *);
static int fake_req_notify(struct ibv_cq *, int);
static int fake_post_send(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);
static int fake_post_recv(struct ibv_qp *, struct ibv_recv_wr *, struct ibv_recv_wr **);

struct ibv_context *
ibv_open_device(struct ibv_device *device)
{
	struct fake_dev *d = (struct fake_dev *)(void *)device;
	struct fake_ctx *c;
	int fds[2];

	if (d->open_err != 0 || call_fails(d)) {
		errno = d->open_err != 0 ? d->open_err : errno;
		return NULL;
	}
	c = fake_alloc(sizeof(*c));
	ck_assert_int_eq(pipe(fds), 0);
	c->ctx.device = device;
	c->ctx.async_fd = fds[0];
	c->ctx.ops.poll_cq = fake_poll_cq;
	c->ctx.ops.req_notify_cq = fake_req_notify;
	c->ctx.ops.post_send = fake_post_send;
	c->ctx.ops.post_recv = fake_post_recv;
	c->async_wr = fds[1];
	c->dev = d;
	list_init(&c->async);
	d->ctx = c;
	d->opened++;
	fake.ctx_cnt++;
	return &c->ctx;
}

int
ibv_close_device(struct ibv_context *ctx)
{
	struct fake_ctx *c = (struct fake_ctx *)(void *)ctx;
	struct list_node *n;

	while ((n = list_pop(&c->async)) != NULL)
		free(CONTAINER_OF(n, struct async_ev, node));
	close(ctx->async_fd);
	close(c->async_wr);
	pthread_mutex_lock(&lock);
	if (c->dev->ctx == c)
		c->dev->ctx = NULL;
	free(c);
	fake.ctx_cnt--;
	pthread_mutex_unlock(&lock);
	return 0;
}

int
ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	if (dev_of(ctx)->gone)
		return EIO;
	*attr = dev_of(ctx)->attr;
	return 0;
}

int
ibv_query_port(struct ibv_context *ctx, uint8_t num, struct _compat_ibv_port_attr *out)
{
	struct ibv_port_attr *attr = (struct ibv_port_attr *)(void *)out;
	const struct fake_port *p = &dev_of(ctx)->ports[num - 1];

	if (p->query_err != 0 || dev_of(ctx)->gone)
		return p->query_err != 0 ? p->query_err : EIO;
	attr->state = p->state;
	attr->max_mtu = IBV_MTU_4096;
	attr->active_mtu = p->mtu;
	attr->gid_tbl_len = FAKE_GIDS;
	attr->link_layer = p->link_layer;
	return 0;
}

ssize_t
_ibv_query_gid_table(
    struct ibv_context *ctx, struct ibv_gid_entry *entries, size_t max, uint32_t flags, size_t entry_size)
{
	const struct fake_dev *d = dev_of(ctx);
	size_t n = 0;

	(void)flags;
	ck_assert_uint_eq(entry_size, sizeof(*entries));
	if (fake.gid_table_err != 0 || d->gone)
		return -(fake.gid_table_err != 0 ? fake.gid_table_err : EIO);
	for (unsigned p = 0; p < FAKE_PORTS; p++)
		for (unsigned i = 0; i < d->ports[p].gid_cnt && n < max; i++)
			entries[n++] = d->ports[p].gids[i];
	return (ssize_t)n;
}

/* -- memory -- */

struct ibv_pd *
ibv_alloc_pd(struct ibv_context *ctx)
{
	struct fake_pd *pd;

	if (call_fails(dev_of(ctx)))
		return NULL;
	pd = fake_alloc(sizeof(*pd));
	pd->pd.context = ctx;
	pthread_mutex_lock(&lock);
	fake.pd_cnt++;
	pthread_mutex_unlock(&lock);
	return &pd->pd;
}

int
ibv_dealloc_pd(struct ibv_pd *pd)
{
	ck_assert_msg(((struct fake_pd *)(void *)pd)->users == 0, "a protection domain is freed in use");
	free(pd);
	pthread_mutex_lock(&lock);
	fake.pd_cnt--;
	pthread_mutex_unlock(&lock);
	return 0;
}

struct ibv_mr *
ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	struct fake_mr *mr;
	unsigned i = 0;

	if (fake.reg_mr_err != 0) {
		errno = fake.reg_mr_err;
		return NULL;
	}
	if (call_fails(dev_of(pd->context)))
		return NULL;
	pthread_mutex_lock(&lock);
	while (i < MRS && mrs[i] != NULL)
		i++;
	ck_assert_uint_lt(i, MRS);
	mr = fake_alloc(sizeof(*mr));
	mr->mr = (struct ibv_mr){ .context = pd->context, .pd = pd, .addr = addr, .length = len };
	mr->mr.lkey = next_key++;
	mr->mr.rkey = next_key++;
	mr->access = access;
	mrs[i] = mr;
	((struct fake_pd *)(void *)pd)->users++;
	fake.mr_cnt++;
	pthread_mutex_unlock(&lock);
	return &mr->mr;
}

struct ibv_mr *
ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, unsigned int access)
{
	ck_assert_uint_eq(iova, (uintptr_t)addr);
	return ibv_reg_mr(pd, addr, len, (int)access);
}

int
ibv_dereg_mr(struct ibv_mr *mr)
{
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < MRS; i++)
		if (mrs[i] == (struct fake_mr *)(void *)mr)
			mrs[i] = NULL;
	((struct fake_pd *)(void *)mr->pd)->users--;
	free(mr);
	fake.mr_cnt--;
	pthread_mutex_unlock(&lock);
	return 0;
}

/* The bytes that a key gives access to, or NULL. */
static uint8_t *
mr_bytes(const struct ibv_pd *pd, uint32_t key, unsigned remote, uint64_t addr, uint32_t len)
{
	for (unsigned i = 0; i < MRS; i++) {
		const struct fake_mr *m = mrs[i];
		uint64_t base;

		if (m == NULL || (remote != 0 ? m->mr.rkey : m->mr.lkey) != key || m->mr.pd != pd)
			continue;
		base = (uintptr_t)m->mr.addr;
		if (addr < base || addr - base > m->mr.length || len > m->mr.length - (addr - base))
			return NULL;
		if ((m->access & remote) != remote)
			return NULL;
		return (uint8_t *)(uintptr_t)addr;
	}
	return NULL;
}

/* -- completion queues -- */

struct ibv_comp_channel *
ibv_create_comp_channel(struct ibv_context *ctx)
{
	struct fake_channel *ch;
	int fds[2];

	if (call_fails(dev_of(ctx)))
		return NULL;
	ch = fake_alloc(sizeof(*ch));
	ck_assert_int_eq(pipe(fds), 0);
	ch->ch = (struct ibv_comp_channel){ .context = ctx, .fd = fds[0] };
	ch->wr = fds[1];
	list_init(&ch->events);
	fake.channel_cnt++;
	return &ch->ch;
}

int
ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	struct fake_channel *ch = (struct fake_channel *)(void *)channel;

	ck_assert_msg(channel->refcnt == 0, "a completion channel is destroyed in use");
	ck_assert(list_empty(&ch->events));
	close(channel->fd);
	close(ch->wr);
	free(ch);
	pthread_mutex_lock(&lock);
	fake.channel_cnt--;
	pthread_mutex_unlock(&lock);
	return 0;
}

struct ibv_cq *
ibv_create_cq(struct ibv_context *ctx, int cqe, void *context, struct ibv_comp_channel *channel, int vector)
{
	struct fake_cq *cq;

	ck_assert_int_eq(vector, 0);
	if (call_fails(dev_of(ctx)))
		return NULL;
	ck_assert_int_le(cqe, dev_of(ctx)->attr.max_cqe);
	cq = fake_alloc(sizeof(*cq));
	cq->cq = (struct ibv_cq){ .context = ctx, .channel = channel, .cq_context = context, .cqe = cqe };
	cq->cap = (uint32_t)cqe;
	cq->wc = fake_alloc((cq->cap) * sizeof(*cq->wc));
	cq->owner = fake_alloc((cq->cap) * sizeof(struct fake_qp *));
	pthread_mutex_lock(&lock);
	if (channel != NULL)
		channel->refcnt++;
	fake.cq_cnt++;
	pthread_mutex_unlock(&lock);
	return &cq->cq;
}

int
ibv_destroy_cq(struct ibv_cq *ibcq)
{
	struct fake_cq *cq = (struct fake_cq *)(void *)ibcq;
	char byte;

	pthread_mutex_lock(&lock);
	ck_assert_msg(cq->qps == 0, "a completion queue is destroyed in use");
	while (cq->given != cq->acked)
		pthread_cond_wait(&go, &lock);
	if (ibcq->channel != NULL) {
		struct fake_channel *ch = (struct fake_channel *)(void *)ibcq->channel;

		/* The kernel takes back what was not read. */
		LIST_FOREACH(n, &ch->events) {
			struct cq_ev *e = CONTAINER_OF(n, struct cq_ev, node);

			if (e->cq != ibcq)
				continue;
			list_remove(n);
			free(e);
			ck_assert_int_eq(read(ch->ch.fd, &byte, 1), 1);
		}
		ibcq->channel->refcnt--;
	}
	free(cq->wc);
	free(cq->owner);
	free(cq);
	fake.cq_cnt--;
	pthread_mutex_unlock(&lock);
	return 0;
}

int
ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context)
{
	struct fake_channel *ch = (struct fake_channel *)(void *)channel;
	struct cq_ev *e;
	char byte;

	ck_assert_msg(fcntl(channel->fd, F_GETFL) & O_NONBLOCK, "reading completion events may block");
	if (((struct fake_ctx *)(void *)channel->context)->eio) {
		errno = EIO;
		return -1;
	}
	pthread_mutex_lock(&lock);
	if (read(channel->fd, &byte, 1) != 1) {
		pthread_mutex_unlock(&lock);
		return -1;
	}
	e = CONTAINER_OF(list_pop(&ch->events), struct cq_ev, node);
	*cq = e->cq;
	*context = e->cq->cq_context;
	((struct fake_cq *)(void *)e->cq)->given++;
	free(e);
	pthread_mutex_unlock(&lock);
	return 0;
}

void
ibv_ack_cq_events(struct ibv_cq *cq, unsigned n)
{
	struct fake_cq *f = (struct fake_cq *)(void *)cq;

	pthread_mutex_lock(&lock);
	f->acked += n;
	fake.acks++;
	ck_assert_uint_le(f->acked, f->given);
	pthread_cond_broadcast(&go);
	pthread_mutex_unlock(&lock);
}

static int
fake_req_notify(struct ibv_cq *cq, int solicited_only)
{
	int err = 0;

	ck_assert_int_eq(solicited_only, 0);
	if (fake.late) {
		fake.late = false;
		fake_run();
		fake.late = true;
	}
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < QPS; i++)
		if (qps[i] != NULL && qps[i]->qp.send_cq == cq && qps[i]->notify_err)
			err = EIO;
	if (err == 0)
		((struct fake_cq *)(void *)cq)->armed = true;
	pthread_mutex_unlock(&lock);
	return err;
}

static void
cq_push(struct fake_qp *qp, struct ibv_cq *ibcq, const struct ibv_wc *wc)
{
	struct fake_cq *cq = (struct fake_cq *)(void *)ibcq;
	struct cq_ev *e;

	ck_assert_msg(cq->head - cq->tail < cq->cap, "a completion queue overflows");
	cq->owner[cq->head % cq->cap] = qp;
	cq->wc[cq->head++ % cq->cap] = *wc;
	if (!cq->armed || ibcq->channel == NULL)
		return;
	cq->armed = false;
	e = fake_alloc(sizeof(*e));
	e->cq = ibcq;
	list_push(&((struct fake_channel *)(void *)ibcq->channel)->events, &e->node);
	ck_assert_int_eq(write(((struct fake_channel *)(void *)ibcq->channel)->wr, "", 1), 1);
}

/* Slots of a queue are free when the completion that covers them was polled. */
static int
poll_locked(struct ibv_cq *ibcq, int max, struct ibv_wc *wc)
{
	struct fake_cq *cq = (struct fake_cq *)(void *)ibcq;
	int n = 0;

	for (; n < max && cq->tail != cq->head; n++, cq->tail++) {
		struct fake_qp *qp = cq->owner[cq->tail % cq->cap];

		wc[n] = cq->wc[cq->tail % cq->cap];
		if (qp == NULL)
			continue; /* destroyed */
		if (qp->poll_err)
			return -1;
		/* vendor_err: the position behind it */
		if (wc[n].opcode == IBV_WC_RECV)
			qp->rq_free = wc[n].vendor_err;
		else
			qp->sq_free = wc[n].vendor_err;
		/* Of a failed request only wr_id, status, QP and vendor_err are valid. */
		if (wc[n].status != IBV_WC_SUCCESS) {
			wc[n].opcode = IBV_WC_BIND_MW;
			wc[n].byte_len = 0xdeadbeef;
		}
	}
	return n;
}

static int
fake_poll_cq(struct ibv_cq *ibcq, int max, struct ibv_wc *wc)
{
	int n;

	pthread_mutex_lock(&lock);
	n = poll_locked(ibcq, max, wc);
	pthread_mutex_unlock(&lock);
	return n;
}

/* -- queue pairs -- */

struct fake_qp *
fake_qp_of(uint32_t qpn)
{
	struct fake_qp *qp = NULL;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < QPS && qp == NULL; i++)
		if (qps[i] != NULL && qps[i]->qp.qp_num == qpn)
			qp = qps[i];
	pthread_mutex_unlock(&lock);
	return qp;
}

struct ibv_qp *
ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct fake_dev *d = dev_of(pd->context);
	struct fake_qp *qp;
	unsigned i = 0;

	ck_assert_int_eq(init->qp_type, IBV_QPT_RC);
	ck_assert_int_eq(init->sq_sig_all, 0);
	if (call_fails(d))
		return NULL;
	if (init->cap.max_inline_data > d->max_inline || (int)init->cap.max_send_wr > d->attr.max_qp_wr ||
	    (int)init->cap.max_recv_wr > d->attr.max_qp_wr || (int)init->cap.max_send_sge > d->attr.max_sge) {
		errno = EINVAL;
		return NULL;
	}
	pthread_mutex_lock(&lock);
	while (i < QPS && qps[i] != NULL)
		i++;
	ck_assert_uint_lt(i, QPS);
	qp = fake_alloc(sizeof(*qp));
	qp->qp = (struct ibv_qp){
		.context = pd->context,
		.pd = pd,
		.send_cq = init->send_cq,
		.recv_cq = init->recv_cq,
		.qp_num = next_qpn++,
		.state = IBV_QPS_RESET,
		.qp_type = IBV_QPT_RC,
	};
	qp->dev = d;
	qp->cap = init->cap;
	qp->sq = fake_alloc((qp->cap.max_send_wr) * sizeof(*qp->sq));
	qp->rq = fake_alloc((qp->cap.max_recv_wr) * sizeof(*qp->rq));
	qp->fail_at = qp->refuse_send_at = qp->refuse_recv_at = FAKE_NEVER;
	qps[i] = qp;
	qps_end = i < qps_end ? qps_end : i + 1;
	((struct fake_pd *)(void *)pd)->users++;
	((struct fake_pd *)(void *)pd)->qps++;
	((struct fake_cq *)(void *)init->send_cq)->qps++;
	fake.qp_cnt++;
	pthread_mutex_unlock(&lock);
	return &qp->qp;
}

static void
forget_async(struct fake_ctx *c, const struct ibv_qp *qp)
{
	char byte;

	LIST_FOREACH(n, &c->async) {
		struct async_ev *e = CONTAINER_OF(n, struct async_ev, node);

		if (!e->of_qp || e->ev.element.qp != qp)
			continue;
		list_remove(n);
		free(e);
		ck_assert_int_eq(read(c->ctx.async_fd, &byte, 1), 1);
	}
}

int
ibv_destroy_qp(struct ibv_qp *ibqp)
{
	struct fake_qp *qp = (struct fake_qp *)(void *)ibqp;
	struct fake_ctx *c = (struct fake_ctx *)(void *)ibqp->context;
	struct fake_cq *cq = (struct fake_cq *)(void *)ibqp->send_cq;

	ck_assert_msg(
	    !fake_cm_holds(ibqp->qp_num), "a queue pair is destroyed while it is being connected: this blocks");
	pthread_mutex_lock(&lock);
	destroy_waiting++;
	while (fake.destroy_waits)
		pthread_cond_wait(&go, &lock);
	destroy_waiting--;
	while (c->unacked > 0)
		pthread_cond_wait(&go, &lock);
	forget_async(c, ibqp);
	for (unsigned i = 0; i < QPS; i++)
		if (qps[i] == qp)
			qps[i] = NULL;
	for (uint32_t i = 0; i < cq->cap; i++)
		if (cq->owner[i] == qp)
			cq->owner[i] = NULL;
	if (fake.destroy_cleans)
		cq->tail = cq->head; /* no other QP has this CQ */
	cq->qps--;
	((struct fake_pd *)(void *)ibqp->pd)->users--;
	((struct fake_pd *)(void *)ibqp->pd)->qps--;
	free(qp->sq);
	free(qp->rq);
	free(qp);
	fake.qp_cnt--;
	pthread_mutex_unlock(&lock);
	return 0;
}

unsigned
fake_destroy_waiting(unsigned n)
{
	unsigned got = 0;

	for (unsigned i = 0; i < 20000; i++) {
		pthread_mutex_lock(&lock);
		got = destroy_waiting;
		pthread_mutex_unlock(&lock);
		if (got >= n)
			break;
		pause_ms();
	}
	return got;
}

void
fake_destroy_go(void)
{
	pthread_mutex_lock(&lock);
	fake.destroy_waits = false;
	pthread_cond_broadcast(&go);
	pthread_mutex_unlock(&lock);
}

unsigned
fake_rtr_waiting(unsigned n)
{
	unsigned got = 0;

	for (unsigned i = 0; i < 20000; i++) {
		const struct timespec ms = { .tv_nsec = 1000000 };

		pthread_mutex_lock(&lock);
		got = rtr_waiting;
		pthread_mutex_unlock(&lock);
		if (got >= n)
			break;
		nanosleep(&ms, NULL);
	}
	return got;
}

bool
fake_comes_to(const struct fake_qp *qp, enum ibv_qp_state state)
{
	bool there = false;

	for (unsigned i = 0; i < 20000 && !there; i++) {
		const struct timespec ms = { .tv_nsec = 1000000 };

		pthread_mutex_lock(&lock);
		there = qp->qp.state == state;
		pthread_mutex_unlock(&lock);
		if (!there)
			nanosleep(&ms, NULL);
	}
	return there;
}

void
fake_rtr_go(int err)
{
	pthread_mutex_lock(&lock);
	fake.rtr_err = err;
	rtr_gone++;
	pthread_cond_broadcast(&go);
	pthread_mutex_unlock(&lock);
}

/* Called with the lock: as the kernel asks for the peer's MAC address. */
static int
resolve(void)
{
	unsigned before = rtr_gone;

	rtr_waiting++;
	while (fake.rtr_waits && rtr_gone == before)
		pthread_cond_wait(&go, &lock);
	rtr_waiting--;
	return fake.rtr_err;
}

#define MASK_INIT (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define MASK_RTR                                                                                                    \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | \
	    IBV_QP_MIN_RNR_TIMER)
#define MASK_RTS \
	(IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC)

static bool
is_iwarp(const struct fake_qp *qp)
{
	return qp->dev->dev.transport_type == IBV_TRANSPORT_IWARP;
}

void
fake_join(struct fake_qp *a, struct fake_qp *b)
{
	pthread_mutex_lock(&lock);
	a->wire = b->qp.qp_num;
	b->wire = a->qp.qp_num;
	a->qp.state = b->qp.state = IBV_QPS_RTS;
	pthread_mutex_unlock(&lock);
}

static int
modify(struct fake_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	enum ibv_qp_state from = qp->qp.state;
	int err;

	if (!(mask & IBV_QP_STATE)) {
		ck_assert(!is_iwarp(qp));
		ck_assert_int_eq(mask, IBV_QP_ACCESS_FLAGS);
		ck_assert_int_eq(from, IBV_QPS_RTS);
		ck_assert_uint_eq(attr->qp_access_flags, 0);
		qp->revoked = true;
		return 0;
	}
	switch ((int)attr->qp_state) {
	case IBV_QPS_INIT:
		ck_assert_int_eq(mask, is_iwarp(qp) ? IBV_QP_STATE | IBV_QP_ACCESS_FLAGS : MASK_INIT);
		ck_assert_int_eq(from, IBV_QPS_RESET);
		qp->init = *attr;
		break;
	case IBV_QPS_RTR:
		ck_assert(!is_iwarp(qp));
		ck_assert_int_eq(mask, MASK_RTR);
		ck_assert_int_eq(from, IBV_QPS_INIT);
		err = resolve();
		if (err != 0)
			return err;
		if (qp->qp.state != from)
			return EINVAL; /* overtaken */
		qp->rtr = *attr;
		break;
	case IBV_QPS_RTS:
		ck_assert_int_eq(mask, MASK_RTS);
		ck_assert_int_eq(from, IBV_QPS_RTR);
		if (qp->rts_err != 0)
			return qp->rts_err;
		qp->rts = *attr;
		break;
	case IBV_QPS_ERR:
		ck_assert_int_eq(mask, IBV_QP_STATE);
		if (qp->to_err_err != 0)
			return qp->to_err_err;
		break;
	default:
		ck_abort_msg("unexpected state %d", attr->qp_state);
	}
	qp->qp.state = attr->qp_state;
	return 0;
}

int
ibv_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct fake_qp *qp = (struct fake_qp *)(void *)ibqp;
	int err;

	pthread_mutex_lock(&lock);
	err = qp->dev->gone ? EIO : modify(qp, attr, mask);
	pthread_mutex_unlock(&lock);
	return err;
}

/* -- posting -- */

static int
take_send(struct fake_qp *qp, const struct ibv_send_wr *wr)
{
	struct fake_wqe *w = &qp->sq[qp->sq_head % qp->cap.max_send_wr];
	size_t len = 0;

	if (qp->qp.state != IBV_QPS_RTS && qp->qp.state != IBV_QPS_ERR)
		return EINVAL;
	if (qp->dev->gone)
		return EIO;
	if (qp->sq_head == qp->refuse_send_at) {
		qp->refuse_send_at = qp->refuse_on ? qp->refuse_send_at : FAKE_NEVER;
		return ENOMEM;
	}
	ck_assert_msg(qp->sq_head - qp->sq_free < qp->cap.max_send_wr, "a send queue overflows");
	ck_assert_int_le(wr->num_sge, (int)qp->cap.max_send_sge);
	*w = (struct fake_wqe){
		.wr_id = wr->wr_id,
		.op = wr->opcode,
		.flags = wr->send_flags,
		.num_sge = wr->num_sge,
		.raddr = wr->wr.rdma.remote_addr,
		.rkey = wr->wr.rdma.rkey,
	};
	for (int i = 0; i < wr->num_sge; i++) {
		w->sge[i] = wr->sg_list[i];
		if (!(wr->send_flags & IBV_SEND_INLINE))
			continue;
		ck_assert_uint_le(len + w->sge[i].length, qp->cap.max_inline_data);
		memcpy(w->bytes + len, (const void *)(uintptr_t)w->sge[i].addr, w->sge[i].length);
		len += w->sge[i].length;
	}
	qp->sq_head++;
	fake.inlined += (wr->send_flags & IBV_SEND_INLINE) != 0;
	fake.solicited += (wr->send_flags & IBV_SEND_SOLICITED) != 0;
	fake.signaled += (wr->send_flags & IBV_SEND_SIGNALED) != 0;
	fake.sent += wr->opcode == IBV_WR_SEND;
	fake.written += wr->opcode == IBV_WR_RDMA_WRITE;
	return 0;
}

static int
fake_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)(void *)ibqp;
	int err = 0;

	qp->post_calls++;
	for (; wr != NULL; wr = wr->next) {
		err = take_send(qp, wr);
		if (err != 0)
			break;
	}
	if (err != 0)
		*bad = wr;
	return err;
}

static int
fake_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)(void *)ibqp;

	pthread_mutex_lock(&lock);
	ck_assert_int_ne(ibqp->state, IBV_QPS_RESET);
	for (; wr != NULL; wr = wr->next) {
		if (qp->rq_head == qp->refuse_recv_at || qp->dev->gone) {
			*bad = wr;
			pthread_mutex_unlock(&lock);
			return ENOMEM;
		}
		ck_assert_msg(qp->rq_head - qp->rq_free < qp->cap.max_recv_wr, "a receive queue overflows");
		ck_assert_int_eq(wr->num_sge, 1);
		qp->rq[qp->rq_head++ % qp->cap.max_recv_wr] =
		    (struct fake_wqe){ .wr_id = wr->wr_id, .num_sge = 1, .sge = { wr->sg_list[0] } };
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

/* -- the wire -- */

uint32_t
fake_sends_left(const struct fake_qp *qp)
{
	return qp->sq_head - qp->sq_next;
}

uint32_t
fake_recvs_left(const struct fake_qp *qp)
{
	return qp->rq_head - qp->rq_next;
}

/* The request at sq_next ends. */
static void
send_ends(struct fake_qp *qp, enum ibv_wc_status status)
{
	const struct fake_wqe *w = &qp->sq[qp->sq_next++ % qp->cap.max_send_wr];
	const struct ibv_wc wc = {
		.wr_id = w->wr_id,
		.status = status,
		.opcode = w->op == IBV_WR_SEND  ? IBV_WC_SEND
		    : w->op == IBV_WR_RDMA_READ ? IBV_WC_RDMA_READ
		                                : IBV_WC_RDMA_WRITE,
		.vendor_err = qp->sq_next,
		.qp_num = qp->qp.qp_num,
	};

	if (status != IBV_WC_SUCCESS || w->flags & IBV_SEND_SIGNALED)
		cq_push(qp, qp->qp.send_cq, &wc);
	if (status != IBV_WC_SUCCESS)
		qp->qp.state = IBV_QPS_ERR;
}

static void
recv_ends(struct fake_qp *qp, enum ibv_wc_status status, uint32_t len)
{
	const struct fake_wqe *w = &qp->rq[qp->rq_next++ % qp->cap.max_recv_wr];
	const struct ibv_wc wc = {
		.wr_id = w->wr_id,
		.status = status,
		.opcode = IBV_WC_RECV,
		.byte_len = len,
		.vendor_err = qp->rq_next,
		.qp_num = qp->qp.qp_num,
	};

	cq_push(qp, qp->qp.recv_cq, &wc);
	if (status != IBV_WC_SUCCESS)
		qp->qp.state = IBV_QPS_ERR;
}

void
fake_bogus(struct fake_qp *qp, uint64_t wr_id, enum ibv_wc_status status)
{
	const struct ibv_wc wc = { .wr_id = wr_id, .status = status, .opcode = IBV_WC_SEND, .vendor_err = qp->sq_free };

	cq_push(qp, qp->qp.send_cq, &wc);
}

static bool
flush(struct fake_qp *qp)
{
	bool any = false;

	for (; !qp->no_flush && fake_sends_left(qp) > 0; any = true)
		send_ends(qp, IBV_WC_WR_FLUSH_ERR);
	for (; !qp->no_flush && fake_recvs_left(qp) > 0; any = true)
		recv_ends(qp, IBV_WC_WR_FLUSH_ERR, 0);
	return any;
}

/* All bytes of a request: false when our own memory is not accessible. */
static bool
gather(const struct fake_qp *qp, const struct fake_wqe *w, uint8_t *out, uint32_t *len)
{
	*len = 0;
	for (int i = 0; i < w->num_sge; i++) {
		const struct ibv_sge *s = &w->sge[i];
		const uint8_t *from = w->flags & IBV_SEND_INLINE ? w->bytes + *len
		                                                 : mr_bytes(qp->qp.pd, s->lkey, 0, s->addr, s->length);

		if (from == NULL)
			return false;
		memcpy(out + *len, from, s->length);
		*len += s->length;
	}
	return true;
}

static struct fake_qp *
peer_of(const struct fake_qp *qp)
{
	struct fake_qp *p = fake_qp_of(is_iwarp(qp) ? qp->wire : qp->rtr.dest_qp_num);

	if (is_iwarp(qp))
		return p != NULL && p->qp.state == IBV_QPS_RTS && p->wire == qp->qp.qp_num ? p : NULL;
	if (p == NULL || (p->qp.state != IBV_QPS_RTR && p->qp.state != IBV_QPS_RTS) ||
	    p->rtr.dest_qp_num != qp->qp.qp_num)
		return NULL;
	ck_assert_uint_eq(p->rtr.rq_psn, qp->rts.sq_psn);
	ck_assert_int_eq(p->rtr.path_mtu, qp->rtr.path_mtu);
	return p;
}

static enum ibv_wc_status
do_write(struct fake_qp *p, const struct fake_wqe *w, const uint8_t *bytes, uint32_t len)
{
	uint8_t *to = mr_bytes(p->qp.pd, w->rkey, IBV_ACCESS_REMOTE_WRITE, w->raddr, len);

	if (len == 0 && is_iwarp(p))
		return IBV_WC_SUCCESS; /* nobody looks at the key */
	if (to == NULL || p->revoked || !(p->init.qp_access_flags & IBV_ACCESS_REMOTE_WRITE)) {
		p->qp.state = IBV_QPS_ERR;
		fake_async_qp(p, IBV_EVENT_QP_ACCESS_ERR);
		return IBV_WC_REM_ACCESS_ERR;
	}
	memcpy(to, bytes, len);
	return IBV_WC_SUCCESS;
}

static enum ibv_wc_status
do_send(struct fake_qp *p, const uint8_t *bytes, uint32_t len)
{
	const struct ibv_sge *s = &p->rq[p->rq_next % p->cap.max_recv_wr].sge[0];
	uint8_t *to = mr_bytes(p->qp.pd, s->lkey, 0, s->addr, s->length);

	if (to == NULL || len > s->length) {
		recv_ends(p, to == NULL ? IBV_WC_LOC_PROT_ERR : IBV_WC_LOC_LEN_ERR, 0);
		return to == NULL ? IBV_WC_REM_OP_ERR : IBV_WC_REM_INV_REQ_ERR;
	}
	memcpy(to, bytes, len);
	recv_ends(p, IBV_WC_SUCCESS, len);
	return IBV_WC_SUCCESS;
}

/* False when it is not answered. On iWARP the target needs remote write. */
static bool
do_read(struct fake_qp *qp, struct fake_qp *p, const struct fake_wqe *w)
{
	const struct ibv_sge *s = &w->sge[0];
	uint8_t *from, *to = mr_bytes(qp->qp.pd, s->lkey, 0, s->addr, s->length);

	ck_assert_int_eq(w->num_sge, 1);
	ck_assert_ptr_nonnull(to);
	if (s->length > 0) {
		from = mr_bytes(p->qp.pd, w->rkey, IBV_ACCESS_REMOTE_READ, w->raddr, s->length);
		ck_assert_ptr_nonnull(from);
		memcpy(to, from, s->length);
	}
	ck_assert_uint_ne(w->flags & IBV_SEND_SIGNALED, 0);
	ck_assert_uint_ne(p->init.qp_access_flags & IBV_ACCESS_REMOTE_READ, 0);
	if (p->no_answer || (p->misses && fake_sends_left(qp) < 2))
		return false;
	p->misses = false;
	p->reads_in++;
	p->read_len = s->length;
	send_ends(qp, IBV_WC_SUCCESS);
	return true;
}

/* One request: false when there is none, or it waits for a receive. */
static bool
step(struct fake_qp *qp)
{
	static uint8_t bytes[4 << 20];
	const struct fake_wqe *w = &qp->sq[qp->sq_next % qp->cap.max_send_wr];
	struct fake_qp *p;
	uint32_t len;

	if (qp->qp.state == IBV_QPS_ERR)
		return flush(qp);
	if (qp->qp.state != IBV_QPS_RTS || qp->hold || fake_sends_left(qp) == 0 || qp->dev->gone)
		return false;
	if (qp->sq_next == qp->fail_at) {
		send_ends(qp, qp->fail_status);
		return true;
	}
	p = peer_of(qp);
	if (p == NULL)
		send_ends(qp, IBV_WC_RETRY_EXC_ERR);
	else if (!gather(qp, w, bytes, &len))
		send_ends(qp, IBV_WC_LOC_PROT_ERR);
	else if (w->op == IBV_WR_RDMA_READ)
		return do_read(qp, p, w);
	else if (p->swallows)
		send_ends(qp, IBV_WC_SUCCESS); /* TCP has it */
	else if (w->op == IBV_WR_RDMA_WRITE)
		send_ends(qp, do_write(p, w, bytes, len));
	else if (fake_recvs_left(p) == 0)
		return ck_assert_msg(!is_iwarp(qp), "a Send without a receive kills the stream"), false; /* RNR */
	else
		send_ends(qp, do_send(p, bytes, len));
	return true;
}

bool
fake_run(void)
{
	bool any = false, more;

	if (fake.late)
		return false;
	pthread_mutex_lock(&lock);
	do {
		more = false;
		for (unsigned i = 0; i < qps_end; i++)
			more = (qps[i] != NULL && step(qps[i])) || more;
		more = fake_cm_run() || more;
		any = any || more;
	} while (more);
	pthread_mutex_unlock(&lock);
	return any;
}

/* -- asynchronous events -- */

static void
async_push(struct fake_dev *d, const struct async_ev *from)
{
	struct async_ev *e = fake_alloc(sizeof(*e));

	*e = *from;
	pthread_mutex_lock(&lock);
	list_push(&d->ctx->async, &e->node);
	ck_assert_int_eq(write(d->ctx->async_wr, "", 1), 1);
	pthread_mutex_unlock(&lock);
}

void
fake_async_port(struct fake_dev *d, enum ibv_event_type type, int port)
{
	async_push(d, &(struct async_ev){ .ev = { .event_type = type, .element = { .port_num = port } } });
}

void
fake_async_qp(struct fake_qp *qp, enum ibv_event_type type)
{
	async_push(
	    qp->dev, &(struct async_ev){ .ev = { .event_type = type, .element = { .qp = &qp->qp } }, .of_qp = true });
}

void
fake_async_cq(struct fake_qp *qp, enum ibv_event_type type)
{
	async_push(qp->dev, &(struct async_ev){ .ev = { .event_type = type, .element = { .cq = qp->qp.send_cq } } });
}

void
fake_async_many(struct fake_dev *d, unsigned n)
{
	while (n-- > 0)
		fake_async_port(d, IBV_EVENT_CLIENT_REREGISTER, 1);
}

void
fake_unplug(struct fake_dev *d, bool told)
{
	pthread_mutex_lock(&lock);
	d->gone = true;
	if (told) {
		fake_async_port(d, IBV_EVENT_DEVICE_FATAL, 0);
	} else {
		d->ctx->eio = true;
		ck_assert_int_eq(write(d->ctx->async_wr, "", 1), 1);
	}
	pthread_mutex_unlock(&lock);
}

int
ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *ev)
{
	struct fake_ctx *c = (struct fake_ctx *)(void *)ctx;
	struct async_ev *e;
	char byte;

	ck_assert_msg(fcntl(ctx->async_fd, F_GETFL) & O_NONBLOCK, "reading events may block");
	if (c->eio) {
		errno = EIO;
		return -1;
	}
	pthread_mutex_lock(&lock);
	if (read(ctx->async_fd, &byte, 1) != 1) {
		pthread_mutex_unlock(&lock);
		return -1;
	}
	e = CONTAINER_OF(list_pop(&c->async), struct async_ev, node);
	*ev = e->ev;
	free(e);
	c->unacked++;
	pthread_mutex_unlock(&lock);
	return 0;
}

void
ibv_ack_async_event(struct ibv_async_event *ev)
{
	/* Which device it was of, an event of a port does not say. */
	bool found = false;

	(void)ev;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < FAKE_DEVS && !found; i++)
		if (fake.devs[i].ctx != NULL && fake.devs[i].ctx->unacked > 0) {
			fake.devs[i].ctx->unacked--;
			found = true;
		}
	pthread_cond_broadcast(&go);
	pthread_mutex_unlock(&lock);
	ck_assert_msg(found, "an event is acknowledged twice");
}
