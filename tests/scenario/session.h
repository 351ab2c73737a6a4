/*
 * A session: one daemon's half of a flow. An application leg, a middle, and the engine's connection; the table of the
 * three TCP legs as the real daemon has it: EOF becomes D, D becomes a shutdown, D both ways becomes C, a reset
 * anywhere becomes a reset everywhere, behind the bytes that came before it. Owned by its host.
 */
#pragma once

#include "tests/scenario/host.h"
#include "tests/scenario/liar.h"

enum session_mode {
	SESSION_CONNECT, /* the middle is being connected, or was accepted and the process has not looked yet */
	SESSION_OPENING, /* ingress: over a link, not answered */
	SESSION_SETUP,
	SESSION_SMCR,
	SESSION_TCP,  /* fallen back */
	SESSION_DEAD, /* freed at the end of the turn */
};

struct session {
	struct host *h;
	struct flow *f;
	enum smcr_role role;
	struct list_node node; /* host's sessions */
	struct list_node dirty;
	enum session_mode mode;
	struct smcr_conn *conn;
	int64_t opened_ns;          /* conn */
	int64_t heard_ns;           /* bytes of the peer's last CLC message */
	struct smcr_counters then;  /* the engine's, at that time */
	size_t clc_cnt;             /* bytes of CLC that the engine was given */
	struct stcp_end *app, *mid; /* NULL when closed or not connected yet */
	bool app_wanted;            /* egress: the server leg was asked for */
	bool admit;                 /* egress: the engine waits for smcr_admit */
	bool closing;               /* smcr_close was called */
	bool aborted;               /* smcr_abort was called */
	bool delivers;              /* the engine's connection has ended: what it has goes before the reset */
	bool fin_told, rst_told;    /* of the middle, to the engine */
	enum liar_end lie_end;      /* of a liar: what comes behind what is in `out` */
	bool hushed;                /* of a liar: nothing more is said on the middle */
	uint8_t out[4096];          /* CLC bytes for the middle; an honest host uses CLC_OUT_MAX of them */
	size_t out_len;
	uint8_t left[SMCR_LEFTOVER_MAX]; /* of the engine, for the application */
	size_t left_len;
	uint8_t held[2048]; /* SESSION_OPENING: sent, and sent again when the peer does not take the connection */
	size_t held_len;
	bool held_urgent; /* its last byte */
};

/* Client side of a flow: the application's leg is connected (NULL for prewarm), the middle starts. */
struct session *session_ingress(struct host *, struct flow *, struct stcp_end *app);
/* Server side: a middle came in. */
struct session *session_egress(struct host *, struct flow *, struct stcp_end *mid);
/* Server side: the client has opened a connection over a link. NULL: refused. */
struct session *session_opened(struct host *, struct smcr_conn *);
/* struct stcp_user.wake */
void session_wake(void *session);
/* Moves what can be moved. */
void session_io(struct session *);
/* News of the engine. */
void session_event(struct session *, unsigned events);
/* Both legs are closed or reset, whatever the connection is at. */
void session_cut(struct session *, bool reset);
/* Both legs are reset, the connection released; freed. */
void session_free(struct session *);
