/* Server steps of the rendezvous: Proposal, Accept, Confirm (RFC 7609 3.5.1, 3.5.2, 3.5.3). */
#include <string.h>

#include "smcr/data/rmb.h"
#include "smcr/group/lgr.h"
#include "smcr/group/llc.h"
#include "smcr/state/engine.h"
#include "smcr/rendezvous/rendezvous.h"

/* The proposing client is in this network. */
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

/* Kinds of devices that the peer can reach in version 1. */
static unsigned
kinds_of(const struct smcr_conn *conn)
{
	const struct clc_proposal *p = &conn->rdv->proposal;

	return p->ext.present ? rdv_transports_received(conn, p->ext.transports)
	                      : rdv_transports_foreign(conn, RDV_ROCE_V1);
}

/* RoCE stays within a subnet; iWARP is routed. Any interface of ours may be in a network of the client (3.5.1.2), not
 * only the CLC connection's: service addresses may be in none. */
static unsigned
kinds_within_reach(const struct smcr_conn *conn)
{
	const struct clc_proposal *p = &conn->rdv->proposal;
	const struct smcr_open *o = &conn->rdv->open;
	const struct smcr *eng = conn->eng;

	for (unsigned i = 0; i < o->subnet_cnt; i++)
		if (is_clients(&o->subnet[i], p))
			return kinds_of(conn);
	for (unsigned i = 0; i < eng->net_cnt; i++)
		if (is_clients(&eng->nets[i], p))
			return kinds_of(conn);
	return kinds_of(conn) & RDV_IWARP;
}

/* Linux omits the peer ID in a Proposal with version 2 alone; smcrd sends it. */
static bool
names_itself(const struct rdv *r)
{
	static const uint8_t none[CLC_PEER_ID_LEN];

	return r->version < 2 || r->proposal.typev1 != CLC_PATH_NONE ||
	    memcmp(r->proposal.peer_id, none, sizeof(none)) != 0;
}

static struct owner
client_of(const struct smcr_conn *conn)
{
	const struct rdv *r = conn->rdv;
	struct owner client = owner_of(r->proposal.peer_id, &r->open.remote);

	if (!names_itself(r))
		memcpy(client.gid, r->proposal.v2.gid, sizeof(client.gid));
	return client;
}

/* Linux joins a group only over the port in its Proposal (smcr_lgr_match); version 2 ignores the MAC. */
static bool
has_port(const struct lgr *lgr, const struct clc_proposal *p)
{
	return LGR_ANY_LINK(
	    l, lgr, l->state == LINK_ACTIVE && link_leads_to(l, lgr->version >= 2 ? p->v2.gid : p->gid, p->mac));
}

/* A group of this client with a free place: the fullest, so that old ones drain. *full: one has a full quarantine. */
static struct lgr *
find_group(const struct smcr_conn *conn, bool *full)
{
	struct owner client = client_of(conn);
	struct lgr *best = NULL;

	*full = false;
	LIST_EACH(struct lgr, lgr, &conn->eng->lgrs, node) {
		if (lgr->role != SMCR_SERVER || lgr->state != LGR_ACTIVE || !owner_same(&lgr->owner, &client) ||
		    !rdv_fits_terms(conn, lgr) || (!rdv_is_smcrd(conn) && !has_port(lgr, &conn->rdv->proposal)))
			continue;
		*full = *full || quarantine_is_full(lgr);
		if (lgr_pick_link(lgr) != NULL && rdv_vlan_fits(conn, lgr) && !lgr_is_suspect(lgr) &&
		    !lgr_is_silent(lgr) && !lgr->end_wanted && !quarantine_is_full(lgr) &&
		    lgr->conn_cnt < lgr_conns_max(lgr) &&
		    (lgr->rmb_cnt < SMCR_RMBS_PER_GROUP || rmb_find_place(lgr, &conn->rdv->open) != NULL) &&
		    (best == NULL || lgr->conn_cnt > best->conn_cnt))
			best = lgr;
	}
	return best;
}

/* Version 1 of the Proposal: 0, or the diagnosis. An existing group proves a path. */
static uint32_t
take_v1(struct smcr_conn *conn)
{
	const struct clc_proposal *p = &conn->rdv->proposal;
	bool full;

	conn->rdv->version = 1;
	conn->rdv->terms = (struct lgr_terms){ 0 };
	if (p->typev1 != CLC_PATH_R && p->typev1 != CLC_PATH_BOTH)
		return CLC_DIAG_MODE_MISMATCH;
	if (!p->ext.present && conn->eng->cfg.smc_version == 2)
		return CLC_DIAG_VERSION_MISMATCH;
	if (rdv_pick_device(conn->eng, kinds_of(conn), NULL, NULL) == NULL) {
		if (rdv_transports(conn->eng) != 0)
			conn->diag.detail = "our devices have none of the transports that the peer offers";
		return CLC_DIAG_NO_DEVICE;
	}
	if (rdv_pick_device(conn->eng, kinds_within_reach(conn), NULL, NULL) == NULL && find_group(conn, &full) == NULL)
		return CLC_DIAG_PREFIX_MISMATCH;
	return 0;
}

