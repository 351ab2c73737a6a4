/* What both roles of the rendezvous do with devices, groups and elements; first contact as links and LLC exchanges see it. */
#include <errno.h>
#include <string.h>

#include "smcr/data/conn.h"
#include "smcr/data/rmb.h"
#include "smcr/group/lgr.h"
#include "smcr/group/link.h"
#include "smcr/group/llc.h"
#include "smcr/group/room.h"
#include "smcr/rendezvous/rendezvous.h"
#include "smcr/state/engine.h"

/* -- devices -- */

static uint8_t
transport_bit(const struct rnic_info *info)
{
	return info->transport == RNIC_TRANSPORT_IWARP ? CLC_TRANSPORT_IWARP : CLC_TRANSPORT_ROCE;
}

uint8_t
rdv_transports(const struct smcr *eng)
{
	uint8_t bits = 0;

	for (unsigned i = 0; i < eng->dev_cnt; i++) {
		struct rnic_info info = rnic_query(eng->devs[i]);

		if (info.port == RNIC_PORT_UP)
			bits |= transport_bit(&info);
	}
	return bits;
}

struct rnic_dev *
rdv_pick_device(const struct smcr *eng, uint8_t transports, const struct rnic_gid *want)
{
	struct rnic_dev *best = NULL;
	unsigned best_score = 0;

	for (unsigned i = 0; i < eng->dev_cnt; i++) {
		struct rnic_info info = rnic_query(eng->devs[i]);
		unsigned score = 1;

		if (info.port != RNIC_PORT_UP || (transports & transport_bit(&info)) == 0)
			continue;
		/* The order of devices is that of their coming. */
		if (info.transport == RNIC_TRANSPORT_ROCE)
			score += 1;
		if (want != NULL && memcmp(&info.gid, want, sizeof(*want)) == 0)
			score += 2;
		if (score <= best_score)
			continue;
		best = eng->devs[i];
		best_score = score;
	}
	return best;
}

bool
rdv_vlan_fits(const struct smcr_conn *conn, const struct lgr *lgr)
{
	const struct rnic_info *info = NULL;
	struct rnic_dev *dev;

	for (unsigned i = 0; i < LINK_SLOTS && info == NULL; i++)
		if (lgr->links[i].state != LINK_FREE)
			info = &lgr->links[i].info;
	if (info == NULL)
		return true;
	dev = rdv_pick_device(conn->eng, transport_bit(info), &conn->rdv->open.local_addr);
	return dev == NULL || rnic_query(dev).vlan == lgr->vlan;
}

uint32_t
rdv_form_group(struct smcr_conn *conn, const uint8_t peer_id[8], struct rnic_dev *dev, uint64_t token)
{
	struct owner owner = owner_of(peer_id, &conn->rdv->open.remote);
	uint32_t diag = room_for_group(conn->eng, conn->role, &owner.remote, dev);
	struct link *link;
	struct lgr *lgr;
	struct rmb *rmb;

	if (diag != 0)
		return diag;
	lgr = lgr_new(conn->eng, conn->role, &owner);
	if (lgr == NULL)
		return CLC_DIAG_NO_MEMORY;
	lgr->token = token;
	lgr->vlan = rnic_query(dev).vlan;
	lgr->contact.conn = conn;
	memcpy(lgr->contact.proposed_from.b, conn->rdv->proposal.gid, sizeof(lgr->contact.proposed_from.b));
	memcpy(lgr->peer_key, conn->rdv->open.peer_key, sizeof(lgr->peer_key));
	rdv_set_group(conn->rdv, lgr);
	conn->eng->ctr.first_contacts++;
	if (link_new(lgr, dev, &link) < 0)
		return CLC_DIAG_READY_LINK;
	rmb = rmb_new(lgr, conn->rdv->open.elem_size, rmb_next_cnt(lgr, conn->rdv->open.elem_size));
	if (rmb == NULL)
		return CLC_DIAG_REG_BUFFER;
	/* The first RMB is confirmed by the CLC exchange itself (3.5.1). */
	conn->rmb = rmb;
	conn->elem_idx = rmb_elem_get_from(rmb);
	return 0;
}

