/* Links: setup, receiving, end; see link.h. */
#include "smcr/group/link.h"

#include <errno.h>
#include <string.h>

#include "base/minmax.h"
#include "base/pages.h"
#include "smcr/data/conn.h"
#include "smcr/data/failover.h"
#include "smcr/data/link_post.h"
#include "smcr/data/link_tx.h"
#include "smcr/data/rmb.h"
#include "smcr/data/sndbuf.h"
#include "smcr/group/llc.h"
#include "smcr/state/engine.h"
#include "smcr/state/log.h"

#define RECV_LEN 64 /* version 1: a message has 44 bytes; 64 keeps buffers on cache lines */
#define REPOST_MAX (sizeof(((struct link *)0)->recv_repost) / sizeof(uint32_t))

_Static_assert(SMCR_V2_MSG_LEN == LLC_MAX_LEN, "receives are as long as a message may be");

static size_t
recv_bytes(const struct link *link)
{
	return (size_t)link->rq_depth * link->recv_len + (link->lgr->version == LLC_VERSION_2 ? LLC_MAX_LEN : 0);
}

static uint8_t *
recv_at(const struct link *link, uint64_t nr)
{
	return link->recv_buf + (size_t)nr * link->recv_len;
}

/* -- receives -- */

/* Reposts the marked buffers: 0 or a negative errno. */
static int
repost(struct link *link)
{
	struct rnic_recv_wr wr[REPOST_MAX];
	unsigned n = link->recv_repost_cnt;

	link->recv_repost_cnt = 0;
	if (n == 0 || link_has_ended(link))
		return 0;
	for (unsigned i = 0; i < n; i++)
		wr[i] = (struct rnic_recv_wr){ .wr_id = link->recv_repost[i],
			.mr = link->recv_mr,
			.ptr = recv_at(link, link->recv_repost[i]),
			.len = link->recv_len };
	return link->dev->ops->post_recv(link->qp, wr, n);
}

/* False: the message must wait, never with `last`. */
static bool
link_take(struct link *link, const struct link_wait *msg, bool last)
{
	const uint8_t *buf = recv_at(link, msg->buf);

	if (link->lgr->state == LGR_DEAD)
		return true;
	/* A CDC message received before the link ended counts: the peer may validate it (4.6.1). So does the OPEN before. */
	if (msg->len > 0 && buf[0] == CDC_TYPE) {
		if (!conn_rx_cdc(link, buf, msg->len, last))
			return false;
	} else if (!link_has_ended(link) || (msg->len > 0 && buf[0] == OPEN_CONN)) {
		llc_recv(link, buf, msg->len);
	}
	if (link_has_ended(link))
		return true;
	link->recv_repost[link->recv_repost_cnt++] = msg->buf;
	if (link->recv_repost_cnt == REPOST_MAX)
		(void)repost(link); /* a broken QP reports itself */
	else
		link_schedule(link); /* reposted by the next flush at the latest */
	return true;
}

void
link_recv(struct link *link, const struct rnic_wc *wc)
{
	struct link_wait msg = { .buf = (uint32_t)wc->wr_id, .len = wc->len };

	if (wc->status != RNIC_WC_OK || link->lgr->state == LGR_DEAD)
		return;
	link->last_rx_ns = link->lgr->eng->now_ns;
	link_log_up(link);
	if (link->recv_wait_cnt == 0 && link_take(link, &msg, false))
		return;
	link->recv_wait[link->recv_wait_cnt++] = msg;
	if (link->recv_wait_cnt == 1)
		list_push(&link->lgr->eng->waiting_links, &link->wait_node);
}

bool
link_recv_waiting(struct link *link, bool last)
{
	struct link_wait *first = link->recv_wait;

	if (link->recv_wait_cnt == 0 || !link_take(link, first, last))
		return false;
	link->recv_wait_cnt--;
	memmove(first, first + 1, link->recv_wait_cnt * sizeof(*first));
	if (link->recv_wait_cnt == 0)
		list_remove(&link->wait_node);
	return true;
}

bool
link_turn(struct link *link)
{
	(void)repost(link);
	if (link->ack_wanted && link->connected && !link_has_ended(link))
		llc_test_now(link);
	return link_flush(link);
}

/* -- the end -- */

void
link_qp_freed(struct link *link)
{
	link->leaving = false;
	rmb_deregister_all(link->lgr, link);
	sndbuf_deregister_all(link->lgr, link);
	if (link->recv_mr != NULL)
		link->dev->ops->mr_dereg(link->recv_mr);
	if (link->pd != NULL)
		link->dev->ops->pd_free(link->pd);
	pages_free(link->recv_buf, recv_bytes(link));
	pages_free(link->wr, link->wr_cap * sizeof(*link->wr));
	pages_free(link->recv_wait, link->rq_depth * sizeof(*link->recv_wait));
	link->recv_mr = NULL;
	link->pd = NULL;
	link->recv_buf = link->long_buf = NULL;
	link->wr = NULL;
	link->recv_wait = NULL;
}

