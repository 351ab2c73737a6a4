/*
 * What both roles of the rendezvous share: CLC bytes in and out, waiting,
 * falling back, ending; and the entry points of smcr.h for it.
 */
#include "smcr/rendezvous/rendezvous.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "smcr/data/conn.h"
#include "smcr/engine.h"
#include "smcr/data/quarantine.h"
#include "smcr/group/room.h"

#define LATE_DECLINE_MS 1000 /* as Linux waits before it goes on; and how long a piece of a message may stay one */

/* -- groups and waiting lists that a connection in rendezvous hangs on -- */

/* The group that is being formed, or whose new RMB is awaited; NULL when it is over. */
static void
set_group(struct rdv *r, struct lgr *lgr)
{
	if (r->lgr != NULL)
		r->lgr->rdv_cnt--;
	if (lgr != NULL)
		lgr->rdv_cnt++;
	r->lgr = lgr;
}

struct link *
rdv_first_link(const struct smcr_conn *conn)
{
	struct lgr *lgr = conn->rdv->lgr;

	return lgr != NULL && lgr->first_conn == conn && lgr->links[0].state != LINK_FREE ? &lgr->links[0] : NULL;
}

/* Gives up leadership or place in a queue; a group that was being formed by this connection dies. */
static void
rdv_leave(struct smcr_conn *conn, enum peer_outcome outcome, enum smcr_reason reason, const char *why, bool quarantine)
{
	struct rdv *r = conn->rdv;
	struct peer *p = r->peer_ent;
	struct lgr *lgr = r->lgr, *waited = NULL;

	set_group(r, NULL);
	if (lgr != NULL && lgr->first_conn == conn)
		lgr->first_conn = NULL;
	else {
		waited = lgr; /* for an RMB */
		lgr = NULL;
	}
	if (conn->lgr != NULL)
		conn_detach(conn, quarantine);
	conn->rmb = NULL;
	conn_drop_peer_elem(conn);
	if (lgr != NULL && outcome == PEER_FAILED)
		lgr->eng->ctr.first_contacts_failed++;
	if (lgr != NULL)
		lgr_down(lgr, reason, why);
	if (p != NULL && p->leader == conn)
		peer_done(conn->eng, p, outcome);
	else if (p != NULL)
		peer_leave(conn->eng, p, conn);
	else if (!list_empty(&r->wait))
		list_remove(&r->wait);
	if (waited != NULL)
		lgr_conn_gone(waited);
}

void
rdv_free(struct smcr_conn *conn)
{
	struct rdv *r = conn->rdv;

	if (r == NULL)
		return;
	timer_cancel(&conn->eng->timers, &r->timer);
	timerq_unreserve(&conn->eng->timers, 1);
	slab_put(&conn->eng->rdv_slab, r);
	conn->rdv = NULL;
}

/* The rendezvous is over; its memory goes when the last bytes were taken. */
static void
rdv_over(struct smcr_conn *conn)
{
	rdv_step(conn, RDV_NONE, 0);
	if (conn->rdv->out_len == 0 && conn->rdv->left_len == 0)
		rdv_free(conn);
}

void
rdv_step(struct smcr_conn *conn, enum rdv_step step, uint32_t timeout_ms)
{
	struct rdv *r = conn->rdv;

	r->step = step;
	if (timeout_ms == 0)
		timer_cancel(&conn->eng->timers, &r->timer);
	else
		engine_arm(conn->eng, &r->timer, timeout_ms);
}

/* -- ends -- */

static void
rdv_fall_back(struct smcr_conn *conn, enum peer_outcome outcome)
{
	rdv_leave(conn, outcome, SMCR_R_LINK_LOST, "first contact failed", false);
	conn_set_state(conn, CONN_FALLBACK);
	conn_raise(conn, SMCR_EV_FALLBACK);
	rdv_over(conn);
}

