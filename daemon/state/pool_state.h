/* State shared by all sessions of one worker. Embedded in the worker; session_pool.h initializes and runs it. */
#pragma once

#include <stddef.h>

#include "base/idtable.h"
#include "base/list.h"
#include "base/log.h"
#include "base/slab.h"
#include "daemon/config/config.h"
#include "daemon/device/devices.h"
#include "daemon/loop/env.h"
#include "daemon/event/event_history.h"
#include "daemon/event/accept_pause.h"
#include "daemon/net/net.h"
#include "daemon/net/worker_port.h"
#include "daemon/leg/acks.h"
#include "daemon/state/bufpool.h"
#include "daemon/account/handshake_rate.h"
#include "daemon/account/history.h"
#include "daemon/account/service_stats.h"
#include "daemon/probe/measure.h"

/* The owner of an engine connection: a session or a probe. First member of both. */
struct conn_owner {
	void (*on_event)(struct conn_owner *, unsigned events);
};

/* Counted by sessions; from `tls_not_spoken` on filled in for reports, by worker_stats(). */
struct worker_stats {
	uint64_t accept_pauses; /* EMFILE */
	uint64_t sessions_opened, sessions_closed, sessions_reset;
	uint64_t sessions_closed_operator;                      /* of sessions_reset: by the operator */
	uint64_t tcp_bytes;                                     /* carried on fallen-back connections */
	uint64_t option_agreed, option_missing, option_unknown; /* SMC-R's TCP option, of services that use it */
	uint64_t option_stray_clc;                              /* CLC messages without the option */
	uint64_t tls_resumed;                                   /* of the handshakes: by an association */
	uint64_t tls_handshakes, tls_failed, tls_clear;         /* of services with TLS; clear: accepted without it */
	uint64_t tls_limited;                                   /* of tls_failed: too many of one source */
	uint64_t tls_ended;                                     /* connections of peers no longer permitted */
	uint64_t tls_reread, tls_refused;                       /* changed files of tls, in the first worker */
	uint64_t tls_not_spoken, tls_certificates_refused, tls_names_refused; /* tls_counts() */
	uint64_t tls_psks_refused, tls_no_suite, tls_streams_broken;          /* likewise */
	uint64_t turns;                                                       /* of the loop */
	uint64_t spins, spin_hits, spin_wanted, spun_us;                      /* loop/spin.h */
	bool draining;
	int64_t uptime_ns;
};

#define SESSION_MEASURES_MAX 4

/* A session in SES_MEASURE. */
struct measuring {
	const struct session *by; /* NULL: free */
	struct measure smcr, tcp;
};

/* This worker's number, and what all workers share. The objects outlive the workers. */
struct worker_place {
	unsigned nr; /* from 0; worker 0 logs what is logged once per process */
	unsigned cnt;
	struct admissions *admissions;
	struct targets_all *targets;
	struct circles *circles;
	struct worker_peer *all; /* cnt of them, indexed by nr */
	struct accept_pauses *pauses;
	struct event_history *news; /* operator events; NULL in tests: log only */
};

struct session_pool {
	struct env *env;
	struct worker_place place;
	const struct config *cfg;         /* in force */
	struct handshake_rate handshakes; /* of clients of egresses with TLS */
	struct tls_ctx *tls_ctx;          /* likewise; counted, NULL: no service has TLS */
	const struct devices *devices;
	struct worker_ports ports;       /* of connections to other daemons */
	const struct tcp_option *option; /* not NULL but in tests */
	unsigned option_services;        /* number of services that use it */
	struct acks acks;
	struct bufpool bufs;
	struct slab session_slab, setup_slab;
	struct idtable sessions;       /* by session id */
	struct list_node services;     /* configured */
	struct list_node old_services; /* removed, with live sessions */
	bool draining;                 /* no service accepts connections */
	int64_t short_until_ns;        /* sessions wait for a descriptor: no accept until then */
	struct list_node accepting;    /* listeners with connections waiting */
	struct list_node arrivals;     /* accepted, without their PROXY header (service/arrival.h) */
	unsigned arrivals_cnt;
	struct list_node scheduled; /* sessions to be pumped */
	struct list_node dead;      /* sessions to be freed at the end of the turn */
	bool turns_wait;            /* sessions in SES_LOOK wait for the end of a first contact */
	uint64_t contacts_over;     /* smcr_contacts_over() at the last check */
	struct measuring measuring[SESSION_MEASURES_MAX];
	struct list_node probes, dead_probes;
	struct prober *prober; /* of the first worker, while a service is probed */
	struct worker_stats stats;
	struct service_reasons fallbacks; /* of all services; reset: not counted */
	struct history_pool history;
	struct log_limit lim_refused; /* refused connections */
	struct log_limit lim_failed;  /* connections that never carried data */
	struct log_limit lim_target;  /* targets that fail or recover */
	struct log_limit lim_middle;  /* CLC connections lost while their links work */
};

static inline void
session_pool_report(const struct session_pool *pool, const struct event *e)
{
	event_report(pool->place.news, pool->env->now_ns, pool->place.nr + 1, e);
}

/* -- for smcrctl -- */

struct session_info {
	uint64_t id; /* unique over all workers */
	const char *service;
	enum config_kind kind;
	enum session_mode mode;
	const char *state;
	union net_addr app_peer; /* client of an ingress, server of an egress; valid while the session exists */
	union net_addr to;       /* ingress: where its program wanted to go; family 0: to a target of the service */
	union net_addr client;   /* egress: of the program, as the peer has forwarded it */
	struct sockaddr_storage middle_peer;     /* the other daemon */
	struct smcr_diag diag;                   /* mode TCP: the reason */
	struct smcr_conn *conn;                  /* NULL on TCP */
	const char *protection, *suite, *proven; /* of the peer by TLS: see report_fields.c */
	uint64_t bytes_to_app, bytes_from_app;
	int64_t age_ns, idle_ns;
};

/* Selects connections to close; a member that is 0, "" or AF_UNSPEC matches all. */
struct close_filter {
	uint64_t id; /* as in struct session_info */
	const char *service;
	struct sockaddr_storage peer; /* the other daemon; port 0: any */
};

struct service_info {
	const struct config_service *cfg;
	struct targets *targets; /* of cfg->to; these three are valid while the worker is stopped */
	const struct service_stats *stats;
	const struct history *history; /* NULL: none */
	uint32_t connections;
	bool disabled; /* by the operator */
	bool closed;   /* listener closed: no target works */
	uint64_t accepted, refused_allow, refused_max, refused_per_peer, refused_connect, refused_fallback;
	uint64_t fallbacks, resets, refused_disabled, bytes_from_app, bytes_to_app;
	uint64_t clients_unused;     /* ingress: the peer did not pass the forwarded client on */
	uint64_t client_bind_failed; /* egress: no port was free for the client's address */
	uint64_t refused_header;     /* ingress: no PROXY header of a source that has to send one */
	/* Of connections with a destination (doc/transparent.md). */
	uint64_t not_captured, no_via;                  /* ingress: refused, as they had none, or no way to it */
	uint64_t dest_own;                              /* of, or to, the daemon itself */
	uint64_t dest_taken, dest_refused, dest_unused; /* by the peer; unused: it does not take destinations */
	uint64_t resets_client;                         /* of resets: by the client, after data both ways */
};

/* The bytes of its counts, which are uint64_t from accepted to the end. */
#define SERVICE_INFO_COUNTS (sizeof(struct service_info) - offsetof(struct service_info, accepted))