/* The highest common version; two smcrd use version 1 with our extension. Diagnosis as in Linux: that of version 2 when
 * it was offered, unless only a subnet rules out version 1. */
static uint32_t
take_proposal(struct smcr_conn *conn, unsigned header)
{
	const struct clc_proposal *p = &conn->rdv->proposal;
	bool offered = header >= 2 && !p->ext.present && (p->typev2 == CLC_PATH_R || p->typev2 == CLC_PATH_BOTH) &&
	    rdv_transports_foreign(conn, RDV_ROCE_V2) != 0;
	uint32_t v2 = offered ? rdv_take_offer(conn) : 0, v1;
	bool full;

	if (offered && v2 == 0 && find_group(conn, &full) == NULL)
		v2 = rdv_way_to_client(conn);
	if (offered && v2 == 0)
		return 0;
	v1 = take_v1(conn);
	return v1 == 0 || v1 == CLC_DIAG_PREFIX_MISMATCH || v2 == 0 ? v1 : v2;
}

/* Only an egress for many destinations takes one, and none goes without to it. Prewarming connects no server. */
static bool
has_fitting_dest(struct smcr_conn *conn)
{
	const bool has = conn->rdv->proposal.tlvs.dest.kind != CLC_DEST_NONE, wants = conn->rdv->open.wants_dest;

	if (has && !wants)
		conn->diag.detail = "the peer wants a destination of its own, and to is fixed here";
	else if (!has && wants && !conn->prewarm)
		conn->diag.detail = "the peer names no destination, and to = \"requested\" here";
	return conn->prewarm ? !has : has == wants;
}

static void
proposed(struct smcr_conn *conn, const struct clc_msg *msg)
{
	const struct clc_proposal *p = &conn->rdv->proposal;

	conn->rdv->proposal = msg->proposal;
	conn->prewarm = p->ext.present && (p->ext.transports & CLC_TRANSPORT_PREWARM) != 0;
	conn->rdv->measure = conn->prewarm && (p->ext.features & CLC_FEATURE_MEASURE) != 0;
	conn->hops = p->ext.hops;
	conn->origin = p->ext.origin;
	if (p->tlvs.unknown != 0) { /* what it asks for must not be left out, so not by TCP either */
		rdv_protocol_error(conn, "Proposal asks for something that this version does not know");
		return;
	}
	if (!has_fitting_dest(conn)) {
		conn->dest_refused = true;
		rdv_decline(conn, CLC_DIAG_CONFIG);
		return;
	}
	if (conn->rdv->open.tcp_only != NULL)
		conn->diag.detail = conn->rdv->open.tcp_only;
	uint32_t diag = conn->eng->draining || conn->rdv->open.tcp_only != NULL ? CLC_DIAG_CONFIG
	                                                                        : take_proposal(conn, msg->version);
	if (diag != 0 && p->tlvs.dest.kind == CLC_DEST_NONE) {
		rdv_decline(conn, diag);
		return;
	}
	conn->rdv->only_tcp = diag;
	rdv_peer_waits(conn);
	rdv_step(conn, RDV_WAIT_ADMIT, rdv_wait_ms(conn));
	if (conn->prewarm && (p->ext.features & CLC_FEATURE_SERVER) == 0)
		rdv_server_choose(conn);
	else
		conn_raise(conn, SMCR_EV_PROPOSAL);
}

static void
accept(struct smcr_conn *conn, const struct link *link, bool first_contact)
{
	rdv_send_accept(conn, CLC_ACCEPT, link, first_contact);
	rdv_step(conn, RDV_WAIT_CONFIRM, conn->eng->cfg.clc_ms);
}

/* The device for first contact, avoiding SCTP after a failure if there is another. */
static struct rnic_dev *
pick_device(const struct smcr_conn *conn)
{
	const struct rdv *r = conn->rdv;
	struct smcr *eng = conn->eng;
	const struct peer *p = r->peer_ent;
	unsigned shunned = p->sctp_failed || p->sctp_until_ns > eng->now_ns ? RDV_SCTP : 0;
	unsigned kinds = kinds_within_reach(conn);

	if (r->version >= 2)
		return rdv_pick_device(eng, RDV_ROCE_V2, &r->open.local_addr, r->proposal.v2.gid);
	struct rnic_dev *dev = rdv_pick_device(eng, kinds & ~shunned, &r->open.local_addr, NULL);
	eng->ctr.sctp_shunned += dev != NULL && (kinds & shunned) != 0;
	return dev != NULL ? dev : rdv_pick_device(eng, kinds, &r->open.local_addr, NULL);
}

