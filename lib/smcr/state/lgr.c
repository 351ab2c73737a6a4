/* The state of a link group, and what every room asks of it; see lgr.h. */
#include "smcr/state/lgr.h"

#include <assert.h>

#include "smcr/state/log.h"

#define BIT(state) (1u << LGR_##state)

static const struct {
	const char *name;
	unsigned next;
} states[LGR_STATE_CNT] = {
	[LGR_FORMING] = { "forming", BIT(ACTIVE) | BIT(DEAD) },
	[LGR_ACTIVE] = { "active", BIT(DELETING) | BIT(DEAD) },
	[LGR_DELETING] = { "deleting", BIT(DEAD) },
	[LGR_DEAD] = { "dead", 0 },
};

const char *
lgr_state_str(enum lgr_state s)
{
	return states[s].name;
}

void
lgr_set_state(struct lgr *lgr, enum lgr_state next, const char *why)
{
	assert((states[lgr->state].next & (1u << next)) != 0);
	engine_log_state(lgr, NULL, "group", states[lgr->state].name, states[next].name, why);
	lgr->state = next;
}

struct link *
lgr_pick_link(struct lgr *lgr)
{
	struct link *best = NULL;

	LGR_EACH_LINK(l, lgr) {
		if (l->state != LINK_ACTIVE)
			continue;
		if (best == NULL || (best->retiring && !l->retiring) ||
		    (best->retiring == l->retiring && l->conn_cnt < best->conn_cnt))
			best = l;
	}
	return best;
}

bool
lgr_unused(const struct lgr *lgr)
{
	return lgr->conn_cnt == 0 && list_empty(&lgr->wait_rmb) && lgr->contact.conn == NULL;
}