/* RDV_LATE_DECLINE is over. */
static void
late_decline_over(struct smcr_conn *conn)
{
	if (conn->state == CONN_RENDEZVOUS) {
		rdv_fall_back(conn, PEER_VOID);
		return;
	}
	rdv_over(conn);
	conn_raise(conn, SMCR_EV_CLC_WANT);
}

/* The peer did not decline: what was read is its data. */
static void
no_late_decline(struct smcr_conn *conn)
{
	conn->rdv->left_len = conn->rdv->in_len;
	late_decline_over(conn);
}

/*
 * Nothing has come. Our user may send now, as the peer may wait for that, but what the peer sends first may be its
 * Decline for as long as it likes: it may have stood still, or the network may have.
 */
static void
late_decline_waited(struct smcr_conn *conn)
{
	if (conn->rdv->in_len > 0) {
		no_late_decline(conn);
		return;
	}
	conn_set_state(conn, CONN_FALLBACK);
	conn_raise(conn, SMCR_EV_FALLBACK);
}

/* As far as it has been read: can this be a Decline? */
static bool
may_be_decline(struct span in)
{
	int total = clc_peek_len(in);

	return total >= 0 && total <= SMCR_LEFTOVER_MAX && (in.len < 5 || in.ptr[4] == CLC_DECLINE);
}

static void
late_decline_input(struct smcr_conn *conn)
{
	struct rdv *r = conn->rdv;
	struct span in = { r->in, r->in_len };
	struct clc_msg msg;
	int n;

	if (!may_be_decline(in)) {
		no_late_decline(conn);
		return;
	}
	n = clc_peek_len(in);
	if (n > 0)
		r->in_want = (size_t)n;
	if (r->in_len < r->in_want) {
		if (!timer_armed(&r->timer))
			engine_arm(conn->eng, &r->timer, LATE_DECLINE_MS);
		return;
	}
	if (clc_decode(in, &msg) <= 0 || msg.type != CLC_DECLINE) {
		no_late_decline(conn);
		return;
	}
	engine_trace(conn->eng, SMCR_TRACE_CLC, false, NULL, conn->id, r->in, r->in_len);
	conn->eng->ctr.clc_received++;
	if (msg.decline.diag != CLC_DIAG_PEER_DECLINED) /* an answer, not a reason */
		conn->diag.peer = msg.decline.diag;
	late_decline_over(conn);
}

/* At first contact both sides may decline at any moment between Confirm and CONFIRM LINK (C.2), so the Declines may
 * cross: what comes first then is not data yet. */
static bool
declines_may_cross(const struct smcr_conn *conn)
{
	return conn->role == SMCR_CLIENT ? conn->rdv->step == RDV_WAIT_GROUP : conn->rdv->confirm_in;
}

/* Two smcrd make it certain what comes first: there, each such Decline is answered by another, unless they cross. */
static bool
declines_are_answered(const struct smcr_conn *conn)
{
	return conn->role == SMCR_CLIENT ? conn->rdv->peer.ext.present : conn->rdv->proposal.ext.present;
}

static void
await_late_decline(struct smcr_conn *conn)
{
	uint32_t ms = declines_are_answered(conn) ? conn->eng->cfg.clc_ms : LATE_DECLINE_MS;

	rdv_leave(conn, PEER_FAILED, SMCR_R_LINK_LOST, "first contact failed", false);
	rdv_step(conn, RDV_LATE_DECLINE, ms);
	/* A header may be in part already. */
	conn->rdv->in_want = CLC_HDR_LEN;
	if (conn->rdv->in_len > 0)
		late_decline_input(conn);
	else
		conn_raise(conn, SMCR_EV_CLC_WANT);
}

static void
rdv_quit(
    struct smcr_conn *conn, enum peer_outcome outcome, enum smcr_reason reason, const char *detail, bool quarantine)
{
	rdv_leave(conn, outcome, reason, detail, quarantine);
	rdv_over(conn);
	conn_end(conn, reason, detail, false);
}

