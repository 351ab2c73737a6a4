/* CONFIRM LINK, ADD LINK, DELETE LINK: exchanges that change the links of a group (RFC 7609 3.5.1, 3.5.4, 3.5.5.1). */
#include <string.h>

#include "smcr/llc_impl.h"
#include "smcr/rendezvous.h"

/* -- CONFIRM LINK -- */

static int
send_confirm_link(struct link *link, bool response)
{
	struct smcr *eng = link->lgr->eng;
	struct llc_msg msg = { .type = LLC_CONFIRM_LINK, .response = response };
	struct llc_confirm_link *m = &msg.confirm_link;

	memcpy(m->mac, link->info.mac, sizeof(m->mac));
	memcpy(m->gid, link->info.gid.b, sizeof(m->gid));
	m->qpn = link->qp->qpn;
	m->link_num = link->number;
	m->link_uid = link->user_id;
	m->max_links = (uint8_t)eng->cfg.links_max;
	m->no_eyecatcher = !link->lgr->rfc_cursors;
	return link_send_llc(link, &msg);
}

/* The peer's side of the link is the one that CLC named, and both sides agree on the cursors. */
static bool
confirm_link_fits(struct link *link, const struct llc_confirm_link *m)
{
	struct lgr *lgr = link->lgr;

	if (m->qpn != link->remote.qpn || m->link_num == 0 || memcmp(m->gid, link->remote.gid.b, sizeof(m->gid)) != 0 ||
	    memcmp(m->mac, link->remote.mac, sizeof(m->mac)) != 0)
		return false;
	link->peer_user_id = m->link_uid;
	lgr->links_limit = m->max_links < lgr->eng->cfg.links_max ? m->max_links : (uint8_t)lgr->eng->cfg.links_max;
	/* Who lacks Linux's flags reads RFC 7609: then the group has eye catchers and cursors from 4. */
	lgr->eye_catcher = lgr->rfc_cursors || !m->no_eyecatcher;
	return true;
}

/* From here on the peer may send on the first connection, which opens only with the group. */
static void
first_link_up(struct link *link)
{
	struct smcr_conn *conn = link->lgr->first_conn;

	link_set_active(link);
	conn_attach(conn, link->lgr, link);
}

void
llc_first_contact(struct link *link)
{
	struct lgr *lgr = link->lgr;
	uint32_t ms = lgr->eng->cfg.confirm_link_ms;

	if (lgr->role == SMCR_CLIENT) {
		llc_start(lgr, LLC_FLOW_LINK, LLC_WAIT_CONFIRM_LINK, link, ms);
		return;
	}
	link->number = lgr->next_link_number++;
	if (send_confirm_link(link, false) < 0) {
		rdv_group_failed(lgr, CLC_DIAG_READY_LINK, SMCR_R_LINK_LOST, "CONFIRM LINK could not be sent");
		return;
	}
	lgr->first_conn->rdv->confirm_link_out = true;
	llc_start(lgr, LLC_FLOW_LINK, LLC_WAIT_CONFIRM_LINK_RSP, link, ms);
}

void
llc_confirm_link_req(struct link *link, const struct llc_msg *msg)
{
	struct lgr *lgr = link->lgr;
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];

	if (f->step != LLC_WAIT_CONFIRM_LINK || f->link != link) {
		llc_protocol_error(link, "unexpected CONFIRM LINK");
		return;
	}
	if (!confirm_link_fits(link, &msg->confirm_link)) {
		lgr->eng->ctr.bad_llc++;
		rdv_group_failed(lgr, CLC_DIAG_NO_SERVER_LINK, SMCR_R_PROTOCOL, "CONFIRM LINK names another link");
		return;
	}
	link->number = msg->confirm_link.link_num;
	(void)link->dev->ops->qp_rts(link->qp);
	if (send_confirm_link(link, true) < 0) {
		rdv_group_failed(lgr, CLC_DIAG_READY_LINK, SMCR_R_LINK_LOST, "CONFIRM LINK could not be answered");
		return;
	}
	lgr->first_conn->rdv->confirm_link_out = true;
	first_link_up(link);
	llc_start(lgr, LLC_FLOW_LINK, LLC_WAIT_ADD_LINK, link, lgr->eng->cfg.add_link_ms);
}

/* -- ADD LINK -- */

/* The server offers a second link, over the same device when it has but one (3.5.1.6). */
static bool
offer_link(struct link *over)
{
	struct lgr *lgr = over->lgr;
	struct llc_msg msg = { .type = LLC_ADD_LINK };
	struct llc_add_link *m = &msg.add_link;
	struct link *link;

	if (link_new(lgr, over->dev, &link) < 0)
		return false;
	link->number = lgr->next_link_number++;
	memcpy(m->mac, link->info.mac, sizeof(m->mac));
	memcpy(m->gid, link->info.gid.b, sizeof(m->gid));
	m->qpn = link->qp->qpn;
	m->psn = link->qp->psn;
	m->link_num = link->number;
	m->mtu_code = link->mtu_code;
	if (link->dev->ops->qp_expect(link->qp) < 0 || link_send_llc(over, &msg) < 0) {
		link_stop(link, "not offered", false);
		return false;
	}
	llc_start(lgr, LLC_FLOW_LINK, LLC_WAIT_ADD_LINK_RSP, over, lgr->eng->cfg.llc_ms);
	lgr->flow[LLC_FLOW_LINK].new_link = link;
	return true;
}

