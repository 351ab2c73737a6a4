/* States of a connection and their transitions; events and the end that its user is notified of. */
#include "smcr/state/conn.h"

#include <assert.h>

#include "smcr/state/engine.h"
#include "smcr/state/log.h"

#define BIT(state) (1u << CONN_##state)
#define ENDING (BIT(PROCESS_ABORT) | BIT(CLOSED) | BIT(LAST_WAIT)) /* from any closing state */

/* Names and next states: Figures 22 and 23, and the states before them. */
const struct state_row conn_states[CONN_STATE_CNT] = {
	[CONN_RENDEZVOUS] = { "Rendezvous", BIT(SPARE) | BIT(FALLBACK) | BIT(ACTIVE) | BIT(CLOSED) },
	[CONN_SPARE] = { "Spare", BIT(RENDEZVOUS) | BIT(CLOSED) },
	[CONN_FALLBACK] = { "Fallback", BIT(CLOSED) },
	[CONN_ACTIVE] = { "Active",
	    BIT(PEER_CLOSE_WAIT1) | BIT(APP_CLOSE_WAIT1) | BIT(PEER_ABORT_WAIT) | BIT(PROCESS_ABORT) | BIT(CLOSED) },
	[CONN_PEER_CLOSE_WAIT1] = { "PeerCloseWait1",
	    BIT(PEER_CLOSE_WAIT2) | BIT(APP_FIN_CLOSE_WAIT) | BIT(PEER_ABORT_WAIT) | ENDING },
	[CONN_PEER_CLOSE_WAIT2] = { "PeerCloseWait2", BIT(APP_FIN_CLOSE_WAIT) | BIT(PEER_ABORT_WAIT) | ENDING },
	[CONN_APP_FIN_CLOSE_WAIT] = { "AppFinCloseWait", ENDING },
	[CONN_APP_CLOSE_WAIT1] = { "AppCloseWait1",
	    BIT(APP_CLOSE_WAIT2) | BIT(PEER_FIN_CLOSE_WAIT) | BIT(PEER_ABORT_WAIT) | ENDING },
	[CONN_APP_CLOSE_WAIT2] = { "AppCloseWait2", BIT(PEER_FIN_CLOSE_WAIT) | BIT(PEER_ABORT_WAIT) | ENDING },
	[CONN_PEER_FIN_CLOSE_WAIT] = { "PeerFinCloseWait", BIT(APP_FIN_CLOSE_WAIT) | ENDING },
	[CONN_PEER_ABORT_WAIT] = { "PeerAbortWait", ENDING },
	[CONN_PROCESS_ABORT] = { "ProcessAbort", BIT(CLOSED) },
	[CONN_LAST_WAIT] = { "LastWait", BIT(CLOSED) },
	[CONN_CLOSED] = { "Closed", 0 },
};

void
conn_set_state(struct smcr_conn *conn, enum conn_state next)
{
	if (next == conn->state)
		return;
	assert((conn_states[conn->state].next & (1u << next)) != 0);
	conn->state = next;
}

bool
conn_is_open(const struct smcr_conn *conn)
{
	return conn->state >= CONN_ACTIVE && conn->state <= CONN_PEER_FIN_CLOSE_WAIT && !conn->reported;
}

bool
conn_is_readable(const struct smcr_conn *conn)
{
	return conn->established && conn->rmb != NULL && !conn->rx.dropped && conn->state >= CONN_ACTIVE;
}

/* -- for its user -- */

void
conn_raise(struct smcr_conn *conn, unsigned events)
{
	/* A user not notified of ESTABLISHED (rdv_finish) gets no data events. */
	if (!conn->established)
		events &= ~(unsigned)(SMCR_EV_READABLE | SMCR_EV_WRITABLE);
	if (conn->released || events == 0)
		return;
	conn->events |= events;
	if (list_empty(&conn->event_node))
		list_push(&conn->eng->events, &conn->event_node);
}

static const char *const reason_names[] = {
	[SMCR_OK] = "closed",
	[SMCR_R_APP_RESET] = "reset by the application",
	[SMCR_R_TCP_RESET] = "TCP connection reset",
	[SMCR_R_TCP_FIN] = "TCP connection ended before the SMC-R connection",
	[SMCR_R_PEER_ABORT] = "aborted by the peer",
	[SMCR_R_PEER_CLOSED] = "closed by the peer before it took all data",
	[SMCR_R_LINK_LOST] = "link lost",
	[SMCR_R_GROUP_DELETED] = "link group deleted",
	[SMCR_R_PROTOCOL] = "protocol error of the peer",
	[SMCR_R_CLC_TIMEOUT] = "CLC timeout",
	[SMCR_R_LLC_TIMEOUT] = "LLC timeout",
	[SMCR_R_CLOSE_TIMEOUT] = "the peer did not finish closing",
	[SMCR_R_ELEM_CONFLICT] = "RMB element given away by the peer",
	[SMCR_R_NO_MEMORY] = "out of memory",
	[SMCR_R_REFUSED] = "refused by the server",
	[SMCR_R_TIMEOUT] = "timeout",
	[SMCR_R_OPERATOR] = "closed by the operator",
	[SMCR_R_SHUTDOWN] = "shutdown",
	[SMCR_R_NOT_OPENED] = "not opened over the link",
};

const char *
smcr_reason_str(enum smcr_reason reason)
{
	return reason_names[reason];
}

void
conn_report(struct smcr_conn *conn, enum smcr_reason reason, const char *detail)
{
	if (conn->reported)
		return;
	if (conn->close.want_reset) {
		reason = SMCR_R_APP_RESET;
		detail = NULL;
	}
	conn->reported = true;
	conn->reason = reason;
	conn->detail = detail != NULL ? detail : "";
	conn->eng->ctr.closed_ok += reason == SMCR_OK;
	conn->eng->ctr.not_opened_client += reason == SMCR_R_NOT_OPENED && conn->role == SMCR_CLIENT;
	conn->eng->ctr.closed_reset += reason != SMCR_OK && reason != SMCR_R_NOT_OPENED;
	conn_raise(conn, SMCR_EV_CLOSED);
}
