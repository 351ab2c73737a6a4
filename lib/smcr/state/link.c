/* The state of a link: what may follow what; see link.h. */
#include "smcr/state/link.h"

#include <assert.h>

#include "smcr/state/engine.h"
#include "smcr/state/lgr.h"
#include "smcr/state/log.h"

#define BIT(state) (1u << LINK_##state)

static const struct {
	const char *name;
	unsigned next;
} states[LINK_STATE_CNT] = {
	[LINK_FREE] = { "free", BIT(CONNECTING) },
	[LINK_CONNECTING] = { "connecting", BIT(CONFIRMING) | BIT(LOST) | BIT(DOWN) | BIT(FREE) },
	[LINK_CONFIRMING] = { "confirming", BIT(ACTIVE) | BIT(LOST) | BIT(DOWN) },
	[LINK_ACTIVE] = { "active", BIT(LOST) | BIT(DOWN) },
	[LINK_LOST] = { "lost", BIT(DOWN) | BIT(FREE) },
	[LINK_DOWN] = { "down", BIT(GONE) | BIT(FREE) },
	[LINK_GONE] = { "gone", BIT(FREE) },
};

const char *
link_state_str(enum link_state s)
{
	return states[s].name;
}

static bool
is_there(enum link_state s)
{
	return s != LINK_FREE && s != LINK_GONE;
}

void
link_set_state(struct link *link, enum link_state next, const char *why)
{
	struct lgr *lgr = link->lgr;

	assert((states[link->state].next & (1u << next)) != 0);
	engine_log_state(lgr, link, "link", states[link->state].name, states[next].name, why);
	lgr->link_cnt = lgr->link_cnt + is_there(next) - is_there(link->state);
	lgr->active_cnt = lgr->active_cnt + (next == LINK_ACTIVE) - (link->state == LINK_ACTIVE);
	link->state = next;
}
