/*
 * A worker from the inside: what its parts (listener.c, session*.c, fallback.c,
 * probe.c) share. Not for main or the control socket: those use worker.h.
 */
#ifndef SMCRD_DAEMON_WORKER_PRIV_H
#define SMCRD_DAEMON_WORKER_PRIV_H

#include "base/idtable.h"
#include "base/list.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/slab.h"
#include "base/timerq.h"
#include "daemon/session/bufpool.h"
#include "daemon/device/subnet.h"
#include "daemon/worker/worker.h"

#define NS_PER_MS 1000000LL

struct devices;
struct netwatch;

/* Who holds an engine connection: sessions and probes. First member of both. */
struct conn_owner {
	void (*on_event)(struct conn_owner *, unsigned events);
};

struct drain {
	void (*done)(void *arg); /* NULL: not draining, or it was called */
	void *arg;
	struct timer timer;
};

struct worker {
	struct loop *loop;
	struct smcr *eng;
	struct rng rng;
	struct devices *devices;
	struct netwatch *netwatch; /* NULL: interfaces cannot be watched here */
	struct timerq timers;
	int64_t now_ns;
	struct config_keepalive keepalive;
	struct subnets subnets;
	const struct config_net *mpa_peers; /* of the configuration */
	unsigned mpa_peers_cnt;
	const struct config_net *mpa_clients; /* of the configuration */
	unsigned mpa_clients_cnt;
	struct bufpool bufs;
	struct slab session_slab;
	struct slab setup_slab;
	struct idtable sessions;       /* by session id */
	struct list_node services;     /* offered */
	struct list_node old_services; /* removed, with live sessions */
	struct list_node accepting;    /* listeners with connections waiting */
	struct list_node dirty;        /* sessions to be pumped */
	struct list_node dead;         /* sessions to be freed at the end of the turn */
	struct list_node probes;
	struct list_node dead_probes;
	struct worker_stats stats;
	struct worker_fallbacks fallbacks;
	struct log_limit lim_refused;                   /* lines about refused connections */
	struct log_limit lim_failed;                    /* about connections that never carried data */
	struct log_limit lim_outage;                    /* about services whose far end does not serve */
	struct log_limit lim_outage_over;               /* ... does again */
	struct log_limit lim_stranger;                  /* about connections of what is no SMC-R peer */
	struct log_limit lim_engine[SMCR_LOG_TYPE_CNT]; /* each on its own: a bad peer hides no link that goes down */
	struct drain drain;
};

static inline void
worker_arm(struct worker *w, struct timer *t, uint32_t ms)
{
	timer_arm(&w->timers, t, w->now_ns + ms * NS_PER_MS);
}

#endif
