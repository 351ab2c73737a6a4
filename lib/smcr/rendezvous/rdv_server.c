/* The server's steps of the rendezvous: Proposal, Accept, Confirm (RFC 7609 3.5.1, 3.5.2, 3.5.3). */
#include <string.h>

#include "smcr/data/conn.h"
#include "smcr/data/rmb.h"
#include "smcr/group/lgr.h"
#include "smcr/group/llc.h"
#include "smcr/state/engine.h"
#include "smcr/rendezvous/rendezvous.h"

/* The proposing client has this network, too. */
static bool
is_clients(const struct smcr_subnet *s, const struct clc_proposal *p)
{
	struct rcur r = rcur_make(s->addr, 4);

	if (!s->v6)
		return p->ipv4_len != 0 && s->prefix_len == p->ipv4_len && rcur_be32(&r) == p->ipv4_subnet;
	for (unsigned k = 0; k < p->ipv6_cnt; k++)
		if (s->prefix_len == p->ipv6[k].len && memcmp(s->addr, p->ipv6[k].addr, 16) == 0)
			return true;
	return false;
}

/* RoCE stays within a subnet; iWARP is routed. Any interface of ours may be on a network of the proposing client
 * (3.5.1.2), not only that of the middle: services may have addresses that belong to none. */
static uint8_t
transports_of(const struct smcr_conn *conn)
{
	const struct clc_proposal *p = &conn->rdv->proposal;
	const struct smcr_open *o = &conn->rdv->open;
	const struct smcr *eng = conn->eng;
	uint8_t bits = p->ext.present ? p->ext.transports : CLC_TRANSPORT_ROCE;

	for (unsigned i = 0; i < o->subnet_cnt; i++)
		if (is_clients(&o->subnet[i], p))
			return bits;
	for (unsigned i = 0; i < eng->net_cnt; i++)
		if (is_clients(&eng->nets[i], p))
			return bits;
	return bits & CLC_TRANSPORT_IWARP;
}

/* A group of this client with a place: the fullest first, so that old groups can run empty. *full: one was left out because of
 * its quarantine. */
static struct lgr *
find_group(const struct smcr_conn *conn, bool *full)
{
	const struct smcr *eng = conn->eng;
	struct owner client = owner_of(conn->rdv->proposal.peer_id, &conn->rdv->open.remote);
	struct lgr *best = NULL;

	*full = false;
	LIST_EACH(struct lgr, lgr, &eng->lgrs, node) {
		if (lgr->role != SMCR_SERVER || lgr->state != LGR_ACTIVE || !owner_same(&lgr->owner, &client))
			continue;
		*full = *full || quarantine_is_full(lgr);
		if (lgr_pick_link(lgr) != NULL && rdv_vlan_fits(conn, lgr) && !lgr_is_doubted(lgr) &&
		    lgr_takes_conns(lgr) && lgr->conn_cnt < eng->cfg.conns_per_group &&
		    lgr_has_place(lgr, conn->rdv->open.elem_size) && (best == NULL || lgr->conn_cnt > best->conn_cnt))
			best = lgr;
	}
	return best;
}

static void
proposed(struct smcr_conn *conn, const struct clc_proposal *p)
{
	uint8_t bits = p->ext.present ? p->ext.transports : CLC_TRANSPORT_ROCE;
	uint32_t diag = 0;
	bool full;

	conn->rdv->proposal = *p;
	conn->foreign = !p->ext.present;
	if (conn->eng->draining)
		diag = CLC_DIAG_CONFIG;
	else if (p->typev1 != CLC_PATH_R && p->typev1 != CLC_PATH_BOTH)
		diag = CLC_DIAG_MODE_MISMATCH;
	else if (rdv_pick_device(conn->eng, bits, NULL) == NULL)
		diag = CLC_DIAG_NO_DEVICE;
	/* At first contact only: a group shows that there is a path. */
	else if (rdv_pick_device(conn->eng, transports_of(conn), NULL) == NULL && find_group(conn, &full) == NULL)
		diag = CLC_DIAG_PREFIX_MISMATCH;
	if (diag != 0) {
		rdv_decline(conn, diag);
		return;
	}
	conn->rdv->prewarm = p->ext.present && (p->ext.transports & CLC_TRANSPORT_PREWARM) != 0;
	rdv_peer_waits(conn);
	rdv_step(conn, RDV_WAIT_ADMIT, rdv_patience_ms(conn));
	if (conn->rdv->prewarm)
		rdv_server_choose(conn);
	else
		conn_raise(conn, SMCR_EV_PROPOSAL);
}

static void
accept(struct smcr_conn *conn, const struct link *link, bool first_contact)
{
	rdv_send_accept(conn, CLC_ACCEPT, link, first_contact);
	rdv_step(conn, RDV_WAIT_CONFIRM, conn->eng->cfg.clc_ms);
	rdv_read(conn);
}

