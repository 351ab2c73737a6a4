/* Soft iWARP: device, memory, table of operations; see siw.h and siw_int.h. */
#include "rnic/siw/siw.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "rnic/siw/siw_llp.h"
#include "rnic/wr.h"

#define STAG_BUCKETS 4096
#define RTT_FRESH_NS 1000000000 /* lifetime of a measured round trip */

void
siw_config_init(struct siw_config *c)
{
	*c = (struct siw_config){
		.name = "siw0",
		.crc = true,
		.rtr = RTR_ANY,
		.mpa_rev = 2,
		.ird = 16,
		.ord = 16,
		.fpdu_max = 16384,
		.connect_ms = 2000,
		.answer_ms = 5000,
		.fence_ms = 5,
		.max_qp = 1024,
	};
}

static void
query(struct rnic_dev *rdev, struct rnic_info *info)
{
	const struct siw_dev *dev = siw_dev(rdev);

	*info = (struct rnic_info){
		.provider = "siw",
		.transport = dev->transport,
		.stack = dev->stack,
		.profile = !rnic_is_sctp(dev->transport)        ? NULL
		    : dev->cfg.sctp_profile == SCTP_DDP_DRAFT00 ? "draft-00"
		                                                : "rfc5043",
		.tls = dev->cfg.transport == SIW_TCP && tls_is_built(),
		.denies = true,
		.port = dev->events.port,
		.vlan = dev->iface.vlan,
		.mtu_code = dev->iface.mtu_code,
		.mpa_port = dev->port,
		.max_qp = dev->cfg.max_qp,
		.max_mr = SIW_MAX_MR,
		.max_sq = SIW_MAX_SQ,
		.max_rq = SIW_MAX_RQ,
		.max_sge = RNIC_SGE_MAX,
		.max_inline = SIW_MAX_INLINE,
		.qp_cnt = dev->qp_cnt,
		.mr_cnt = dev->stags.cnt - dev->qp_cnt, /* each QP has a region */
		.mr_bytes = dev->mr_bytes,
	};
	memcpy(info->name, dev->cfg.name, sizeof(info->name));
	memcpy(info->mac, dev->iface.mac, sizeof(info->mac));
	addr_to_v6(&dev->cfg.addr, info->gid.b);
}

static unsigned
stats(const struct rnic_dev *rdev, struct rnic_stat *out)
{
	static const char *const names[] = { "fpdus_sent", "fpdus_received", "bytes_sent", "bytes_received",
		"reads_sent", "reads_served", "mpa_refused_token", "mpa_refused_parked", "mpa_refused_address",
		"mpa_bad", "terminates_sent", "terminates_received", "crc_errors", "recv_stalls", "accept_pauses",
		"linger_refused", "strangers_limited", "sctp_retransmits", "no_memory" };
	enum { CNT = sizeof(names) / sizeof(names[0]) };

	_Static_assert(CNT == sizeof(struct siw_stats) / sizeof(uint64_t) && CNT <= RNIC_STATS_MAX, "all of them");
	return rnic_stats_fill(names, CNT, &siw_dev(rdev)->stats, out);
}

static bool
last_refused(const struct rnic_dev *rdev, const char *counter, struct sockaddr_storage *from)
{
	return unknown_peers_last(&siw_dev(rdev)->strangers, counter, from);
}

/* -- memory -- */

static int
pd_alloc(struct rnic_dev *rdev, struct rnic_pd **out)
{
	struct siw_pd *pd = calloc(1, sizeof(*pd));

	if (pd == NULL)
		return -ENOMEM;
	pd->pd.dev = rdev;
	*out = &pd->pd;
	return 0;
}

static void
pd_free(struct rnic_pd *pd)
{
	if (pd == NULL)
		return;
	assert(CONTAINER_OF(pd, struct siw_pd, pd)->refs == 0);
	free(CONTAINER_OF(pd, struct siw_pd, pd));
}

/* struct stag_region */
static bool
mr_refuses(const struct stag_region *region, size_t off, size_t len, bool rest, const uint8_t *from, uint8_t **at)
{
	const struct rnic_mr *mr = &CONTAINER_OF((struct stag_region *)(uintptr_t)region, struct siw_mr, region)->mr;

	return rnic_mr_refuses(mr, off, len, rest, from, siw_dev(mr->pd->dev)->rx_buffer, at);
}

