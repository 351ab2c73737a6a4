/* Ends of a rendezvous without SMC-R: Declines of both sides (C.1, C.2), crossing Declines, fallback, resets. */
#include <errno.h>
#include <string.h>

#include "smcr/group/lgr.h"
#include "smcr/rendezvous/rendezvous.h"
#include "smcr/state/engine.h"
#include "smcr/state/log.h"

#define LATE_DECLINE_MS 1000 /* as Linux waits before it continues; also the limit for a partial message */
#define DECLINE_MS 2000      /* after the Confirm: Linux waits that long for CONFIRM LINK, then for a Decline */

/* -- groups and waiting lists of a connection in rendezvous -- */

void
rdv_set_group(struct rdv *r, struct lgr *lgr)
{
	if (r->lgr != NULL)
		r->lgr->rdv_cnt--;
	if (lgr != NULL)
		lgr->rdv_cnt++;
	r->lgr = lgr;
}

/* Gives up leadership or place in a queue; ends a group that this connection was forming. */
static void
rdv_leave(struct smcr_conn *conn, enum peer_outcome outcome, enum smcr_reason reason, const char *why, bool quarantine)
{
	struct rdv *r = conn->rdv;
	struct peer *p = r->peer_ent;
	struct lgr *lgr = r->lgr;
	bool formed = rdv_forms_group(conn);
	const struct link *link = rdv_first_link(conn);
	enum smcr_phase phase = rdv_steps[r->step].phase;

	if (conn->role == SMCR_CLIENT && phase != SMCR_PHASE_NONE)
		conn->diag.phase = phase;
	if (link != NULL && outcome == PEER_FAILED)
		conn->diag.over = rnic_transport_str(link->info.transport);
	rdv_set_group(r, NULL);
	if (formed)
		lgr->contact.conn = NULL;
	if (conn->lgr != NULL)
		conn_detach(conn, quarantine);
	conn->rmb = NULL;
	conn_drop_peer_elem(conn);
	if (formed) {
		conn->eng->ctr.first_contacts_failed += outcome == PEER_FAILED;
		lgr_down(lgr, reason, why);
	}
	if (p != NULL && p->leader == conn)
		peer_done(conn->eng, p, outcome);
	else if (p != NULL)
		peer_leave(p, conn);
	else
		list_remove(&r->wait);
	if (lgr != NULL && !formed) /* it waited for an RMB */
		mark_lgr(lgr)->conn_left = true;
}

void
rdv_free(struct smcr_conn *conn)
{
	struct rdv *r = conn->rdv;

	if (r == NULL)
		return;
	list_remove(&r->mark.node);
	timer_cancel(&conn->eng->timers, &r->timer);
	timerq_unreserve(&conn->eng->timers, 1);
	explicit_bzero(r->open.secret, sizeof(r->open.secret));
	slab_put(&conn->eng->rdv_slab, r);
	conn->rdv = NULL;
	conn->mark = NULL;
}

void
rdv_ended(struct smcr_conn *conn)
{
	rdv_step(conn, RDV_NONE, 0);
	if (conn->rdv->out_len == 0 && conn->rdv->left_len == 0)
		rdv_free(conn);
}

/* -- ends -- */

static void
rdv_fall_back(struct smcr_conn *conn, enum peer_outcome outcome)
{
	rdv_leave(conn, outcome, SMCR_R_LINK_LOST, "first contact failed", false);
	conn_set_state(conn, CONN_FALLBACK);
	conn_raise(conn, SMCR_EV_FALLBACK);
	rdv_ended(conn);
}

static void
late_decline_over(struct smcr_conn *conn)
{
	peer_hold_from(conn, conn->eng->now_ns);
	if (conn->state == CONN_RENDEZVOUS) {
		rdv_fall_back(conn, PEER_VOID);
		return;
	}
	rdv_ended(conn);
	conn_raise(conn, SMCR_EV_CLC_WANT);
}

void
rdv_no_late_decline(struct smcr_conn *conn)
{
	conn->rdv->left_len = conn->rdv->in_len;
	late_decline_over(conn);
}

int
rdv_decline_len(struct span in)
{
	int total = clc_peek_len(in);

	return total <= SMCR_LEFTOVER_MAX && (in.len < 5 || in.ptr[4] == CLC_DECLINE) ? total : -EPROTO;
}

void
rdv_late_decline_input(struct smcr_conn *conn)
{
	struct rdv *r = conn->rdv;
	struct span in = { r->in, r->in_len };
	struct clc_msg msg;
	int n = rdv_decline_len(in);

	if (n < 0) {
		rdv_no_late_decline(conn);
		return;
	}
	if (n > 0)
		r->in_want = (size_t)n;
	if (r->in_len < r->in_want) {
		if (!timer_armed(&r->timer))
			engine_arm(conn->eng, &r->timer, LATE_DECLINE_MS);
		return;
	}
	if (clc_decode(in, &msg) <= 0 || msg.type != CLC_DECLINE) {
		rdv_no_late_decline(conn);
		return;
	}
	engine_trace(conn->eng, SMCR_TRACE_CLC, false, NULL, conn->id, r->in, r->in_len);
	conn->eng->ctr.clc_received++;
	if (msg.decline.diag != CLC_DIAG_PEER_DECLINED) /* a response, not a reason */
		conn->diag.peer = msg.decline.diag;
	late_decline_over(conn);
}

