/* The session object and what all session files may call: state change, scheduling, cause of the end. It calls none of
 * them; daemon/session/session.h describes the life of a session. */
#pragma once

#include "daemon/net/net.h"
#include "daemon/leg/circle.h"
#include "daemon/leg/leg.h"
#include "daemon/state/session_table.h"
#include "daemon/leg/clc_stream.h"
#include "daemon/leg/peer_mode.h"
#include "daemon/state/service_state.h"

enum {
	SF_HEADER_OWED = 1 << 0, /* the PROXY header is due before the client's first byte */
	SF_APP_DONE = 1 << 1,    /* end of the app leg's data was forwarded */
	SF_PEER_DONE = 1 << 2,   /* end of the other side's data was forwarded */
	SF_BOTH_DONE = SF_APP_DONE | SF_PEER_DONE,
	SF_MID_FIN = 1 << 3,     /* the FIN on the CLC connection was reported to the engine */
	SF_RETRIED = 1 << 4,     /* the single retry after an out-of-sync Decline was made */
	SF_COUNTED = 1 << 5,     /* counted by its source address (admission.h) */
	SF_UNSEEN = 1 << 6,      /* on TCP for lack of the option; the peer's first bytes have not arrived */
	SF_REASON_SENT = 1 << 7, /* the reason goes by SMC-R: a reset of the CLC connection would overtake it */
	SF_UNCOUNTED = 1 << 8,   /* egress: not yet counted as accepted, as it may be a probe of the peer's daemon */
	SF_PROBE = 1 << 9,       /* egress: a check or prewarming by the peer's daemon, without a client */
	SF_MID_RST = 1 << 10,    /* an orderly end resets the CLC connection: no TIME_WAIT at either end */
	SF_RESETS = 1 << 11,     /* a reset waits for the bytes before it, for reset_grace without progress */
	SF_READ_OUT = 1 << 12,   /* on TCP: the leg that was reset has no more data */
	SF_PUMPED = 1 << 13,     /* session_pump runs it */
	SF_NOT_OPENED = 1 << 14, /* not taken over a link: the client comes again, by a CLC connection */
	SF_DEST_TAKEN = 1 << 16, /* the peer connects to way.to */
	SF_SECURED = 1 << 15,    /* SES_SECURE has ended: in TLS, or in clear as the service accepts */
};

/* Set once decided; a retry clears it. */
enum session_path {
	PATH_NONE,
	PATH_SMCR,
	PATH_TCP,
	PATH_REFUSED, /* fallback is forbidden */
};

enum { WAY_FROM_APP, WAY_TO_APP, WAY_CNT };

/* Exists until data flows, and on TCP while the peer's Decline may still arrive. */
struct setup {
	struct dial dial;          /* ingress: the CLC connection; egress: the app leg */
	struct endpoint_pick pick; /* the address that it connects to */
	uint64_t tried;            /* addresses tried (endpoints.h) */
	struct clc_in in;
	struct clc_out out;
	const struct peer_mode *rule; /* SES_LOOK */
	/* SES_LOOK: end of the last first contact with the peer's address; INT64_MAX: running; 0: never */
	int64_t met_ns;
	int64_t dial_until_ns;  /* deadline of this address */
	uint32_t dial_pause_ms; /* last pause of an attempt that waits */
};

/* Of an ingress that goes where the program wants to: the destination, and the gateway that leads there. */
struct way {
	union net_addr to;
	struct far_end *peer; /* counted */
};

struct session {
	struct conn_owner owner;
	struct leg app; /* fd < 0 until connected and after an early close */
	struct leg mid;
	struct list_node node; /* pool->scheduled or dead; in none otherwise */
	struct session_pool *pool;
	struct settings *settings; /* counted */
	struct smcr_conn *conn;    /* owned until released; on TCP only while the peer's Decline may still arrive */
	struct setup *setup;
	/* On TCP: bytes read and not yet written. SES_OPENING: bytes that the peer may not take; they go again then. */
	struct buf *held[WAY_CNT];
	struct timer timer; /* connecting, then idling */
	uint64_t bytes[WAY_CNT];
	int64_t born_ns;
	int64_t active_ns;       /* data moved last */
	uint64_t reset_at;       /* SF_RESETS: progress at the last check */
	uint32_t reset_pause_ms; /* until the next check */
	int reset_way;           /* direction of the bytes, WAY_ */
	const char *why;         /* static: the first cause of the end */
	const char *why_detail;  /* static, or NULL */
	int err;                 /* errno of why, or 0 */
	struct smcr_diag diag;   /* reason of a fallback */
	uint32_t id;
	enum session_state state;
	enum session_path path;
	unsigned events; /* SMCR_EV_ not yet handled; cleared after a step of the pump */
	unsigned flags;  /* SF_ */
	uint32_t raised; /* bits of enum session_event not yet acted on */
	struct circle_leg circle;
	struct tls_proof *proof; /* of the peer's name; NULL: none. Counted */
	struct way *way;         /* NULL: the targets of the service. Owned */
	union net_addr *client;  /* egress: of the program, as forwarded; NULL: none. Owned */
	uint32_t origin;         /* of the accepted leg (circle.h) */
	uint8_t hops;            /* gateway services that the connection has passed through (circle.h) */
	uint8_t cause;           /* of the end (end_cause.h), for counters; 0 = none */
	bool counted;            /* mode is counted in service_stats */
	enum session_mode mode;  /* as counted */
	union net_addr app_peer; /* family 0 until known */
	union net_addr mid_peer;
};

/* The id in logs and reports, unique over all workers. */
static inline unsigned long long
session_number(const struct session *s)
{
	return (unsigned long long)s->id * s->pool->place.cnt + s->pool->place.nr;
}

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

/* An egress's set-up over a link. */
static inline bool
session_opens(const struct session *s)
{
	return s->state == SES_RENDEZVOUS && s->mid.io.fd < 0;
}

/* An egress's that has failed so: the connection by which the client comes again is counted instead. */
static inline bool
session_comes_again(const struct session *s)
{
	return session_kind(s) == CONFIG_EGRESS && (s->flags & SF_NOT_OPENED) != 0;
}

/* Of the far end that the session has to do with. */
static inline struct outage *
session_outage(const struct session *s)
{
	return s->way != NULL ? &s->way->peer->outage : s->settings->svc->outage;
}

/* Records an event, which session.c handles by session_table.c after the current step of the pump, or else in the next
 * round, which is scheduled. Events that wait together are handled in the order of enum session_event, each once. */
void session_raise(struct session *, enum session_event);
void session_set_state(struct session *, enum session_state);
enum session_mode session_mode(const struct session *);
void session_idles(struct session *);
/* Puts the session on the list of this turn, or of the next one while it is pumped. */
void session_schedule(struct session *);
/* The session has a client: counts it as accepted, once. */
void session_is_client(struct session *);
/* session_raise, after recording the cause of the end, unless one is recorded. why: static; err: errno, or 0. */
void session_fail(struct session *, enum session_event, const char *why, int err);
