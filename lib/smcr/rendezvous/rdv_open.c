/* Connections that open over a link of their group, without a CLC connection (doc/open.md). */
#include <string.h>

#include "smcr/data/grant.h"
#include "smcr/data/rmb.h"
#include "smcr/data/window.h"
#include "smcr/group/lgr.h"
#include "smcr/group/llc.h"
#include "smcr/rendezvous/rendezvous.h"
#include "smcr/state/engine.h"

/* Elements of the size that this connection has. */
static void
grant_more(struct lgr *lgr, const struct smcr_conn *conn)
{
	if (!lgr_is_suspect(lgr))
		grant_fill(lgr, conn->rmb->elem_size);
}

void
rdv_give_ticket(const struct smcr_conn *conn, struct lgr *lgr)
{
	const struct rdv *r = conn->rdv;

	if (!lgr->dialect.opens)
		return;
	if (conn->role == SMCR_CLIENT && r->peer.ext.ticket != 0 &&
	    (conn->dest_used || r->open.dest.kind == CLC_DEST_NONE))
		ticket_put(lgr, r->peer.ext.ticket, r->open.peer_key, &r->open, conn->client_used);
	if (conn->role == SMCR_SERVER && r->open.ticket != 0)
		ticket_put(lgr, r->open.ticket, "", &r->open, false);
	if (conn->role == SMCR_SERVER && r->open.ticket != 0)
		grant_more(lgr, conn);
}

/* The peer's element, as an Accept or Confirm would name it. */
static uint32_t
take_peer_elem(struct smcr_conn *conn, struct lgr *lgr, struct link *link, const struct open_elem *e)
{
	struct clc_accept a = { .rkey = e->rkey,
		.vaddr = e->vaddr,
		.rmbe_idx = e->idx,
		.alert_token = e->token,
		.size_code = e->size_code };

	return rdv_take_peer_elem(conn, lgr, link, &a);
}

/* -- client -- */

/* Its client, if it has one, has room in an OPEN, and the peer uses it. */
static bool
client_fits(const struct ticket *t, const struct smcr_open *open)
{
	struct open_client ignored;

	return open->client.kind == CLC_CLIENT_NONE || (t->uses_client && open_client_make(&open->client, &ignored));
}

static bool
may_open(const struct lgr *lgr, const struct smcr_open *open)
{
	const struct ticket *t = ticket_for(lgr, open);

	return t != NULL && client_fits(t, open) && lgr->role == SMCR_CLIENT && grant_is_on(lgr) &&
	    lgr->state == LGR_ACTIVE && lgr->grant_cnt > 0 && !lgr->end_wanted && !lgr_is_suspect(lgr) &&
	    !lgr_is_silent(lgr) && !quarantine_is_full(lgr) && lgr->conn_cnt < lgr_conns_max(lgr) &&
	    rmb_find_place(lgr, open) != NULL;
}

/* The emptiest of the groups that may open this connection: with several workers a peer has several. */
static struct lgr *
group_to_open(const struct smcr *eng, const struct smcr_open *open)
{
	struct lgr *best = NULL;

	if (eng->draining || eng->conns.used == eng->conns.max)
		return NULL;
	LIST_EACH(struct lgr, lgr, &eng->lgrs, node)
		if (may_open(lgr, open) && (best == NULL || lgr->conn_cnt < best->conn_cnt))
			best = lgr;
	return best;
}

/* An element that the peer has granted. */
static bool
take_granted_elem(struct smcr_conn *conn, struct lgr *lgr, struct link *link)
{
	struct grant grant;
	const struct remote_rmb *rr = grant_take(lgr, link, &grant);

	return rr != NULL &&
	    take_peer_elem(conn, lgr, link,
	        &(struct open_elem){ .token = grant.token,
	            .rkey = rr->on[link->slot].rkey,
	            .vaddr = rr->on[link->slot].addr,
	            .idx = grant.idx,
	            .size_code = grant.size_code }) == 0;
}

struct smcr_conn *
smcr_open_over_link(struct smcr *eng, const struct smcr_open *open)
{
	struct lgr *lgr = group_to_open(eng, open);
	struct link *link = lgr != NULL ? lgr_pick_link(lgr) : NULL;
	int err;
	struct smcr_conn *conn = link != NULL ? conn_new(eng, open, &err) : NULL;

	if (conn == NULL)
		return NULL;
	conn->rmb = rmb_find_place(lgr, open);
	conn->elem_idx = rmb_elem_get_from(conn->rmb);
	if (!take_granted_elem(conn, lgr, link)) {
		rmb_elem_put(conn->rmb, conn->elem_idx);
		conn_free(conn);
		return NULL;
	}
	conn->over_link = conn->open_owed = true;
	conn->ticket = ticket_for(lgr, open)->nr;
	conn->hops = open->hops;
	conn->origin = open->origin;
	conn->client_used = open_client_make(&open->client, &conn->client) && conn->client.kind != CLC_CLIENT_NONE;
	conn->dest_used = open->dest.kind != CLC_DEST_NONE; /* by the ticket */
	conn_attach(conn, lgr, link);
	lgr->joined_ns = eng->now_ns;
	eng->ctr.conns_client++;
	eng->ctr.opened_client++;
	conn_establish(conn);
	conn_await_answer(conn);
	conn_tx_schedule(conn);
	return conn;
}