static void
send_decline(struct smcr_conn *conn, uint32_t diag)
{
	struct clc_msg msg = { .type = CLC_DECLINE, .version = 1 };

	msg.decline.diag = diag;
	msg.decline.out_of_sync = diag == CLC_DIAG_SYNC;
	memcpy(msg.decline.peer_id, conn->eng->peer_id, sizeof(msg.decline.peer_id));
	rdv_send(conn, &msg);
}

void
rdv_decline(struct smcr_conn *conn, uint32_t diag)
{
	struct rdv *r = conn->rdv;
	bool contact = r->lgr != NULL && r->lgr->first_conn == conn;

	send_decline(conn, diag);
	conn->diag.local = diag;
	conn->diag.out_of_sync = diag == CLC_DIAG_SYNC;
	conn->eng->ctr.fallback_local++;
	conn->eng->ctr.out_of_sync += diag == CLC_DIAG_SYNC;
	if (contact && declines_may_cross(conn))
		await_late_decline(conn);
	else
		rdv_fall_back(conn, contact ? PEER_FAILED : PEER_VOID);
}

void
rdv_declined(struct smcr_conn *conn, const struct clc_decline *d)
{
	struct rdv *r = conn->rdv;
	bool contact = r->lgr != NULL && r->lgr->first_conn == conn;
	struct lgr *lgr = conn->lgr;

	if (r->abort != SMCR_OK) {
		rdv_quit(conn, PEER_VOID, r->abort, "", false);
		return;
	}
	conn->diag.peer = d->diag;
	conn->diag.out_of_sync = d->out_of_sync;
	conn->eng->ctr.fallback_peer++;
	if (contact && declines_may_cross(conn) && declines_are_answered(conn))
		send_decline(conn, CLC_DIAG_PEER_DECLINED);
	rdv_fall_back(conn, contact ? PEER_FAILED : PEER_VOID);
	/* It does not know the group that we offered, it says (C.4, A.2.5). */
	if (d->out_of_sync && lgr != NULL) {
		lgr->eng->ctr.out_of_sync++;
		lgr_doubt(lgr);
	}
}

/* Our Accept is out on a group that lives on: the client may use our element, unless it has broken off itself. */
static bool
elem_is_out(const struct smcr_conn *conn, enum smcr_reason reason)
{
	return conn->role == SMCR_SERVER && conn->lgr != NULL && conn->lgr->state == LGR_ACTIVE &&
	    reason != SMCR_R_TCP_RESET && reason != SMCR_R_TCP_FIN;
}

/* Does the end count as a failed first contact, or has it nothing to do with that? */
static bool
end_is_failure(const struct smcr_conn *conn, enum smcr_reason reason)
{
	const struct rdv *r = conn->rdv;

	if (reason == SMCR_R_APP_RESET || reason == SMCR_R_REFUSED || reason == SMCR_R_SHUTDOWN ||
	    reason == SMCR_R_TIMEOUT)
		return false;
	/* A client that goes away before its Confirm, a health check for one, never tried the link. */
	if (r->step == RDV_WAIT_CONFIRM && r->failed == 0 && (reason == SMCR_R_TCP_RESET || reason == SMCR_R_TCP_FIN))
		return false;
	if (r->lgr != NULL && r->lgr->first_conn == conn)
		return true;
	/* A peer that is silent, or no SMC peer at all, would let one after the other wait for as long. */
	return r->step == RDV_WAIT_ACCEPT && (reason == SMCR_R_CLC_TIMEOUT || reason == SMCR_R_PROTOCOL);
}

void
rdv_end(struct smcr_conn *conn, enum smcr_reason reason, const char *detail)
{
	enum peer_outcome outcome = end_is_failure(conn, reason) ? PEER_FAILED : PEER_VOID;
	bool quarantine = elem_is_out(conn, reason);

	if (conn->rdv->abort != SMCR_OK)
		reason = conn->rdv->abort;
	rdv_quit(conn, outcome, reason, detail, quarantine);
}

