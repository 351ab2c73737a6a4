/* The verbs device: device, memory, table of operations; see verbs.h and verbs_int.h. */
#include "rnic/verbs/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/addr.h"
#include "rnic/iface.h"
#include "rnic/verbs/verbs_int.h"
#include "rnic/wr.h"

void
verbs_config_init(struct verbs_config *c)
{
	*c = (struct verbs_config){
		.name = "verbs0",
		.port = 1,
		.gid_type = RNIC_GID_ROCE_V2,
		.hop_limit = 64,
		.timeout = 15,
		.retry_cnt = 6,
		.min_rnr_timer = 5,
		.connect_ms = 2000,
		.answer_ms = 5000,
		.fence_ms = 5,
		.max_qp = 1024,
	};
}

static void
query(struct rnic_dev *rdev, struct rnic_info *info)
{
	const struct verbs_dev *dev = verbs_dev(rdev);

	*info = dev->info;
	info->port = dev->events.port;
	info->mtu_code = dev->port.mtu_code;
}

/* -- memory -- */

void
verbs_trouble(struct verbs_dev *dev, int err, const char *why)
{
	const char *memlock = verbs_memlock_why(err);

	why = memlock != NULL ? memlock : why;
	if (why == dev->troubled && dev->dev.now_ns - dev->troubled_ns < (int64_t)VERBS_TROUBLE_MS * 1000000)
		return;
	dev->events.trouble = dev->troubled = why;
	dev->troubled_ns = dev->dev.now_ns;
}

static int
pd_alloc(struct rnic_dev *rdev, struct rnic_pd **out)
{
	struct verbs_dev *dev = verbs_dev(rdev);

	if (dev->gone)
		return -ENODEV;
	struct verbs_pd *pd = calloc(1, sizeof(*pd));
	if (pd == NULL)
		return -ENOMEM;
	errno = 0;
	pd->hw = ibv_alloc_pd(dev->ctx);
	if (pd->hw == NULL) {
		free(pd);
		return errno != 0 ? -errno : -ENOMEM;
	}
	pd->pd.dev = rdev;
	*out = &pd->pd;
	return 0;
}

static void
pd_free(struct rnic_pd *pd)
{
	if (pd == NULL)
		return;
	(void)ibv_dealloc_pd(verbs_pd(pd)->hw);
	free(verbs_pd(pd));
}

static int
mr_reg(struct rnic_pd *pd, void *buf, size_t len, unsigned access, struct rnic_mr **out)
{
	struct verbs_dev *dev = verbs_dev(pd->dev);
	int flags = IBV_ACCESS_LOCAL_WRITE;

	if (buf == NULL || len == 0)
		return -EINVAL;
	if (dev->gone)
		return -ENODEV;
	flags |= access & RNIC_ACCESS_REMOTE_WRITE ? IBV_ACCESS_REMOTE_WRITE : 0;
	flags |= access & RNIC_ACCESS_REMOTE_READ ? IBV_ACCESS_REMOTE_READ : 0;
	struct verbs_mr *mr = calloc(1, sizeof(*mr));
	if (mr == NULL)
		return -ENOMEM;
	errno = 0;
	mr->hw = ibv_reg_mr(verbs_pd(pd)->hw, buf, len, flags);
	if (mr->hw == NULL) {
		int err = errno != 0 ? errno : ENOMEM;

		free(mr);
		verbs_trouble(dev, err, "the RDMA device cannot register more memory");
		return -err;
	}
	mr->mr = (struct rnic_mr){
		.pd = pd, .buf = buf, .len = len, .lkey = mr->hw->lkey, .rkey = mr->hw->rkey, .addr = (uintptr_t)buf
	};
	dev->info.mr_cnt++;
	dev->info.mr_bytes += len;
	*out = &mr->mr;
	return 0;
}

static void
mr_dereg(struct rnic_mr *rmr)
{
	if (rmr == NULL)
		return;
	struct verbs_mr *mr = CONTAINER_OF(rmr, struct verbs_mr, mr);
	struct verbs_dev *dev = verbs_dev(rmr->pd->dev);
	dev->info.mr_cnt--;
	dev->info.mr_bytes -= rmr->len;
	(void)ibv_dereg_mr(mr->hw);
	free(mr);
}

