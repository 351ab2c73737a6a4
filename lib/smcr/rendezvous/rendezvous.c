/*
 * The rendezvous of a connection: its steps, their timer, CLC messages, and the
 * entry points of smcr.h that lead into it or depend on it.
 */
#include "smcr/rendezvous/rendezvous.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/minmax.h"
#include "smcr/data/conn.h"
#include "smcr/data/rmb.h"
#include "smcr/state/engine.h"
#include "smcr/state/log.h"

/* What can be seen of a step, whether it takes CLC bytes of the middle, and what follows when it takes too long: a
 * Decline, or the end, with what did not come. */
static const struct {
	const char *name;
	enum smcr_phase phase;
	bool reads;
	bool in_turn;     /* the peer may be at others first */
	uint32_t decline; /* with this diagnosis; 0: none */
	const char *missing;
} steps[] = {
	[RDV_NONE] = { .name = "Rendezvous" },
	[RDV_WAIT_TURN] = { .name = "waits for another first contact",
	    .phase = SMCR_PHASE_TURN,
	    .decline = CLC_DIAG_READY_LINK },
	[RDV_WAIT_ACCEPT] = { .name = "waits for Accept",
	    .phase = SMCR_PHASE_CLC,
	    .reads = true,
	    .in_turn = true,
	    .missing = "no answer to the Proposal: it speaks no SMC-R, or hangs" },
	[RDV_CONNECTING] = { .name = "connects the queue pair",
	    .phase = SMCR_PHASE_CONNECT,
	    .decline = CLC_DIAG_READY_LINK },
	[RDV_WAIT_RKEY] = { .name = "confirms an RMB", .phase = SMCR_PHASE_LINK, .decline = CLC_DIAG_RTOKEN },
	[RDV_WAIT_GROUP] = { .name = "first contact", .phase = SMCR_PHASE_LINK, .reads = true },
	[RDV_LATE_DECLINE] = { .name = "falls back",
	    .reads = true,
	    .missing = "first contact failed, and no Decline of the peer's came" },
	[RDV_WAIT_PROPOSAL] = { .name = "waits for Proposal", .reads = true, .missing = "no Proposal came" },
	[RDV_WAIT_ADMIT] = { .name = "waits for the server leg", .decline = CLC_DIAG_SERVER_LATE },
	[RDV_WAIT_PEER_GROUP] = { .name = "waits for another first contact", .decline = CLC_DIAG_READY_LINK },
	[RDV_WAIT_SRV_RKEY] = { .name = "confirms an RMB", .decline = CLC_DIAG_RTOKEN },
	[RDV_WAIT_CONFIRM] = { .name = "waits for Confirm",
	    .reads = true,
	    .in_turn = true,
	    .missing = "no Confirm came" },
	[RDV_WAIT_LINK] = { .name = "first contact", .reads = true },
};

const char *
rdv_step_str(enum rdv_step step)
{
	return steps[step].name;
}