void
rdv_give_up(struct smcr_conn *conn)
{
	conn->diag.held_off = true;
	conn->eng->ctr.fallback_held_off++;
	rdv_decline(conn, CLC_DIAG_NO_ACTIVE_LINK);
}

void
rdv_abort(struct smcr_conn *conn, enum smcr_reason reason)
{
	if (conn->state != CONN_RENDEZVOUS)
		return;
	/* The Accept cannot be taken back (C.1): the Confirm is awaited, then both sides know that the connection is
	 * aborted and may use their elements again. A second abort does not wait. */
	if (conn->rdv->step == RDV_WAIT_CONFIRM && conn->rdv->abort == SMCR_OK && elem_is_out(conn, reason))
		conn->rdv->abort = reason;
	else
		rdv_end(conn, reason, "");
}

void
rdv_tcp_event(struct smcr_conn *conn, enum smcr_tcp_event ev)
{
	if (ev == SMCR_TCP_FIN && conn->rdv->step == RDV_LATE_DECLINE)
		no_late_decline(conn);
	else if (conn->state != CONN_RENDEZVOUS)
		return; /* fallen back: the user's */
	else if (ev == SMCR_TCP_RST)
		rdv_end(conn, SMCR_R_TCP_RESET, "during the rendezvous");
	else
		rdv_end(conn, SMCR_R_TCP_FIN, "during the rendezvous");
}

/* -- timer -- */

/* What did not come in time. */
static const char *
awaited(enum rdv_step step)
{
	if (step == RDV_WAIT_ACCEPT)
		return "no answer to the Proposal: it speaks no SMC-R, or hangs";
	if (step == RDV_WAIT_PROPOSAL)
		return "no Proposal came";
	return step == RDV_WAIT_CONFIRM ? "no Confirm came" : "";
}

static void
rdv_timeout(struct timer *t, int64_t now_ns)
{
	struct smcr_conn *conn = CONTAINER_OF(t, struct rdv, timer)->conn;
	const struct link *link = rdv_first_link(conn);

	(void)now_ns;
	switch (conn->rdv->step) {
	case RDV_WAIT_TURN:
	case RDV_WAIT_PEER_GROUP:
	case RDV_CONNECTING:
		rdv_decline(conn, CLC_DIAG_READY_LINK);
		break;
	case RDV_WAIT_RKEY:
	case RDV_WAIT_SRV_RKEY:
		rdv_decline(conn, CLC_DIAG_RTOKEN);
		break;
	case RDV_WAIT_ADMIT:
		rdv_decline(conn, CLC_DIAG_SERVER_LATE);
		break;
	case RDV_WAIT_LINK:
		if (!conn->rdv->confirm_link_out && link != NULL && !link->connected) {
			rdv_decline(conn, CLC_DIAG_TIMEOUT_CONFIRM_LINK);
			break;
		}
		/* fall through */
	case RDV_WAIT_GROUP:
		conn->eng->ctr.llc_timeouts++;
		rdv_end(conn, SMCR_R_LLC_TIMEOUT, "first contact was not finished");
		break;
	case RDV_LATE_DECLINE:
		if (!declines_are_answered(conn)) {
			late_decline_waited(conn);
			break;
		}
		/* Its answer could come at any time, and would be taken for data. */
		/* fall through */
	case RDV_WAIT_ACCEPT:
	case RDV_WAIT_PROPOSAL:
	case RDV_WAIT_CONFIRM:
	case RDV_NONE:
		conn->eng->ctr.clc_timeouts++;
		rdv_end(conn, SMCR_R_CLC_TIMEOUT, awaited(conn->rdv->step));
		break;
	}
}

/* -- CLC bytes -- */

void
rdv_read(struct smcr_conn *conn)
{
	conn->rdv->in_len = 0;
	conn->rdv->in_want = CLC_HDR_LEN;
	conn_raise(conn, SMCR_EV_CLC_WANT);
}