/* -- server -- */

/* Not taken: no user knows it, and the client opens it by a rendezvous. */
static void
not_opened(struct smcr_conn *conn)
{
	conn->eng->ctr.not_opened_server++;
	conn->not_opened = conn->released = true;
	conn->rx.dropped = true;
	conn_set_state(conn, CONN_ACTIVE);
	conn->tx.space = cursor_space(conn->peer_elem_size, conn->lgr->eye_catcher);
	conn_abort(conn, SMCR_R_NOT_OPENED, "");
}

void
rdv_act_on_open(struct lgr *lgr)
{
	const struct open_msg *msg = &lgr->marks.open;
	struct link *link = lgr->marks.opened_over;
	const struct smcr *eng = lgr->eng;

	lgr->marks.opened_over = NULL;
	if (link == NULL || lgr->state != LGR_ACTIVE || lgr_pick_link(lgr) == NULL)
		return; /* the end of the group answers it */
	struct smcr_conn *conn = grant_take_spare(lgr, msg->granted_token, msg->cnt);
	if (conn == NULL) {
		lgr->eng->ctr.llc_ignored++; /* repeated after a failover */
		return;
	}
	if (take_peer_elem(conn, lgr, link, &msg->own) != 0) {
		conn->released = true;
		rmb_elem_put(conn->rmb, conn->elem_idx);
		conn->rmb = NULL;
		conn_end(conn, SMCR_R_PROTOCOL, "", false);
		llc_protocol_error(link, "OPEN with an RMB that was never confirmed");
		return;
	}
	lgr->joined_ns = eng->now_ns;
	lgr->eng->ctr.conns_server++;
	lgr->eng->ctr.opened_server++;
	conn_attach(conn, lgr, link_has_ended(link) ? lgr_pick_link(lgr) : link);
	if (eng->draining || !grant_is_on(lgr) || lgr->end_wanted || quarantine_is_full(lgr) ||
	    lgr->conn_cnt > lgr_conns_max(lgr) || !ticket_is_valid(lgr, msg->ticket) ||
	    !rdv_new(conn, &(struct smcr_open){ .role = SMCR_SERVER })) {
		not_opened(conn);
		return;
	}
	grant_more(lgr, conn);
	conn->ticket = msg->ticket;
	conn->rdv->proposal.ext.present = true;
	conn->hops = msg->hops;
	conn->origin = msg->origin;
	conn->rdv->proposal.tlvs.client = open_client_get(&msg->client);
	rdv_step(conn, RDV_WAIT_ADMIT, 0);
	conn_raise(conn, SMCR_EV_PROPOSAL);
}

void
rdv_admit_opened(struct smcr_conn *conn)
{
	rdv_finish(conn, conn->lgr, conn->link);
	conn->tx.pending = true; /* the answer */
	conn_tx_schedule(conn);
}

void
rdv_refuse_opened(struct smcr_conn *conn, enum smcr_reason reason)
{
	conn->eng->ctr.not_opened_server++;
	conn->not_opened = true;
	conn->rdv->abort = reason;
	rdv_finish(conn, conn->lgr, conn->link);
}

uint32_t
smcr_opened_ticket(const struct smcr_conn *conn)
{
	return conn->ticket;
}

struct smcr_scope
smcr_opened_scope(const struct smcr_conn *conn)
{
	return ticket_scope(conn->lgr, conn->ticket);
}

struct smcr_identity
smcr_opened_by(const struct smcr_conn *conn)
{
	return conn->lgr != NULL ? conn->lgr->owner.remote : (struct smcr_identity){ 0 };
}

/* Those that the client has left are as small. */
bool
smcr_opened_is_small(struct smcr_conn *conn, const struct smcr_open *want)
{
	bool small = conn->rmb != NULL && window_elem_size(conn->lgr, want, NULL) > conn->rmb->elem_size;

	if (small)
		grant_in_doubt(conn->lgr);
	return small;
}

void
smcr_set_app(struct smcr_conn *conn, void *app)
{
	conn->app = app;
}