void
llc_confirm_link_rsp(struct link *link, const struct llc_msg *msg)
{
	struct lgr *lgr = link->lgr;
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];

	if (f->step != LLC_WAIT_CONFIRM_LINK_RSP || f->link != link) {
		llc_protocol_error(link, "unexpected CONFIRM LINK response");
		return;
	}
	if (!confirm_link_fits(link, &msg->confirm_link) || msg->confirm_link.link_num != link->number) {
		llc_protocol_error(link, "CONFIRM LINK response names another link");
		return;
	}
	lgr->first_conn->rdv->confirm_link_in = true;
	first_link_up(link);
	/* Data waits for the attempt at a second link (3.5.1.6); without one it has failed already (C.8). */
	if (!offer_link(link)) {
		llc_done(lgr, LLC_FLOW_LINK);
		rdv_group_ready(lgr);
	}
}

static void
reject_add_link(struct link *link, const struct llc_msg *req, uint8_t reason)
{
	struct llc_msg msg = *req;

	msg.response = true;
	msg.add_link.rejected = true;
	msg.add_link.reject_reason = reason;
	(void)link_send_llc(link, &msg); /* a full queue is a broken link, which reports itself */
}

void
llc_add_link_req(struct link *link, const struct llc_msg *msg)
{
	struct lgr *lgr = link->lgr;
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];
	bool bad_mtu = clc_mtu_bytes(msg->add_link.mtu_code) == 0;

	reject_add_link(link, msg, bad_mtu ? LLC_REJECT_BAD_MTU : LLC_REJECT_NO_ALT_PATH);
	if (f->step == LLC_WAIT_ADD_LINK && f->link == link) {
		llc_done(lgr, LLC_FLOW_LINK);
		rdv_group_ready(lgr);
	}
}

/* The client tells of another device: nothing to do while a group has one link. */
void
llc_add_link_fyi(struct link *link, const struct llc_msg *msg)
{
	(void)msg;
	link->lgr->eng->ctr.llc_ignored++;
}

/* The attempt is over; the group goes on with one link (C.8). */
static void
add_link_failed(struct lgr *lgr)
{
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];

	if (f->new_link != NULL)
		link_stop(f->new_link, "second link was not set up", false);
	llc_done(lgr, LLC_FLOW_LINK);
	if (lgr->state == LGR_FORMING)
		rdv_group_ready(lgr);
}

void
llc_add_link_over(struct lgr *lgr)
{
	if (lgr->flow[LLC_FLOW_LINK].step == LLC_WAIT_ADD_LINK)
		add_link_failed(lgr);
}

bool
llc_link_lost(struct link *link)
{
	struct lgr *lgr = link->lgr;
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];

	if (f->new_link == link) {
		f->new_link = NULL;
		add_link_failed(lgr);
		return true;
	}
	if (f->link != link || f->new_link == NULL)
		return false;
	/* The first link is lost while a second one is on offer: nothing to go on with. A client that was not through
	 * declines (C.2); the timer ends the wait for that. */
	link_stop(f->new_link, "the first link was lost", false);
	f->new_link = NULL;
	f->link = NULL;
	f->step = LLC_WAIT_CONFIRM_LINK_RSP;
	return false;
}

void
llc_add_link_rsp(struct link *link, const struct llc_msg *msg)
{
	struct lgr *lgr = link->lgr;
	struct llc_flow *f = &lgr->flow[LLC_FLOW_LINK];
	struct llc_msg del = { .type = LLC_DELETE_LINK };

	if (f->step != LLC_WAIT_ADD_LINK_RSP || f->link != link || f->new_link == NULL ||
	    msg->add_link.link_num != f->new_link->number) {
		lgr->eng->ctr.llc_ignored++; /* late: the exchange timed out meanwhile */
		return;
	}
	if (msg->add_link.rejected) {
		add_link_failed(lgr);
		return;
	}
	/* One link is all that is supported: taken back, and acknowledged before data flows (C.7.1). */
	del.delete_link.link_num = f->new_link->number;
	del.delete_link.reason = LLC_DELETE_PROGRAM;
	if (link_send_llc(link, &del) < 0)
		add_link_failed(lgr);
	else
		llc_start(lgr, LLC_FLOW_LINK, LLC_WAIT_DELETE_LINK_RSP, link, lgr->eng->cfg.llc_ms);
}

/* -- DELETE LINK -- */

