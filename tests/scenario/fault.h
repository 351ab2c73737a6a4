/* The faults of a plan, at their times, and whether a connection may have suffered from them: not where a group had an
 * intact link left. */
#pragma once

#include "tests/sim/sim.h"
#include "tests/scenario/host.h"

struct faults;

struct fault_timer {
	struct timer timer;
	struct faults *all;
	struct plan_fault f;
	bool undo; /* it is on: the timer ends it */
	uint64_t held_nr;
	int64_t held_until_ns;
};

struct faults {
	struct world *w;
	const struct plan *plan;
	struct sim_fabric *fab;
	struct host *hosts;
	struct flow *flows;
	uint64_t messages; /* that arrived */
	struct fault_timer timer[PLAN_FAULTS_MAX];
};

void faults_start(
    struct faults *, struct world *, const struct plan *, struct sim_fabric *, struct host *, struct flow *);
void faults_stop(struct faults *);
/* struct sim_config.filter */
enum sim_fate faults_message(struct faults *, const struct sim_msg *);
/* Begins now. */
void fault_begin(struct faults *, const struct plan_fault *);
void fault_end(struct faults *, const struct plan_fault *);

/* This link breaks now. */
void fault_break(struct faults *, struct rnic_dev *, uint32_t qpn, enum sim_cut);
/* This message meets that fate: only what it means for the connections. */
void fault_message(struct faults *, const struct sim_msg *, enum sim_fate);

/* Every group with a link that ends at this QP (qpn 0: at any of the device) has another one that works. */
bool fault_is_survivable(const struct host *, unsigned cnt, const struct rnic_dev *, uint32_t qpn);
