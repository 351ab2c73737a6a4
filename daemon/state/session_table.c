/*
 * The table of the three legs. Read it by column: what one state makes of each
 * event. RST of an app leg travels as A, behind the bytes that came before it, unless an operator or a limit cuts them off; RST on
 * the middle means something only if no link answers.
 * EOF travels as D, never as C, since close and shutdown(SHUT_WR) look alike.
 */
#include "daemon/state/session_table.h"

#include <assert.h>

static const unsigned table[SES_STATE_CNT][SEV_EVENT_CNT] = {
	[SES_CONNECT] = {
		[SEV_APP_EOF] = ACT_IGNORE,	/* half close; read once data may flow */
		[SEV_APP_RESET] = ACT_END_RESET,
		[SEV_CONNECT_FAILED] = ACT_END_RESET,
		[SEV_CIRCLE] = ACT_END_RESET,
		[SEV_REFUSED] = ACT_END_RESET,
		[SEV_TIMEOUT] = ACT_END_RESET,
		[SEV_OPERATOR] = ACT_END_RESET,
		[SEV_STOP] = ACT_END_RESET,
	},
	[SES_LOOK] = {	/* no engine's connection yet */
		[SEV_APP_EOF] = ACT_IGNORE,
		[SEV_APP_RESET] = ACT_END_RESET,
		[SEV_MID_EOF] = ACT_IGNORE,
		[SEV_MID_RESET] = ACT_END_RESET,
		[SEV_CONNECT_FAILED] = ACT_END_RESET,
		[SEV_CIRCLE] = ACT_END_RESET,
		[SEV_REFUSED] = ACT_END_RESET,
		[SEV_TIMEOUT] = ACT_END_RESET,
		[SEV_OPERATOR] = ACT_END_RESET,
		[SEV_STOP] = ACT_END_RESET,
	},
	[SES_RENDEZVOUS] = {
		[SEV_APP_EOF] = ACT_IGNORE,
		[SEV_APP_RESET] = ACT_ABORT | ACT_RESET_APP,
		[SEV_MID_EOF] = ACT_PASS_FIN,
		[SEV_MID_RESET] = ACT_PASS_RST,
		[SEV_CONNECT_FAILED] = ACT_ABORT | ACT_RESET_APP,
		[SEV_CIRCLE] = ACT_ABORT | ACT_RESET_APP,
		[SEV_REFUSED] = ACT_END_RESET,
		[SEV_TIMEOUT] = ACT_ABORT | ACT_RESET_APP,
		[SEV_OPERATOR] = ACT_ABORT | ACT_RESET_APP,
		[SEV_STOP] = ACT_ABORT | ACT_RESET_APP,
		[SEV_FALLBACK] = ACT_LEAVE,
		[SEV_ENGINE_OK] = ACT_END,	/* the peer made a link group ahead: no data will come */
		[SEV_ENGINE_RESET] = ACT_OUTAGE | ACT_END_RESET,
	},
	[SES_LEAVING] = {	/* nothing here calls the engine: its connection is fallen back, or released */
		[SEV_APP_EOF] = ACT_IGNORE,
		[SEV_APP_RESET] = ACT_END_RESET,
		[SEV_MID_EOF] = ACT_IGNORE,	/* read once data flows on the middle */
		[SEV_MID_RESET] = ACT_END_RESET,
		[SEV_CONNECT_FAILED] = ACT_END_RESET,
		[SEV_CIRCLE] = ACT_END_RESET,
		[SEV_REFUSED] = ACT_END_RESET,
		[SEV_TIMEOUT] = ACT_END_RESET,
		[SEV_OPERATOR] = ACT_END_RESET,
		[SEV_STOP] = ACT_END_RESET,
		[SEV_ENGINE_OK] = ACT_END,	/* a probe of the peer's daemon was told why not */
	},
	[SES_SMCR] = {
		[SEV_APP_EOF] = ACT_SEND_DONE,
		[SEV_APP_RESET] = ACT_DRAIN,
		[SEV_MID_EOF] = ACT_PASS_FIN,
		[SEV_MID_RESET] = ACT_PASS_RST | ACT_CLOSE_MID,
		[SEV_MID_LOST] = ACT_CLOSE_MID,
		[SEV_PEER_DONE] = ACT_FIN_APP,
		[SEV_BOTH_DONE] = ACT_SEND_CLOSED | ACT_CLOSE_APP,
		[SEV_TIMEOUT] = ACT_ABORT | ACT_RESET_APP,
		[SEV_OPERATOR] = ACT_ABORT | ACT_RESET_APP,
		[SEV_STOP] = ACT_ABORT | ACT_RESET_APP,
		[SEV_ENGINE_OK] = ACT_END_RESET,	/* before both ways were done: not orderly for us */
		[SEV_ENGINE_RESET] = ACT_DRAIN,
	},
	[SES_MEASURE] = {
		[SEV_MID_EOF] = ACT_PASS_FIN,
		[SEV_MID_RESET] = ACT_ABORT | ACT_RESET_APP, /* half of it goes over the middle */
		[SEV_BOTH_DONE] = ACT_SEND_CLOSED | ACT_CLOSE_APP,
		[SEV_TIMEOUT] = ACT_ABORT | ACT_RESET_APP,
		[SEV_OPERATOR] = ACT_ABORT | ACT_RESET_APP,
		[SEV_STOP] = ACT_ABORT | ACT_RESET_APP,
		[SEV_ENGINE_OK] = ACT_END_RESET,
		[SEV_ENGINE_RESET] = ACT_END_RESET,
	},
	[SES_CLOSING] = {
		[SEV_MID_EOF] = ACT_PASS_FIN,
		[SEV_MID_RESET] = ACT_PASS_RST | ACT_CLOSE_MID,
		[SEV_MID_LOST] = ACT_CLOSE_MID,
		[SEV_TIMEOUT] = ACT_IGNORE,	/* the engine has its own limit for the end */
		[SEV_OPERATOR] = ACT_ABORT,
		[SEV_STOP] = ACT_ABORT,
		[SEV_ENGINE_OK] = ACT_END,
		[SEV_ENGINE_RESET] = ACT_END_RESET,
	},
	[SES_DRAINING] = {
		[SEV_APP_EOF] = ACT_SEND_DONE,	/* FIN, and then RST */
		[SEV_APP_RESET] = ACT_IGNORE,
		[SEV_MID_EOF] = ACT_PASS_FIN,
		[SEV_MID_RESET] = ACT_PASS_RST | ACT_CLOSE_MID,
		[SEV_MID_LOST] = ACT_CLOSE_MID,
		[SEV_BOTH_DONE] = ACT_SEND_CLOSED | ACT_CLOSE_APP,
		[SEV_TIMEOUT] = ACT_ABORT | ACT_RESET_APP,
		[SEV_OPERATOR] = ACT_ABORT | ACT_RESET_APP,
		[SEV_STOP] = ACT_ABORT | ACT_RESET_APP,
		[SEV_ENGINE_OK] = ACT_END_RESET,
		[SEV_ENGINE_RESET] = ACT_END_RESET,
		[SEV_PASSED_ON] = ACT_RESET | ACT_RESET_APP,
	},
	[SES_ABORTING] = {
		[SEV_MID_EOF] = ACT_PASS_FIN,
		[SEV_MID_RESET] = ACT_PASS_RST | ACT_CLOSE_MID,
		[SEV_MID_LOST] = ACT_CLOSE_MID,
		[SEV_TIMEOUT] = ACT_ABORT,	/* without what the ring still has */
		[SEV_OPERATOR] = ACT_IGNORE,
		[SEV_STOP] = ACT_END_RESET,
		[SEV_FALLBACK] = ACT_END_RESET,	/* it had fallen back before it was aborted */
		[SEV_ENGINE_OK] = ACT_END_RESET,
		[SEV_ENGINE_RESET] = ACT_END_RESET,
	},
	[SES_DELIVERING] = {	/* the engine has said its last word */
		[SEV_APP_RESET] = ACT_END_RESET,
		[SEV_MID_EOF] = ACT_IGNORE,
		[SEV_MID_RESET] = ACT_IGNORE,
		[SEV_PEER_DONE] = ACT_FIN_APP,
		[SEV_BOTH_DONE] = ACT_END,
		[SEV_TIMEOUT] = ACT_END_RESET,
		[SEV_OPERATOR] = ACT_END_RESET,
		[SEV_STOP] = ACT_END_RESET,
		[SEV_PASSED_ON] = ACT_END_RESET,
	},
	[SES_TCP_CONNECT] = {
		[SEV_APP_RESET] = ACT_END_RESET,
		[SEV_MID_EOF] = ACT_IGNORE,	/* half close; read once the server is there */
		[SEV_MID_RESET] = ACT_END_RESET,
		[SEV_CONNECT_FAILED] = ACT_END_RESET,
		[SEV_CIRCLE] = ACT_END_RESET,
		[SEV_REFUSED] = ACT_END_RESET,
		[SEV_TIMEOUT] = ACT_END_RESET,
		[SEV_OPERATOR] = ACT_END_RESET,
		[SEV_STOP] = ACT_END_RESET,
	},
	[SES_TCP] = {
		[SEV_APP_EOF] = ACT_FIN_MID,
		[SEV_APP_RESET] = ACT_DRAIN,
		[SEV_MID_EOF] = ACT_FIN_APP,
		[SEV_MID_RESET] = ACT_DRAIN,
		[SEV_BOTH_DONE] = ACT_END,
		[SEV_REFUSED] = ACT_END_RESET,	/* a CLC message came where data of a plain client was expected */
		[SEV_TIMEOUT] = ACT_END_RESET,
		[SEV_OPERATOR] = ACT_END_RESET,
		[SEV_STOP] = ACT_END_RESET,
	},
	[SES_TCP_DRAINING] = {	/* resets are those of the leg that is written to */
		[SEV_APP_EOF] = ACT_FIN_MID,
		[SEV_APP_RESET] = ACT_END_RESET,
		[SEV_MID_EOF] = ACT_FIN_APP,
		[SEV_MID_RESET] = ACT_END_RESET,
		[SEV_BOTH_DONE] = ACT_END,
		[SEV_REFUSED] = ACT_END_RESET,
		[SEV_TIMEOUT] = ACT_END_RESET,
		[SEV_OPERATOR] = ACT_END_RESET,
		[SEV_STOP] = ACT_END_RESET,
		[SEV_PASSED_ON] = ACT_END_RESET,
	},
};