void
rdv_send(struct smcr_conn *conn, const struct clc_msg *msg)
{
	struct rdv *r = conn->rdv;
	int n = clc_encode(msg, r->out + r->out_len, sizeof(r->out) - r->out_len);

	assert(n > 0); /* our own values, and room for two messages */
	engine_trace(conn->eng, SMCR_TRACE_CLC, true, rdv_first_link(conn), conn->id, r->out + r->out_len, (size_t)n);
	conn->eng->ctr.clc_sent++;
	r->out_len += (size_t)n;
	conn_raise(conn, SMCR_EV_CLC_OUT);
}

static bool
reads(enum rdv_step step)
{
	switch (step) {
	case RDV_WAIT_ACCEPT:
	case RDV_WAIT_GROUP:
	case RDV_WAIT_PROPOSAL:
	case RDV_WAIT_CONFIRM:
	case RDV_WAIT_LINK:
	case RDV_LATE_DECLINE:
		return true;
	case RDV_NONE:
	case RDV_WAIT_TURN:
	case RDV_CONNECTING:
	case RDV_WAIT_RKEY:
	case RDV_WAIT_ADMIT:
	case RDV_WAIT_PEER_GROUP:
	case RDV_WAIT_SRV_RKEY:
		break;
	}
	return false;
}

size_t
smcr_clc_want(const struct smcr_conn *conn)
{
	const struct rdv *r = conn->rdv;

	return r != NULL && reads(r->step) ? r->in_want - r->in_len : 0;
}

size_t
smcr_clc_output(struct smcr_conn *conn, void *buf, size_t cap)
{
	struct rdv *r = conn->rdv;
	size_t n;

	if (r == NULL)
		return 0;
	n = r->out_len < cap ? r->out_len : cap;
	memcpy(buf, r->out, n);
	memmove(r->out, r->out + n, r->out_len - n);
	r->out_len -= n;
	if (r->step == RDV_NONE)
		rdv_over(conn);
	return n;
}

size_t
smcr_clc_leftover(struct smcr_conn *conn, void *buf, size_t cap)
{
	struct rdv *r = conn->rdv;
	size_t n;

	if (r == NULL || r->left_len == 0)
		return 0;
	assert(cap >= r->left_len);
	n = r->left_len;
	memcpy(buf, r->in, n);
	r->left_len = 0;
	rdv_over(conn);
	return n;
}

/* One whole message is in. */
static void
rdv_message(struct smcr_conn *conn)
{
	struct rdv *r = conn->rdv;
	struct span in = { r->in, r->in_len };
	struct clc_msg msg;
	int n = clc_decode(in, &msg);

	engine_trace(conn->eng, SMCR_TRACE_CLC, false, rdv_first_link(conn), conn->id, r->in, r->in_len);
	conn->eng->ctr.clc_received++;
	r->in_len = 0;
	/* A reserved value where we may still decline (C.6); a Confirm's peer waits for CONFIRM LINK instead. */
	if (n == -EPROTO && r->step != RDV_WAIT_GROUP && r->step != RDV_WAIT_LINK) {
		conn->eng->ctr.bad_clc++;
		rdv_decline(conn, clc_bad_value_diag(in));
		return;
	}
	if (n <= 0 || (size_t)n != in.len) {
		conn->eng->ctr.bad_clc++;
		rdv_end(conn, SMCR_R_PROTOCOL, "malformed CLC message");
		return;
	}
	if (msg.type == CLC_DECLINE)
		rdv_declined(conn, &msg.decline);
	else if (conn->role == SMCR_CLIENT)
		rdv_client_msg(conn, &msg);
	else
		rdv_server_msg(conn, &msg);
}

/* Past the Confirm only a Decline can come. Nothing else is read beyond its header, so that no more than
 * SMCR_LEFTOVER_MAX bytes of it may have to be given back as data when we decline in the middle of it. */
static bool
only_decline_fits(enum rdv_step step)
{
	return step == RDV_WAIT_GROUP || step == RDV_WAIT_LINK;
}

