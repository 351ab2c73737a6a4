/*
 * A session: one proxied connection, this gateway's half of it. Two legs, the
 * app leg (client of an ingress, server of an egress) and the middle (the SMC-R
 * TCP connection to the other gateway), and an engine connection while SMC-R
 * carries the data.
 *
 *	session.c		birth, the pump, events by the table of legs.c, end, log line
 *	session_setup.c		the rendezvous, and what follows when a leg is connected
 *	session_measure.c	no client, but a measurement of the peer's
 *	session_pump.c		data between app leg and engine, or app leg and middle
 *	session_meet.c		SMC-R's TCP option: rendezvous or plain TCP
 *	session_path.c		TCP, a retry or a refusal; the end of the set-up
 *	session_dial.c		connecting
 *	session_state.c		state, place in the turn, cause of the end
 *
 * Calls go down this list. What a lower file has to report it raises
 * (session_raise), which acts on nothing: session.c acts on raised events when
 * the step of the pump that raised them has returned. So a step ends at the first
 * event that it raises, and a session cannot end under a caller's feet.
 * Callbacks of legs and of the engine only latch and schedule the session.
 *
 * Owned by the pool (id table). Ends in state SES_DEAD and is freed at the
 * end of the turn.
 */
#pragma once

#include "daemon/net.h"
#include "daemon/session/circle.h"
#include "daemon/session/leg.h"
#include "daemon/session/legs.h"
#include "daemon/session/measure.h"
#include "daemon/session/middle.h"
#include "daemon/session/peer_rule.h"
#include "daemon/session/service_state.h"

enum {
	SF_HEADER_OWED = 1 << 0, /* the PROXY header goes before the client's first byte */
	SF_APP_DONE = 1 << 1,    /* end of the app leg's data was passed on */
	SF_PEER_DONE = 1 << 2,   /* end of the other side's data was passed on */
	SF_MID_FIN = 1 << 3,     /* the FIN on the middle was passed on to the engine */
	SF_RETRIED = 1 << 4,     /* the one retry after an out-of-sync Decline was made */
	SF_COUNTED = 1 << 5,     /* by its source (admission.h): the address that connected */
	SF_UNSEEN = 1 << 6,      /* on TCP for want of the option, and the peer's first bytes have not come yet */
	SF_TOLD = 1 << 7, /* the peer hears of the end, and why, on SMC-R: a reset of the middle would be there first */
	SF_UNTOLD = 1 << 8,   /* egress: not counted as accepted yet, as it may be a probe of the peer's daemon */
	SF_PROBE = 1 << 9,    /* egress: it is one: a check, or a link group made ahead. No client is behind it */
	SF_MID_RST = 1 << 10, /* after an end in order the middle is reset, which leaves no TIME_WAIT at either end */
	SF_RESETS =
	    1 << 11, /* a reset waits for the bytes that came before it, for reset_grace while none of them moves */
	SF_READ_OUT = 1 << 12, /* on TCP: the leg that was reset has nothing more to be read */
	SF_PUMPED = 1 << 13,   /* session_pump has it */
};

/* How a session travels, once that is decided; a retry decides anew. */
enum session_path {
	PATH_NONE,
	PATH_SMCR,
	PATH_TCP,
	PATH_REFUSED, /* neither: fallback is forbidden */
};

enum {
	WAY_FROM_APP,
	WAY_TO_APP,
	WAY_CNT,
};

/* Only until data flows, and on TCP while the peer's Decline may still come. */
struct setup {
	struct dial dial;          /* ingress: the middle; egress: the app leg */
	struct endpoint_pick pick; /* the address that it connects to */
	uint64_t tried;            /* those that this connection has been sent to (endpoints.h) */
	struct clc_in in;
	struct clc_out out;
	const struct peer_rule *rule; /* SES_LOOK */
	/* SES_LOOK: until when there was a first contact with the peer's address; INT64_MAX: it goes on; 0: never */
	int64_t met_ns;
	int64_t dial_until_ns;  /* this address is given up then */
	uint32_t dial_pause_ms; /* while the attempt waits: the last one */
};

struct session {
	struct conn_owner owner;
	struct leg app; /* fd < 0 until connected and after it was closed early */
	struct leg mid;
	struct list_node node; /* pool->scheduled or dead; in none otherwise */
	struct session_pool *pool;
	struct settings *settings; /* counted */
	struct smcr_conn *conn;    /* ours until released; on TCP only while the peer's Decline may still come */
	struct setup *setup;
	struct buf *held[WAY_CNT]; /* on TCP: bytes read and not yet written */
	struct timer timer;        /* connecting, then idling */
	uint64_t bytes[WAY_CNT];
	int64_t born_ns;
	int64_t active_ns; /* data moved last */
	uint64_t reset_at; /* SF_RESETS: how far the bytes were at the last look, and ms until the next one */
	uint32_t reset_pause_ms;
	int reset_way;          /* which way they go */
	const char *why;        /* static: why it ended; the first cause counts */
	const char *why_detail; /* static, or NULL */
	int err;                /* errno that goes with why, or 0 */
	struct smcr_diag diag;  /* of the fallback, or why it will be one */
	uint32_t id;
	enum session_state state;
	enum session_path path;
	unsigned events; /* SMCR_EV_ not yet looked at; cleared behind a step of the pump */
	unsigned flags;  /* SF_ */
	uint32_t raised; /* bits of enum session_event not yet acted on */
	struct circle_leg circle;
	uint32_t origin;         /* of the accepted leg (circle.h) */
	uint8_t hops;            /* services of gateways that the connection has come through (circle.h) */
	uint8_t cause;           /* why it ended (cause.h), for counts; 0 = none */
	bool counted;            /* mode is counted in the figures of the service */
	enum session_mode mode;  /* as counted there */
	union net_addr app_peer; /* family 0 until known */
	union net_addr mid_peer;
};

