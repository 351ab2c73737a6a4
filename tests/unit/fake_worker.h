/*
 * A worker and an engine of fixed data, for tests of what is reported about
 * them. Implements those functions of daemon/worker/worker.h and smcr/smcr.h that
 * only look.
 */
#ifndef SMCRD_TESTS_FAKE_WORKER_H
#define SMCRD_TESTS_FAKE_WORKER_H

#include "daemon/worker/worker.h"

/* Two services, five connections, two groups, three links, three RMBs, two devices. */
struct worker *fake_worker_new(void);
/* Nothing at all but one service. */
struct worker *fake_worker_new_empty(void);
/* Ends like the real one: checks still running are answered. */
void fake_worker_free(struct worker *);

/* From now on there are n connections, one alike the other. */
void fake_worker_set_sessions(struct worker *, uint32_t n);
/* How many sessions were looked at since the last call. */
unsigned fake_worker_looked_at(struct worker *);

/* What worker_check returns from now on. */
void fake_worker_set_check_rc(struct worker *, int rc);
unsigned fake_worker_checks(const struct worker *);
/* Port of the oldest check. */
uint16_t fake_worker_check_port(const struct worker *);
/* Ends the oldest check. */
void fake_worker_end_check(struct worker *, const struct check_result *);

/* What smcr_rebalance and smcr_link_delete (group << 8 | number) were last asked for. Group 1 has one link, group 2 two;
 * there are no others. */
uint32_t fake_worker_rebalanced(const struct worker *);
uint32_t fake_worker_deleted(const struct worker *);

/* Gives a message to whoever traces: false when nobody does. */
bool fake_worker_trace(struct worker *, const struct smcr_trace *);

#endif
