/* The client's steps of the rendezvous: Proposal, Accept, Confirm (RFC 7609 3.5.1, 3.5.2). */
#include <string.h>

#include "smcr/data/rmb.h"
#include "smcr/group/llc.h"
#include "smcr/group/topology.h"
#include "smcr/state/engine.h"
#include "smcr/rendezvous/rendezvous.h"

/* Our identity in version 1, for this device, and the networks of the CLC connection. */
static void
propose_v1(const struct smcr_conn *conn, struct clc_proposal *p, struct rnic_dev *dev)
{
	const struct smcr_open *o = &conn->rdv->open;
	struct rnic_info info = rnic_query(dev);

	p->typev1 = CLC_PATH_R;
	memcpy(p->gid, info.gid.b, sizeof(p->gid));
	memcpy(p->mac, info.mac, sizeof(p->mac));
	for (const struct smcr_subnet *s = o->subnet; s < o->subnet + o->subnet_cnt; s++) {
		if (s->v6 && p->ipv6_cnt < CLC_MAX_IPV6) {
			memcpy(p->ipv6[p->ipv6_cnt].addr, s->addr, 16);
			p->ipv6[p->ipv6_cnt++].len = s->prefix_len;
		} else if (!s->v6 && p->ipv4_len == 0) {
			struct rcur r = rcur_make(s->addr, 4);

			p->ipv4_subnet = rcur_be32(&r);
			p->ipv4_len = s->prefix_len;
		}
	}
}

/* The Proposal offers none; it is for its answer, or for its TLVs. */
static bool
wants_no_link(const struct rdv *r)
{
	return r->open.tcp_only != NULL || r->only_tlvs != 0;
}

static void
propose_extension(const struct smcr_conn *conn, struct clc_proposal *p)
{
	const unsigned asks = (rdv_insists(conn) ? CLC_FEATURE_CHECK : 0) |
	    (conn->prewarm && conn->rdv->open.measure ? CLC_FEATURE_MEASURE : 0) |
	    (conn->prewarm && conn->rdv->open.ask_server ? CLC_FEATURE_SERVER : 0) |
	    (clc_tlvs_len(&p->tlvs) > 0 ? CLC_FEATURE_TLVS : 0);
	const unsigned own = wants_no_link(conn->rdv) ? 0 : rdv_transports(conn->eng);

	p->ext = (struct clc_smcrd_ext){
		.present = true,
		.version = CLC_SMCRD_EXT_VERSION,
		.transports = (uint8_t)(rdv_transports_sent(conn, own) | (conn->prewarm ? CLC_TRANSPORT_PREWARM : 0)),
		.features = (uint8_t)(engine_features(conn->eng) | asks),
		.recv_depth = (uint16_t)conn->eng->cfg.rq_depth,
		.hops = conn->rdv->open.hops,
		.origin = conn->rdv->open.origin,
	};
}

/* To an smcrd: unchanged in all versions of smcrd. */
static uint32_t
propose_to_smcrd(struct smcr_conn *conn, struct clc_msg *msg)
{
	struct clc_proposal *p = &msg->proposal;
	struct rnic_dev *dev = rdv_pick_device(conn->eng, RDV_SMCRD, &conn->rdv->open.local_addr, NULL);

	if (dev == NULL && conn->rdv->only_tlvs == 0)
		return CLC_DIAG_NO_DEVICE;
	msg->version = 1;
	if (dev != NULL)
		propose_v1(conn, p, dev);
	p->typev1 = p->typev2 = CLC_PATH_R; /* version 1: both nibbles are zero */
	p->tlvs.client = conn->rdv->open.client;
	p->tlvs.dest = conn->rdv->open.dest;
	propose_extension(conn, p);
	return 0;
}

/* As Linux does: always version 2, with space for SMC-D. A possible smcrd gets version 1 and the extension too. */
static uint32_t
propose_to_linux(struct smcr_conn *conn, struct clc_msg *msg)
{
	const struct smcr_config *cfg = &conn->eng->cfg;
	const struct smcr_open *o = &conn->rdv->open;
	struct clc_proposal *p = &msg->proposal;
	struct rnic_dev *dev = NULL;

	msg->version = 2;
	if (cfg->smc_version != 2)
		dev = rdv_pick_device(conn->eng, RDV_ROCE_V1, &o->local_addr, NULL);
	if (dev == NULL && o->peer == SMCR_PEER_AUTO)
		dev = rdv_pick_device(conn->eng, RDV_SMCRD, &o->local_addr, NULL);
	p->typev1 = p->typev2 = CLC_PATH_NONE;
	p->growth_len = CLC_GROWTH_LEN;
	if (dev != NULL)
		propose_v1(conn, p, dev);
	if (rdv_offer_v2(conn, &p->v2))
		p->typev2 = CLC_PATH_R;
	if (p->typev1 == CLC_PATH_NONE && p->typev2 == CLC_PATH_NONE)
		return cfg->smc_version != 1 && cfg->ueid_cnt == 0 &&
		        rdv_pick_device(conn->eng, RDV_ROCE_V2, NULL, NULL) != NULL
		    ? CLC_DIAG_NO_UEID
		    : CLC_DIAG_NO_DEVICE;
	if (o->peer == SMCR_PEER_AUTO)
		propose_extension(conn, p);
	return 0;
}