/* A connection was accepted, from a client (ingress) or another gateway (egress), and admitted. Takes fd and the admission
 * over; a failure is logged and counted. */
void session_start(struct service *, int fd, const union net_addr *peer, bool counted);
/* One round for a scheduled session: bounded, asks for another one by session_schedule. */
void session_pump(struct session *);
/* The daemon ends: a word to the peer; at the second call the session ends. */
void session_stop(struct session *);
/* Frees a dead session. */
void session_free(struct session *);
void session_info(const struct session *, struct session_info *);
bool session_matches(const struct session *, const struct close_filter *);
/* By order of an operator: both app legs are reset in the next round of the pump, and the peer gets the reason if it is an smcrd.
 * False: its end has begun before. */
bool session_close(struct session *);

/* -- among the session files -- */

/* As people see it: no other worker has a session with this number. */
static inline unsigned long long
session_number(const struct session *s)
{
	return (unsigned long long)s->id * s->pool->place.cnt + s->pool->place.nr;
}

/* Bytes of the program's, one way. */
static inline void
session_carried(struct session *s, int way, size_t len)
{
	s->bytes[way] += len;
	s->settings->svc->figures.bytes[way] += len;
}

static inline enum config_kind
session_kind(const struct session *s)
{
	return s->settings->cfg.kind;
}

/* session_state.c */
/* Notes an event, which session.c acts on by the table of legs.c: when the step of the pump has returned, or else in the next round
 * of the pump, which is scheduled. Events that wait together are acted on in the order of enum session_event, each once. */
void session_raise(struct session *, enum session_event);
void session_set_state(struct session *, enum session_state);
/* How it travels now. */
enum session_mode session_mode(const struct session *);
/* From now on it may be idle for too long. */
void session_idles(struct session *);
/* Puts it on the list of this turn, or of the next one while it is pumped. */
void session_schedule(struct session *);
/* It is a client's: counted as accepted, once. */
void session_is_client(struct session *);
/* Remembers the first cause of the end. */
void session_blame(struct session *, const char *why, int err);

/* session_setup.c */
/* The accepted leg is watched: connects the middle (ingress), or starts the rendezvous (egress). */
void setup_begin(struct session *);
/* SES_CONNECT, SES_LOOK, SES_RENDEZVOUS, SES_LEAVING, SES_TCP_CONNECT: goes on. */
void setup_pump(struct session *);
/* The engine has ended the connection. In a rendezvous that the target has broken off: goes on to another one that works. Nothing is
 * lost, as no data has been carried, or read. False: there is no other one. */
bool setup_redial(struct session *);
/* The engine has broken off the rendezvous: reports an outage where that is a fault of the far end. */
void setup_note_outage(struct session *);

/* session_meet.c */
/* The middle is connected, or accepted: rendezvous, plain TCP, a look at the first bytes, or the end. */
void meet_peer(struct session *);
/* SES_LOOK: has somebody spoken? */
void meet_look(struct session *);
/* SF_UNSEEN: the peer's first bytes have come, and are data. False while there are none, or when an event is raised. */
bool meet_first_bytes_done(struct session *);

/* session_path.c */
/* Decides what becomes of a session that cannot use SMC-R, by its diag; counts and logs it. PATH_NONE: it is tried once more. */
void setup_choose_path(struct session *);
/* Goes on as decided, by TCP or with the end; not for PATH_NONE. */
void setup_take_path(struct session *);
/* SES_LEAVING: both of these, after a word of the engine to the peer. */
void setup_fall_back(struct session *);
/* Data may flow, but CLC bytes may still wait: writes them, frees the setup. False while the middle is not free. */
bool setup_finish(struct session *);
/* After a fallback: reads the peer's late Decline, if it is one. False while what comes may still become one, or when an event is
 * raised. */
bool setup_decline_done(struct session *);

/* session_dial.c */
/* The far end of an ingress or the server of an egress is being connected. */
void setup_dial(struct session *);
/* The middle of an ingress is closed, by RST or FIN, and connected once more. */
void setup_dial_again(struct session *, bool reset);
/* Tries the next address; why: the errno that ends the attempt that runs, 0 when there is none or the dial knows. */
void setup_dial_next(struct session *, int why);
/* The timer of an attempt to connect is over: it ends, or is made once more. */
void setup_dial_timeout(struct session *);
/* An attempt to connect is under way, or waits to be made once more. */
bool setup_dialing(const struct session *);

/* session_measure.c: SES_MEASURE. The end of one is to be told. */
void measure_begin(struct session *);
void measure_end(const struct session *);
void session_pump_measure(struct session *);

/* session_pump.c: data, state by state. What is left of CLC is written first, and the middle's FIN passed on to the engine, once. */
void session_pump_smcr(struct session *);
void session_pump_draining(struct session *);
void session_pump_aborting(struct session *);
void session_pump_delivering(struct session *);
void session_pump_tcp(struct session *);
void session_pump_tcp_draining(struct session *);
/* The middle alone, beside data on RDMA. */
void session_pump_middle(struct session *);
/* Grows with each byte that a reset has waited for. */
uint64_t session_reset_progress(const struct session *);