static void
first_contact(struct smcr_conn *conn)
{
	uint8_t bits = transports_of(conn);
	struct rnic_dev *dev = rdv_pick_device(conn->eng, bits, &conn->rdv->open.local_addr);
	struct link *link;
	uint32_t diag;

	if (dev == NULL) {
		rdv_decline(conn, CLC_DIAG_PREFIX_MISMATCH);
		return;
	}
	diag = rdv_form_group(conn, conn->rdv->proposal.peer_id, dev, rng_u64(conn->eng->rng));
	link = rdv_first_link(conn);
	if (diag == 0 && dev->ops->qp_expect(link->qp) < 0)
		diag = CLC_DIAG_READY_LINK;
	if (diag != 0) {
		rdv_decline(conn, diag);
		return;
	}
	accept(conn, link, true);
}

/* Admitted, or may go on: an existing group, a turn to wait for, or first contact. */
void
rdv_server_choose(struct smcr_conn *conn)
{
	struct smcr *eng = conn->eng;
	struct owner client = owner_of(conn->rdv->proposal.peer_id, &conn->rdv->open.remote);
	bool full;
	struct lgr *lgr = find_group(conn, &full);

	if (lgr == NULL) {
		eng->ctr.refused_quarantine += full;
		if (peer_leads(peer_get(eng, SMCR_SERVER, NULL, &client), conn, RDV_WAIT_PEER_GROUP))
			first_contact(conn);
		return;
	}
	struct link *link = lgr_pick_link(lgr);
	conn->elem_idx = rmb_elem_get(lgr, conn->rdv->open.elem_size, &conn->rmb);
	if (conn->elem_idx == 0) {
		rdv_wait_rmb(conn, lgr, RDV_WAIT_SRV_RKEY);
		return;
	}
	conn_attach(conn, lgr, link);
	accept(conn, link, false);
}

/* First contact goes on when the Confirm is in and the queue pair is connected, in either order. */
void
rdv_server_connected(struct smcr_conn *conn)
{
	struct link *link = rdv_first_link(conn);

	if (!conn->rdv->confirm_in || conn->rdv->step != RDV_WAIT_LINK || link == NULL || !link->connected)
		return;
	rdv_step(conn, RDV_WAIT_LINK, 0); /* the LLC timers watch from here on */
	llc_first_contact(link);
}

static void
confirmed_first(struct smcr_conn *conn, const struct clc_accept *a)
{
	struct link *link = rdv_first_link(conn);
	uint32_t diag = conn->rdv->failed;

	conn->rdv->confirm_in = true;
	if (diag == 0 && clc_mtu_bytes(a->mtu_code) == 0)
		diag = CLC_DIAG_CONFIG;
	if (diag == 0) {
		link_set_remote_clc(link, a);
		diag = rdv_take_peer_elem(conn, conn->rdv->lgr, link, a);
	}
	if (diag != 0) {
		rdv_decline(conn, diag);
		return;
	}
	rdv_step(conn, RDV_WAIT_LINK, conn->eng->cfg.llc_ms);
	rdv_read(conn); /* the client may still decline */
	if (link->dev->ops->qp_connect(link->qp, RNIC_PASSIVE, &link->remote) < 0)
		rdv_decline(conn, CLC_DIAG_READY_LINK);
	else
		rdv_server_connected(conn);
}

static void
confirmed_subsequent(struct smcr_conn *conn, const struct clc_accept *a)
{
	struct lgr *lgr = conn->lgr;
	struct link *via = link_named(lgr, a);

	/* Past our Accept nothing can be declined (C.1): broken off. */
	if (via == NULL)
		rdv_end(conn, SMCR_R_PROTOCOL, "Confirm names a link that is not in the group");
	else if (rdv_take_peer_elem(conn, lgr, via, a) != 0)
		rdv_end(conn, SMCR_R_PROTOCOL, "Confirm names an RMB that was never confirmed");
	else
		rdv_finish(conn, lgr, conn->link);
}

void
rdv_server_msg(struct smcr_conn *conn, const struct clc_msg *msg)
{
	if (conn->rdv->step == RDV_WAIT_PROPOSAL && msg->type == CLC_PROPOSAL) {
		proposed(conn, &msg->proposal);
	} else if (conn->rdv->step == RDV_WAIT_CONFIRM && msg->type == CLC_CONFIRM &&
	    memcmp(msg->accept.peer_id, conn->rdv->proposal.peer_id, sizeof(msg->accept.peer_id)) == 0) {
		rdv_step(conn, RDV_NONE, 0);
		conn->rdv->peer = msg->accept;
		if (rdv_forms_group(conn))
			confirmed_first(conn, &msg->accept);
		else
			confirmed_subsequent(conn, &msg->accept);
	} else {
		rdv_protocol_error(conn, "unexpected CLC message");
	}
}
