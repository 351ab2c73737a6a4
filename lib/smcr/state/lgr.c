/* States of a link group, its links and LLC exchanges, and their transitions; queries of all rooms. */
#include "smcr/state/lgr.h"

#include <assert.h>
#include <string.h>

#include "base/minmax.h"
#include "smcr/state/engine.h"
#include "smcr/state/log.h"

#define LGR(state) (1u << LGR_##state)
#define LINK(state) (1u << LINK_##state)
#define LLC(step) (1u << LLC_##step)

const struct state_row lgr_states[LGR_STATE_CNT] = {
	[LGR_FORMING] = { "forming", LGR(ACTIVE) | LGR(DEAD) },
	[LGR_ACTIVE] = { "active", LGR(DELETING) | LGR(DEAD) },
	[LGR_DELETING] = { "deleting", LGR(DEAD) },
	[LGR_DEAD] = { "dead", 0 },
};

void
lgr_set_state(struct lgr *lgr, enum lgr_state next, const char *why)
{
	assert((lgr_states[lgr->state].next & (1u << next)) != 0);
	engine_log_state(lgr, NULL, "group", lgr_states[lgr->state].name, lgr_states[next].name, why);
	lgr->eng->contacts_over += lgr->state == LGR_FORMING;
	lgr->state = next;
}

/* -- links -- */

const struct state_row link_states[LINK_STATE_CNT] = {
	[LINK_FREE] = { "free", LINK(CONNECTING) },
	[LINK_CONNECTING] = { "connecting", LINK(CONFIRMING) | LINK(LOST) | LINK(DOWN) | LINK(FREE) },
	[LINK_CONFIRMING] = { "confirming", LINK(ACTIVE) | LINK(LOST) | LINK(DOWN) },
	[LINK_ACTIVE] = { "active", LINK(LOST) | LINK(DOWN) },
	[LINK_LOST] = { "lost", LINK(DOWN) | LINK(FREE) },
	[LINK_DOWN] = { "down", LINK(GONE) | LINK(FREE) },
	[LINK_GONE] = { "gone", LINK(FREE) },
};

static bool
is_there(enum link_state s)
{
	return s != LINK_FREE && s != LINK_GONE;
}

void
link_set_state(struct link *link, enum link_state next, const char *why)
{
	struct lgr *lgr = link->lgr;

	assert((link_states[link->state].next & (1u << next)) != 0);
	engine_log_state(lgr, link, "link", link_states[link->state].name, link_states[next].name, why);
	lgr->link_cnt = lgr->link_cnt + is_there(next) - is_there(link->state);
	lgr->active_cnt = lgr->active_cnt + (next == LINK_ACTIVE) - (link->state == LINK_ACTIVE);
	link->state = next;
}

/* -- LLC exchanges -- */