/* Ends the queue pair; the memory is freed with it, as the device may use it until then. */
static void
release(struct link *link)
{
	timer_cancel(&link->lgr->eng->timers, &link->keepalive);
	list_remove(&link->eng_node);
	list_remove(&link->wait_node);
	link->recv_wait_cnt = 0;
	if (link->qp != NULL) {
		link->leaving = true;
		link->dev->ops->qp_destroy(link->qp);
		link->qp = NULL;
	} else if (!link->leaving) {
		link_qp_freed(link);
	}
}

void
link_free(struct link *link)
{
	struct lgr *lgr = link->lgr;

	release(link);
	timer_cancel(&lgr->eng->timers, &link->delete_timer);
	if (link->state == LINK_DOWN && link->was_active) {
		link->gone_ns = lgr->eng->now_ns;
		link_set_state(link, LINK_GONE, NULL);
		return;
	}
	LIST_EACH(struct remote_rmb, rr, &lgr->remote_rmbs, node)
		rr->on[link->slot].known = false;
	link_set_state(link, LINK_FREE, NULL);
}

void
link_sweep(struct link *link)
{
	if (link->state != LINK_DOWN && link->state != LINK_LOST)
		return;
	if (!link->looked)
		link->lgr->eng->links_to_free = true;
	else if (link->state == LINK_DOWN)
		link_free(link);
	else
		release(link);
}

/* No more posts or placements; the memory is freed at the end of the turn. */
static void
link_stop(struct link *link, enum link_state next, const char *why, bool in_order)
{
	struct lgr *lgr = link->lgr;
	struct smcr *eng = lgr->eng;
	/* The peer may end a group before our last request completes, or a link before its response elsewhere. */
	const char *deleted = in_order ? NULL : llc_retired_why(link);
	bool wanted = in_order || deleted != NULL || lgr->state == LGR_DELETING;

	eng->ctr.links_down += link->state == LINK_ACTIVE;
	eng->ctr.links_lost += link->state == LINK_ACTIVE && !wanted;
	if (link->told_up)
		engine_log(
		    wanted ? SMCR_LOG_LINK_ENDED : SMCR_LOG_LINK_DOWN, lgr, link, 0, deleted != NULL ? deleted : why);
	link_set_state(link, next, why);
	link->down_why = why;
	link->llc_cnt = 0;
	timer_cancel(&eng->timers, &link->keepalive);
	list_remove(&link->eng_node);
	link->dev->ops->qp_disconnect(link->qp, in_order);
	eng->links_to_free = true;
}

void
link_lost(struct link *link, const char *why)
{
	if (link_has_ended(link))
		return;
	link->path_lost = true;
	link_stop(link, link->number != 0 ? LINK_LOST : LINK_DOWN, why, false);
	mark_link_lost(link);
}

void
link_retire(struct link *link, const char *why)
{
	bool active = link->state == LINK_ACTIVE;

	if (link->state == LINK_LOST) {
		link_set_state(link, LINK_DOWN, why);
		link->lgr->eng->links_to_free = true;
		failover_settled(link->lgr);
	}
	if (link_has_ended(link))
		return;
	if (active) {
		(void)link_flush(link);
		link_post_end(link);
	}
	link_stop(link, LINK_DOWN, why, active);
	if (active || link->order == 0)
		mark_link_lost(link);
}

/* -- set-up -- */

/* A free slot, or that of the oldest GONE link; never one that a connection still sends over. */
static struct link *
take_slot(struct lgr *lgr)
{
	struct link *oldest = NULL;

	LGR_EACH_LINK(l, lgr) {
		if (l->conn_cnt > 0 || l->leaving)
			continue;
		if (l->state == LINK_FREE)
			return l;
		if (l->state == LINK_GONE && (oldest == NULL || l->gone_ns < oldest->gone_ns))
			oldest = l;
	}
	if (oldest != NULL)
		link_free(oldest);
	return oldest;
}

