/* Rendezvous: timer, incoming CLC messages, marks, entry points of smcr.h. Calls the other files here; none calls it. */
#include "smcr/rendezvous/rendezvous.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/minmax.h"
#include "smcr/state/engine.h"
#include "smcr/state/log.h"

/* -- a busy peer -- */

static bool
is_of_its_peer(const struct smcr_conn *conn, const struct lgr *lgr)
{
	const char *key = conn->rdv->open.peer_key;
	const struct lgr *own = conn->lgr != NULL ? conn->lgr : conn->rdv->lgr;

	if (conn->role == SMCR_CLIENT) /* only the awaited Accept names the group */
		return peer_key_leads_to(key, peer_known_owner(conn->eng, key), lgr);
	return lgr->role == SMCR_SERVER && own != NULL && owner_same(&lgr->owner, &own->owner);
}

/* After clc_ms without the awaited Accept or Confirm: time to wait while the peer is busy with others; 0: none. Of many
 * concurrent rendezvous with a peer that makes one at a time, some exceed the limit of a CLC message (C.5). Its
 * progress with others shows that it will reach them; a Confirm is certain while CLC connection and group exist. */
static uint32_t
rdv_turn_ms(const struct smcr_conn *conn)
{
	int64_t clc_ns = conn->eng->cfg.clc_ms * MS, until_ns = conn->eng->now_ns;

	/* A server whose Accept names an existing group must wait. TEST LINK detects a dead peer. */
	if (conn->lgr != NULL && conn->lgr->dialect.reset_unseen)
		return conn->eng->cfg.clc_ms;
	LIST_EACH(const struct lgr, lgr, &conn->eng->lgrs, node) {
		if (lgr->dialect.one_rendezvous && lgr->joined_ns != 0 && is_of_its_peer(conn, lgr))
			until_ns = max_i64(until_ns, lgr->joined_ns + clc_ns);
	}
	/* A peer could continue forever without reaching this one. */
	until_ns = min_i64(until_ns, conn->rdv->until_ns + RDV_TURNS_MAX * clc_ns);
	return until_ns > conn->eng->now_ns ? (uint32_t)((until_ns - conn->eng->now_ns) / MS) : 0;
}

static void
rdv_timeout(struct timer *t)
{
	struct smcr_conn *conn = CONTAINER_OF(t, struct rdv, timer)->conn;
	const struct link *link = rdv_first_link(conn);
	enum rdv_step step = conn->rdv->step;
	uint32_t more_ms = rdv_steps[step].in_turn ? rdv_turn_ms(conn) : 0;

	if (more_ms > 0) {
		engine_arm(conn->eng, t, more_ms);
	} else if (rdv_steps[step].decline != 0) {
		rdv_decline(conn, rdv_steps[step].decline);
	} else if (step == RDV_WAIT_LINK && link != NULL && !link->connected && !link->lgr->contact.confirm_link_out) {
		rdv_decline(conn, CLC_DIAG_TIMEOUT_CONFIRM_LINK);
	} else if (step == RDV_WAIT_LINK || step == RDV_WAIT_GROUP) {
		conn->eng->ctr.llc_timeouts++;
		rdv_end(conn, SMCR_R_LLC_TIMEOUT, "first contact was not finished");
	} else if (step == RDV_LATE_DECLINE && !rdv_declines_are_answered(conn)) {
		if (conn->rdv->in_len > 0) {
			rdv_no_late_decline(conn);
			return;
		}
		/* Nothing arrived. Our user may send now, as the peer may wait for that. The peer's first bytes may
		 * still be its Decline, at any time: it or the network may have been suspended. */
		conn_set_state(conn, CONN_FALLBACK);
		conn_raise(conn, SMCR_EV_FALLBACK);
	} else {
		/* A response to our Decline could come at any time as well, and would be taken for data. */
		conn->eng->ctr.clc_timeouts++;
		rdv_end(conn, SMCR_R_CLC_TIMEOUT, rdv_steps[step].missing != NULL ? rdv_steps[step].missing : "");
	}
}

/* -- CLC messages: bytes of the CLC connection (Appendix A.2, C.1) -- */

size_t
smcr_clc_want(const struct smcr_conn *conn)
{
	const struct rdv *r = conn->rdv;

	return r != NULL && rdv_steps[r->step].reads ? r->in_want - r->in_len : 0;
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

static void
rdv_message(struct smcr_conn *conn)
{
	struct rdv *r = conn->rdv;
	struct span in = { r->in, r->in_len };
	struct clc_msg msg;
	int n = clc_decode(in, &msg);
	/* Not after a Confirm, whose peer waits for CONFIRM LINK, nor after an Accept for an existing group (C.1). */
	bool may_decline = r->step != RDV_WAIT_GROUP && r->step != RDV_WAIT_LINK &&
	    (r->step != RDV_WAIT_CONFIRM || rdv_forms_group(conn));

	engine_trace(conn->eng, SMCR_TRACE_CLC, false, rdv_first_link(conn), conn->id, r->in, r->in_len);
	conn->eng->ctr.clc_received++;
	r->in_len = 0;
	r->heard = r->in[7] >> 4;
	if (n == -EPROTO && may_decline) { /* a reserved value (C.6) */
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
	/* Not even the start of a message: no need for a whole header. */
	int total = clc_peek_len((struct span){ r->in, r->in_len });
	if (total < 0 || total > (int)sizeof(r->in)) {
		rdv_protocol_error(conn, "no CLC message where one was expected");
		return;
	}
	/* After the Confirm only a Decline is legal. Other messages are not read beyond their header, so that at most
	 * SMCR_LEFTOVER_MAX bytes must be returned as data if we decline in the meantime. */
	if ((r->step == RDV_WAIT_GROUP || r->step == RDV_WAIT_LINK) &&
	    rdv_decline_len((struct span){ r->in, r->in_len }) < 0) {
		rdv_protocol_error(conn, "unexpected CLC message");
		return;
	}
	if (total > 0)
		r->in_want = (size_t)total;
	if (r->in_len >= r->in_want && r->in_want != CLC_HDR_LEN)
		rdv_message(conn);
}

/* -- for the engine: outcome of first contact, an RMB or a turn -- */

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
			rdv_client_join(r->conn);
		else
			rdv_server_choose(r->conn);
	}
	mark_lgr(lgr)->conn_left = true;
	/* Waiting connections may have found an element elsewhere. */
	if (list_empty(&lgr->wait_rmb))
		mark_exchanges(lgr);
}

