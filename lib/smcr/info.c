/* Iteration over groups, links, RMBs and connections, for smcrctl. */
#include <string.h>

#include "base/minmax.h"

#include "smcr/data/rmb.h"
#include "smcr/data/sndbuf.h"
#include "smcr/data/window.h"
#include "smcr/group/lgr.h"
#include "smcr/group/llc.h"
#include "smcr/group/topology.h"
#include "smcr/proof.h"
#include "smcr/rendezvous/rendezvous.h"
#include "smcr/state/engine.h"

/* Type as in smc-tools, by the side with a single RNIC for two links. */
static const char *
group_type(const struct lgr *lgr)
{
	const struct link *asymmetric = topology_asymmetric_link(lgr);

	if (lgr->active_cnt < 2)
		return "single";
	if (asymmetric == NULL)
		return "symmetric";
	return LGR_ANY_LINK(l, lgr, l->state == LINK_ACTIVE && l != asymmetric && l->dev == asymmetric->dev)
	    ? "asymmetric local"
	    : "asymmetric peer";
}

static struct smcr_peer_info
peer_info(const struct lgr *lgr)
{
	struct smcr_peer_info info = { .version = lgr->version,
		.foreign = lgr->dialect.foreign,
		.release = lgr->terms.release,
		.os = lgr->terms.peer_os };

	if (lgr->version >= 2) {
		clc_field_str(lgr->terms.eid.b, info.eid);
		clc_field_str(lgr->terms.peer_host, info.host);
	}
	return info;
}

/* The i-th node of a list, or NULL. */
static struct list_node *
nth(const struct list_node *head, uint32_t i)
{
	struct list_node *n = list_first(head);

	while (n != NULL && i-- > 0)
		n = list_next(head, n);
	return n;
}

#define NTH(type, head, i) ((const type *)list_object(nth(head, i), offsetof(type, node)))

static uint16_t
suite_of(const struct lgr *lgr)
{
	const uint8_t *at = lgr->secret + RNIC_SECRET_SUITE;

	return lgr->in_tls ? (uint16_t)(at[0] << 8 | at[1]) : 0;
}

bool
smcr_group_next(const struct smcr *eng, uint32_t *pos, struct smcr_group_info *out)
{
	const struct lgr *lgr = NTH(struct lgr, &eng->lgrs, *pos);

	if (lgr == NULL)
		return false;
	(*pos)++;
	*out = (struct smcr_group_info){
		.id = lgr->id,
		.role = lgr->role,
		.proof = lgr->owner.remote.proof,
		.peer = peer_info(lgr),
		.conns_limit = (uint8_t)lgr_conns_max(lgr),
		.state = lgr_states[lgr->state].name,
		.type = group_type(lgr),
		.rfc_cursors = lgr->eye_catcher,
		.conn_cnt = lgr->conn_cnt,
		.link_cnt = lgr->active_cnt,
		.rmb_cnt = lgr->rmb_cnt,
		.peer_rmb_cnt = lgr->remote_rmb_cnt,
		.sndbuf_bytes = lgr->sndbuf_bytes,
		.age_ns = eng->now_ns - lgr->born_ns,
		.links_limit = lgr->links_limit,
		.waits_for = llc_waits_for(lgr),
		.add_retry_ns = llc_add_retry_ns(lgr),
		.failover_age_ns = lgr->failover.why != NULL ? eng->now_ns - lgr->failover.began_ns : -1,
		.failover_ns = lgr->failover.left > 0 ? eng->now_ns - lgr->failover.began_ns : lgr->failover.took_ns,
		.failover_why = lgr->failover.why != NULL ? lgr->failover.why : "",
		.failover_conns = lgr->failover.moved,
	};
	memcpy(out->peer_id, lgr->peer_id, sizeof(out->peer_id));
	memcpy(out->peer_key, lgr->peer_key, sizeof(out->peer_key));
	out->level = lgr->owner.remote.level;
	out->suite = suite_of(lgr);
	memcpy(out->peer_name, lgr->peer_name, sizeof(out->peer_name));
	LIST_EACH(const struct rmb, rmb, &lgr->rmbs, node)
		out->rmb_bytes += (uint64_t)rmb->elem_size * rmb->elem_cnt;
	return true;
}

bool
smcr_link_next(const struct smcr *eng, uint32_t *pos, struct smcr_link_info *out)
{
	const struct lgr *lgr;
	const struct link *l;

	do {
		lgr = NTH(struct lgr, &eng->lgrs, *pos / LINK_SLOTS);
		if (lgr == NULL)
			return false;
		l = &lgr->links[(*pos)++ % LINK_SLOTS];
	} while (l->state == LINK_FREE || l->state == LINK_GONE);
	*out = (struct smcr_link_info){
		.group_id = lgr->id,
		.number = l->number,
		.user_id = l->user_id,
		.peer_user_id = l->peer_user_id,
		.state = l->state == LINK_ACTIVE && l->suspect != NULL ? "silent" : link_states[l->state].name,
		.transport = l->info.transport,
		.in_tls = lgr->in_tls && l->info.tls,
		.protection = l->info.protection,
		.gid = l->info.gid,
		.peer_gid = l->remote.gid,
		.qpn = l->qpn,
		.peer_qpn = l->remote.qpn,
		.mtu_code = l->mtu_code,
		.conn_cnt = l->conn_cnt,
		.idle_ns = eng->now_ns - l->last_rx_ns,
		.rtt_ns = l->rtt_ns,
		.is_active = l->state == LINK_ACTIVE,
		.is_tested = l->test_pending,
		.peer_depths = { .ird = -1, .ord = -1 },
		.conn = rnic_conn_info(l->qp),
		.peer = peer_info(lgr),
	};
	if (l->qp != NULL && l->dev->ops->peer_depths != NULL)
		out->peer_depths = l->dev->ops->peer_depths(l->qp);
	memcpy(out->device, l->info.name, sizeof(out->device));
	memcpy(out->mac, l->info.mac, sizeof(out->mac));
	memcpy(out->peer_mac, l->remote.mac, sizeof(out->peer_mac));
	return true;
}