uint32_t
rdv_take_peer_elem(struct smcr_conn *conn, struct lgr *lgr, struct link *via, const struct clc_accept *a)
{
	bool fresh = lgr->state == LGR_FORMING;
	struct remote_rmb *rr = fresh ? remote_rmb_add(lgr, via, a->rkey, a->vaddr)
	                              : remote_rmb_find(lgr, via, a->rkey, &a->vaddr);
	uint32_t size = clc_size_bytes(a->size_code);
	struct smcr_conn *old;

	if (rr == NULL)
		return CLC_DIAG_RTOKEN;
	/* All elements of an RMB have one size (2.1). One that nobody uses may be another RMB at the same place, whose predecessor
	 * we kept when we refused DELETE RKEY. */
	if (rr->used == 0)
		rr->elem_size = size;
	if (rr->elem_size != size)
		return CLC_DIAG_RTOKEN;
	old = idtable_get(&conn->eng->conns, rr->conn_id[a->rmbe_idx]);
	if (old != NULL && old->state == CONN_RENDEZVOUS) {
		conn->eng->ctr.elem_conflicts++;
		rdv_abort(old, SMCR_R_ELEM_CONFLICT);
	} else if (old != NULL) {
		conn_elem_taken(old);
	}
	quarantine_let_go(lgr, rr, a->rmbe_idx);
	conn_hold_peer_elem(conn, rr, a);
	return 0;
}

void
rdv_peer_waits(struct smcr_conn *conn)
{
	conn->rdv->until_ns = conn->eng->now_ns + conn->eng->cfg.clc_ms * MS / 4 * 3;
}

uint32_t
rdv_patience_ms(const struct smcr_conn *conn)
{
	int64_t left_ms = (conn->rdv->until_ns - conn->eng->now_ns) / MS;

	return left_ms > 0 ? (uint32_t)left_ms : 1; /* 0 would be for ever */
}

/* Two exchanges, at most. */
static uint32_t
rmb_patience_ms(const struct smcr_conn *conn)
{
	uint32_t left_ms = rdv_patience_ms(conn), two = 2 * conn->eng->cfg.llc_ms;

	return left_ms < two ? left_ms : two;
}

void
rdv_wait_rmb(struct smcr_conn *conn, struct lgr *lgr, enum rdv_step step)
{
	int err;

	rdv_set_group(conn->rdv, lgr);
	list_push(&lgr->wait_rmb, &conn->rdv->wait);
	rdv_step(conn, step, rmb_patience_ms(conn));
	err = llc_add_rmb(lgr, conn->rdv->open.elem_size);
	if (err < 0) {
		list_remove(&conn->rdv->wait);
		rdv_decline(conn, err == -ENOMEM ? CLC_DIAG_NO_MEMORY : CLC_DIAG_RTOKEN);
	}
}

void
rdv_act_on_rmb(struct lgr *lgr)
{
	enum rmb_mark mark = lgr->marks.rmb;
	struct list_node todo;
	struct rdv *r;

	lgr->marks.rmb = RMB_WAIT;
	if (mark == RMB_WAIT)
		return;
	list_move_all(&todo, &lgr->wait_rmb);
	while ((r = LIST_POP(struct rdv, &todo, wait)) != NULL) {
		rdv_set_group(r, NULL);
		if (mark == RMB_REFUSED)
			rdv_decline(r->conn, CLC_DIAG_RTOKEN);
		else if (r->conn->role == SMCR_CLIENT)
			rdv_client_rmb_ready(r->conn);
		else
			rdv_server_choose(r->conn);
	}
	mark_conn_left(lgr);
	/* Those that waited may have found an element elsewhere. */
	if (list_empty(&lgr->wait_rmb))
		mark_exchanges(lgr);
}

void
rdv_finish(struct smcr_conn *conn, struct lgr *lgr, struct link *link)
{
	bool prewarm = conn->rdv->prewarm;
	enum smcr_reason abort = conn->rdv->abort;

	if (conn->lgr == NULL)
		conn_attach(conn, lgr, link);
	rdv_ended(conn);
	conn_establish(conn);
	if (prewarm || abort != SMCR_OK) { /* nothing flows, and data that overtook the Confirm are nobody's */
		conn->events &= ~(unsigned)(SMCR_EV_ESTABLISHED | SMCR_EV_READABLE | SMCR_EV_WRITABLE);
		conn->established = false;
	}
	if (abort != SMCR_OK)
		smcr_abort(conn, abort);
	else if (prewarm)
		smcr_close(conn);
}