void
smcr_clc_input(struct smcr_conn *conn, const void *buf, size_t len)
{
	struct rdv *r = conn->rdv;
	int total;

	assert(len <= smcr_clc_want(conn));
	if (len == 0)
		return;
	memcpy(r->in + r->in_len, buf, len);
	r->in_len += len;
	if (r->step == RDV_LATE_DECLINE) {
		late_decline_input(conn);
		return;
	}
	/* Not even the beginning of a message: no need to wait for a whole header. */
	total = clc_peek_len((struct span){ r->in, r->in_len });
	if (total < 0 || total > (int)sizeof(r->in)) {
		conn->eng->ctr.bad_clc++;
		rdv_end(conn, SMCR_R_PROTOCOL, "no CLC message where one was expected");
		return;
	}
	if (only_decline_fits(r->step) && !may_be_decline((struct span){ r->in, r->in_len })) {
		conn->eng->ctr.bad_clc++;
		rdv_end(conn, SMCR_R_PROTOCOL, "unexpected CLC message");
		return;
	}
	if (total > 0)
		r->in_want = (size_t)total;
	if (r->in_len < r->in_want || r->in_want == CLC_HDR_LEN)
		return;
	rdv_message(conn);
}

void
rdv_send_accept(struct smcr_conn *conn, enum clc_type type, const struct link *link, bool first_contact)
{
	struct clc_msg msg = { .type = type, .version = 1 };
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
	if (type == CLC_ACCEPT ? conn->rdv->proposal.ext.present : conn->rdv->peer.ext.present) {
		a->ext.present = true;
		a->ext.version = CLC_SMCRD_EXT_VERSION;
		a->ext.transports = link->info.transport == RNIC_TRANSPORT_IWARP ? CLC_TRANSPORT_IWARP
		                                                                 : CLC_TRANSPORT_ROCE;
		a->ext.mpa_port = link->info.mpa_port;
		a->ext.recv_depth = (uint16_t)conn->eng->cfg.rq_depth;
		/* At first contact it is agreed; later it shows that the group is ours to offer. */
		a->ext.token = type == CLC_ACCEPT ? link->lgr->token : 0;
	}
	rdv_send(conn, &msg);
}

/* -- what both roles do with groups and elements -- */

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
	lgr->first_conn = conn;
	memcpy(lgr->peer_key, conn->rdv->open.peer_key, sizeof(lgr->peer_key));
	set_group(conn->rdv, lgr);
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
	                              : remote_rmb_find_at(lgr, via, a->rkey, a->vaddr);
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
	old = idtable_get(&conn->eng->conns, remote_rmb_user(rr, a->rmbe_idx));
	if (old != NULL)
		conn_elem_taken(old);
	quarantine_elem_reused(lgr, rr, a->rmbe_idx);
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

	set_group(conn->rdv, lgr);
	list_push(&lgr->wait_rmb, &conn->rdv->wait);
	rdv_step(conn, step, rmb_patience_ms(conn));
	err = llc_add_rmb(lgr, conn->rdv->open.elem_size);
	if (err < 0) {
		list_remove(&conn->rdv->wait);
		rdv_decline(conn, err == -ENOMEM ? CLC_DIAG_NO_MEMORY : CLC_DIAG_RTOKEN);
	}
}

void
rdv_rmb_ready(struct lgr *lgr, bool ok)
{
	struct list_node todo, *n;

	list_init(&todo);
	while ((n = list_pop(&lgr->wait_rmb)) != NULL)
		list_push(&todo, n);
	while ((n = list_pop(&todo)) != NULL) {
		struct smcr_conn *conn = CONTAINER_OF(n, struct rdv, wait)->conn;

		set_group(conn->rdv, NULL);
		if (!ok)
			rdv_decline(conn, CLC_DIAG_RTOKEN);
		else if (conn->role == SMCR_CLIENT)
			rdv_client_rmb_ready(conn);
		else
			rdv_server_choose(conn);
	}
	lgr_conn_gone(lgr);
}

