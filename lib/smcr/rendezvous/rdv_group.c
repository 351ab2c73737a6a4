/* Groups and elements for both roles of the rendezvous; first contact as seen by links and LLC exchanges. */
#include <errno.h>
#include <string.h>

#include "base/minmax.h"
#include "smcr/data/rmb.h"
#include "smcr/data/window.h"
#include "smcr/group/lgr.h"
#include "smcr/group/llc.h"
#include "smcr/rendezvous/rendezvous.h"
#include "smcr/state/engine.h"

static uint32_t
new_elem_size(const struct smcr_conn *conn, const struct lgr *lgr)
{
	bool less;
	uint32_t size = window_elem_size(lgr, &conn->rdv->open, &less);

	conn->eng->ctr.elems_shrunk += less;
	return size;
}

uint32_t
rdv_form_group(struct smcr_conn *conn, const struct owner *owner, struct rnic_dev *dev, uint64_t token)
{
	uint32_t diag = room_for_group(conn->eng, conn->role, &owner->remote, dev);
	const struct clc_proposal *p = &conn->rdv->proposal;
	struct link *link;

	if (diag != 0)
		return diag;
	struct lgr *lgr = lgr_new(conn->eng, conn->role, owner);
	if (lgr == NULL)
		return CLC_DIAG_NO_MEMORY;
	lgr->version = conn->rdv->version;
	lgr->terms = conn->rdv->terms;
	if (lgr->terms.release >= 1) {
		lgr->conns_limit = lgr->terms.max_conns;
		lgr->links_limit = lgr->terms.max_links;
	}
	dialect_choose(&lgr->dialect, rdv_peer_ext(conn), engine_features(conn->eng));
	lgr->token = token;
	lgr->in_tls = conn->rdv->open.in_tls;
	lgr->only_tls = conn->rdv->open.in_tls && conn->rdv->open.only_tls;
	memcpy(lgr->secret, conn->rdv->open.secret, sizeof(lgr->secret));
	lgr->vlan = rnic_query(dev).vlan;
	lgr->contact.conn = conn;
	memcpy(
	    lgr->contact.proposed_from.b, lgr->version >= 2 ? p->v2.gid : p->gid, sizeof(lgr->contact.proposed_from.b));
	memcpy(lgr->peer_name, conn->rdv->open.peer_name, sizeof(lgr->peer_name));
	memcpy(lgr->peer_key, conn->rdv->open.peer_key, sizeof(lgr->peer_key));
	rdv_set_group(conn->rdv, lgr);
	conn->eng->ctr.first_contacts++;
	conn->eng->ctr.first_contacts_v2 += lgr->version >= 2;
	if (link_new(lgr, dev, &link) < 0)
		return CLC_DIAG_READY_LINK;
	/* The CLC exchange confirms the first RMB (3.5.1). */
	uint32_t elem_size = new_elem_size(conn, lgr);
	conn->rmb = rmb_new(lgr, elem_size, window_next_cnt(lgr, elem_size));
	if (conn->rmb == NULL)
		return CLC_DIAG_REG_BUFFER;
	conn->elem_idx = rmb_elem_get_from(conn->rmb);
	return 0;
}

uint32_t
rdv_take_peer_elem(struct smcr_conn *conn, struct lgr *lgr, struct link *via, const struct clc_accept *a)
{
	struct remote_rmb *rr = lgr->state == LGR_FORMING ? remote_rmb_add(lgr, via, a->rkey, a->vaddr)
	                                                  : remote_rmb_find(lgr, via, a->rkey, &a->vaddr);
	uint32_t size = clc_size_bytes(a->size_code);

	if (rr == NULL)
		return CLC_DIAG_RTOKEN;
	/* All elements of an RMB have one size (2.1). An unused one, its DELETE RKEY refused, may be a new RMB. */
	if (rr->used == 0)
		rr->elem_size = size;
	if (rr->elem_size != size)
		return CLC_DIAG_RTOKEN;
	struct smcr_conn *old = idtable_get(&conn->eng->conns, rr->conn_id[a->rmbe_idx]);
	if (old != NULL && old->state == CONN_RENDEZVOUS) {
		conn->eng->ctr.elem_conflicts++;
		rdv_abort(old, SMCR_R_ELEM_CONFLICT);
	} else if (old != NULL) {
		conn_elem_taken(old);
	}
	quarantine_release(lgr, rr, a->rmbe_idx);
	conn_hold_peer_elem(conn, rr, a);
	return 0;
}