static const char *
reason_text(uint32_t reason)
{
	switch (reason) {
	case LLC_DELETE_LOST_PATH:
		return "DELETE LINK: lost path";
	case LLC_DELETE_OPERATOR:
		return "DELETE LINK: operator";
	case LLC_DELETE_PROGRAM:
		return "DELETE LINK: idle";
	case LLC_DELETE_PROTOCOL:
		return "DELETE LINK: protocol violation";
	case LLC_DELETE_ASYM_NOT_NEEDED:
		return "DELETE LINK: asymmetric link no longer needed";
	default:
		return "DELETE LINK";
	}
}

void
llc_delete_group(struct lgr *lgr, uint32_t reason)
{
	struct link *link = lgr_pick_link(lgr);
	struct llc_msg msg = { .type = LLC_DELETE_LINK };
	bool server = lgr->role == SMCR_SERVER;

	lgr->delete_why = reason_text(reason);
	msg.delete_link.all = true;
	msg.delete_link.orderly = true;
	msg.delete_link.reason = reason;
	if (link == NULL || link_send_llc(link, &msg) < 0) {
		lgr_down(lgr, SMCR_R_GROUP_DELETED, lgr->delete_why);
		return;
	}
	llc_start(
	    lgr, LLC_FLOW_LINK, server ? LLC_WAIT_DELETE_LINK_SENT : LLC_WAIT_DELETE_LINK, link, lgr->eng->cfg.llc_ms);
}

static void
answer_delete(struct link *link, const struct llc_msg *req, uint32_t reason)
{
	struct llc_msg msg = *req;

	msg.response = true;
	msg.delete_link.reason = reason;
	(void)link_send_llc(link, &msg);
}

void
llc_delete_link_from_server(struct link *link, const struct llc_msg *msg)
{
	struct lgr *lgr = link->lgr;
	const struct llc_delete_link *m = &msg->delete_link;
	struct link *gone;

	if (m->all) {
		lgr_down(lgr, SMCR_R_GROUP_DELETED, reason_text(m->reason));
		return;
	}
	gone = llc_link_by_number(lgr, m->link_num);
	answer_delete(link, msg, gone == NULL ? LLC_DELETE_UNKNOWN_LINK : m->reason);
	/* The answer goes out though it may travel on the very link that ends (3.5.5.1.3). */
	if (gone == link)
		link_retire(gone, reason_text(m->reason));
	else if (gone != NULL)
		link_down(gone, reason_text(m->reason));
}

/* A client asks; the server does it (3.5.5.1.4). The whole group at once: RST for its connections (3.5.4). */
void
llc_delete_link_from_client(struct link *link, const struct llc_msg *msg)
{
	struct lgr *lgr = link->lgr;
	const struct llc_delete_link *m = &msg->delete_link;
	struct link *gone = m->all ? NULL : llc_link_by_number(lgr, m->link_num);
	struct llc_msg req = *msg;

	if (m->all || (gone != NULL && lgr->active_cnt <= 1)) {
		if (lgr->state == LGR_ACTIVE)
			lgr_delete(lgr, m->reason);
		return;
	}
	if (gone == NULL) {
		answer_delete(link, msg, LLC_DELETE_UNKNOWN_LINK);
		return;
	}
	(void)link_send_llc(link, &req);
	link_down(gone, reason_text(m->reason));
}

void
llc_delete_link_rsp(struct link *link, const struct llc_msg *msg)
{
	struct lgr *lgr = link->lgr;

	(void)msg;
	if (lgr->flow[LLC_FLOW_LINK].step == LLC_WAIT_DELETE_LINK_RSP)
		add_link_failed(lgr);
	else
		lgr->eng->ctr.llc_ignored++;
}

/* -- C.7.1 -- */

void
llc_link_timeout(struct lgr *lgr, enum llc_step step)
{
	switch (step) {
	case LLC_WAIT_CONFIRM_LINK:
	case LLC_WAIT_CONFIRM_LINK_RSP:
		/* The other side should have declined by now: the TCP connection is broken (C.7.1). */
		rdv_end(lgr->first_conn, SMCR_R_LLC_TIMEOUT, "no CONFIRM LINK from the peer");
		break;
	case LLC_WAIT_ADD_LINK:
	case LLC_WAIT_ADD_LINK_RSP:
		/* C.7.1 would reset; 3.5.1.6.2, C.8 and Linux go on with one link. */
		add_link_failed(lgr);
		break;
	case LLC_WAIT_DELETE_LINK_RSP:
		/* The client has taken the second link, so it cannot decline any more (C.3): nothing to wait for. */
		if (lgr->first_conn != NULL) {
			rdv_end(lgr->first_conn, SMCR_R_LLC_TIMEOUT, "DELETE LINK without an answer");
		} else {
			link_down(lgr->flow[LLC_FLOW_LINK].link, "DELETE LINK without an answer");
		}
		break;
	case LLC_WAIT_DELETE_LINK_SENT:
	case LLC_WAIT_DELETE_LINK:
		lgr_down(lgr, SMCR_R_GROUP_DELETED, lgr->delete_why);
		break;
	case LLC_IDLE:
	case LLC_WAIT_CONFIRM_RKEY_RSP:
	case LLC_WAIT_DELETE_RKEY_RSP:
		break;
	}
}