static void
first_contact(struct smcr_conn *conn)
{
	struct rnic_dev *dev = pick_device(conn);
	struct owner client = client_of(conn);
	uint32_t diag = conn->rdv->version >= 2 ? CLC_DIAG_NO_ROUTE : CLC_DIAG_PREFIX_MISMATCH;

	if (dev != NULL) {
		conn->rdv->peer_ent->over_sctp = rnic_is_sctp(rnic_query(dev).transport);
		diag = rdv_form_group(conn, &client, dev, rng_u64(conn->eng->rng));
	}
	if (diag == 0 && dev->ops->qp_expect(rdv_first_link(conn)->qp) < 0)
		diag = CLC_DIAG_READY_LINK;
	if (diag != 0)
		rdv_decline(conn, diag);
	else
		accept(conn, rdv_first_link(conn), true);
}

void
rdv_server_choose(struct smcr_conn *conn)
{
	struct smcr *eng = conn->eng;
	struct owner client = client_of(conn);
	bool full;
	struct lgr *lgr = find_group(conn, &full);

	if (lgr == NULL) {
		eng->ctr.refused_quarantine += full;
		if (rdv_leads(peer_get(eng, SMCR_SERVER, NULL, &client), conn))
			first_contact(conn);
		return;
	}
	struct link *link = lgr_pick_link(lgr);
	if (!rdv_is_smcrd(conn))
		dialect_no_extension(&lgr->dialect);
	conn->rmb = rmb_find_place(lgr, &conn->rdv->open);
	if (conn->rmb == NULL) {
		rdv_wait_rmb(conn, lgr);
		return;
	}
	conn->elem_idx = rmb_elem_get_from(conn->rmb);
	conn_attach(conn, lgr, link);
	accept(conn, link, false);
}

/* First contact continues when Confirm and connected queue pair are both present, in either order. */
void
rdv_server_connected(struct smcr_conn *conn)
{
	struct link *link = rdv_first_link(conn);

	if (!conn->rdv->confirm_in || conn->rdv->step != RDV_WAIT_LINK || link == NULL || !link->connected)
		return;
	rdv_step(conn, RDV_WAIT_LINK, 0); /* LLC timers apply from here on */
	llc_first_contact(link);
}

static void
confirmed_first(struct smcr_conn *conn, const struct clc_msg *msg)
{
	const struct clc_accept *a = &msg->accept;
	struct link *link = rdv_first_link(conn);
	uint32_t diag = conn->rdv->failed;

	conn->rdv->confirm_in = true;
	conn->rdv->confirm_ns = conn->eng->now_ns + conn->eng->stalled_ns;
	if (diag == 0)
		diag = rdv_take_confirm(conn, msg);
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
	rdv_step(conn, RDV_WAIT_LINK, conn->eng->cfg.llc_ms); /* the client may still decline */
	if (link->dev->ops->qp_connect(link->qp, RNIC_PASSIVE, &link->remote) < 0)
		rdv_decline(conn, CLC_DIAG_READY_LINK);
	else
		rdv_server_connected(conn);
}

static void
confirmed_subsequent(struct smcr_conn *conn, const struct clc_msg *msg)
{
	const struct clc_accept *a = &msg->accept;
	struct lgr *lgr = conn->lgr;
	struct link *via = link_named(lgr, a);

	/* After our Accept no Decline is possible (C.1): reset. */
	if (rdv_take_confirm(conn, msg) != 0)
		rdv_end(conn, SMCR_R_PROTOCOL, "Confirm has another version or EID than the group");
	else if (via == NULL)
		rdv_end(conn, SMCR_R_PROTOCOL, "Confirm names a link that is not in the group");
	else if (rdv_take_peer_elem(conn, lgr, via, a) != 0)
		rdv_end(conn, SMCR_R_PROTOCOL, "Confirm names an RMB that was never confirmed");
	else
		rdv_finish(conn, lgr, conn->link);
}

/* The client that confirms is the one that proposed, as far as it sent an ID. */
static bool
is_same_client(const struct smcr_conn *conn, const struct clc_accept *a)
{
	const struct rdv *r = conn->rdv;
	const uint8_t *id = r->proposal.peer_id;

	if (!names_itself(r)) {
		if (rdv_forms_group(conn))
			return true;
		id = conn->lgr->peer_id;
	}
	return memcmp(a->peer_id, id, sizeof(a->peer_id)) == 0;
}

void
rdv_server_msg(struct smcr_conn *conn, const struct clc_msg *msg)
{
	if (conn->rdv->step == RDV_WAIT_PROPOSAL && msg->type == CLC_PROPOSAL) {
		proposed(conn, msg);
	} else if (conn->rdv->step == RDV_WAIT_CONFIRM && msg->type == CLC_CONFIRM &&
	    is_same_client(conn, &msg->accept)) {
		rdv_step(conn, RDV_NONE, 0);
		conn->rdv->peer = msg->accept;
		if (rdv_forms_group(conn))
			confirmed_first(conn, msg);
		else
			confirmed_subsequent(conn, msg);
	} else {
		rdv_protocol_error(conn, "unexpected CLC message");
	}
}