void
rdv_peer_waits(struct smcr_conn *conn)
{
	conn->rdv->until_ns = conn->eng->now_ns + conn->eng->cfg.clc_ms * MS / 4 * 3;
}

uint32_t
rdv_wait_ms(const struct smcr_conn *conn)
{
	int64_t left_ms = (conn->rdv->until_ns - conn->eng->now_ns) / MS;

	return left_ms > 0 ? (uint32_t)left_ms : 1; /* 0 disables the timer */
}

bool
rdv_leads(struct peer *p, struct smcr_conn *conn)
{
	if (p == NULL) {
		rdv_decline(conn, CLC_DIAG_NO_MEMORY);
	} else if (peer_holds_off(p, conn)) {
		rdv_give_up(conn);
	} else if (p->leader != NULL) {
		conn->rdv->peer_ent = p;
		list_push(&p->waiting, &conn->rdv->wait);
		rdv_step(conn, RDV_WAIT_TURN, rdv_wait_ms(conn));
	} else {
		p->leader = conn;
		p->began_ns = conn->eng->now_ns;
		conn->rdv->peer_ent = p;
		return true;
	}
	return false;
}

void
rdv_wait_rmb(struct smcr_conn *conn, struct lgr *lgr)
{
	rdv_set_group(conn->rdv, lgr);
	list_push(&lgr->wait_rmb, &conn->rdv->wait);
	/* Two exchanges, at most. */
	rdv_step(conn, RDV_WAIT_RKEY, min_u32(rdv_wait_ms(conn), 2 * conn->eng->cfg.llc_ms));
	int err = llc_add_rmb(lgr, new_elem_size(conn, lgr));
	if (err < 0) {
		list_remove(&conn->rdv->wait);
		rdv_decline(conn, err == -ENOMEM ? CLC_DIAG_NO_MEMORY : CLC_DIAG_RTOKEN);
	}
}

void
rdv_send_accept(struct smcr_conn *conn, enum clc_type type, const struct link *link, bool first_contact)
{
	struct clc_msg msg = { .type = type, .version = (uint8_t)link->lgr->version };
	struct clc_accept *a = &msg.accept;
	const struct rnic_mr *mr = conn->rmb->mr[link->slot];

	a->first_contact = first_contact;
	memcpy(a->peer_id, conn->eng->peer_id, sizeof(a->peer_id));
	memcpy(a->gid, link->info.gid.b, sizeof(a->gid));
	memcpy(a->mac, link->info.mac, sizeof(a->mac));
	a->qpn = link->qp->qpn;
	a->rkey = mr->rkey;
	a->rmbe_idx = conn->elem_idx;
	a->alert_token = conn->id;
	a->size_code = (uint8_t)clc_size_code(conn->rmb->elem_size);
	a->mtu_code = link->mtu_code;
	a->vaddr = mr->addr;
	a->psn = link->qp->psn;
	if (msg.version >= 2)
		rdv_tell_terms(conn, type, link, a);
	else if (rdv_is_smcrd(conn)) {
		a->ext.present = true;
		a->ext.version = CLC_SMCRD_EXT_VERSION;
		a->ext.transports = rdv_transports_sent(conn, rdv_transport_bit(link->info.transport));
		a->ext.features = (uint8_t)(engine_features(conn->eng) |
		    (conn->rdv->measure ? CLC_FEATURE_MEASURE : 0) | (rdv_uses_client(conn) ? CLC_FEATURE_CLIENT : 0));
		a->ext.uses = type == CLC_ACCEPT && conn->dest_used ? CLC_USES_DEST : 0;
		a->ext.mpa_port = link->info.mpa_port;
		a->ext.recv_depth = (uint16_t)conn->eng->cfg.rq_depth;
		/* Agreed at first contact; later it proves that the group is ours. */
		a->ext.token = type == CLC_ACCEPT ? link->lgr->token : 0;
		a->ext.server = type == CLC_ACCEPT ? conn->server : 0;
		a->ext.ticket = type == CLC_ACCEPT && link->lgr->dialect.opens ? conn->rdv->open.ticket : 0;
	}
	rdv_send(conn, &msg);
}

