/*
 * The rendezvous of a connection: its steps, their timer, and the entry points
 * of smcr.h that lead into it or depend on it.
 */
#include "smcr/rendezvous/rendezvous.h"

#include <errno.h>

#include "smcr/data/conn.h"
#include "smcr/state/engine.h"

static const char *const step_names[] = {
	[RDV_NONE] = "Rendezvous",
	[RDV_WAIT_TURN] = "waits for another first contact",
	[RDV_WAIT_ACCEPT] = "waits for Accept",
	[RDV_CONNECTING] = "connects the queue pair",
	[RDV_WAIT_RKEY] = "confirms an RMB",
	[RDV_WAIT_GROUP] = "first contact",
	[RDV_LATE_DECLINE] = "falls back",
	[RDV_WAIT_PROPOSAL] = "waits for Proposal",
	[RDV_WAIT_ADMIT] = "waits for the server leg",
	[RDV_WAIT_PEER_GROUP] = "waits for another first contact",
	[RDV_WAIT_SRV_RKEY] = "confirms an RMB",
	[RDV_WAIT_CONFIRM] = "waits for Confirm",
	[RDV_WAIT_LINK] = "first contact",
};

const char *
rdv_step_str(enum rdv_step step)
{
	return step_names[step];
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
rdv_timeout(struct timer *t)
{
	struct smcr_conn *conn = CONTAINER_OF(t, struct rdv, timer)->conn;
	const struct link *link = rdv_first_link(conn);

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
		if (!conn->rdv->lgr->contact.confirm_link_out && link != NULL && !link->connected) {
			rdv_decline(conn, CLC_DIAG_TIMEOUT_CONFIRM_LINK);
			break;
		}
		/* fall through */
	case RDV_WAIT_GROUP:
		conn->eng->ctr.llc_timeouts++;
		rdv_end(conn, SMCR_R_LLC_TIMEOUT, "first contact was not finished");
		break;
	case RDV_LATE_DECLINE:
		if (!rdv_declines_are_answered(conn)) {
			rdv_late_decline_waited(conn);
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
	list_init(&r->mark.node);
	timer_init(&r->timer, rdv_timeout);
	conn->rdv = r;
	conn->mark = &r->mark;
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

/* -- entry points that end a connection, in its rendezvous or later -- */

void
smcr_close(struct smcr_conn *conn)
{
	if (conn->state == CONN_RENDEZVOUS)
		rdv_abort(conn, SMCR_R_APP_RESET);
	else
		conn_close(conn);
}

void
smcr_abort(struct smcr_conn *conn, enum smcr_reason reason)
{
	if (conn->state == CONN_RENDEZVOUS)
		rdv_abort(conn, reason);
	else if (conn->state != CONN_FALLBACK)
		conn_abort(conn, reason, "");
}

void
smcr_tcp_event(struct smcr_conn *conn, enum smcr_tcp_event ev)
{
	if (conn->state == CONN_RENDEZVOUS || (conn->state == CONN_FALLBACK && conn->rdv != NULL))
		rdv_tcp_event(conn, ev);
	else if (!conn_is_open(conn))
		return;
	else if (ev == SMCR_TCP_RST)
		conn_abort(conn, SMCR_R_TCP_RESET, "");
	else
		conn_fin_seen(conn);
}

void
smcr_release(struct smcr_conn *conn)
{
	if (conn->released)
		return;
	if (!conn->reported && conn->state != CONN_FALLBACK)
		smcr_abort(conn, SMCR_R_APP_RESET);
	if (conn->state == CONN_RENDEZVOUS)
		rdv_abort(conn, SMCR_R_APP_RESET); /* nobody is left to read the Confirm */
	conn_release(conn);
}