/* -- calls of the loop -- */

static enum rnic_reach
reaches(struct rnic_dev *rdev, const struct rnic_gid *gid)
{
	const struct verbs_dev *dev = verbs_dev(rdev);
	struct sockaddr_storage from, to;
	struct sockaddr_in6 *to6 = (struct sockaddr_in6 *)(void *)&to;

	addr_from_v6(dev->cfg.gid.b, 0, &from);
	addr_from_v6(gid->b, 0, &to);
	if (to.ss_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&to6->sin6_addr))
		to6->sin6_scope_id = dev->gid.ifindex;
	return iface_reach(&from, dev->gid.ifindex, &to);
}

static bool
has_ended(const struct verbs_dev *dev)
{
	return dev->ends && list_empty(&dev->qps) && dev->info.mr_cnt == 0;
}

/* Frees a device, complete or not. */
static void
dev_free(struct verbs_dev *dev)
{
	const struct rnic_loop *l = &dev->loop;

	if (dev->cm.ends.started)
		verbs_cm_fini(dev);
	verbs_iwarp_fini(dev);
	if (dev->channel != NULL) {
		l->unwatch(l->ctx, dev->channel->fd);
		(void)ibv_destroy_comp_channel(dev->channel);
	}
	if (dev->ctx != NULL) {
		l->unwatch(l->ctx, dev->ctx->async_fd);
		(void)ibv_close_device(dev->ctx);
	}
	idtable_fini(&dev->ids);
	timerq_fini(&dev->timers);
	free(dev);
}

static bool
poll_event(struct rnic_dev *rdev, struct rnic_event *ev)
{
	struct verbs_dev *dev = verbs_dev(rdev);

	if (events_poll(&dev->events, ev)) {
		if (ev->type == RNIC_EV_QP_FREED)
			verbs_qp_free(verbs_qp(ev->qp));
		return true;
	}
	if (!has_ended(dev))
		return false;
	*ev = (struct rnic_event){ .type = RNIC_EV_DEV_FREED };
	dev_free(dev);
	return true;
}

static int64_t
deadline(const struct rnic_dev *rdev)
{
	const struct verbs_dev *dev = verbs_dev(rdev);

	if (has_ended(dev) || dev->more || events_pending(&dev->events) || !list_empty(&dev->cq_list) ||
	    !list_empty(&dev->tx_list))
		return dev->dev.now_ns;
	return timerq_next(&dev->timers);
}

static void
progress(struct rnic_dev *rdev, int64_t now_ns)
{
	struct verbs_dev *dev = verbs_dev(rdev);

	dev->dev.now_ns = now_ns;
	if (dev->more) {
		dev->more = false;
		verbs_channel_io(dev, 0);
		verbs_async_io(dev, 0);
		if (verbs_is_iwarp(dev))
			verbs_iwarp_io(dev, 0);
	}
	timerq_run(&dev->timers, now_ns);
}

static void
dev_end(struct rnic_dev *rdev)
{
	struct verbs_dev *dev = verbs_dev(rdev);

	if (verbs_is_iwarp(dev))
		verbs_iwarp_close(dev);
	dev->ends = true;
}

static unsigned
stats(const struct rnic_dev *rdev, struct rnic_stat *out)
{
	static const char *const names[] = { "sends_posted", "writes_posted", "doorbells", "completions", "polls",
		"wakeups", "rnr_retry_exc", "retry_exc", "remote_access_errs", "flushed", "other_errs", "async_events",
		"reads_sent", "mpa_refused_token", "mpa_refused_parked" };
	enum { CNT = sizeof(names) / sizeof(names[0]) };

	_Static_assert(CNT == sizeof(struct verbs_stats) / sizeof(uint64_t) && CNT <= RNIC_STATS_MAX, "all of them");
	return rnic_stats_fill(names, CNT, &verbs_dev(rdev)->stats, out);
}

static bool
last_refused(const struct rnic_dev *rdev, const char *counter, struct sockaddr_storage *from)
{
	return unknown_peers_last(&verbs_dev(rdev)->strangers, counter, from);
}