void
rdv_act_on_peer(struct smcr *eng, struct peer *p)
{
	struct smcr_conn *conn;
	bool refused;

	while ((conn = peer_next(eng, p, &refused)) != NULL) {
		if (refused)
			rdv_give_up(conn);
		else if (conn->role == SMCR_CLIENT)
			rdv_client_choose(conn);
		else
			rdv_server_choose(conn);
	}
}

/* -- entry points -- */

bool
rdv_new(struct smcr_conn *conn, const struct smcr_open *open)
{
	struct smcr *eng = conn->eng;
	struct rdv *r = slab_get(&eng->rdv_slab);

	if (r == NULL || timerq_reserve(&eng->timers, 1) < 0) {
		if (r != NULL)
			slab_put(&eng->rdv_slab, r);
		eng->ctr.refused_memory++;
		return false;
	}
	r->conn = conn;
	r->open = *open;
	r->open.peer_key[sizeof(r->open.peer_key) - 1] = '\0';
	r->open.peer_name[sizeof(r->open.peer_name) - 1] = '\0';
	list_init(&r->wait);
	list_init(&r->mark.node);
	timer_init(&r->timer, rdv_timeout);
	conn->rdv = r;
	conn->mark = &r->mark;
	return true;
}

struct smcr_conn *
smcr_open(struct smcr *eng, const struct smcr_open *open, int *err)
{
	struct smcr_conn *conn = conn_new(eng, open, err);

	if (conn == NULL)
		return NULL;
	if (!rdv_new(conn, open)) {
		conn_free(conn);
		*err = -ENOMEM;
		return NULL;
	}
	conn->prewarm = open->prewarm;
	rdv_peer_waits(conn);
	if (open->role == SMCR_CLIENT) {
		eng->ctr.conns_client++;
		rdv_client_choose(conn);
	} else {
		eng->ctr.conns_server++;
		rdv_step(conn, RDV_WAIT_PROPOSAL, eng->cfg.clc_ms);
	}
	return conn;
}

bool
smcr_is_prewarm(const struct smcr_conn *conn)
{
	return conn->prewarm;
}

void
smcr_proposed_way(const struct smcr_conn *conn, uint8_t *hops, uint32_t *origin)
{
	*hops = conn->hops;
	*origin = conn->origin;
}

struct clc_tlvs
smcr_proposed_tlvs(const struct smcr_conn *conn)
{
	return conn->rdv != NULL && conn->role == SMCR_SERVER ? conn->rdv->proposal.tlvs
	                                                      : (struct clc_tlvs){ .unknown = 0 };
}

void
smcr_take_dest(struct smcr_conn *conn, uint32_t ticket)
{
	if (conn->rdv == NULL || conn->rdv->step != RDV_WAIT_ADMIT || conn->over_link)
		return;
	conn->dest_used = conn->rdv->proposal.tlvs.dest.kind != CLC_DEST_NONE;
	conn->rdv->open.ticket = ticket;
}

void
smcr_refuse_dest(struct smcr_conn *conn)
{
	if (conn->rdv == NULL || conn->rdv->step != RDV_WAIT_ADMIT || conn->over_link)
		return;
	conn->dest_refused = true;
	conn->dest_used = false;
	rdv_decline(conn, CLC_DIAG_CONFIG);
}

bool
smcr_dest_is_used(const struct smcr_conn *conn)
{
	return conn->dest_used && conn->role == SMCR_CLIENT;
}

bool
smcr_dest_is_refused(const struct smcr_conn *conn)
{
	return conn->dest_refused;
}

bool
smcr_client_is_used(const struct smcr_conn *conn)
{
	return conn->client_used;
}

void
smcr_admit(struct smcr_conn *conn)
{
	if (conn->rdv == NULL || conn->rdv->step != RDV_WAIT_ADMIT)
		return;
	if (conn->over_link)
		rdv_admit_opened(conn);
	else if (conn->rdv->only_tcp != 0)
		rdv_decline(conn, conn->rdv->only_tcp);
	else
		rdv_server_choose(conn);
}

void
smcr_admit_asking(struct smcr_conn *conn, enum clc_server server)
{
	conn->server = (uint8_t)server;
	smcr_admit(conn);
}

unsigned
smcr_server(const struct smcr_conn *conn)
{
	return conn->server;
}

void
smcr_fallback(const struct smcr_conn *conn, struct smcr_diag *diag)
{
	*diag = conn->diag;
}

/* -- entry points that end a connection -- */

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
	if (conn->state == CONN_RENDEZVOUS) {
		rdv_abort(conn, SMCR_R_APP_RESET);
	} else if (conn_is_open(conn)) {
		conn->close.want_reset = true;
		conn_tx_schedule(conn);
	}
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
		rdv_abort(conn, SMCR_R_APP_RESET); /* the user reads no Confirm */
	conn_release(conn);
}
