/*
 * Services: what the configuration names, with a listener and counters. A
 * service lives as long as it is configured or has sessions. Its settings are a
 * counted snapshot: a session keeps the one that it began with, whatever a
 * reload brings.
 *
 *	settings.c	settings, counted; frees a service with its last ones
 *	service.c	services; makes the link group of an ingress before its first client comes:
 *			a probe, repeated with growing pauses while the peer is not there
 *	retry.c		targets that failed, looked at again in the background
 *	listener.c	accepts in batches, checks who comes and how many are there, starts sessions; pauses when
 *			descriptors or memory run out
 */
#pragma once

#include <string.h>

#include "daemon/lsock.h"
#include "daemon/session/admission.h"
#include "daemon/session/elem_need.h"
#include "daemon/session/figures.h"
#include "daemon/session/outage.h"
#include "daemon/session/probe.h"
#include "daemon/session/retry.h"
#include "daemon/session/session_pool.h"
#include "daemon/session/spells.h"

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
	struct lsock sock;
	struct listener_more *more; /* of the sockets behind it */
	struct list_node accepting; /* pool->accepting while connections wait */
	struct timer pause;         /* after EMFILE */
	struct pause paused;        /* as it is told */
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
	struct retry retry;
	struct elem_need elem_need;
	bool disabled;               /* by the operator: takes no connections */
	struct admission *admission; /* shared with the other workers, and what is in it: */
	struct outage *outage;
	struct spells *spells;
	struct service_info ctr; /* its counters of connections; what else there is worker_info.c adds */
	struct service_figures figures;
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

/* A configured service without a listener yet; NULL when memory is out. */
struct service *service_new(struct session_pool *, const struct config_service *);
/* No longer configured: stopped, and freed once the last session is gone. */
void service_drop(struct service *);
/* Makes a link group ahead if the settings want it, anew when they have changed. */
void service_prewarm(struct service *);
/* Those that pause before another try to do so, with this peer (port 0: any) or, NULL, with any, try now. How many. */
unsigned services_retry(struct session_pool *, const struct sockaddr_storage *peer);
/* Their failed targets, too, are looked at now (retry_hurry). How many. */
unsigned services_hurry(struct session_pool *, const struct sockaddr_storage *peer);
/* Closes the listening socket and ends the prewarming; harmless when there is none. */
void service_stop(struct service *);
/* disabled, or pool->draining, is another: listener and prewarming follow. 0, or -errno: it cannot listen, which is logged. */
int service_follow(struct service *);
/* Those whose listener depends on their targets do so. */
void services_follow(struct session_pool *);
/* No target works, and it does not listen therefore (when_down). */
bool service_is_closed(const struct service *);

/* settings.c */
/* Settings that are not in force yet, the caller's by settings_put; NULL when memory is out. */
struct settings *settings_new(struct service *, const struct config_service *);
void settings_put(struct settings *);
/* One reference less; without any the service is freed. */
void service_put(struct service *);

/* listener.c */
void listener_init(struct listener *);
/* Takes a listening socket over and accepts from now on, if the service is not disabled: 0, or -errno and the socket is still the
 * caller's. */
int listener_start(struct service *, const struct lsock *);
/* The mode that service and pool want. What waits in the backlog of a listener that was open is taken first. 0 or -errno. */
int listener_follow(struct service *);
/* Puts changed keepalive settings in force. */
void listener_tune(struct service *);
/* Accepts no more. Returns the socket, which is the caller's again; fd -1 when there was none. */
struct lsock listener_stop(struct service *);