/* Positions of a group in the iteration over RMBs: ours, the peer's, and the end. */
#define RMB_PLACES (2 * SMCR_RMBS_PER_GROUP + 1)

bool
smcr_rmb_next(const struct smcr *eng, uint32_t *pos, struct smcr_rmb_info *out)
{
	const struct lgr *lgr;

	for (; (lgr = NTH(struct lgr, &eng->lgrs, *pos / RMB_PLACES)) != NULL; *pos += RMB_PLACES - *pos % RMB_PLACES) {
		uint32_t i = *pos % RMB_PLACES;
		const struct rmb *rmb = NTH(struct rmb, &lgr->rmbs, i);
		const struct remote_rmb *rr = rmb == NULL ? NTH(struct remote_rmb, &lgr->remote_rmbs, i - lgr->rmb_cnt)
		                                          : NULL;

		if (rmb != NULL)
			*out = (struct smcr_rmb_info){ lgr->id, rmb->number, false, rmb->elem_size, rmb->elem_cnt,
				rmb->used - rmb->cooling - rmb->spare, rmb->quarantined, rmb_states[rmb->state].name };
		else if (rr != NULL)
			*out = (struct smcr_rmb_info){ lgr->id, rr->number, true, rr->elem_size, 0, rr->used, 0,
				"confirmed" };
		else
			continue;
		(*pos)++;
		return true;
	}
	return false;
}

uint32_t
smcr_conn_group(const struct smcr_conn *c)
{
	return c->lgr != NULL ? c->lgr->id : 0;
}

bool
smcr_in_tls(const struct smcr_conn *c)
{
	return c->lgr != NULL && c->lgr->in_tls && LGR_ANY_LINK(l, c->lgr, l->state == LINK_ACTIVE && l->info.tls);
}

uint16_t
smcr_suite(const struct smcr_conn *c)
{
	return c->lgr != NULL ? suite_of(c->lgr) : 0;
}

void *
smcr_proof(const struct smcr_conn *c)
{
	return c->lgr != NULL ? c->lgr->owner.remote.proof : NULL;
}

void
smcr_conn_info(const struct smcr_conn *c, struct smcr_conn_info *out)
{
	*out = (struct smcr_conn_info){
		.id = c->id,
		.app = c->app,
		.role = c->role,
		.group_id = smcr_conn_group(c),
		.link = c->link != NULL ? c->link->number : 0,
		.state = c->state == CONN_RENDEZVOUS ? rdv_steps[c->rdv->step].name : conn_states[c->state].name,
		.phase = c->state == CONN_RENDEZVOUS && c->role == SMCR_CLIENT ? rdv_steps[c->rdv->step].phase
		                                                               : SMCR_PHASE_NONE,
		.peer_token = c->peer_token,
		.elem_size = c->rmb != NULL ? c->rmb->elem_size : 0,
		.peer_elem_size = c->peer_elem_size,
		.sndbuf_size = c->tx.sndbuf != NULL ? c->tx.sndbuf->size
		    : c->lgr != NULL                ? window_ring_size(c)
		                                    : 0,
		.elem_idx = c->elem_idx,
		.peer_elem_idx = c->peer_elem_idx,
		.tx_written = c->tx.head,
		.tx_sent = c->tx.sent,
		.tx_consumed = c->tx.acked,
		.rx_produced = c->rx.head,
		.rx_consumed = c->rx.tail,
		.writer_blocked = c->tx.blocked,
		.peer_blocked = c->rx.blocked,
		.age_ns = c->eng->now_ns - c->born_ns,
		.peer = c->lgr != NULL ? peer_info(c->lgr) : (struct smcr_peer_info){ 0 },
		.over_link = c->over_link,
	};
}

int64_t
smcr_rtt_ns(const struct smcr *eng, uint32_t group_id)
{
	int64_t rtt_ns = -1;

	LIST_EACH(const struct lgr, lgr, &eng->lgrs, node)
		if (group_id == 0 || lgr->id == group_id)
			LGR_EACH_LINK(l, lgr)
				if (l->state == LINK_ACTIVE && l->conn_cnt > 0)
					rtt_ns = max_i64(rtt_ns, l->rtt_ns);
	return rtt_ns;
}

bool
smcr_has_group(const struct smcr *eng, uint32_t id)
{
	return lgr_find(eng, id) != NULL;
}

bool
smcr_has_conn(const struct smcr *eng, uint32_t id)
{
	return idtable_get(&eng->conns, id) != NULL;
}
