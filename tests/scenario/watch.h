/* Looks at the engines while a run goes on, from outside: groups with more connections than they may have, and writers
 * that wait for ever though the peer has consumed everything. */
#pragma once

#include "tests/scenario/host.h"

struct watch {
	struct world *w;
	const struct plan *plan;
	const struct host *hosts;
	struct flow *flows;
	unsigned flow_cnt;
	struct timer timer;
};

void watch_start(struct watch *, struct world *, const struct plan *, const struct host *, struct flow *, unsigned cnt);
void watch_stop(struct watch *);
/* No group is fuller than it may be. */
void watch_groups(const struct host *);