static int
mr_reg(struct rnic_pd *pd, void *buf, size_t len, unsigned access, struct rnic_mr **out)
{
	struct siw_dev *dev = siw_dev(pd->dev);
	struct siw_mr *mr;

	if (buf == NULL || len == 0)
		return -EINVAL;
	if (dev->stags.cnt >= SIW_MAX_MR)
		return -ENOSPC;
	mr = calloc(1, sizeof(*mr));
	if (mr == NULL)
		return -ENOMEM;
	mr->region = (struct stag_region){
		.buf = buf,
		.len = len,
		.pd = CONTAINER_OF(pd, struct siw_pd, pd),
		.access = (access & RNIC_ACCESS_REMOTE_WRITE ? STAG_WRITE : 0u) |
		    (access & RNIC_ACCESS_REMOTE_READ ? STAG_READ : 0u),
		.refuses = mr_refuses,
	};
	stag_add(&dev->stags, &mr->region, dev->rng);
	mr->mr = (struct rnic_mr){
		.pd = pd,
		.buf = buf,
		.len = len,
		.lkey = mr->region.stag,
		.rkey = mr->region.stag,
		.addr = mr->region.base,
	};
	dev->mr_bytes += len;
	CONTAINER_OF(pd, struct siw_pd, pd)->refs++;
	*out = &mr->mr;
	return 0;
}

static void
mr_dereg(struct rnic_mr *rmr)
{
	struct siw_mr *mr;

	if (rmr == NULL)
		return;
	mr = CONTAINER_OF(rmr, struct siw_mr, mr);
	struct siw_dev *dev = siw_dev(rmr->pd->dev);
	stag_remove(&dev->stags, &mr->region);
	dev->mr_bytes -= rmr->len;
	CONTAINER_OF(rmr->pd, struct siw_pd, pd)->refs--;
	free(mr);
}

/* -- calls of the loop -- */

static void
dev_free(struct siw_dev *dev)
{
	stag_table_fini(&dev->stags);
	timerq_fini(&dev->timers);
	free(dev->slots);
	free(dev->sctp);
	free(dev);
}

static bool
poll_event(struct rnic_dev *rdev, struct rnic_event *ev)
{
	struct siw_dev *dev = siw_dev(rdev);

	if (events_poll(&dev->events, ev)) {
		if (ev->type == RNIC_EV_QP_FREED)
			siw_qp_free(siw_qp(ev->qp));
		return true;
	}
	if (!dev->ends || dev->qp_cnt > 0 || dev->stags.cnt > 0)
		return false;
	*ev = (struct rnic_event){ .type = RNIC_EV_DEV_FREED };
	dev_free(dev);
	return true;
}

static int64_t
deadline(const struct rnic_dev *rdev)
{
	const struct siw_dev *dev = siw_dev(rdev);

	if (dev->unfinished || dev->ends || events_pending(&dev->events) || !list_empty(&dev->rx_list) ||
	    !list_empty(&dev->tx_list) || !list_empty(&dev->cq_list))
		return dev->dev.now_ns;
	return timerq_next(&dev->timers);
}

static void
progress(struct rnic_dev *rdev, int64_t now_ns)
{
	struct siw_dev *dev = siw_dev(rdev);
	struct list_node turn, *n;

	dev->dev.now_ns = now_ns;
	timerq_run(&dev->timers, now_ns);
	if (dev->unfinished)
		dev->go_on(dev);
	list_move_all(&turn, &dev->rx_list);
	while ((n = list_pop(&turn)) != NULL)
		dev->llp->rx_turn(CONTAINER_OF(n, struct siw_qp, rx_node));
}

static int
qp_rts(struct rnic_qp *qp)
{
	(void)qp;
	return 0; /* both sides may send once connected */
}

int64_t
siw_path_rtt(struct rnic_qp *rqp)
{
	struct siw_qp *qp = siw_qp(rqp);
	int64_t now = qp->dev->dev.now_ns;

	if (qp->rtt_asked_ns == 0 || now - qp->rtt_asked_ns >= RTT_FRESH_NS) {
		qp->rtt_asked_ns = now;
		qp->dev->llp->learn_rtt(qp);
	}
	return qp->rtt_ns;
}

static void
conn_info(struct rnic_qp *rqp, struct rnic_conn_info *out)
{
	struct siw_qp *qp = siw_qp(rqp);

	if (qp->state >= SIW_REQUESTED && qp->state <= SIW_RTS)
		qp->dev->llp->conn_info(qp, out);
}

static enum rnic_reach
reaches(struct rnic_dev *rdev, const struct rnic_gid *gid)
{
	const struct siw_dev *dev = siw_dev(rdev);
	struct sockaddr_storage to;

	/* The routes of the loopback interface do not show which peers it reaches. */
	if (iface_remote(&dev->cfg.addr, gid, 0, &to) != 0)
		return RNIC_REACH_NONE;
	return iface_reach(&dev->cfg.addr, dev->iface.loopback ? 0 : dev->iface.index, &to);
}

static void
dev_end(struct rnic_dev *rdev)
{
	struct siw_dev *dev = siw_dev(rdev);

	siw_pend_drop_all(dev);
	siw_linger_end_all(dev);
	dev->llp->unlisten(dev);
	dev->ends = true;
}

