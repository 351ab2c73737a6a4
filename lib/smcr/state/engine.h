/* The engine's own state: groups, connections and devices of one worker, and the pending marks. Used by all rooms. */
#pragma once

#include "base/idtable.h"
#include "base/list.h"
#include "base/rng.h"
#include "base/slab.h"
#include "base/timerq.h"
#include "smcr/smcr.h"

#define SMCR_LOG_MAX 64
#define MS 1000000LL

struct smcr {
	struct smcr_config cfg;
	struct rng *rng;
	int64_t now_ns;
	int64_t stalled_ns; /* time excluded from now_ns (smcr_stood_still) */
	struct timerq timers;
	uint8_t peer_id[8];                   /* our peer ID: 2 random bytes and a MAC (A.2.1) */
	uint8_t mac[6];                       /* random, for devices without one */
	struct list_node devices;             /* all rnic_dev not yet freed */
	struct rnic_dev *devs[SMCR_DEVS_MAX]; /* those that links may use */
	unsigned dev_cnt;
	bool devs_changed; /* for smcr_take_device_changes */
	struct smcr_subnet nets[SMCR_NETWORKS_MAX];
	unsigned net_cnt;
	struct idtable conns; /* by alert token */
	struct slab conn_slab;
	struct slab rdv_slab; /* separate, so that memory is freed after a burst of rendezvous */
	struct list_node lgrs;
	struct list_node dead_lgrs; /* freed at the end of the turn */
	uint32_t lgrs_made;
	struct list_node peers;  /* first contact in progress, failed or held off */
	struct list_node events; /* connections with SMCR_EV_ */
	struct list_node dead_conns;
	struct list_node busy_links;    /* with something to post */
	struct list_node waiting_links; /* with messages that wait for those of other links */
	struct list_node marked_lgrs, waiting_lgrs, marked_conns, marked_peers; /* marks.h */
	bool links_failed;                                                      /* some link has `failed` */
	bool links_to_free;
	bool unblocked;                   /* smcr_poll is to flush */
	uint64_t rmb_bytes, sndbuf_bytes; /* of all RMBs and send rings */
	uint64_t contacts_over;
	struct smcr_counters ctr;
	struct smcr_histograms hist;
	struct smcr_log log[SMCR_LOG_MAX];
	unsigned log_first, log_cnt;
	uint64_t log_lost;
	struct timer log_pause; /* armed: no other report of lost lines, as a peer can cause one a turn */
	bool log_states;        /* smcr_log_states */
	bool draining;
	bool (*may_dial)(void *ctx, const struct rnic_gid *to, const struct smcr_identity *middle);
	void *may_dial_ctx;
	void (*hold_proof)(void *proof, bool on);
	void (*trace)(void *ctx, const struct smcr_trace *);
	void *trace_ctx;
};

/* Announced to other smcrd. Only TEST LINK finds that the peer of a connection without a CLC connection is gone. */
static inline uint8_t
engine_features(const struct smcr *eng)
{
	return eng->cfg.keepalive_ms != 0 ? eng->cfg.features : eng->cfg.features & (uint8_t)~CLC_FEATURE_OPEN;
}

static inline void
engine_arm(struct smcr *eng, struct timer *t, uint32_t ms)
{
	timer_arm(&eng->timers, t, eng->now_ns + ms * MS);
}