/* Each exchange may also end (LLC_IDLE). A step that follows itself waits for the next of several messages. */
static const struct state_row steps[LLC_STEP_CNT] = {
	[LLC_IDLE] = { "idle",
	    LLC(WAIT_CONFIRM_LINK) | LLC(WAIT_CONFIRM_LINK_RSP) | LLC(WAIT_ADD_LINK_RSP) | LLC(CONNECT_NEW) |
	        LLC(DRAIN_LINK) | LLC(WAIT_DELETE_LINK_RSP) | LLC(WAIT_DELETE_LINK_SENT) | LLC(WAIT_DELETE_LINK) |
	        LLC(WAIT_CONFIRM_RKEY_RSP) | LLC(WAIT_DELETE_RKEY_RSP) },
	[LLC_WAIT_CONFIRM_LINK] = { "waits for CONFIRM LINK", LLC(WAIT_ADD_LINK) },
	[LLC_WAIT_CONFIRM_LINK_RSP] = { "waits for CONFIRM LINK response", LLC(WAIT_ADD_LINK_RSP) },
	[LLC_WAIT_ADD_LINK] = { "waits for ADD LINK", LLC(CONNECT_NEW) },
	[LLC_WAIT_PEER_DECLINE] = { "waits for a Decline", 0 },
	/* Followed by the new link itself in version 2, which has no CONTINUATIONs. */
	[LLC_WAIT_ADD_LINK_RSP] = { "waits for ADD LINK response",
	    LLC(WAIT_ADD_CONT_RSP) | LLC(WAIT_NEW_CONNECTED) | LLC(WAIT_NEW_CONFIRM_RSP) | LLC(WAIT_PEER_DECLINE) },
	[LLC_WAIT_ADD_CONT_RSP] = { "waits for ADD LINK CONTINUATION response",
	    LLC(WAIT_ADD_CONT_RSP) | LLC(WAIT_NEW_CONNECTED) | LLC(WAIT_NEW_CONFIRM_RSP) | LLC(WAIT_PEER_DECLINE) },
	[LLC_WAIT_NEW_CONNECTED] = { "waits for the new queue pair",
	    LLC(WAIT_NEW_CONFIRM_RSP) | LLC(WAIT_PEER_DECLINE) },
	[LLC_WAIT_NEW_CONFIRM_RSP] = { "waits for CONFIRM LINK response of the new link", LLC(WAIT_PEER_DECLINE) },
	[LLC_CONNECT_NEW] = { "connects the new queue pair",
	    LLC(WAIT_ADD_CONT) | LLC(WAIT_NEW_CONFIRM) | LLC(WAIT_PEER_DECLINE) },
	[LLC_WAIT_ADD_CONT] = { "waits for ADD LINK CONTINUATION",
	    LLC(WAIT_ADD_CONT) | LLC(WAIT_NEW_CONFIRM) | LLC(WAIT_PEER_DECLINE) },
	[LLC_WAIT_NEW_CONFIRM] = { "waits for CONFIRM LINK of the new link", LLC(WAIT_PEER_DECLINE) },
	[LLC_DRAIN_LINK] = { "drains a link", LLC(WAIT_DELETE_LINK_RSP) | LLC(CONNECT_NEW) },
	[LLC_WAIT_DELETE_LINK_RSP] = { "waits for DELETE LINK response", 0 },
	[LLC_WAIT_DELETE_LINK_SENT] = { "sends DELETE LINK for all", 0 },
	[LLC_WAIT_DELETE_LINK] = { "waits for DELETE LINK for all", 0 },
	[LLC_WAIT_CONFIRM_RKEY_RSP] = { "waits for CONFIRM RKEY response", LLC(WAIT_CONFIRM_RKEY_RSP) },
	[LLC_WAIT_DELETE_RKEY_RSP] = { "waits for DELETE RKEY response", 0 },
};

void
llc_flow_set_step(struct llc_flow *f, enum llc_step next)
{
	assert(next == LLC_IDLE || (steps[f->step].next & (1u << next)) != 0);
	if (f->step != next)
		engine_log_state(f->lgr, f->link, f == &f->lgr->flow[LLC_FLOW_LINK] ? "LLC links" : "LLC RKEYs",
		    steps[f->step].name, steps[next].name, NULL);
	f->step = next;
}

/* -- queries of all rooms -- */

/* Lower is better for a message or a connection. */
static unsigned
lgr_rank(const struct link *l)
{
	return (l->suspect != NULL ? 2u : 0u) + (l->retiring ? 1u : 0u);
}

struct link *
lgr_pick_link(struct lgr *lgr)
{
	struct link *best = NULL;

	LGR_EACH_LINK(l, lgr) {
		if (l->state != LINK_ACTIVE)
			continue;
		if (best == NULL || lgr_rank(l) < lgr_rank(best) ||
		    (lgr_rank(l) == lgr_rank(best) && l->conn_cnt < best->conn_cnt))
			best = l;
	}
	return best;
}

struct link *
lgr_link_by_number(struct lgr *lgr, uint8_t number)
{
	return LGR_FIND_LINK(l, lgr, is_there(l->state) && l->state != LINK_DOWN && l->number == number);
}

bool
link_leads_to(const struct link *link, const uint8_t gid[16], const uint8_t mac[6])
{
	return memcmp(link->remote.gid.b, gid, sizeof(link->remote.gid.b)) == 0 &&
	    (link->lgr->version == LLC_VERSION_2 || memcmp(link->remote.mac, mac, sizeof(link->remote.mac)) == 0);
}

bool
lgr_is_silent(const struct lgr *lgr)
{
	return lgr->active_cnt > 0 && !LGR_ANY_LINK(l, lgr, l->state == LINK_ACTIVE && l->suspect == NULL);
}

uint32_t
lgr_conns_max(const struct lgr *lgr)
{
	return min_u32(lgr->conns_limit, lgr->eng->cfg.conns_per_group);
}

bool
lgr_unused(const struct lgr *lgr)
{
	return lgr->conn_cnt == 0 && list_empty(&lgr->wait_rmb) && lgr->contact.conn == NULL;
}
