/* The state table of a session: state x event -> actions. The third leg, the other gateway's app leg, is reached by the
 * engine's messages. Pure; session.c performs the actions. */
#pragma once

/* clang-format off */
/* X(constant, text of logs and reports). Before SMCR, and TCP_CONNECT: set-up. */
#define SESSION_STATES(X) \
	X(CONNECT, "connecting to peer") /* ingress: connecting to the peer */ \
	X(LOOK, "no SMC-R option, waiting for the first byte") /* egress: no SMC-R option; the first bytes decide whether it is a plain client */ \
	X(SECURE, "TLS handshake") /* TLS with the peer, before any other byte */ \
	X(OPENING, "opening over a link") /* ingress: no CLC connection; the peer has not answered */ \
	X(RENDEZVOUS, "rendezvous") /* CLC exchange, or an egress whose peer has opened it over a link */ \
	X(LEAVING, "leaving SMC-R") /* the engine has returned the CLC connection: TCP, a retry or a refusal follows */ \
	X(SMCR, "SMC-R") /* data on RDMA */ \
	X(MEASURE, "measuring") /* a measurement by the peer: no app leg */ \
	X(CLOSING, "closing") /* both directions done: C is sent, the app leg is closed; waits for the engine */ \
	X(DRAINING, "resetting") /* SMC-R, the app leg was reset: bytes before the reset go into the send ring */ \
	X(ABORTING, "aborting") /* A is sent, or due after the ring; the app leg is reset; waits for the engine */ \
	X(DELIVERING, "delivering before a reset") /* SMC-R ended by a reset: bytes before the reset go to the app leg */ \
	X(TCP_CONNECT, "TCP, connecting to server") /* fallen back; egress: connecting to the server */ \
	X(TCP, "TCP") /* fallen back: data on the CLC connection */ \
	X(TCP_DRAINING, "TCP, resetting") /* a leg was reset: bytes before the reset go to the other leg */ \
	X(DEAD, "closed") /* freed at the end of the turn */
/* Events that wait together are handled in this order: legs, limits and orders, the engine. */
#define SESSION_EVENTS(X) \
	X(APP_EOF, "end of data on the app leg") /* FIN of the app leg, all its bytes forwarded */ \
	X(APP_RESET, "app leg reset") /* RST, or a write failed; where data flows, bytes before it may still be readable */ \
	X(MID_EOF, "FIN on the CLC connection") /* FIN of the CLC connection; on TCP: all its bytes forwarded */ \
	X(MID_RESET, "CLC connection reset") \
	X(MID_LOST, "CLC connection lost") /* with data on SMC-R: packets of the CLC connection get no answer or a network error */ \
	X(PEER_DONE, "peer done sending") /* SMC-R: D (or C) received and all delivered */ \
	X(BOTH_DONE, "both directions done") /* follows when both directions have ended */ \
	X(CONNECT_FAILED, "connect failed") /* no address of the peer (SES_CONNECT) or the server answers */ \
	X(CIRCLE, "circle") /* too many services passed: they form a circle */ \
	X(CLIENT, "client's address refused") /* the server must not see it, or would not */ \
	X(DEST, "destination refused") /* the egress does not connect to it; or would connect to another server */ \
	X(REFUSED, "refused") /* fallback is forbidden, or SMC-R cannot start, or starts where it may not */ \
	X(TIMEOUT, "timeout") /* idle or connect timeout */ \
	X(OPERATOR, "closed by the operator") /* closed by an operator */ \
	X(STOP, "shutdown") /* the daemon ends */ \
	X(FALLBACK, "fallback") /* SMCR_EV_FALLBACK */ \
	X(ENGINE_OK, "closed") /* SMCR_EV_CLOSED after an orderly close */ \
	X(ENGINE_RESET, "reset by the engine") /* SMCR_EV_CLOSED for any other reason */ \
	X(PASSED_ON, "data before a reset forwarded") /* all bytes before a reset were forwarded */
/* clang-format on */

#define SESSION_STATE(constant, text) SES_##constant,
#define SESSION_EVENT(constant, text) SEV_##constant,
enum session_state { SESSION_STATES(SESSION_STATE) SES_STATE_CNT };
enum session_event { SESSION_EVENTS(SESSION_EVENT) SEV_EVENT_CNT };

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
