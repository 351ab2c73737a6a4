/*
 * Services: what the configuration names, with a listener and counters. A
 * service lives as long as it is configured or has sessions. Its settings are a
 * counted snapshot: a session keeps the one that it began with, whatever a
 * reload brings.
 */
#ifndef SMCRD_DAEMON_SERVICE_H
#define SMCRD_DAEMON_SERVICE_H

#include "base/list.h"
#include "base/timerq.h"
#include "daemon/loop.h"
#include "daemon/session/outage.h"
#include "daemon/session/sources.h"
#include "daemon/worker/worker_priv.h"

struct prewarm;
struct service;

/* The settings of a service at one time. */
struct settings {
	struct config_service cfg; /* a deep copy */
	struct service *svc;
	unsigned refs;
};

struct listener {
	struct loop_io io;          /* fd < 0: closed */
	struct list_node accepting; /* worker->accepting while connections wait */
	struct timer pause;         /* after EMFILE */
};

struct service {
	struct list_node node; /* worker->services or old_services */
	struct worker *w;
	struct settings *settings; /* for new sessions */
	unsigned refs;             /* settings in use, and one while configured */
	struct listener listener;
	struct prewarm *prewarm; /* while the settings want one */
	struct outage outage;
	uint32_t connections;
	struct sources sources; /* of those */
	uint64_t accepted, refused_allow, refused_max, refused_per_peer, refused_connect, refused_fallback;
	uint64_t fallbacks, resets;
};

/* A configured service without a listener yet; NULL when memory is out. */
struct service *service_new(struct worker *, const struct config_service *);
/* No longer configured: freed once the last session is gone. */
void service_drop(struct service *);
/* New settings for sessions to come; takes them over. */
void service_change(struct service *, struct settings *);

/* Settings that are not in force yet, the caller's by settings_put; NULL when memory is out. */
struct settings *settings_new(struct service *, const struct config_service *);
struct settings *settings_get(struct service *);
void settings_put(struct settings *);

#endif
