/* See process/load_summary.h. */
#include "daemon/process/load_summary.h"

#include "smcr/smcr.h"

static void
count_one(struct worker *w, void *arg)
{
	struct load_summary *c = arg;
	struct smcr_group_info group;
	struct worker_stats ws;

	worker_stats(w, &ws);
	c->connections += ws.sessions_opened - ws.sessions_closed;
	c->setups += ws.setups;
	for (uint32_t pos = 0; smcr_group_next(worker_engine(w), &pos, &group);)
		c->groups++;
}

struct load_summary
load_summary_take(struct workers *ws)
{
	struct load_summary c = { 0 };

	workers_call_all(ws, count_one, &c);
	return c;
}
