/*
 * The three TCP legs as a table: session state x event -> actions. A session is
 * one gateway's half: it sees its app leg and the middle; the third leg is the
 * other gateway's app leg, which the engine's messages reach. Pure; session.c
 * carries the actions out.
 */
#pragma once

enum session_state {
	SES_CONNECT,      /* ingress: the middle is being connected */
	SES_LOOK,         /* egress: no SMC-R option came; the first bytes say whether it is a plain client */
	SES_RENDEZVOUS,   /* CLC runs on the middle */
	SES_LEAVING,      /* the engine has given the middle back: TCP, a retry or a refusal comes next */
	SES_SMCR,         /* data on RDMA */
	SES_MEASURE,      /* a measurement of the peer's: no app leg */
	SES_CLOSING,      /* done both ways: C is sent, the app leg is closed, the engine's end is awaited */
	SES_DRAINING,     /* SMC-R, the app leg was reset: what came before goes into the send ring */
	SES_ABORTING,     /* A is sent, or due behind the ring; the app leg is reset, the engine's end is awaited */
	SES_DELIVERING,   /* SMC-R has ended by a reset: what came before goes to the app leg */
	SES_TCP_CONNECT,  /* fallen back; egress: the server leg is being connected */
	SES_TCP,          /* fallen back: data on the middle */
	SES_TCP_DRAINING, /* a leg was reset: what came before goes to the other one */
	SES_DEAD,         /* freed at the end of the turn */
	SES_STATE_CNT,
};

/* Those that wait together are acted on in this order: legs, limits and orders, the engine. */
enum session_event {
	SEV_APP_EOF,   /* FIN of the app leg, all its bytes passed on */
	SEV_APP_RESET, /* RST, or a write failed; bytes that came before may still be there, where data flows */
	SEV_MID_EOF,   /* FIN of the middle; on TCP: all its bytes passed on */
	SEV_MID_RESET,
	SEV_MID_LOST,       /* beside data on SMC-R: its packets get no answer, or an error of the network */
	SEV_PEER_DONE,      /* SMC-R: D (or C) received and all delivered */
	SEV_BOTH_DONE,      /* follows when both directions have ended */
	SEV_CONNECT_FAILED, /* no address of the peer (CONNECT) or the server answers */
	SEV_CIRCLE,         /* it has come through too many services: they lead to each other */
	SEV_REFUSED,        /* fallback is forbidden, or SMC-R cannot start at all, or starts where it may not */
	SEV_TIMEOUT,        /* idle, or the limit for connecting */
	SEV_OPERATOR,       /* an operator wants it closed */
	SEV_STOP,           /* the daemon ends */
	SEV_FALLBACK,       /* SMCR_EV_FALLBACK */
	SEV_ENGINE_OK,      /* SMCR_EV_CLOSED, in the orderly way */
	SEV_ENGINE_RESET,   /* SMCR_EV_CLOSED for any other reason */
	SEV_PASSED_ON,      /* all that came before a reset was */
	SEV_EVENT_CNT,
};

enum {
	ACT_SEND_DONE = 1 << 0,   /* smcr_shutdown_wr: D, never C */
	ACT_SEND_CLOSED = 1 << 1, /* smcr_close: C */
	ACT_ABORT = 1 << 2,       /* smcr_abort: A, or the end of the rendezvous */
	ACT_PASS_FIN = 1 << 3,    /* smcr_tcp_event: the engine's grace runs */
	ACT_PASS_RST = 1 << 4,
	ACT_FIN_APP = 1 << 5, /* shutdown(SHUT_WR) */
	ACT_FIN_MID = 1 << 6,
	ACT_CLOSE_APP = 1 << 7,  /* close(), by FIN if none was sent */
	ACT_RESET_APP = 1 << 8,  /* close() by RST */
	ACT_LEAVE = 1 << 9,      /* go on without the engine's connection */
	ACT_OUTAGE = 1 << 10,    /* the engine has broken off the rendezvous: maybe an outage */
	ACT_END = 1 << 11,       /* the session ends: FIN on the middle */
	ACT_END_RESET = 1 << 12, /* the session ends: RST on both legs */
	ACT_IGNORE = 1 << 13,    /* known, and nothing is to be done */
	ACT_CLOSE_MID = 1 << 14, /* it has ended; the links go on */
	ACT_RESET = 1 << 15,     /* smcr_reset: A behind all that was committed */
	ACT_DRAIN = 1 << 16,     /* the reset waits for the bytes that came before it */
};

/* 0 for what cannot happen: a defect of ours. */
unsigned session_table_actions(enum session_state, enum session_event);
const char *session_state_str(enum session_state);
const char *session_event_str(enum session_event);
