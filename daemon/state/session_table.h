/* The state table of a session: state x event -> actions. The third leg, the other gateway's app leg, is reached by the
 * engine's messages. Pure; session.c performs the actions. */
#pragma once

enum session_state {
	SES_CONNECT,      /* ingress: connecting to the peer */
	SES_LOOK,         /* egress: no SMC-R option; the first bytes decide whether it is a plain client */
	SES_RENDEZVOUS,   /* CLC exchange */
	SES_LEAVING,      /* the engine has returned the CLC connection: TCP, a retry or a refusal follows */
	SES_SMCR,         /* data on RDMA */
	SES_MEASURE,      /* a measurement by the peer: no app leg */
	SES_CLOSING,      /* both directions done: C is sent, the app leg is closed; waits for the engine */
	SES_DRAINING,     /* SMC-R, the app leg was reset: bytes before the reset go into the send ring */
	SES_ABORTING,     /* A is sent, or due after the ring; the app leg is reset; waits for the engine */
	SES_DELIVERING,   /* SMC-R ended by a reset: bytes before the reset go to the app leg */
	SES_TCP_CONNECT,  /* fallen back; egress: connecting to the server */
	SES_TCP,          /* fallen back: data on the CLC connection */
	SES_TCP_DRAINING, /* a leg was reset: bytes before the reset go to the other leg */
	SES_DEAD,         /* freed at the end of the turn */
	SES_STATE_CNT,
};

/* Events that wait together are handled in this order: legs, limits and orders, the engine. */
enum session_event {
	SEV_APP_EOF,   /* FIN of the app leg, all its bytes forwarded */
	SEV_APP_RESET, /* RST, or a write failed; where data flows, bytes before it may still be readable */
	SEV_MID_EOF,   /* FIN of the CLC connection; on TCP: all its bytes forwarded */
	SEV_MID_RESET,
	SEV_MID_LOST,       /* with data on SMC-R: packets of the CLC connection get no answer or a network error */
	SEV_PEER_DONE,      /* SMC-R: D (or C) received and all delivered */
	SEV_BOTH_DONE,      /* follows when both directions have ended */
	SEV_CONNECT_FAILED, /* no address of the peer (SES_CONNECT) or the server answers */
	SEV_CIRCLE,         /* too many services passed: they form a circle */
	SEV_REFUSED,        /* fallback is forbidden, or SMC-R cannot start, or starts where it may not */
	SEV_TIMEOUT,        /* idle or connect timeout */
	SEV_OPERATOR,       /* closed by an operator */
	SEV_STOP,           /* the daemon ends */
	SEV_FALLBACK,       /* SMCR_EV_FALLBACK */
	SEV_ENGINE_OK,      /* SMCR_EV_CLOSED after an orderly close */
	SEV_ENGINE_RESET,   /* SMCR_EV_CLOSED for any other reason */
	SEV_PASSED_ON,      /* all bytes before a reset were forwarded */
	SEV_EVENT_CNT,
};

enum {
	ACT_SEND_DONE = 1 << 0,   /* smcr_shutdown_wr: D, never C */
	ACT_SEND_CLOSED = 1 << 1, /* smcr_close: C */
	ACT_ABORT = 1 << 2,       /* smcr_abort: A, or the end of the rendezvous */
	ACT_PASS_FIN = 1 << 3,    /* smcr_tcp_event: starts the engine's grace period */
	ACT_PASS_RST = 1 << 4,
	ACT_FIN_APP = 1 << 5, /* shutdown(SHUT_WR) */
	ACT_FIN_MID = 1 << 6,
	ACT_CLOSE_APP = 1 << 7,  /* close(), by FIN if none was sent */
	ACT_RESET_APP = 1 << 8,  /* close() by RST */
	ACT_LEAVE = 1 << 9,      /* continue without the engine's connection */
	ACT_OUTAGE = 1 << 10,    /* the engine has aborted the rendezvous: maybe an outage */
	ACT_END = 1 << 11,       /* the session ends: FIN on the CLC connection */
	ACT_END_RESET = 1 << 12, /* the session ends: RST on both legs */
	ACT_IGNORE = 1 << 13,    /* expected, no action */
	ACT_CLOSE_MID = 1 << 14, /* the CLC connection has ended; the links stay up */
	ACT_RESET = 1 << 15,     /* smcr_reset: A after all committed data */
	ACT_DRAIN = 1 << 16,     /* the reset waits for the bytes before it */
};

/* 0 for an impossible event: a defect of smcrd. */
unsigned session_table_actions(enum session_state, enum session_event);
const char *session_state_str(enum session_state);
const char *session_event_str(enum session_event);
