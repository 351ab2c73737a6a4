/*
 * A session: its fields, and what every file of a session may call, which calls none of them: its state, its place in the turn, the
 * cause of its end. daemon/session/session.h has its life.
 */
#pragma once

#include "daemon/net/net.h"
#include "daemon/leg/circle.h"
#include "daemon/leg/leg.h"
#include "daemon/state/session_table.h"
#include "daemon/leg/clc_stream.h"
#include "daemon/leg/peer_mode.h"
#include "daemon/state/service_state.h"

enum {
	SF_HEADER_OWED = 1 << 0, /* the PROXY header goes before the client's first byte */
	SF_APP_DONE = 1 << 1,    /* end of the app leg's data was passed on */
	SF_PEER_DONE = 1 << 2,   /* end of the other side's data was passed on */
	SF_MID_FIN = 1 << 3,     /* the FIN on the middle was passed on to the engine */
	SF_RETRIED = 1 << 4,     /* the one retry after an out-of-sync Decline was made */
	SF_COUNTED = 1 << 5,     /* by its source (admission.h): the address that connected */
	SF_UNSEEN = 1 << 6,      /* on TCP for want of the option, and the peer's first bytes have not come yet */
	SF_REASON_SENT =
	    1 << 7, /* the peer hears of the end, and why, on SMC-R: a reset of the middle would be there first */
	SF_UNCOUNTED = 1 << 8, /* egress: not counted as accepted yet, as it may be a probe of the peer's daemon */
	SF_PROBE = 1 << 9,     /* egress: it is one: a check, or a link group made ahead. No client is behind it */
	SF_MID_RST = 1 << 10,  /* after an end in order the middle is reset, which leaves no TIME_WAIT at either end */
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
	const struct peer_mode *rule; /* SES_LOOK */
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
	uint8_t cause;           /* why it ended (end_cause.h), for counts; 0 = none */
	bool counted;            /* mode is counted in the figures of the service */
	enum session_mode mode;  /* as counted there */
	union net_addr app_peer; /* family 0 until known */
	union net_addr mid_peer;
};

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
	s->settings->svc->stats.bytes[way] += len;
}

static inline enum config_kind
session_kind(const struct session *s)
{
	return s->settings->cfg.kind;
}

/* Notes an event, which session.c acts on by the table of session_table.c: when the step of the pump has returned, or else in the next round
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