unsigned
session_table_actions(enum session_state state, enum session_event event)
{
	assert(state < SES_STATE_CNT && event < SEV_EVENT_CNT);
	return table[state][event];
}

const char *
session_state_str(enum session_state state)
{
	static const char *const names[SES_STATE_CNT] = {
		[SES_CONNECT] = "connecting to peer",
		[SES_LOOK] = "no SMC-R option, waiting for the first byte",
		[SES_RENDEZVOUS] = "rendezvous",
		[SES_LEAVING] = "leaving SMC-R",
		[SES_SMCR] = "SMC-R",
		[SES_MEASURE] = "measuring",
		[SES_CLOSING] = "closing",
		[SES_DRAINING] = "resetting",
		[SES_ABORTING] = "aborting",
		[SES_DELIVERING] = "delivering before a reset",
		[SES_TCP_CONNECT] = "TCP, connecting to server",
		[SES_TCP] = "TCP",
		[SES_TCP_DRAINING] = "TCP, resetting",
		[SES_DEAD] = "closed",
	};

	return names[state];
}

const char *
session_event_str(enum session_event event)
{
	static const char *const names[SEV_EVENT_CNT] = {
		[SEV_APP_EOF] = "end of data on the app leg",
		[SEV_APP_RESET] = "app leg reset",
		[SEV_MID_EOF] = "FIN on the middle",
		[SEV_MID_RESET] = "middle reset",
		[SEV_MID_LOST] = "middle lost",
		[SEV_PEER_DONE] = "peer done sending",
		[SEV_BOTH_DONE] = "done both ways",
		[SEV_CONNECT_FAILED] = "connect failed",
		[SEV_CIRCLE] = "circle",
		[SEV_REFUSED] = "refused",
		[SEV_TIMEOUT] = "timeout",
		[SEV_OPERATOR] = "closed by the operator",
		[SEV_STOP] = "shutdown",
		[SEV_FALLBACK] = "fallback",
		[SEV_ENGINE_OK] = "closed",
		[SEV_ENGINE_RESET] = "reset by the engine",
		[SEV_PASSED_ON] = "passed on what came before a reset",
	};

	return names[event];
}