void
rdv_propose(struct smcr_conn *conn)
{
	struct clc_msg msg = { .type = CLC_PROPOSAL };

	/* Even with version 2 alone, where Linux sends none: by the ID it takes a restarted daemon for a new peer. */
	memcpy(msg.proposal.peer_id, conn->eng->peer_id, sizeof(msg.proposal.peer_id));
	uint32_t diag = conn->rdv->open.peer == SMCR_PEER_SMCRD ? propose_to_smcrd(conn, &msg)
	                                                        : propose_to_linux(conn, &msg);

	if (diag != 0) {
		rdv_decline(conn, diag);
		return;
	}
	conn->rdv->proposal = msg.proposal;
	rdv_send(conn, &msg);
	rdv_step(conn, RDV_WAIT_ACCEPT, conn->eng->cfg.clc_ms);
}

/* A group that a new connection to this peer will probably join. */
static bool
has_group(const struct smcr *eng, const char *key)
{
	const struct owner *known = peer_known_owner(eng, key);

	return LIST_FIND(const struct lgr, lgr, &eng->lgrs, node,
	           lgr->state == LGR_ACTIVE && lgr->conn_cnt < lgr_conns_max(lgr) &&
	               peer_key_leads_to(key, known, lgr)) != NULL;
}

void
rdv_client_choose(struct smcr_conn *conn)
{
	const char *key = conn->rdv->open.peer_key;

	/* Without links the Proposal offers none, and waits for no other: its answer says that the peer takes us. */
	if (wants_no_link(conn->rdv) || has_group(conn->eng, key) ||
	    rdv_leads(peer_get(conn->eng, SMCR_CLIENT, key, NULL), conn))
		rdv_propose(conn);
}

/* The Accept comes from the group's server: from its address, or another one with the group's secret token. */
static bool
is_its_server(const struct smcr_conn *conn, const struct lgr *lgr)
{
	const struct clc_accept *a = &conn->rdv->peer;
	struct owner server = owner_of(a->peer_id, &conn->rdv->open.remote);

	/* A token from a group in clear is no secret: level and name count in any case. */
	if (server.remote.level != lgr->owner.remote.level ||
	    memcmp(server.remote.name_id, lgr->owner.remote.name_id, sizeof(server.remote.name_id)) != 0)
		return false;
	return owner_same(&lgr->owner, &server) || (a->ext.present && lgr->token != 0 && a->ext.token == lgr->token);
}

/* The link of a group of ours in the Accept (3.5.2.2); *strange: of another server or on other terms. */
static struct link *
find_link(const struct smcr_conn *conn, bool *strange)
{
	const struct clc_accept *a = &conn->rdv->peer;

	*strange = false;
	LIST_EACH(struct lgr, lgr, &conn->eng->lgrs, node) {
		if (lgr->role != SMCR_CLIENT || (lgr->state != LGR_ACTIVE && lgr->state != LGR_FORMING) ||
		    memcmp(lgr->owner.peer_id, a->peer_id, sizeof(a->peer_id)) != 0)
			continue;
		struct link *link = link_named(lgr, a);
		if (link == NULL)
			continue;
		if (is_its_server(conn, lgr) && rdv_fits_terms(conn, lgr) && rdv_vlan_fits(conn, lgr))
			return link;
		*strange = true;
	}
	return NULL;
}

/* 0, or the diagnosis to decline with. */
static uint32_t
first_contact(struct smcr_conn *conn, const struct clc_accept *a)
{
	struct rnic_gid to;
	struct owner server = owner_of(a->peer_id, &conn->rdv->open.remote);
	unsigned kinds = a->ext.present
	    ? rdv_transports_received(conn, a->ext.transports)
	    : rdv_transports_foreign(conn, conn->rdv->version >= 2 ? RDV_ROCE_V2 : RDV_ROCE_V1);
	struct rnic_dev *dev = rdv_pick_device(conn->eng, kinds, &conn->rdv->open.local_addr, NULL);
	uint32_t diag = dev != NULL ? rdv_way_to_server(conn, dev, a) : CLC_DIAG_NO_DEVICE;

	if (!peer_meets(conn, &server)) {
		rdv_give_up(conn);
		return 0;
	}
	if (diag != 0)
		return diag;
	memcpy(to.b, a->gid, sizeof(to.b));
	if (!topology_may_dial(conn->eng, dev, &to, &conn->rdv->open.remote)) {
		conn->diag.detail = NOT_DIALED;
		conn->diag.rnic = to;
		conn->diag.mpa_port = a->ext.mpa_port;
		return CLC_DIAG_NO_ROUTE;
	}
	diag = rdv_form_group(conn, &server, dev, a->ext.token);
	struct link *link = rdv_first_link(conn);
	if (diag == 0) {
		link_set_remote_clc(link, a);
		diag = rdv_take_peer_elem(conn, conn->rdv->lgr, link, a);
	}
	if (diag == 0 && dev->ops->qp_connect(link->qp, RNIC_ACTIVE, &link->remote) < 0)
		diag = CLC_DIAG_READY_LINK;
	if (diag == 0)
		rdv_step(conn, RDV_CONNECTING, rdv_wait_ms(conn));
	return diag;
}