/* -- first contact, as the link and the LLC exchanges see it -- */

void
rdv_link_connected(struct lgr *lgr)
{
	if (lgr->contact.conn == NULL)
		return;
	if (lgr->role == SMCR_CLIENT)
		rdv_client_connected(lgr->contact.conn);
	else
		rdv_server_connected(lgr->contact.conn);
}

static void
group_ready(struct lgr *lgr)
{
	struct smcr_conn *conn = lgr->contact.conn;
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
}

/* For whoever falls back because of it. */
static void
note_link_failure(struct smcr_conn *conn, const char *why)
{
	const struct link *link = rdv_first_link(conn);

	conn->diag.detail = why;
	if (link == NULL)
		return;
	conn->diag.rnic = link->remote.gid;
	conn->diag.mpa_port = conn->role == SMCR_CLIENT ? link->remote.mpa_port : 0;
}

static void
group_failed(struct smcr_conn *conn, uint32_t diag, enum smcr_reason reason, const char *why)
{
	const struct lgr_contact *contact = &conn->rdv->lgr->contact;

	note_link_failure(conn, why);
	switch (conn->rdv->step) {
	case RDV_WAIT_CONFIRM:
		/* A Decline may not chase our Accept (C.1): it answers the Confirm. The client may have given up,
		 * and declines itself. */
		conn->rdv->failed = diag;
		return;
	case RDV_CONNECTING:
		rdv_decline(conn, diag);
		return;
	case RDV_WAIT_GROUP:
		if (contact->confirm_link_out)
			rdv_end(conn, reason, why);
		else
			rdv_decline(conn, diag); /* the server's may cross it: RDV_LATE_DECLINE */
		return;
	case RDV_WAIT_LINK:
		/* A CONFIRM LINK that never reached the client is not sent (C.2). */
		if (!contact->confirm_link_out || !contact->confirm_link_in)
			rdv_decline(conn, diag);
		/* else the client's own failure to answer brings its Decline, or our timer ends it (C.7). */
		return;
	case RDV_NONE:
	case RDV_LATE_DECLINE:
	case RDV_WAIT_TURN:
	case RDV_WAIT_ACCEPT:
	case RDV_WAIT_RKEY:
	case RDV_WAIT_PROPOSAL:
	case RDV_WAIT_ADMIT:
	case RDV_WAIT_PEER_GROUP:
	case RDV_WAIT_SRV_RKEY:
		rdv_end(conn, reason, why);
		return;
	}
}

void
rdv_act_on_contact(struct lgr *lgr)
{
	struct lgr_marks m = lgr->marks;

	lgr->marks.contact = CONTACT_GOES_ON;
	if (lgr->contact.conn == NULL || m.contact == CONTACT_GOES_ON)
		return;
	if (m.contact == CONTACT_READY)
		group_ready(lgr);
	else if (m.contact == CONTACT_FAILED)
		group_failed(lgr->contact.conn, m.diag, m.reason, m.why);
	else
		rdv_end(lgr->contact.conn, m.reason, m.why);
}

bool
rdv_leads(struct smcr_conn *conn, struct peer *p, enum rdv_step wait)
{
	if (p == NULL) {
		rdv_decline(conn, CLC_DIAG_NO_MEMORY);
	} else if (peer_held_off(conn->eng, p)) {
		rdv_give_up(conn);
	} else if (p->leader != NULL) {
		peer_wait(p, conn);
		rdv_step(conn, wait, rdv_patience_ms(conn));
	} else {
		peer_lead(p, conn);
		return true;
	}
	return false;
}

void
rdv_go_on(struct smcr_conn *conn, struct peer *p)
{
	if (conn->role == SMCR_CLIENT)
		rdv_client_go_on(conn, p);
	else
		rdv_server_choose(conn);
}