static const struct rnic_ops verbs_ops = {
	.query = query,
	.stats = stats,
	.last_refused = last_refused,
	.pd_alloc = pd_alloc,
	.pd_free = pd_free,
	.mr_reg = mr_reg,
	.mr_dereg = mr_dereg,
	.qp_create = verbs_qp_create,
	.qp_expect = verbs_qp_expect,
	.qp_connect = verbs_qp_connect,
	.qp_rts = verbs_qp_rts,
	.qp_disconnect = verbs_qp_disconnect,
	.qp_destroy = verbs_qp_destroy,
	.post_send = verbs_post_send,
	.post_recv = verbs_post_recv,
	.credits = verbs_credits,
	.fence = verbs_fence,
	.poll = verbs_poll,
	.poll_event = poll_event,
	.reaches = reaches,
	.flush = verbs_flush,
	.deadline = deadline,
	.progress = progress,
	.free = dev_end,
};

/* -- opening -- */

static const char *
check_config(const struct verbs_config *c)
{
	return c->port == 0                              ? "port"
	    : c->service_level > 15                      ? "service level"
	    : c->hop_limit == 0                          ? "hop limit"
	    : c->timeout == 0 || c->timeout > 31         ? "timeout"
	    : c->retry_cnt > 6                           ? "retry count"
	    : c->min_rnr_timer > 31                      ? "RNR timer"
	    : c->max_qp == 0 || c->max_qp > VERBS_MAX_QP ? "queue pairs"
	                                                 : NULL;
}

static uint32_t
smaller(uint32_t a, int b)
{
	return b < 0 ? 0 : a < (uint32_t)b ? a : (uint32_t)b;
}

static int
learn_port(struct verbs_dev *dev, const char **why)
{
	struct ibv_device_attr attr;

	*why = "the RDMA device does not answer";
	int rc = ibv_query_device(dev->ctx, &attr);
	if (rc != 0)
		return -rc;
	/* One entry of each send queue is for the last request of a queue pair, and a CQ serves both queues. */
	uint32_t half = smaller(UINT32_MAX / 2, attr.max_cqe - 1) / 2;
	dev->phys_ports = attr.phys_port_cnt;
	dev->info = (struct rnic_info){
		.max_qp = smaller(dev->cfg.max_qp, attr.max_qp),
		.max_mr = smaller(UINT32_MAX, attr.max_mr),
		.max_sq = smaller(half, attr.max_qp_wr - 1),
		.max_rq = smaller(half, attr.max_qp_wr),
		.max_sge = smaller(RNIC_SGE_MAX, attr.max_sge),
		.max_inline = VERBS_INLINE,
		.pins = true,
	};
	*why = "the RDMA device has no such port";
	if (dev->cfg.port > dev->phys_ports)
		return -EINVAL;
	verbs_name_port(dev->ctx, attr.vendor_id, dev->cfg.port, &dev->port);
	*why = "the port cannot be queried";
	rc = verbs_read_port(dev->ctx, &dev->port);
	if (rc == 0)
		rc = verbs_read_gids(dev->ctx, dev->phys_ports, &dev->port);
	if (rc == -ENOMEM)
		*why = "memory";
	if (rc < 0)
		return rc;
	if (verbs_is_iwarp(dev)) {
		dev->gid_present = true;
		return 0;
	}
	/* Addressing a peer needs its LID, which SMC-R messages do not carry. */
	*why = "InfiniBand link layer: SMC-R is for RoCE";
	if (dev->port.infiniband)
		return -EOPNOTSUPP;
	*why = "the port does not have this GID";
	return verbs_find_gid(dev) ? 0 : -EADDRNOTAVAIL;
}

/* Creates a queue pair like those of links, to detect missing capabilities now. 0 or a positive errno. */
static int
try_qp(struct verbs_dev *dev, uint32_t inline_bytes)
{
	struct ibv_pd *pd = ibv_alloc_pd(dev->ctx);
	struct ibv_cq *cq = pd != NULL ? ibv_create_cq(dev->ctx, 2, NULL, NULL, 0) : NULL;
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 1,
		    .max_recv_wr = 1,
		    .max_send_sge = dev->info.max_sge,
		    .max_recv_sge = 1,
		    .max_inline_data = inline_bytes },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = cq != NULL ? ibv_create_qp(pd, &init) : NULL;
	int err = qp != NULL ? 0 : errno != 0 ? errno : EIO;

	if (qp != NULL)
		(void)ibv_destroy_qp(qp);
	if (cq != NULL)
		(void)ibv_destroy_cq(cq);
	if (pd != NULL)
		(void)ibv_dealloc_pd(pd);
	return err;
}

