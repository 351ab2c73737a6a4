/*
 * What all sessions of one worker share: services, memory, counters, the lists of a turn. Embedded in the worker;
 * session_pool.h has its life.
 */
#pragma once

#include "base/idtable.h"
#include "base/list.h"
#include "base/log.h"
#include "base/slab.h"
#include "base/tally.h"
#include "daemon/config/config.h"
#include "daemon/device/devices.h"
#include "daemon/loop/env.h"
#include "daemon/event/event_history.h"
#include "daemon/event/accept_pause.h"
#include "daemon/net/net.h"
#include "daemon/net/worker_port.h"
#include "daemon/leg/acks.h"
#include "daemon/state/bufpool.h"
#include "daemon/account/service_stats.h"

/* The owner of an engine connection: a session or a probe. First member of both. */
struct conn_owner {
	void (*on_event)(struct conn_owner *, unsigned events);
};

struct session_stats {
	uint64_t opened, closed, reset;
	uint64_t closed_operator; /* of reset: on the operator's word */
	uint64_t accept_pauses;   /* EMFILE */
	uint64_t tcp_bytes;       /* carried on fallen-back connections */
	/* SMC-R's TCP option, of services that want it */
	uint64_t option_agreed, option_missing, option_unknown;
	uint64_t option_stray_clc; /* a CLC message all the same */
};

/* Why sessions went to TCP, or were refused instead: struct smcr_diag's codes, each counted when it is not 0. */
struct session_fallbacks {
	struct tally local;
	struct tally peer;
};

#define SESSION_MEASURES_MAX 4 /* sessions in SES_MEASURE */

/* Which of the workers this is. */
struct worker_place {
	unsigned nr; /* from 0; what is to be said once is said by that */
	unsigned cnt;
	struct admissions *admissions; /* of all of them; it outlives them */
	struct targets_all *targets;   /* the same */
	struct circles *circles;       /* the same */
	struct worker_peer *all;       /* cnt of them, in the order of nr; outlive them, too */
	struct accept_pauses *pauses;  /* of accepting; outlives them, too */
	struct event_history *news;    /* what operators are told; outlives them. NULL in tests: only the log */
};

struct session_pool {
	struct env *env;
	struct worker_place place;
	const struct devices *devices;
	struct worker_ports ports;       /* of connections to other daemons */
	const struct tcp_option *option; /* not NULL but in tests */
	unsigned option_services;        /* that want it */
	struct config_keepalive keepalive;
	struct acks acks;
	uint32_t reset_grace_ms;
	struct bufpool bufs;
	struct slab session_slab;
	struct slab setup_slab;
	struct idtable sessions;       /* by session id */
	struct list_node services;     /* offered */
	struct list_node old_services; /* removed, with live sessions */
	bool draining;                 /* no service takes connections */
	int64_t short_until_ns;        /* sessions wait for a descriptor: until then nobody else comes in */
	struct list_node accepting;    /* listeners with connections waiting */
	struct list_node scheduled;    /* sessions to be pumped */
	struct list_node dead;         /* sessions to be freed at the end of the turn */
	bool turns_wait;               /* sessions in SES_LOOK wait for the end of a first contact */
	uint64_t contacts_over;        /* of these, the engine's count when that was last looked at */
	struct measuring *measuring;   /* SESSION_MEASURES_MAX of them; NULL while there was none yet */
	struct list_node probes;
	struct list_node dead_probes;
	struct session_stats stats;
	struct session_fallbacks fallbacks;
	struct log_limit lim_refused; /* lines about refused connections */
	struct log_limit lim_failed;  /* about connections that never carried data */
	struct log_limit lim_target;  /* about targets that fail, and work again */
	struct log_limit lim_middle;  /* about middles that are lost beside their links */
};

/* An operator is to hear of it. */
static inline void
session_pool_report(const struct session_pool *pool, const struct event *e)
{
	event_report(pool->place.news, pool->env->now_ns, pool->place.nr + 1, e);
}

/* -- what smcrctl shows -- */

struct session_info {
	uint64_t id; /* over all workers */
	const char *service;
	enum config_kind kind;
	enum session_mode mode;
	const char *state;       /* words */
	union net_addr app_peer; /* client of an ingress, server of an egress; as long as the session is there */
	struct sockaddr_storage middle_peer; /* the other daemon */
	struct smcr_diag diag;               /* when mode is TCP: why */
	struct smcr_conn *conn;              /* NULL when on TCP */
	uint64_t bytes_to_app, bytes_from_app;
	int64_t age_ns;
	int64_t idle_ns;
};

/* Which connections are to be closed; what is not asked for is 0, "" or of no family. */
struct close_filter {
	uint64_t id; /* as in struct session_info */
	const char *service;
	struct sockaddr_storage peer; /* the other daemon; port 0: any */
};

struct service_info {
	const struct config_service *cfg;
	struct targets *targets; /* what cfg->to stands for at present; both as long as the worker stands still */
	uint32_t connections;
	uint64_t accepted, refused_allow, refused_max, refused_per_peer, refused_connect, refused_fallback;
	uint64_t fallbacks, resets;
	uint64_t refused_disabled;
	bool disabled; /* by the operator */
	bool closed;   /* its listener is, as no target works */
	uint64_t bytes_from_app, bytes_to_app;
};
