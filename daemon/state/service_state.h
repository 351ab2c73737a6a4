/* Services and their settings: structs and lookup. A service exists while it is configured or has sessions. Its
 * settings are a counted snapshot: a session keeps the snapshot that it started with across reloads. */
#pragma once

#include <string.h>

#include "daemon/net/listen_socket.h"
#include "daemon/account/admission.h"
#include "daemon/probe/probe.h"
#include "daemon/target/target_probe.h"
#include "daemon/state/pool_state.h"

struct settings {
	struct config_service cfg; /* a deep copy */
	struct service *svc;
	struct targets *targets; /* of cfg.to; counted */
	unsigned refs;
	uint32_t ticket;                 /* admission_ticket() */
	struct sockaddr_storage addrs[]; /* of cfg.to; behind them what else cfg points to */
};

/* What happens to a new connection. */
enum listener_mode {
	LISTENER_OPEN,
	LISTENER_SHUT,    /* the kernel refuses it; the address stays bound */
	LISTENER_REFUSES, /* accepted and reset: for a socket that cannot be shut and reopened */
	LISTENER_IDLE,    /* left in the backlog for another process that has the socket */
};

/* One of a listener's sockets, watched by the loop. */
struct listener_io {
	struct loop_io io;
	struct service *svc;
	struct listener_io *next;
};

struct listener {
	enum listener_mode mode;
	struct listen_socket sock;  /* fd < 0: closed */
	struct listener_io io;      /* of sock; behind it those of sock.next and on */
	struct list_node accepting; /* pool->accepting while connections wait */
	struct timer pause;         /* after EMFILE */
	struct accept_pause paused; /* as reported */
	bool shared;                /* by all workers: accepted connections are distributed to them */
	unsigned dealt;             /* connections distributed */
};

struct prewarm {
	struct probe *probe; /* NULL while pausing and when done */
	struct timer pause;
	uint32_t pause_ms;            /* of the next pause */
	char failure[CHECK_TEXT_MAX]; /* the last failure, or "" */
};

/* RMB element size needed by a service's connections, a hint for new ones (smcr_open.rmb_size_hint). */
struct rmb_size_hint {
	uint32_t bytes; /* a power of two; 0: unknown */
	uint32_t row;   /* consecutive connections that needed less */
};

struct service {
	struct list_node node; /* pool->services or old_services */
	struct session_pool *pool;
	struct settings *settings; /* for new sessions; NULL: no longer configured */
	unsigned refs;             /* settings in use, and one while configured */
	struct listener listener;
	struct prewarm prewarm;
	struct target_probe retry;
	struct rmb_size_hint rmb_size_hint;
	bool disabled;               /* by the operator: accepts no connections */
	struct admission *admission; /* shared by all workers; owns the next two */
	struct outage *outage;
	struct fallback_periods *fallback_periods;
	struct service_info ctr; /* connection counters; worker_info.c fills in the rest */
	struct service_stats stats;
	uint32_t newest_group;   /* link group of the last connection that came to SMC-R; it may have ended */
	struct history *history; /* while it is active; NULL */
	struct history_mark history_mark;
};

/* A configured service by name, or NULL. */
static inline struct service *
service_find(const struct session_pool *pool, enum config_kind kind, const char *name)
{
	LIST_EACH(struct service, svc, &pool->services, node)
		if (svc->settings->cfg.kind == kind && strcmp(svc->settings->cfg.name, name) == 0)
			return svc;
	return NULL;
}

/* Timers of listener, prewarm and retry, reserved so that arming them cannot fail. */
#define SERVICE_TIMERS 3

/* New settings, which the caller releases with settings_put; NULL: out of memory. */
struct settings *settings_new(struct service *, const struct config_service *);
void settings_put(struct settings *);
/* Drops a reference; the last one frees the service. */
void service_put(struct service *);
