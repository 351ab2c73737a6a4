/*
 * Services and their settings: fields, and what finds them. A service lives as long as it is configured or has sessions. Its
 * settings are a counted snapshot: a session keeps the one that it began with, whatever a reload brings.
 */
#pragma once

#include <string.h>

#include "daemon/net/listen_socket.h"
#include "daemon/account/admission.h"
#include "daemon/account/rmb_size_hint.h"
#include "daemon/account/outage.h"
#include "daemon/probe/probe.h"
#include "daemon/target/target_probe.h"
#include "daemon/state/pool_state.h"
#include "daemon/account/fallback_period.h"

/* The settings of a service at one time. */
struct settings {
	struct config_service cfg; /* a deep copy */
	struct service *svc;
	struct targets *targets; /* counted; what cfg.to stands for at present */
	unsigned refs;
	struct sockaddr_storage addrs[]; /* of cfg.to; cfg.to, cfg.allow_users and cfg.allow behind them */
};

/* What becomes of who connects. */
enum listener_mode {
	LISTENER_OPEN,
	LISTENER_SHUT,    /* the kernel refuses; the address stays bound */
	LISTENER_REFUSES, /* accepted, and reset: of a socket that cannot be shut and opened again */
	LISTENER_IDLE,    /* waits in the backlog, for another process that has the socket */
};

/* One more socket of the same address. */
struct listener_more {
	struct loop_io io;
	struct service *svc;
	struct listener_more *next;
};

struct listener {
	enum listener_mode mode;
	struct loop_io io; /* of sock; fd < 0: closed */
	struct listen_socket sock;
	struct listener_more *more; /* of the sockets behind it */
	struct list_node accepting; /* pool->accepting while connections wait */
	struct timer pause;         /* after EMFILE */
	struct accept_pause paused; /* as it is told */
	bool shared;                /* by all workers: what is accepted is dealt out to them */
	unsigned dealt;             /* how many were */
};

struct prewarm {
	struct probe *probe; /* NULL while pausing and when done */
	struct timer pause;
	uint32_t pause_ms;            /* the next one's */
	char failure[CHECK_TEXT_MAX]; /* the last verdict; "" */
};

struct service {
	struct list_node node; /* pool->services or old_services */
	struct session_pool *pool;
	struct settings *settings; /* for new sessions; NULL: not configured any longer */
	unsigned refs;             /* settings in use, and one while configured */
	struct listener listener;
	struct prewarm prewarm;
	struct target_probe retry;
	struct rmb_size_hint rmb_size_hint;
	bool disabled;               /* by the operator: takes no connections */
	struct admission *admission; /* shared with the other workers, and what is in it: */
	struct outage *outage;
	struct fallback_periods *fallback_periods;
	struct service_info ctr; /* its counters of connections; what else there is worker_info.c adds */
	struct service_stats stats;
};

/* The configured one of that name; NULL: there is none. */
static inline struct service *
service_find(const struct session_pool *pool, enum config_kind kind, const char *name)
{
	LIST_EACH(struct service, svc, &pool->services, node)
		if (svc->settings->cfg.kind == kind && strcmp(svc->settings->cfg.name, name) == 0)
			return svc;
	return NULL;
}

/* Of listener, prewarm and retry: starting them may not fail for lack of memory. */
#define SERVICE_TIMERS 3

/* Settings that are not in force yet, the caller's by settings_put; NULL when memory is out. */
struct settings *settings_new(struct service *, const struct config_service *);
void settings_put(struct settings *);
/* One reference less; without any the service is freed. */
void service_put(struct service *);