/* At first contact both sides may decline between Confirm and CONFIRM LINK (C.2): the first bytes are no data. */
static bool
declines_may_cross(const struct smcr_conn *conn)
{
	return conn->role == SMCR_CLIENT ? conn->rdv->step == RDV_WAIT_GROUP : conn->rdv->confirm_in;
}

/* Two smcrd answer each such Decline by another unless they cross. A Linux that got none sends its own. */
bool
rdv_declines_are_answered(const struct smcr_conn *conn)
{
	return rdv_is_smcrd(conn) || conn->rdv->kept_back;
}

/* Linux ends first contact by itself. It reads no Decline while it removes its link, for a second or more. It sends its
 * own afterwards: its program would get ours as data. */
bool
rdv_is_too_late_for_linux(const struct smcr_conn *conn)
{
	const struct smcr *eng = conn->eng;

	return !rdv_is_smcrd(conn) && eng->now_ns + eng->stalled_ns - conn->rdv->confirm_ns > DECLINE_MS * MS;
}

static void
rdv_quit(
    struct smcr_conn *conn, enum peer_outcome outcome, enum smcr_reason reason, const char *detail, bool quarantine)
{
	rdv_leave(conn, outcome, reason, detail, quarantine);
	rdv_ended(conn);
	conn_end(conn, reason, detail, false);
}

/* Records why no device fits. */
static void
note_offer(struct smcr_conn *conn, uint32_t diag)
{
	const struct clc_smcrd_ext *ext = &conn->rdv->proposal.ext;

	if (diag == CLC_DIAG_NO_DEVICE && ext->present)
		conn->diag.offered = ext->transports & (uint8_t)~CLC_TRANSPORT_PREWARM;
}

static void
send_decline(struct smcr_conn *conn, uint32_t diag)
{
	/* In the version of the message that it answers, as Linux does; without a Proposal 1. */
	struct clc_msg msg = { .type = CLC_DECLINE, .version = conn->rdv->heard >= 2 ? 2 : 1 };

	msg.decline.diag = diag;
	msg.decline.os = msg.version >= 2 ? CLC_OS_LINUX : 0;
	msg.decline.out_of_sync = diag == CLC_DIAG_SYNC;
	msg.decline.client_used = rdv_uses_client(conn) && !conn->dest_refused;
	msg.decline.dest_used = conn->role == SMCR_SERVER && conn->dest_used;
	msg.decline.dest_refused = conn->role == SMCR_SERVER && conn->dest_refused && conn->rdv->open.wants_dest;
	memcpy(msg.decline.peer_id, conn->eng->peer_id, sizeof(msg.decline.peer_id));
	rdv_send(conn, &msg);
}

/* A client that declines before its Proposal: the peer must still learn client and destination. True: a Proposal without
 * links is sent, and its answer awaited. */
static bool
names_tlvs(struct smcr_conn *conn, uint32_t diag)
{
	struct rdv *r = conn->rdv;

	if (conn->role != SMCR_CLIENT || !rdv_has_tlvs(&r->open) || r->open.peer != SMCR_PEER_SMCRD ||
	    r->proposal.ext.present || r->only_tlvs != 0)
		return false;
	rdv_leave(conn, PEER_VOID, SMCR_OK, "", false);
	r->only_tlvs = diag;
	rdv_propose(conn);
	return true;
}

void
rdv_decline(struct smcr_conn *conn, uint32_t diag)
{
	struct rdv *r = conn->rdv;
	bool contact = rdv_forms_group(conn);

	if (names_tlvs(conn, diag))
		return;
	r->kept_back = contact && declines_may_cross(conn) && rdv_is_too_late_for_linux(conn);
	if (!r->kept_back)
		send_decline(conn, diag);
	conn->diag.local = diag;
	note_offer(conn, diag);
	conn->diag.out_of_sync = diag == CLC_DIAG_SYNC;
	conn->eng->ctr.fallback_local++;
	conn->eng->ctr.out_of_sync += diag == CLC_DIAG_SYNC;
	if (!contact || !declines_may_cross(conn)) {
		rdv_fall_back(conn, contact ? PEER_FAILED : PEER_VOID);
		return;
	}
	rdv_leave(conn, PEER_FAILED, SMCR_R_LINK_LOST, "first contact failed", false);
	/* The peer's program may not get it before the peer itself times out, which takes Linux that long. */
	peer_hold_from(conn, conn->eng->now_ns + conn->eng->cfg.clc_ms * MS);
	rdv_step(conn, RDV_LATE_DECLINE, rdv_declines_are_answered(conn) ? conn->eng->cfg.clc_ms : LATE_DECLINE_MS);
	if (r->in_len > 0) /* a partial header */
		rdv_late_decline_input(conn);
}

