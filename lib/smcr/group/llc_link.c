/* CONFIRM LINK: proves a link by a message each way (RFC 7609 3.5.1.5); first contact on a group's first link.
 * The first one shows the peer's byte order for the 16-bit numbers of version 2: Linux uses its machine's, others
 * network order. The response and all later messages use that order. A server sends first, in network order as
 * specified: Linux then reads 44 as 11264, and only requires at least 44. */
#include <string.h>

#include "base/minmax.h"
#include "smcr/data/conn.h"
#include "smcr/group/llc_impl.h"

/* Version 2 allows at most two; with release 1 CLC has negotiated it before. */
static uint8_t
our_links_limit(const struct lgr *lgr)
{
	uint8_t most = (uint8_t)lgr->eng->cfg.links_max;

	if (lgr->links_limit != 0)
		return lgr->links_limit;
	return lgr->version == LLC_VERSION_2 ? min_u8(most, CLC_MAX_MAX_LINKS) : most;
}

int
llc_send_confirm_link(struct link *link, bool response)
{
	struct llc_msg msg = { .type = LLC_CONFIRM_LINK, .response = response };
	struct llc_confirm_link *m = &msg.confirm_link;

	memcpy(m->mac, link->info.mac, sizeof(m->mac));
	memcpy(m->gid, link->info.gid.b, sizeof(m->gid));
	m->qpn = link->qpn;
	m->link_num = link->number;
	m->link_uid = link->user_id;
	m->max_links = our_links_limit(link->lgr);
	m->max_conns = link->lgr->conns_limit;
	m->no_eyecatcher = !link->lgr->rfc_cursors;
	return link_send_llc(link, &msg);
}

/* The peer's end of the link is the one in CLC or ADD LINK. */
static bool
llc_link_fits(struct link *link, const struct llc_confirm_link *m)
{
	if (m->qpn != link->remote.qpn || m->link_num == 0 || (link->number != 0 && m->link_num != link->number) ||
	    !link_leads_to(link, m->gid, m->mac))
		return false;
	link->peer_user_id = m->link_uid;
	return true;
}

/* The first CONFIRM LINK sets the limits of the group; a client's response carries the result (2.2.2). */
static void
settle_limits(struct lgr *lgr, const struct llc_confirm_link *m)
{
	/* A peer without a limit (0) uses ours. */
	lgr->links_limit = our_links_limit(lgr);
	if (m->max_links != 0)
		lgr->links_limit = min_u8(lgr->links_limit, m->max_links);
	/* So does one of release 0, and a value below the minimum is ignored. */
	if (lgr->version == LLC_VERSION_2 && m->max_conns >= CLC_MIN_MAX_CONNS)
		lgr->conns_limit = min_u8(lgr->conns_limit, m->max_conns);
}

/* From now on the peer may send on the first connection, which opens only with the group. */
static void
first_link_up(struct link *link, const struct llc_confirm_link *m)
{
	struct lgr *lgr = link->lgr;

	settle_limits(lgr, m);
	/* A peer without Linux's flags follows RFC 7609: the group has eye catchers and cursors from 4. */
	lgr->eye_catcher = lgr->rfc_cursors || !m->no_eyecatcher;
	link_set_active(link);
	conn_attach(lgr->contact.conn, lgr, link);
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
	link->number = llc_next_number(lgr);
	if (llc_send_confirm_link(link, false) < 0) {
		mark_contact(
		    lgr, CONTACT_FAILED, CLC_DIAG_READY_LINK, SMCR_R_LINK_LOST, "CONFIRM LINK could not be sent");
		return;
	}
	lgr->contact.confirm_link_out = true;
	llc_start(lgr, LLC_FLOW_LINK, LLC_WAIT_CONFIRM_LINK_RSP, link, ms);
}

/* -- client -- */

static void
confirm_first(struct link *link, const struct llc_confirm_link *m)
{
	struct lgr *lgr = link->lgr;

	if (!llc_link_fits(link, m)) {
		lgr->eng->ctr.bad_llc++;
		mark_contact(
		    lgr, CONTACT_FAILED, CLC_DIAG_NO_SERVER_LINK, SMCR_R_PROTOCOL, "CONFIRM LINK names another link");
		return;
	}
	link->number = m->link_num;
	(void)link->dev->ops->qp_rts(link->qp);
	settle_limits(lgr, m);
	if (llc_send_confirm_link(link, true) < 0) {
		mark_contact(
		    lgr, CONTACT_FAILED, CLC_DIAG_READY_LINK, SMCR_R_LINK_LOST, "CONFIRM LINK could not be answered");
		return;
	}
	lgr->contact.confirm_link_out = true;
	first_link_up(link, m);
	if (lgr->links_limit > 1) {
		llc_start(lgr, LLC_FLOW_LINK, LLC_WAIT_ADD_LINK, link, lgr->eng->cfg.add_link_ms);
		return;
	}
	/* Both ends know that there is no second link. */
	llc_done(lgr, LLC_FLOW_LINK);
	mark_contact(lgr, CONTACT_READY, 0, SMCR_OK, NULL);
}

void
llc_confirm_link_req(struct link *link, const struct llc_msg *msg)
{
	const struct llc_confirm_link *m = &msg->confirm_link;

	if (link->lgr->flow[LLC_FLOW_LINK].step == LLC_WAIT_CONFIRM_LINK) {
		link->lgr->dialect.little = msg->little;
		confirm_first(link, m);
		return;
	}
	if (!llc_link_fits(link, m)) {
		llc_protocol_error(link, "CONFIRM LINK names another link");
		return;
	}
	(void)link->dev->ops->qp_rts(link->qp);
	if (llc_send_confirm_link(link, true) < 0)
		link_lost(link, "CONFIRM LINK could not be answered");
	else
		llc_new_link_up(link);
}

/* -- server -- */

void
llc_confirm_link_rsp(struct link *link, const struct llc_msg *msg)
{
	struct lgr *lgr = link->lgr;

	if (!llc_link_fits(link, &msg->confirm_link)) {
		llc_protocol_error(link, "CONFIRM LINK response names another link");
		return;
	}
	if (lgr->flow[LLC_FLOW_LINK].step == LLC_WAIT_NEW_CONFIRM_RSP) {
		llc_new_link_up(link);
		return;
	}
	lgr->contact.confirm_link_in = true;
	lgr->dialect.little = msg->little;
	first_link_up(link, &msg->confirm_link);
	/* Data waits for the attempt at a second link (3.5.1.6); without one it has failed already (C.8). */
	if (!llc_offer_link(link)) {
		llc_done(lgr, LLC_FLOW_LINK);
		mark_contact(lgr, CONTACT_READY, 0, SMCR_OK, NULL);
	}
}