static int
learn_qp(struct verbs_dev *dev, const char **why)
{
	int err = try_qp(dev, VERBS_INLINE);

	dev->has_inline = err == 0;
	if (err != 0 && verbs_memlock_why(err) == NULL)
		err = try_qp(dev, 0);
	const char *memlock = verbs_memlock_why(err);
	*why = memlock != NULL ? memlock : "the RDMA device cannot create a queue pair";
	return -err;
}

/* The members of dev->info that describe the opened port. */
static void
learn_identity(struct verbs_dev *dev)
{
	struct rnic_info *info = &dev->info;
	struct iface iface = { 0 };

	iface_learn(&iface, dev->gid.ifindex, dev->rng);
	memcpy(info->name, dev->cfg.name, sizeof(info->name));
	memcpy(info->provider, dev->port.provider, sizeof(info->provider));
	memcpy(info->mac, iface.mac, sizeof(info->mac));
	info->transport = dev->port.transport;
	info->gid = dev->cfg.gid;
	info->protection = dev->cfg.protection;
	info->gid_type = verbs_is_iwarp(dev) ? RNIC_GID_NONE : dev->cfg.gid_type;
	info->vlan = iface.vlan;
	info->retries_forever = dev->port.retries_forever;
}

static int
dev_start(struct verbs_dev *dev, const char **why)
{
	const struct rnic_loop *l = &dev->loop;
	int rc = verbs_open_card(dev->cfg.dev, &dev->ctx, why);

	if (rc == 0)
		rc = learn_port(dev, why);
	if (rc == 0)
		rc = learn_qp(dev, why);
	if (rc < 0)
		return rc;
	*why = "completion channel";
	errno = 0;
	dev->channel = ibv_create_comp_channel(dev->ctx);
	if (dev->channel == NULL)
		return errno != 0 ? -errno : -ENOMEM;
	*why = "event loop";
	if (fcntl(dev->channel->fd, F_SETFL, O_NONBLOCK) < 0 || fcntl(dev->ctx->async_fd, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	rc = l->watch(l->ctx, dev->channel->fd, verbs_channel_io, dev);
	if (rc == 0)
		rc = l->watch(l->ctx, dev->ctx->async_fd, verbs_async_io, dev);
	if (rc == 0)
		rc = verbs_cm_init(dev);
	if (rc == 0 && verbs_is_iwarp(dev))
		rc = verbs_iwarp_open(dev, why);
	if (rc < 0)
		return rc;
	learn_identity(dev);
	events_init(&dev->events, dev->port.state);
	return 0;
}

int
verbs_open(const struct verbs_config *cfg, const struct rnic_loop *loop, struct rng *rng, struct rnic_dev **out,
    const char **why)
{
	*why = check_config(cfg);
	if (*why != NULL)
		return -EINVAL;
	*why = "memory";
	struct verbs_dev *dev = calloc(1, sizeof(*dev));
	if (dev == NULL)
		return -ENOMEM;
	*dev = (struct verbs_dev){ .dev = { .ops = &verbs_ops }, .cfg = *cfg, .loop = *loop, .rng = rng };
	timerq_init(&dev->timers);
	idtable_init(&dev->ids, cfg->max_qp);
	list_init(&dev->qps);
	list_init(&dev->cq_list);
	list_init(&dev->tx_list);
	int rc = dev_start(dev, why);
	if (rc < 0) {
		dev_free(dev);
		return rc;
	}
	*out = &dev->dev;
	return 0;
}

bool
verbs_gid_present(const struct rnic_dev *rdev)
{
	return verbs_dev(rdev)->gid_present;
}

const struct verbs_port *
verbs_port_of(const struct rnic_dev *rdev)
{
	return &verbs_dev(rdev)->port;
}
