/* The state table of the three legs. RST of an app leg is sent as A, after the bytes before it, unless an operator or a
 * limit cuts them off. RST on the CLC connection matters only if no link answers. EOF is sent as D, never as C: close
 * and shutdown(SHUT_WR) look alike. */
#include "daemon/state/session_table.h"

#include <assert.h>

/* Cells with the same actions. */
#define BY_LIMIT(actions) [SEV_TIMEOUT] = (actions), [SEV_OPERATOR] = (actions), [SEV_STOP] = (actions)
#define LIMIT_ENDS BY_LIMIT(ACT_END_RESET)
#define LIMIT_ABORTS BY_LIMIT(ACT_ABORT | ACT_RESET_APP)
#define SETUP_ENDS                                                                                           \
	[SEV_APP_RESET] = ACT_END_RESET, [SEV_CONNECT_FAILED] = ACT_END_RESET, [SEV_CIRCLE] = ACT_END_RESET, \
	[SEV_CLIENT] = ACT_END_RESET, [SEV_DEST] = ACT_END_RESET, [SEV_REFUSED] = ACT_END_RESET, LIMIT_ENDS
#define ENGINE_ENDS [SEV_ENGINE_OK] = ACT_END_RESET, [SEV_ENGINE_RESET] = ACT_END_RESET
#define TCP_WAYS                                                                             \
	[SEV_APP_EOF] = ACT_FIN_MID, [SEV_MID_EOF] = ACT_FIN_APP, [SEV_BOTH_DONE] = ACT_END, \
	[SEV_REFUSED] = ACT_END_RESET, LIMIT_ENDS
/* The CLC connection beside data on SMC-R, whose end does not end the session. */
#define MIDDLE_BESIDE \
	[SEV_MID_EOF] = ACT_PASS_FIN, [SEV_MID_RESET] = ACT_PASS_RST | ACT_CLOSE_MID, [SEV_MID_LOST] = ACT_CLOSE_MID

