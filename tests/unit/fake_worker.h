/* A worker and an engine of fixed data, for tests of what is reported about them. Implements those functions of
 * daemon/worker/worker.h and smcr/smcr.h that only look. */
#pragma once

#include "daemon/worker/worker.h"

/* What the test may change and look at; fake_worker_new begins anew, so one worker at a time. */
struct fake_worker {
	uint32_t sessions;    /* that there are; more than five are one alike the other */
	unsigned looked_at;   /* sessions */
	unsigned allow_cnt;   /* entries of the allow list of "web", all ::/0; at most 1024 */
	int check_rc;         /* of worker_check */
	unsigned checks;      /* that run */
	uint16_t check_port;  /* of the oldest check */
	uint64_t check_bulk;  /* of the last one */
	char tried_again[64]; /* the last peer whose hold-off was ended */
	uint32_t rebalanced;  /* smcr_rebalance */
	/* smcr_link_delete: group << 8 | number. Group 1 has one link, group 2 two; there are no others. */
	uint32_t deleted;
	unsigned closed; /* worker_close_next */
	bool disabled;   /* the service "web" */
	int disable_rc;  /* of worker_set_disabled */
	int retried;     /* worker_retry: the peer's port; -1 = all peers. Nothing has failed at FAKE_WELL_PORT */
};
extern struct fake_worker fake_worker;

#define FAKE_WELL_PORT 9

/* Two services, five connections, two groups, three links, three RMBs, two devices. */
struct worker *fake_worker_new(void);
/* Nothing at all but one service. */
struct worker *fake_worker_new_empty(void);
/* Ends like the real one: checks still running are answered. */
void fake_worker_free(struct worker *);

/* Ends the oldest check. */
void fake_worker_end_check(struct worker *, const struct check_result *);
/* Gives a message to the trace: false when there is none. */
bool fake_worker_trace(struct worker *, const struct smcr_trace *);