/* The link is connected: a blocked port would have caused a Decline by now. */
void
rdv_client_connected(struct smcr_conn *conn)
{
	if (conn->rdv->step != RDV_CONNECTING)
		return;
	rdv_send_accept(conn, CLC_CONFIRM, rdv_first_link(conn), true);
	conn->rdv->confirm_ns = conn->eng->now_ns + conn->eng->stalled_ns;
	rdv_step(conn, RDV_WAIT_GROUP, 0); /* LLC timers apply from here on; the server may still decline */
	llc_first_contact(rdv_first_link(conn));
}

/* Sends the Confirm and allows data (3.5.2.4). */
void
rdv_client_join(struct smcr_conn *conn)
{
	bool strange;
	struct link *via = find_link(conn, &strange);

	/* We lack the link: out of sync (C.4). For a link with another server that would end a group in use. */
	if (via == NULL) {
		rdv_decline(conn, strange ? CLC_DIAG_NO_SERVER_LINK : CLC_DIAG_SYNC);
		return;
	}
	struct lgr *lgr = via->lgr;
	if (!rdv_is_smcrd(conn))
		dialect_no_extension(&lgr->dialect);
	if (lgr->end_wanted || quarantine_is_full(lgr)) {
		conn->eng->ctr.refused_quarantine += quarantine_is_full(lgr);
		rdv_decline(conn, CLC_DIAG_NO_MEMORY);
		return;
	}
	conn->rmb = rmb_find_place(lgr, &conn->rdv->open);
	if (conn->rmb == NULL) {
		rdv_wait_rmb(conn, lgr);
		return;
	}
	conn->elem_idx = rmb_elem_get_from(conn->rmb);
	uint32_t diag = rdv_take_peer_elem(conn, lgr, via, &conn->rdv->peer);
	/* The link in the Confirm, over which we send. */
	struct link *link = lgr->dialect.confirm_repeats_link ? via : lgr_pick_link(lgr);
	if (diag == 0 && (link == NULL || link->state != LINK_ACTIVE || lgr_is_silent(lgr)))
		diag = CLC_DIAG_NO_ACTIVE_LINK;
	if (diag != 0) {
		rmb_elem_put(conn->rmb, conn->elem_idx);
		conn->rmb = NULL;
		rdv_decline(conn, diag);
		return;
	}
	rdv_send_accept(conn, CLC_CONFIRM, link, false);
	rdv_finish(conn, lgr, link);
}

void
rdv_client_msg(struct smcr_conn *conn, const struct clc_msg *msg)
{
	bool strange;

	if (conn->rdv->step != RDV_WAIT_ACCEPT || msg->type != CLC_ACCEPT) {
		rdv_protocol_error(conn, "unexpected CLC message");
		return;
	}
	rdv_step(conn, RDV_NONE, 0);
	if (wants_no_link(conn->rdv)) {
		rdv_tcp_only(conn);
		return;
	}
	rdv_peer_waits(conn);
	conn->rdv->peer = msg->accept;
	/* A response to an extension that we did not send is invalid. */
	conn->rdv->peer.ext.present = msg->accept.ext.present && conn->rdv->proposal.ext.present;
	conn->client_used = conn->rdv->peer.ext.present && conn->rdv->open.client.kind != CLC_CLIENT_NONE &&
	    (msg->accept.ext.features & CLC_FEATURE_CLIENT) != 0;
	conn->dest_used = conn->rdv->peer.ext.present && conn->rdv->open.dest.kind != CLC_DEST_NONE &&
	    (msg->accept.ext.uses & CLC_USES_DEST) != 0;
	if (conn->rdv->peer.ext.present && conn->prewarm && conn->rdv->open.ask_server)
		conn->server = msg->accept.ext.server;
	uint32_t diag = rdv_take_accept(conn, msg);
	if (diag == 0 && msg->accept.first_contact)
		diag = first_contact(conn, &conn->rdv->peer);
	if (diag != 0)
		rdv_decline(conn, diag);
	if (diag != 0 || msg->accept.first_contact)
		return;
	struct link *via = find_link(conn, &strange);
	if (via != NULL && strcmp(via->lgr->peer_key, conn->rdv->open.peer_key) != 0)
		peer_learn(conn->eng, conn->rdv->open.peer_key, &via->lgr->owner);
	/* A group offered by the server is ready there, past its attempt at a second link, even if ours waits. */
	if (via != NULL && via->lgr->state == LGR_FORMING) {
		llc_no_add_link(via->lgr);
		rdv_act_on_contact(via->lgr);
	}
	/* A group existed after all: waiting connections may use it too. */
	if (conn->rdv->peer_ent != NULL && conn->rdv->peer_ent->leader == conn)
		peer_done(conn->eng, conn->rdv->peer_ent, PEER_OK);
	rdv_client_join(conn);
}