static int
link_setup(struct link *link)
{
	struct rnic_dev *dev = link->dev;
	struct rnic_qp_attr attr = { .ctx = link,
		.sq_depth = min_u32(link->lgr->eng->cfg.sq_depth, link->info.max_sq),
		.rq_depth = link->rq_depth,
		.token = link->lgr->token,
		.secret = link->lgr->in_tls ? link->lgr->secret : NULL };
	/* A card has no TLS, also an iWARP card with the transport of soft iWARP on TCP. */
	int err = link->lgr->only_tls && !link->info.tls && link->info.protection == RNIC_PROTECTED_NONE
	    ? -EPROTONOSUPPORT
	    : dev->ops->pd_alloc(dev, &link->pd);

	if (err == 0)
		err = dev->ops->qp_create(link->pd, &attr, &link->qp);
	if (err < 0)
		return err;
	link->qpn = link->qp->qpn;
	link->wr_cap = attr.sq_depth + 1;
	link->wr = pages_alloc(link->wr_cap * sizeof(*link->wr));
	link->recv_buf = pages_alloc(recv_bytes(link));
	link->recv_wait = pages_alloc(link->rq_depth * sizeof(*link->recv_wait));
	if (link->wr == NULL || link->recv_buf == NULL || link->recv_wait == NULL)
		return -ENOMEM;
	if (link->lgr->version == LLC_VERSION_2)
		link->long_buf = recv_at(link, link->rq_depth);
	err = dev->ops->mr_reg(link->pd, link->recv_buf, recv_bytes(link), RNIC_ACCESS_LOCAL, &link->recv_mr);
	for (uint32_t i = 0; i < link->rq_depth && err == 0; i++) {
		link->recv_repost[link->recv_repost_cnt++] = i;
		if (link->recv_repost_cnt == REPOST_MAX || i + 1 == link->rq_depth)
			err = repost(link);
	}
	if (err == 0)
		err = sndbuf_register_all(link->lgr, link);
	LIST_EACH(struct rmb, rmb, &link->lgr->rmbs, node)
		if (err == 0)
			err = rmb_register(rmb, link);
	return err;
}

int
link_new(struct lgr *lgr, struct rnic_dev *dev, struct link **out)
{
	struct link *link = take_slot(lgr);

	if (link == NULL)
		return -ENOSPC;
	*link = (struct link){
		.lgr = lgr,
		.slot = link->slot,
		.order = lgr->links_made++,
		.dev = dev,
		.rtt_ns = -1,
		.last_rx_ns = lgr->eng->now_ns,
		.user_id = (uint32_t)rng_u64(lgr->eng->rng),
	};
	list_init(&link->ready);
	list_init(&link->eng_node);
	list_init(&link->wait_node);
	timer_init(&link->keepalive, llc_keepalive_fired);
	timer_init(&link->delete_timer, llc_deletion_fired);
	link_set_state(link, LINK_CONNECTING, NULL);
	dev->ops->query(dev, &link->info);
	/* A device without a MAC (loopback, tunnels) uses ours. */
	static const uint8_t none[6];
	if (memcmp(link->info.mac, none, sizeof(none)) == 0)
		memcpy(link->info.mac, lgr->eng->mac, sizeof(none));
	link->mtu_code = link->info.mtu_code;
	link->rq_depth = min_u32(lgr->eng->cfg.rq_depth, link->info.max_rq);
	link->recv_len = RECV_LEN;
	if (lgr->version == LLC_VERSION_2) {
		link->rq_depth = min_u32(link->rq_depth, SMCR_V2_RECEIVES);
		link->recv_len = LLC_MAX_LEN;
	}
	int err = link_setup(link);
	if (err < 0) {
		link_free(link);
		return err;
	}
	*out = link;
	return 0;
}

void
link_set_remote(struct link *link, const struct rnic_remote *r)
{
	link->remote = *r;
	link->remote.mtu_code = link->mtu_code = min_u8(link->mtu_code, r->mtu_code);
}

void
link_set_remote_clc(struct link *link, const struct clc_accept *a)
{
	struct rnic_remote r = {
		.qpn = a->qpn, .psn = a->psn, .mtu_code = a->mtu_code, .mpa_port = a->ext.present ? a->ext.mpa_port : 0
	};

	memcpy(r.gid.b, a->gid, sizeof(r.gid.b));
	memcpy(r.mac, a->mac, sizeof(r.mac));
	link_set_remote(link, &r);
}

struct link *
link_named(struct lgr *lgr, const struct clc_accept *a)
{
	LGR_EACH_LINK(l, lgr) {
		/* The client may use a new link once it has answered CONFIRM LINK; its Confirm may arrive first. */
		bool here = l->state == LINK_ACTIVE || l->state == LINK_CONFIRMING || l->state == LINK_LOST;
		/* A CLC message sent during its life may arrive within the CLC timeout (C.5). */
		bool remembered = (l->state == LINK_DOWN && l->was_active) ||
		    (l->state == LINK_GONE && lgr->eng->now_ns - l->gone_ns <= lgr->eng->cfg.clc_ms * MS);

		if ((here || remembered) && l->remote.qpn == a->qpn && link_leads_to(l, a->gid, a->mac))
			return l;
	}
	return NULL;
}

void
link_connected(struct link *link)
{
	if (link->state != LINK_CONNECTING)
		return;
	link->connected = true;
	link_set_state(link, LINK_CONFIRMING, NULL);
	link->last_rx_ns = link->lgr->eng->now_ns;
	llc_link_connected(link);
}

void
link_set_active(struct link *link)
{
	link_set_state(link, LINK_ACTIVE, NULL);
	link->was_active = true;
	link->lgr->eng->ctr.links_up++;
	llc_keepalive_arm(link);
	llc_link_proven(link);
	/* A server has received a response over it. */
	if (link->lgr->role == SMCR_SERVER)
		link_log_up(link);
}