void
rdv_finish(struct smcr_conn *conn, struct lgr *lgr, struct link *link)
{
	bool prewarm = conn->rdv->prewarm;
	enum smcr_reason abort = conn->rdv->abort;

	if (conn->lgr == NULL)
		conn_attach(conn, lgr, link);
	conn_attach_peer(conn);
	rdv_over(conn);
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
	if (lgr->first_conn == NULL)
		return;
	if (lgr->role == SMCR_CLIENT)
		rdv_client_connected(lgr->first_conn);
	else
		rdv_server_connected(lgr->first_conn);
}

void
rdv_group_ready(struct lgr *lgr)
{
	struct smcr_conn *conn = lgr->first_conn;
	struct peer *p = conn->rdv->peer_ent;
	struct link *link = rdv_first_link(conn);

	lgr_set_active(lgr);
	conn->rmb->state = RMB_CONFIRMED;
	lgr->first_conn = NULL;
	set_group(conn->rdv, NULL);
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

void
rdv_group_failed(struct lgr *lgr, uint32_t diag, enum smcr_reason reason, const char *why)
{
	struct smcr_conn *conn = lgr->first_conn;

	if (conn == NULL) {
		lgr_down(lgr, reason, why);
		return;
	}
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
		if (conn->rdv->confirm_link_out)
			rdv_end(conn, reason, why);
		else
			rdv_decline(conn, diag); /* the server's may cross it: RDV_LATE_DECLINE */
		return;
	case RDV_WAIT_LINK:
		/* A CONFIRM LINK that never reached the client is not sent (C.2). */
		if (!conn->rdv->confirm_link_out || !conn->rdv->confirm_link_in)
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
rdv_go_on(struct smcr_conn *conn, struct peer *p)
{
	if (conn->role == SMCR_CLIENT)
		rdv_client_go_on(conn, p);
	else
		rdv_server_choose(conn);
}

/* -- entry points -- */

static struct smcr_conn *
rdv_open(struct smcr *eng, const struct smcr_open *open, bool prewarm, int *err)
{
	struct smcr_conn *conn = conn_new(eng, open, err);
	struct rdv *r;

	if (conn == NULL)
		return NULL;
	r = slab_get(&eng->rdv_slab);
	if (r == NULL || timerq_reserve(&eng->timers, 1) < 0) {
		if (r != NULL)
			slab_put(&eng->rdv_slab, r);
		conn_free(conn);
		eng->ctr.refused_memory++;
		*err = -ENOMEM;
		return NULL;
	}
	r->conn = conn;
	r->open = *open;
	r->open.peer_key[sizeof(r->open.peer_key) - 1] = '\0';
	r->prewarm = prewarm;
	list_init(&r->wait);
	timer_init(&r->timer, rdv_timeout);
	conn->rdv = r;
	rdv_peer_waits(conn);
	if (open->role == SMCR_CLIENT) {
		eng->ctr.conns_client++;
		rdv_client_start(conn);
	} else {
		eng->ctr.conns_server++;
		rdv_step(conn, RDV_WAIT_PROPOSAL, eng->cfg.clc_ms);
		rdv_read(conn);
	}
	return conn;
}

struct smcr_conn *
smcr_open(struct smcr *eng, const struct smcr_open *open, int *err)
{
	return rdv_open(eng, open, false, err);
}

struct smcr_conn *
smcr_prewarm(struct smcr *eng, const struct smcr_open *open, int *err)
{
	return rdv_open(eng, open, true, err);
}

void
smcr_admit(struct smcr_conn *conn)
{
	if (conn->rdv != NULL && conn->rdv->step == RDV_WAIT_ADMIT)
		rdv_server_choose(conn);
}

void
smcr_fallback(const struct smcr_conn *conn, struct smcr_diag *diag)
{
	*diag = conn->diag;
}