static const unsigned table[SES_STATE_CNT][SEV_EVENT_CNT] = {
	[SES_CONNECT] = {
		[SEV_APP_EOF] = ACT_IGNORE,	/* half close; read once data may flow */
		SETUP_ENDS,
	},
	[SES_LOOK] = {	/* no engine connection yet */
		[SEV_APP_EOF] = ACT_IGNORE,
		[SEV_MID_EOF] = ACT_IGNORE,
		[SEV_MID_RESET] = ACT_END_RESET,
		SETUP_ENDS,
	},
	[SES_SECURE] = {	/* no engine connection yet */
		[SEV_APP_EOF] = ACT_IGNORE,
		[SEV_MID_EOF] = ACT_IGNORE,
		[SEV_MID_RESET] = ACT_END_RESET,
		SETUP_ENDS,
	},
	[SES_OPENING] = {
		[SEV_APP_EOF] = ACT_IGNORE,
		[SEV_APP_RESET] = ACT_ABORT | ACT_RESET_APP,
		[SEV_DEST] = ACT_ABORT | ACT_RESET_APP,
		LIMIT_ABORTS,
		[SEV_ENGINE_OK] = ACT_END_RESET,
		[SEV_ENGINE_RESET] = ACT_OUTAGE | ACT_END_RESET,
	},
	[SES_RENDEZVOUS] = {
		[SEV_APP_EOF] = ACT_IGNORE,
		[SEV_APP_RESET] = ACT_ABORT | ACT_RESET_APP,
		[SEV_MID_EOF] = ACT_PASS_FIN,
		[SEV_MID_RESET] = ACT_PASS_RST,
		[SEV_CONNECT_FAILED] = ACT_ABORT | ACT_RESET_APP,
		[SEV_CIRCLE] = ACT_ABORT | ACT_RESET_APP,
		[SEV_CLIENT] = ACT_ABORT | ACT_RESET_APP,
		[SEV_DEST] = ACT_ABORT | ACT_RESET_APP,
		[SEV_REFUSED] = ACT_END_RESET,
		LIMIT_ABORTS,
		[SEV_FALLBACK] = ACT_LEAVE,
		[SEV_ENGINE_OK] = ACT_END,	/* prewarming by the peer: no data follows */
		[SEV_ENGINE_RESET] = ACT_OUTAGE | ACT_END_RESET,
	},
	[SES_LEAVING] = {	/* no engine calls: its connection has fallen back or is released */
		[SEV_APP_EOF] = ACT_IGNORE,
		[SEV_MID_EOF] = ACT_IGNORE,	/* read once data flows on the CLC connection */
		[SEV_MID_RESET] = ACT_END_RESET,
		SETUP_ENDS,
		[SEV_ENGINE_OK] = ACT_END,	/* the Decline to a probe of the peer's daemon is sent */
	},
	[SES_SMCR] = {
		[SEV_APP_EOF] = ACT_SEND_DONE,
		[SEV_APP_RESET] = ACT_DRAIN,
		MIDDLE_BESIDE,
		[SEV_PEER_DONE] = ACT_FIN_APP,
		[SEV_BOTH_DONE] = ACT_SEND_CLOSED | ACT_CLOSE_APP,
		LIMIT_ABORTS,
		[SEV_ENGINE_OK] = ACT_END_RESET,	/* before both directions were done: not orderly */
		[SEV_ENGINE_RESET] = ACT_DRAIN,
	},
	[SES_MEASURE] = {
		[SEV_MID_EOF] = ACT_PASS_FIN,
		[SEV_MID_RESET] = ACT_ABORT | ACT_RESET_APP, /* the measurement uses both paths */
		[SEV_BOTH_DONE] = ACT_SEND_CLOSED | ACT_CLOSE_APP,
		LIMIT_ABORTS,
		ENGINE_ENDS,
	},
	[SES_CLOSING] = {
		MIDDLE_BESIDE,
		[SEV_TIMEOUT] = ACT_IGNORE,	/* the engine limits the wait */
		[SEV_OPERATOR] = ACT_ABORT,
		[SEV_STOP] = ACT_ABORT,
		[SEV_ENGINE_OK] = ACT_END,
		[SEV_ENGINE_RESET] = ACT_END_RESET,
	},
	[SES_DRAINING] = {
		[SEV_APP_EOF] = ACT_SEND_DONE,	/* FIN before the RST */
		[SEV_APP_RESET] = ACT_IGNORE,
		MIDDLE_BESIDE,
		[SEV_BOTH_DONE] = ACT_SEND_CLOSED | ACT_CLOSE_APP,
		LIMIT_ABORTS,
		ENGINE_ENDS,
		[SEV_PASSED_ON] = ACT_RESET | ACT_RESET_APP,
	},
	[SES_ABORTING] = {
		MIDDLE_BESIDE,
		[SEV_TIMEOUT] = ACT_ABORT,	/* discards what the ring still holds */
		[SEV_OPERATOR] = ACT_IGNORE,
		[SEV_STOP] = ACT_END_RESET,
		[SEV_FALLBACK] = ACT_END_RESET,	/* fell back before it was aborted */
		ENGINE_ENDS,
	},
	[SES_DELIVERING] = {	/* the engine has ended */
		[SEV_APP_RESET] = ACT_END_RESET,
		[SEV_MID_EOF] = ACT_IGNORE,
		[SEV_MID_RESET] = ACT_IGNORE,
		[SEV_PEER_DONE] = ACT_FIN_APP,
		[SEV_BOTH_DONE] = ACT_END,
		LIMIT_ENDS,
		[SEV_PASSED_ON] = ACT_END_RESET,
	},
	[SES_TCP_CONNECT] = {
		[SEV_MID_EOF] = ACT_IGNORE,	/* half close; read once the server is connected */
		[SEV_MID_RESET] = ACT_END_RESET,
		SETUP_ENDS,
	},
	[SES_TCP] = {
		TCP_WAYS,	/* SEV_REFUSED: a CLC message where data of a plain client was expected */
		[SEV_APP_RESET] = ACT_DRAIN,
		[SEV_MID_RESET] = ACT_DRAIN,
	},
	[SES_TCP_DRAINING] = {	/* resets are those of the leg that is written to */
		TCP_WAYS,
		[SEV_APP_RESET] = ACT_END_RESET,
		[SEV_MID_RESET] = ACT_END_RESET,
		[SEV_PASSED_ON] = ACT_END_RESET,
	},
};

unsigned
session_table_actions(enum session_state state, enum session_event event)
{
	assert(state < SES_STATE_CNT && event < SEV_EVENT_CNT);
	return table[state][event];
}

#define NAME(constant, text) text,

const char *
session_state_str(enum session_state state)
{
	static const char *const names[SES_STATE_CNT] = { SESSION_STATES(NAME) };

	return names[state];
}

const char *
session_event_str(enum session_event event)
{
	static const char *const names[SEV_EVENT_CNT] = { SESSION_EVENTS(NAME) };

	return names[event];
}