enum smcr_phase
rdv_step_phase(enum rdv_step step)
{
	return steps[step].phase;
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

static void
rdv_timeout(struct timer *t)
{
	struct smcr_conn *conn = CONTAINER_OF(t, struct rdv, timer)->conn;
	const struct link *link = rdv_first_link(conn);
	enum rdv_step step = conn->rdv->step;
	uint32_t more_ms = steps[step].in_turn ? rdv_turn_ms(conn) : 0;

	if (more_ms > 0) {
		engine_arm(conn->eng, t, more_ms);
	} else if (steps[step].decline != 0) {
		rdv_decline(conn, steps[step].decline);
	} else if (step == RDV_WAIT_LINK && link != NULL && !link->connected && !link->lgr->contact.confirm_link_out) {
		rdv_decline(conn, CLC_DIAG_TIMEOUT_CONFIRM_LINK);
	} else if (step == RDV_WAIT_LINK || step == RDV_WAIT_GROUP) {
		conn->eng->ctr.llc_timeouts++;
		rdv_end(conn, SMCR_R_LLC_TIMEOUT, "first contact was not finished");
	} else if (step == RDV_LATE_DECLINE && !rdv_declines_are_answered(conn)) {
		rdv_late_decline_waited(conn);
	} else {
		/* An answer to our Decline, too, could come at any time, and would be taken for data. */
		conn->eng->ctr.clc_timeouts++;
		rdv_end(conn, SMCR_R_CLC_TIMEOUT, steps[step].missing != NULL ? steps[step].missing : "");
	}
}

/* -- CLC messages: bytes of the middle in and out (Appendix A.2, C.1) -- */

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

size_t
smcr_clc_want(const struct smcr_conn *conn)
{
	const struct rdv *r = conn->rdv;

	return r != NULL && steps[r->step].reads ? r->in_want - r->in_len : 0;
}

size_t
smcr_clc_output(struct smcr_conn *conn, void *buf, size_t cap)
{
	struct rdv *r = conn->rdv;

	if (r == NULL)
		return 0;
	size_t n = min_size(r->out_len, cap);
	memcpy(buf, r->out, n);
	memmove(r->out, r->out + n, r->out_len - n);
	r->out_len -= n;
	if (r->step == RDV_NONE)
		rdv_ended(conn);
	return n;
}

size_t
smcr_clc_leftover(struct smcr_conn *conn, void *buf, size_t cap)
{
	struct rdv *r = conn->rdv;
	size_t n = r != NULL ? r->left_len : 0;

	if (n == 0)
		return 0;
	assert(cap >= r->left_len);
	memcpy(buf, r->in, n);
	r->left_len = 0;
	rdv_ended(conn);
	return n;
}

void
rdv_protocol_error(struct smcr_conn *conn, const char *what)
{
	conn->eng->ctr.bad_clc++;
	rdv_end(conn, SMCR_R_PROTOCOL, what);
}

/* Not behind a Confirm, whose peer waits for CONFIRM LINK, nor behind an Accept for a group that is there (C.1). */
static bool
may_decline(const struct smcr_conn *conn)
{
	enum rdv_step step = conn->rdv->step;

	return step != RDV_WAIT_GROUP && step != RDV_WAIT_LINK && (step != RDV_WAIT_CONFIRM || rdv_forms_group(conn));
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
	r->heard = r->in[7] >> 4;
	if (n == -EPROTO && may_decline(conn)) { /* a reserved value (C.6) */
		conn->eng->ctr.bad_clc++;
		rdv_decline(conn, clc_bad_value_diag(in));
		return;
	}
	if (n <= 0 || (size_t)n != in.len)
		rdv_protocol_error(conn, "malformed CLC message");
	else if (msg.type == CLC_DECLINE)
		rdv_declined(conn, &msg.decline);
	else if (conn->role == SMCR_CLIENT)
		rdv_client_msg(conn, &msg);
	else
		rdv_server_msg(conn, &msg);
}

void
smcr_clc_input(struct smcr_conn *conn, const void *buf, size_t len)
{
	struct rdv *r = conn->rdv;

	assert(len <= smcr_clc_want(conn));
	if (len == 0)
		return;
	memcpy(r->in + r->in_len, buf, len);
	r->in_len += len;
	if (r->step == RDV_LATE_DECLINE) {
		rdv_late_decline_input(conn);
		return;
	}
	/* Not even the beginning of a message: no need to wait for a whole header. */
	int total = clc_peek_len((struct span){ r->in, r->in_len });
	if (total < 0 || total > (int)sizeof(r->in)) {
		rdv_protocol_error(conn, "no CLC message where one was expected");
		return;
	}
	/* Past the Confirm only a Decline can come. Nothing else is read beyond its header, so that no more than
	 * SMCR_LEFTOVER_MAX bytes of it may have to be given back as data when we decline in the middle of it. */
	if ((r->step == RDV_WAIT_GROUP || r->step == RDV_WAIT_LINK) &&
	    !rdv_may_be_decline((struct span){ r->in, r->in_len })) {
		rdv_protocol_error(conn, "unexpected CLC message");
		return;
	}
	if (total > 0)
		r->in_want = (size_t)total;
	if (r->in_len >= r->in_want && r->in_want != CLC_HDR_LEN)
		rdv_message(conn);
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
		a->ext.transports = rdv_transport_bit(link->info.transport);
		a->ext.features = conn->eng->cfg.features;
		if (conn->rdv->measure)
			a->ext.features |= CLC_FEATURE_MEASURE;
		a->ext.mpa_port = link->info.mpa_port;
		a->ext.recv_depth = (uint16_t)conn->eng->cfg.rq_depth;
		/* At first contact it is agreed; later it shows that the group is ours to offer. */
		a->ext.token = type == CLC_ACCEPT ? link->lgr->token : 0;
	}
	rdv_send(conn, &msg);
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
	conn->prewarm = prewarm;
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

bool
smcr_is_prewarm(const struct smcr_conn *conn)
{
	return conn->prewarm;
}

void
smcr_proposed_way(const struct smcr_conn *conn, uint8_t *hops, uint32_t *origin)
{
	const struct clc_smcrd_ext *ext = conn->rdv != NULL ? &conn->rdv->proposal.ext : NULL;

	*hops = ext != NULL && ext->present ? ext->hops : 0;
	*origin = ext != NULL && ext->present ? ext->origin : 0;
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
	conn->rx.dropped = true;
	if (conn->state == CONN_RENDEZVOUS)
		rdv_abort(conn, reason);
	else if (conn->state != CONN_FALLBACK)
		conn_abort(conn, reason, "");
}

void
smcr_reset(struct smcr_conn *conn)
{
	if (conn->state == CONN_RENDEZVOUS)
		rdv_abort(conn, SMCR_R_APP_RESET);
	else
		conn_reset(conn);
}

void
smcr_tcp_event(struct smcr_conn *conn, enum smcr_tcp_event ev)
{
	if (ev == SMCR_TCP_FIN && conn->rdv != NULL && conn->rdv->step == RDV_LATE_DECLINE)
		rdv_no_late_decline(conn);
	else if (conn->state == CONN_RENDEZVOUS)
		rdv_end(conn, ev == SMCR_TCP_RST ? SMCR_R_TCP_RESET : SMCR_R_TCP_FIN, "during the rendezvous");
	else if (!conn_is_open(conn))
		return;
	else if (ev == SMCR_TCP_RST)
		conn_rst_seen(conn);
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
