/* Steps of a rendezvous, and the CLC messages sent or awaited in them. */
#include <assert.h>

#include "smcr/rendezvous/rendezvous.h"
#include "smcr/state/engine.h"
#include "smcr/state/log.h"

const struct rdv_step_row rdv_steps[] = {
	[RDV_NONE] = { .name = "Rendezvous" },
	[RDV_WAIT_TURN] = { "waits for another first contact", SMCR_PHASE_TURN, .decline = CLC_DIAG_READY_LINK },
	[RDV_WAIT_ACCEPT] = { "waits for Accept", SMCR_PHASE_CLC, .reads = true, .in_turn = true,
	    .missing = "no answer to the Proposal: it speaks no SMC-R, or hangs" },
	[RDV_CONNECTING] = { "connects the queue pair", SMCR_PHASE_CONNECT, .decline = CLC_DIAG_READY_LINK },
	[RDV_WAIT_RKEY] = { "confirms an RMB", SMCR_PHASE_LINK, .decline = CLC_DIAG_RTOKEN },
	[RDV_WAIT_GROUP] = { "first contact", SMCR_PHASE_LINK, .reads = true },
	[RDV_LATE_DECLINE] = { "falls back", .reads = true,
	    .missing = "first contact failed, and the peer sent no Decline" },
	[RDV_WAIT_PROPOSAL] = { "waits for Proposal", .reads = true, .missing = "no Proposal received" },
	[RDV_WAIT_ADMIT] = { "waits for the server leg", .decline = CLC_DIAG_SERVER_LATE },
	[RDV_WAIT_CONFIRM] = { "waits for Confirm", .reads = true, .in_turn = true, .missing = "no Confirm received" },
	[RDV_WAIT_LINK] = { "first contact", .reads = true },
};

void
rdv_step(struct smcr_conn *conn, enum rdv_step step, uint32_t timeout_ms)
{
	struct rdv *r = conn->rdv;

	if (step != r->step && rdv_steps[step].reads) {
		r->in_want = CLC_HDR_LEN;
		if (r->in_len == 0)
			conn_raise(conn, SMCR_EV_CLC_WANT);
	}
	r->step = step;
	if (timeout_ms == 0)
		timer_cancel(&conn->eng->timers, &r->timer);
	else
		engine_arm(conn->eng, &r->timer, timeout_ms);
}

void
rdv_send(struct smcr_conn *conn, const struct clc_msg *msg)
{
	struct rdv *r = conn->rdv;
	int n = clc_encode(msg, r->out + r->out_len, sizeof(r->out) - r->out_len);

	assert(n > 0); /* our own values, and space for two messages */
	engine_trace(conn->eng, SMCR_TRACE_CLC, true, rdv_first_link(conn), conn->id, r->out + r->out_len, (size_t)n);
	conn->eng->ctr.clc_sent++;
	r->out_len += (size_t)n;
	conn_raise(conn, SMCR_EV_CLC_OUT);
}