void
rdv_tcp_only(struct smcr_conn *conn)
{
	if (conn->rdv->open.tcp_only != NULL)
		conn->diag.detail = conn->rdv->open.tcp_only;
	rdv_decline(conn, conn->rdv->only_tlvs != 0 ? conn->rdv->only_tlvs : CLC_DIAG_CONFIG);
}

void
rdv_declined(struct smcr_conn *conn, const struct clc_decline *d)
{
	struct rdv *r = conn->rdv;
	bool contact = rdv_forms_group(conn);
	struct lgr *lgr = conn->lgr;
	const struct link *link = rdv_first_link(conn);

	if (r->abort != SMCR_OK) {
		rdv_quit(conn, PEER_VOID, r->abort, "", false);
		return;
	}
	if (conn->role == SMCR_CLIENT) {
		conn->client_used = d->client_used && r->open.client.kind != CLC_CLIENT_NONE && r->proposal.ext.present;
		conn->dest_used = d->dest_used && r->open.dest.kind != CLC_DEST_NONE && r->proposal.ext.present;
		conn->dest_refused = d->dest_refused && r->proposal.ext.present;
	}
	if (r->only_tlvs != 0) { /* the reason is ours */
		conn->diag.local = r->only_tlvs;
		conn->eng->ctr.fallback_local++;
		rdv_fall_back(conn, PEER_VOID);
		return;
	}
	conn->diag.peer = d->diag;
	note_offer(conn, d->diag);
	/* The client could not make its queue pair ready: records our address, its target. */
	if (conn->role == SMCR_SERVER && link != NULL && d->diag == CLC_DIAG_READY_LINK && conn->diag.local == 0) {
		conn->diag.rnic = link->info.gid;
		conn->diag.mpa_port = link->info.mpa_port;
	}
	conn->diag.out_of_sync = d->out_of_sync;
	conn->eng->ctr.fallback_peer++;
	if (contact && declines_may_cross(conn) && rdv_declines_are_answered(conn))
		send_decline(conn, CLC_DIAG_PEER_DECLINED);
	rdv_fall_back(conn, contact ? PEER_FAILED : PEER_VOID);
	/* It reports the offered group as unknown (C.4, A.2.5). */
	if (d->out_of_sync && lgr != NULL) {
		lgr->eng->ctr.out_of_sync++;
		lgr_mark_suspect(lgr);
	}
}

/* Our Accept was sent on a group that continues: the client may use our element, unless it has reset. */
static bool
elem_is_out(const struct smcr_conn *conn, enum smcr_reason reason)
{
	return conn->role == SMCR_SERVER && conn->lgr != NULL && conn->lgr->state == LGR_ACTIVE &&
	    reason != SMCR_R_TCP_RESET && reason != SMCR_R_TCP_FIN;
}

/* The end counts as a failed first contact. */
static bool
end_is_failure(const struct smcr_conn *conn, enum smcr_reason reason)
{
	const struct rdv *r = conn->rdv;

	if (reason == SMCR_R_APP_RESET || reason == SMCR_R_REFUSED || reason == SMCR_R_SHUTDOWN ||
	    reason == SMCR_R_TIMEOUT || reason == SMCR_R_OPERATOR)
		return false;
	/* A client that ends before its Confirm, such as a health check, never tried the link. */
	if (r->step == RDV_WAIT_CONFIRM && r->failed == 0 && (reason == SMCR_R_TCP_RESET || reason == SMCR_R_TCP_FIN))
		return false;
	if (rdv_forms_group(conn))
		return true;
	/* A silent peer, or one without SMC, would make each connection wait as long. */
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
rdv_protocol_error(struct smcr_conn *conn, const char *what)
{
	conn->eng->ctr.bad_clc++;
	rdv_end(conn, SMCR_R_PROTOCOL, what);
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
	if (conn->over_link && conn->lgr->state == LGR_ACTIVE)
		rdv_refuse_opened(conn, reason);
	/* An Accept cannot be withdrawn (C.1): the abort follows the Confirm. A second abort does not wait. */
	else if (conn->rdv->step == RDV_WAIT_CONFIRM && conn->rdv->abort == SMCR_OK && elem_is_out(conn, reason))
		conn->rdv->abort = reason;
	else
		rdv_end(conn, reason, "");
}

void
rdv_act_on_conn(struct conn_mark *m)
{
	struct smcr_conn *conn = CONTAINER_OF(m, struct rdv, mark)->conn;

	if (conn->state != CONN_RENDEZVOUS)
		return;
	if (m->at_once)
		rdv_end(conn, m->reason, m->why);
	else
		rdv_abort(conn, m->reason);
}
