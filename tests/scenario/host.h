/* A host: one daemon process with its engine and device, modelled on the real one. Its loop turns when something
 * happened on a socket, at the device, or when the engine's deadline comes, with the delays of a busy machine. */
#pragma once

#include "base/list.h"
#include "tests/sim/sim.h"
#include "smcr/smcr.h"
#include "tests/scenario/bounds.h"
#include "tests/scenario/flow.h"
#include "tests/scenario/stcp.h"

#define HOST_ADDR(nr) (1 + (nr)) /* last byte of its address, as others see it */
#define HOST_GROUPS 1024         /* ids of groups that are distinguished in a hostile run */

struct trace;
struct host;
struct liar;

/* A place for a device: the one that is plugged in, or will be. */
struct host_dev {
	struct host *h;
	struct rnic_dev *dev; /* NULL: none, or removed */
	unsigned made;        /* which one it is of those that the host has had */
	bool frozen;          /* by a fault */
	struct timer back;    /* a new one is plugged in */
};

struct host {
	struct world *w;
	const struct plan *plan;
	struct sim_fabric *fab;
	struct trace *trace;
	struct host *all;   /* every host of the run, by number */
	struct flow *flows; /* every flow, by number */
	unsigned flow_cnt;
	unsigned nr;
	struct liar *liar; /* hostile runs: the liar and what it overhears; NULL in others */
	bool lies;         /* this is the liar's host: it is not judged */
	bool ended;        /* its process, for good */
	uint64_t honest_groups[HOST_GROUPS / 64], liars_groups[HOST_GROUPS / 64]; /* bit per id (hostile.c) */
	struct bounds bounds;
	struct rng rng; /* the engine's */
	struct smcr *eng;
	struct host_dev dev[PLAN_DEVS_MAX];
	unsigned dev_cnt;  /* places */
	unsigned dev_made; /* devices so far, for their names */
	struct list_node sessions;
	struct list_node dirty;
	struct timer turn;
	int64_t stalled_until_ns;
	uint64_t turns, idle_turns;
	bool quiet; /* nothing was left to do at the last turn */
	struct stcp_listener ingress, egress, server;
	struct stcp_net app_net, mid_net;
};

void host_init(struct host *, struct world *, const struct plan *, struct sim_fabric *, struct trace *,
    struct host *all, unsigned nr);
/* Ends all sessions and frees engine and device. */
void host_fini(struct host *);
/* Something is to be done: a turn comes soon. */
void host_wake(struct host *);
/* Called after the fabric ran. */
void host_check_device(struct host *);
void host_stall(struct host *, int64_t until_ns);
/* Unplugs a device; a new one comes at back_ns (INT64_MAX: never). */
void host_unplug(struct host_dev *, int64_t back_ns);
/* The process dies with its devices, and does not return. */
void host_end(struct host *);
/* The process dies and a new one is started: another peer id, no connection, no group. */
void host_restart(struct host *);
/* The first device that is there; NULL: none. */
struct rnic_dev *host_first_dev(const struct host *);
/* The device with this GID; NULL: none. */
struct rnic_dev *host_dev_of(const struct host *, const struct rnic_gid *);
/* The same among so many hosts, and the host that has it; **of is unchanged without one. */
struct rnic_dev *hosts_dev_of(const struct host *hosts, unsigned cnt, const struct rnic_gid *, const struct host **of);
/* The network of its interfaces. */
struct smcr_subnet host_subnet(const struct host *);
/* A client connects to this host's ingress. */
struct stcp_end *host_client(struct host *, struct flow *, struct stcp_user);
void host_prewarm(struct host *, struct flow *);
