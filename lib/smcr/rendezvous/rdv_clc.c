/* CLC messages: bytes of the middle in and out, and who takes a message (RFC 7609 Appendix A.2, C.1). */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "smcr/data/conn.h"
#include "smcr/data/rmb.h"
#include "smcr/rendezvous/rendezvous.h"
#include "smcr/state/engine.h"
#include "smcr/state/log.h"

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
		rdv_ended(conn);
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
	rdv_ended(conn);
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
		rdv_late_decline_input(conn);
		return;
	}
	/* Not even the beginning of a message: no need to wait for a whole header. */
	total = clc_peek_len((struct span){ r->in, r->in_len });
	if (total < 0 || total > (int)sizeof(r->in)) {
		conn->eng->ctr.bad_clc++;
		rdv_end(conn, SMCR_R_PROTOCOL, "no CLC message where one was expected");
		return;
	}
	/* Past the Confirm only a Decline can come. Nothing else is read beyond its header, so that no more than
	 * SMCR_LEFTOVER_MAX bytes of it may have to be given back as data when we decline in the middle of it. */
	if ((r->step == RDV_WAIT_GROUP || r->step == RDV_WAIT_LINK) &&
	    !rdv_may_be_decline((struct span){ r->in, r->in_len })) {
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