static const struct rnic_ops siw_ops = {
	.query = query,
	.stats = stats,
	.last_refused = last_refused,
	.pd_alloc = pd_alloc,
	.pd_free = pd_free,
	.mr_reg = mr_reg,
	.mr_dereg = mr_dereg,
	.qp_create = siw_qp_create,
	.qp_expect = siw_qp_expect,
	.qp_connect = siw_qp_connect,
	.qp_rts = qp_rts,
	.qp_disconnect = siw_qp_disconnect,
	.qp_destroy = siw_qp_destroy,
	.post_send = siw_post_send,
	.post_recv = siw_post_recv,
	.credits = siw_credits,
	.peer_depths = siw_peer_depths,
	.path_rtt = siw_path_rtt,
	.conn_info = conn_info,
	.rest = siw_qp_rest,
	.fence = siw_fence,
	.poll = siw_poll,
	.poll_event = poll_event,
	.reaches = reaches,
	.flush = siw_flush,
	.deadline = deadline,
	.progress = progress,
	.free = dev_end,
};

static const char *
check_config(const struct siw_config *c)
{
	if (c->addr.ss_family != AF_INET && c->addr.ss_family != AF_INET6)
		return "address";
	for (unsigned i = 0; i < c->more_addrs.cnt; i++)
		if (c->more_addrs.at[i].ss_family != c->addr.ss_family)
			return "addresses";
	if (c->port_max < c->port_min || (c->port_min == 0 && c->port_max != 0))
		return "port range";
	if (c->ird == 0 || c->ird >= DEPTH_NONE)
		return "inbound Read depth";
	if (c->ord == 0 || c->ord >= DEPTH_NONE)
		return "outbound Read depth";
	if ((c->rtr & RTR_ANY) == 0)
		return "RTR kinds";
	if (c->mpa_rev < 1 || c->mpa_rev > 2)
		return "MPA revision";
	if (c->fpdu_max != 0 && (c->fpdu_max < 128 || c->fpdu_max > MPA_ULPDU_MAX))
		return "largest FPDU";
	if (c->max_qp == 0 || c->max_qp > SIW_MAX_QP)
		return "queue pairs";
	if (c->connect_ms == 0 || c->answer_ms == 0)
		return "time limit";
	return NULL;
}

int
siw_open(const struct siw_config *cfg, const struct rnic_loop *loop, struct rng *rng, struct rnic_dev **out,
    const char **err)
{
	*err = check_config(cfg);
	if (*err != NULL)
		return -EINVAL;
	*err = "memory";
	struct siw_dev *dev = calloc(1, sizeof(*dev));
	if (dev == NULL)
		return -ENOMEM;
	*dev = (struct siw_dev){
		.dev = { .ops = &siw_ops },
		.cfg = *cfg,
		.neg = {
			.enhanced = cfg->mpa_rev >= 2,
			.crc = cfg->crc,
			.markers = cfg->markers,
			.depths = {
				.p2p = true,
				.rtr = cfg->rtr & RTR_ANY,
				.ird = cfg->ird,
				.ird_max = cfg->ird,
				.ord = cfg->ord,
				.ord_min = 1, /* a write is complete when a Read after it is answered */
			},
		},
		.llp = cfg->transport == SIW_SCTP ? &siw_sctp_llp : &siw_tcp_llp,
		.transport = RNIC_TRANSPORT_IWARP,
		.listen_fd = -1,
		.loop = *loop,
		.rng = rng,
	};
	timerq_init(&dev->timers);
	list_init(&dev->pending);
	list_init(&dev->parked);
	for (unsigned kind = 0; kind < SIW_LINGER_KINDS; kind++)
		list_init(&dev->lingering[kind]);
	list_init(&dev->rx_list);
	list_init(&dev->tx_list);
	list_init(&dev->cq_list);
	events_init(&dev->events, RNIC_PORT_UP);
	dev->slots = calloc(1u << SIW_SLOT_BITS, sizeof(*dev->slots));
	dev->next_slot = rng_below(rng, SIW_MAX_QP);
	int rc = stag_table_init(&dev->stags, STAG_BUCKETS);
	if (rc == 0 && dev->slots == NULL)
		rc = -ENOMEM;
	if (rc == 0) {
		iface_learn(&dev->iface, iface_of(&dev->cfg.addr), dev->rng);
		rc = dev->llp->listen(dev, err);
	}
	if (rc < 0) {
		dev_free(dev);
		return rc;
	}
	*out = &dev->dev;
	return 0;
}

int
siw_listening(const struct rnic_dev *rdev)
{
	const struct siw_dev *dev = siw_dev(rdev);

	return dev->cfg.transport == SIW_TCP ? dev->listen_fd : -1;
}

void
siw_stop_listening(struct rnic_dev *rdev)
{
	struct siw_dev *dev = siw_dev(rdev);

	if (dev->cfg.transport == SIW_TCP)
		siw_accept_close(dev);
}

void
siw_set_port_state(struct rnic_dev *rdev, enum rnic_port_state to)
{
	struct siw_dev *dev = siw_dev(rdev);

	if (events_set_port(&dev->events, to) && to == RNIC_PORT_UP)
		iface_learn(&dev->iface, iface_of(&dev->cfg.addr), dev->rng);
}
