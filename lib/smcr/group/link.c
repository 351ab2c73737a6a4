/* Links: set-up, receiving, end. Sending is in link_tx.c. See link.h. */
#include "smcr/group/link.h"

#include <errno.h>
#include <string.h>

#include "base/pages.h"
#include "smcr/data/conn.h"
#include "smcr/engine.h"
#include "smcr/rendezvous/rendezvous.h"

#define RECV_LEN 64 /* a message has 44 bytes; 64 keeps buffers on cache lines */
#define REPOST_MAX (sizeof(((struct link *)0)->recv_repost) / sizeof(uint32_t))

static size_t
recv_bytes(const struct link *link)
{
	return (size_t)link->rq_depth * RECV_LEN;
}

/* Frees whatever of the link is there. */
void
link_release(struct link *link)
{
	struct lgr *lgr = link->lgr;

	llc_keepalive_stop(link);
	list_remove(&link->eng_node);
	if (link->qp != NULL)
		link->dev->ops->qp_destroy(link->qp);
	LIST_FOREACH(n, &lgr->rmbs)
		rmb_deregister(CONTAINER_OF(n, struct rmb, node), link);
	sndbuf_deregister_all(lgr, link);
	if (link->recv_mr != NULL)
		link->dev->ops->mr_dereg(link->recv_mr);
	if (link->pd != NULL)
		link->dev->ops->pd_free(link->pd);
	pages_free(link->recv_buf, recv_bytes(link));
	pages_free(link->wr, link->wr_cap * sizeof(*link->wr));
	link->qp = NULL;
	link->recv_mr = NULL;
	link->pd = NULL;
	link->recv_buf = NULL;
	link->wr = NULL;
}

void
link_free(struct link *link)
{
	struct lgr *lgr = link->lgr;

	link_release(link);
	timer_cancel(&lgr->eng->timers, &link->deletion);
	LIST_FOREACH(n, &lgr->remote_rmbs)
		CONTAINER_OF(n, struct remote_rmb, node)->on[link->slot].known = false;
	if (link->state != LINK_GONE)
		lgr->link_cnt--;
	link->state = LINK_FREE;
}

void
link_bury(struct link *link)
{
	if (!link->was_active) {
		link_free(link);
		return;
	}
	link_release(link);
	timer_cancel(&link->lgr->eng->timers, &link->deletion);
	link->lgr->link_cnt--;
	link->state = LINK_GONE;
	link->gone_ns = link->lgr->eng->now_ns;
}