void
rdv_finish(struct smcr_conn *conn, struct lgr *lgr, struct link *link)
{
	const struct rdv *r = conn->rdv;
	enum smcr_reason abort = r->abort;
	/* Of a measurement: applications at both ends use it, although it was opened to create the group. */
	const bool measured = conn->role == SMCR_SERVER
	    ? r->measure
	    : r->open.measure && r->peer.ext.present && (r->peer.ext.features & CLC_FEATURE_MEASURE) != 0;
	const bool alone = conn->prewarm && !measured;

	if (conn->lgr == NULL)
		conn_attach(conn, lgr, link);
	lgr_renew_proof(lgr, r->open.remote.proof);
	lgr->joined_ns = conn->eng->now_ns;
	if (!alone && abort == SMCR_OK)
		rdv_give_ticket(conn, lgr);
	rdv_ended(conn);
	conn_establish(conn);
	if (alone || abort != SMCR_OK) { /* no data flows, and data that overtook the Confirm is dropped */
		conn->events &= ~(unsigned)(SMCR_EV_ESTABLISHED | SMCR_EV_READABLE | SMCR_EV_WRITABLE);
		conn->established = false;
	}
	if (abort != SMCR_OK) {
		conn->rx.dropped = true;
		conn_abort(conn, abort, "");
	} else if (alone) {
		conn_close(conn);
	}
}

/* -- first contact, as seen by the link and the LLC exchanges -- */

static void
group_failed(struct smcr_conn *conn, uint32_t diag, enum smcr_reason reason, const char *why)
{
	const struct lgr_contact *contact = &conn->rdv->lgr->contact;
	const struct link *link = rdv_first_link(conn);
	enum rdv_step step = conn->rdv->step;

	/* For connections that fall back because of it. */
	conn->diag.detail = why;
	if (link != NULL) {
		conn->diag.silent = link->silent;
		conn->diag.rnic = link->remote.gid;
		conn->diag.mpa_port = conn->role == SMCR_CLIENT ? link->remote.mpa_port : 0;
	}
	/* No Decline directly after our Accept (C.1): it answers the Confirm. The client may decline itself. */
	if (step == RDV_WAIT_CONFIRM)
		conn->rdv->failed = diag;
	else if (step == RDV_CONNECTING || (step == RDV_WAIT_GROUP && !contact->confirm_link_out))
		rdv_decline(conn, diag); /* the server's may cross it: RDV_LATE_DECLINE */
	else if (step != RDV_WAIT_LINK)
		rdv_end(conn, reason, why);
	/* A CONFIRM LINK not received counts as unsent (C.2). Else the client declines, or our timer fires (C.7). */
	else if (!contact->confirm_link_out || !contact->confirm_link_in)
		rdv_decline(conn, diag);
}

void
rdv_act_on_contact(struct lgr *lgr)
{
	struct lgr_marks m = lgr->marks;
	struct smcr_conn *conn = lgr->contact.conn;

	lgr->marks.contact = CONTACT_GOES_ON;
	if (conn == NULL || m.contact == CONTACT_GOES_ON)
		return;
	if (m.contact == CONTACT_READY) {
		struct peer *p = conn->rdv->peer_ent;
		struct link *link = rdv_first_link(conn);

		lgr_set_active(lgr);
		rmb_set_state(conn->rmb, RMB_CONFIRMED, NULL);
		lgr->contact.conn = NULL;
		rdv_set_group(conn->rdv, NULL);
		conn->rdv->peer_ent = NULL;
		rdv_finish(conn, lgr, link);
		if (p != NULL)
			peer_done(lgr->eng, p, PEER_OK);
	} else if (m.contact == CONTACT_FAILED) {
		group_failed(conn, m.diag, m.reason, m.why);
	} else if (m.reason == SMCR_R_LLC_TIMEOUT && conn->rdv->step == RDV_WAIT_LINK &&
	    !lgr->contact.confirm_link_in && rdv_is_too_late_for_linux(conn)) {
		conn->diag.detail = m.why;
		rdv_decline(conn, CLC_DIAG_TIMEOUT_CONFIRM_LINK); /* sends nothing: the Decline of Linux is awaited */
	} else {
		rdv_end(conn, m.reason, m.why);
	}
}