/* A free slot, or that of the link that has been gone for longest; never one that a connection still sends over. */
static struct link *
take_slot(struct lgr *lgr)
{
	struct link *oldest = NULL;

	for (unsigned i = 0; i < LINK_SLOTS; i++) {
		struct link *l = &lgr->links[i];

		if (l->conn_cnt > 0)
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

static uint32_t
smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static int
link_setup(struct link *link)
{
	struct smcr *eng = link->lgr->eng;
	struct rnic_dev *dev = link->dev;
	struct rnic_qp_attr attr = {
		.ctx = link,
		.sq_depth = smaller(eng->cfg.sq_depth, link->info.max_sq),
		.rq_depth = link->rq_depth,
		.token = link->lgr->token,
	};
	int err = dev->ops->pd_alloc(dev, &link->pd);

	if (err == 0)
		err = dev->ops->qp_create(link->pd, &attr, &link->qp);
	if (err < 0)
		return err;
	link->qpn = link->qp->qpn;
	link->wr_cap = attr.sq_depth + 1;
	link->wr = pages_alloc(link->wr_cap * sizeof(*link->wr));
	link->recv_buf = pages_alloc(recv_bytes(link));
	if (link->wr == NULL || link->recv_buf == NULL)
		return -ENOMEM;
	err = dev->ops->mr_reg(link->pd, link->recv_buf, recv_bytes(link), RNIC_ACCESS_LOCAL, &link->recv_mr);
	if (err == 0)
		err = link_recv_fill(link);
	if (err == 0)
		err = sndbuf_register_all(link->lgr, link);
	LIST_FOREACH(n, &link->lgr->rmbs)
		if (err == 0)
			err = rmb_register(CONTAINER_OF(n, struct rmb, node), link);
	return err;
}

int
link_new(struct lgr *lgr, struct rnic_dev *dev, struct link **out)
{
	struct link *link = take_slot(lgr);
	int err;

	if (link == NULL)
		return -ENOSPC;
	*link = (struct link){
		.lgr = lgr,
		.slot = (unsigned)(link - lgr->links),
		.order = lgr->links_made++,
		.state = LINK_CONNECTING,
		.dev = dev,
		.rtt_ns = -1,
		.last_rx_ns = lgr->eng->now_ns,
		.user_id = (uint32_t)rng_u64(lgr->eng->rng),
	};
	list_init(&link->ready);
	list_init(&link->eng_node);
	llc_init_link(link);
	lgr->link_cnt++;
	dev->ops->query(dev, &link->info);
	/* A device without a MAC has ours (loopback, tunnels). */
	static const uint8_t none[6];
	if (memcmp(link->info.mac, none, sizeof(none)) == 0)
		memcpy(link->info.mac, lgr->eng->mac, sizeof(none));
	link->mtu_code = link->info.mtu_code;
	link->rq_depth = smaller(lgr->eng->cfg.rq_depth, link->info.max_rq);
	err = link_setup(link);
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
	if (r->mtu_code < link->mtu_code)
		link->mtu_code = r->mtu_code;
	link->remote.mtu_code = link->mtu_code;
}

void
link_set_remote_clc(struct link *link, const struct clc_accept *a)
{
	struct rnic_remote r = {
		.qpn = a->qpn,
		.psn = a->psn,
		.mtu_code = a->mtu_code,
		.mpa_port = a->ext.present ? a->ext.mpa_port : 0,
	};

	memcpy(r.gid.b, a->gid, sizeof(r.gid.b));
	memcpy(r.mac, a->mac, sizeof(r.mac));
	link_set_remote(link, &r);
}

/* A CLC message that was sent while it lived can arrive for as long as one is waited for (C.5). */
static bool
is_remembered(const struct link *link)
{
	if (link->state != LINK_GONE)
		return link->state == LINK_DOWN && link->was_active;
	return link->lgr->eng->now_ns - link->gone_ns <= link->lgr->eng->cfg.clc_ms * MS;
}

bool
link_is_remote(const struct link *link, const struct clc_accept *a)
{
	/* The client may use a new link as soon as it has answered our CONFIRM LINK; its Confirm may be faster than that. */
	bool here = link->state == LINK_ACTIVE || link->state == LINK_CONFIRMING || link->state == LINK_LOST ||
	    is_remembered(link);

	return here && link->remote.qpn == a->qpn && memcmp(link->remote.gid.b, a->gid, sizeof(a->gid)) == 0 &&
	    memcmp(link->remote.mac, a->mac, sizeof(a->mac)) == 0;
}

void
link_connected(struct link *link)
{
	if (link->state != LINK_CONNECTING)
		return;
	link->connected = true;
	link->state = LINK_CONFIRMING;
	link->last_rx_ns = link->lgr->eng->now_ns;
	if (link->lgr->flow[LLC_FLOW_LINK].new_link == link)
		llc_new_link_connected(link);
	else
		rdv_link_connected(link->lgr);
}

void
link_set_active(struct link *link)
{
	link->state = LINK_ACTIVE;
	link->was_active = true;
	link->lgr->active_cnt++;
	link->lgr->eng->ctr.links_up++;
	llc_keepalive_start(link);
	engine_log(link->lgr->eng, SMCR_LOG_LINK_UP, link->lgr, link, link->info.name);
}

/* No more posts, nothing is placed any more; the memory goes at the end of the turn. */
void
link_stop(struct link *link, enum link_state next, const char *why, bool graceful)
{
	struct smcr *eng = link->lgr->eng;
	/* The peer may be quicker to end a group than our last request. */
	bool in_order = graceful || link->lgr->state == LGR_DELETING;

	if (link->state == LINK_LOST && next != LINK_LOST) {
		link->state = next;
		failover_settled(link->lgr);
	}
	if (link_has_ended(link)) {
		eng->links_to_free = true;
		return;
	}
	if (link->state == LINK_ACTIVE) {
		link->lgr->active_cnt--;
		eng->ctr.links_down++;
		engine_log(eng, in_order ? SMCR_LOG_LINK_ENDED : SMCR_LOG_LINK_DOWN, link->lgr, link, why);
	}
	if (graceful)
		link_post_end(link);
	link->state = next;
	link->down_why = why;
	link->llc_cnt = 0;
	llc_keepalive_stop(link);
	list_remove(&link->eng_node);
	link->dev->ops->qp_disconnect(link->qp, graceful);
	eng->links_to_free = true;
}

void
link_down(struct link *link, const char *why)
{
	if (link_has_ended(link))
		return;
	link_stop(link, link->number != 0 ? LINK_LOST : LINK_DOWN, why, false);
	lgr_link_down(link->lgr, link);
}

void
link_retire(struct link *link, const char *why)
{
	if (link_has_ended(link)) {
		link_stop(link, LINK_DOWN, why, false);
		return;
	}
	(void)link_flush(link);
	link_stop(link, LINK_DOWN, why, true);
	lgr_link_down(link->lgr, link);
}

/* -- receiving -- */

static int
post(struct link *link, const uint32_t *buf, unsigned n)
{
	struct rnic_recv_wr wr[REPOST_MAX];

	for (unsigned i = 0; i < n; i++)
		wr[i] = (struct rnic_recv_wr){
			.wr_id = buf[i],
			.mr = link->recv_mr,
			.ptr = link->recv_buf + (size_t)buf[i] * RECV_LEN,
			.len = RECV_LEN,
		};
	return link->dev->ops->post_recv(link->qp, wr, n);
}

int
link_recv_fill(struct link *link)
{
	uint32_t depth = link->rq_depth;
	uint32_t buf[REPOST_MAX];
	unsigned n = 0;
	int err = 0;

	for (uint32_t i = 0; i < depth && err == 0; i++) {
		buf[n++] = i;
		if (n == REPOST_MAX || i + 1 == depth) {
			err = post(link, buf, n);
			n = 0;
		}
	}
	return err;
}

void
link_recv_repost(struct link *link)
{
	unsigned n = link->recv_repost_cnt;

	link->recv_repost_cnt = 0;
	if (n > 0 && !link_has_ended(link))
		(void)post(link, link->recv_repost, n); /* a broken QP reports itself */
}

bool
link_recv(struct link *link, const struct rnic_wc *wc, bool last)
{
	const uint8_t *buf = link->recv_buf + (size_t)wc->wr_id * RECV_LEN;

	if (wc->status != RNIC_WC_OK || link->lgr->state == LGR_DEAD)
		return true;
	link->last_rx_ns = link->lgr->eng->now_ns;
	/* What arrived before the link ended still counts: the peer may have its completion, and ask for it (4.6.1). */
	if (wc->len > 0 && buf[0] == CDC_TYPE) {
		if (!conn_rx_cdc(link, buf, wc->len, last))
			return false;
	} else if (!link_has_ended(link)) {
		llc_recv(link, buf, wc->len);
	}
	if (link_has_ended(link))
		return true;
	link->recv_repost[link->recv_repost_cnt++] = (uint32_t)wc->wr_id;
	if (link->recv_repost_cnt == REPOST_MAX)
		link_recv_repost(link);
	else
		link_kick(link); /* reposted by the next flush at the latest */
	return true;
}
